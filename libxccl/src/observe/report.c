/* SPDX-License-Identifier: BSD-3-Clause */
/* The profile for people: a table for each size of communicator, to where messages go. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "decide/decide.h"
#include "mpi/mpi.h"
#include "observe/profile.h"

/* Collectives on many ranks first, then what no communicator's size says anything of. */
enum section { COLLECTIVES, MESSAGES, WAITS };

static enum section section_of(const struct xm_profile_row *row)
{
    enum xm_function f = (enum xm_function)row->key.function;

    if (row->key.ranks > 0) {
        return COLLECTIVES;
    }
    return xm_is_transfer(f) || xm_is_stream_function(f) ? MESSAGES : WAITS;
}

static int compare(const void *a, const void *b)
{
    const struct xm_profile_row *x = a, *y = b;

    if (section_of(x) != section_of(y)) {
        return (section_of(x) > section_of(y)) ? 1 : -1;
    }
    if (x->key.ranks != y->key.ranks) {
        return (x->key.ranks < y->key.ranks) ? 1 : -1;
    }
    if (x->ns != y->ns) {
        return (x->ns < y->ns) ? 1 : -1;
    }
    return memcmp(&x->key, &y->key, sizeof(x->key));
}

void xm_profile_sort(struct xm_profile *p)
{
    qsort(p->rows, p->count, sizeof(p->rows[0]), compare);
}

static double seconds(uint64_t ns)
{
    return (double)ns / 1e9;
}

static double percent(uint64_t ns, const struct xm_profile *p)
{
    return (p->run_ns == 0) ? 0.0 : 100.0 * (double)ns / (double)p->run_ns;
}

static void put_head(const struct xm_profile *p, const struct xm_profile_about *about)
{
    uint64_t in_calls = p->lost_ns;

    for (uint32_t i = 0; i < p->count; i++) {
        in_calls += p->rows[i].ns;
    }
    xc_log_line("xccl profile: %s, %d rank%s, xccl %d.%d.%d, %s", about->program, about->world,
                (about->world == 1) ? "" : "s", XCCL_MAJOR, XCCL_MINOR, XCCL_PATCH, about->mpi);
    xc_log_line("%.3f s from MPI_Init to MPI_Finalize (average of the ranks, at most %.3f s), "
                "%.1f %% of it in the calls below",
                seconds(p->run_ns) / p->ranks, seconds(p->most_ns), percent(in_calls, p));
    if ((int)p->ranks < about->world) {
        xc_log_line("THESE ARE THE CALLS OF RANK 0 ALONE: not all ranks came to MPI_Finalize "
                    "with it. Is XCCL_PROFILE set on all of them (mpirun hands it to other nodes "
                    "with -x XCCL_PROFILE), and do they end within two minutes of each other?");
    }
}

static void put_columns(enum section section, int ranks)
{
    static const char *const titles[] = {
        "", "Messages, files, windows, packing (bytes of the buffer)", "Waiting and testing"};

    xc_log_line("%s", "");
    if (section == COLLECTIVES) {
        xc_log_line("Collectives on %d rank%s", ranks, (ranks == 1) ? "" : "s");
    } else {
        xc_log_line("%s", titles[section]);
    }
    xc_log_line("  %-28s %-18s %-12s %-10s %10s %11s %10s %10s %7s  %s", "call", "bytes", "memory",
                "path", "calls", "MiB", "us each", "us to end", "share",
                "otherwise, and why this path");
}

/* "ccl; built-in table *:*:*:2-inf:ccl" */
static void why_text(const struct xm_profile_row *row, char *buf, size_t len)
{
    const char *other = xm_profile_text(row->key.other);

    snprintf(buf, len, "%s%s%s%s", other, row->key.unsure ? "?" : "",
             ((other[0] != '\0') && (row->reason[0] != '\0')) ? "; " : "", row->reason);
}

static void put_row(const struct xm_profile_row *row, const struct xm_profile *p)
{
    char   sizes[64] = "", why[XM_PROFILE_REASON + 32], end[32] = "";
    double calls = (row->calls > 0) ? (double)row->calls : 1.0;

    if (row->key.memory != 0) {
        xm_size_class_text(row->key.size_class, sizes, sizeof(sizes));
    }
    if (row->completions > 0) {
        snprintf(end, sizeof(end), "%.1f",
                 (double)row->completion_ns / 1e3 / (double)row->completions);
    }
    why_text(row, why, sizeof(why));
    xc_log_line("  %-28s %-18s %-12s %-10s %10llu %11.3f %10.1f %10s %6.2f%%  %s",
                xm_mpi_function_name((enum xm_function)row->key.function), sizes,
                xm_profile_text(row->key.memory), xm_profile_text(row->key.path),
                (unsigned long long)row->calls, (double)row->bytes / 1048576.0,
                (double)row->ns / 1e3 / calls, end, percent(row->ns, p), why);
}

static void put_foot(const struct xm_profile *p)
{
    bool unsure = false, other = false;

    for (uint32_t i = 0; i < p->count; i++) {
        unsure = unsure || p->rows[i].key.unsure;
        other = other || (p->rows[i].key.other != 0);
    }
    if (p->lost_calls > 0) {
        xc_log_line("%llu calls (%.3f s) of further kinds: the table has room for %d rows",
                    (unsigned long long)p->lost_calls, seconds(p->lost_ns), XM_PROFILE_ROWS);
    }
    if (other) {
        xc_log_line("otherwise: the path that the tables choose if not this one%s; XCCL_TUNE "
                    "changes it, and xccl-perf says which is faster",
                    unsure ? " (?: whether it can carry the call was not looked at)" : "");
    }
}

void xm_profile_report(const struct xm_profile *p, const struct xm_profile_about *about)
{
    enum section section = WAITS;
    int          ranks = -1;

    put_head(p, about);
    for (uint32_t i = 0; i < p->count; i++) {
        const struct xm_profile_row *row = &p->rows[i];
        if ((i == 0) || (section_of(row) != section) || (row->key.ranks != ranks)) {
            section = section_of(row);
            ranks = row->key.ranks;
            put_columns(section, ranks);
        }
        put_row(row, p);
    }
    if (p->count > 0) {
        xc_log_line("%s", "");
    }
    put_foot(p);
}
