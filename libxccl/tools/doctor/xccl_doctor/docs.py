# SPDX-License-Identifier: BSD-3-Clause
# ruff: noqa: E501

"""docs/use/doctor.md and findings/ beside it from the registry: python3 -m xccl_doctor.docs docs/use"""

import re
import sys
from pathlib import Path

from .areas import AREAS, FOLDER, area_of, place
from .registry import TABLE

INTRO = """<!-- SPDX-License-Identifier: BSD-3-Clause -->
<!-- Written by libxccl/tools/doctor/xccl_doctor/docs.py from registry.py; do not edit. -->
# xccl-doctor: find what is wrong

```sh
xccl-doctor                         # environment, libraries, site, limits
xccl-doctor --run -- srun -N2 -n8   # also a job of a few seconds, and its logs
xccl-doctor --log job.out           # the log of an earlier job
xccl-doctor --app ./app             # does the program's MPI fit the launcher?
xccl-doctor --hang folder           # files of the ranks of a job that hangs
```

- Run it in the job, with the modules of the job loaded: then it sees what the ranks get. On a login node without GPUs it finds
  little.
- The log of an earlier job is most useful if the job ran with `NCCL_DEBUG=INFO XCCL_LOG=info`. `--log` leaves out what is wrong on
  this machine only: a library that was not found, limits, interfaces.

It prints, in this order:

1. facts, such as "RCCL uses aws-ofi-nccl 1.19.2 over cxi on 4 NICs";
2. findings: an identifier, the cause, what to do, and the page that says more;
3. what it looked at, and what it could not look at because it was missing.

`--json` prints the same as JSON, `--list` all [findings](#what-it-finds), and `--explain ID` one of them, also with `--json`. This page is installed as
`share/doc/xccl/doctor.md`, with the findings in the folder `findings` beside it.

| exit status | meaning |
|---|---|
| 0 | nothing found wrong |
| 1 | errors |
| 2 | wrong use |
| 3 | warnings and no error |

## What it reads

- the environment, sysfs and limits, the folders that ranks write to (`/tmp` or `TMPDIR`, `/dev/shm`), and the libraries that would be loaded;
- `~/.openmpi/mca-params.conf`, Open MPI's own file of that name, and the `ucc.conf` that UCC would read;
- xccl's variables and tables, by `xccl-info`;
- with `--app PROGRAM`, which MPI the program was built with. This MPI is compared with the launcher of this process, or with the mpirun on `PATH`. Under the
  mpirun of another MPI every process is rank 0 of 1.

On route `xccl` it takes into account the variables that `xccl-run` sets for each rank (the site's `launch.env`). If a rank itself can see a
problem, `xccl-run` warns of it too, almost always with the same identifier.

## A job that hangs: --hang

Send SIGUSR1 to all ranks: `scancel --signal=USR1 <jobid>`, or `kill -USR1 <pid of mpirun>`. Each rank writes a file
`xccl-ops.<host>.<pid>.<rank>.json`. With `XCCL_DUMP_DIR` a rank also writes it on an error or a time-out.

`--hang` reads only these files, so it runs anywhere, for example on the login node. It
compares what the ranks called, by communicator and number of the collective. It says

- which rank called something else;
- who waits for whom, since when, in a collective or for a message;
- which rank has not entered the collective that the others wait in.

How to read its answer:

- Roots are ranks of the communicator. All other ranks are those of MPI_COMM_WORLD. Times are local ones.
- Path `agreement`: the ranks have not agreed on a path yet. This is so in the first calls of a communicator, which may also have no name yet (`unknown`).
- Files that are broken or from an older run are named and ignored.

What the files contain:

- The last operations only. So the first difference may be older than the files.
- The MPI call that each thread is in, and the messages that it waits for. By default this covers calls with device memory, or with a request of device memory. If the job was started with `XCCL_DUMP_DIR`, it covers all calls that xccl takes over, also those on host memory.
  This costs each call some tens of nanoseconds.
- The error message of the first collective that failed on this rank.
- Not the calls that make communicators (`MPI_Comm_split`). For these look at the stacks of the ranks (`gdb -p <pid>`, `py-spy`).

Only you may read the files (mode 0600). Run `chmod a+r xccl-ops.*.json` before you hand them to your support staff.

## What it cannot find

- A deadlock between GPU-aware MPI and the program's own NCCL calls. Use one of the two at a time.
- A deadlock of several communicators that work on one device at once. For programs that use some: `module load xccl-settings/many-comms`.
- Types or operations that UCC does not serve itself, and leaves to others silently. On route `xccl` `XCCL_LOG=info` names the path of each collective.
"""

