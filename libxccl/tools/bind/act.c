/* SPDX-License-Identifier: BSD-3-Clause */
/* Do to this process what its share says; all of it outlives exec. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bind.h"

enum { MEMORY_PREFERRED = 1 }; /* MPOL_PREFERRED of linux/mempolicy.h */

static bool bind_cores(const struct options *options, const struct share *share)
{
    char text[CPUS_TEXT];

    cpus_text(&share->cpus, text, sizeof(text));
    if (!share->bind) {
        if (options->explain) {
            explain_line("cores", text, share->how);
        }
        return true;
    }
    if (sched_setaffinity(0, sizeof(share->cpus), (const cpu_set_t *)(const void *)&share->cpus) !=
        0) {
        fprintf(stderr, "xccl-run: cannot bind to cores %s: %s; run with --bind none\n", text,
                strerror(errno));
        return false;
    }
    if (options->explain) {
        explain_line("cores", text, share->how);
    }
    return true;
}

/*
 * By the system call: hwloc would have to read the whole machine first. Preferred, not strict: a
 * full domain spills over instead of killing the job.
 */
static void bind_memory(const struct options *options, const struct share *share)
{
    unsigned long nodes[16] = {0};
    const size_t  bits = 8 * sizeof(nodes[0]);
    char          text[16];

    if (!share->bind || (share->numa < 0) || ((size_t)share->numa >= bits * 16)) {
        return;
    }
    nodes[(size_t)share->numa / bits] = 1UL << ((size_t)share->numa % bits);
    long status = syscall(SYS_set_mempolicy, MEMORY_PREFERRED, nodes, bits * 16);
    if (options->explain) {
        snprintf(text, sizeof(text), "NUMA %d", share->numa);
        explain_line(
            "memory", text,
            (status == 0)
                ? "the domain of those cores, others when it is full"
                : "refused here (container or cpuset); memory comes from where a core first touches it");
    }
}

static void set_if_unset(const struct options *options, const char *name, const char *value,
                         const char *why)
{
    bool theirs = (getenv(name) != NULL);

    if (!theirs) {
        setenv(name, value, 1);
    }
    if (options->explain) {
        explain_line(name, getenv(name), theirs ? "left as the user set it" : why);
    }
}

/*
 * UCX is told the port; MPICH over libfabric takes a policy instead. NCCL and RCCL have to see
 * every port on every rank, and choose by PCI distance.
 */
static void choose_nic(const struct options *options, const struct share *share)
{
    char text[NAME_LEN + 4];

    if (!share->nic_by_site || (options->bind == BIND_NONE)) {
        return;
    }
    if (strncmp(share->nic, "mlx5_", 5) == 0) {
        snprintf(text, sizeof(text), "%s:1", share->nic);
        set_if_unset(options, "UCX_NET_DEVICES", text, "the port next to the rank's GPU, for UCX");
    } else if (strncmp(share->nic, "hsn", 3) == 0) {
        const char *aware = getenv("MPICH_GPU_SUPPORT_ENABLED");
        if ((aware != NULL) && (strcmp(aware, "1") == 0)) {
            set_if_unset(options, "MPICH_OFI_NIC_POLICY", "GPU", "the port next to the GPU in use");
        } else if (share->numa != NO_NUMBER) {
            set_if_unset(options, "MPICH_OFI_NIC_POLICY", "NUMA",
                         "the port next to the rank's cores");
        }
    }
}

bool act(const struct options *options, const struct machine *machine,
         const struct visible *visible, const struct share *share)
{
    char text[16];

    if (!machine->known || machine->this_system) {
        if (!bind_cores(options, share)) {
            return false;
        }
        bind_memory(options, share);
    } else if (options->explain) {
        cpus_text(&share->cpus, text, sizeof(text));
        explain_line("cores", text, "not bound: the topology is not this machine's");
    }
    choose_nic(options, share);
    if (share->device != NO_NUMBER) {
        visible_apply(machine, visible, share->gpu, options->gpus, options->explain);
        snprintf(text, sizeof(text), "%d", share->device);
        setenv("XCCL_LOCAL_DEVICE", text, 1);
        if (options->explain) {
            explain_line("XCCL_LOCAL_DEVICE", text,
                         "the rank's own GPU, as the program numbers it");
        }
    }
    if (options->preload != NULL) {
        setenv("LD_PRELOAD", options->preload, 1);
    }
    return true;
}
