# SPDX-License-Identifier: BSD-3-Clause
"""Facts of the launcher: what started this process, what mpirun is, which MPI a program was built with."""

import glob
import os
import re
from types import SimpleNamespace

from . import elf
from .options import Wrong

# The standard ABI is a family of its own, whose library may be any MPI's.
NAMES = {"openmpi": "Open MPI", "mpich": "MPICH", "mpiabi": "MPI's standard ABI"}
FAMILY_OF_SONAME = {"libmpi.so.40": "openmpi", "libmpi.so.12": "mpich", "libmpich.so.12": "mpich"}
STANDARD_SONAME = re.compile(r"^libmpi_abi\.so(\.\d+)?$")
CRAY_SONAME = re.compile(r"^libmpi_\w+\.so\.12$")  # libmpi_gnu_123.so.12, libmpi_cray.so.12
# Words of the launchers' own files, for one that goes by the name mpirun or mpiexec.
WORDS = (
    (b"hydra", "mpich"),
    (b"HYDRA", "mpich"),
    (b"orterun", "openmpi"),
    (b"libopen-rte", "openmpi"),
    (b"prterun", "openmpi"),
)
LOOKED_AT = 1 << 22
LAUNCHER = re.compile(
    r"(srun|(mpirun|mpiexec)(\.\w+)?|mpirun_rsh|orterun|prterun|prun|aprun|jsrun|ibrun)$"
)
# Their options without a value, and with two. Any other takes one, for all that is known here.
ALONE = (
    *("--oversubscribe", "--nooversubscribe", "--allow-run-as-root", "--report-bindings"),
    *("--tag-output", "--display-map", "--use-hwthread-cpus", "--exclusive", "--exact"),
    *("--overlap", "--overcommit", "--label", "--unbuffered", "--verbose", "--quiet"),
    *("-oversubscribe", "-allow-run-as-root", "-l", "-v", "-K", "-Q", "-u", "-O", "-E"),
    *("--nolocal", "--timestamp-output", "--display-allocation", "--merge-stderr-to-stdout"),
    *("--pty", "--no-kill", "--kill-on-bad-exit", "--contiguous", "--spread-job"),
    *("-k", "-nolocal", "-prepend-rank", "-print-rank-map"),
    *("-genvall", "-genvnone", "-envall", "-envnone"),
)
PAIRS = ("--mca", "-mca", "--gmca", "-gmca", "--prtemca", "--pmixmca", "--omca", "-env", "-genv")
GLUED = re.compile(r"-[A-Za-z]\d+$")
OURS = ("xccl-run", "xccl-perf")
# Programs that start what follows, as a launcher does.
WRAPPERS = (
    *("apptainer", "singularity", "shifter", "sarus", "ch-run", "podman-hpc", "enroot"),
    *("env", "nice", "numactl", "stdbuf", "taskset", "time", "timeout", "hwloc-bind"),
)


def number(text):
    """Its value, if it is plain digits: isdigit() takes others, too, of which int() makes nothing."""
    return int(text) if text and re.match(r"[0-9]{1,18}\Z", text) else None


def first_number(env, *names):
    for name in names:
        found = number(env.get(name))
        if found is not None:
            return found
    return None


def leading(text):
    """The first number of "4(x2),3"; None without one."""
    found = re.match(r"\d+", text or "")
    return int(found.group()) if found else None


