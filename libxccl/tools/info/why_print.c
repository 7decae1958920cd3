/* SPDX-License-Identifier: BSD-3-Clause */
/* The same as text and as JSON; the shape of that is in xccl-info-why.schema.json. */
#include <stdio.h>
#include <string.h>

#include "common/json_text.h"
#include "info_build.h"
#include "why.h"

static const char *verdict_text(const struct why_row *row)
{
    static const char *const texts[] = {
        [XM_ROW_MATCHES] = "matches too, behind the row that decides",
        [XM_ROW_OTHER_COLL] = "for another collective",
        [XM_ROW_OTHER_MEM] = "for other memory",
        [XM_ROW_OTHER_BYTES] = "for other sizes",
        [XM_ROW_OTHER_RANKS] = "for other numbers of ranks",
        [XM_ROW_NO_PATH] = "matches, but its path is not available",
    };

    return row->chosen ? "decides" : texts[row->verdict];
}

/* What a table says of itself: "four NVIDIA H200 of one node; measured 2026-11-22". */
static void print_origin(const struct xm_head *head)
{
    if (head->measured[0] == '\0') {
        return;
    }
    printf("      %s; ", (head->title[0] != '\0') ? head->title : "without a title");
    if (strcmp(head->measured, "nobody") == 0) {
        printf("nobody has measured it\n");
    } else {
        printf("measured %s, %s\n", head->measured, head->where);
    }
}

static void print_table(const struct why_table *t)
{
    printf("  %s\n", t->table->source);
    print_origin(&t->table->head);
    if (!t->asked) {
        printf("      not asked, since its condition does not hold: %s\n", t->not_asked);
        return;
    }
    for (size_t i = 0; i < t->table->count; i++) {
        const struct why_row *row = &t->rows[i];
        printf("    %s %-36s %s\n", row->chosen ? ">" : " ", row->text, verdict_text(row));
    }
}

static void print_path(const char *name, const struct why_path *path)
{
    printf("  %-7s %s: %s\n", name, path->available ? "available" : "not available", path->text);
}

static void print_decision(const struct why *why, const char *fault)
{
    if (fault[0] != '\0') {
        printf("Path: none, MPI_Init fails: %s\n", fault);
    } else {
        printf("Path: %s (%s)\n", why->path, why->reason);
    }
}

/* Those that are not asked, with their conditions, would bury the others. */
static void print_tables(const struct why *why, bool all)
{
    size_t left = 0;

    printf("\nTables, in the order in which they are asked\n");
    for (size_t i = 0; i < why->count; i++) {
        if (all || why->tables[i].asked) {
            print_table(&why->tables[i]);
        } else {
            left++;
        }
    }
    if (left > 0) {
        printf("\n%zu table%s not asked; --long says why\n", left, (left == 1) ? " is" : "s are");
    }
}

void why_print(const struct why *why, const char *fault, bool all)
{
    const struct xm_setting *s = &why->setting;

    printf("%s of %llu bytes in %s memory on %d rank%s, %d node%s\n", xm_coll_name(why->facts.coll),
           (unsigned long long)why->facts.bytes, xm_mem_name(why->facts.mem), s->nranks,
           (s->nranks == 1) ? "" : "s", s->nodes, (s->nodes == 1) ? "" : "s");
    print_decision(why, fault);
    printf("\n  device: %s; library: %s",
           (s->gpu[0] != '\0') ? s->gpu : "not known (--gpu MODEL names one)",
           (s->ccl[0] != '\0') ? s->ccl : "none");
    if (s->nodes > 1) { /* on one node nothing goes over it */
        printf("; network of the library: %s", s->fabric ? "fabric" : "tcp");
    }
    printf("\n");
    printf("\nPaths\n");
    print_path("self", &why->self);
    for (int p = XM_NUM_PATHS - 1; p >= 0; p--) {
        print_path(xm_path_name((enum xm_path_id)p), &why->paths[p]);
    }
    print_tables(why, all);
}

static void put_path(const char *name, const struct why_path *path)
{
    printf("\n    \"%s\": {\"available\": %s, ", name, path->available ? "true" : "false");
    json_field(stdout, "why", path->text);
    printf("}");
}

static void put_paths(const struct why *why)
{
    printf("  \"paths\": {");
    for (int p = 0; p < XM_NUM_PATHS; p++) {
        put_path(xm_path_name((enum xm_path_id)p), &why->paths[p]);
        printf(",");
    }
    put_path("self", &why->self);
    printf("\n  },\n");
}

static void put_table(const struct why_table *t)
{
    printf("\n    {");
    json_field(stdout, "source", t->table->source);
    printf(", ");
    json_field(stdout, "title", (t->table->head.title[0] != '\0') ? t->table->head.title : NULL);
    printf(", ");
    json_field(stdout, "measured",
               (t->table->head.measured[0] != '\0') ? t->table->head.measured : NULL);
    printf(", \"asked\": %s, ", t->asked ? "true" : "false");
    json_field(stdout, "why_not", t->asked ? NULL : t->not_asked);
    printf(", \"rows\": [");
    for (size_t i = 0; t->asked && (i < t->table->count); i++) {
        printf("%s\n      {", (i > 0) ? "," : "");
        json_field(stdout, "row", t->rows[i].text);
        printf(", \"line\": %d, \"decides\": %s, ", t->table->rows[i].line,
               t->rows[i].chosen ? "true" : "false");
        json_field(stdout, "verdict", verdict_text(&t->rows[i]));
        printf("}");
    }
    printf("]}");
}

void why_print_json(const struct why *why)
{
    const struct xm_setting *s = &why->setting;

    printf("{\n  \"schema\": \"xccl-info-why-1\",\n  ");
    json_field(stdout, "version", XCCL_INFO_VERSION);
    printf(",\n  \"call\": {");
    json_field(stdout, "collective", xm_coll_name(why->facts.coll));
    printf(", \"bytes\": %llu, ", (unsigned long long)why->facts.bytes);
    json_field(stdout, "memory", xm_mem_name(why->facts.mem));
    printf(", \"ranks\": %d, \"nodes\": %d},\n  \"machine\": {", s->nranks, s->nodes);
    json_field(stdout, "gpu", (s->gpu[0] != '\0') ? s->gpu : NULL);
    printf(", ");
    json_field(stdout, "ccl", (s->ccl[0] != '\0') ? s->ccl : NULL);
    printf(", \"ccl_version\": %d, \"network\": \"%s\", \"gpu_aware\": %s},\n", s->ccl_version,
           s->fabric ? "fabric" : "tcp", s->gpu_aware ? "true" : "false");
    put_paths(why);
    printf("  \"tables\": [");
    for (size_t i = 0; i < why->count; i++) {
        fputs((i > 0) ? "," : "", stdout);
        put_table(&why->tables[i]);
    }
    printf("\n  ],\n  ");
    json_field(stdout, "path", why->path);
    printf(", ");
    json_field(stdout, "reason", why->reason);
    printf("\n}\n");
}
