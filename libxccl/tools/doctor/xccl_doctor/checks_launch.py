# SPDX-License-Identifier: BSD-3-Clause
"""Findings of launchers: the wrong MPI's, srun without PMIx, a lost LD_PRELOAD; and the site's variables."""

import os
import re

from xccl_common.launchers import NAMES, in_slurm_step
from xccl_common.machine import is_loaded

from .registry import finding

INTERPOSER = "libxccl-mpi.so"


def family_of_job(facts):
    """(family, what says so) of the MPI that the program uses; None where any launcher may be right."""
    family, what = family_of_program(facts)
    return (None, None) if family == "mpiabi" else (family, what)


def family_of_program(facts):
    if facts.app_family is not None:
        return facts.app_family, f"{facts.app} needs"
    if facts.mpi is not None:
        return facts.mpi.family, "the MPI library found is"
    return None, None


def check_launcher(facts):
    family, _ = family_of_job(facts)
    sure = facts.app_family is not None or (facts.mpi and facts.mpi.why == "LD_LIBRARY_PATH")
    launcher = facts.started_by
    if family is None or not sure:
        return
    if launcher is not None and launcher.family != family:  # also where it started this tool alone
        what = f"mpirun of {NAMES[launcher.family]} started "
        what += "this rank" if launcher.ranks == 1 else f"{launcher.ranks} ranks"
        if facts.app_family is not None:
            what += f", and {facts.app} is built with {NAMES[family]}"
        else:
            what += f", and the MPI library found is {NAMES[family]} ({facts.mpi.path})"
        yield finding("mpi-other-launcher", what=what)


def check_mpirun(facts):
    """Outside of a job: the launcher that would be used."""
    family, what = family_of_job(facts)
    sure = facts.app_family is not None or (facts.mpi and facts.mpi.why == "LD_LIBRARY_PATH")
    mpirun = facts.mpirun
    if facts.started_by is not None or mpirun is None or family is None or not sure:
        return
    if mpirun.family is not None and mpirun.family != family:
        yield finding(
            "mpirun-other",
            mpirun=mpirun.path,
            launcher=NAMES[mpirun.family],
            what=what,
            mpi=NAMES[family],
        )


def check_pmi(facts):
    family, _ = family_of_job(facts)
    ranks = facts.env.get("SLURM_STEP_NUM_TASKS", facts.env.get("SLURM_NTASKS", "1"))
    if family != "openmpi" or not in_slurm_step(facts.env) or not ranks.isdecimal():
        return
    known = any(name.startswith(("PMIX_", "PMI_", "OMPI_COMM_WORLD_")) for name in facts.env)
    if int(ranks) > 1 and not known:
        yield finding("mpi-no-pmi", what=f"srun started {ranks} ranks without PMIx")


def check_preload(facts):
    """An interposer that xccl-run or the module xccl-auto preloaded has to be there still."""
    if facts.route != "xccl" or INTERPOSER in facts.env.get("LD_PRELOAD", ""):
        return
    what = "its LD_PRELOAD does not hold libxccl-mpi.so"
    if "XCCL_LOCAL_DEVICE" in facts.env and in_rank(facts):
        yield finding("preload-lost", who="xccl-run started this rank", what=what)
    elif is_loaded(facts.env, "xccl-auto"):
        what = "LD_PRELOAD does not hold libxccl-mpi.so"
        yield finding("preload-lost", who="the module xccl-auto is loaded", what=what)


def is_ours(facts, path):
    """Is it the interposer of the installation that this tool belongs to?"""
    try:
        return os.path.samefile(path, os.path.join(facts.libdir, INTERPOSER))
    except OSError:  # one of the two is not there
        return False


def check_other_preload(facts):
    """The ranks would run with it, and all that is said here is of this installation."""
    for word in re.split(r"[\s:]+", facts.env.get("LD_PRELOAD", "")):
        path = facts.root + word
        named = "/" in word and os.path.basename(word) == INTERPOSER
        if named and os.path.exists(path) and not is_ours(facts, path):
            yield finding("preload-other", file=word, prefix=facts.prefix)
            return


def check_root(facts):
    """XCCL_ROOT, which modules and env/ set, names an installation: this one."""
    named = facts.env.get("XCCL_ROOT", "")
    folder = facts.root + named
    # Of an installation without MPI only the folder can be compared; of a view only the files in it.
    interposer = os.path.join(folder, os.path.basename(facts.libdir), INTERPOSER)
    same = os.path.realpath(folder) == os.path.realpath(facts.prefix)
    if not named or same or is_ours(facts, interposer):
        return
    why = "which is no folder: scripts that look there find no xccl"
    if os.path.isdir(folder):
        why = f"but this xccl-doctor belongs to {facts.prefix}: scripts that look there take another xccl"
    yield finding("xccl-root", root=named, why=why)


def in_rank(facts):
    return facts.started_by is not None or in_slurm_step(facts.env)


def check_app(facts):
    if facts.app_static and facts.route == "xccl":
        yield finding("program-static", program=facts.app)
    if facts.app_own_mpi and facts.route == "xccl":
        yield finding("program-own-mpi", program=facts.app)
    if facts.app is not None and facts.app_family is not None and facts.app_mpi is None:
        missing = {"openmpi": "libmpi.so.40", "mpich": "libmpi.so.12", "mpiabi": "libmpi_abi.so.1"}
        missing = missing[facts.app_family]
        yield finding("library-broken", file=facts.app, missing=missing)
    if facts.app_family == "mpich" and "CRAY_MPICH_VERSION" in facts.env and not facts.app_gtl:
        asked = facts.env.get("MPICH_GPU_SUPPORT_ENABLED") == "1"
        if asked and "libmpi_gtl_" not in facts.env.get("LD_PRELOAD", ""):
            yield finding("gtl-missing")  # MPI_Init ends it


def site_variables(facts):
    """The site's variables that hold for this number of nodes."""
    nodes = {None: "many", 1: "one"}.get(facts.nodes, "many")
    for variable in (facts.site or {}).get("variables", []):
        if variable.get("apply", "always") == "never" or variable["verified"] == "unverified":
            continue
        if variable.get("scope", "shell") == "launch" and facts.route != "xccl":
            continue
        module = variable.get("unless_module")
        if variable.get("nodes", nodes) == nodes and not (module and is_loaded(facts.env, module)):
            yield variable


def check_site_variables(facts, found):
    """What differs from the site's values and is not said by another finding already."""
    said = " ".join(finding.cause + " " + finding.remedy for finding in found)
    differ = [
        v
        for v in site_variables(facts)
        if facts.env.get(v["name"], v["value"]) != v["value"]
        and v["name"] not in said
        and not (v["name"] == "NCCL_NET" and facts.nodes == 1)  # xccl-run replaces it
    ]
    if differ:
        yield finding(
            "site-variable",
            settings=" ".join("{}={}".format(v["name"], facts.env[v["name"]]) for v in differ),
            site=facts.site["name"],
            reason="; ".join(sorted({v["reason"] for v in differ})),
            values=" ".join(quoted(v) for v in differ),
        )


def quoted(variable):
    value = variable["value"]
    return "{}={}".format(variable["name"], f"'{value}'" if " " in value else value)


CHECKS = (
    check_launcher,
    check_mpirun,
    check_pmi,
    check_preload,
    check_other_preload,
    check_root,
    check_app,
)
