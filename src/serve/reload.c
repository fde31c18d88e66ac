/* SPDX-License-Identifier: MIT */
/*
 * What a reload came to, told to people and programs.
 *
 * Changes are written down while both configs are there, since either may name something that the other does not have.
 * No text of it shows a secret: faults have none (config/faults.h), and of what has changed only names are told.
 */
#include "serve/reload.h"

#include "base/mem.h"
#include "base/text.h"

#define CHANGES_MAX ((size_t)1 << 20)
#define LINES 20 /* of faults in the log */

static const char *const hows[RN_CONFIG_HOWS] = {"added", "removed", "changed"};

const char *rn_reload_result_name(rn_reload_result result)
{
    static const char *const names[] = {"reloaded", "config_invalid", "draining", "no_config_file", "internal"};

    return names[result];
}

void rn_reload_init(rn_reload *reload)
{
    *reload = (rn_reload){.result = RN_RELOAD_FAILED, .err = RATION_ERR_NOMEM};
    rn_output_init(&reload->changes, rn_mem_default(), CHANGES_MAX);
    rn_output_open(&reload->changes, NULL, '[');
}

void rn_reload_fini(rn_reload *reload)
{
    rn_output_fini(&reload->changes);
    if (reload->faults.items != &reload->whole)
        ration_config_faults_fini(&reload->faults);
}

/* "limit p/daily added, account a changed" */
static void words_add(rn_reload *reload, const rn_config_change *change)
{
    char words[sizeof reload->words];
    rn_builder b;

    rn_builder_init(&b, words, sizeof words);
    rn_builder_str(&b, reload->words);
    rn_builder_str(&b, reload->words[0] != '\0' ? ", " : "");
    rn_builder_str(&b, change->kind);
    rn_builder_char(&b, ' ');
    rn_builder_str(&b, change->owner);
    rn_builder_str(&b, change->owner[0] != '\0' ? "/" : "");
    rn_builder_str(&b, change->name);
    rn_builder_char(&b, ' ');
    rn_builder_str(&b, hows[change->how]);
    if (b.full)
        return;
    rn_builder_init(&b, reload->words, sizeof reload->words);
    rn_builder_str(&b, words);
}

void rn_reload_note(void *reload_ctx, const rn_config_change *change)
{
    rn_reload *reload = reload_ctx;
    rn_output *out = &reload->changes;

    reload->changed[change->how]++;
    words_add(reload, change);
    if (reload->listed == RN_RELOAD_LISTED) {
        reload->omitted++;
        return;
    }
    reload->listed++;
    rn_output_open(out, NULL, '{');
    rn_output_str(out, "kind", change->kind);
    if (change->owner[0] != '\0')
        rn_output_str(out, "provider", change->owner);
    rn_output_str(out, "name", change->name);
    rn_output_str(out, "change", hows[change->how]);
    rn_output_close(out, '}');
}

void rn_reload_fault(rn_reload *reload, const char *file, const char *text)
{
    rn_builder b;

    rn_builder_init(&b, reload->words, sizeof reload->words);
    rn_builder_str(&b, text);
    reload->whole = (ration_config_fault){.file = file, .path = "", .text = reload->words, .hint = "", .source = ""};
    reload->faults = (ration_config_faults){.items = &reload->whole, .count = 1};
    reload->result = RN_RELOAD_FAULTY;
}

/* ---- the log */

static void fault_log(const rn_log *log, ration_time now, const ration_config_fault *fault)
{
    char place[1024];
    rn_builder b;

    rn_builder_init(&b, place, sizeof place);
    rn_config_place(fault, &b);
    rn_log_line(log, now, fault->warning ? "warn" : "error", fault->text, "config", place, "path",
                fault->path[0] != '\0' ? fault->path : NULL, "hint", fault->hint[0] != '\0' ? fault->hint : NULL, NULL);
}

void rn_log_config_faults(const rn_log *log, ration_time now, const ration_config_fault *faults, size_t count)
{
    for (size_t i = 0; i < count; i++)
        fault_log(log, now, &faults[i]);
}

static const char *number(char buffer[24], uint64_t n)
{
    rn_builder b;

    rn_builder_init(&b, buffer, 24);
    rn_builder_int(&b, (int64_t)n);
    return buffer;
}

static const char *reason(const rn_reload *reload)
{
    switch (reload->result) {
    case RN_RELOADED:
        return NULL;
    case RN_RELOAD_FAULTY:
        return "it has faults";
    case RN_RELOAD_DRAINING:
        return "the process is shutting down";
    case RN_RELOAD_NO_FILE:
        return "this process runs without one";
    case RN_RELOAD_FAILED:
        break;
    }
    return ration_err_text(reload->err);
}

void rn_reload_log(const rn_reload *reload, const rn_log *log, ration_time now, const char *by, const char *file)
{
    const size_t faults = reload->faults.count;
    char added[24], removed[24], changed[24], took[24], count[24];
    rn_builder b;

    if (reload->result != RN_RELOADED) {
        rn_log_config_faults(log, now, reload->faults.items, faults < LINES ? faults : LINES);
        rn_log_line(log, now, "error", "the config was not read anew, nothing has changed", "by", by, "config", file,
                    "why", reason(reload), "faults", faults > 0 ? number(count, faults) : NULL, NULL);
        return;
    }
    rn_builder_init(&b, took, sizeof took);
    rn_builder_ms(&b, reload->took_us);
    rn_log_line(log, now, "info", "the config was read anew", "by", by, "config", file, "added",
                number(added, reload->changed[RN_CONFIG_ADDED]), "removed",
                number(removed, reload->changed[RN_CONFIG_REMOVED]), "changed",
                number(changed, reload->changed[RN_CONFIG_CHANGED]), "what",
                reload->words[0] != '\0' ? reload->words : NULL, "took_ms", took, NULL);
}

/* ---- the answer */

void rn_reload_write(const rn_reload *reload, rn_output *out)
{
    const bool whole = reload->changes.err == RATION_OK;
    rn_output_key(out, ration_text_of("changes"));
    rn_output_element(out, whole ? (ration_text){reload->changes.data, reload->changes.size} : ration_text_of("["));
    rn_output_raw(out, ration_text_of("]"));
    if (!whole || reload->omitted > 0)
        rn_output_int(out, "changesOmitted", (int64_t)(reload->omitted + (whole ? 0 : reload->listed)));
    rn_output_ms(out, "tookMs", reload->took_us);
}

void rn_reload_faults_write(const rn_reload *reload, rn_output *out)
{
    const size_t count = reload->faults.count;

    if (count == 0)
        return;
    rn_output_open(out, "faults", '[');
    for (size_t i = 0; i < count && i < RN_RELOAD_FAULTS_LISTED; i++) {
        const ration_config_fault *fault = &reload->faults.items[i];

        rn_output_open(out, NULL, '{');
        rn_output_str(out, "file", fault->file);
        if (fault->line > 0) {
            rn_output_int(out, "line", (int64_t)fault->line);
            rn_output_int(out, "column", (int64_t)fault->column);
        }
        if (fault->path[0] != '\0')
            rn_output_str(out, "path", fault->path);
        rn_output_str(out, "text", fault->text);
        if (fault->hint[0] != '\0')
            rn_output_str(out, "hint", fault->hint);
        rn_output_close(out, '}');
    }
    rn_output_close(out, ']');
    if (count > RN_RELOAD_FAULTS_LISTED)
        rn_output_int(out, "faultsOmitted", (int64_t)(count - RN_RELOAD_FAULTS_LISTED));
}
