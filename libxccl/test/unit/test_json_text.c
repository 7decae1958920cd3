/* SPDX-License-Identifier: BSD-3-Clause */
/* Text in JSON: what is no UTF-8 does not make a file that no reader takes. */
#include <stdlib.h>
#include <string.h>

#include "base/json_text.h"
#include "check.h"

static void check_text(const char *text, const char *wanted)
{
    char  *got = NULL;
    size_t len = 0;
    FILE  *f = open_memstream(&got, &len);

    xc_json_text(f, text);
    fclose(f);
    CHECK(strcmp(got, wanted) == 0, "%s, not %s", got, wanted);
    free(got);
}

int main(void)
{
    check_text("", "\"\"");
    check_text("a\"\\\n\x01", "\"a\\\"\\\\\\u000a\\u0001\"");
    check_text("\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80",
               "\"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80\"");
    check_text("caf\xe9", "\"caf\\ufffd\"");
    check_text("\xe2\x82", "\"\\ufffd\\ufffd\""); /* it ends too soon */
    check_text("\xc0\xaf", "\"\\ufffd\\ufffd\""); /* longer than it need be */
    check_text("\xe0\x9f\xbf", "\"\\ufffd\\ufffd\\ufffd\"");
    check_text("\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\""); /* a surrogate */
    check_text("\xf4\x90\x80\x80x", "\"\\ufffd\\ufffd\\ufffd\\ufffdx\"");
    check_text("\xf4\x8f\xbf\xbf", "\"\xf4\x8f\xbf\xbf\"");
    return xt_done("text in JSON");
}
