# SPDX-License-Identifier: BSD-3-Clause
# ruff: noqa: E501

"""Facts from the log of a job: NCCL, RCCL, aws-ofi-nccl, UCC, Open MPI, libfabric, xccl.

Lines are those of the programs themselves; recorded samples are in libxccl/test/doctor/samples.
"""

import re
from collections import OrderedDict
from types import SimpleNamespace

from xccl_common.lines import Lines

# What is read off a line: field of the facts, texts of which such a line holds one, expression. The
# first group is kept, each value once.
LISTS = (
    ("ccl_versions", ("CCL version",), r"\b([NR]CCL) version *:? *([0-9.]+\d)"),
    ("xccl_library", (" info: using ",), r"xccl\[\d+\] info: using (\w+) ([\d.]+) from (\S+)"),
    ("xccl_paths", (" ranks: ",), r"xccl\[\d+\] info: (\w+) of .*? ranks: ([\w-]+)(?: \()?((?:a first call)?)"),
    ("xccl_warned", (" warning: ",), r"xccl(?:\[\d+\])? warning: (?!all \d+ ranks (?:leave collectives|do without the vendor))(.*)"),
    ("xccl_gave_up", (" ranks leave collectives on device memory to MPI: ", " ranks do without the vendor's library: "), r"xccl\[\d+\] warning: all \d+ ranks (?:leave collectives on device memory to MPI|do without the vendor's library): (.*)"),
    ("mixed_memory", (" passes host memory",), r"(rank \d+)(?: of MPI_COMM_WORLD)? passes host memory(?: \(.*?\))? to (\w+), and (rank \d+) device memory"),
    ("plugin", ("NET/OFI ",), r"NET/OFI (?:Initializing|Using) (aws-ofi-[nr]ccl) ([\w.]+)"),
    ("libfabric", ("NET/OFI Using Libfabric version ",), r"NET/OFI Using Libfabric version ([\d.]+)"),
    ("provider", ("NET/OFI Selected ",), r"NET/OFI Selected [Pp]rovider is ([\w;-]+)(?:, fabric is \S+)? \(found (\d+) nics"),
    ("no_plugin", ("NET/Plugin",), r"NET/Plugin *: *(?:dlerror=.* )?(?:No plugin found \(([\w./-]+)\)|Could not find:? *(.+?)(?:\. Using.*)?\.? *$)"),
    ("plugin_loaded", ("NET/Plugin",), r"NET/Plugin *: *Loaded net plugin (.+?) \((v\d+)\)"),
    ("plugin_symbol", ("Failed to find ncclNetPlugin", "External network plugin "), r"(?:NET/Plugin *: *(Failed to find ncclNetPlugin(?:_v\d+)? symbol.*?)|(External network plugin \S+ is unsupported))\.? *$"),
    ("plugin_refused", ("NET/Plugin",), r"NET/Plugin *: *(?:Plugin load returned \d+ : |dlerror=|lib\S+\.so[\d.]*: (?=.*(?:not found|cannot open|undefined symbol)))(.+?)(?: No plugin found.*|\.)? *$"),
    ("ofi_failed", ("NET/OFI ",), r"NET/OFI (No eligible providers were found|Unable to find a protocol that worked.*|.*[Ii]nitialization failed.*)"),
    ("ib_none", ("No device found",), r"NET/IB *: (No device found)"),
    ("no_interface", ("interface found",), r"((?:Bootstrap|NET/Socket) *: [Nn]o (?:socket )?interface found.*)"),
    ("set_by_env", ("NCCL_",), r"\b(NCCL_\w+) set (?:by environment )?to (\S.*?)\.? *$"),
    ("cuda_driver", ("cudaDriverVersion ",), r"cudaDriverVersion (\d+)"),
    ("ccl_cuda", ("+cuda",), r"(NCCL) version ([\d.]+)\+cuda([\d.]+)"),
    ("driver_insufficient", ("CUDA driver version is insufficient",), r"(CUDA driver version is insufficient for CUDA runtime version)"),
    ("driver_call", ("API call is not supported in",), r"(API call is not supported in the installed CUDA driver)"),
    ("preload_refused", (" from LD_PRELOAD cannot be preloaded",), r"object '(.+?)' from LD_PRELOAD cannot be preloaded(?: \((.+?)\))?"),
    ("no_pmi", ("direct launched using",), r"(appears to have been direct launched using)"),
    ("bound", ("xccl-run: host ",), r"xccl-run: host \S+ rank (\d+) local"),
    ("network", ("Using network ",), r"Using network (.+?) *$"),
    ("bootstrap", ("Bootstrap",), r"Bootstrap *: Using ([\w.-]+):"),
    ("socket_ports", ("NET/Socket",), r"NET/Socket *: Using (.*)"),
    ("ib_ports", ("NET/IB",), r"NET/IB *: Using (.*)"),
    ("no_network", (" not found",), r"network (.+?) not found"),
    ("no_network_started", ("Failed to initialize any NET plugin",), r"NCCL WARN (Failed to initialize any NET plugin)"),
    ("same_device", (" use the same device",), r"ranks (\d+ and \d+) use the same device"),
    ("in_turns", (" share a device that gives its processes turns",), r"info: (ranks share a device) that gives its processes turns"),
    ("apart", ("no direct path on ",), r"no direct path on \d+ ranks: (rank \d+ is on the machine of rank \d+, but in another container|rank \d+: it does not see the memory of all processes)"),
    ("one_node", ("not configured for single node", "VNI"), r"((?:not configured for single node|cxi.*[Nn]o VNI|Failed to .*VNI).*)"),
    ("mismatch", ("Mismatched NCCL version",), r"Mismatched NCCL version detected *: *(.*)"),
    ("duplicate", ("Duplicate GPU",), r"Duplicate GPU detected *: *(.*)"),
    ("multiple", ("Multiple Ranks are using",), r"(Multiple Ranks are using the same GPU.*)"),
    ("init_total", ("ncclCommInitRank",), r"ncclCommInitRank\w*: rank \d+ nranks (\d+) total ([\d.]+)"),
    ("ucc_fallback", (" is not supported for ",), r"coll (\w+) is not supported for (TL_\w+), fallback (TL_\w+)"),
    ("ucc_cuda", ("Cuda: {", "Rocm: {"), r"(?:Cuda|Rocm): \{[^}]*\}:(TL_\w+)"),
    ("ucc_trace", ("coll_init: ",), r"coll_init: .*?(?:cuda|rocm).*?\{(TL_\w+)\}"),
    ("ucc_speaks", ("UCC", "TL_", "coll_ucc", "coll:ucc"), r"\b(UCC(?= +[A-Z]+ )|TL_[A-Z0-9]+|(?:mca_)?coll[_:]ucc)"),
    ("ucc_not_loaded", ("libucc is not loaded",), r"XCCL_ROUTE=(ucc(?:-ccl)?), but libucc is not loaded"),
    ("ucc_over_ccl", ("TL_NCCL", "TL_RCCL"), r"\b(TL_[NR]CCL)\b"),
    ("ucc_not_selected", ("mca_coll_ucc_save_coll_handlers",), r"(mca_coll_ucc_save_coll_handlers failed.*)"),
    ("ucc_mlx5", ("TL_MLX5", "tl_mlx5"), r"((?:TL_MLX5|tl_mlx5)\S* .*(?:ERROR|WARN|[Ff]ailed).*)"),
    ("gtl", ("GTL library",), r"(GPU_SUPPORT_ENABLED is requested, but GTL library is not linked)"),
    ("nic_numa", ("NIC_POLICY",), r"Unable to use a NIC_POLICY of '(\w+)'\. (.*?)\.? *(?:\(rc=|$)"),
    ("cxil_map", ("cxil_map: ",), r"(cxil_map: write error.*)"),
    ("cxi_full", ("Flow control triggered", "LE resource", "CQ overrun", "EQ overflow", "Event Queue overflow"), r"(.*(?:Flow control triggered|LE resources? not|CQ overrun|EQ overflow|Cassini Event Queue overflow).*)"),
    ("memhooks", ("memhooks",), r"((?:.*memhooks.*(?:deadlock|not be used)).*)"),
    ("ib_timeout", ("Got completion ", "ransport retry count exceeded"), r"(NET/IB *: Got completion .*(?:status=(?:\w+\()?12\b|error 12).*|UCX +ERROR .*[Tt]ransport retry count exceeded.*)"),
    ("shm_full", ("failed to extend", "Error while creating shared memory segment", "posix_fallocate failed"), r"NCCL WARN (Error: failed to extend /dev/shm/.*|Error while creating shared memory segment .*|Call to posix_fallocate failed.*)"),
    ("memlock", ("RLIMIT_MEMLOCK is ",), r"libibverbs: Warning: RLIMIT_MEMLOCK is (\d+) bytes"),
    ("ccl_failed", ("NCCL WARN ",), r"NCCL WARN (.*(?:fail|Fail|[Ee]rror).*)"),
    ("run_notes", ("xccl-run: warning [",), r"xccl-run: warning \[([\w-]+)\]: (.*)"),
    ("not_bound", ("(cores left as they are",), r"xccl-run: host (\S+) rank \d+ local (\d+) cores (\S+) .*\(cores left as they are"),
    ("crash", ("ncclCommDestroy", "ncclCommFree", "ncclCommAbort", "libnbc"), r"(ncclComm(?:Destroy|Free)|ncclCommAbort|libnbc|mca_coll_libnbc\w*)\b"),
    ("nbc_error", ("MPI Error in NBC subrequest",), r"(MPI Error in NBC subrequest \S+ : 15)"),
    ("crash_in_xccl", ("libxccl-mpi",), r"\[ *\d+\] \S*/(libxccl-mpi\S*?)\("),
    ("signal", ("Signal: ",), r"Signal: (Segmentation fault|Bus error|Aborted)"),
)  # fmt: skip
EXPRESSIONS = [(name, texts, re.compile(text)) for name, texts, text in LISTS]

