/* SPDX-License-Identifier: BSD-3-Clause */
/* What makes a launch slow or wrong although it runs. The ids are those of xccl-doctor's findings.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bind.h"

struct list {
    struct note *note;
    int          count;
};

static void __attribute__((format(printf, 3, 4))) add(struct list *list, const char *id,
                                                      const char *format, ...)
{
    va_list args;

    if (list->count == MAX_NOTES) {
        return;
    }
    struct note *note = &list->note[list->count++];
    note->id = id;
    va_start(args, format);
    vsnprintf(note->text, sizeof(note->text), format, args);
    va_end(args);
}

static bool is(const char *name, const char *value)
{
    const char *text = getenv(name);

    return (text != NULL) && (strcmp(text, value) == 0);
}

/* What a script below gives each rank of its own is not seen here. */
static bool set_below(const struct options *options, const struct visible *visible)
{
    static const char *const names[] = {"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
                                        "HIP_VISIBLE_DEVICES"};

    for (size_t i = 0; (visible->variable != NULL) && (i < sizeof(names) / sizeof(names[0])); i++) {
        if (program_sets(options->command, names[i])) {
            return true;
        }
    }
    return false;
}

static void check_sharing(const struct options *options, const struct launch *launch,
                          const struct machine *machine, const struct visible *visible,
                          struct list *list)
{
    int  ranks = launch->local_size;
    bool mps =
        (getenv("CUDA_MPS_PIPE_DIRECTORY") != NULL) || (access("/tmp/nvidia-mps", F_OK) == 0);
    const char *how = mps ? ". MPS runs here: it lets ranks share a GPU" : "";

    if ((ranks == NO_NUMBER) || (machine->ngpus == 0)) {
        return;
    }
    if ((ranks > machine->ngpus) && mps) {
        add(list, "ranks-over-gpus",
            "%d ranks share the %d GPUs of this node under MPS: kernels of xccl's own carry collectives "
            "of up to 8 ranks on a node, and others go through the host; NCCL and RCCL take one rank per "
            "GPU",
            ranks, machine->ngpus);
    } else if (ranks > machine->ngpus) {
        add(list, "ranks-over-gpus",
            "%d ranks share the %d GPUs of this node, and NCCL and RCCL take one rank per GPU; start at "
            "most %d ranks per node (NCCL 2.30.3 and later: NCCL_MULTI_RANK_GPU_ENABLE=1), or MPS",
            ranks, machine->ngpus, machine->ngpus);
    } else if ((visible->count > 0) && (ranks > visible->count) && !visible_per_task(visible) &&
               !set_below(options, visible)) {
        add(list, "gpu-shared",
            "%d ranks see only %d of this node's %d GPUs (%s), so several would use one%s; ask for a GPU "
            "per rank, e.g. --gpus-per-node=%d",
            ranks, visible->count, machine->ngpus,
            (visible->variable != NULL) ? visible->variable : "device cgroup", how, ranks);
    }
}

static void check_invisible(const struct machine *machine, const struct visible *visible,
                            struct list *list)
{
    if ((machine->ngpus > 0) && (visible->count == 0) && (visible->variable != NULL)) {
        add(list, "gpu-invisible",
            "%s='%s' names none of this node's %d GPUs, so that the program sees none; unset it, or "
            "name GPUs by their numbers, as 0,1",
            visible->variable, getenv(visible->variable), machine->ngpus);
    }
}

static void check_hidden(const struct machine *machine, const struct visible *visible,
                         const struct plan *plan, struct list *list)
{
    bool numbers = (visible->njob > 0) && (visible->job[0] != NO_NUMBER);

    if (!plan->own_view || (!visible_locked(machine, visible) && numbers)) {
        return;
    }
    add(list, "gpu-hidden",
        "this task may use %d of the %d GPUs that the job has on this node (--gpu-bind=closest, "
        "--gpus-per-task): ranks cannot reach each other's memory and go through the host, 11 times "
        "slower where it was measured; use --gpu-bind=none with --gpus-per-node, or add "
        "--gres-flags=allow-task-sharing",
        visible->count, visible->njob);
}

