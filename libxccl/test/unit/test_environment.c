/* SPDX-License-Identifier: BSD-3-Clause */
/* Which launcher started a process, from the variables that each of them sets; and what those get
 * that it starts itself. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/environment.h"
#include "base/launch.h"
#include "check.h"

/* Of one process: "NAME=value" and so on, up to NULL. */
static bool read_with(const char *const *variables, struct xc_launch *launch)
{
    clearenv();
    for (; *variables != NULL; variables++) {
        putenv((char *)(size_t)*variables);
    }
    return xc_launch_read(launch);
}

#define READ(launch, ...) read_with((const char *const[]){__VA_ARGS__, NULL}, launch)

static void test_launchers(void)
{
    struct xc_launch l;

    CHECK(READ(&l, "OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_RANK=3",
               "OMPI_COMM_WORLD_LOCAL_RANK=1", "PMIX_RANK=3"),
          "Open MPI");
    CHECK_HAS(l.launcher, "Open MPI");
    CHECK((l.size == 4) && (l.rank == 3) && (l.local_rank == 1) && !l.direct_slurm, "%d", l.size);
    CHECK(READ(&l, "PMI_SIZE=2", "PMI_RANK=0", "MPI_LOCALNRANKS=2", "MPI_LOCALRANKID=0"), "Hydra");
    CHECK_HAS(l.launcher, "Hydra");
    CHECK((l.size == 2) && (l.local_rank == 0), "%d", l.size);
    CHECK(READ(&l, "PMI_SIZE=8", "PALS_RANKID=5", "PALS_LOCAL_RANKID=1"), "PALS");
    CHECK_HAS(l.launcher, "PALS");
    CHECK((l.size == 8) && (l.rank == 5), "%d", l.size);
    CHECK(READ(&l, "FLUX_JOB_SIZE=2", "FLUX_TASK_RANK=1", "FLUX_TASK_LOCAL_ID=1", "PMI_RANK=1"),
          "Flux");
    CHECK_HAS(l.launcher, "Flux");
    CHECK(READ(&l, "PMI_SIZE=3", "PMI_RANK=2"), "another one with PMI");
    CHECK((l.size == 3) && (l.local_rank == XC_UNKNOWN), "%d", l.size);
    CHECK(READ(&l, "PMIX_RANK=2"), "another one with PMIx");
    CHECK((l.size == 3) && l.at_least, "%d", l.size);
    CHECK(READ(&l, "PMIX_RANK=0") && (l.size == XC_UNKNOWN), "the first of nobody knows how many");
    CHECK(!READ(&l, "HOME=/"), "none");
}

static void test_first(void)
{
    struct xc_launch l;

    READ(&l, "OMPI_COMM_WORLD_RANK=4", "OMPI_COMM_WORLD_LOCAL_RANK=0");
    CHECK(xc_first_of_node(), "the first of the second node");
    READ(&l, "OMPI_COMM_WORLD_RANK=5", "OMPI_COMM_WORLD_LOCAL_RANK=1");
    CHECK(!xc_first_of_node(), "the second of it");
    READ(&l, "PMI_RANK=1", "PMI_SIZE=2");
    CHECK(!xc_first_of_node(), "no place on the node is known");
    READ(&l, "PMI_RANK=0", "PMI_SIZE=2");
    CHECK(xc_first_of_node(), "the first of the job");
    READ(&l, "HOME=/");
    CHECK(xc_first_of_node(), "no launcher");
}

static void test_slurm(void)
{
    struct xc_launch l;

    CHECK(READ(&l, "SLURM_JOB_ID=7", "SLURM_STEP_ID=0", "SLURM_STEP_NUM_TASKS=4", "SLURM_PROCID=2",
               "SLURM_LOCALID=0", "SLURM_NTASKS=4"),
          "a task of a step");
    CHECK((l.size == 4) && (l.rank == 2) && l.direct_slurm, "%d", l.size);
    CHECK(READ(&l, "SLURM_STEP_ID=1", "SLURM_STEP_NUM_TASKS=1", "SLURM_PROCID=0", "SLURM_LOCALID=0",
               "SLURM_NTASKS=1") &&
              (l.size == 1),
          "srun -n1");
    /* The same variables, of the whole job, in what is no task of a step. */
    CHECK(!READ(&l, "SLURM_JOB_ID=7", "SLURM_NTASKS=8", "SLURM_PROCID=0", "SLURM_LOCALID=0"),
          "a batch script");
    CHECK(!READ(&l, "SLURM_STEP_ID=4294967291", "SLURM_STEP_NUM_TASKS=8", "SLURM_PROCID=0",
                "SLURM_LOCALID=0"),
          "a batch script's own step");
    CHECK(!READ(&l, "SLURM_STEP_ID=4294967290", "SLURM_STEP_NUM_TASKS=8", "SLURM_PROCID=0",
                "SLURM_LOCALID=0"),
          "an interactive step");
    CHECK(!READ(&l, "SLURM_STEP_ID=0", "SLURM_STEP_NUM_TASKS=4", "SLURM_PROCID=0",
                "SLURM_LOCALID=0", "SLURM_PTY_PORT=4711"),
          "a shell of srun --pty");
    CHECK(!READ(&l, "SLURM_JOB_ID=7", "SLURM_NTASKS=8"), "salloc");
    /* mpirun starts its daemons by srun: one on each node, whatever the number of ranks. */
    CHECK(READ(&l, "SLURM_STEP_ID=0", "SLURM_STEP_NUM_TASKS=2", "SLURM_PROCID=1", "SLURM_LOCALID=0",
               "OMPI_COMM_WORLD_SIZE=1", "OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_LOCAL_RANK=0"),
          "one rank of mpirun on the second node");
    CHECK((l.size == 1) && !l.direct_slurm, "%d", l.size);
}

