/* SPDX-License-Identifier: BSD-3-Clause */
/* Text in JSON: for files that the library and its tools write. */
#ifndef XC_BASE_JSON_TEXT_H
#define XC_BASE_JSON_TEXT_H

#include <stdio.h>

/* Bytes of the UTF-8 character at p (RFC 3629), which ends with a zero; 0: there is none. */
static inline int xc_utf8_bytes(const unsigned char *p)
{
    static const unsigned char least[] = {0x80, 0xa0, 0x90}, most[] = {0xbf, 0x9f, 0x8f};
    int                        rest = (p[0] < 0x80)                        ? 0
                                      : ((p[0] >= 0xc2) && (p[0] <= 0xdf)) ? 1
                                      : ((p[0] & 0xf0) == 0xe0)            ? 2
                                      : ((p[0] >= 0xf0) && (p[0] <= 0xf4)) ? 3
                                                                           : -1;

    if (rest > 0) { /* no shorter one says the same, no surrogate, none beyond the last */
        unsigned char low = ((p[0] == 0xe0) || (p[0] == 0xf0)) ? least[rest - 1] : least[0];
        unsigned char high = ((p[0] == 0xed) || (p[0] == 0xf4)) ? most[rest - 1] : most[0];
        rest = ((p[1] >= low) && (p[1] <= high)) ? rest : -1;
    }
    for (int i = 2; i <= rest; i++) {
        rest = ((p[i] & 0xc0) == 0x80) ? rest : -1;
    }
    return rest + 1;
}

/* text in quotes, escaped. Paths and arguments may be no UTF-8: their other bytes become U+FFFD. */
static inline void xc_json_text(FILE *f, const char *text)
{
    const unsigned char *p = (const unsigned char *)text;

    fputc('"', f);
    while (*p != '\0') {
        int bytes = xc_utf8_bytes(p);
        if (bytes == 0) {
            fputs("\\ufffd", f);
        } else if ((*p == '"') || (*p == '\\')) {
            fprintf(f, "\\%c", *p);
        } else if (*p < ' ') {
            fprintf(f, "\\u%04x", *p);
        } else {
            fwrite(p, 1, (size_t)bytes, f);
        }
        p += (bytes > 0) ? bytes : 1;
    }
    fputc('"', f);
}

#endif