static void check_mpich(const struct machine *machine, const struct share *own, struct list *list)
{
    bool gpu_aware = is("MPICH_GPU_SUPPORT_ENABLED", "1");

    if (is("MPICH_OFI_NIC_POLICY", "NUMA") && (machine->nnumas > 1) && (own->numa == NO_NUMBER)) {
        char cores[64];
        cpus_text(&own->cpus, cores, sizeof(cores));
        add(list, "nic-policy",
            "MPICH_OFI_NIC_POLICY=NUMA needs ranks that stay within one NUMA domain, and this one may "
            "run on cores %s; set MPICH_OFI_NIC_POLICY=GPU, or let xccl-run bind",
            cores);
    }
    if (is("MPICH_OFI_NIC_POLICY", "GPU") && !gpu_aware) {
        add(list, "nic-policy",
            "MPICH_OFI_NIC_POLICY=GPU has no effect without MPICH_GPU_SUPPORT_ENABLED=1; set that, or "
            "MPICH_OFI_NIC_POLICY=NUMA");
    }
    if (is("MPICH_SMP_SINGLE_COPY_MODE", "NONE")) {
        add(list, "single-copy-none",
            "with MPICH_SMP_SINGLE_COPY_MODE=NONE the start of RCCL hung on 3000 nodes; unset it");
    }
}

/* mpirun of one MPI in front of a program of another: every process takes itself for the only one.
 */
static void check_launcher(const struct options *options, const struct launch *launch,
                           struct list *list)
{
    const char *launcher = (launch->launcher != NULL) ? launch->launcher : "";
    enum mpi    theirs = (strcmp(launcher, "Open MPI") == 0) ? MPI_OPENMPI
                         : (strcmp(launcher, "Hydra") == 0)  ? MPI_MPICH
                                                             : MPI_UNKNOWN;

    /* Other launchers speak to several MPIs. */
    if ((theirs == MPI_UNKNOWN) || (launch->size <= 1) || (options->command[0] == NULL)) {
        return;
    }
    enum mpi ours = program_mpi(options->command[0]);
    if ((ours != MPI_UNKNOWN) && (ours != theirs)) {
        add(list, "mpi-other-launcher",
            "%s is linked with %s, and %s started it in %d processes, which will not know of each "
            "other; start it with the mpirun or mpiexec of its own MPI",
            options->command[0],
            (ours == MPI_OPENMPI) ? "Open MPI" : "MPICH or an MPI with its ABI",
            (theirs == MPI_OPENMPI) ? "Open MPI's mpirun" : "MPICH's mpiexec (Hydra)",
            launch->size);
    }
}

/*
 * The loader, which reads LD_PRELOAD, has no part in one program; the other calls its own MPI. Only
 * ranks that print notes look for that: thousands would read all symbols of a large file.
 */
static void check_reach(const struct options *options, const struct launch *launch,
                        struct list *list)
{
    const char *program = options->command[0];
    bool        printed = (launch->rank <= 0) || options->report || options->plan;

    if (program == NULL) {
        return;
    }
    if (program_is_static(program)) {
        add(list, "program-static",
            "%s is linked statically, so xccl cannot serve it: LD_PRELOAD has no effect on it; link it "
            "dynamically (programs that it starts are served, if they are)",
            program);
    } else if (printed && program_has_mpi(program)) {
        add(list, "program-own-mpi",
            "%s has an MPI library inside, so xccl cannot serve it: its calls go to that one, and "
            "crash with device memory if it is not GPU-aware; link it with MPI's shared library "
            "(libmpi.so, libmpich.so), not with libmpi.a or libmpich.a",
            program);
    }
}

static bool is_one_core(const struct machine *machine, const struct cpus *cpus)
{
    int core = NO_NUMBER;

    if (!machine->known) {
        return cpus_count(cpus) == 1;
    }
    for (int pu = 0; pu < CPUS_MAX; pu++) {
        if (cpus_has(cpus, pu)) {
            if ((core != NO_NUMBER) && (machine->core_of[pu] != core)) {
                return false;
            }
            core = machine->core_of[pu];
        }
    }
    return core != NO_NUMBER;
}

static bool on_several_nodes(const struct launch *launch)
{
    return (launch->nodes > 1) || ((launch->local_size > 0) && (launch->size > launch->local_size));
}

/* Between nodes the vendor's library moves data by a thread of its own, beside the rank that polls.
 */
static void check_single_core(const struct launch *launch, const struct share *own,
                              const struct machine *machine, const struct cpus *allowed,
                              struct list *list)
{
    const struct cpus *cpus = own->bind ? &own->cpus : allowed;

