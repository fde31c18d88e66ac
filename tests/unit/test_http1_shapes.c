/* SPDX-License-Identifier: MIT */
/*
 * The codec alone against every shape that tests/e2e sends through the gateway. The bytes are the corpus of the fuzz
 * target; what the codec must make of them stands here: how many messages are complete, and the status that the rest is
 * refused with (0: there is no rest). However they are cut, the events must be the same.
 */

#include "support/http1_trace.h"

#include <dirent.h>

#define FOLDER "tests/fuzz/corpus/http1/"
#define MAX_SHAPE 32768
#define RANDOM_CUTS 24

static const struct shape {
    const char *name;
    int messages;
    int status;
} shapes[] = {
    {"request-cl-te", 0, 400},
    {"request-te-cl", 0, 400},
    {"request-cl-te-get", 0, 400},
    {"request-cl-0-te", 0, 400},
    {"request-te-cl-mixed-case", 0, 400},
    {"request-te-xchunked", 0, 400},
    {"request-te-xchunked-cl", 0, 400},
    {"request-te-chunkedx", 0, 400},
    {"request-te-chunked-identity", 0, 400},
    {"request-te-chunked-identity-cl", 0, 400},
    {"request-te-identity-chunked", 0, 501},
    {"request-te-gzip-chunked", 0, 501},
    {"request-te-chunked-chunked", 0, 501},
    {"request-te-identity", 0, 400},
    {"request-te-empty", 0, 400},
    {"request-te-empty-cl", 0, 400},
    {"request-te-comma", 0, 400},
    {"request-te-comma-first", 0, 501},
    {"request-te-quoted", 0, 400},
    {"request-te-single-quoted", 0, 400},
    {"request-te-params", 0, 400},
    {"request-te-vertical-tab", 0, 400},
    {"request-te-vertical-tab-cl", 0, 400},
    {"request-te-form-feed", 0, 400},
    {"request-te-nul", 0, 400},
    {"request-te-inner-space", 0, 400},
    {"request-te-latin", 0, 400},
    {"request-te-twice", 0, 400},
    {"request-te-twice-other", 0, 400},
    {"request-te-other-twice", 0, 400},
    {"request-te-http-1.0", 0, 400},
    {"request-te-http-1.0-kept", 0, 400},
    {"request-te-mixed-case", 1, 0},
    {"request-te-tab", 1, 0},
    {"request-te-spaces", 1, 0},
    {"request-te-no-space", 1, 0},
    {"request-te-underscore", 1, 0},
    {"request-te-space-colon", 0, 400},
    {"request-te-tab-colon", 0, 400},
    {"request-cl-space-colon", 0, 400},
    {"request-cl-space-before", 0, 400},
    {"request-vertical-tab-before", 0, 400},
    {"request-name-empty", 0, 400},
    {"request-name-empty-first", 0, 400},
    {"request-no-colon", 0, 400},
    {"request-no-colon-folded", 0, 400},
    {"request-name-nul", 0, 400},
    {"request-name-control", 0, 400},
    {"request-name-space-inside", 0, 400},
    {"request-name-latin", 0, 400},
    {"request-name-quoted", 0, 400},
    {"request-name-bracket", 0, 400},
    {"request-value-nul", 0, 400},
    {"request-value-control", 0, 400},
    {"request-value-delete", 0, 400},
    {"request-value-obs-text", 1, 0},
    {"request-name-270-bytes", 1, 0},
    {"request-cl-plus", 0, 400},
    {"request-cl-minus", 0, 400},
    {"request-cl-minus-0", 0, 400},
    {"request-cl-list", 0, 400},
    {"request-cl-list-other", 0, 400},
    {"request-cl-list-empty", 0, 400},
    {"request-cl-hex", 0, 400},
    {"request-cl-underscore", 0, 400},
    {"request-cl-inner-space", 0, 400},
    {"request-cl-fraction", 0, 400},
    {"request-cl-exponent", 0, 400},
    {"request-cl-empty", 0, 400},
    {"request-cl-semicolon", 0, 400},
    {"request-cl-quoted", 0, 400},
    {"request-cl-letters", 0, 400},
    {"request-cl-arabic-digits", 0, 400},
    {"request-cl-2-63", 0, 400},
    {"request-cl-2-64", 0, 400},
    {"request-cl-2-64-plus-4", 0, 400},
    {"request-cl-huge", 0, 400},
    {"request-cl-twice", 0, 400},
    {"request-cl-twice-other", 0, 400},
    {"request-cl-twice-empty", 0, 400},
    {"request-cl-zeros", 1, 0},
    {"request-cl-white-space", 1, 0},
    {"request-body-on-get", 1, 0},
    {"request-body-on-head", 1, 0},
    {"request-body-on-delete", 1, 0},
    {"request-body-on-options", 1, 0},
    {"request-chunked-get", 1, 0},
    {"request-cr-in-value", 0, 400},
    {"request-cr-before-name", 0, 400},
    {"request-cr-hides-te", 0, 400},
    {"request-cr-at-end", 0, 400},
    {"request-cr-in-request-line", 0, 400},
    {"request-cr-cr-lf", 0, 400},
    {"request-cr-ends-the-head", 0, 400},
    {"request-lf-request-line", 0, 400},
    {"request-lf-field", 0, 400},
    {"request-lf-all", 0, 400},
    {"request-lf-lf-ends-the-head", 0, 400},
    {"request-lf-ends-the-head", 0, 400},
    {"request-lf-before", 0, 400},
    {"request-fold-first", 0, 400},
    {"request-fold-middle", 0, 400},
    {"request-fold-last", 0, 400},
    {"request-fold-empty", 0, 400},
    {"request-fold-te", 0, 400},
    {"request-fold-hides-te", 0, 400},
    {"request-fold-lf", 0, 400},
    {"request-te-after-fold", 0, 400},
    {"request-crlf-before", 1, 0},
    {"request-crlf-flood", 0, 400},
    {"request-chunk-0x", 0, 400},
    {"request-chunk-minus", 0, 400},
    {"request-chunk-minus-0x", 0, 400},
    {"request-chunk-plus", 0, 400},
    {"request-chunk-underscore", 0, 400},
    {"request-chunk-letters", 0, 400},
    {"request-chunk-not-hex", 0, 400},
    {"request-chunk-empty", 0, 400},
    {"request-chunk-space-before", 0, 400},
    {"request-chunk-space-after", 0, 400},
    {"request-chunk-tab-after", 0, 400},
    {"request-chunk-fraction", 0, 400},
    {"request-chunk-2-64", 0, 400},
    {"request-chunk-huge", 0, 400},
    {"request-chunk-nul", 0, 400},
    {"request-chunk-cr", 0, 400},
    {"request-chunk-lf-size", 0, 400},
    {"request-chunk-cr-size", 0, 400},
    {"request-chunk-lf-data", 0, 400},
    {"request-chunk-no-end", 0, 400},
    {"request-chunk-two-bytes-end", 0, 400},
    {"request-chunk-long-data", 0, 400},
    {"request-chunk-lf-last", 0, 400},
    {"request-chunk-lf-ends", 0, 400},
    {"request-chunk-ext-lf", 0, 400},
    {"request-chunk-ext-cr", 0, 400},
    {"request-chunk-ext-space", 0, 400},
    {"request-chunk-ext-nul", 0, 400},
    {"request-chunk-ext-huge", 0, 400},
    {"request-chunk-last-ext-huge", 0, 400},
    {"request-chunk-extensions", 1, 0},
    {"request-chunk-zeros", 1, 0},
    {"request-chunk-capital", 1, 0},
    {"request-trailer-cl", 0, 400},
    {"request-trailer-te", 0, 400},
    {"request-trailer-fold", 0, 400},
    {"request-trailer-space-colon", 0, 400},
    {"request-trailer-no-colon", 0, 400},
    {"request-trailer-bare-cr", 0, 400},
    {"request-trailer-bare-lf", 0, 400},
    {"request-trailer-nul", 0, 400},
    {"request-trailer-huge", 0, 431},
    {"request-trailer-many", 0, 431},
    {"request-trailer-host", 1, 0},
    {"request-trailer-authorization", 1, 0},
    {"request-trailer-cookie", 1, 0},
    {"request-trailer-content-type", 1, 0},
    {"request-trailer-ration-token", 1, 0},
    {"request-trailer-x-key", 1, 0},
    {"request-trailer-connection", 1, 0},
    {"request-target-absolute", 1, 0},
    {"request-target-absolute-https", 1, 0},
    {"request-target-absolute-userinfo", 1, 0},
    {"request-target-absolute-ftp", 0, 400},
    {"request-target-authority", 0, 400},
    {"request-target-double-slash", 1, 0},
    {"request-target-backslash", 0, 400},
    {"request-target-relative", 0, 400},
    {"request-target-query-alone", 0, 400},
    {"request-target-asterisk-get", 0, 400},
    {"request-target-no-account", 1, 0},
    {"request-target-fragment", 0, 400},
    {"request-target-tab", 0, 400},
    {"request-target-space", 0, 400},
    {"request-target-version-inside", 0, 400},
    {"request-target-nul", 0, 400},
    {"request-target-control", 0, 400},
    {"request-target-delete", 0, 400},
    {"request-target-latin-1", 0, 400},
    {"request-target-utf-8", 0, 400},
    {"request-target-overlong-dots", 0, 400},
    {"request-target-encoded-nobody", 1, 0},
    {"request-target-dots-as-account", 1, 0},
    {"request-target-slash-as-account", 1, 0},
    {"request-target-dots", 1, 0},
    {"request-target-encoded-dots", 1, 0},
    {"request-target-encoded-slash", 1, 0},
    {"request-target-encoded-crlf", 1, 0},
    {"request-target-encoded-nul", 1, 0},
    {"request-target-broken-escape", 1, 0},
    {"request-target-inner-double-slash", 1, 0},
    {"request-target-url-inside", 1, 0},
    {"request-target-semicolon", 1, 0},
    {"request-connect", 0, 501},
    {"request-connect-account", 0, 501},
    {"request-trace", 1, 0},
    {"request-options-asterisk", 1, 0},
    {"request-host-none", 0, 400},
    {"request-host-twice", 0, 400},
    {"request-host-twice-other", 0, 400},
    {"request-host-twice-case", 0, 400},
    {"request-host-space", 0, 400},
    {"request-host-tab", 0, 400},
    {"request-host-userinfo", 0, 400},
    {"request-host-path", 0, 400},
    {"request-host-query", 0, 400},
    {"request-host-fragment", 0, 400},
    {"request-host-list", 0, 400},
    {"request-host-scheme", 0, 400},
    {"request-host-backslash", 0, 400},
    {"request-host-port", 0, 400},
    {"request-host-two-ports", 0, 400},
    {"request-host-open-bracket", 0, 400},
    {"request-host-latin", 0, 400},
    {"request-host-nul", 0, 400},
    {"request-host-quoted", 0, 400},
    {"request-host-empty", 1, 0},
    {"request-host-port-given", 1, 0},
    {"request-host-ipv6", 1, 0},
    {"request-host-encoded", 1, 0},
    {"request-http-1.0-no-host", 1, 0},
    {"request-http-1.0-kept-and-closed", 1, 0},
    {"request-http-0.9", 0, 400},
    {"request-two-spaces", 0, 400},
    {"request-space-first", 0, 400},
    {"request-space-last", 0, 400},
    {"request-tabs", 0, 400},
    {"request-version-missing", 0, 400},
    {"request-version-small", 0, 400},
    {"request-version-digits", 0, 400},
    {"request-version-zeros", 0, 400},
    {"request-version-comma", 0, 400},
    {"request-version-1.2", 0, 505},
    {"request-version-2.0", 0, 505},
    {"request-version-9.9", 0, 505},
    {"request-method-small", 0, 501},
    {"request-method-unknown", 0, 501},
    {"request-method-no-token", 0, 400},
    {"request-method-nul", 0, 400},
    {"request-method-latin", 0, 400},
    {"request-http-2-preface", 0, 505},
    {"request-tls-client-hello", 0, 400},
    {"request-tls-alert", 0, 400},
    {"request-ssl-2-hello", 0, 400},
    {"request-proxy-protocol-1", 0, 400},
    {"request-proxy-protocol-2", 0, 400},
    {"request-nul-bytes", 0, 400},
    {"request-many-fields", 0, 431},
    {"request-most-fields", 1, 0},
    {"request-long-target", 1, 0},
    {"request-pipelined", 2, 0},
    {"request-one-by-one", 1, 0},
    {"request-chunks-one-by-one", 2, 0},
    {"request-behind-close", 2, 0},
    {"request-behind-close-list", 2, 0},
    {"request-behind-http-1.0", 2, 0},
    {"request-behind-refused-body", 2, 0},
    {"request-behind-refused-chunks", 2, 0},
    {"request-behind-refused-broken-chunks", 0, 400},
    {"request-behind-refused-expectation", 2, 0},
    {"request-behind-refused-huge-body", 0, 400},
    {"request-surplus-crlf", 2, 0},
    {"request-surplus-bytes", 1, 400},
    {"request-half-closed-amid-a-head", 1, 400},
    {"request-half-closed-amid-a-body", 0, 400},
    {"request-half-closed", 1, 0},
    {"request-expect-other", 0, 417},
    {"request-expect-list", 0, 417},
    {"request-expect-empty", 0, 417},
    {"request-expect-no-body", 1, 0},
    {"request-expect-http-1.0", 1, 0},
    {"request-expect-and-body", 1, 0},
    {"request-upgrade", 2, 0},
    {"request-upgrade-list", 1, 0},
    {"request-upgrade-h2c", 2, 0},
    {"request-upgrade-alone", 1, 0},
    {"request-connection-names-framing", 1, 0},
    {"request-te-field", 1, 0},
    {"response-cl-te", 0, 400},
    {"response-te-cl", 0, 400},
    {"response-cl-twice", 0, 400},
    {"response-cl-twice-other", 0, 400},
    {"response-cl-plus", 0, 400},
    {"response-cl-minus", 0, 400},
    {"response-cl-list", 0, 400},
    {"response-cl-hex", 0, 400},
    {"response-cl-empty", 0, 400},
    {"response-cl-fraction", 0, 400},
    {"response-cl-2-63", 0, 400},
    {"response-cl-2-64", 0, 400},
    {"response-te-xchunked", 0, 400},
    {"response-te-gzip", 0, 400},
    {"response-te-chunked-identity", 0, 400},
    {"response-te-identity", 0, 400},
    {"response-te-quoted", 0, 400},
    {"response-te-vertical-tab", 0, 400},
    {"response-te-twice", 0, 400},
    {"response-te-http-1.0", 0, 400},
    {"response-cl-zeros", 1, 0},
    {"response-line-version-missing", 0, 400},
    {"response-line-version-2", 0, 400},
    {"response-line-version-2.0", 0, 505},
    {"response-line-version-small", 0, 400},
    {"response-line-icy", 0, 400},
    {"response-line-two-spaces", 0, 400},
    {"response-line-tab", 0, 400},
    {"response-line-two-digits", 0, 400},
    {"response-line-four-digits", 0, 400},
    {"response-line-letters", 0, 400},
    {"response-line-minus", 0, 400},
    {"response-line-000", 0, 400},
    {"response-line-600", 1, 0},
    {"response-line-999", 1, 0},
    {"response-line-reason-nul", 0, 400},
    {"response-line-reason-cr", 0, 400},
    {"response-line-reason-escape", 0, 400},
    {"response-line-space-first", 0, 400},
    {"response-line-empty-line", 0, 400},
    {"response-line-request", 0, 400},
    {"response-ssh", 0, 400},
    {"response-smtp", 0, 400},
    {"response-tls-alert", 0, 400},
    {"response-http-2-settings", 0, 400},
    {"response-html", 0, 400},
    {"response-field-bare-cr", 0, 400},
    {"response-field-bare-lf", 0, 400},
    {"response-field-nul", 0, 400},
    {"response-field-control", 0, 400},
    {"response-field-delete", 0, 400},
    {"response-field-fold", 0, 400},
    {"response-field-fold-length", 0, 400},
    {"response-field-name-empty", 0, 400},
    {"response-field-name-space", 0, 400},
    {"response-field-name-latin", 0, 400},
    {"response-field-no-colon", 0, 400},
    {"response-lf-all", 0, 400},
    {"response-lf-ends", 0, 400},
    {"response-many-fields", 0, 431},
    {"response-obs-text", 1, 0},
    {"response-spoofed-fields", 1, 0},
    {"response-chunk-size-0x", 0, 400},
    {"response-chunk-size-minus", 0, 400},
    {"response-chunk-size-plus", 0, 400},
    {"response-chunk-size-empty", 0, 400},
    {"response-chunk-size-2-64", 0, 400},
    {"response-chunk-size-space", 0, 400},
    {"response-chunk-size-lf", 0, 400},
    {"response-chunk-size-cr", 0, 400},
    {"response-chunk-end-missing", 0, 400},
    {"response-chunk-end-lf", 0, 400},
    {"response-chunk-end-two-bytes", 0, 400},
    {"response-chunk-extension-lf", 0, 400},
    {"response-chunk-extension-huge", 0, 400},
    {"response-chunk-trailer-cl", 0, 400},
    {"response-chunk-trailer-te", 0, 400},
    {"response-chunk-trailer-fold", 0, 400},
    {"response-chunk-trailer-cr", 0, 400},
    {"response-chunk-trailer-huge", 0, 431},
    {"response-closed-no-last", 0, 400},
    {"response-closed-amid-a-chunk", 0, 400},
    {"response-closed-no-empty-line", 0, 400},
    {"response-closed-amid-a-trailer", 0, 400},
    {"response-trailer-of-head", 1, 0},
    {"response-body-short", 0, 400},
    {"response-body-none", 0, 400},
    {"response-head-short", 0, 400},
    {"response-until-close", 1, 0},
    {"response-http-1.0-without-length", 1, 0},
    {"response-http-1.0-kept", 1, 0},
    {"response-http-1.0-kept-and-closed", 1, 0},
    {"response-says-close", 1, 0},
    {"response-surplus-answer", 2, 0},
    {"response-surplus-answer-later", 2, 0},
    {"response-surplus-byte", 1, 400},
    {"response-surplus-crlf", 1, 400},
    {"response-surplus-behind-chunks", 2, 0},
    {"response-surplus-interim", 2, 0},
    {"response-204-length", 2, 0},
    {"response-304-length", 2, 0},
    {"response-head-length", 2, 400},
    {"response-204-chunks", 1, 400},
    {"response-304-chunks", 1, 400},
    {"response-head-chunks", 1, 400},
    {"response-head-body-later", 2, 400},
    {"response-interims", 65, 0},
    {"response-interims-alone", 1, 0},
    {"response-interim-with-length", 2, 0},
    {"response-switch-unasked", 0, 400},
    {"response-switch-after-interim", 1, 400},
};

