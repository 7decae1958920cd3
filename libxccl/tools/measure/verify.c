/* SPDX-License-Identifier: BSD-3-Clause */
/* Random input before, and every element of the output compared afterwards. */
#include <stdlib.h>
#include <string.h>

#include "measure/measure.h"

enum { SENDBUF_CHECK_BYTES = 1 << 20 };

static size_t chunk_elems(const struct perf_run *run)
{
    return PERF_CHUNK_BYTES / run->type->size;
}

static char *element(const struct perf_run *run, const void *buf, size_t i)
{
    return (char *)(uintptr_t)buf + i * run->type->size;
}

/* Put elements [index, index + count) of this rank's input at offset of buf. */
static bool write_input(const struct perf_run *run, const struct perf_case *pc, void *buf,
                        size_t offset, size_t count, size_t index)
{
    size_t chunk = chunk_elems(run);

    for (size_t done = 0; done < count; done += chunk) {
        size_t part = (count - done < chunk) ? count - done : chunk;
        perf_values_make(run, pc, run->rank, index + done, part, run->bounce);
        if (!perf_memory_write(run, element(run, buf, offset + done), run->bounce,
                               part * run->type->size)) {
            return false;
        }
    }
    return true;
}

static bool write_image(const struct perf_run *run, const struct perf_case *pc)
{
    size_t chunk = chunk_elems(run);

    for (size_t at = 0; at < pc->recv_elems; at += chunk) {
        size_t part = (pc->recv_elems - at < chunk) ? pc->recv_elems - at : chunk;
        pc->image(run, pc, false, at, part, run->bounce);
        if (!perf_memory_write(run, element(run, pc->recvbuf, at), run->bounce,
                               part * run->type->size)) {
            return false;
        }
    }
    return true;
}

bool perf_case_fill(const struct perf_run *run, const struct perf_case *pc)
{
    if (!write_input(run, pc, pc->sendbuf, 0, pc->send_elems, 0)) {
        return false;
    }
    if (pc->image != NULL) {
        return write_image(run, pc);
    }
    if (!perf_memory_set(run, pc->recvbuf, PERF_POISON, pc->recv_elems * run->type->size)) {
        return false;
    }
    for (int i = 0; i < pc->ninput; i++) {
        const struct perf_segment *s = &pc->input[i];
        if (!write_input(run, pc, pc->recvbuf, s->offset, s->count, s->index)) {
            return false;
        }
    }
    return true;
}

/* Compare n elements in got with expected; index of the first that differs, or n. */
static size_t compare_exact(const struct perf_run *run, const char *got, const char *expected,
                            size_t n, struct perf_mismatch *mismatch)
{
    size_t size = run->type->size, found = n;

    if (memcmp(got, expected, n * size) == 0) {
        return n;
    }
    for (size_t i = 0; i < n; i++) {
        if (memcmp(got + i * size, expected + i * size, size) != 0) {
            if (mismatch->wrong++ == 0) {
                perf_value_text(run->type, got + i * size, mismatch->got, sizeof(mismatch->got));
                perf_value_text(run->type, expected + i * size, mismatch->expected,
                                sizeof(mismatch->expected));
            }
            found = (found == n) ? i : found;
        }
    }
    return found;
}

/* Check elements [at, at + part) of buf, which lie in *segment, or in a gap if that is NULL. */
static bool check_chunk(const struct perf_run *run, const struct perf_case *pc, const void *buf,
                        const struct perf_segment *segment, size_t at, size_t part,
                        struct perf_mismatch *mismatch)
{
    bool   first = mismatch->wrong == 0;
    size_t found;

    if (!perf_memory_read(run, run->bounce, element(run, buf, at), part * run->type->size)) {
        return false;
    }
    if ((segment != NULL) && (segment->reduced > 0)) {
        found =
            perf_values_compare(run, pc, segment->reduced, segment->index + (at - segment->offset),
                                part, run->bounce, mismatch);
    } else {
        if (segment != NULL) {
            perf_values_make(run, pc, segment->rank, segment->index + (at - segment->offset), part,
                             run->scratch);
        } else {
            memset(run->scratch, PERF_POISON, part * run->type->size);
        }
        found = compare_exact(run, run->bounce, run->scratch, part, mismatch);
    }
    if (first && (found < part)) {
        mismatch->index = at + found;
        mismatch->where = (segment != NULL) ? PERF_IN_RESULT : PERF_IN_GAP;
    }
    return true;
}

static bool check_range(const struct perf_run *run, const struct perf_case *pc, const void *buf,
                        const struct perf_segment *segment, size_t from, size_t to,
                        struct perf_mismatch *mismatch)
{
    size_t chunk = chunk_elems(run);

    for (size_t at = from; at < to; at += chunk) {
        size_t part = (to - at < chunk) ? to - at : chunk;
        if (!check_chunk(run, pc, buf, segment, at, part, mismatch)) {
            return false;
        }
    }
    return true;
}