    if (!on_several_nodes(launch) || (own->gpu == NO_NUMBER) || !is_one_core(machine, cpus)) {
        return;
    }
    char text[64];
    cpus_text(cpus, text, sizeof(text));
    add(list, "cores-single",
        "this rank has one core (%s), which the network thread of NCCL or RCCL has to share with it: "
        "small calls between nodes take milliseconds; give each rank two cores or more (srun "
        "--cpus-per-task, mpirun --map-by slot:PE=2 or --bind-to none)",
        text);
}

/*
 * The site's settings name this protocol, and only the job's own options make it take effect.
 * SLURM_NETWORK tells of sbatch and salloc, but not of srun: one rank asks Slurm before it
 * complains.
 */
static void check_rendezvous(const struct launch *launch, struct list *list)
{
    static const char option[] = "disable_rdzv_get";
    const char       *network = getenv("SLURM_NETWORK");
    char              text[256];

    if ((launch->rank != 0) || !on_several_nodes(launch) || !is("FI_CXI_RDZV_PROTO", "alt_read") ||
        is("FI_CXI_RX_MATCH_MODE", "software") ||
        ((network != NULL) && (strstr(network, option) != NULL)) ||
        !slurm_step_network(text, sizeof(text)) || (strstr(text, option) != NULL)) {
        return;
    }
    add(list, "cxi-rendezvous",
        "FI_CXI_RDZV_PROTO=alt_read has no effect, since the job was started without "
        "--network=%s; add it to the options of sbatch, salloc or srun",
        option);
}

int notes_collect(const struct options *options, const struct launch *launch,
                  const struct machine *machine, const struct visible *visible,
                  const struct plan *plan, const struct cpus *allowed,
                  struct note notes_p[MAX_NOTES])
{
    struct list         list = {notes_p, 0};
    const struct share *own = &plan->share[(launch->local_rank > 0) ? launch->local_rank : 0];
    const char         *per_task = getenv("SLURM_CPUS_PER_TASK");

    check_launcher(options, launch, &list);
    if ((options->bind == BIND_AUTO) && !own->bind && (own->gpu != NO_NUMBER) &&
        !topology_is_there()) {
        add(&list, "not-bound",
            "cores, memory and NIC of each rank stay as they are: this xccl was built without "
            "hwloc, and no map of a site says where the GPUs are; build it again with hwloc and "
            "pkg-config, or set XCCL_SITE");
    }
    check_reach(options, launch, &list);
    check_sharing(options, launch, machine, visible, &list);
    check_hidden(machine, visible, plan, &list);
    check_invisible(machine, visible, &list);
    if (visible->foreign) {
        add(&list, "visible-double",
            "ROCR_VISIBLE_DEVICES=%s and %s=%s are both set: the second counts in what the first "
            "leaves, and together they can leave no GPU; set ROCR_VISIBLE_DEVICES alone",
            getenv("ROCR_VISIBLE_DEVICES"),
            (getenv("HIP_VISIBLE_DEVICES") != NULL) ? "HIP_VISIBLE_DEVICES"
                                                    : "CUDA_VISIBLE_DEVICES",
            (getenv("HIP_VISIBLE_DEVICES") != NULL) ? getenv("HIP_VISIBLE_DEVICES")
                                                    : getenv("CUDA_VISIBLE_DEVICES"));
    }
    if (own->outside) {
        char cores[64];
        cpus_text(allowed, cores, sizeof(cores));
        add(&list, "cores-outside",
            "the cores close to GPU %d are none of those that the launcher allows (%s), so the rank "
            "runs far from its GPU; use --cpu-bind=none and --exclusive, or a mask that fits the map",
            own->gpu, cores);
    }
    if ((per_task != NULL) && (atoi(per_task) > cpus_count(allowed)) &&
        (launch->launcher != NULL) && (strcmp(launch->launcher, "Slurm") == 0)) {
        add(&list, "srun-cpus-per-task",
            "SLURM_CPUS_PER_TASK=%s, but this task got %d processors: srun of Slurm 22.05 and later "
            "does not take it from the job; export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK",
            per_task, cpus_count(allowed));
    }
    check_single_core(launch, own, machine, allowed, &list);
    check_mpich(machine, own, &list);
    check_rendezvous(launch, &list);
    return list.count;
}
