/* SPDX-License-Identifier: BSD-3-Clause */
/* What Slurm's controller knows of this step, and no variable tells. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bind.h"

/* Seconds that a busy controller has for its answer: the program waits for it. */
#define PATIENCE "5"

static bool is_number(const char *text)
{
    return (text != NULL) && (*text != '\0') && (strspn(text, "0123456789") == strlen(text));
}

bool slurm_step_network(char *text, size_t length)
{
    const char *job = getenv("SLURM_JOB_ID"), *step = getenv("SLURM_STEP_ID");
    char        command[128], line[4096];
    const char *start = NULL;

    if (!is_number(job) || !is_number(step)) {
        return false;
    }
    snprintf(command, sizeof(command),
             "timeout " PATIENCE " scontrol --oneliner show step %.20s.%.20s 2>/dev/null", job,
             step);
    FILE *answer = popen(command, "r");
    if (answer == NULL) {
        return false;
    }
    if (fgets(line, sizeof(line), answer) != NULL) {
        start = strstr(line, " Network=");
    }
    if (start != NULL) {
        start += strlen(" Network=");
        snprintf(text, length, "%.*s", (int)strcspn(start, " \n"), start);
    }
    pclose(answer);
    return start != NULL;
}
