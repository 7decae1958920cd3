/* SPDX-License-Identifier: BSD-3-Clause */
#include "tune/rows.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/json_text.h"

const char *tune_size_text(uint64_t bytes, char *buf, size_t len)
{
    static const char units[] = {'k', 'm', 'g'};
    int               unit = -1;

    if (bytes == XM_INF) {
        snprintf(buf, len, "inf");
        return buf;
    }
    while ((bytes > 0) && (bytes % 1024 == 0) && (unit < 2)) {
        bytes /= 1024;
        unit++;
    }
    if (unit < 0) {
        snprintf(buf, len, "%" PRIu64, bytes);
    } else {
        snprintf(buf, len, "%" PRIu64 "%c", bytes, units[unit]);
    }
    return buf;
}

/* A border lies where the first size was measured at which the other path serves. */
static bool write_series(FILE *f, const struct tune_series *s, const char *memory)
{
    const struct tune_points *points = &s->points;
    enum xm_path_id          *choices = calloc(points->count + 1, sizeof(*choices));
    char                      low[32], high[32];
    size_t                    begin = 0;

    if (choices == NULL) {
        return false;
    }
    tune_choose(points, choices);
    for (size_t i = 1; i <= points->count; i++) {
        if ((i < points->count) && (choices[i] == choices[begin])) {
            continue;
        }
        uint64_t from = (begin == 0) ? 0 : points->points[begin].bytes;
        uint64_t to = (i == points->count) ? XM_INF : points->points[i].bytes;
        fprintf(f, "%s:%s-%s:%s:%d:%s\n", xm_coll_name(s->coll),
                tune_size_text(from, low, sizeof(low)), tune_size_text(to, high, sizeof(high)),
                memory, s->shape.nodes * s->shape.per_node, xm_path_name(choices[begin]));
        begin = i;
    }
    free(choices);
    return true;
}

/* Settings are lines: what the machine calls itself stays in one. */
static void put_setting(FILE *f, const char *name, const char *text)
{
    fprintf(f, "%s = ", name);
    for (const char *p = (text[0] != '\0') ? text : "unknown"; *p != '\0'; p++) {
        fputc(((unsigned char)*p < ' ') ? ' ' : *p, f);
    }
    fputc('\n', f);
}

static void write_head(FILE *f, int nodes, const struct tune_origin *o)
{
    fprintf(
        f,
        "# Made by xccl-tune. Below the least size that was measured, and above the largest, the nearest\n"
        "# one's path serves. Borders lie at the first size that was measured with the new path.\n");
    if (o->partial) {
        fprintf(
            f,
            "# The run has not come to its end: other collectives and communicators have no rows here.\n");
    }
    fprintf(f, "title = %d node%s%s%s\n", nodes, (nodes == 1) ? "" : "s",
            o->partial ? ", a part" : "",
            o->simulated ? ", on the simulated accelerator, whose times mean nothing" : "");
    put_setting(f, "measured", o->simulated ? "nobody" : o->measured);
    put_setting(f, "where", o->where);
    put_setting(f, "gpu_model", o->gpu);
    put_setting(f, "driver", o->driver);
    put_setting(f, "library", o->library);
    put_setting(f, "mpi_library", o->mpi_library);
    put_setting(f, "raw", o->raw);
    if (strcmp(o->gpu, "unknown") != 0) {
        put_setting(f, "gpu", o->gpu);
    }
    fprintf(f, "nodes = %d\n", nodes);
}

bool tune_has_rows(const struct tune_series *series, int nodes)
{
    return series->whole && (series->shape.nodes == nodes) && (series->points.count > 0);
}

bool tune_table_write(FILE *f, const struct tune_store *store, int nodes,
                      const struct tune_origin *origin)
{
    bool any = false;

    write_head(f, nodes, origin);
    for (int coll = 0; coll < XM_NUM_COLLS; coll++) {
        for (size_t i = 0; i < store->count; i++) {
            const struct tune_series *s = &store->series[i];
            if (((int)s->coll != coll) || !tune_has_rows(s, nodes)) {
                continue;
            }
            if (!write_series(f, s, origin->memory)) {
                return false;
            }
            any = true;
        }
    }
    return any;
}

static void put_samples(FILE *f, const struct tune_samples *s, enum xm_path_id path, bool first)
{
    fprintf(f, "%s\n        \"%s\": ", first ? "" : ",", xm_path_name(path));
    if (s->missing) {
        fprintf(f, "null");
        return;
    }
    fprintf(f, "{\"median\": %.3f, \"noise\": %.3f, \"samples\": [", tune_median(s), tune_noise(s));
    for (int i = 0; i < s->count; i++) {
        fprintf(f, "%s%.3f", (i > 0) ? ", " : "", s->us[i]);
    }
    fprintf(f, "]}");
}

static void put_series(FILE *f, const struct tune_series *s, bool first)
{
    enum xm_path_id *choices = calloc(s->points.count + 1, sizeof(*choices));

    fprintf(f,
            "%s\n    {\"collective\": \"%s\", \"nodes\": %d, \"ranks_per_node\": %d, \"points\": [",
            first ? "" : ",", xm_coll_name(s->coll), s->shape.nodes, s->shape.per_node);
    if (choices != NULL) {
        tune_choose(&s->points, choices);
    }
    for (size_t i = 0; (choices != NULL) && (i < s->points.count); i++) {
        const struct tune_point *p = &s->points.points[i];
        bool                     begun = false;
        fprintf(f, "%s\n      {\"bytes\": %" PRIu64 ", \"chosen\": \"%s\", \"paths\": {",
                (i > 0) ? "," : "", p->bytes, xm_path_name(choices[i]));
        for (int path = 0; path < XM_NUM_PATHS; path++) {
            if (p->paths[path].missing || (p->paths[path].count > 0)) {
                put_samples(f, &p->paths[path], (enum xm_path_id)path, !begun);
                begun = true;
            }
        }
        fprintf(f, "}}");
    }
    fprintf(f, "\n    ]}");
    free(choices);
}

void tune_raw_write(FILE *f, const struct tune_store *store, const struct tune_origin *o,
                    const char *version)
{
    const char *const names[] = {"version", "date",    "where",       "gpu_model",
                                 "driver",  "library", "mpi_library", "memory"};
    const char *const values[] = {version,   o->measured, o->where,       o->gpu,
                                  o->driver, o->library,  o->mpi_library, o->memory};

    fprintf(f, "{\n  \"schema\": \"xccl-tune-1\",\n  \"simulated\": %s,\n",
            o->simulated ? "true" : "false");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        fprintf(f, "  ");
        json_field(f, names[i], values[i]);
        fprintf(f, ",\n");
    }
    fprintf(f, "  \"unit\": \"us\",\n  \"series\": [");
    for (size_t i = 0; i < store->count; i++) {
        put_series(f, &store->series[i], i == 0);
    }
    fprintf(f, "\n  ]\n}\n");
}