# "host:pid:tid [device] NCCL INFO ..." with or without the rank that srun -l puts in front.
PREFIX = re.compile(r"(?:^|\s)([\w.-]+):(\d+):\d+ \[\d+\] NCCL (?:INFO|WARN) (.*)")
INIT = re.compile(r"comm \S+ rank (\d+) n?[rR]anks (\d+) cudaDev (\d+) .*?busId (\w+)")
CHANNEL = re.compile(r"Channel [\d/]+ *: (\d+)\[\w+\] -> (\d+)\[\w+\] (?:\[\w+\] )?via (\S+)")


# A process that says that it is alone: xccl-perf's head, and what programs print of themselves.
ALONE = re.compile(r"# xccl-perf \S+ 1 rank\(s\), (.+)|\b[Rr]ank\s+0\s+(?:of|out of|/)\s+1\b")
ALONE_HINT = re.compile(r"ank\s+0\s")  # quick to look for: it begins with letters
# Texts of which a line that tells of ranks' places and connections holds one.
CONNECTED = ("busId", " via ")
XCCL_SPEAKS = re.compile(r"\bxccl\[\d+\] ")
# A line from which something can be known.
SPEAKS = re.compile(
    r"[NR]?CCL (?:INFO|WARN)|\bUCC\b|TL_[A-Z]+|\bxccl(?:-run|-perf|\[\d+\])|libfabric:|MPICH|\bcoll[:_]ucc"
)
SPEAKING = (
    "CCL INFO",
    "CCL WARN",
    "UCC",
    "TL_",
    "xccl",
    "libfabric:",
    "MPICH",
    "coll:ucc",
    "coll_ucc",
)