# Where each was seen or is documented.
SOURCES = {
    "ucc-priority": "Open MPI issue 9885; JSC uses 80, UCC's guide 100",
    "ucc-disabled": "Open MPI pull request 9009",
    "ucc-not-tuned": "UCC user guide; JSC blog on UCC and NCCL",
    "ucc-conf-hides-ccl": "UCC, contrib/ucc.conf and src/core/ucc_constructor.c",
    "ucc-no-ccl-transport": "EasyBuild: UCC-CUDA adds it by EB_UCC_EXTRA_COMPONENT_PATH",
    "ucc-on-libfabric": "Open MPI documentation, accelerators/rocm",
    "ucc-beside-xccl": "NCCL issues 195 and 1174; UCC issue 106",
    "ucc-fallback": "UCC issue 1187; tl_nccl_coll.c lists the types",
    "ucc-not-selected": "Open MPI issue 9885",
    "ucc-mlx5": "UCC issues 1041 and 1042",
    "ucc-other-transport": "UCC user guide (scores 40 for CUDA, 20 for NCCL)",
    "hcoll-enabled": "UCC issue 1197",
    "hpcx-mixed": "UCC issue 981",
    "nonblocking-on-gpu": "Open MPI issues 9845 and 12045, documentation on CUDA",
    "gpu-hidden": "D. Rogers on RCCL allreduce (9.6 instead of 107 GB/s); NCCL issue 1066; LUMI training, Slurm",
    "gpu-shared": "NCCL issues 103, 231 and 418",
    "gpu-invisible": "CUDA programming guide, CUDA_VISIBLE_DEVICES; Slurm sets NoDevFiles without --gpus",
    "ranks-over-gpus": "NCCL issue 418; NCCL 2.30.3, src/init.cc",
    "gpu-duplicate": "NCCL issue 418; UCC user guide, known issues; CSCS documentation (GH200)",
    "gpu-peer-lost": "NCCL issue 1066; nccl-tests issue 300",
    "visible-double": "LUMI and OLCF documentation; Flux sets CUDA_VISIBLE_DEVICES as well",
    "cores-outside": "D. Rogers on RCCL allreduce",
    "cores-single": "two emulated nodes on H200s: a broadcast of 8 bytes took 1.9 ms",
    "not-bound": "OLCF, PyTorch on Frontier: 10 s became 10 min",
    "srun-cpus-per-task": "JSC, processor affinity",
    "nic-policy": "D. Rogers on RCCL allreduce; LUMI training; Frontier user guide",
    "single-copy-none": "D. Rogers on RCCL allreduce",
    "mpich-not-gpu-aware": "Frontier user guide",
    "gtl-missing": "Frontier user guide",
    "mpich-slow-pointers": "CSCS documentation, Cray MPICH",
    "ccl-version-slow": "NCCL issues 2094 and 2058",
    "ccl-mismatch": "NCCL, src/init.cc",
    "plugin-missing": "D. Rogers on RCCL allreduce; HPE shs-ccl-docs; CSCS documentation (22 times slower)",
    "plugin-name": "OLCF, PyTorch on Frontier; HPE shs-ccl-docs",
    "cray-old-libraries": "Frontier user guide",
    "cuda-eager": "NCCL issues 1156 and 1646",
    "net-sockets": "D. Rogers on RCCL allreduce; CSCS documentation",
    "net-name-unknown": "aws-ofi-nccl, nccl_ofi_interface_nvidia.cpp; CSCS documentation",
    "net-on-one-node": "OLCF, PyTorch on Frontier; HPE shs-ccl-docs",
    "net-interface": "OLCF, PyTorch on Frontier",
    "net-bootstrap": "job scripts of users at JSC",
    "net-storage-port": "NCCL issues 676 and 1505; DGX H100 guide",
    "ib-timeout": "job scripts of users at JSC",
    "init-slow": "D. Rogers on RCCL allreduce (10 min); NCCL issues 534, 1156 and 1646",
    "mr-cache": "OLCF: do not use memhooks; libfabric issues 9003 and 9594",
    "cxi-host-register": "HPE shs-ccl-docs; CSCS; OLCF",
    "cxi-queues": "HPE shs-ccl-docs and OLCF (2048, hybrid); CSCS (16384, software)",
    "cxi-eager": "HPE shs-ccl-docs; OLCF; CSCS",
    "cxi-rendezvous": "OLCF, PyTorch on Frontier; may slow MPI",
    "cxi-exhausted": "HPE shs-ccl-docs; CSCS",
    "cxi-map": "CSCS documentation, Cray MPICH",
    "ll128": "CSCS documentation, NCCL",
    "crash-at-end": "Open MPI pull request 13769; PyTorch pull request 8352",
    "ucc-tls-without-ccl": "UCC user guide",
    "mpi-other-launcher": 'four processes that each said "rank 0 of 1", and an exit status of 0',
    "mpi-no-pmi": "Open MPI documentation, launching with Slurm",
    "driver-old": "NVIDIA, CUDA compatibility (minor versions)",
    "plugin-abi": "NCCL, src/plugin/net",
    "plugin-failed": "aws-ofi-nccl, nccl_net_ofi_create_plugin",
    "plugin-provider": "aws-ofi-nccl: it takes any provider that libfabric offers",
    "net-hca-unknown": "NCCL user guide, NCCL_IB_HCA",
    "net-interface-wrong": "NCCL user guide, NCCL_SOCKET_IFNAME",
    "net-leftover": "NCCL user guide: for debugging, not for production",
    "run-hung": "OLCF; ALCF; rccl-tests issue 90",
}


