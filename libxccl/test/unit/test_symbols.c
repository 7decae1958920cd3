/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the simulation is asked for, and the loader has found a real library, that is said. */
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "device/symbols.h"

enum { OPENED = 3, NOT_OPENED };

/* In a process of its own: which library is loaded there, and what comes to standard error. */
static void open_with(const char *sim, const char *folder, const char *symbol, char *said,
                      size_t len)
{
    static const char *const sonames[] = {"libcuda.so.1", NULL};
    const struct xc_symbol   symbols[] = {{symbol, 0}};
    char                     path[PATH_MAX];
    const char              *missing = NULL;
    void                    *table = NULL;
    int                      pipes[2], status = 0;

    CHECK(pipe(pipes) == 0, "a pipe");
    pid_t child = fork();
    if (child == 0) {
        dup2(pipes[1], STDERR_FILENO);
        (sim != NULL) ? setenv("XCCL_SIM", sim, 1) : unsetenv("XCCL_SIM");
        snprintf(path, sizeof(path), "%s/libcuda.so.1", folder);
        dlopen(path, RTLD_LAZY | RTLD_LOCAL);
        bool good = xc_symbols_open(sonames, true, symbols, 1, &table, &missing);
        _exit(good ? OPENED : NOT_OPENED);
    }
    close(pipes[1]);
    ssize_t n = read(pipes[0], said, len - 1);
    said[(n > 0) ? n : 0] = '\0';
    close(pipes[0]);
    waitpid(child, &status, 0);
    CHECK(WEXITSTATUS(status) == OPENED, "%s: status %d", folder, WEXITSTATUS(status));
}

int main(int argc, char **argv)
{
    char driver[PATH_MAX], said[1024];

    if (argc < 3) {
        fprintf(stderr, "usage: %s <folder of stand-ins> <folder of the simulation>\n", argv[0]);
        return 2;
    }
    snprintf(driver, sizeof(driver), "%s/driver", argv[1]);
    open_with("cuda:2", driver, "ncclGetVersion", said, sizeof(said));
    CHECK_HAS(said, "XCCL_SIM=cuda:2 asks for simulated devices, but the program has loaded ");
    CHECK_HAS(said,
              "driver/libcuda.so.1, which is not simulated: xccl's folder lib/xccl/sim/cuda ");
    open_with("mscclpp:2", driver, "ncclGetVersion", said, sizeof(said));
    CHECK_HAS(said, "xccl's folder lib/xccl/sim/mscclpp must come first");
    open_with("rocm:2", driver, "ncclGetVersion", said, sizeof(said));
    CHECK(said[0] == '\0', "another runtime is simulated: %s", said);
    open_with(NULL, driver, "ncclGetVersion", said, sizeof(said));
    CHECK(said[0] == '\0', "nothing is simulated: %s", said);
    open_with("cuda:2", argv[2], "cuInit", said, sizeof(said));
    CHECK(said[0] == '\0', "the simulation: %s", said);
    return xt_done("symbols");
}
