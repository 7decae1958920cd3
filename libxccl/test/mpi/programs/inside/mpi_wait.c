/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A wait that takes hours, by a clock that this program sets: when it warns, when it gives up, and
 * when it naps.
 * src/comms/wait.c is compiled into this program; one rank, without xccl.
 * Usage: mpi_wait none
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "comms/wait.h"
#include "support.h"

enum { LIMIT = 1000, HOUR = 3600 };

static uint64_t now_ns; /* 0: the machine's own clock, as MPI needs it */
static uint64_t yield_ns;
static int      naps;

int clock_gettime(clockid_t clock, struct timespec *t)
{
    if (now_ns == 0) {
        return (int)syscall(SYS_clock_gettime, clock, t);
    }
    *t = (struct timespec){(time_t)(now_ns / 1000000000u), (long)(now_ns % 1000000000u)};
    return 0;
}

int sched_yield(void)
{
    now_ns += (now_ns != 0) ? yield_ns : 0;
    return (now_ns != 0) ? 0 : (int)syscall(SYS_sched_yield);
}

int nanosleep(const struct timespec *time, struct timespec *left)
{
    if (now_ns == 0) {
        return (int)syscall(SYS_nanosleep, time, left);
    }
    naps++;
    now_ns += (uint64_t)time->tv_nsec;
    return 0;
}

/* Of a wait, one that has asked the clock before. */
static struct xm_wait begin(void)
{
    struct xm_wait wait = xm_wait_begin("for the end of a test");

    while (wait.attended.looked == 0) {
        xm_wait_step(&wait);
    }
    return wait;
}

/* When it has been watched for so many seconds. */
static enum xm_wait_verdict step(struct xm_wait *wait, uint64_t seconds)
{
    now_ns = wait->attended.looked;
    wait->attended.ns = seconds * 1000000000u;
    return xm_wait_step(wait);
}

/* The lines that the library has written since the last time; each is to hold `text`. */
static int warnings(FILE *log, const char *text)
{
    char line[600];
    int  count = 0;

    clearerr(log);
    while (fgets(line, sizeof(line), log) != NULL) {
        mt_expect(strstr(line, text) != NULL, "%s instead of %s", line, text);
        count++;
    }
    return count;
}

/* At first after half a minute, then each time after twice as long. */
static void test_warnings(FILE *log)
{
    struct xm_wait wait = begin();

    wait.limit = 0;
    step(&wait, 29);
    mt_expect(warnings(log, "") == 0, "a warning before 30 s");
    step(&wait, 31);
    mt_expect(warnings(log, "waiting for 31 s: for the end of a test") == 1, "none after 31 s");
    step(&wait, 61);
    mt_expect(warnings(log, "") == 0, "a warning after 61 s");
    step(&wait, 63);
    mt_expect(warnings(log, "waiting for 63 s") == 1, "none after 63 s");
    mt_expect(step(&wait, HOUR) != XM_WAIT_EXPIRED, "it ended without a limit");
    mt_expect(warnings(log, "waiting for 3600 s") == 1, "none after an hour");
}

static void test_limit(FILE *log)
{
    struct xm_wait wait = begin();

    mt_expect(step(&wait, LIMIT - 2) != XM_WAIT_EXPIRED, "it ended before its time");
    now_ns += HOUR * 1000000000ul; /* in which the process was suspended */
    mt_expect(xm_wait_step(&wait) != XM_WAIT_EXPIRED, "it ended for time that nobody watched");
    mt_expect(step(&wait, LIMIT + 1) == XM_WAIT_EXPIRED, "it did not end");
    warnings(log, "waiting for");
}

/* Costly looks are rare, but not as rare once each poll comes after a nap. */
static void test_looks(void)
{
    struct xm_wait wait = begin();
    int            looks[2] = {0, 0};

    for (int late = 0; late < 2; late++) {
        for (int i = 0; i < 1024; i++) {
            looks[late] += (step(&wait, (uint64_t)late) == XM_WAIT_LOOK);
        }
    }
    mt_expect(looks[0] == 1, "%d looks in 1024 polls", looks[0]);
    mt_expect(looks[1] == 64, "%d looks in 1024 naps", looks[1]);
}

/* Up to some time after its begin, where other threads take the core for so long each time. */
static int naps_until(struct xm_wait *wait, uint64_t until_ns, uint64_t others_ns)
{
    int before = naps;

    yield_ns = others_ns;
    while (wait->attended.ns < until_ns) {
        now_ns += 500;
        xm_wait_step(wait);
    }
    return naps - before;
}

/* Where others want the core, sooner than where nobody does. */
static void test_naps(void)
{
    enum { MS = 1000 * 1000, ALONE = 400, OTHERS = 8000 };
    struct xm_wait wait = begin();

    mt_expect(naps_until(&wait, 15 * MS, ALONE) == 0, "a nap after 15 ms on a core of its own");
    wait = begin();
    mt_expect(naps_until(&wait, MS - OTHERS, OTHERS) == 0, "a nap before a millisecond");
    int count = naps_until(&wait, 10 * MS, OTHERS);
    mt_expect(count > 50, "%d naps while others want the core", count);
    mt_expect(naps_until(&wait, 15 * MS, ALONE) <= 1, "naps after they have gone");
}

int main(int argc, char **argv)
{
    char name[64] = "/tmp/mpi_wait.XXXXXX", limit[16];

    mt_begin(&argc, &argv, false);
    int   fd = mkstemp(name);
    FILE *log = (fd >= 0) ? fdopen(fd, "r") : NULL;
    mt_expect(log != NULL, "no file for the log");
    snprintf(limit, sizeof(limit), "%d", LIMIT);
    setenv("XCCL_TIMEOUT", limit, 1);
    setenv("XCCL_LOG_FILE", name, 1);
    now_ns = 1;
    if (log != NULL) {
        test_warnings(log);
        test_limit(log);
        test_looks();
        test_naps();
        fclose(log);
        remove(name);
    }
    now_ns = 0;
    mt_summary();
    MPI_Finalize();
    return mt_status();
}
