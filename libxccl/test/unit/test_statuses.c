/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI 4.1's looks at several requests, where a look at one of them fails. */
#include "check.h"
#include "ops/entry.h"

enum { REQUESTS = 3, UNSAID = 99 };

struct xm_handles xm_handles;
xm_function_t     xm_mpi_functions[XM_NUM_FUNCTIONS];

static int codes[REQUESTS], flags[REQUESTS], looks;

struct xm_entry *xm_entry_find(MPI_Request handle)
{
    (void)handle;
    return NULL;
}

bool xm_entries_any(int count, const MPI_Request *handles)
{
    (void)count, (void)handles;
    return false;
}

long xm_mpi_forward(enum xm_function function, int profiling, const long *args)
{
    (void)function, (void)profiling, (void)args;
    CHECK(false, "a function of MPI's is called");
    return MPI_SUCCESS;
}

/* A look at one. */
int xm_request_call(enum xm_function function, int profiling, const long *args)
{
    int i = (int)args[0] - 1;

    CHECK((function == XM_FN_MPI_Request_get_status) && profiling, "another function is called");
    *(int *)args[1] = flags[i];
    looks++;
    return codes[i];
}

/* What the look at all of them says. */
static int look_at_all(int *flag, MPI_Status *statuses)
{
    MPI_Request requests[REQUESTS];

    for (int i = 0; i < REQUESTS; i++) {
        requests[i] = (MPI_Request)(uintptr_t)(i + 1); /* a pointer, or an integer */
        statuses[i].MPI_ERROR = UNSAID;
    }
    looks = 0;
    const long args[] = {REQUESTS, (long)requests, (long)flag, (long)statuses};
    return xm_get_statuses(XM_FN_MPI_Request_get_status_all, args);
}

static void set(int i, int code, int flag)
{
    codes[i] = code;
    flags[i] = flag;
}

static void check_well(void)
{
    MPI_Status statuses[REQUESTS];
    int        flag = 0;

    for (int i = 0; i < REQUESTS; i++) {
        set(i, MPI_SUCCESS, 1);
    }
    CHECK((look_at_all(&flag, statuses) == MPI_SUCCESS) && flag, "all are over");
    for (int i = 0; i < REQUESTS; i++) {
        CHECK(statuses[i].MPI_ERROR == UNSAID, "number %d: a code is said", i);
    }
    set(1, MPI_SUCCESS, 0);
    CHECK((look_at_all(&flag, statuses) == MPI_SUCCESS) && !flag, "one is not over");
    CHECK(looks == 2, "%d looks, although the second says all", looks);
}

/* With an error MPI says nothing of a flag: what failed is over. */
static void check_failed(int flag_of_failed)
{
    MPI_Status statuses[REQUESTS];
    int        flag = 0;

    set(0, MPI_SUCCESS, 1);
    set(1, MPI_ERR_TRUNCATE, flag_of_failed);
    set(2, MPI_SUCCESS, 1);
    CHECK(look_at_all(&flag, statuses) == MPI_ERR_IN_STATUS, "one has failed");
    CHECK(flag && (looks == REQUESTS), "all are over, and %d were looked at", looks);
    CHECK(statuses[0].MPI_ERROR == MPI_SUCCESS, "the first is well");
    CHECK(statuses[1].MPI_ERROR == MPI_ERR_TRUNCATE, "the second is not");
    CHECK(statuses[2].MPI_ERROR == MPI_SUCCESS, "the third is well");
    set(2, MPI_SUCCESS, 0);
    CHECK((look_at_all(&flag, statuses) == MPI_SUCCESS) && !flag, "the third is not over");
}

int main(void)
{
    check_well();
    check_failed(1);
    check_failed(0);
    return xt_done("looks at several requests");
}
