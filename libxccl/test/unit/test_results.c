/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which persistent requests are inactive after a call that failed: those that MPI has completed
 * with an error, so that the program can start them again.
 */
#include "ops/results.h"

#include "check.h"
#include "ops/entry.h"
#include "ops/op.h"
#include "ops/persistent.h"
#include "transfers/transfer.h"

enum { REQUESTS = 2 };

struct xm_handles xm_handles;
struct xm_pmpi    xm_pmpi;

static struct xm_transfer transfers[REQUESTS];
static struct xm_entry    entries[REQUESTS];
static struct xm_entry   *list[REQUESTS] = {&entries[0], &entries[1]};
static struct xm_fix      fixes[REQUESTS];
static bool               fixed[REQUESTS];
static MPI_Status         statuses[REQUESTS];
static struct xm_array array = {.count = REQUESTS, .entries = list, .fixed = fixed, .fixes = fixes};

static int error_class(int code, int *class)
{
    *class = code;
    return MPI_SUCCESS;
}

bool xm_mpi_is_openmpi(void)
{
    return true;
}

int xm_array_find_op(const struct xm_array *a, const struct xm_op *op)
{
    (void)a, (void)op;
    return -1;
}

MPI_Comm xm_op_comm_to_raise_on(const struct xm_op *op)
{
    return op->call.comm;
}

MPI_Comm xm_persistent_comm_of(MPI_Comm comm)
{
    return comm;
}

struct xm_op *xm_requests_failed(void)
{
    return NULL;
}

void xm_request_told(struct xm_op *op)
{
    (void)op;
}

/* Both are active, and their messages have come. */
static void begin(void)
{
    for (int i = 0; i < REQUESTS; i++) {
        entries[i].transfer = &transfers[i];
        transfers[i].form = 'P';
        transfers[i].started = true;
        transfers[i].rendezvous.fetch = XM_FETCH_OVER;
        fixes[i] = (struct xm_fix){.bytes = XM_WHOLE, .code = MPI_SUCCESS};
        fixed[i] = true;
        statuses[i].MPI_ERROR = MPI_SUCCESS;
    }
}

static void expect(bool first, bool second, const char *what)
{
    const bool active[] = {first, second};

    for (int i = 0; i < REQUESTS; i++) {
        CHECK(transfers[i].started == active[i], "%s: number %d is %s", what, i,
              active[i] ? "not active" : "still active");
        CHECK((transfers[i].rendezvous.fetch == XM_FETCH_OVER) == active[i],
              "%s: number %d and what it has fetched", what, i);
    }
}

static void fail(enum xm_function function, const long *args, int code)
{
    CHECK(xm_results_fix(function, &array, args, code) == code, "another code");
}

/* Calls that complete one. */
static void check_one(void)
{
    int        index = 1, flag = 0;
    const long wait[] = {0, (long)statuses}, test[] = {0, (long)&flag, (long)statuses};
    const long any[] = {REQUESTS, 0, (long)&index, (long)&flag, (long)statuses};

    begin();
    fail(XM_FN_MPI_Wait, wait, MPI_ERR_TRUNCATE);
    expect(false, true, "MPI_Wait");
    begin();
    fail(XM_FN_MPI_Test, test, MPI_ERR_TRUNCATE);
    expect(false, true, "MPI_Test");
    begin();
    fail(XM_FN_MPI_Testany, any, MPI_ERR_TRUNCATE);
    expect(true, false, "MPI_Testany");
    begin();
    index = MPI_UNDEFINED;
    fail(XM_FN_MPI_Testany, any, MPI_ERR_ARG);
    expect(true, true, "MPI_Testany of none");
    begin();
    fixed[0] = false; /* MPI has not looked at it */
    fail(XM_FN_MPI_Wait, wait, MPI_ERR_ARG);
    expect(true, true, "MPI_Wait of what is not over");
}

/* Those that are pending are not over; of others each status says how they ended. */
static void check_several(void)
{
    int        flag = 0, indices[] = {1}, count = 1;
    const long all[] = {REQUESTS, 0, (long)statuses};
    const long tested[] = {REQUESTS, 0, (long)&flag, (long)statuses};
    const long some[] = {REQUESTS, 0, (long)&count, (long)indices, (long)statuses};
    const long ignored[] = {REQUESTS, 0, (long)MPI_STATUSES_IGNORE};

    begin();
    fail(XM_FN_MPI_Waitall, all, MPI_ERR_ARG);
    expect(true, true, "MPI_Waitall that MPI refuses");
    begin();
    statuses[0].MPI_ERROR = MPI_ERR_PENDING;
    statuses[1].MPI_ERROR = MPI_ERR_TRUNCATE;
    fail(XM_FN_MPI_Waitall, all, MPI_ERR_IN_STATUS);
    expect(true, false, "MPI_Waitall");
    begin();
    statuses[0].MPI_ERROR = MPI_ERR_TRUNCATE;
    statuses[1].MPI_ERROR = MPI_ERR_PENDING;
    fail(XM_FN_MPI_Testall, tested, MPI_ERR_IN_STATUS);
    expect(false, true, "MPI_Testall without a flag");
    begin();
    statuses[0].MPI_ERROR = MPI_ERR_TRUNCATE; /* of number 1 */
    fail(XM_FN_MPI_Testsome, some, MPI_ERR_IN_STATUS);
    expect(true, false, "MPI_Testsome");
    begin();
    fixed[0] = false;
    statuses[0].MPI_ERROR = statuses[1].MPI_ERROR = MPI_ERR_TRUNCATE;
    fail(XM_FN_MPI_Waitall, all, MPI_ERR_IN_STATUS);
    expect(true, false, "MPI_Waitall of one that is not looked at here");
    begin();
    xm_results_fix(XM_FN_MPI_Waitall, &array, ignored, MPI_ERR_IN_STATUS);
    expect(false, false, "MPI_Waitall without statuses: none is said to be pending");
}

int main(void)
{
    xm_pmpi.Error_class = error_class;
    check_one();
    check_several();
    return xt_done("requests of calls that failed");
}