/* The send buffer is MPI's to read only. Not checked where that would double the time. */
static bool check_sendbuf(const struct perf_run *run, const struct perf_case *pc,
                          struct perf_mismatch *mismatch)
{
    const struct perf_segment all = {0, pc->send_elems, false, run->rank, 0};
    bool                      clean = mismatch->wrong == 0;

    if (pc->send_elems * run->type->size > SENDBUF_CHECK_BYTES) {
        return true;
    }
    if (!check_range(run, pc, pc->sendbuf, &all, 0, pc->send_elems, mismatch)) {
        return false;
    }
    if (clean && (mismatch->wrong > 0)) {
        mismatch->where = PERF_IN_SENDBUF;
    }
    return true;
}

static bool check_image(const struct perf_run *run, const struct perf_case *pc,
                        struct perf_mismatch *mismatch)
{
    size_t chunk = chunk_elems(run);

    for (size_t at = 0; at < pc->recv_elems; at += chunk) {
        size_t part = (pc->recv_elems - at < chunk) ? pc->recv_elems - at : chunk;
        bool   first = mismatch->wrong == 0;
        if (!perf_memory_read(run, run->bounce, element(run, pc->recvbuf, at),
                              part * run->type->size)) {
            return false;
        }
        pc->image(run, pc, true, at, part, run->scratch);
        size_t found = compare_exact(run, run->bounce, run->scratch, part, mismatch);
        if (first && (found < part)) {
            mismatch->index = at + found;
            mismatch->where = perf_halo_where(pc, at + found);
        }
    }
    return true;
}

static bool check_segments(const struct perf_run *run, const struct perf_case *pc,
                           struct perf_mismatch *mismatch)
{
    size_t at = 0;

    for (int i = 0; i < pc->nresult; i++) {
        const struct perf_segment *s = &pc->result[i];
        if (pc->rest_untouched &&
            !check_range(run, pc, pc->recvbuf, NULL, at, s->offset, mismatch)) {
            return false;
        }
        at = s->offset + s->count;
        if (!check_range(run, pc, pc->recvbuf, s, s->offset, at, mismatch)) {
            return false;
        }
    }
    return !pc->rest_untouched ||
           check_range(run, pc, pc->recvbuf, NULL, at, pc->recv_elems, mismatch);
}

static bool check_rank(const struct perf_run *run, const struct perf_case *pc,
                       struct perf_mismatch *mismatch)
{
    bool ok =
        (pc->image != NULL) ? check_image(run, pc, mismatch) : check_segments(run, pc, mismatch);

    return ok && check_sendbuf(run, pc, mismatch);
}

static void print_mismatch(const struct perf_run *run, const struct perf_case *pc,
                           const struct perf_mismatch *m)
{
    static const char *const where[] = {"", " (between blocks, not to be written)",
                                        " of the send buffer (not to be written)",
                                        " (inside the block, not to be written)",
                                        " (in a corner of the ghost cells, not to be written)"};

    fprintf(stderr,
            "%s: WRONG RESULT: %s, %zu bytes (%zu x %s%s%s%s): rank %d, element %zu%s: "
            "got %s, expected %s; %zu element(s) wrong on this rank; --seed %llu repeats it\n",
            run->tool, perf_test_name(pc->test), pc->bytes, pc->count, run->type->name,
            perf_test_reduces(pc->test) ? ", " : "",
            perf_test_reduces(pc->test) ? run->op->name : "", pc->in_place ? ", in place" : "",
            m->rank, m->index, where[m->where], m->got, m->expected, m->wrong,
            (unsigned long long)run->opt.seed);
}

/* Rank 0 prints what the ranks found, the first few of them. */
static void report_mismatches(const struct perf_run *run, const struct perf_case *pc,
                              const struct perf_mismatch *mine)
{
    enum { MOST = 8 };
    struct perf_mismatch *all = NULL;
    int                   printed = 0;

    if (run->rank == 0) {
        all = calloc((size_t)run->nranks, sizeof(*all));
    }
    int have = (run->rank != 0) || (all != NULL);
    PMPI_Bcast(&have, 1, MPI_INT, 0, run->comm);
    if (!have) {
        return;
    }
    PMPI_Gather(mine, (int)sizeof(*mine), MPI_BYTE, all, (int)sizeof(*all), MPI_BYTE, 0, run->comm);
    for (int i = 0; (run->rank == 0) && (i < run->nranks); i++) {
        if ((all[i].wrong > 0) && (printed++ < MOST)) {
            print_mismatch(run, pc, &all[i]);
        }
    }
    if (printed > MOST) {
        fprintf(stderr, "%s: and wrong on %d more rank(s)\n", run->tool, printed - MOST);
    }
    free(all);
}

bool perf_case_verify(const struct perf_run *run, const struct perf_case *pc)
{
    struct perf_mismatch mine = {0};
    int                  bad, any = 0;

    mine.rank = run->rank;
    bad = !check_rank(run, pc, &mine) || (mine.wrong > 0);
    /* PMPI: the tool's own traffic must not go through what it measures. */
    PMPI_Allreduce(&bad, &any, 1, MPI_INT, MPI_MAX, run->all);
    if (any) {
        report_mismatches(run, pc, &mine);
    }
    return !any;
}
