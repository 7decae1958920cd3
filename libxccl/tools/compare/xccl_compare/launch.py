# SPDX-License-Identifier: BSD-3-Clause
"""The command of one launch, for any launcher; and a batch script around a comparison."""

import os
import re
import shlex

from xccl_common import launchers
from xccl_common.options import Wrong

PLACES = re.compile(r"\{(nodes|ranks|ranks_per_node)\}")
# How the launchers call the number of nodes and ranks, which a suite sets.
COUNTS = re.compile(r"^(-[nN]\d*|-np|--ntasks|--nodes|--ntasks-per-node|-ppn|-c\d+x)(=.*)?$")
SLURM_ONLY = ("--gpu-bind",)
GPU_OPTIONS = ("--gpus", "--gpus-per-node", "--gpus-per-task", "--gres")
NODES = r"-N|--nodes"
RANKS = r"-n|-np|--ntasks"
PER_NODE = r"--ntasks-per-node|-ppn"


def is_srun(words):
    return os.path.basename(words[0]) == "srun"


def number(words, names):
    """What one of these options of the launcher says: -n 8, -n8 or --ntasks=8. None: nothing."""
    for word, following in zip(words, [*words[1:], ""]):
        found = re.fullmatch(rf"(?:{names})(?:=?(\d+))?", word)
        value = (found.group(1) or following) if found else ""
        if value.isdecimal() and int(value) > 0:
            return int(value)
    return None


