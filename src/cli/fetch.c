/* SPDX-License-Identifier: MIT */
/*
 * libcurl with its easy door. No proxy and no redirect: the control port is asked and nobody else.
 */
#include "cli/fetch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>

#include <ration/types.h>

#define PAGE_MAX ((size_t)64 << 20)

typedef struct page_buffer {
    char *data;
    size_t size;
} page_buffer;

static size_t on_bytes(char *bytes, size_t one, size_t count, void *user)
{
    page_buffer *page = user;
    const size_t size = one * count;

    if (size > PAGE_MAX - page->size)
        return 0;
    char *data = realloc(page->data, page->size + size + 1);
    if (data == NULL)
        return 0;
    memcpy(data + page->size, bytes, size);
    page->data = data;
    page->size += size;
    page->data[page->size] = '\0';
    return size;
}

/* The URL of a page. A Unix socket has no host of its own. */
static void url_write(const rn_fetch_options *options, const char *page, char *url, size_t size)
{
    const bool local = strncmp(options->control, "unix:", 5) == 0;
    const bool whole = strncmp(options->control, "http://", 7) == 0;

    (void)snprintf(url, size, "%s%s%s", local || !whole ? "http://" : "", local ? "localhost" : options->control, page);
}

static CURLcode perform(CURL *curl, const rn_fetch_options *options, const char *url, page_buffer *page,
                        struct curl_slist *fields)
{
    CURLcode code = curl_easy_setopt(curl, CURLOPT_URL, url);

    if (code == CURLE_OK && strncmp(options->control, "unix:", 5) == 0)
        code = curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, options->control + 5);
    if (code == CURLE_OK)
        code = curl_easy_setopt(curl, CURLOPT_PROXY, "");
    if (code == CURLE_OK)
        code = curl_easy_setopt(curl, CURLOPT_HTTPHEADER, fields);
    if (code == CURLE_OK)
        code = curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http");
    if (code == CURLE_OK)
        code = curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    if (code == CURLE_OK)
        code = curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, options->timeout_ms);
    if (code == CURLE_OK)
        code = curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_bytes);
    if (code == CURLE_OK)
        code = curl_easy_setopt(curl, CURLOPT_WRITEDATA, page);
    return code == CURLE_OK ? curl_easy_perform(curl) : code;
}

/* Only what goes over loopback or a Unix socket may carry a token in clear; others are the user's own decision. */
static int fields_make(const rn_fetch_options *options, struct curl_slist **out)
{
    char field[4096];

    *out = NULL;
    if (options->token == NULL)
        return RATION_OK;
    const int size = snprintf(field, sizeof field, "Authorization: Bearer %s", options->token);
    if (size < 0 || (size_t)size >= sizeof field)
        return RATION_ERR_RANGE;
    *out = curl_slist_append(NULL, field);
    return *out != NULL ? RATION_OK : RATION_ERR_NOMEM;
}

int rn_fetch(const rn_fetch_options *options, const char *page, char **body, size_t *size, char *error,
             size_t error_size)
{
    page_buffer got = {NULL, 0};
    char url[1024];
    struct curl_slist *fields = NULL;
    long status = 0;
    int err = fields_make(options, &fields);

    if (err != RATION_OK) {
        (void)snprintf(error, error_size, "the token is too long");
        return err;
    }
    url_write(options, page, url, sizeof url);

    CURL *curl = curl_easy_init();
    const CURLcode code = curl != NULL ? perform(curl, options, url, &got, fields) : CURLE_OUT_OF_MEMORY;

    if (code == CURLE_OK)
        (void)curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    if (code != CURLE_OK) {
        (void)snprintf(error, error_size, "%s: %s%s", options->control, curl_easy_strerror(code),
                       code == CURLE_COULDNT_CONNECT ? "; is `ration serve` running? --control names its control port"
                                                     : "");
        err = RATION_ERR_IO;
    } else if (status != 200 || got.data == NULL) {
        (void)snprintf(error, error_size, "%s%s: answered %ld%s", options->control, page, status,
                       status == 401   ? "; RATION_TOKEN names the token of its config"
                       : status == 403 ? "; the client whose token is in RATION_TOKEN needs `view: true`"
                                       : "");
        err = RATION_ERR_IO;
    }
    curl_slist_free_all(fields);
    curl_easy_cleanup(curl);
    if (err != RATION_OK) {
        free(got.data);
        return err;
    }
    *body = got.data;
    *size = got.size;
    return RATION_OK;
}
