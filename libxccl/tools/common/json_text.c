/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/json_text.h"

void json_text(FILE *f, const char *text)
{
    fputc('"', f);
    for (const char *p = text; *p != '\0'; p++) {
        unsigned char c = (unsigned char)*p;
        if ((c == '"') || (c == '\\')) {
            fprintf(f, "\\%c", c);
        } else if (c < 0x20) {
            fprintf(f, "\\u%04x", c);
        } else {
            fputc(c, f);
        }
    }
    fputc('"', f);
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
