# SPDX-License-Identifier: BSD-3-Clause
"""Rows of MPI, UCC, GPUs and their ranks, and libraries. {names} are filled in by the check."""

from .rows import ERROR, WARNING, Row

PLUGIN = {
    "path": "correct the path in NCCL_NET_PLUGIN, or unset it: the plugin is then looked for by its usual name",
    "none": "unset NCCL_NET_PLUGIN",
    "module": "module load {module} (else put the folder of aws-ofi-nccl's {wanted} on LD_LIBRARY_PATH)",
    "folder": "put the folder of aws-ofi-nccl's {wanted} on LD_LIBRARY_PATH",
}

TABLE = {
    "ucc-priority": Row(
        WARNING,
        "coll/ucc has priority {priority} and loses against coll/accelerator (78) and "
        "coll/tuned (30)",
        "export OMPI_MCA_coll_ucc_priority=100",
    ),
    "ucc-disabled": Row(
        ERROR,
        "route {route} needs Open MPI to hand collectives to UCC, which is off by default",
        "export OMPI_MCA_coll_ucc_enable=1, or load the module xccl-route/{route}",
    ),
    "ucc-missing": Row(
        ERROR,
        "route {route}: this Open MPI has no coll/ucc component, or libucc is missing ({why}), so MPI serves "
        "every collective itself",
        "load an Open MPI that was built with UCC, and the module of its UCC (ompi_info | grep ucc then lists the "
        "component); or use route xccl, or name it what it is: route mpi",
    ),
    "ucc-other-mpi": Row(
        ERROR,
        "route {route} goes through Open MPI, but the MPI here is {mpi}, which serves every collective itself",
        "load an Open MPI that was built with UCC; or use route xccl, or name it what it is: route mpi",
    ),
    "ucc-silent": Row(
        WARNING,
        "route {route}, but the job's log has no line of {who}: nothing shows that it served a collective",
        "run the job again with UCC_LOG_LEVEL=INFO UCC_COLL_TRACE=INFO, as --run does; if no line comes, MPI or "
        "another transport serves the collectives: OMPI_MCA_coll_ucc_verbose=3 says what coll/ucc does",
    ),
    "ucc-not-tuned": Row(
        WARNING,
        "nothing makes UCC prefer {ccl} ({variable} is not set), and it scores its own "
        "transports higher",
        "export {variable}=allreduce:{memory}:inf (and the other collectives), or load "
        "xccl-route/ucc-ccl",
    ),
    "ucc-conf-hides-ccl": Row(
        WARNING,
        "{file} sets {variable}={value}, which hides {ccl} from UCC",
        'export UCC_CONFIG_FILE="" (no file is read then)',
        meaning="the ucc.conf that UCC reads hides NCCL or RCCL from UCC",
    ),
    "ucc-no-ccl-transport": Row(
        ERROR,
        "UCC in {folder} has no {component}, so route ucc-ccl cannot reach {ccl}",
        "load a UCC built with {ccl} (EasyBuild: the UCC-CUDA module), or use route xccl",
    ),
    "ucc-on-libfabric": Row(
        ERROR,
        "route {route} does not work here: {reason}",
        "use route xccl, which needs no UCC",
    ),
    "ucc-beside-xccl": Row(
        WARNING,
        "UCC is on beside route xccl: two sets of communicators on one GPU can deadlock",
        "export OMPI_MCA_coll_ucc_enable=0, or load xccl-route/xccl",
    ),
    "ucc-fallback": Row(
        WARNING,
        "UCC served {collective} by {used} because {wanted} does not support it (type, "
        "operation, or the "
        "communicator could not be made)",
        "look for an NCCL error above it in the log; UCC's tl_nccl_coll.c lists the types that it serves",
    ),
    "ucc-not-selected": Row(
        ERROR,
        "Open MPI could not give collectives to UCC: {line}",
        "export OMPI_MCA_coll_ucc_priority=100, and let one rank have one GPU",
    ),
    "ucc-mlx5": Row(
        WARNING,
        "UCC's mlx5 transport did not start on some rank, after which UCC has been seen to hang",
        "export UCC_CL_BASIC_TLS=^mlx5",
    ),
    "ucc-other-transport": Row(
        WARNING,
        "route ucc-ccl, but UCC serves collectives on GPU memory by {used}",
        {
            "hidden": "unset {variable}, which is {value} and leaves {lower} out",
            "untuned": "export {variable}=allreduce:{memory}:inf (and the other collectives)",
            "tuned": "{variable} is set here: look in the log for what {transport} says of its start "
            "(UCC_LOG_LEVEL=DEBUG), whether the job had this environment, and whether its UCC has "
            "libucc_tl_{lower}.so",
        },
    ),
    "ucc-tls-without-ccl": Row(
        ERROR,
        "{variable}={value} leaves {ccl} out of what UCC may use, so route ucc-ccl cannot reach it",
        "unset {variable}, or let it name {lower}",
        meaning="a variable of UCC leaves NCCL or RCCL out of what UCC may use, so route ucc-ccl cannot reach it",
    ),
    "hcoll-enabled": Row(
        WARNING,
        "HCOLL ({file}) is called beside UCC unless it is switched off",
        "export OMPI_MCA_coll_hcoll_enable=0",
    ),
    "hpcx-mixed": Row(
        WARNING,
        "HPC-X is loaded ({hpcx}), but libmpi is found in {mpi}: mixing the two crashed from 18 "
        "ranks on",
        "unload one of the two",
    ),
    "nonblocking-on-gpu": Row(
        ERROR,
        "Open MPI's non-blocking collectives (libnbc) touched GPU memory, which they cannot",
        "use route xccl, with xccl-run directly before the program (a wrapper behind it may clear "
        "LD_PRELOAD); or the blocking collective",
    ),
    "mpi-calls-unlike": Row(
        ERROR,
        "Open MPI's non-blocking collectives (libnbc) failed below xccl: {line}; this happens where some ranks pass "
        "device memory and others host memory to one call, or the ranks make different calls",
        "pass the same kind of memory on every rank, or set XCCL_MEMORY=mixed on all of them; with "
        "OMPI_MCA_btl_vader_single_copy_mechanism=none xccl names the ranks",
        meaning="Open MPI's non-blocking collectives (libnbc) failed below xccl, as where ranks pass different kinds "
        "of memory to one call",
    ),
    # GPUs and their ranks
    "gpu-hidden": Row(
        WARNING,
        "each task may use {visible} of the {job} GPUs that the job has on a node "
        "(--gpu-bind=closest, "
        "--gpus-per-task): ranks cannot reach each other's memory",
        "use --gpu-bind=none with --gpus-per-node and start ranks by xccl-run, or add "
        "--gres-flags=allow-task-sharing",
    ),
    "gpu-shared": Row(
        WARNING,
        "{ranks} ranks of a node see {visible} of its GPUs, so several use one",
        {
            "ask": "ask for one GPU per rank: --gpus-per-node={ranks}",
            "unset": "unset {variable} ({value}), and ask for one GPU per rank: --gpus-per-node={ranks}",
        },
        meaning="ranks of a node see fewer of its GPUs than there are ranks, so several use one",
    ),
    "gpu-invisible": Row(
        WARNING,
        "{variable}='{value}' names none of the {gpus} GPUs here, so that programs see none",
        "unset {variable}, or name GPUs by their numbers, as 0,1",
        meaning="a list of visible GPUs names none of the GPUs here, so that programs see none",
    ),
    "ranks-over-gpus": Row(
        WARNING,
        "{ranks} ranks per node, but {gpus} GPUs{mps}: NCCL and RCCL take one rank per GPU",
        "start at most {gpus} ranks per node (NCCL 2.30.3 and later: NCCL_MULTI_RANK_GPU_ENABLE=1), "
        "or MPS",
        meaning="there are more ranks per node than GPUs: NCCL and RCCL take one rank per GPU",
    ),
    "gpu-duplicate": Row(
        ERROR,
        "two ranks of {host} used one GPU ({gpu}): the program picks it before the local rank "
        "is known, "
        "or the launcher gave both the same",
        "start ranks by xccl-run; have the program take XCCL_LOCAL_DEVICE before MPI_Init",
    ),
    "gpu-peer-lost": Row(
        WARNING,
        "ranks of {host} exchange through {via} instead of each other's memory",
        "make every GPU visible to every rank (--gpu-bind=none); unset NCCL_P2P_DISABLE",
    ),
    "visible-double": Row(
        WARNING,
        "{first}={first_value} and {second}={second_value} filter one after the other, and "
        "together can "
        "leave no GPU",
        "set {first} alone; unset {second}",
        meaning="two lists of visible GPUs filter one after the other, and together can leave no GPU",
    ),
    "cores-outside": Row(
        WARNING,
        "the cores close to a GPU are none of those that the launcher allows",
        "use --cpu-bind=none, or a mask that fits the site's map",
    ),
    "cores-single": Row(
        WARNING,
        "a rank has one core, which the network thread of NCCL or RCCL shares with it: small calls "
        "between nodes take milliseconds",
        "give each rank two cores or more (srun --cpus-per-task, mpirun --map-by slot:PE=2 or "
        "--bind-to none)",
    ),
    "not-bound": Row(
        WARNING,
        "{ranks} ranks of a node may all run on any core ({cores}): one that wanders is slow, "
        "and start-up "
        "took minutes where it was seen",
        "start ranks by xccl-run, or with --cpu-bind=cores",
        meaning="ranks of a node may run on any core: one that wanders is slow, and start-up took minutes "
        "where it was seen",
    ),
    "srun-cpus-per-task": Row(
        WARNING,
        "the job asked for --cpus-per-task={value}, and srun of Slurm 22.05 and later does not "
        "take that over",
        "export SRUN_CPUS_PER_TASK={value}",
    ),
    "nic-policy": Row(
        WARNING,
        "MPICH_OFI_NIC_POLICY={policy} does not fit: {why}",
        "export MPICH_OFI_NIC_POLICY=GPU with MPICH_GPU_SUPPORT_ENABLED=1, or bind ranks to a "
        "NUMA domain",
    ),
    "single-copy-none": Row(
        WARNING,
        "with MPICH_SMP_SINGLE_COPY_MODE=NONE the start of RCCL hung on 3000 nodes",
        "unset MPICH_SMP_SINGLE_COPY_MODE",
    ),
    "mpich-not-gpu-aware": Row(
        WARNING,
        "Cray MPICH crashes on GPU buffers unless MPICH_GPU_SUPPORT_ENABLED=1",
        "export MPICH_GPU_SUPPORT_ENABLED=1 and link the GTL library",
    ),
    "gtl-missing": Row(
        ERROR,
        "MPICH_GPU_SUPPORT_ENABLED=1, but the program is not linked with the GTL library",
        "load craype-accel-… before linking (for xccl-perf and xccl-tune: before building xccl), preload "
        "libmpi_gtl_hsa.so (libmpi_gtl_cuda.so), or set MPICH_GPU_SUPPORT_ENABLED=0 and let xccl stage",
    ),
    "mpich-slow-pointers": Row(
        WARNING,
        "Cray MPICH {mpich} with NVIDIA's driver {driver}: every call asks the driver about "
        "host pointers, slowly",
        "use Cray MPICH 9.2 or later",
    ),
    # MPI and its launcher
    "mpi-other-launcher": Row(
        ERROR,
        "{what}: an application of one MPI was started by the launcher of another, and each "
        "process is a job of its own",
        "start it with the mpirun of the MPI that it was built with (xccl-doctor --app PROGRAM says "
        "which that is), or with srun",
        meaning="an application of one MPI was started by the launcher of another, and each process is a "
        "job of its own",
    ),
    "mpirun-other": Row(
        WARNING,
        "{mpirun} is the launcher of {launcher}, but {what} {mpi}: each process would be a job of "
        "its own",
        "load one MPI only, or name its mpirun with the path",
        meaning="the mpirun that would be used is of another MPI than the program or the MPI library: each "
        "process would be a job of its own",
    ),
    "mpi-no-pmi": Row(
        ERROR,
        "{what}, so each process of Open MPI is a job of its own",
        "srun --mpi=pmix (srun --mpi=list shows what there is; SLURM_MPI_TYPE sets it), or start it "
        "with mpirun",
        meaning="srun started Open MPI without PMIx or PMI, so each process is a job of its own",
    ),
    "program-own-mpi": Row(
        ERROR,
        "{program} has an MPI library inside (libmpi.a or libmpich.a): its calls go to that one, do not reach xccl, "
        "and crash with device memory if it is not GPU-aware",
        "link it with MPI's shared library (libmpi.so, libmpich.so) in place of the static one",
        meaning="the program is linked dynamically, but has an MPI library inside (libmpi.a or libmpich.a): its calls "
        "go to that one, do not reach xccl, and crash with device memory if it is not GPU-aware. The program's symbols "
        "tell it, so it is not known of a program without symbols (strip)",
    ),
    "program-static": Row(
        ERROR,
        "{program} is linked statically, so LD_PRELOAD does not reach it: MPI's calls do not reach xccl",
        "link it with MPI's shared library: without -static (Cray's compilers: CRAYPE_LINK_TYPE=dynamic)",
        meaning="the program is linked statically, so LD_PRELOAD does not reach it: MPI's calls do not reach xccl",
    ),
    "preload-missing": Row(
        ERROR,
        "LD_PRELOAD names {file}, {why}; the loader goes on without it",
        "unset LD_PRELOAD (xccl-run preloads xccl by itself), or correct the path",
    ),
    "preload-other": Row(
        WARNING,
        "LD_PRELOAD names {file}, but this xccl-doctor belongs to another installation ({prefix}), so what it says of "
        "xccl need not hold for programs with that preload",
        "load one module of xccl only, or unset LD_PRELOAD (xccl-run preloads its own); to check that installation, "
        "use the xccl-doctor in its bin",
    ),
    "preload-lost": Row(
        ERROR,
        "{who}, but {what}: MPI's calls do not reach xccl",
        "look for what clears LD_PRELOAD between xccl-run and the program (a wrapper, env -i, a "
        "container, sudo), and put xccl-run directly before the program",
        meaning="xccl is not loaded into the program, though it was to be: MPI's calls do not reach xccl",
    ),
    # libraries
    "driver-old": Row(
        ERROR,
        "{ccl} was built with CUDA {cuda}, which needs NVIDIA's driver {least} or later; this is "
        "{driver}",
        "load an NCCL built with an older CUDA, or have the driver updated",
        meaning="NCCL was built with a CUDA that needs a newer driver of NVIDIA's than the one here",
    ),
    "driver-insufficient": Row(
        ERROR,
        "a program or library needs a newer CUDA driver than a node of the job has, or it ran in a container "
        "that does not see the driver",
        "load an older CUDA (nvidia-smi names the newest one that the driver serves), or have the driver "
        "updated; in a container, add --nv",
    ),
    "driver-call": Row(
        ERROR,
        "a program or library makes a call of CUDA's that the driver does not have: the driver is older than its CUDA, "
        "or simulated (the simulated accelerator has CUDA's driver API only)",
        "load an older CUDA, or have the driver updated; on the simulated accelerator, run a program that uses "
        "the driver API or HIP, such as share/doc/xccl/docs/examples",
    ),
    "ccl-missing": Row(
        ERROR,
        "{file} was not found (looked in: {folders})",
        "load the module of {ccl}, or export XCCL_CCL_LIBRARY=/path/{wanted}",
        meaning="the vendor's library was not found",
    ),
    "file-missing": Row(
        WARNING,
        "{variable}={value} names no file, so {ccl} goes on without it or ends",
        "unset {variable}, or name a file that is there",
        meaning="a variable names a file for NCCL or RCCL that is not there",
    ),
    "ccl-file-missing": Row(
        ERROR,
        "XCCL_CCL_LIBRARY names {file}, which is not there: no vendor's library is used",
        "correct the path; or unset the variable: the library that the loader finds is then used",
    ),
    "ccl-refused": Row(
        ERROR,
        "the file that XCCL_CCL_LIBRARY names is not used: {why}",
        "unset XCCL_CCL_LIBRARY where the vendor's module is loaded, or correct it",
    ),
    "ccl-version-slow": Row(
        WARNING,
        "NCCL {version} is about 10 us slower than 2.28 for small messages on a node",
        "use NCCL 2.28 or 2.30, or have another path carry small calls (XCCL_TUNE)",
    ),
    "ccl-mismatch": Row(
        ERROR,
        "ranks loaded different versions of the vendor's library: {versions}",
        "load one module on all nodes; a Python wheel brings its own: export XCCL_CCL_LIBRARY",
    ),
    "interposer-missing": Row(
        ERROR,
        "no interposer for {family} in {folder}: xccl was built without it",
        "install xccl built with that MPI",
    ),
    "library-broken": Row(
        ERROR,
        "{file} cannot be loaded: it needs {missing}",
        "put the folder of {missing} on LD_LIBRARY_PATH (load its module)",
        meaning="a library cannot be loaded, because another that it needs is missing",
    ),
    "library-damaged": Row(
        ERROR,
        "{file} is truncated, damaged or no library, so it cannot be loaded",
        "name another file, or install it again (a full disk or a copy that was cut leaves such files)",
        meaning="a file that is to be loaded is truncated, damaged or no library",
    ),
    "plugin-missing": Row(
        ERROR,
        "{ccl} has no network plugin ({why}) and would {effect}",
        PLUGIN,
        meaning="NCCL or RCCL has no network plugin, and one was asked for or the network needs it",
    ),
    "plugin-none": Row(
        WARNING,
        "{ccl} found no network plugin ({file}), and no line says over which network it went: over "
        "Slingshot or EFA that is TCP, several times slower; InfiniBand needs no plugin",
        {
            key: text + "; with NCCL_DEBUG=INFO the line 'Using network' names the network"
            for key, text in PLUGIN.items()
        },
        meaning="NCCL or RCCL found no network plugin, and no line of the log says over which network it "
        "went: over Slingshot or EFA that is TCP, several times slower; InfiniBand needs no plugin",
    ),
    "plugin-abi": Row(
        ERROR,
        "the network plugin was made for another version of {ccl}: {line}",
        "install aws-ofi-nccl of the same year as {ccl} (1.18 and later serve RCCL, too), or unset "
        "NCCL_NET_PLUGIN",
    ),
    "plugin-failed": Row(
        ERROR,
        "the network plugin of {ccl} was found, but did not start: {line}",
        {
            "needed": "put the folder of {needed} on LD_LIBRARY_PATH",
            "old": "{needed} is too old for the plugin: put the folder of the {needed_name} that it was built with "
            "first on LD_LIBRARY_PATH",
            "provider": "fi_info -p {provider} shows whether libfabric has it: put that libfabric first on "
            "LD_LIBRARY_PATH, unset FI_PROVIDER, or load the site's plugin module",
        },
    ),
    "plugin-provider": Row(
        ERROR,
        "the network plugin of {ccl} goes over libfabric's provider {provider}, not over {wanted}, "
        "which the ports {ports} need",
        "unset FI_PROVIDER or export FI_PROVIDER={wanted}; put the libfabric with that provider first "
        "on LD_LIBRARY_PATH (fi_info -p {wanted} shows it)",
    ),
    "plugin-name": Row(
        ERROR,
        "the network plugin is {found}, but {ccl} looks for {file}",
        "export NCCL_NET_PLUGIN={found}, or link it as {file}",
    ),
    "cray-old-libraries": Row(
        WARNING,
        "libraries of the loaded CPE ({folder}) are not on LD_LIBRARY_PATH: {instead}",
        'export LD_LIBRARY_PATH="$CRAY_LD_LIBRARY_PATH:$LD_LIBRARY_PATH"',
        meaning="libraries of the loaded CPE are not on LD_LIBRARY_PATH, and older ones are taken",
    ),
    "cuda-eager": Row(
        WARNING,
        "CUDA_MODULE_LOADING=EAGER loads every kernel of NCCL at start",
        "unset CUDA_MODULE_LOADING (LAZY is the default)",
    ),
    "launch-blocking": Row(
        WARNING,
        "{variable}={value} makes the program wait for every kernel and copy that it starts",
        "unset {variable}: it is for debugging",
        meaning="a variable for debugging makes the program wait for every kernel and copy that it starts",
    ),
}
