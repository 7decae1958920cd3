/* SPDX-License-Identifier: BSD-3-Clause */
/* Communicators that the program has freed while operations are under way on them: when MPI does.
 */
#include "ops/freed.h"

#include "check.h"
#include "comms/agree.h"
#include "comms/comm.h"
#include "comms/edges.h"
#include "comms/keyvals.h"
#include "comms/wait.h"
#include "ops/op.h"
#include "ops/pending.h"
#include "transfers/rendezvous.h"

enum { FIRST = 3, LATER = FIRST, COMMS };

static struct xm_comm comms[COMMS];
static bool           busy[COMMS], spent[COMMS]; /* MPI has to end what it does there by itself */
static int            freed[COMMS], known[COMMS], unused[COMMS], let_go[COMMS], num_freed;
static bool           refuses;    /* MPI does, as where a delete callback says so */
static bool           ends;       /* MPI does */
static bool           calls_back; /* the program frees one more while MPI frees one */

struct xm_handles xm_handles;

/* What is known of a communicator that is left to MPI as it ends goes with the process. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char                                        *__lsan_default_suppressions(void)
{
    return "leak:xm_freed_free";
}

/* A handle is a pointer with some MPIs, and an integer with others. */
static MPI_Comm handle_of(int i)
{
    return (MPI_Comm)(uintptr_t)(i + 1);
}

static int index_of(const struct xm_comm *xm)
{
    return (int)(xm - comms);
}

struct xm_comm *xm_comm_known(MPI_Comm comm)
{
    struct xm_comm *xm = &comms[(uintptr_t)comm - 1];

    known[index_of(xm)]++;
    return xm;
}

bool xm_pending_on(const struct xm_comm *xm)
{
    return busy[index_of(xm)];
}

bool xm_comm_agreements_over(struct xm_comm *xm)
{
    (void)xm;
    return true;
}

bool xm_comm_end_agreements(struct xm_comm *xm)
{
    return !spent[index_of(xm)];
}

bool xm_comm_has_given_up(const struct xm_comm *xm)
{
    (void)xm;
    return false;
}

bool xm_keyvals_on(MPI_Comm comm)
{
    (void)comm;
    return false;
}

void xm_pending_await(const struct xm_op *op, const struct xm_comm *comm)
{
    (void)op;
    (void)comm;
}

void xm_ops_progress(void)
{
}

struct xm_wait xm_wait_begin(const char *what)
{
    return (struct xm_wait){.what = what};
}

enum xm_wait_verdict xm_wait_step(struct xm_wait *wait)
{
    (void)wait;
    return XM_WAIT_EXPIRED;
}

void xm_edges_let_go(struct xm_comm *xm)
{
    CHECK(freed[index_of(xm)] == 1, "its edges go before it");
    let_go[index_of(xm)]++;
}

void xm_comm_unuse(struct xm_comm *xm)
{
    unused[index_of(xm)]++;
}

void xm_rendezvous_comm_freed(void)
{
}

void xm_comm_freeing(struct xm_freeing *frame, MPI_Comm comm)
{
    (void)frame;
    (void)comm;
}

void xm_comm_freed(const struct xm_freeing *frame)
{
    (void)frame;
}

static void free_busy(int i)
{
    MPI_Comm comm = handle_of(i);

    freed[i] = known[i] = unused[i] = let_go[i] = 0;
    busy[i] = true;
    spent[i] = false;
    comms[i].comm = comm;
    CHECK(xm_freed_free(&comm, 0, true) == MPI_SUCCESS, "number %d", i);
}

long xm_mpi_forward(enum xm_function function, int profiling, const long *args)
{
    int i = (int)(uintptr_t) * (MPI_Comm *)args[0] - 1;

    (void)profiling;
    if (refuses) {
        return MPI_ERR_OTHER;
    }
    CHECK(function == XM_FN_MPI_Comm_free, "another function is called");
    CHECK(!busy[i] || ends, "communicator %d is freed while it is busy", i);
    freed[i]++;
    num_freed++;
    if (calls_back) {
        calls_back = false;
        free_busy(LATER);
    }
    return MPI_SUCCESS;
}

/* The program frees several, all of which are busy. */
static void begin(void)
{
    num_freed = 0;
    for (int i = 0; i < FIRST; i++) {
        free_busy(i);
    }
    CHECK(num_freed == 0, "%d are freed while they are busy", num_freed);
}

static void expect(int i, int times)
{
    CHECK(freed[i] == times, "number %d is freed %d times, and not %d", i, freed[i], times);
    CHECK(let_go[i] == times, "number %d: its edges go %d times", i, let_go[i]);
    CHECK((times == 0) || (known[i] == unused[i]), "number %d is found %d times, and given back %d",
          i, known[i], unused[i]);
}

/* In whatever order they end, and several at once. */
static void check_progress(void)
{
    begin();
    busy[1] = false;
    xm_freed_progress();
    expect(0, 0);
    expect(1, 1);
    expect(2, 0);
    busy[0] = busy[2] = false;
    xm_freed_progress();
    xm_freed_progress();
    for (int i = 0; i < FIRST; i++) {
        expect(i, 1);
    }
}

/* A delete callback frees one more, while some are left. */
static void check_callback(void)
{
    begin();
    busy[1] = false;
    calls_back = true;
    xm_freed_progress();
    expect(1, 1);
    CHECK(num_freed == 1, "%d are freed", num_freed);
    busy[0] = busy[2] = busy[LATER] = false;
    xm_freed_progress();
    for (int i = 0; i < COMMS; i++) {
        expect(i, 1);
    }
}

/* All that MPI has done with are freed as it ends; the others it ends itself. */
static void check_finalize(void)
{
    begin();
    busy[0] = busy[1] = busy[2] = false;
    spent[1] = true;
    calls_back = true; /* and MPI has ended that one's operations, too */
    ends = true;
    xm_freed_finalize();
    expect(LATER, 1);
    expect(0, 1);
    expect(1, 0);
    expect(2, 1);
    CHECK(unused[1] == 0, "what MPI still uses is given up");
    xm_freed_progress();
    CHECK(num_freed == 3, "something is left to be freed");
}

/* What MPI does not free is as it was. */
static void check_refused(void)
{
    MPI_Comm comm = handle_of(0);

    freed[0] = known[0] = unused[0] = let_go[0] = 0;
    refuses = true;
    CHECK(xm_freed_now(XM_FN_MPI_Comm_free, &comm, 0) == MPI_ERR_OTHER, "its code is lost");
    refuses = false;
    CHECK(let_go[0] == 0, "its edges have gone");
    CHECK(known[0] == unused[0], "found %d times, and given back %d", known[0], unused[0]);
    CHECK(xm_freed_now(XM_FN_MPI_Comm_free, &comm, 0) == MPI_SUCCESS, "freed afterwards");
    expect(0, 1);
}

int main(void)
{
    check_refused();
    check_progress();
    check_callback();
    check_finalize();
    return xt_done("communicators that are freed");
}
