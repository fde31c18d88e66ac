/* SPDX-License-Identifier: MIT */
/*
 * What counters have told of themselves.
 *
 * The store knows what has been spent and learned; what the rules say is known here, so a row is made of both. Nothing
 * of an answer is trusted further than its shape: what is no number counts as 0.
 */
#include "fleet/figures.h"

#include "base/text.h"
#include "base/units.h"
#include "fleet/answer.h"

static const redisReply *item_of(const redisReply *of, size_t index)
{
    return of != NULL && of->type == REDIS_REPLY_ARRAY && index < of->elements ? of->element[index] : NULL;
}

static int64_t number_of(const redisReply *of, size_t index, int64_t none)
{
    const redisReply *const found = item_of(of, index);

    return found != NULL && found->type == REDIS_REPLY_INTEGER ? found->integer : none;
}

/* Classes come by name, for another member may have others. */
static void classes_read(const redisReply *told, const ration_adaptive_rule *rule, int64_t *held)
{
    for (size_t at = 2; item_of(told, at) != NULL; at += 2) {
        const redisReply *const name = item_of(told, at);

        for (size_t i = 0; i < rule->class_count && name->type == REDIS_REPLY_STRING; i++) {
            if (rn_text_is((ration_text){name->str, name->len}, rule->classes[i].name))
                held[i] = number_of(told, at + 1, 0);
        }
    }
}

bool rn_figures_read(const redisReply *reply, size_t index, const rn_limit *limit, rn_figures *out)
{
    const redisReply *const row = item_of(rn_answer_rest(reply), index);
    const redisReply *const told = item_of(row, 5);

    if (told == NULL || told->type != REDIS_REPLY_ARRAY)
        return false;
    *out = (rn_figures){
        .exists = number_of(row, 0, 0) != 0,
        .paused = number_of(row, 1, 0) != 0,
        .waiting = (uint64_t)rn_max(number_of(row, 2, 0), 0),
        .penalty_until = {number_of(row, 3, RATION_NEVER_US)},
        .doublings = (uint32_t)rn_max(rn_min(number_of(row, 4, 0), UINT32_MAX), 0),
    };
    for (size_t i = 0; i < RN_FIGURES_NUMBERS; i++)
        out->numbers[i] = number_of(told, i, 0);
    if (limit->rule->kind == RATION_KIND_ADAPTIVE)
        classes_read(told, &limit->rule->adaptive, out->held);
    return true;
}

static void rate_report(const int64_t *numbers, const rn_limit *limit, ration_counter_report *out)
{
    const rn_bucket_spec *const spec = &limit->spec.bucket;

    out->available = rn_div_floor(numbers[0], spec->price);
    out->max = spec->burst;
    out->reserve = spec->margin;
    out->unit_us = rn_div_ceil(rn_mul(spec->price, RATION_UNIT), spec->earn);
}

static void quota_report(const int64_t *numbers, const rn_limit *limit, ration_counter_report *out)
{
    out->max = numbers[0];
    out->usable = numbers[1];
    out->reserve = numbers[2];
    out->used = numbers[3];
    out->external = numbers[4];
    out->extra = numbers[5];
    out->remaining = numbers[6];
    out->has_window = limit->spec.quota.calendar.period != RATION_PERIOD_NONE;
    out->rolling_us = limit->rule->window.rolling_us;
    if (out->has_window) {
        out->zone = limit->rule->window.zone;
        out->window_start.us = numbers[7];
        out->window_end.us = numbers[8];
    }
}

static void adaptive_report(const rn_figures *figures, const rn_limit *limit, ration_class_report *classes,
                            ration_counter_report *out)
{
    const ration_adaptive_rule *const rule = &limit->rule->adaptive;

    out->current = rn_mul(figures->numbers[0], RATION_UNIT);
    out->held = figures->numbers[1];
    out->classes = classes;
    out->class_count = rule->class_count;
    for (size_t i = 0; i < rule->class_count; i++) {
        classes[i] = (ration_class_report){
            .name = ration_text_of(rule->classes[i].name),
            .reserved = rn_class_reserved(figures->numbers[0], rule->classes[i].reserved),
            .held = figures->held[i],
        };
    }
}

void rn_figures_report(const rn_figures *figures, const rn_limit *limit, ration_text key, ration_class_report *classes,
                       ration_counter_report *out)
{
    *out = (ration_counter_report){
        .provider = limit->provider,
        .limit = limit->rule->name,
        .kind = limit->rule->kind,
        .enforce = limit->rule->enforce,
        .key = key,
        .paused = figures->paused,
        .waiting = figures->waiting,
    };
    switch (limit->rule->kind) {
    case RATION_KIND_RATE:
        rate_report(figures->numbers, limit, out);
        break;
    case RATION_KIND_QUOTA:
        quota_report(figures->numbers, limit, out);
        break;
    case RATION_KIND_ADAPTIVE:
        adaptive_report(figures, limit, classes, out);
        break;
    case RATION_KIND_CONCURRENCY:
        out->max = limit->rule->max;
        out->held = figures->numbers[0];
        break;
    case RATION_KIND_SHARE:
        out->max = figures->numbers[0] > 0 ? figures->numbers[0] : limit->rule->share.ceiling;
        out->held = figures->numbers[1];
        break;
    case RATION_KIND_NONE:
    case RATION_KIND_COUNT:
        break;
    }
}

/* What a bucket has by now. */
static int64_t credit_of(const rn_figures *figures, const rn_bucket_spec *spec, const rn_figures_since *since)
{
    const int64_t earned = rn_mul(rn_max(rn_sub(since->now.us, since->at.us), 0), spec->earn);

    return rn_sub(rn_min(rn_add(figures->numbers[0], earned), spec->cap), rn_mul(since->spent, spec->price));
}

bool rn_figures_standing(const rn_figures *figures, const rn_limit *limit, const rn_figures_since *since,
                         int64_t charge, rn_standing *out)
{
    ration_class_report classes[RN_CLASSES_MAX];
    ration_counter_report report;
    int64_t credit = 0;

    if (!rn_standing_is_of(limit) || rn_sub(since->now.us, since->at.us) > RN_FIGURES_OLD_US)
        return false;
    rn_figures_report(figures, limit, (ration_text){NULL, 0}, classes, &report);
    if (report.has_window && !rn_time_before(since->now, report.window_end))
        return false;
    if (limit->rule->kind == RATION_KIND_RATE)
        credit = credit_of(figures, &limit->spec.bucket, since);
    report.remaining = rn_sub(report.remaining, since->spent);
    return rn_standing_of(limit, &report, credit, since->now, charge, out);
}
