/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * XCCL_SIM_FAIL: rules `where[:what][@ranks][=n]` joined by commas.
 *
 *   where   load, symbol, init, op, async, hang, kill, alloc, copy, ipc, graph, pin,
 *           call, crash
 *   what    symbol: its name; init: hang or alone; op, async, hang, kill: a collective or any
 *   ranks   r or r-s, joined by +; all when left out
 *   n       the n-th occurrence on that rank; every one when left out
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"

#define MAX_RULES 32

struct rule {
    enum xs_fault kind;
    char          what[64]; /* "": any */
    unsigned long nth;      /* 0: every one */
    unsigned long seen;     /* atomic */
};

/* Only those of this rank. */
static struct rule rules[MAX_RULES];
static size_t      rule_count;
static char        message[640];

struct where {
    const char   *name;
    enum xs_fault kind;
    bool          needs_what;
};

static const struct where wheres[] = {
    {"load", XS_FAULT_LOAD, false},   {"symbol", XS_FAULT_SYMBOL, true},
    {"init", XS_FAULT_INIT, false},   {"op", XS_FAULT_OP, true},
    {"async", XS_FAULT_ASYNC, true},  {"hang", XS_FAULT_HANG, true},
    {"kill", XS_FAULT_KILL, true},    {"alloc", XS_FAULT_ALLOC, false},
    {"ipc", XS_FAULT_IPC, false},     {"copy", XS_FAULT_COPY, false},
    {"graph", XS_FAULT_GRAPH, false}, {"pin", XS_FAULT_PIN, false},
    {"call", XS_FAULT_CALL, false},   {"crash", XS_FAULT_CRASH, false},
};

static const char *const operations[] = {"allreduce", "bcast",    "reduce", "reduce_scatter",
                                         "allgather", "alltoall", "gather", "scatter",
                                         "send",      "recv",     "any"};

static const char *wrong(size_t number, const char *token, const char *why)
{
    snprintf(message, sizeof(message),
             "XCCL_SIM_FAIL: rule %zu, \"%.200s\": %s; a rule is where[:what][@ranks][=n]", number,
             token, why);
    return message;
}

static const char *unknown_where(void)
{
    static char  text[256] = "it begins with ";
    const size_t count = sizeof(wheres) / sizeof(wheres[0]);

    for (size_t i = 0; i < count; i++) {
        const char *between = (i == 0) ? "" : (i + 1 < count) ? ", " : " or ";
        size_t      length = strlen(text);

        snprintf(text + length, sizeof(text) - length, "%s%s", between, wheres[i].name);
    }
    return text;
}

static bool parse_unsigned(const char **p, unsigned long *value_p)
{
    char *end;

    if (!isdigit((unsigned char)**p)) {
        return false;
    }
    errno = 0;
    *value_p = strtoul(*p, &end, 10);
    *p = end;
    return errno == 0;
}

/* "1", "0-3", "0+2-5": true when all of it is good; *mine_p when rank is among them. */
static bool parse_ranks(const char *text, unsigned long rank, bool *mine_p)
{
    *mine_p = false;
    for (;;) {
        unsigned long first;
        unsigned long last;

        if (!parse_unsigned(&text, &first)) {
            return false;
        }
        last = first;
        if (*text == '-') {
            text++;
            if (!parse_unsigned(&text, &last) || (last < first)) {
                return false;
            }
        }
        *mine_p = *mine_p || ((rank >= first) && (rank <= last));
        if (*text == '\0') {
            return true;
        }
        if (*text++ != '+') {
            return false;
        }
    }
}

static const char *check_what(struct rule *rule, const struct where *where, const char *what)
{
    if (where->kind == XS_FAULT_INIT) {
        if (what == NULL) {
            return NULL;
        }
        if (strcmp(what, "hang") == 0) {
            rule->kind = XS_FAULT_INIT_HANG;
        } else if (strcmp(what, "alone") == 0) {
            rule->kind = XS_FAULT_INIT_LONE;
        } else {
            return "init knows hang and alone";
        }
        return NULL;
    }
    if (!where->needs_what) {
        return (what == NULL) ? NULL : "nothing may follow this word but @ranks and =n";
    }
    if ((what == NULL) || (what[0] == '\0') || (strlen(what) >= sizeof(rule->what))) {
        return "this word needs :what";
    }
    if (where->kind == XS_FAULT_SYMBOL) {
        strcpy(rule->what, what);
        return NULL;
    }
    for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
        if (strcmp(what, operations[i]) == 0) {
            strcpy(rule->what, (strcmp(what, "any") == 0) ? "" : what);
            return NULL;
        }
    }
    return "operations are allreduce, bcast, reduce, reduce_scatter, allgather, alltoall, gather, "
           "scatter, send, recv and any";
}

