/* SPDX-License-Identifier: BSD-3-Clause */
/* What every tool that writes JSON needs. */
#ifndef XCCL_TOOLS_JSON_TEXT_H
#define XCCL_TOOLS_JSON_TEXT_H

#include <stdio.h>

/* text in quotes, escaped. */
void json_text(FILE *f, const char *text);
/* "name": "text", or null for NULL. */
void json_field(FILE *f, const char *name, const char *text);

#endif
