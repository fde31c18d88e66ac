/* SPDX-License-Identifier: MIT */
/*
 * POST /v1/reload: what has changed, or everything that is wrong with the file.
 *
 * The reload is done inside the request's last callback and the answer is written at once, so two requests are two
 * reloads, one after the other.
 */
#include "base/mem.h"
#include "base/text.h"
#include "serve/api_parts.h"

static void answer_done(rn_inbound *in, const rn_reload *reload)
{
    rn_output body;

    rn_output_init(&body, rn_mem_default(), RN_RELOAD_ANSWER_MAX);
    rn_output_open(&body, NULL, '{');
    rn_output_str(&body, "result", rn_reload_result_name(reload->result));
    rn_reload_write(reload, &body);
    rn_output_close(&body, '}');
    rn_output_newline(&body);
    rn_reply(in, 200, RN_API_JSON, NULL, &body);
    rn_output_fini(&body);
}

static void faults_write(rn_output *out, const void *reload)
{
    rn_reload_faults_write(reload, out);
}

static void answer_failed(rn_inbound *in, const rn_reload *reload)
{
    static const struct {
        int status;
        const char *title;
        const char *detail;
    } words[] = {
        [RN_RELOADED] = {200, "", ""},
        [RN_RELOAD_FAULTY] = {422, "The config has faults", "nothing has changed; the faults say where to look"},
        [RN_RELOAD_DRAINING] = {409, "The process is shutting down", "it takes no other config any more"},
        [RN_RELOAD_NO_FILE] = {409, "There is no config file", "this process was started without one"},
        [RN_RELOAD_FAILED] = {503, "The config could not be read anew", "out of memory; nothing has changed"},
    };
    const rn_problem problem = {.status = words[reload->result].status,
                                .name = rn_reload_result_name(reload->result),
                                .title = words[reload->result].title,
                                .detail = ration_text_of(words[reload->result].detail),
                                .waited_us = RATION_UNSET,
                                .more = faults_write,
                                .more_ctx = reload};

    rn_reply_problem(in, &problem, NULL);
}

void rn_api_reload(rn_api_call *call, rn_trace_line *asked, ration_text body)
{
    const rn_api_reloader *reloader = call->api->reloader;
    rn_reload reload;

    (void)asked;
    (void)body;
    rn_reload_init(&reload);
    reload.result = RN_RELOAD_NO_FILE;
    if (reloader != NULL)
        reloader->reload(reloader->user, "api", &reload);
    if (reload.result == RN_RELOADED) {
        answer_done(call->in, &reload);
    } else {
        answer_failed(call->in, &reload);
    }
    rn_reload_fini(&reload);
    rn_api_call_end(call);
}