/* Take token apart in place; a reason when it is wrong. */
static const char *parse_rule(char *token, int rank, struct rule *rule, bool *mine_p)
{
    char               *count = strchr(token, '=');
    const struct where *where = NULL;

    memset(rule, 0, sizeof(*rule));
    *mine_p = true;
    if (count != NULL) {
        const char *p = count + 1;

        *count = '\0';
        if (!parse_unsigned(&p, &rule->nth) || (*p != '\0') || (rule->nth == 0)) {
            return "=n counts from 1";
        }
    }
    char *ranks = strchr(token, '@');
    if (ranks != NULL) {
        *ranks = '\0';
        if (!parse_ranks(ranks + 1, (unsigned long)rank, mine_p)) {
            return "@ranks is like 1 or 0-3 or 0+2";
        }
    }
    char *what = strchr(token, ':');
    if (what != NULL) {
        *what++ = '\0';
    }
    for (size_t i = 0; i < sizeof(wheres) / sizeof(wheres[0]); i++) {
        if (strcmp(token, wheres[i].name) == 0) {
            where = &wheres[i];
        }
    }
    if (where == NULL) {
        return unknown_where();
    }
    rule->kind = where->kind;
    return check_what(rule, where, what);
}

const char *xs_fault_setup(const char *text, int rank)
{
    size_t number = 0;

    while ((text != NULL) && (rule_count < MAX_RULES)) {
        size_t      length = strcspn(text, ",");
        char        token[256] = "";
        char        shown[256];
        bool        mine;
        const char *why;

        snprintf(token, sizeof(token), "%.*s", (int)length, text);
        strcpy(shown, token);
        why = parse_rule(token, rank, &rules[rule_count], &mine);
        number++;
        if (why != NULL) {
            return wrong(number, shown, why);
        }
        rule_count += mine ? 1 : 0;
        text = (text[length] == ',') ? text + length + 1 : NULL;
    }
    return (text == NULL) ? NULL : wrong(MAX_RULES + 1, text, "there are at most 32 rules");
}

bool xs_fault(enum xs_fault kind, const char *what)
{
    bool hit = false;

    if (xs_config_error() != NULL) {
        return false;
    }
    for (size_t i = 0; i < rule_count; i++) {
        struct rule *rule = &rules[i];

        if ((rule->kind != kind) ||
            ((what != NULL) && (rule->what[0] != '\0') && (strcmp(rule->what, what) != 0))) {
            continue;
        }
        unsigned long seen = __atomic_add_fetch(&rule->seen, 1, __ATOMIC_RELAXED);
        hit = hit || (rule->nth == 0) || (rule->nth == seen);
    }
    if (hit) {
        xs_log(XS_LOG_INFO, "XCCL_SIM_FAIL strikes%s%s", (what == NULL) ? "" : " in ",
               (what == NULL) ? "" : what);
    }
    return hit;
}

enum xs_error xs_crashed(void)
{
    static bool crashed; /* atomic; for good */

    if ((rule_count > 0) && !__atomic_load_n(&crashed, __ATOMIC_RELAXED) &&
        xs_fault(XS_FAULT_CRASH, NULL)) {
        if (xs_config()->flavour == XS_ROCM) {
            fprintf(stderr, "Memory access fault by GPU node-1: page not present\n");
            abort();
        }
        __atomic_store_n(&crashed, true, __ATOMIC_RELAXED);
    }
    return __atomic_load_n(&crashed, __ATOMIC_RELAXED) ? XS_ILLEGAL_ADDRESS : XS_OK;
}

const char *xs_fault_symbol(size_t i)
{
    for (size_t j = 0; j < rule_count; j++) {
        if ((rules[j].kind == XS_FAULT_SYMBOL) && (i-- == 0)) {
            return rules[j].what;
        }
    }
    return NULL;
}
