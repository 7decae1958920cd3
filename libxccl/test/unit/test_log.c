/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines to a pipe that is full, in a program whose timer interrupts what it calls: none is lost. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/log.h"
#include "check.h"

enum { LINES = 400, PIPE_BYTES = 4096, TICK_US = 200 };

static int           lines, others; /* read: those of the log, and what else there is */
static volatile long ticks;

static void on_tick(int number)
{
    (void)number;
    ticks++;
}

static void count_line(const char *line)
{
    if (strncmp(line, "xccl warning: line ", strlen("xccl warning: line ")) == 0) {
        lines++;
    } else {
        others++;
    }
}

/* Slowly, so that the pipe is full. */
static void *read_lines(void *fd)
{
    char    line[200], c[64];
    size_t  length = 0;
    ssize_t n;

    while ((n = read(*(int *)fd, c, sizeof(c))) > 0) {
        for (ssize_t i = 0; i < n; i++) {
            line[length] = (c[i] == '\n') ? '\0' : c[i];
            length = (c[i] == '\n') || (length + 1 == sizeof(line)) ? 0 : length + 1;
            if (c[i] == '\n') {
                count_line(line);
            }
        }
        usleep(TICK_US / 2);
    }
    return NULL;
}

/* No SA_RESTART, and for the calling thread alone. */
static pthread_t begin(int ends[2])
{
    struct sigaction action = {.sa_handler = on_tick};
    struct itimerval each = {{0, TICK_US}, {0, TICK_US}};
    sigset_t         alarm;
    pthread_t        reader;

    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarm, NULL);
    pthread_create(&reader, NULL, read_lines, &ends[0]);
    pthread_sigmask(SIG_UNBLOCK, &alarm, NULL);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &each, NULL);
    return reader;
}

int main(void)
{
    const struct itimerval never = {{0, 0}, {0, 0}};
    int                    ends[2], before = dup(STDERR_FILENO);

    if ((pipe(ends) != 0) || (fcntl(ends[1], F_SETPIPE_SZ, PIPE_BYTES) < 0)) {
        return 1;
    }
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    pthread_t reader = begin(ends);
    for (int i = 0; i < LINES; i++) {
        xc_warn("line %d of %d, which is not to be lost in a pipe", i, LINES);
    }
    setitimer(ITIMER_REAL, &never, NULL);
    dup2(before, STDERR_FILENO);
    pthread_join(reader, NULL);
    CHECK(ticks > 0, "no signal came");
    CHECK((lines == LINES) && (others == 0), "%d of %d lines, and %d that are none", lines, LINES,
          others);
    return xt_done("lines of the log");
}
