# SPDX-License-Identifier: BSD-3-Clause
"""Faults that people plant without meaning to, each beside what looks like it and is in order."""

from collections import namedtuple

Fault = namedtuple("Fault", "id site broken healthy remedy")

STEP = {"SLURM_STEP_ID": "0", "SLURM_NTASKS": "8", "SLURM_NTASKS_PER_NODE": "4"}
PRELOAD = {"LD_PRELOAD": "/opt/lib/libxccl-mpi.so"}
NODES = "n1:1:1 [0] NCCL INFO ncclCommInitRank comm 0x1 rank 0 nranks 2 cudaDev 0 busId 10\n"
NODES += "n2:1:1 [0] NCCL INFO ncclCommInitRank comm 0x1 rank 1 nranks 2 cudaDev 0 busId 10\n"
SOCKETS = "n1:1:1 [0] NCCL INFO Using network Socket\n" + NODES
INFO = "n1:1:1 [0] NCCL INFO "
INITIALIZED = (
    "n1:{1}:1 [0] NCCL INFO ncclCommInitRank comm 0x1 rank {0} nranks 2 cudaDev {2} busId {3}\n"
)
SHARED = "xccl-run: warning [gpu-shared]: 2 ranks see only 1 of this node's 8 GPUs (CUDA_VISIBLE_DEVICES), so "
SHARED += "several would use one; ask for a GPU per rank, e.g. --gpus-per-node=2\n"
NO_RCCL_NET = "NET/Plugin : No plugin found (librccl-net.so), using internal implementation\n"
LOADER = "ERROR: ld.so: object '/opt/gone.so' from LD_PRELOAD cannot be preloaded {}\n"
MIXED = "passes host memory (or memory that it has freed) to allreduce, and rank 0 device memory in the same call; "
MIXED += "pass the same kind of memory on all ranks, or set XCCL_MEMORY=mixed on all of them\n"
CRASH = "[n1:07156] Signal: Aborted (6)\n[n1:07156] [ 8] /opt/openmpi/mca_coll_libnbc.so(+0x8109)[0x7fd5695e3109]\n"
CRASH += "[n1:07156] [12] {}\n"
LIBFABRIC = INFO + "NET/OFI Initializing aws-ofi-nccl 1.19.2\n"


def env(**values):
    """Set variables; None removes one."""

    def change(world):
        for name, value in values.items():
            if value is None:
                world.env.pop(name, None)
            else:
                world.env[name] = value

    return change


def nothing(_world):
    pass


def ucc(**values):
    def change(world):
        world.route_ucc_ccl()
        env(**values)(world)

    return change


def ucc_file(text, path="home/user/ucc.conf", **values):
    def change(world):
        ucc(UCC_CONFIG_FILE=None, **values)(world)
        world.file(path, text)

    return change


def log(text, **values):
    def change(world):
        env(**values)(world)
        world.file("job.log", text)
        world.options += ["--log", str(world.root / "job.log")]

    return change


def ucc_log(text, **values):
    def change(world):
        ucc(**values)(world)
        log(text)(world)

    return change


def driver(release, cuda):
    """NVIDIA's driver, and an NCCL that carries the version of its CUDA."""

    def change(world):
        world.file("proc/driver/nvidia/version", f"NVRM version: NVIDIA x86_64  {release}\n")
        world.library("libnccl.so.2.28.3", f"NCCL version 2.28.3+cuda{cuda}\n")

    return change


def mounts(*sizes):
    def change(world):
        lines = [f"tmpfs /dev/shm tmpfs rw,nosuid,size={size}k 0 0\n" for size in sizes]
        world.file("proc/mounts", "".join(lines))

    return change


def mounted(*lines):
    """Below a large /dev/shm: what /proc/mounts says else."""

    def change(world):
        world.shm(1 << 24)
        before = (world.root / "proc/mounts").read_text()
        world.file("proc/mounts", before + "".join(f"{line} 0 0\n" for line in lines))

    return change


def mca_file(text, **values):
    def change(world):
        ucc(OMPI_MCA_coll_ucc_enable=None, **values)(world)
        world.file("home/user/.openmpi/mca-params.conf", text)

    return change


