/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The end of a communicator whose ranks are still asked something: for a rank that has given it up
 * it waits some seconds, for others as long as they take. The clock is the test's.
 */
#include "comms/agree.h"

#include <time.h>

#include "check.h"
#include "comms/cause.h"
#include "comms/creation.h"
#include "comms/suspicion.h"
#include "comms/wait.h"

enum { TICK_NS = 10 * 1000 * 1000, MS_NS = 1000 * 1000, NEVER_MS = 10 * 60 * 1000 };

struct xm_pmpi    xm_pmpi;
struct xm_handles xm_handles;
int               xm_jobs_settling;

static uint64_t now_ns;
static int      waited; /* for a creation */

/* In place of the C library's: each look takes the same time. */
__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *t)
{
    const uint64_t second = 1000000000u;

    (void)clock;
    now_ns += TICK_NS;
    t->tv_sec = (time_t)(now_ns / second);
    t->tv_nsec = (long)(now_ns % second);
    return 0;
}

__attribute__((visibility("default"))) int nanosleep(const struct timespec *time,
                                                     struct timespec       *left)
{
    (void)time;
    (void)left;
    return 0;
}

/* ---- what is below agree.c ---- */

bool xm_is_worker(void)
{
    return false;
}

void xm_creation_wait(struct xm_comm *xm)
{
    (void)xm;
    waited++;
}

bool xm_comm_is_broken(const struct xm_comm *xm)
{
    return xm->broken;
}

xcclResult_t xm_look_for_broken(const struct xm_comm *xm, bool own, uint64_t *since_p)
{
    (void)own;
    (void)since_p;
    CHECK(xm == NULL, "the end does not look for broken ranks");
    return xcclSuccess;
}

xcclResult_t xm_suspicion_look(const struct xm_comm *xm, bool whole, struct xm_suspicion *s)
{
    (void)whole;
    (void)s;
    CHECK(xm == NULL, "nor for missing ones");
    return xcclSuccess;
}

xcclResult_t xm_agreement_failed(const char *what)
{
    (void)what;
    return xcclInternalError;
}

/* ---- MPI ---- */

static unsigned over_ms; /* when the other ranks have come */
static int      answer;  /* MPI's */
static int      looks;

static int test(MPI_Request *request, int *flag, MPI_Status *status)
{
    (void)request;
    (void)status;
    looks++;
    *flag = (now_ns / MS_NS >= over_ms);
    return answer;
}

/* Does its end wait, for so long? */
static void expect(struct xm_comm *xm, unsigned ms, bool over, unsigned from_ms, unsigned to_ms,
                   const char *what)
{
    now_ns = 0;
    over_ms = ms;
    waited = 0;
    bool     was = xm_comm_end_agreements(xm);
    unsigned took = (unsigned)(now_ns / MS_NS);
    CHECK(was == over, "%s: after %u ms", what, took);
    CHECK((took >= from_ms) && (took <= to_ms), "%s: after %u ms", what, took);
    CHECK(waited == 1, "%s: a creation is waited for", what);
}

int main(void)
{
    struct xm_comm xm = {.size = 2, .checkin = {.kind = XM_CHECKIN_JOIN, .given_up = true}};

    xm_pmpi.Test = test;
    expect(&xm, NEVER_MS, false, 5000, 5200, "a rank that has given it up never comes");
    expect(&xm, 3000, true, 2900, 3200, "it comes later");
    expect(&xm, 0, true, 0, 100, "it has come");
    answer = MPI_ERR_OTHER;
    expect(&xm, NEVER_MS, false, 0, 100, "MPI says that it failed");
    answer = MPI_SUCCESS;
    xm.checkin.given_up = false;
    expect(&xm, 20000, true, 19900, 20200, "no rank has given it up");
    looks = 0;
    xm.checkin.kind = XM_CHECKIN_NONE;
    xm.checkin.given_up = true; /* of an earlier one */
    expect(&xm, NEVER_MS, true, 0, 100, "nothing is asked");
    CHECK(looks == 0, "%d looks at no request", looks);
    return xt_done("the end of agreements");
}
