/* SPDX-License-Identifier: BSD-3-Clause */
/* The XCCL_* variables: values, defaults, and what is said about wrong ones. A process a case. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/params.h"
#include "check.h"

/* In a child whose environment is the given variables: print the error, the warning, or "fine". */
static int child(void)
{
    const char *error = xc_params_error(), *unknown = xc_params_unknown();

    printf("%s", (error != NULL) ? error : (unknown != NULL) ? "warning: " : "fine");
    printf("%s", ((error == NULL) && (unknown != NULL)) ? unknown : "");
    return 0;
}

static void run(const char *self, char *const env[], char *out, size_t len)
{
    int         pipes[2];
    char *const argv[] = {(char *)(size_t)self, (char *)(size_t) "child", NULL};

    out[0] = '\0';
    if (pipe(pipes) != 0) {
        CHECK(0, "pipe");
        return;
    }
    pid_t pid = fork();
    if (pid == 0) {
        dup2(pipes[1], 1);
        close(pipes[0]);
        execve(self, argv, env);
        _exit(127);
    }
    close(pipes[1]);
    size_t  n = 0;
    ssize_t got;
    while ((got = read(pipes[0], out + n, len - 1 - n)) > 0) {
        n += (size_t)got;
    }
    out[n] = '\0';
    close(pipes[0]);
    int status = 0;
    waitpid(pid, &status, 0);
    CHECK(status == 0, "the child ended with %d", status);
}

static void expect(const char *self, const char *variable, const char *part)
{
    char *const env[] = {(char *)(size_t)variable, NULL};
    char        out[1024];

    run(self, env, out, sizeof(out));
    CHECK_HAS(out, part);
}

static void test_faults(const char *self)
{
    expect(self, "HOME=/", "fine");
    expect(self, "XCCL_LOG=debug", "XCCL_LOG=debug is not allowed; it takes none|error|warn|info");
    expect(self, "XCCL_LOG=", "XCCL_LOG= is not allowed");
    expect(self, "XCCL_LOG=WARN", "XCCL_LOG=WARN is not allowed");
    expect(self, "XCCL_TIMEOUT=-1", "XCCL_TIMEOUT=-1 is not allowed; it takes seconds");
    expect(self, "XCCL_TIMEOUT=60s", "XCCL_TIMEOUT=60s is not allowed");
    expect(self, "XCCL_TIMEOUT=99999999999999999999", "is not allowed");
    expect(self, "XCCL_CHECK=2", "XCCL_CHECK=2 is not allowed; it takes 0|1 (default 0)");
    expect(self, "XCCL_CCL=Nccl", "XCCL_CCL=Nccl is not allowed");
    expect(self, "XCCL_PROFILE=yes", "XCCL_PROFILE=yes is not allowed; it takes 0|1|FILE.json");
    expect(self, "XCCL_PROFILE=.json", "is not allowed");
    expect(self, "XCCL_PROFILE=a.json", "fine");
    expect(self, "XCCL_RANGES=on", "XCCL_RANGES=on is not allowed; it takes auto|off");
    expect(self, "XCCL_TIMOUT=3",
           "warning: XCCL_TIMOUT is not a variable of xccl and has no effect; did you mean "
           "XCCL_TIMEOUT?");
    expect(self, "XCCL_TUNES=x", "did you mean XCCL_TUNE?");
    expect(self, "XCCL_SOMETHING_ELSE=1",
           "warning: XCCL_SOMETHING_ELSE is not a variable of xccl and has no effect (xccl-info");
    /* What module systems set, and no slip of it. */
    static const char *const silent[] = {
        "XCCL_DIR=/opt",     "XCCL_HOME=/opt",        "XCCL_BASE=/opt",
        "XCCL_ROOT=/opt",    "XCCL_INC=/opt/include", "XCCL_INCLUDE=/opt/include",
        "XCCL_LIB=/opt/lib", "XCCL_BIN=/opt/bin",     "XCCL_VERSION=1.0"};
    for (size_t i = 0; i < sizeof(silent) / sizeof(silent[0]); i++) {
        expect(self, silent[i], "fine");
    }
    expect(self, "XCCL_HOM=/opt", "XCCL_HOM is not a variable of xccl");
    expect(self, "XCCL_SIM_FAIL=whatever", "fine");
    expect(self, "XCCL_SITE=anything", "fine");
    expect(self, "XCCL_TIMEOUT=0", "fine");
    expect(self, "XCCLTIMEOUT=0", "fine");
}

