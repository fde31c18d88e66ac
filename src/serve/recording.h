/* SPDX-License-Identifier: MIT */
#ifndef RN_SERVE_RECORDING_H
#define RN_SERVE_RECORDING_H

#include "net/loop.h"
#include "net/server.h" /* rn_net_error */
#include "serve/log.h"

/*
 * The file of a recording, as the recorder writes it: pieces that end with a whole call.
 *
 * Beyond `part_bytes` the file is renamed to FILE.1, FILE.2 and so on, with numbers that nothing has yet, and FILE goes
 * on where it ended: all parts of a run in order are one recording. A FILE of an earlier run is kept as FILE.old from
 * `begin` on; one that another process is writing is left alone. What cannot be written is reported once and ends the
 * recording behind its last whole piece; it never ends a call.
 */
typedef struct rn_recording rn_recording;

typedef struct rn_recording_options {
    rn_loop *loop;
    const rn_log *log;
    const char *path;
    uint64_t part_bytes; /* 0: 1 GiB */
} rn_recording_options;

/* RATION_ERR_NOMEM; RATION_ERR_IO with `*error` filled. */
int rn_recording_open(const rn_recording_options *options, rn_recording **out, rn_net_error *error);
/* All has started: take the place of an earlier run's FILE. Closed before, it leaves no trace. RATION_ERR_IO. */
int rn_recording_begin(rn_recording *recording);
/* Both for the recorder's options, with the recording as their `ctx`. RATION_ERR_IO: the recording has ended. */
int rn_recording_write(void *recording, const char *data, size_t size);
void rn_recording_failed(void *recording, int err);
/* NULL is fine. */
void rn_recording_close(rn_recording *recording);

const char *rn_recording_path(const rn_recording *recording);
/* Written, in all parts. */
uint64_t rn_recording_bytes(const rn_recording *recording);
/* Why it ended; NULL: it goes on. */
const char *rn_recording_error(const rn_recording *recording);

#endif
