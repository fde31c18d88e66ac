/* SPDX-License-Identifier: MIT */
#ifndef RN_SERVE_WEB_H
#define RN_SERVE_WEB_H

#include "net/server.h"

/* The dashboard: files of src/serve/web, built into the program by scripts/embed-web. Chapter 7. */
typedef struct rn_web_file {
    const char *path; /* below src/serve/web */
    const char *type;
    const char *tag; /* of its content */
    const unsigned char *plain;
    size_t plain_size;
    const unsigned char *packed; /* the same, as gzip */
    size_t packed_size;
} rn_web_file;

extern const rn_web_file rn_web_files[];
extern const size_t rn_web_file_count;

/* All of it in one file, by scripts/bundle-web: between the two comes JSON that has no "<". */
extern const char rn_web_report_head[];
extern const char rn_web_report_tail[];

/* "/" or "/ui/FILE", without a query. NULL: no such file. */
const rn_web_file *rn_web_find(ration_text path);
/* The answer to GET or HEAD of it; finishes the inbound. */
void rn_web_answer(rn_inbound *in, const rn_http_head *head, const rn_web_file *file);

#endif