/* All of them are named, however many; a wrong value beside them stays an error. */
static void test_several(const char *self)
{
    static char names[40][40];
    char       *env[42] = {(char *)(size_t) "XCCL_TIMOUT=1", (char *)(size_t) "XCCL_LOGS=2", NULL};
    char        out[2048];

    run(self, env, out, sizeof(out));
    CHECK_HAS(out, "did you mean XCCL_TIMEOUT?; XCCL_LOGS is not");
    for (int i = 0; i < 40; i++) {
        snprintf(names[i], sizeof(names[i]), "XCCL_OF_ANOTHER_KIND_%d=1", i);
        env[i] = names[i];
    }
    env[40] = (char *)(size_t) "XCCL_CHECK=7";
    run(self, env, out, sizeof(out));
    CHECK_HAS(out, "XCCL_CHECK=7 is not allowed");
    env[40] = NULL;
    run(self, env, out, sizeof(out));
    CHECK_HAS(out, "XCCL_OF_ANOTHER_KIND_0 is not a variable");
}

static void test_values(void)
{
    size_t                     count;
    bool                       from_env;
    const struct xc_param_row *rows = xc_param_rows(&count);
    const struct xc_params    *params = xc_params();

    CHECK(params->timeout == 7, "timeout %ld", params->timeout);
    CHECK(params->ccl == XC_CCL_RCCL, "ccl %d", params->ccl);
    CHECK(params->route == XC_ROUTE_UCC_CCL, "route %d", params->route);
    CHECK(params->check == 1, "check %d", params->check);
    CHECK((params->log == XC_LOG_WARN) && (params->tune == NULL), "defaults");
    CHECK(params->mpi_gpu_aware == XC_AUTO, "default");
    setenv("XCCL_CCL", "nccl", 1);
    CHECK(xc_params()->ccl == XC_CCL_RCCL, "read once only");
    for (size_t i = 0; i < count; i++) {
        const char *value = xc_param_value(i, &from_env);
        bool        set = (strcmp(rows[i].name, "XCCL_TIMEOUT") == 0) ||
                   (strcmp(rows[i].name, "XCCL_CCL") == 0) ||
                   (strcmp(rows[i].name, "XCCL_ROUTE") == 0) ||
                   (strcmp(rows[i].name, "XCCL_CHECK") == 0);
        CHECK(from_env == set, "%s comes from %s", rows[i].name, set ? "default" : "environment");
        CHECK(set || (strcmp(value, rows[i].fallback) == 0), "%s: %s", rows[i].name, value);
        CHECK((rows[i].meaning[0] != '\0') && (rows[i].read_by[0] != '\0'), "%s", rows[i].name);
    }
    CHECK(xc_param_value(count, &from_env)[0] == '\0', "out of range");
}

int main(int argc, char **argv)
{
    if ((argc > 1) && (strcmp(argv[1], "child") == 0)) {
        return child();
    }
    clearenv();
    test_faults(argv[0]);
    test_several(argv[0]);
    setenv("XCCL_TIMEOUT", "7", 1);
    setenv("XCCL_CCL", "rccl", 1);
    setenv("XCCL_ROUTE", "ucc-ccl", 1);
    setenv("XCCL_CHECK", "1", 1);
    test_values();
    return xt_done("parameters");
}
