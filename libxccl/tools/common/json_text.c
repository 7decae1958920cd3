/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/json_text.h"

#include "base/json_text.h"

void json_text(FILE *f, const char *text)
{
    xc_json_text(f, text);
}

void json_field(FILE *f, const char *name, const char *text)
{
    fprintf(f, "\"%s\": ", name);
    if (text != NULL) {
        json_text(f, text);
    } else {
        fputs("null", f);
    }
}