class LogFacts(SimpleNamespace):
    def first(self, name):
        """The first value of a list, as text; None if there is none."""
        values = getattr(self, name)
        return values[0] if values else None

    def setting(self, name):
        """What the job's environment set it to, as NCCL said; None if it did not say."""
        return dict(self.set_by_env).get(name)


def read_lists(lines):
    """{field of the facts that is a list: its values in the order of the lines}."""
    found = {name: OrderedDict() for name, _, _ in EXPRESSIONS}
    for block in lines.blocks():
        for name, texts, expression in EXPRESSIONS:
            for _, line in block.having(texts):
                match = expression.search(line)
                if match:
                    groups = tuple(group for group in match.groups() if group is not None)
                    found[name][groups[0] if len(groups) == 1 else groups] = True
    return {name: list(values) for name, values in found.items()}


def read_alone(lines):
    """What each process that is alone says that it measures, or None."""
    for _, line in lines.having(("# xccl-perf ", "ank")):
        alone = ALONE.search(line) if "# xccl-perf " in line or ALONE_HINT.search(line) else None
        if alone:
            yield alone.group(1)


def parse(text):
    """All that is known of a log: its text, or the Lines of it."""
    lines, seen = text if isinstance(text, Lines) else Lines(text), Connections()
    for _, line in lines.having(CONNECTED):
        prefix = PREFIX.search(line)
        if prefix:
            seen.add(*prefix.groups())
    found = read_lists(lines)
    facts = LogFacts(
        text=lines,
        expect_xccl=False,  # True for a job that was to log what xccl does
        lines=len(lines),
        speaks=any(found.values())
        or any(SPEAKS.search(line) for _, line in lines.having(SPEAKING)),
        alone=list(read_alone(lines)),
        xccl_speaks=any(XCCL_SPEAKS.search(line) for _, line in lines.having(("xccl[",))),
        hosts=seen.hosts,
        devices=seen.devices,
        kinds=seen.kinds,
        indirect=seen.indirect,
    )
    for name, values in found.items():
        setattr(facts, name, values)
    return facts


class Connections:
    """Which process is on which host and GPU, and how ranks are connected."""

    def __init__(self):
        self.size = 0
        self.hosts = {}  # of each rank, in the largest communicator
        self.devices = {}  # (host, PCI address): processes
        self.kinds = set()  # of all connections
        self.indirect = (
            OrderedDict()
        )  # (rank, rank): how, where it is not from one device to the other

    def add(self, host, process, message):
        init = INIT.search(message)
        if init:
            rank, size, address = int(init.group(1)), int(init.group(2)), init.group(4)
            self.devices.setdefault((host, address), set()).add(process)
            if size > self.size:
                self.size, self.hosts = size, {}
            if size == self.size:
                self.hosts[rank] = host
        channel = CHANNEL.search(message)
        if channel:
            pair, via = (int(channel.group(1)), int(channel.group(2))), channel.group(3)
            kind = via.split("/")[0]
            self.kinds.add(kind)
            if kind in ("SHM", "NET"):
                self.indirect.setdefault(pair, via)


def ports(entries):
    """Names in lines like "[0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB ib0:10.0.0.1<0>"."""
    names = []
    for entry in entries:
        for name in re.findall(r"\[\d+\]([\w.-]+):", entry):
            if name not in names:
                names.append(name)
    return names
