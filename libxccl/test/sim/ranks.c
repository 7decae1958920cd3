/* SPDX-License-Identifier: BSD-3-Clause */
#include "ranks.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_RANKS 16
#ifndef XS_SLOWDOWN
#define XS_SLOWDOWN 1 /* how much more time an emulator takes */
#endif
#define LIMIT_SECONDS (30 * XS_SLOWDOWN)

struct board {
    int           pids[MAX_RANKS];
    unsigned      shares; /* shared so far */
    unsigned      arrived;
    unsigned      turn;
    unsigned char bytes[4096];
};

static struct board *board;
static int           my_rank = -1;

void check_failed(const char *file, int line, const char *text)
{
    fprintf(stderr, "%s:%d: rank %d: failed: %s\n", file, line, my_rank, text);
    _exit(1);
}

void check_equal(const char *file, int line, const char *text, long long got, long long want)
{
    if (got != want) {
        fprintf(stderr, "%s:%d: rank %d: %s is %lld, not %lld\n", file, line, my_rank, text, got,
                want);
        _exit(1);
    }
}

static void nap(void)
{
    const struct timespec time = {0, 200000};

    nanosleep(&time, NULL);
}

void meet(const struct world *world)
{
    unsigned turn = __atomic_load_n(&board->turn, __ATOMIC_ACQUIRE);

    if (__atomic_add_fetch(&board->arrived, 1, __ATOMIC_ACQ_REL) == (unsigned)world->size) {
        __atomic_store_n(&board->arrived, 0, __ATOMIC_RELAXED);
        __atomic_add_fetch(&board->turn, 1, __ATOMIC_RELEASE);
        return;
    }
    while (__atomic_load_n(&board->turn, __ATOMIC_ACQUIRE) == turn) {
        nap();
    }
}

void share_bytes(const struct world *world, void *data, size_t bytes)
{
    CHECK(bytes <= sizeof(board->bytes));
    if (world->rank == 0) {
        memcpy(board->bytes, data, bytes);
    }
    meet(world);
    memcpy(data, board->bytes, bytes);
    meet(world);
}

int pid_of(int rank)
{
    return board->pids[rank];
}

static void map_board(int fd)
{
    board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(board != MAP_FAILED);
}

static void set_number(const char *name, int value)
{
    char text[16];

    snprintf(text, sizeof(text), "%d", value);
    setenv(name, text, 1);
}

static void set_more(const char *more)
{
    char *text = strdup(more); /* putenv() keeps it */

    for (char *entry = strtok(text, " "); entry != NULL; entry = strtok(NULL, " ")) {
        putenv(entry);
    }
}

/* In the child: become a rank by starting the program anew. */
static void become(const struct test_case *test, int rank, int fd)
{
    char number[3][16];

    if (test->sim != NULL) {
        setenv("XCCL_SIM", test->sim, 1);
    } else {
        unsetenv("XCCL_SIM");
    }
    if (test->fail != NULL) {
        setenv("XCCL_SIM_FAIL", test->fail, 1);
    }
    if (test->more != NULL) {
        set_more(test->more);
    }
    set_number("XCCL_SIM_RANK", rank);
    set_number("XCCL_SIM_SIZE", test->ranks);
    snprintf(number[0], sizeof(number[0]), "%d", rank);
    snprintf(number[1], sizeof(number[1]), "%d", test->ranks);
    snprintf(number[2], sizeof(number[2]), "%d", fd);
    execl("/proc/self/exe", "rank", "--rank", number[0], number[1], number[2], test->name,
          (char *)NULL);
    _exit(127);
}

static bool good_end(const struct test_case *test, int rank, int status)
{
    if (rank == test->dies) {
        return WIFSIGNALED(status) && (WTERMSIG(status) == SIGKILL);
    }
    return WIFEXITED(status) && (WEXITSTATUS(status) == 0);
}

static bool wait_for_ranks(const struct test_case *test, const int *pids)
{
    struct timespec begin;
    struct timespec now;
    int             left = test->ranks;
    bool            ended[MAX_RANKS] = {false};
    bool            good = true;

    clock_gettime(CLOCK_MONOTONIC, &begin);
    while (left > 0) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        for (int i = 0; i < test->ranks; i++) {
            int status;

            if (ended[i] || (waitpid(pids[i], &status, WNOHANG) == 0)) {
                continue;
            }
            ended[i] = true;
            left--;
            if (!good_end(test, i, status)) {
                fprintf(stderr, "%s: rank %d ended with status 0x%x\n", test->name, i, status);
                good = false;
            }
        }
        bool late = now.tv_sec - begin.tv_sec > LIMIT_SECONDS;
        for (int i = 0; (late || !good) && (i < test->ranks); i++) {
            if (!ended[i]) {
                fprintf(stderr, "%s: rank %d %s\n", test->name, i,
                        late ? "hangs" : "stopped: another failed");
                kill(pids[i], SIGKILL);
                waitpid(pids[i], NULL, 0);
                ended[i] = true;
                left--;
                good = false;
            }
        }
        nap();
    }
    return good;
}

static bool run_case(const struct test_case *test)
{
    int pids[MAX_RANKS];
    int fd = memfd_create("board", 0);

    CHECK((fd >= 0) && (ftruncate(fd, sizeof(struct board)) == 0));
    map_board(fd);
    for (int i = 0; i < test->ranks; i++) {
        pids[i] = fork();
        CHECK(pids[i] >= 0);
        if (pids[i] == 0) {
            become(test, i, fd);
        }
        board->pids[i] = pids[i];
    }
    bool good = wait_for_ranks(test, pids);
    munmap(board, sizeof(*board));
    close(fd);
    printf("%-4s %s\n", good ? "ok" : "FAIL", test->name);
    fflush(stdout);
    return good;
}

static int run_rank(char **argv, const struct test_case *cases, size_t count)
{
    struct world world = {atoi(argv[2]), atoi(argv[3])};

    my_rank = world.rank;
    map_board(atoi(argv[4]));
    close(atoi(argv[4]));
    for (size_t i = 0; i < count; i++) {
        if (strcmp(cases[i].name, argv[5]) == 0) {
            cases[i].run(&world);
            return 0;
        }
    }
    return 2;
}

int run_cases(int argc, char **argv, const struct test_case *cases, size_t count)
{
    bool good = true;

    if ((argc == 6) && (strcmp(argv[1], "--rank") == 0)) {
        return run_rank(argv, cases, count);
    }
    for (size_t i = 0; i < count; i++) {
        bool wanted = (argc == 1);

        for (int j = 1; j < argc; j++) {
            wanted = wanted || (strcmp(argv[j], cases[i].name) == 0);
        }
        good = (!wanted || run_case(&cases[i])) && good;
    }
    return good ? 0 : 1;
}