def plain(text):
    return re.sub(r"\{(\w+)\}", r"*\1*", text)


def as_sentence(text):
    """Names of software keep their small letter."""
    return text if text.startswith(("xccl ", "coll/", "srun ")) else text[0].upper() + text[1:]


def section(name):
    row = TABLE[name]
    lines = [f'<a id="{name}"></a>', f"## {name} ({row.severity})", ""]
    lines += [as_sentence(row.meaning or plain(row.cause)) + ".", ""]
    if isinstance(row.remedy, str):
        lines += ["Do: " + plain(row.remedy) + "."]
    else:
        lines += ["Do, as the case may be:", ""]
        lines += [f"- {plain(text)}" for text in row.remedy.values()]
    if name in SOURCES:
        lines += ["", f"Seen in: {SOURCES[name]}."]
    return "\n".join(lines) + "\n"


HEAD = """<!-- SPDX-License-Identifier: BSD-3-Clause -->
<!-- Written by libxccl/tools/doctor/xccl_doctor/docs.py from registry.py; do not edit. -->
# Findings: {title}

What [xccl-doctor](../doctor.md) finds in this area, and what to do. Words *in italics* differ from case to case.
"""


def names_of(page):
    return [name for name in sorted(TABLE) if area_of(name) == page]


def overview():
    """The end of the page on the tool."""
    lines = ["## What it finds", ""]
    for page, title, _ in AREAS:
        found = ", ".join(f"[{name}]({place(name)})" for name in names_of(page))
        lines.append(f"- [{title}]({FOLDER}/{page}.md): {found}")
    return "\n".join(lines) + "\n"


def render():
    """{path below docs/use: text}."""
    pages = {"doctor.md": INTRO + "\n" + overview()}
    for page, title, _ in AREAS:
        parts = [HEAD.format(title=title)]
        parts += [section(name) for name in names_of(page)]
        pages[f"{FOLDER}/{page}.md"] = "\n".join(parts)
    return pages


def main(folder):
    for path, text in render().items():
        target = Path(folder, path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