def over(ranks, by):
    return -(-ranks // by) if ranks and by else None


def launched(env):
    """(ranks, nodes, ranks of a node) of what was started with this process; None: it is not said.

    The order is that of xccl-bind and xccl-run: inside a job of Slurm, the variables of a launcher within
    it tell more of this process than those of the job.
    """
    for every, local in (
        ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"),
        ("PMI_SIZE", "MPI_LOCALNRANKS"),
    ):
        size, here = number(env.get(every)), number(env.get(local))
        if here:
            return size, over(size, here), here
    nodes, here = number(env.get("PALS_NUM_NODES")), number(env.get("PALS_LOCAL_SIZE"))
    if nodes or here:
        size = number(env.get("PMI_SIZE"))
        return size, nodes or over(size, here), here
    size, nodes = number(env.get("FLUX_JOB_SIZE")), number(env.get("FLUX_JOB_NNODES"))
    if nodes:
        return size, nodes, over(size, nodes)
    if in_slurm_step(env):
        size, nodes = (
            number(env.get("SLURM_STEP_NUM_TASKS")),
            number(env.get("SLURM_STEP_NUM_NODES")),
        )
        return size, nodes, leading(env.get("SLURM_STEP_TASKS_PER_NODE"))
    return None, None, None


def nodes_of(env):
    """Nodes of the job, as its launcher says; None if none says."""
    size, nodes, _ = launched(env)
    job = number(env.get("SLURM_JOB_NUM_NODES"))
    # A process that was started alone, as by srun -n 1, is there to look at the job.
    return (job or nodes) if size == 1 else (nodes or job)


def ranks_per_node(env):
    """Ranks of a node, as the launcher or else the job says; None if neither does."""
    _, _, here = launched(env)
    here = here or leading(env.get("SLURM_NTASKS_PER_NODE"))
    # In a batch script it is the node's cores where no number of tasks was asked for.
    if here is None and (in_slurm_step(env) or "SLURM_NTASKS" in env):
        here = leading(env.get("SLURM_TASKS_PER_NODE"))
    return here


def started_by(env):
    """(family, ranks) of the mpirun that started this process; None outside of one."""
    size = number(env.get("OMPI_COMM_WORLD_SIZE"))
    if size is not None:
        return SimpleNamespace(family="openmpi", ranks=size)
    size = number(env.get("PMI_SIZE"))
    if size is not None and ("MPI_LOCALNRANKS" in env or "HYDI_CONTROL_FD" in env):
        return SimpleNamespace(family="mpich", ranks=size)
    return None


# What names a job or a step of it, and each rank's number on its node.
JOBS = (
    ("PMIX_NAMESPACE",),
    ("PALS_APID",),
    ("FLUX_JOB_ID",),
    ("SLURM_JOB_ID", "SLURM_STEP_ID"),
    ("PMI_JOBID",),
)
LOCAL_RANKS = (
    *("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "PALS_LOCAL_RANKID"),
    *("FLUX_TASK_LOCAL_ID", "SLURM_LOCALID"),
)


def job_of(env):
    for names in JOBS:
        if all(name in env for name in names):
            return tuple(env[name] for name in names)
    return None


def read_environment(path):
    try:
        with open(path, "rb") as f:
            text = f.read().decode("utf-8", "surrogateescape")
    except OSError:  # another user's, or gone
        return {}
    return dict(one.split("=", 1) for one in text.split("\0") if "=" in one)


def neighbours(root, env):
    """{local rank: environment} of the other ranks of this process's job on its node.

    A rank may be several processes, as a script that sets variables for its program: the last counts.
    """
    job, own = job_of(env), first_number(env, *LOCAL_RANKS)
    found = {}
    if job is None or own is None:
        return found
    numbers = [number(os.path.basename(path)) for path in glob.glob(root + "/proc/[0-9]*")]
    for process in sorted(filter(None, numbers)):
        theirs = read_environment(f"{root}/proc/{process}/environ")
        rank = first_number(theirs, *LOCAL_RANKS)
        if job_of(theirs) == job and rank not in (None, own):
            found[rank] = theirs
    return found


def check_alone(env, example):
    """Raise Wrong in one of several processes of an mpirun: they would all start jobs of their own."""
    around = started_by(env)
    if around and around.ranks > 1:
        raise Wrong(
            f"a launcher started this {around.ranks} times, and it starts its launcher itself; "
            f"run it once: {example}"
        )


def values_of(words, at, env):
    """Words behind an option of a launcher, words[at], that belong to it."""
    option, following = words[at], words[at + 1 : at + 2]
    if "=" in option or option in ALONE or GLUED.match(option):
        return 0
    if option in PAIRS:
        return 2
    # One that is not known may have no value: none is an option, or a program of MPI.
    value = following[0] if following else ""
    if re.match(r"-\D", value):
        return 0
    path = find_program("", env, value) if "/" in value else None
    return 0 if path is not None and not os.path.isdir(path) and uses_mpi(path) else 1


def uses_mpi(path):
    """Is that file a program that needs an MPI library?"""
    try:
        needed, _ = elf.read(path)
    except (OSError, elf.NotElf, elf.Damaged):
        return False
    return any(family_of_soname(name) is not None for name in needed)


def find_mpi_program(words, begin, env):
    """The place of one among the words of wrappers, which are programs themselves; or None."""
    for at in range(begin, len(words)):
        path = find_program("", env, words[at])
        if path is not None and not os.path.isdir(path) and uses_mpi(path):
            return at
        if re.match(r"python[\d.]*$", os.path.basename(words[at])):
            return at
    return None


def find_application(words, env):
    """The place of the program that a launcher's words end with; None: it stands alone, or who knows."""
    at = 1 if LAUNCHER.match(os.path.basename(words[0])) else len(words)
    while at < len(words):
        name = os.path.basename(words[at])
        if words[at].startswith("-"):
            at += values_of(words, at, env)
        elif name in WRAPPERS:
            return find_mpi_program(words, at + 1, env)
        elif name in OURS:
            return at
        else:
            path = find_program("", env, words[at])
            if path is not None and not os.path.isdir(path):
                return at
            if path is None and "/" in words[at] and "=" not in words[at]:
                return at  # one that is not there, or not on this machine
        at += 1
    return None


def check_bare(words, env):
    """Raise Wrong where a program follows the launcher: each launch would run it in place of the tool's."""
    at = find_application(words, env)
    if at is not None:
        raise Wrong(
            "the launcher stands alone: drop '{}', and give '{}' only; this tool starts programs of its own there, and "
            "measures no others".format(" ".join(words[at:]), " ".join(words[:at]))
        )


def in_slurm_step(env):
    """True in a task of srun; the steps of a batch script and of salloc have numbers beyond."""
    step = number(env.get("SLURM_STEP_ID"))
    return step is not None and step < 1 << 31


def family_of_program(path):
    """Which MPI's launcher that file is; None if nothing tells."""
    real = os.path.basename(os.path.realpath(path))
    if re.match(r"(orte|prte)|.*\.openmpi$", real):
        return "openmpi"
    if re.search(r"hydra|\.mpich$", real):
        return "mpich"
    try:
        with open(path, "rb") as f:
            text = f.read(LOOKED_AT)
    except OSError:
        return None
    return next((family for word, family in WORDS if word in text), None)


def find_program(root, env, name):
    if "/" in name:
        return root + name if os.access(root + name, os.X_OK) else None
    for folder in env.get("PATH", "").split(":"):
        path = root + os.path.join(folder, name)
        if folder.startswith("/") and os.access(path, os.X_OK) and not os.path.isdir(path):
            return path
    return None


def collect_mpirun(root, env, launcher=()):
    """The launcher that would be used: the one of --run, else mpirun or mpiexec on PATH."""
    names = [launcher[0]] if launcher else ["mpirun", "mpiexec"]
    for name in names:
        path = find_program(root, env, name)
        if path is not None and re.match(r"mpi(run|exec)|(orte|prte)run", os.path.basename(path)):
            return SimpleNamespace(path=path, family=family_of_program(path))
    return None


def family_of_soname(name):
    """The family of an MPI library by its name; None: it is no MPI's."""
    if STANDARD_SONAME.match(name):
        return "mpiabi"
    return FAMILY_OF_SONAME.get(name) or ("mpich" if CRAY_SONAME.match(name) else None)


def family_of_application(path, search):
    """(family or None, path of its MPI or None) of a program. Raises OSError, elf.NotElf, elf.Damaged."""
    todo, seen = [path], set()
    while todo:
        current = todo.pop(0)
        needed, runpath = elf.read(current)
        own = [f.replace("${ORIGIN}", "$ORIGIN") for f in runpath]
        own = [f.replace("$ORIGIN", os.path.dirname(os.path.realpath(current))) for f in own]
        for name in needed:
            found, _ = search.find(name, own)
            family = family_of_soname(name)
            if family is not None:
                return family, found
            # Fortran's and C++'s part of MPI needs the C part; nothing else is looked into.
            if name.startswith("libmpi") and found is not None and name not in seen:
                seen.add(name)
                todo.append(found)
    return None, None


def holds_mpi(path):
    """Whether a program has a static library of MPI inside. Raises OSError, elf.NotElf."""
    # A tool's wrapper inside it defines MPI_Init, but leaves these to MPI. In a static library each is
    # an object of its own, so a program holds the one that it calls.
    return elf.defines_any(path, ("PMPI_Init", "PMPI_Init_thread", "PMPI_Session_init"))


def needs(path, search, name):
    """Whether a program needs a library whose name begins with @p name, by whichever of its libraries."""
    todo, seen = [path], set()
    while todo:
        current = todo.pop()
        try:
            needed, runpath = elf.read(current)
        except (OSError, elf.NotElf, elf.Damaged):
            continue
        here = os.path.dirname(os.path.realpath(current))
        own = [f.replace("${ORIGIN}", "$ORIGIN").replace("$ORIGIN", here) for f in runpath]
        for one in needed:
            if one.startswith(name):
                return True
            found, _ = search.find(one, own)
            if found is not None and found not in seen:
                seen.add(found)
                todo.append(found)
    return False


def parameters(text):
    """Open MPI's parameter files: lines "name = value"."""
    found = re.findall(r"^\s*([A-Za-z]\w*)\s*=\s*(.*?)\s*$", text, re.M)
    return {name: value.strip("\"'") for name, value in found}


def parameter_files(root, env, mpi):
    """Files that Open MPI reads, what counts most first."""
    if mpi is not None and mpi.family != "openmpi":
        return []
    named = env.get("OMPI_MCA_mca_base_param_files") or env.get("OMPI_MCA_mca_param_files")
    if named:
        return [root + path for path in re.split("[:,]", named) if path.startswith("/")]
    files = (
        [root + os.path.join(env["HOME"], ".openmpi/mca-params.conf")] if env.get("HOME") else []
    )
    prefix = None
    if mpi is not None:
        prefix = os.path.dirname(os.path.dirname(os.path.realpath(mpi.path)))
        files.append(os.path.join(prefix, "etc/openmpi-mca-params.conf"))
    # The distribution's own Open MPI lies below /usr; one installed elsewhere never reads /etc.
    if prefix is None or prefix.startswith(os.path.realpath(root + "/usr") + "/"):
        files += sorted(glob.glob(root + "/etc/openmpi*/openmpi-mca-params.conf"))
    return files