static void test_odd_values(void)
{
    struct xc_launch l;

    CHECK(!READ(&l, "OMPI_COMM_WORLD_RANK=", "OMPI_COMM_WORLD_SIZE=4"), "empty");
    CHECK(!READ(&l, "PMI_RANK=-1", "PMI_SIZE=4"), "negative");
    CHECK(!READ(&l, "PMI_RANK=1x", "PMI_SIZE=4"), "not a number");
    CHECK(!READ(&l, "PMI_RANK=99999999999999999999", "PMI_SIZE=4"), "too large");
    CHECK(READ(&l, "PMI_RANK=0", "PMI_SIZE=many") && (l.size == XC_UNKNOWN), "no size");
}

static void test_blocking(void)
{
    struct xc_launch l;

    READ(&l, "CUDA_LAUNCH_BLOCKING=1");
    CHECK(xc_launches_block(), "CUDA's");
    READ(&l, "AMD_SERIALIZE_KERNEL=3");
    CHECK(xc_launches_block(), "ROCm's");
    READ(&l, "CUDA_LAUNCH_BLOCKING=0", "HIP_LAUNCH_BLOCKING=");
    CHECK(!xc_launches_block(), "off");
}

/* What a process with these variables gives to its children, who are to have `text` as well. */
static bool give_with(const char *const *variables, char *text, size_t len)
{
    clearenv();
    for (; *variables != NULL; variables++) {
        putenv((char *)(size_t)*variables);
    }
    return xc_environment_for_children("libxccl-mpi.so", text, len);
}

#define GIVE(text, len, ...)                                                                       \
    give_with((const char *const[]){__VA_ARGS__, NULL}, strcpy(children, text), len)

static void test_children(void)
{
    char       children[256];
    const char preload[] = "LD_PRELOAD=/x/libxccl-mpi.so";

    CHECK(GIVE("", 256, "XCCL_LOG=info") && (children[0] == '\0'), "linked: %s", children);
    CHECK(GIVE("", 256, "LD_PRELOAD=/x/tool.so", "XCCL_LOG=info") && (children[0] == '\0'),
          "another one: %s", children);
    GIVE("", 256, "XCCL_LOG=info", preload, "HOME=/", "XCCL_LOCAL_DEVICE=1", "LD_LIBRARY_PATH=/l");
    CHECK(strcmp(children, "LD_PRELOAD=/x/libxccl-mpi.so\nXCCL_LOG=info") == 0, "%s", children);
    GIVE("A=1\nXCCL_LOG=warn", 256, preload, "XCCL_LOG=info");
    CHECK(strcmp(children, "A=1\nXCCL_LOG=warn\nLD_PRELOAD=/x/libxccl-mpi.so") == 0, "%s",
          children);
    GIVE("", 256, preload, "XCCL_SIM=cuda:2", "LD_LIBRARY_PATH=/l");
    CHECK_HAS(children, "\nXCCL_SIM=cuda:2\nLD_LIBRARY_PATH=/l");
    CHECK(GIVE("", sizeof(preload) + 5, preload, "XCCL_LOG=info") &&
              (strcmp(children, preload) == 0),
          "no room for more: %s", children);
    CHECK(!GIVE("", sizeof(preload) - 1, preload), "no room");
}

static void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    CHECK((f != NULL) && (fputs(text, f) >= 0) && (fclose(f) == 0), "%s", path);
}