def job_of(words, per_node):
    """Nodes and ranks of each that the launcher's words ask for, or one node and per_node."""
    nodes, ranks = number(words, NODES) or 1, number(words, RANKS)
    each = number(words, PER_NODE)
    return nodes, each or (-(-ranks // nodes) if ranks else per_node)


def family(words, env):
    """Whose mpirun it is: openmpi, mpich or None."""
    path = launchers.find_program("", env, words[0])
    return launchers.family_of_program(path) if path else None


def shaped(words, case, env):
    """The launcher with this many nodes and ranks; its own words where the case leaves them open."""
    ranks = case.nodes * case.per_node if case.nodes else None
    if any(PLACES.search(word) for word in words):
        if ranks is None:
            raise Wrong("{nodes} and {ranks} are for suites that set them; give numbers")
        values = {"nodes": case.nodes, "ranks": ranks, "ranks_per_node": case.per_node}
        return [PLACES.sub(lambda found: str(values[found.group(1)]), word) for word in words]
    if ranks is None:
        return list(words)
    taken = next((word for word in words[1:] if COUNTS.match(word)), None)
    if taken is not None:
        raise Wrong(f"the suite sets nodes and ranks: leave '{taken}' out of the launcher")
    if is_srun(words):
        per = f"--ntasks-per-node={case.per_node}"
        return [*words, f"--nodes={case.nodes}", f"--ntasks={ranks}", per]
    kind = family(words, env)
    if kind == "openmpi":
        spread = ["--map-by", f"ppr:{case.per_node}:node"] if case.nodes > 1 else []
        return [*words, "-n", str(ranks), *spread]
    if kind == "mpich":
        spread = ["-ppn", str(case.per_node)] if case.nodes > 1 else []
        return [*words, "-n", str(ranks), *spread]
    raise Wrong(
        f"'{words[0]}': unknown launcher; write {{nodes}}, {{ranks}} and {{ranks_per_node}} where its "
        f"numbers go: -- {words[0]} -n {{ranks}}"
    )


def why_not(words, case, variant, nodes):
    """Why this launcher cannot start this case or variant; None if it can. nodes: of the job."""
    slurm = next((word for word in variant.launcher if word.startswith(SLURM_ONLY)), None)
    if slurm and not is_srun(words) and variant.one_node:
        return f"{slurm} is an option of srun"
    if variant.one_node and case.nodes != 1:
        return "it is for one node"
    if case.nodes is None or (nodes is None and is_srun(words)):
        return None  # srun asks for its own nodes, outside of a job
    if case.nodes > (nodes or 1):
        known = f"the job has {nodes}" if nodes else "no job says that there are more than one"
        return f"it needs {case.nodes} nodes, and {known} (--nodes says how many there are)"
    return None


def command(words, one, environment, programs, env):
    """All words of a launch. environment: (to set, to unset); programs: xccl-run's and behind."""
    own = [w for w in one.variant.launcher if is_srun(words) or not w.startswith(SLURM_ONLY)]
    names = {word.split("=")[0] for word in own}
    kept = [word for word in words if word.split("=")[0] not in names]
    sets, unsets = environment
    pairs = [f"{name}={value}" for name, value in sorted({**sets, **one.variant.env}.items())]
    without = [part for name in unsets for part in ("-u", name)]
    return [*shaped(kept, one.case, env), *own, "env", *without, *pairs, *programs]


def text(words):
    """As a shell takes it."""
    return " ".join(shlex.quote(word) for word in words)


def meaning(option):
    """What an option of srun is about: of the ways to ask for GPUs one is enough."""
    name = option.split("=")[0]
    name = {"-c": "--cpus-per-task", "-G": "--gpus", "-p": "--partition"}.get(name[:2], name)
    return "--gpus" if name in GPU_OPTIONS else name


def options_for_srun(site, given):
    """Those of the site's job scripts, but for what the launcher's words say already."""
    said = {meaning(word) for word in given if word.startswith("-")}
    # Without a number of GPUs the user sets that of the cores, which SRUN_CPUS_PER_TASK hands on.
    unsure = () if "count" in site["hardware"]["gpu"] else ("--cpus-per-task",)
    options = site["launch"].get("srun", [])
    return [word for word in options if meaning(word) not in (*said, *unsure)]


def gpus_of_job(site, per_node):
    """As in the site's job scripts: of a site that does not say how many a node has, one for each rank."""
    gpu = site["hardware"]["gpu"] if site else {"vendor": "sim"}
    known = "count" in gpu or gpu.get("vendor") == "sim"
    return () if known else (f"#SBATCH --gpus-per-node={per_node}",)


def modules_of(site, share):
    """Lines that load what the site's job scripts load. share: the folder of xccl's modules."""
    current = [s for s in site["software"] if not s.get("historic")] if site else []
    software = current[0] if current else {}
    modules = software.get("modules", [])
    lines = [f"module {software.get('begin', 'purge')}"] if modules else []
    lines += [f"module load {module}" for module in modules]
    if "libraries_first" in software:
        first = "${{{}-}}".format(software["libraries_first"])
        lines.append(f'export LD_LIBRARY_PATH="{first}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"')
    if os.path.isdir(share):
        of_site = f"xccl-site/{site['name']}" if site else ""
        there = of_site and os.path.exists(os.path.join(share, of_site))
        lines.append(f"module use {share}")
        lines.append(f"module load {of_site} xccl" if there else "module load xccl")
    return lines


def batch_script(plan, facts, launcher, arguments, job):
    """A batch script for Slurm that runs this comparison. job: nodes and ranks of each."""
    said, per_node = job
    nodes = max((case.nodes or said for case in plan.cases), default=said)
    site = facts.site
    lines = [
        "#!/bin/bash",
        "# Printed by xccl-compare --sbatch; look it through, set the account, and submit it with sbatch.",
        f"#SBATCH --job-name={plan.suite or 'xccl-compare'}",
        f"#SBATCH --nodes={nodes}",
        f"#SBATCH --ntasks-per-node={per_node}",
        "#SBATCH --time=01:00:00",
        *(f"#SBATCH {option}" for option in (site["launch"]["sbatch"] if site else ())),
        *gpus_of_job(site, per_node),
        "set -eu",
    ]
    cpus = site["launch"].get("cpus_per_task") if site else None
    if cpus:
        lines.insert(-1, f"#SBATCH --cpus-per-task={cpus}")
        lines.append(f"export SRUN_CPUS_PER_TASK=${{SLURM_CPUS_PER_TASK:-{cpus}}}")
    lines += modules_of(site, os.path.join(facts.prefix, "share/xccl/modulefiles"))
    program = os.path.join(facts.prefix, "bin/xccl-compare")
    own = options_for_srun(site, launcher[1:]) if site and is_srun(launcher) else []
    begin = len(arguments) - len(launcher) + 1  # the launcher's words are the last ones
    words = [program, *arguments[:begin], *own, *arguments[begin:]]
    return "\n".join([*lines, text(words)]) + "\n"
