/* SPDX-License-Identifier: BSD-3-Clause */
#include "observe/profile.h"

#include <errno.h>
#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/params.h"
#include "comms/wait.h"
#include "mpi/mpi.h"

/* Twice the rows: a search ends soon. */
enum { SLOTS = 1024 };
_Static_assert(SLOTS > 2 * XM_PROFILE_ROWS, "a free slot is found soon");

/* How long to wait for the other ranks where XCCL_TIMEOUT says nothing. */
enum { PATIENCE_S = 120 };

/* Of a process: counted under the lock, since any thread may complete an operation. */
static pthread_mutex_t    lock = PTHREAD_MUTEX_INITIALIZER;
static struct xm_profile *mine;
static int16_t            slots[SLOTS]; /* row + 1, by hash of the key */
static uint64_t           begun;

/* Of memory, of paths that served, and of paths that tables name (xm_path_name()). */
static const char *const words[] = {
    "",     "host", "mpi",  "mpi-staged",   "ccl",          "direct", "fetched", "pipelined",
    "self", "cuda", "rocm", "cuda_managed", "rocm_managed", "hpu",    "staged",  "messages"};

uint8_t xm_profile_word(const char *text)
{
    for (size_t i = 1; (text != NULL) && (i < sizeof(words) / sizeof(words[0])); i++) {
        if (strcmp(words[i], text) == 0) {
            return (uint8_t)i;
        }
    }
    return 0;
}

const char *xm_profile_text(uint8_t word)
{
    return (word < sizeof(words) / sizeof(words[0])) ? words[word] : "";
}

bool xm_profile_begin(void)
{
    mine = calloc(1, sizeof(*mine));
    if (mine == NULL) {
        xc_fail(xcclSystemError, "out of memory for XCCL_PROFILE");
        return false;
    }
    mine->ranks = 1;
    begun = xm_now_ns();
    return true;
}

bool xm_profile_on(void)
{
    return mine != NULL;
}

