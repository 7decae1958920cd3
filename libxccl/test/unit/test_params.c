/* SPDX-License-Identifier: BSD-3-Clause */
/* The XCCL_* variables: values, defaults, and what is said about wrong ones. A process a case. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/params.h"
#include "base/quantity.h"
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
    expect(self, "XCCL_LOG=WARN", "XCCL_LOG=WARN is not allowed");
    expect(self, "XCCL_TIMEOUT=-1", "XCCL_TIMEOUT=-1 is not allowed; it takes seconds");
    expect(self, "XCCL_TIMEOUT=60x",
           "XCCL_TIMEOUT=60x is not allowed; it takes seconds, 0 to 604800; also with a unit, as "
           "90s, 10m or 2h (default 0)");
    expect(self, "XCCL_TIMEOUT=169h", "XCCL_TIMEOUT=169h is not allowed");
    expect(self, "XCCL_CHECK=1k", "XCCL_CHECK=1k is not allowed");
    expect(self, "XCCL_STAGING=4x", "it takes MiB, 0 to 1048576; also with a unit, as 512m or 4g");
    expect(self, "XCCL_STAGING=1025k", "XCCL_STAGING=1025k is not allowed");
    expect(self, "XCCL_RENDEZVOUS=k", "XCCL_RENDEZVOUS=k is not allowed");
    expect(self, "XCCL_RENDEZVOUS=-4k", "XCCL_RENDEZVOUS=-4k is not allowed");
    expect(self, "XCCL_RENDEZVOUS=9000000000g", "XCCL_RENDEZVOUS=9000000000g is not allowed");
    expect(self, "XCCL_RENDEZVOUS=4 k", "it takes auto|bytes, 80 to 1073741824; also with k, m");
    expect(self, "XCCL_TIMEOUT=99999999999999999999", "is not allowed");
    expect(self, "XCCL_CHECK=2", "XCCL_CHECK=2 is not allowed; it takes 0|1 (default 0)");
    expect(self, "XCCL_CCL=Nccl", "XCCL_CCL=Nccl is not allowed");
    expect(self, "XCCL_PROFILE=yes", "XCCL_PROFILE=yes is not allowed; it takes 0|1|FILE.json");
    expect(self, "XCCL_PROFILE=.json", "is not allowed");
    expect(self, "XCCL_PROFILE=a.json", "fine");
    expect(self, "XCCL_RANGES=on", "XCCL_RANGES=on is not allowed; it takes auto|off");
    expect(self, "XCCL_LOCAL_DEVICE=x",
           "XCCL_LOCAL_DEVICE=x is not allowed; it takes device number, 0 to 1023");
    expect(self, "XCCL_LOCAL_DEVICE=-1", "XCCL_LOCAL_DEVICE=-1 is not allowed");
    expect(self, "XCCL_LOCAL_DEVICE=3", "fine");
    expect(self, "XCCL_TIMOUT=3",
           "warning: XCCL_TIMOUT is not a variable of xccl and has no effect; did you mean "
           "XCCL_TIMEOUT?");
    expect(self, "XCCL_TUNES=x", "did you mean XCCL_TUNE?");
    expect(self, "XCCL_SMI=x", "did you mean XCCL_SIM?");
    expect(self, "XCCL_log=x", "did you mean XCCL_LOG?");
    expect(self, "XCCL_LOG_LEVEL=x", "did you mean XCCL_LOG?");
    expect(self, "XCCL_DIRECT_COPY=x", "did you mean XCCL_DIRECT_COPIES?");
    expect(self, "XCCL_MPI=mpich", "fine");
    expect(self, "XCCL_MPI=lam",
           "warning: XCCL_MPI=lam is not allowed; it takes openmpi|mpich|mpiabi; correct it or "
           "unset it, since xccl-perf, xccl-tune will refuse it");
    expect(self, "XCCL_ALGO=x", "XCCL_ALGO is not a variable of xccl and has no effect (xccl-info");
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

/* As not set, whatever the variable takes. */
static void test_empty(const char *self)
{
    size_t                     count;
    const struct xc_param_row *rows = xc_param_rows(&count);

    for (size_t i = 0; i < count; i++) {
        char variable[64];
        snprintf(variable, sizeof(variable), "%s=", rows[i].name);
        expect(self, variable, "fine");
    }
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

/* The number that a text means; -1 if it means none. */
static void expect_quantity(const char *text, enum xc_unit unit, long expected)
{
    long value = -1;

    CHECK(xc_quantity_read(text, unit, &value) == (expected >= 0), "%s", text);
    CHECK(value == expected, "%s: %ld", text, value);
}

static void test_units(void)
{
    expect_quantity("80", XC_UNIT_BYTE, 80);
    expect_quantity("64k", XC_UNIT_BYTE, 65536);
    expect_quantity("64K", XC_UNIT_BYTE, 65536);
    expect_quantity("1MiB", XC_UNIT_BYTE, 1048576);
    expect_quantity("1g", XC_UNIT_BYTE, 1073741824);
    expect_quantity("1kB", XC_UNIT_BYTE, -1);
    expect_quantity("1.5k", XC_UNIT_BYTE, -1);
    expect_quantity("512", XC_UNIT_MIB, 512);
    expect_quantity("512m", XC_UNIT_MIB, 512);
    expect_quantity("4GiB", XC_UNIT_MIB, 4096);
    expect_quantity("2048k", XC_UNIT_MIB, 2);
    expect_quantity("1k", XC_UNIT_MIB, -1);
    expect_quantity("90s", XC_UNIT_SECOND, 90);
    expect_quantity("10m", XC_UNIT_SECOND, 600);
    expect_quantity("2h", XC_UNIT_SECOND, 7200);
    expect_quantity("50us", XC_UNIT_MICROSECOND, 50);
    expect_quantity("1ms", XC_UNIT_MICROSECOND, 1000);
    expect_quantity("1s", XC_UNIT_MICROSECOND, -1);
    expect_quantity("8", XC_UNIT_ONE, 8);
    expect_quantity("8k", XC_UNIT_ONE, -1);
}

static void test_values(void)
{
    size_t                     count;
    bool                       from_env;
    const struct xc_param_row *rows = xc_param_rows(&count);
    const struct xc_params    *params = xc_params();

    CHECK(params->timeout == 420, "timeout %ld", params->timeout);
    CHECK(params->staging == 1024, "staging %ld", params->staging);
    CHECK(params->rendezvous == 16384, "rendezvous %ld", params->rendezvous);
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
                   (strcmp(rows[i].name, "XCCL_STAGING") == 0) ||
                   (strcmp(rows[i].name, "XCCL_RENDEZVOUS") == 0) ||
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
    test_empty(argv[0]);
    test_several(argv[0]);
    test_units();
    setenv("XCCL_TIMEOUT", "7m", 1);
    setenv("XCCL_STAGING", "1g", 1);
    setenv("XCCL_RENDEZVOUS", "16KiB", 1);
    setenv("XCCL_CCL", "rccl", 1);
    setenv("XCCL_ROUTE", "ucc-ccl", 1);
    setenv("XCCL_CHECK", "1", 1);
    setenv("XCCL_MPI_GPU_AWARE", "", 1);
    test_values();
    return xt_done("parameters");
}