/* NCCL sets variables from files, but those that are set already. */
static void test_network(void)
{
    char                        home[] = "/tmp/xccl-test-environment-XXXXXX";
    char                        file[64], other[64];
    struct xc_network_variables v;

    clearenv();
    CHECK(mkdtemp(home) != NULL, "%s", home);
    setenv("HOME", home, 1);
    snprintf(file, sizeof(file), "%s/.nccl.conf", home);
    write_text(file, "# NCCL_NET=no\nNCCL_NETX=no\nNCCL_NET=Socket\nNCCL_NET=later\n"
                     "NCCL_NET_PLUGIN=ofi\nNCCL_IB_DISABLE=1");
    xc_network_variables_get(&v);
    CHECK((strcmp(v.net, "Socket") == 0) && (strcmp(v.plugin, "ofi") == 0), "'%s' '%s'", v.net,
          v.plugin);
    CHECK(v.no_verbs, "a last line without an end");
    setenv("NCCL_NET", "IB", 1);
    setenv("NCCL_IB_DISABLE", "0", 1);
    xc_network_variables_get(&v);
    setenv("NCCL_IB_HCA", "=mlx5_0:1,mlx5_1", 1);
    xc_network_variables_get(&v);
    CHECK(strcmp(v.hca, "=mlx5_0:1,mlx5_1") == 0, "'%s'", v.hca);
    CHECK((strcmp(v.net, "IB") == 0) && (strcmp(v.plugin, "ofi") == 0), "'%s' '%s'", v.net,
          v.plugin);
    CHECK(!v.no_verbs, "variables come before files");
    snprintf(other, sizeof(other), "%s/other", home);
    write_text(other, "NCCL_NET_PLUGIN=aws\n");
    setenv("NCCL_CONF_FILE", other, 1);
    xc_network_variables_get(&v);
    CHECK(strcmp(v.plugin, "aws") == 0, "'%s'", v.plugin);
    unsetenv("NCCL_CONF_FILE");
    unlink(file);
    xc_network_variables_get(&v);
    CHECK(v.plugin[0] == '\0', "'%s'", v.plugin);
    snprintf(file, sizeof(file), "%s/.rccl.conf", home);
    write_text(file, "NCCL_NET_PLUGIN=rocm\n");
    xc_network_variables_get(&v);
    CHECK(strcmp(v.plugin, "rocm") == 0, "'%s'", v.plugin);
    unlink(file);
    unlink(other);
    rmdir(home);
}

static void put_into_files(const char *home, const char *user, const char *named)
{
    char file[64], other[64];

    snprintf(file, sizeof(file), "%s/.nccl.conf", home);
    snprintf(other, sizeof(other), "%s/named", home);
    write_text(file, user);
    write_text(other, named);
}

static void expect_peers(bool disabled, const char *what)
{
    CHECK(xc_peers_disabled() == disabled, "%s", what);
}

/* NCCL_P2P_DISABLE=1, and no other number, in the order in which NCCL reads it. */
static void test_peers(void)
{
    char home[] = "/tmp/xccl-test-environment-XXXXXX", command[64], named[64];

    clearenv();
    CHECK(mkdtemp(home) != NULL, "%s", home);
    setenv("HOME", home, 1);
    expect_peers(false, "nothing says so");
    put_into_files(home, "NCCL_DEBUG=WARN\nNCCL_P2P_DISABLE=1\nNCCL_P2P_DISABLE=0\n", "\n");
    expect_peers(true, "the user's file");
    setenv("NCCL_P2P_DISABLE", "0", 1);
    expect_peers(false, "a variable comes before files");
    setenv("NCCL_P2P_DISABLE", "", 1);
    expect_peers(false, "also an empty one");
    setenv("NCCL_P2P_DISABLE", "2", 1);
    expect_peers(false, "NCCL takes no other number");
    setenv("NCCL_P2P_DISABLE", "1", 1);
    put_into_files(home, "NCCL_P2P_DISABLE=0\n", "NCCL_P2P_DISABLE=1\n");
    expect_peers(true, "a variable");
    unsetenv("NCCL_P2P_DISABLE");
    expect_peers(false, "the user's file says no");
    snprintf(named, sizeof(named), "%s/named", home);
    setenv("NCCL_CONF_FILE", named, 1);
    expect_peers(true, "the file that is named takes the place of the user's");
    put_into_files(home, "NCCL_P2P_DISABLE=1\n", "#NCCL_P2P_DISABLE=1\n NCCL_P2P_DISABLE=1\n");
    expect_peers(false, "a comment, and a blank before the name");
    snprintf(command, sizeof(command), "rm -r %s", home);
    CHECK(system(command) == 0, "%s", command);
}

int main(void)
{
    test_peers();
    test_children();
    test_launchers();
    test_first();
    test_slurm();
    test_odd_values();
    test_blocking();
    test_network();
    return xt_done("variables of others");
}
