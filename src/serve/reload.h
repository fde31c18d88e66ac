/* SPDX-License-Identifier: MIT */
#ifndef RN_SERVE_RELOAD_H
#define RN_SERVE_RELOAD_H

#include "config/config.h"
#include "serve/log.h"
#include "trace/output.h"

/* What a reload came to, for the log, the answer to whoever asked, and the metrics. */

#define RN_RELOAD_LISTED 1000       /* changes that are named in an answer; the rest is counted */
#define RN_RELOAD_FAULTS_LISTED 100 /* and faults */
#define RN_RELOAD_ANSWER_MAX ((size_t)2 << 20)

typedef enum rn_reload_result {
    RN_RELOADED = 0,
    RN_RELOAD_FAULTY,   /* the file is: `faults` */
    RN_RELOAD_DRAINING, /* the process takes nothing new any more */
    RN_RELOAD_NO_FILE,  /* it runs with a config that came from none */
    RN_RELOAD_FAILED,   /* `err`: no memory */
} rn_reload_result;

typedef struct rn_reload {
    rn_reload_result result;
    int err;
    ration_config_faults faults;
    ration_config_fault whole; /* one of the file as a whole, with its text in `words` */
    uint64_t changed[RN_CONFIG_HOWS];
    rn_output changes; /* each as an object of JSON, in a list that is open */
    size_t listed, omitted;
    char words[512]; /* the first changes, for people */
    int64_t took_us;
} rn_reload;

/* Since the start. */
typedef struct rn_reload_counts {
    uint64_t done;
    uint64_t failed;
    uint64_t well;         /* 1: the last one was done, or there was none */
    ration_time loaded_at; /* when what runs was read */
    ration_time failed_at; /* the last that was not; 0: there was none */
} rn_reload_counts;

/* One that has not been done: RN_RELOAD_FAILED. Freed with `fini` always. */
void rn_reload_init(rn_reload *reload);
void rn_reload_fini(rn_reload *reload);
/* One more change of the reload that is `reload_ctx`; a rn_config_changed. */
void rn_reload_note(void *reload_ctx, const rn_config_change *change);
/* The file as a whole cannot be had, for this reason. */
void rn_reload_fault(rn_reload *reload, const char *file, const char *text);
/* What it came to, in a line; before it one for each fault, up to some number. `by`: who wanted it. */
void rn_reload_log(const rn_reload *reload, const rn_log *log, ration_time now, const char *by, const char *file);
/* The members of an answer that tell what has changed, and those that tell the faults, into an object that is open. */
void rn_reload_write(const rn_reload *reload, rn_output *out);
void rn_reload_faults_write(const rn_reload *reload, rn_output *out);
/* The name of a result as the end of a problem's type, in the log and in events. */
const char *rn_reload_result_name(rn_reload_result result);

/* A line for each of a config's faults or warnings. */
void rn_log_config_faults(const rn_log *log, ration_time now, const ration_config_fault *faults, size_t count);

#endif