static bool same(const struct xm_profile_key *a, const struct xm_profile_key *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

/* A new row at the end, or -1. */
static int append(struct xm_profile *p, const struct xm_profile_key *key, const char *reason)
{
    if (p->count == XM_PROFILE_ROWS) {
        return -1;
    }
    struct xm_profile_row *row = &p->rows[p->count];
    memset(row, 0, sizeof(*row));
    row->key = *key;
    snprintf(row->reason, sizeof(row->reason), "%s", (reason != NULL) ? reason : "");
    return (int)p->count++;
}

int xm_profile_row(const struct xm_profile_key *key, const char *reason)
{
    int row = -1;

    pthread_mutex_lock(&lock);
    uint64_t first = xc_hash_bytes(XC_HASH_BEGIN, key, sizeof(*key));
    for (uint32_t at = first % SLOTS; mine != NULL; at = (at + 1) % SLOTS) {
        if (slots[at] == 0) {
            row = append(mine, key, reason);
            slots[at] = (int16_t)(row + 1);
            break;
        }
        if (same(&mine->rows[slots[at] - 1].key, key)) {
            row = slots[at] - 1;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
    return row;
}

void xm_profile_add(int row, uint64_t calls, uint64_t bytes, uint64_t ns)
{
    pthread_mutex_lock(&lock);
    if ((mine != NULL) && (row >= 0)) {
        mine->rows[row].calls += calls;
        mine->rows[row].bytes += bytes;
        mine->rows[row].ns += ns;
    } else if (mine != NULL) {
        mine->lost_calls += calls;
        mine->lost_ns += ns;
    }
    pthread_mutex_unlock(&lock);
}

void xm_profile_completed(int row, uint64_t ns)
{
    pthread_mutex_lock(&lock);
    if ((mine != NULL) && (row >= 0)) {
        mine->rows[row].completions++;
        mine->rows[row].completion_ns += ns;
    }
    pthread_mutex_unlock(&lock);
}

/* ---- of all ranks ---- */

static int find(const struct xm_profile *p, const struct xm_profile_key *key)
{
    for (uint32_t i = 0; i < p->count; i++) {
        if (same(&p->rows[i].key, key)) {
            return (int)i;
        }
    }
    return -1;
}

static void merge_row(const struct xm_profile_row *from, struct xm_profile *p)
{
    int at = find(p, &from->key);

    if (at < 0) {
        at = append(p, &from->key, from->reason);
        if (at < 0) {
            p->lost_calls += from->calls;
            p->lost_ns += from->ns;
            return;
        }
        p->rows[at].least_ns = UINT64_MAX;
    }
    struct xm_profile_row *into = &p->rows[at];
    into->calls += from->calls;
    into->bytes += from->bytes;
    into->ns += from->ns;
    into->completions += from->completions;
    into->completion_ns += from->completion_ns;
    into->ranks += from->ranks;
    into->least_ns = (from->least_ns < into->least_ns) ? from->least_ns : into->least_ns;
    into->most_ns = (from->most_ns > into->most_ns) ? from->most_ns : into->most_ns;
}

/* Add what another rank counted; rows without room are lost, and counted as such. */
static void merge_tables(const struct xm_profile *from, struct xm_profile *into)
{
    for (uint32_t i = 0; i < from->count; i++) {
        merge_row(&from->rows[i], into);
    }
    into->ranks += from->ranks;
    into->run_ns += from->run_ns;
    into->most_ns = (from->most_ns > into->most_ns) ? from->most_ns : into->most_ns;
    into->lost_calls += from->lost_calls;
    into->lost_ns += from->lost_ns;
}

/* As an operation of MPI's, on elements that are whole tables. */
static void merge_op(void *in, void *inout, int *count, MPI_Datatype *type)
{
    struct xm_profile *from = in, *into = inout;

    (void)type;
    for (int i = 0; i < *count; i++) {
        merge_tables(&from[i], &into[i]);
    }
}

static uint64_t patience_ms(void)
{
    long seconds = xc_params()->timeout;

    return 1000u * (uint64_t)((seconds > 0) ? seconds : PATIENCE_S);
}

static bool wait_for(MPI_Request *request, uint64_t most_ms)
{
    struct xm_wait wait = xm_wait_begin("for the other ranks' part of XCCL_PROFILE");
    int            over = 0;

    wait.limit = most_ms * 1000000u;
    while ((xm_pmpi.Test(request, &over, MPI_STATUS_IGNORE) == MPI_SUCCESS) && !over) {
        if (xm_wait_step(&wait) == XM_WAIT_EXPIRED) {
            return false;
        }
    }
    return over;
}

static bool are_here(void)
{
    static int  here = 1, all; /* as long as MPI uses them */
    MPI_Request request;

    return (xm_pmpi.Iallreduce(&here, &all, 1, XM_HANDLE(MPI_INT), XM_HANDLE(MPI_MIN),
                               XM_HANDLE(MPI_COMM_WORLD), &request) == MPI_SUCCESS) &&
           wait_for(&request, patience_ms() / 2);
}

/*
 * Do all ranks come to this, soon enough by their clocks? One whose launcher did not hand it
 * XCCL_PROFILE (mpirun does so on other nodes only with -x) never does. So this is non-blocking and
 * has a limit; what is left behind then is so small that MPI_Finalize waits for nobody to receive
 * it. All who learn the result draw the same conclusion: if they came within half the limit of each
 * other, nobody has given up. Else somebody may have, or the clocks of their nodes differ: who is
 * still here has learned the result just now, so they ask each other again.
 */
static bool all_come(void)
{
    static int64_t  came[2], all[2]; /* MPI may use them longer than this function lasts */
    struct timespec now;
    MPI_Request     request;

    clock_gettime(CLOCK_REALTIME, &now);
    came[1] = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    came[0] = -came[1];
    return (xm_pmpi.Iallreduce(came, all, 2, XM_HANDLE(MPI_INT64_T), XM_HANDLE(MPI_MAX),
                               XM_HANDLE(MPI_COMM_WORLD), &request) == MPI_SUCCESS) &&
           wait_for(&request, patience_ms()) &&
           (((uint64_t)(all[1] + all[0]) <= patience_ms() / 2) || are_here());
}

static bool reduce(struct xm_profile *p, struct xm_profile *all)
{
    MPI_Datatype type;
    MPI_Op       op;
    MPI_Request  request;

    if (!all_come() ||
        (xm_pmpi.Type_contiguous((int)sizeof(*p), XM_HANDLE(MPI_BYTE), &type) != MPI_SUCCESS) ||
        (xm_pmpi.Type_commit(&type) != MPI_SUCCESS) ||
        (xm_pmpi.Op_create(merge_op, 1, &op) != MPI_SUCCESS) ||
        (xm_pmpi.Ireduce(p, all, 1, type, op, 0, XM_HANDLE(MPI_COMM_WORLD), &request) !=
         MPI_SUCCESS) ||
        !wait_for(&request, patience_ms())) {
        return false;
    }
    xm_pmpi.Op_free(&op);
    xm_pmpi.Type_free(&type);
    return true;
}

static void close_table(struct xm_profile *p)
{
    p->run_ns = p->most_ns = xm_now_ns() - begun;
    for (uint32_t i = 0; i < p->count; i++) {
        struct xm_profile_row *row = &p->rows[i];
        row->ranks = 1;
        row->least_ns = row->most_ns = row->ns;
    }
}

/* Numbers have points, whatever language the program has chosen: for this thread alone. */
static void write_all(struct xm_profile *p, int world)
{
    char                    mpi[128];
    bool                    spawned = (xm_mpi_spawned() != 0);
    struct xm_profile_about about = {mpi, program_invocation_short_name, world, spawned};
    const char             *file = xc_params()->profile_file;
    locale_t                points = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    locale_t                before = (points != (locale_t)0) ? uselocale(points) : (locale_t)0;

    xm_mpi_name(mpi, sizeof(mpi));
    xm_profile_sort(p);
    xm_profile_report(p, &about);
    if ((file != NULL) && !xm_profile_write(p, &about, file)) {
        xc_warn("XCCL_PROFILE: %s", xc_last_detail());
    }
    if (points != (locale_t)0) {
        uselocale(before);
        freelocale(points);
    }
}

void xm_profile_finalize(void)
{
    int world = 1, rank = 0;

    pthread_mutex_lock(&lock);
    struct xm_profile *p = mine;
    mine = NULL; /* what other threads complete from here on is not counted */
    pthread_mutex_unlock(&lock);
    if (p == NULL) {
        return;
    }
    close_table(p);
    xm_pmpi.Comm_size(XM_HANDLE(MPI_COMM_WORLD), &world);
    xm_pmpi.Comm_rank(XM_HANDLE(MPI_COMM_WORLD), &rank);
    if (world == 1) {
        write_all(p, world);
        free(p);
        return;
    }
    struct xm_profile *all = calloc(1, sizeof(*all));
    bool               merged = (all != NULL) && reduce(p, all);
    if (rank == 0) {
        write_all(merged ? all : p, world);
    } else if (!merged) {
        xc_info("XCCL_PROFILE: this rank's calls are not in the table: not all ranks sent theirs");
    }
    if (merged) { /* else MPI may still use them */
        free(p);
        free(all);
    }
}