def by_mpirun(job, rank, size):
    names = {"SIZE": size, "LOCAL_SIZE": size, "LOCAL_RANK": rank}
    variables = {f"OMPI_COMM_WORLD_{name}": str(value) for name, value in names.items()}
    return {"PMIX_NAMESPACE": job, **variables}


def by_srun(job, rank, size):
    step = {"SLURM_JOB_ID": job, "SLURM_STEP_ID": "0", "SLURM_NTASKS_PER_NODE": str(size)}
    return {
        **step,
        "SLURM_LOCALID": str(rank),
        "PMI_RANK": "0",
        "XCCL_LOCAL_DEVICE": "0",
        **PRELOAD,
    }


def ranks(launcher, variable, *values, **more):
    """Seen from the last rank of a node: each has its own value, which a script sets for its program."""

    def change(world):
        for rank, value in enumerate(values):
            own = launcher("1", rank, len(values))
            world.process(1000 + 2 * rank, own)
            world.process(1001 + 2 * rank, {**own, **more, variable: value})
            other = launcher("2", rank + len(values), len(values))
            world.process(2000 + rank, {**other, variable: "7"})
        world.env.update(own, **more, **{variable: values[-1]})

    return change


def mpirun(text, path="/usr/bin"):
    """A launcher on PATH that says in its text whose it is."""

    def change(world):
        world.env["PATH"] = path
        world.file(path.lstrip("/") + "/mpirun", text)
        (world.root / path.lstrip("/") / "mpirun").chmod(0o755)

    return change


def mpich_found(world):
    world.library("libmpi.so.12")
    world.remove("opt/lib/libmpi.so.40")


def openmpi_found(world):
    world.library("libmpi.so.40")
    world.remove("opt/lib/libmpi_gnu_123.so.12")


def plugin(world):
    world.library("libnccl-net-ofi.so")


def another_release(world):
    world.library("libxccl-mpi.so", folder="opt/xccl-0.0.1/lib")
    world.link("opt/xccl", world.prefix)


def a_file(world):
    """In place of a folder."""
    world.file("opt/dumps", "no folder\n")


def another_file(world):
    world.file("opt/lib/libnccl-net-ofi.so", "no library\n")


def together(*changes):
    def change(world):
        for one in changes:
            one(world)

    return change


def gpus(world):
    world.remove("sys/bus/pci/devices")


def planted(names, site, broken, healthy, remedy=""):
    return [Fault(name, site, broken, healthy, remedy) for name in names.split()]