#define COUNT (sizeof shapes / sizeof shapes[0])

static ration_text shape_read(const char *name)
{
    static char data[MAX_SHAPE];
    char path[512];

    (void)snprintf(path, sizeof path, FOLDER "%s", name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    const ration_text got = {data, fread(data, 1, sizeof data, file)};
    assert_true(got.size > 0 && got.size < sizeof data);
    assert_int_equal(fclose(file), 0);
    return got;
}

/* Lines of a trace that say "end", and the status that it ends with. */
static int trace_messages(const trace *t, int *status)
{
    const char *line = t->text;
    const char *last = line;
    int messages = 0;

    for (const char *feed; (feed = strchr(line, '\n')) != NULL; line = feed + 1) {
        messages += strncmp(line, "end", 3) == 0 ? 1 : 0;
        last = line;
    }
    *status = t->failed ? (int)strtol(last, NULL, 10) : 0;
    return messages;
}

static void verdicts(void **state)
{
    static trace whole, cut;

    (void)state;
    for (size_t i = 0; i < COUNT; i++) {
        const ration_text file = shape_read(shapes[i].name);
        const ration_text input = rn_text_slice(file, 1, file.size);
        const bool response = (file.data[0] & 1) != 0;
        const bool answers_head = (file.data[0] & 2) != 0;
        int status;

        CHECK_ROW(shapes[i].name);
        trace_run(&whole, response, answers_head, input, (cuts){0});
        CHECK_EQ(trace_messages(&whole, &status), shapes[i].messages);
        CHECK_EQ(status, shapes[i].status);
        trace_run(&cut, response, answers_head, input, (cuts){.most = 1});
        CHECK_STR(cut.text, whole.text);
        for (uint64_t seed = 1; seed <= RANDOM_CUTS; seed++) {
            trace_run(&cut, response, answers_head, input, (cuts){.most = (size_t)1 << seed % 12, .seed = seed});
            CHECK_STR(cut.text, whole.text);
        }
    }
    CHECK_ROW(NULL);
}

/* No shape without a verdict. */
static void all_are_here(void **state)
{
    DIR *folder = opendir(FOLDER);

    (void)state;
    assert_non_null(folder);
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        size_t i = 0;

        if (strncmp(entry->d_name, "request-", 8) != 0 && strncmp(entry->d_name, "response-", 9) != 0)
            continue;
        while (i < COUNT && strcmp(shapes[i].name, entry->d_name) != 0)
            i++;
        CHECK_ROW(entry->d_name);
        CHECK(i < COUNT);
    }
    CHECK_ROW(NULL);
    (void)closedir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verdicts),
        cmocka_unit_test(all_are_here),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
