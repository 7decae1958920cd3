# SPDX-License-Identifier: BSD-3-Clause
"""What is said: facts, what was looked at and what was not there to look at, findings."""

import json
import os
import re

from xccl_common.launchers import NAMES

from . import areas, docs, registry
from .checks_env import ccl_name
from .checks_settings import refusal_of_library

# Variables that bear on how collectives run.
OURS = re.compile(
    r"^(XCCL|NCCL|RCCL|UCC|UCX|OMPI|PMIX?|FI|MPICH|SLURM|CRAY|HSA)_|_VISIBLE_DEVICES$|^LD_(LIBRARY_PATH|PRELOAD)$"
)


def libraries_statements(facts):
    """Which files are going to be loaded, and what says so."""
    library, plugin = facts.ccl_library, facts.plugin
    if library and refusal_of_library(facts) is None:
        what = " ".join(filter(None, [ccl_name(facts), library.version]))
        why = "XCCL_CCL_LIBRARY" if facts.env.get("XCCL_CCL_LIBRARY") else library.why
        yield f"{what} is taken from {library.path} (found by: {why})"
    if plugin:
        yield f"the network plugin is taken from {plugin.path} (found by: {plugin.why})"


def static_statements(facts):
    site = facts.site["title"] if facts.site else "none recognised"
    yield f"site: {site}; route: {facts.route}"
    what = "simulated " if facts.simulated else f"{facts.vendor} " if facts.vendor else ""
    count = f"{len(facts.gpus)} {what}GPUs" if facts.gpus else "no GPU"
    verbs = [name + " (down)" * (name in facts.ports_down) for name in facts.nics["ib"]]
    ports = ", ".join(verbs + facts.nics["cxi"]) or "none for InfiniBand or Slingshot"
    yield f"{count}; ports: {ports}"
    yield from libraries_statements(facts)
    for path, names in facts.ccl_files:
        yield f"{ccl_name(facts)} takes {', '.join(names)} from {path}"
    if facts.mpi:
        yield f"MPI: {facts.mpi.family}, {facts.mpi.path} ({facts.mpi.why})"
    if facts.app_family:
        yield f"{facts.app} is built with {NAMES[facts.app_family]} ({facts.app_mpi or 'not found'})"


def without_mpi(facts):
    """Why nothing is known of the MPI of a program."""
    if facts.app_static:
        return f"an MPI of {facts.app} (it is linked statically)"
    if facts.app_own_mpi:
        return f"an MPI of {facts.app} (it is inside the program)"
    return f"an MPI of {facts.app} (it is linked with none: name the program itself, not a script)"


def looked_at(facts, log):
    """(what there was to look at, what there was not), as short texts."""
    seen, missing = [], []
    count = sum(bool(OURS.search(name)) for name in facts.env)
    seen.append(f"{count} variables of the environment")
    files = [*facts.parameter_files, facts.ucc.config if facts.ucc else None]
    seen += [path for path in files if path]
    for there, text, without in (
        (facts.gpus, f"{len(facts.gpus)} GPUs", "GPUs (none on this machine)"),
        (facts.ccl_library, "the vendor's library", "the vendor's library (none found)"),
        (facts.mpi, "the MPI library", "an MPI library (none found)"),
        (facts.app_family, "the program's MPI", without_mpi(facts) if facts.app else None),
        (facts.nics["ib"] + facts.nics["cxi"], "network ports", None),
        (facts.ucc, "UCC", "UCC (none found)" if facts.route.startswith("ucc") else None),
        (facts.site, "the site's description", "a site's description (none recognised)"),
        (
            facts.ranks_per_node,
            "the job's shape",
            "a job's shape (no launcher's variables: run it in the job)",
        ),
        (log, "the job's log", "a job's log (--run, --log)"),
    ):
        if there:
            seen.append(text)
        elif without:
            missing.append(without)
    return seen, missing


def pages(prefix):
    """The folder with the installed pages of findings; None in an installation without."""
    folder = os.path.join(prefix, "share/doc/xccl")
    return folder if os.path.isdir(os.path.join(folder, areas.FOLDER)) else None


def print_text(said, seen, missing, found, installed):
    for sentence in said:
        print(f"  {sentence}")
    for finding in found:
        print(f"\n{finding.severity.upper()} [{finding.id}] {finding.cause}")
        print(f"  do: {finding.remedy}")
        place = areas.place(finding.id)
        where = f"{installed}/{place}" if installed else f"xccl-doctor --explain {finding.id}"
        print(f"  see: {where}")
    if found:
        print()
    if seen:
        print("looked at: " + ", ".join(seen))
    if missing:
        print("not there to look at: " + ", ".join(missing))
    if not found:
        print("nothing found wrong in what was looked at")


def print_json(version, status, said, looked, found):
    result = {
        "schema": "xccl-doctor/1",
        "version": version,
        "status": status,
        "facts": said,
        "looked_at": looked[0],
        "not_there": looked[1],
        "findings": [f._asdict() for f in found],
    }
    print(json.dumps(result, indent=1))


def described(name):
    """A finding as such, for --list: nothing in it is of a job."""
    remedies = registry.remedies(name)
    return {
        "severity": registry.TABLE[name].severity,
        "cause": registry.meaning(name),
        "remedy": "; or: ".join(remedies),
        "remedies": remedies,
    }


def print_list(as_json):
    rows = {name: described(name) for name in registry.TABLE}
    if as_json:
        print(json.dumps(rows, indent=1, sort_keys=True))
        return
    for name, row in sorted(rows.items()):
        print("{:<22} {:<8} {}".format(name, row["severity"], row["cause"]))


def explain(name, installed, as_json):
    if as_json:
        row = {"id": name, **described(name)}
        if installed:
            row["see"] = f"{installed}/{areas.place(name)}"
        print(json.dumps(row, indent=1, sort_keys=True))
        return
    print(f"{name} ({registry.TABLE[name].severity})\n  {registry.meaning(name)}")
    remedies = registry.remedies(name)
    print(f"  do: {remedies[0]}")
    for remedy in remedies[1:]:
        print(f"  or: {remedy}")
    if name in docs.SOURCES:
        print(f"  seen in: {docs.SOURCES[name]}")
    if installed:
        print(f"  see: {installed}/{areas.place(name)}")