FAULTS = [
    # names of ports and interfaces
    *planted(
        "net-hca-unknown",
        "juwels-booster",
        env(NCCL_IB_HCA="mlx5_8,mlx5_9"),
        env(NCCL_IB_HCA="mlx5_0:1,mlx5_9"),
        "unset NCCL_IB_HCA",
    ),
    *planted(
        "net-hca-unknown",
        "juwels-booster",
        env(NCCL_IB_HCA="=mlx5"),
        env(NCCL_IB_HCA="mlx5"),
    ),
    *planted(
        "net-hca-unknown",
        "dgx-a100",
        env(NCCL_IB_HCA="^mlx5"),
        env(NCCL_IB_HCA="=mlx5_0,mlx5_1,mlx5_2,mlx5_3,mlx5_6,mlx5_7,mlx5_8,mlx5_9"),
        "export NCCL_IB_HCA==mlx5_0,mlx5_1",
    ),
    *planted(
        "net-hca-unknown",
        "juwels-booster",
        log(INFO + "NCCL_IB_HCA set to mlx5_9\n" + INFO + "NET/IB : No device found.\n" + SOCKETS),
        log(INFO + "NCCL_IB_HCA set to mlx5_0\n" + INFO + "Using network IB\n" + NODES),
        "unset NCCL_IB_HCA",
    ),
    *planted(
        "net-interface-wrong",
        "juwels-booster",
        env(NCCL_SOCKET_IFNAME="lo"),
        env(NCCL_SOCKET_IFNAME="lo", SLURM_JOB_NUM_NODES="1"),
        "export NCCL_SOCKET_IFNAME=ib0",
    ),
    *planted(
        "net-interface-wrong",
        "juwels-booster",
        env(NCCL_SOCKET_IFNAME="bond0"),
        env(NCCL_SOCKET_IFNAME="ib"),
        "export NCCL_SOCKET_IFNAME=ib0",
    ),
    *planted(
        "net-interface-wrong",
        "juwels-booster",
        env(NCCL_SOCKET_IFNAME="=eth"),
        env(NCCL_SOCKET_IFNAME="^lo,eth"),
    ),
    *planted(
        "net-interface-wrong",
        "juwels-booster",
        log("n1:1:1 [0] NCCL WARN Bootstrap : no socket interface found\n", NCCL_SOCKET_IFNAME="ib1"),
        log(INFO + "Bootstrap: Using ib0:192.0.2.2<0>\n"),
        "export NCCL_SOCKET_IFNAME=ib0",
    ),
    *planted(
        "net-interface-wrong",
        "juwels-booster",
        log(INFO + "Bootstrap: Using lo:127.0.0.1<0>\n" + NODES),
        log(INFO + "Bootstrap: Using lo:127.0.0.1<0>\n"),
    ),
    # NCCL compares names of networks without regard to case
    *planted(
        "net-name-unknown",
        "juwels-booster",
        env(NCCL_NET="IBB"),
        env(NCCL_NET="ib"),
        "set NCCL_NET or NCCL_NET_PLUGIN, not both",
    ),
    *planted(
        "net-leftover",
        "juwels-booster",
        env(NCCL_NET="socket"),
        env(NCCL_NET="socket", SLURM_JOB_NUM_NODES="1"),
        "unset NCCL_NET",
    ),
    # what the system gave too little of, as NCCL and libibverbs say it
    *planted(
        "shm-full",
        "juwels-booster",
        log(
            "n1:1:1 [0] misc/shmutils.cc:72 NCCL WARN Error: failed to extend /dev/shm/nccl-Ub to 9637892 bytes\n"
            "n1:1:1 [0] misc/shmutils.cc:113 NCCL WARN Error while creating shared memory segment /dev/shm/nccl-Ub "
            "(size 9637888), error: No space left on device (28)\n"
        ),
        log(INFO + "Channel 00 : 0[0] -> 1[1] via P2P/CUMEM\n"),
        "--shm-size=1g",
    ),
    *planted(
        "memlock",
        "juwels-booster",
        log(
            "libibverbs: Warning: RLIMIT_MEMLOCK is 65536 bytes.\n"
            "    This will severely limit memory registrations.\n" + INFO + "Using network IB\n"
        ),
        log(INFO + "Using network IB\n"),
        "ulimit -l unlimited",
    ),
    *planted(
        "ib-timeout",
        "juwels-booster",
        log(
            "n1:1:1 [0] NCCL WARN NET/IB: Got completion from peer 10.0.0.2<5> with status=IBV_WC_RETRY_EXC_ERR(12) "
            "opcode=IBV_WC_SEND(0) reqSize=0 vendor_err=129 req_type=Send hca mlx5_5\n"
        ),
        log(INFO + "NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB ib0:10.0.0.1<0>\n"),
        "NCCL_IB_TIMEOUT=22",
    ),
    *planted(
        "ib-timeout",
        "juwels-booster",
        log(
            "[1700000000.000000] [n1:1:0] ib_mlx5_log.c:177 UCX  ERROR Transport retry count exceeded on "
            "mlx5_0:1/IB (synd 0x15 vend 0x81 hw_synd 0/0)\n"
        ),
        log(INFO + "NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB ib0:10.0.0.1<0>\n"),
        "UCX_RC_TIMEOUT",
    ),
    # what failed in the library, where no check knows it
    *planted(
        "ccl-said",
        "juwels-booster",
        log("n1:1:1 [0] NCCL WARN Cuda failure 802 'system not yet initialized'\n"),
        log("n1:1:1 [0] NCCL WARN NUMA auto balancing enabled\n"),
        "NCCL_DEBUG=INFO",
    ),
    # what was left set
    *planted(
        "net-leftover",
        "juwels-booster",
        env(NCCL_IB_DISABLE="1", NCCL_ALGO="Ring"),
        env(NCCL_IB_DISABLE="0"),
        "unset NCCL_IB_DISABLE NCCL_ALGO",
    ),
    *planted("net-leftover", "dgx-h100", env(NCCL_NVLS_ENABLE="0"), env(NCCL_NVLS_ENABLE="2")),
    *planted("net-leftover", "dgx-h100", env(NCCL_SHM_DISABLE="1"), env(NCCL_SHM_DISABLE="0")),
    *planted("net-leftover", "alps", env(NCCL_PROTO="Simple"), env(NCCL_PROTO="^LL128")),
    *planted(
        "net-leftover",
        "juwels-booster",
        env(NCCL_NET="Socket"),
        env(NCCL_NET="Socket", SLURM_JOB_NUM_NODES="1"),
    ),
    # UCC
    *planted(
        "ucc-tls-without-ccl",
        "juwels-booster",
        ucc(UCC_CL_BASIC_TLS="ucp,cuda"),
        ucc(UCC_CL_BASIC_TLS="ucp,nccl"),
        "unset UCC_CL_BASIC_TLS",
    ),
    *planted("ucc-tls-without-ccl", "juwels-booster", ucc(UCC_TLS="^nccl"), ucc(UCC_TLS="all")),
    *planted(
        "ucc-conf-hides-ccl",
        "juwels-booster",
        ucc_file("UCC_CL_BASIC_TLS=^sharp,nccl\n"),
        ucc_file("UCC_CL_BASIC_TLS=^sharp,nccl\n", UCC_CL_BASIC_TLS="all"),
        'UCC_CONFIG_FILE=""',
    ),
    *planted(
        "ucc-conf-hides-ccl",
        "juwels-booster",
        together(ucc_file("UCC_TLS = ucp\n", "opt/my.conf"), env(UCC_CONFIG_FILE="/opt/my.conf")),
        together(ucc_file("UCC_TLS = ucp\n"), env(UCC_CONFIG_FILE="")),
    ),
    *planted(
        "ucc-other-transport",
        "juwels-booster",
        ucc_log("UCC INFO Cuda: {0..inf}:TL_UCP:10\n"),
        ucc_log("UCC INFO Cuda: {0..inf}:TL_NCCL:inf\n"),
        "UCC_TL_NCCL_TUNE is set here: look in the log",
    ),
    *planted(
        "ucc-not-tuned",
        "juwels-booster",
        ucc(UCC_TL_NCCL_TUNE=None),
        ucc_file("UCC_TL_NCCL_TUNE=allreduce:cuda:inf\n", UCC_TL_NCCL_TUNE=None),
    ),
    *planted(
        "ucc-disabled",
        "juwels-booster",
        mca_file("# coll_ucc_enable = 1\ncoll_ucc_enable = 0\n"),
        mca_file("coll_ucc_enable = 1\n"),
    ),
    # MPI and its launcher
    *planted(
        "mpi-other-launcher",
        "dgx-a100",
        together(
            mpich_found, env(OMPI_COMM_WORLD_SIZE="4", OMPI_COMM_WORLD_LOCAL_SIZE="4")
        ),
        env(OMPI_COMM_WORLD_SIZE="4", OMPI_COMM_WORLD_LOCAL_SIZE="4"),
        "the mpirun of the MPI that it was built with",
    ),
    *planted(
        "mpi-other-launcher",
        "dgx-a100",
        env(PMI_SIZE="4", MPI_LOCALNRANKS="4"),
        together(mpich_found, env(PMI_SIZE="4", MPI_LOCALNRANKS="4")),
    ),
    *planted(
        "mpi-other-launcher",
        "dgx-a100",
        log("hello from rank 0 of 1\n" * 4),
        log("hello from rank 0 of 4\nxccl[0] info: hello\n"),
    ),
    *planted(
        "mpi-other-launcher",
        "dgx-a100",
        log("# xccl-perf 0.1.0, 1 rank(s), MPICH Version: 4.0.2\n" * 2),
        log("# xccl-perf 0.1.0, 2 rank(s), MPICH Version: 4.0.2\n"),
    ),
    *planted(  # with -n 1, as one starts this tool
        "mpi-other-launcher",
        "dgx-a100",
        together(
            mpich_found, env(OMPI_COMM_WORLD_SIZE="1", OMPI_COMM_WORLD_LOCAL_SIZE="1")
        ),
        env(OMPI_COMM_WORLD_SIZE="1", OMPI_COMM_WORLD_LOCAL_SIZE="1"),
    ),
    *planted(
        "mpirun-other",
        "dgx-a100",
        mpirun("HYDRA build details"),
        mpirun("libopen-rte.so.40 (these features are supported)"),
        "load one MPI only",
    ),
    *planted(
        "mpi-no-pmi",
        "juwels-booster",
        env(**STEP),
        env(**STEP, PMIX_NAMESPACE="slurm.1"),
        "srun --mpi=pmix",
    ),
    *planted(
        "mpi-no-pmi",
        "juwels-booster",
        log('The application appears to have been direct launched using "srun",\n'),
        log("xccl[0] info: hello\n"),
    ),
    *planted(
        "preload-lost",
        "juwels-booster",
        env(**STEP, PMIX_RANK="0", XCCL_LOCAL_DEVICE="0"),
        env(**STEP, PMIX_RANK="0", XCCL_LOCAL_DEVICE="0", **PRELOAD),
        "clears LD_PRELOAD",
    ),
    *planted(
        "preload-lost",
        "juwels-booster",
        env(LOADEDMODULES="xccl/0.1.0:xccl-auto/0.1.0"),
        env(LOADEDMODULES="xccl/0.1.0:xccl-auto/0.1.0", **PRELOAD),
    ),
    *planted(
        "preload-other",
        "juwels-booster",
        together(another_release, env(LD_PRELOAD="/opt/xccl-0.0.1/lib/libxccl-mpi.so")),
        together(another_release, env(LD_PRELOAD="/opt/xccl/lib/libxccl-mpi.so")),
        "the xccl-doctor in its bin",
    ),
    *planted(
        "xccl-root",
        "juwels-booster",
        together(another_release, env(XCCL_ROOT="/opt/xccl-0.0.1")),
        together(another_release, env(XCCL_ROOT="/opt/xccl/")),
        "unset XCCL_ROOT",
    ),
    *planted(
        "xccl-root",
        "juwels-booster",
        env(XCCL_ROOT="/opt/none"),
        together(lambda w: w.file("opt/view/lib/x"), lambda w: w.link("opt/view/lib/libxccl-mpi.so",
                 w.prefix / "lib/libxccl-mpi.so"), env(XCCL_ROOT="/opt/view")),
    ),
    # what ranks write
    *planted(
        "xccl-unwritable",
        "juwels-booster",
        env(XCCL_LOG_FILE="/opt/logs/%h.%p.log"),
        env(XCCL_LOG_FILE="/opt/%h.%p.log"),
        "make the folder",
    ),
    *planted(
        "xccl-unwritable",
        "juwels-booster",
        together(lambda w: w.file("opt/profile.json/x"), env(XCCL_PROFILE="/opt/profile.json")),
        env(XCCL_PROFILE="/opt/lib/profile.json"),
    ),
    *planted(
        "xccl-unwritable",
        "juwels-booster",
        together(a_file, env(XCCL_DUMP_DIR="/opt/dumps")),
        together(a_file, env(XCCL_DUMP_DIR="/opt", XCCL_PROFILE="1")),
    ),
    # GPUs
    *planted(
        "gpu-shared",
        "frontier",
        env(SLURM_NTASKS_PER_NODE="8", SLURM_GPUS_ON_NODE="8", HIP_VISIBLE_DEVICES="0"),
        env(SLURM_NTASKS_PER_NODE="8", HIP_VISIBLE_DEVICES="0,1,2,3,4,5,6,7"),
        "unset HIP_VISIBLE_DEVICES",
    ),
    *planted(
        "gpu-shared",
        "dgx-a100",
        ranks(by_mpirun, "CUDA_VISIBLE_DEVICES", "0", "0", "0", "0"),
        ranks(by_mpirun, "CUDA_VISIBLE_DEVICES", "0", "1", "2", "3"),
        "unset CUDA_VISIBLE_DEVICES",
    ),
    *planted(
        "gpu-shared",
        "dgx-a100",
        ranks(by_mpirun, "CUDA_VISIBLE_DEVICES", "GPU-1a", "GPU-2b", "GPU-1a", "GPU-2b"),
        ranks(by_mpirun, "CUDA_VISIBLE_DEVICES", "GPU-1a", "GPU-2b", "GPU-3c", "GPU-4d"),
    ),
    *planted(
        "gpu-shared",
        "frontier",
        ranks(by_srun, "ROCR_VISIBLE_DEVICES", "4", "4"),
        ranks(by_srun, "ROCR_VISIBLE_DEVICES", "4", "5"),
        "unset ROCR_VISIBLE_DEVICES",
    ),
    *planted(  # device 0 of each rank, which is another GPU
        "gpu-shared",
        "frontier",
        ranks(by_srun, "ROCR_VISIBLE_DEVICES", "4", "4", HIP_VISIBLE_DEVICES="0"),
        ranks(by_srun, "ROCR_VISIBLE_DEVICES", "4", "5", HIP_VISIBLE_DEVICES="0"),
    ),
    *planted(
        "gpu-shared",
        "dgx-a100",
        log(SHARED + INITIALIZED.format(0, 1, 0, "10")),
        log(SHARED + INITIALIZED.format(0, 1, 0, "10") + INITIALIZED.format(1, 2, 0, "20")),
    ),
    *planted("shm-small", "dgx-a100", mounts(1 << 24, 65536), mounts(65536, 1 << 24)),
    *planted(
        "shm-unusable",
        "dgx-a100",
        mounted("shm /dev/shm tmpfs ro,nosuid,size=16777216k"),
        mounted("/dev/vda / ext4 ro,relatime", "shm /dev/shm tmpfs rw,errors=remount-ro", "x /tmp tmpfs rw"),
        "--ipc=host",
    ),
    *planted(
        "tmp-unusable",
        "dgx-a100",
        mounted("overlay / overlay ro,relatime", "shm /dev/shm tmpfs rw,nosuid"),
        together(mounted("overlay / overlay ro,relatime", "shm /dev/shm tmpfs rw", "x /scratch lustre rw"),
                 env(TMPDIR="/scratch/me")),
        "export TMPDIR=FOLDER",
    ),
    *planted(
        "tmp-unusable",
        "dgx-a100",
        together(mounted("x /scratch lustre ro"), env(TMPDIR="/scratch/me")),
        together(mounted("x /scratch lustre ro", "y /tmp tmpfs rw"), env(TMPDIR="")),
    ),
    *planted(
        "driver-old",
        "dgx-a100",
        driver("535.129.03", "13.0"),
        driver("535.129.03", "12.2"),
        "built with an older CUDA",
    ),
    *planted(
        "driver-old",
        "dgx-a100",
        log(INFO + "cudaDriverVersion 12040\n" + INFO + "NCCL version 2.28.3+cuda13.0\n"),
        log(INFO + "cudaDriverVersion 13000\n" + INFO + "NCCL version 2.28.3+cuda13.0\n"),
    ),
    *planted(
        "driver-insufficient",
        "dgx-a100",
        log("CUDA error: CUDA driver version is insufficient for CUDA runtime version\n"),
        log(INFO + "NCCL version 2.28.3+cuda12.4\n"),
        "add --nv",
    ),
    *planted(
        "driver-old",
        "dgx-a100",
        log(INFO + "NCCL version 2.28.3+cuda13.0\nCUDA driver version is insufficient for CUDA runtime version\n"),
        log(INFO + "cudaDriverVersion 13000\n" + INFO + "NCCL version 2.28.3+cuda13.0\n"),
    ),
    *planted(
        "driver-call",
        "dgx-a100",
        log("cudaMalloc: API call is not supported in the installed CUDA driver\n"),
        log(INFO + "NCCL version 2.28.3+cuda12.4\n"),
        "the driver API or HIP",
    ),
    *planted("no-gpu", "generic-nvidia", gpus, log("xccl[0] info: hello\n"),
             "srun -N 1 -n 1 --gpus-per-node=1 xccl-doctor"),
    *planted("no-gpu", "juwels-booster", gpus, log("xccl[0] info: hello\n"), "-n 1 --gres=gpu:4 xccl-doctor"),
    *planted("no-gpu", "lumi-g", gpus, log("xccl[0] info: hello\n"), "-n 1 --gpus-per-node=8 xccl-doctor"),
    *planted(
        "memory-mixed",
        "juwels-booster",
        log("[n1:0867] *** xccl: rank 1 of MPI_COMM_WORLD " + MIXED),
        log("xccl[0] info: hello\n"),
        "set XCCL_MEMORY=mixed on all of them",
    ),
    *planted(
        "mpi-calls-unlike",
        "juwels-booster",
        log("MPI Error in NBC subrequest 0x55f8645c6700 : 15\n"),
        log("xccl[0] info: hello\n"),
        "set XCCL_MEMORY=mixed on all of them",
    ),
    *planted(
        "mpi-calls-unlike",
        "dgx-a100",
        log(CRASH.format("/opt/lib/xccl/libxccl-mpi-openmpi.so(+0x1f9c0)[0x7fd571f509c0]")),
        log(CRASH.format("/opt/lib/xccl/libxccl-mpi-openmpi.so(+0x1f9c0)").replace("Signal: ", "")),
        "OMPI_MCA_btl_vader_single_copy_mechanism=none",
    ),
    *planted("memory-mixed", "frontier", log("xccl[0] error: rank 1 " + MIXED), nothing),
    # the loader
    *planted(
        "preload-missing",
        "dgx-a100",
        log(LOADER.format("(cannot open shared object file): ignored.")),
        log("xccl[0] info: hello\n"),
        "unset LD_PRELOAD",
    ),
    *planted(
        "preload-missing",
        "dgx-a100",
        log(LOADER.format("(wrong ELF class: ELFCLASS32): ignored.")),
        log("xccl[0] info: hello\n"),
    ),
    *planted("preload-missing", "dgx-a100", log(LOADER.format(": ignored.")), nothing),
    # the plugin
    *planted(
        "plugin-none",
        "generic-amd",
        log(INFO + NO_RCCL_NET),
        log(INFO + NO_RCCL_NET + INFO + "Using network IB\n" + NODES),
        "put the folder of aws-ofi-nccl's librccl-net.so on LD_LIBRARY_PATH",
    ),
    *planted(
        "plugin-none",
        "generic-nvidia",
        log(INFO + "NET/Plugin: Could not find: libnccl-net.so\n" + NODES),
        log(INFO + "NET/Plugin: Could not find: libnccl-net.so\n" + NODES.replace("n2", "n1").replace("20", "30")),
    ),
    *planted(
        "net-name-unknown",
        "generic-nvidia",
        together(
            plugin, env(NCCL_NET="AWS Libfabric", NCCL_NET_PLUGIN="/opt/lib/libnccl-net-ofi.so")
        ),
        together(
            plugin, env(NCCL_NET="Libfabric", NCCL_NET_PLUGIN="/opt/lib/libnccl-net-ofi.so")
        ),
    ),
    *planted(
        "plugin-missing",
        "dgx-a100",
        env(NCCL_NET_PLUGIN="/opt/none/libnccl-net-ofi.so"),
        together(plugin, env(NCCL_NET_PLUGIN="/opt/lib/libnccl-net-ofi.so")),
        "correct the path in NCCL_NET_PLUGIN",
    ),
    *planted(
        "plugin-missing",
        "dgx-a100",
        env(NCCL_NET_PLUGIN="libnccl-net-ofi.so"),
        together(plugin, env(NCCL_NET_PLUGIN="libnccl-net-ofi.so")),
        "put the folder of aws-ofi-nccl's libnccl-net-ofi.so on LD_LIBRARY_PATH",
    ),
    *planted(
        "plugin-none",
        "generic-nvidia",
        log(INFO + "NET/Plugin: Could not find: /opt/none.so\n" + NODES),
        log(INFO + "NET/Plugin: Could not find: /opt/none.so\n" + INFO + "Using network IB\n" + NODES),
        "correct the path in NCCL_NET_PLUGIN",
    ),
    *planted(
        "library-damaged",
        "generic-nvidia",
        together(another_file, env(NCCL_NET_PLUGIN="/opt/lib/libnccl-net-ofi.so")),
        together(plugin, env(NCCL_NET_PLUGIN="/opt/lib/libnccl-net-ofi.so")),
        "name another file",
    ),
    *planted(
        "plugin-abi",
        "frontier",
        log(INFO + "NET/Plugin: Failed to find ncclNetPlugin symbol (>= v5). Older.\n"),
        log(
            INFO + "NET/Plugin: Failed to find ncclNetPlugin_v9 symbol.\n"
            + INFO + "NET/Plugin: Loaded net plugin Libfabric (v8)\n"
        ),
        "aws-ofi-nccl",
    ),
    # NCCL 2.28 on two H200s, with a plugin that exports ncclNetPlugin_v2 alone.
    *planted(
        "plugin-abi",
        "frontier",
        log(INFO + "External network plugin /opt/lib/libnccl-net-old.so is unsupported\n" + SOCKETS),
        log(LIBFABRIC + INFO + "NET/OFI Selected provider is cxi (found 4 nics)\n"),
        "aws-ofi-nccl",
    ),
    # There as well: the system's libfabric is older than the one that the plugin was built with.
    *planted(
        "plugin-failed",
        "frontier",
        log(
            INFO + "NET/Plugin: libnccl-net-ofi.so: /lib/libfabric.so.1: version `FABRIC_1.9' not "
            "found (required by /opt/lib/libnccl-net-ofi.so)\n"
            + INFO + "NET/Plugin: Could not find: ofi\n" + SOCKETS
        ),
        log(LIBFABRIC + INFO + "NET/OFI Selected provider is cxi (found 4 nics)\n"),
        "/lib/libfabric.so.1 is too old for the plugin",
    ),
    *planted(
        "plugin-failed",
        "frontier",
        log(
            INFO + "NET/Plugin : Plugin load returned 2 : libfabric.so.1: cannot open shared "
            "object file: No such file or directory.\n" + SOCKETS
        ),
        log(LIBFABRIC + INFO + "NET/OFI Selected provider is cxi (found 4 nics)\n"),
        "put the folder of libfabric.so.1 on LD_LIBRARY_PATH",
    ),
    *planted(
        "plugin-failed",
        "frontier",
        log(
            LIBFABRIC + INFO + "NET/OFI No eligible providers were found\n"
            "n1:1:1 [0] NCCL WARN Failed to initialize any NET plugin\n",
            NCCL_NET="OFI",
        ),
        log(
            LIBFABRIC + INFO + "NET/OFI No eligible providers were found\n"
            + INFO + "NET/OFI Selected provider is cxi, fabric is cxi (found 4 nics)\n"
        ),
        "fi_info -p cxi",
    ),
    *planted(
        "plugin-provider",
        "frontier",
        log(
            LIBFABRIC
            + INFO + "NET/OFI Selected provider is tcp;ofi_rxm, fabric is 192.0.2.0 (found 5 nics)\n"
        ),
        log(LIBFABRIC + INFO + "NET/OFI Selected provider is cxi, fabric is cxi (found 4 nics)\n"),
        "FI_PROVIDER=cxi",
    ),
    # the site
    *planted(
        "site-variable",
        "frontier",
        env(FI_MR_CACHE_MONITOR="disabled"),
        env(FI_MR_CACHE_MONITOR="kdreg2"),
        "export FI_MR_CACHE_MONITOR=kdreg2",
    ),
    *planted(
        "site-variable",
        "frontier",
        env(HSA_FORCE_FINE_GRAIN_PCIE="0"),
        env(HSA_FORCE_FINE_GRAIN_PCIE="0", LOADEDMODULES="rccl-net-plugin/1.0"),
    ),
    *planted(
        "site-old",
        "frontier",
        env(SOURCE_DATE_EPOCH="1900000000"),
        env(SOURCE_DATE_EPOCH="1800000000"),
        "install a newer xccl",
    ),
    *planted("site-mpi", "frontier", openmpi_found, nothing, "the site's MPI"),
    # logs
    *planted("log-silent", "dgx-a100", log(""), log("xccl[0] info: hello\n"), "NCCL_DEBUG=INFO"),
    *planted("log-silent", "dgx-a100", log("hello\nbye\n"), log(INFO + "NCCL version 2.28.3\n")),
    *planted(
        "xccl-said",
        "dgx-a100",
        log("xccl-run: warning [size-one]: each of 4 processes is alone\n"),
        log("xccl-run: host n1 rank 0 local 0 cores 0-7 numa 0 gpu 0 device 0 nic -\n"),
    ),
    *planted(
        "mpi-other-launcher",
        "dgx-a100",
        log("rank 0 of 1\nxccl[0] warning: alone\n" * 4),
        log("rank 0 of 1\nxccl[0] info: alone\n"),
    ),
    *planted(
        "xccl-said",
        "dgx-a100",
        log("xccl[0] warning: MPI_Init found one rank\n"),
        log("xccl[0] info: MPI_Init found eight ranks\n"),
    ),
]  # fmt: skip
