# SPDX-License-Identifier: BSD-3-Clause
"""Every finding: one row. {names} are filled in by the check that finds it."""

from collections import namedtuple

ERROR, WARNING = "error", "warning"

Row = namedtuple("Row", "severity cause remedy")
Finding = namedtuple("Finding", "id severity cause remedy anchor")

DOCS = "docs/use/doctor.md"

TABLE = {
    # Open MPI and UCC
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
    "ucc-not-tuned": Row(
        WARNING,
        "nothing makes UCC prefer {ccl} ({variable} is not set), and it scores its own "
        "transports higher",
        "export {variable}=allreduce:{memory}:inf (and the other collectives), or load "
        "xccl-route/ucc-ccl",
    ),
    "ucc-conf-hides-ccl": Row(
        WARNING,
        "{file} sets UCC_CL_BASIC_TLS={value}, which hides {ccl} from UCC",
        'export UCC_CONFIG_FILE="" (no file is read then)',
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
        "look for an NCCL error above it in the log; types and operations are listed in the "
        "route's page",
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
        "export {variable}=allreduce:{memory}:inf (and the other collectives)",
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
        "use route xccl, or the blocking collective",
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
        "ask for a GPU a rank: --gpus-per-node={ranks}",
    ),
    "ranks-over-gpus": Row(
        WARNING,
        "{ranks} ranks a node, but {gpus} GPUs{mps}: NCCL and RCCL take one rank a GPU",
        "start at most {gpus} ranks a node (NCCL 2.30.3 and later: NCCL_MULTI_RANK_GPU_ENABLE=1)",
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
    ),
    "cores-outside": Row(
        WARNING,
        "the cores close to a GPU are none of those that the launcher allows",
        "use --cpu-bind=none, or a mask that fits the site's map",
    ),
    "not-bound": Row(
        WARNING,
        "{ranks} ranks of a node may all run on any core ({cores}): one that wanders is slow, "
        "and start-up "
        "took minutes where it was seen",
        "start ranks by xccl-run, or with --cpu-bind=cores",
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
        "load craype-accel-… before linking, or preload libmpi_gtl_hsa.so (libmpi_gtl_cuda.so)",
    ),
    "mpich-slow-pointers": Row(
        WARNING,
        "Cray MPICH {mpich} with NVIDIA's driver {driver}: every call asks the driver about "
        "host pointers, slowly",
        "use Cray MPICH 9.2 or later",
    ),
    # libraries
    "ccl-missing": Row(
        ERROR,
        "{file} was not found (looked in: {folders})",
        "load the module of {ccl}, or export XCCL_CCL_LIBRARY=/path/{file}",
    ),
    "ccl-version-slow": Row(
        WARNING,
        "NCCL {version} is about 10 us slower than 2.28 for small messages on a node",
        "use NCCL 2.28 or 2.30, or XCCL_TUNE with a larger threshold",
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
    ),
    "library-damaged": Row(
        ERROR,
        "{file} is truncated or damaged, so it cannot be loaded",
        "install it again (a full disk or a copy that was cut leaves such files)",
    ),
    "plugin-missing": Row(
        ERROR,
        "{ccl} has no network plugin ({file} was not found in: {folders}) and would fall back "
        "to TCP "
        "sockets, 8 to 22 times slower",
        "{remedy}",
    ),
    "plugin-name": Row(
        ERROR,
        "the network plugin is {found}, but {ccl} looks for {file}",
        "export NCCL_NET_PLUGIN={found}, or link it as {file}",
    ),
    "cray-old-libraries": Row(
        WARNING,
        "libraries of the loaded CPE ({folder}) are not on LD_LIBRARY_PATH: the system's older "
        "ones are taken",
        'export LD_LIBRARY_PATH="$CRAY_LD_LIBRARY_PATH:$LD_LIBRARY_PATH"',
    ),
    "cuda-eager": Row(
        WARNING,
        "CUDA_MODULE_LOADING=EAGER loads every kernel of NCCL at start",
        "unset CUDA_MODULE_LOADING (LAZY is the default)",
    ),
    # network
    "net-sockets": Row(
        ERROR,
        "{ccl} fell back to TCP sockets ({interfaces}): {why}",
        "{remedy}",
    ),
    "net-name-unknown": Row(
        ERROR,
        "NCCL_NET={value} names no network: {why}",
        'the plugin is called "AWS Libfabric", OFI or Libfabric; set NCCL_NET or '
        "NCCL_NET_PLUGIN, not both",
    ),
    "net-on-one-node": Row(
        ERROR,
        "NCCL_NET={value} in a job of one node: Slingshot is not configured there and the "
        "plugin does not start",
        "start ranks by xccl-run, which decides by the number of nodes; or unset NCCL_NET, or "
        "srun --network=single_node_vni",
    ),
    "net-interface": Row(
        WARNING,
        "NCCL_SOCKET_IFNAME is not set, so the start of {ccl} may run over the management network",
        "export NCCL_SOCKET_IFNAME={value}",
    ),
    "net-bootstrap": Row(
        WARNING,
        "{ccl} started over {interface}, not over {wanted}",
        "export NCCL_SOCKET_IFNAME={wanted}",
    ),
    "net-storage-port": Row(
        WARNING,
        "{ports} carry storage, not MPI, and would be used by {ccl}",
        "export NCCL_IB_HCA={value}",
    ),
    "ib-timeout": Row(
        ERROR,
        "an InfiniBand transfer timed out",
        "export NCCL_IB_TIMEOUT=50 NCCL_IB_RETRY_CNT=10 UCX_RC_TIMEOUT=4s",
    ),
    "init-slow": Row(
        WARNING,
        "making a communicator of {ranks} ranks took {seconds} s",
        "NCCL 2.28.7 and later start faster; keep CUDA_MODULE_LOADING=LAZY",
    ),
    "mr-cache": Row(
        ERROR,
        "FI_MR_CACHE_MONITOR={value}: the memhooks monitor deadlocks with {ccl}",
        "export FI_MR_CACHE_MONITOR={wanted}",
    ),
    "cxi-host-register": Row(
        ERROR,
        "FI_CXI_DISABLE_HOST_REGISTER is not 1: allocation on the device can deadlock",
        "export FI_CXI_DISABLE_HOST_REGISTER=1",
    ),
    "cxi-queues": Row(
        WARNING,
        "{names} too small or not set: queues overflow at scale",
        "export {values}",
    ),
    "cxi-eager": Row(
        WARNING,
        "{names} not 0: eager transfers ended in hangs",
        "export FI_CXI_RDZV_EAGER_SIZE=0 FI_CXI_RDZV_THRESHOLD=0 FI_CXI_RDZV_GET_MIN=0",
    ),
    "cxi-rendezvous": Row(
        WARNING,
        "FI_CXI_RDZV_PROTO=alt_read has no effect unless the job was started for it",
        "add #SBATCH --network=disable_rdzv_get (or export SLURM_NETWORK=disable_rdzv_get "
        "before sbatch)",
    ),
    "cxi-exhausted": Row(
        ERROR,
        "the NIC ran out of room: {line}",
        "export FI_CXI_DEFAULT_CQ_SIZE=131072 FI_CXI_RX_MATCH_MODE=hybrid (or software)",
    ),
    "cxi-map": Row(
        ERROR,
        "Cray MPICH could not register memory: {line}",
        "export FI_MR_CACHE_MONITOR=userfaultfd FI_CXI_SAFE_DEVMEM_COPY_THRESHOLD=0",
    ),
    "ll128": Row(
        WARNING,
        "NCCL {version} uses the LL128 protocol, which is slow over Slingshot since 2.27",
        "export NCCL_PROTO=^LL128",
    ),
    # machine and job
    "site-gpus": Row(
        WARNING,
        "site {site} says {wanted} GPUs a node; this machine has {found}",
        "name the right site (XCCL_SITE), or correct its site.yaml",
    ),
    "site-numa": Row(
        WARNING,
        "site {site} puts GPU {gpu} on NUMA domain {wanted}; sysfs says {found}",
        "run with --bind hwloc, and correct the site's map",
    ),
    "site-nic": Row(
        WARNING,
        "site {site} gives GPU {gpu} the NIC {nic}, which this machine does not have ({found})",
        "run with --bind hwloc, and correct the site's map",
    ),
    "memlock": Row(
        WARNING,
        "locked memory is limited to {limit} KiB: InfiniBand cannot register buffers",
        "ulimit -l unlimited; ask the site to set it for Slurm "
        "(PropagateResourceLimitsExcept=MEMLOCK)",
    ),
    "shm-small": Row(
        WARNING,
        "/dev/shm holds {size} MiB, which is little for {ranks} ranks",
        "in a container: --shm-size=1g or --ipc=host",
    ),
    "ran-by-mpi": Row(
        WARNING,
        "every rank left collectives on GPU memory to MPI: {why}",
        "{remedy}",
    ),
    "crash-at-end": Row(
        ERROR,
        "a communicator was destroyed after the driver had gone",
        "free communicators before MPI_Finalize, never in a static destructor",
    ),
    "job-failed": Row(
        ERROR,
        "the log is of a job that failed: {line}",
        "look at the log around that line; NCCL_DEBUG=INFO and XCCL_LOG=info make it say more",
    ),
    "run-hung": Row(
        ERROR,
        "the job did not end within {seconds} s",
        "try NCCL_SOCKET_IFNAME={interface} alone, then without the plugin (NCCL_NET=Socket); "
        "XCCL_LOG=info says "
        "where it stands",
    ),
    "run-failed": Row(
        ERROR,
        "the job ended with status {status}: {line}",
        "see the log: {log}",
    ),
    # ranks of a job that hangs, from the files that they wrote
    "hang-call": Row(
        ERROR,
        "{this} as collective {sequence} of communicator {comm}, {others}{more}",
        "make all ranks of a communicator call the same collectives in the same order; look for "
        "a branch before this call that not every rank takes",
    ),
    "hang-root": Row(
        ERROR,
        "{this}, collective {sequence} of communicator {comm}, {others}{more}",
        "pass the same root on every rank",
    ),
    "hang-op": Row(
        ERROR,
        "{this}, collective {sequence} of communicator {comm}, {others}{more}",
        "pass the same operation on every rank",
    ),
    "hang-count": Row(
        ERROR,
        "{this}, collective {sequence} of communicator {comm}, {others}{more}",
        "pass the same amount on every rank, or use the call that ends in v",
    ),
    "hang-type": Row(
        ERROR,
        "{this}, collective {sequence} of communicator {comm}, {others}{more}",
        "pass the same type on every rank",
    ),
    "hang-memory": Row(
        WARNING,
        "{this}, collective {sequence} of communicator {comm}, {others}{more}",
        "MPI allows it, and it is slow at best: pass the same kind of memory on every rank",
    ),
    "hang-path": Row(
        ERROR,
        "{this}, collective {sequence} of communicator {comm}, {others}{more}",
        "set the same XCCL_* variables on every rank; if they are the same, report it to xccl",
    ),
    "hang-cycle": Row(
        ERROR,
        "ranks wait for each other: {chain}",
        "call the collectives of communicators that share ranks in the same order on all of them",
    ),
    "hang-failed": Row(
        ERROR,
        "{ranks} failed in {place} at {time}",
        "look for the message of that rank in the job's output; the others wait for it",
    ),
    "hang-waiting": Row(
        ERROR,
        "{waiting} in collective {sequence} ({call}) of communicator {comm} {since}; {late}",
        "look at the ranks that have not entered it: their stack (gdb -p, py-spy) says where "
        "they are",
    ),
    "hang-unsure": Row(
        WARNING,
        "{waiting} in collective {sequence} ({call}) of communicator {comm} {since}; {late} "
        "(it may be in order: {why})",
        "have all ranks write their files again at one time, some seconds later, and compare",
    ),
    "hang-stuck": Row(
        ERROR,
        "every rank has entered collective {sequence} ({call}) of communicator {comm}, and "
        "{waiting} in it on path {path} {since}",
        "the calls agree, so look at the network and the library below: NCCL_DEBUG=INFO, "
        "xccl-doctor --run",
    ),
    "hang-missing": Row(
        WARNING,
        "{ranks} of {size} left no readable file in {folder}",
        "look whether they still run: a rank that died, or that cannot serve the signal, "
        "writes none",
    ),
    "hang-mixed": Row(
        WARNING,
        "the files are of more than one run ({runs}); the newest, of {size} ranks, was read",
        "give each run a folder of its own",
    ),
    "hang-unreadable": Row(
        WARNING,
        "{file} was left out: {why}",
        "go by the other files; one that ends in the middle is of a rank that died while writing",
    ),
}


def finding(name, **details):
    """The finding of that id with its texts filled in."""
    row = TABLE[name]
    return Finding(
        name,
        row.severity,
        row.cause.format(**details),
        row.remedy.format(**details),
        f"{DOCS}#{name}",
    )
