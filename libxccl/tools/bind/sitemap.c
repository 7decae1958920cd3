/* SPDX-License-Identifier: BSD-3-Clause */
/* Read a site's ranks.map: one line a local rank, "rank gpu numa cores siblings nic". */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bind.h"

static bool is_auto(const char *field)
{
    return (strcmp(field, "auto") == 0) || (strcmp(field, "-") == 0);
}

/* A number, or NO_NUMBER for auto; false if it is neither. */
static bool parse_number(const char *field, int *value_p)
{
    char *end;

    if (is_auto(field)) {
        *value_p = NO_NUMBER;
        return true;
    }
    long value = strtol(field, &end, 10);
    if ((end == field) || (*end != '\0') || (value < 0) || (value >= CPUS_MAX)) {
        return false;
    }
    *value_p = (int)value;
    return true;
}

static bool parse_cores(const char *cores, const char *siblings, struct map_row *row_p)
{
    struct cpus more;

    row_p->cores_known = !is_auto(cores);
    if (!row_p->cores_known) {
        return true;
    }
    if (!cpus_parse_list(cores, &row_p->cores)) {
        return false;
    }
    if (is_auto(siblings)) {
        return true;
    }
    if (!cpus_parse_list(siblings, &more)) {
        return false;
    }
    cpus_or(&row_p->cores, &more, &row_p->cores);
    return true;
}

static bool parse_row(const char *line, int expected, struct map_row *row_p)
{
    char field[6][NAME_LEN];
    int  rank;

    if (sscanf(line, "%63s %63s %63s %63s %63s %63s", field[0], field[1], field[2], field[3],
               field[4], field[5]) != 6) {
        return false;
    }
    if (!parse_number(field[0], &rank) || (rank != expected) ||
        !parse_number(field[1], &row_p->gpu) || !parse_number(field[2], &row_p->numa) ||
        !parse_cores(field[3], field[4], row_p) || (row_p->gpu < 0) || (row_p->gpu >= MAX_GPUS)) {
        return false;
    }
    snprintf(row_p->nic, sizeof(row_p->nic), "%s", is_auto(field[5]) ? "" : field[5]);
    return true;
}

bool site_map_read(const char *file, struct site_map *map_p)
{
    FILE *f = fopen(file, "r");
    char  line[1024];
    int   number = 0;
    bool  good = true;

    memset(map_p, 0, sizeof(*map_p));
    if (f == NULL) {
        fprintf(stderr, "xccl-bind: cannot read the map '%s': %s\n", file, strerror(errno));
        return false;
    }
    errno = 0;
    while (good && (fgets(line, sizeof(line), f) != NULL)) {
        number++;
        if ((line[0] == '#') || (line[strspn(line, " \t\n")] == '\0')) {
            continue;
        }
        good = (map_p->rows < MAX_GPUS) && parse_row(line, map_p->rows, &map_p->row[map_p->rows]);
        map_p->rows++;
    }
    int why = ferror(f) ? errno : 0; /* of a folder, for example */
    fclose(f);
    if (why != 0) {
        fprintf(stderr, "xccl-bind: cannot read the map '%s': %s\n", file, strerror(why));
        return false;
    }
    if (!good) {
        fprintf(
            stderr,
            "xccl-bind: %s, line %d: expected 'rank gpu numa cores siblings nic' with ranks from 0 "
            "in order (cores as 0-7,16; auto where the machine is to be asked)\n",
            file, number);
    }
    return good;
}
