# SPDX-License-Identifier: BSD-3-Clause
"""What the site's file says: routes, variables; and which routes there are here."""

import json
import os
import re
import subprocess
from types import SimpleNamespace

from xccl_common import launchers, machine, ucc
from xccl_common.options import check_choice

NAMES = {"nccl": "NCCL", "rccl": "RCCL"}
# Variables that bear on how collectives run; others may hold what is nobody's business.
BEARING = re.compile(
    r"^(XCCL|NCCL|RCCL|UCC|UCX|OMPI_MCA|PMIX_MCA|FI|MPICH|HSA)_|_VISIBLE_DEVICES$"
)
# Those of them that differ from job to job, or only say where something is written; and those that a
# comparison notes apart or sets itself.
PASSING = re.compile(
    r"^OMPI_MCA_(orte|prte|ess|pmix)_|^XCCL_(SITE|SIM|ROUTE|ROOT|ENV_ARGS|LOCAL_DEVICE|DUMP_DIR)$"
    r"|_(DEBUG|LOG|DUMP|PROFILE)_FILE$|^XCCL_PROFILE$|^(NCCL|RCCL)_DEBUG(_SUBSYS)?$|^XCCL_LOG$|_LOG_LEVEL$"
)
IN_JOB = ("SLURM_JOB_ID", "PBS_JOBID", "FLUX_JOB_ID", "LSB_JOBID")


def look(tool, env, site, launcher):
    """Facts of the machine, as xccl-doctor collects them."""
    options = SimpleNamespace(
        env=env,
        prefix=tool.prefix,
        libdir=tool.libdir,
        sysroot="",
        site=site,
        route="xccl",
        app=None,
        launcher=launcher,
    )
    facts = machine.collect(options)
    if site is not None:
        check_choice("site", site, sorted(facts.sites))
    if facts.site_name and facts.site is None and facts.sites:
        check_choice("site", facts.site_name, sorted(facts.sites))
    return facts


def routes_of(facts):
    """{route: its variables}, or nothing where no site is known."""
    return facts.site["resolved"]["routes"] if facts.site else {}


def shell_variables(facts):
    """What the site's module or script sets, whatever the route."""
    return facts.site["resolved"].get("shell", {}) if facts.site else {}


def missing_variables(facts):
    """Those of them that are not set here: each launch sets them, as if the module were loaded."""
    return {n: v for n, v in shell_variables(facts).items() if n not in facts.environment}


def other_variables(facts):
    """{name: (value here, the site's)} of those that have another value, which they keep."""
    env = facts.environment
    pairs = {n: (env[n], v) for n, v in shell_variables(facts).items() if n in env}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def variable_notes(facts):
    """What is set in place of the site's module, and what is not as the site has it."""
    missing, other = missing_variables(facts), other_variables(facts)
    if missing:
        text = ", ".join(f"{name}={value}" for name, value in sorted(missing.items()))
        yield f"{facts.site['title']}'s own variables were not in the environment, and each launch sets them: {text}"
    if other:
        text = ", ".join(
            f"{n}={here} (the site: {own})" for n, (here, own) in sorted(other.items())
        )
        yield f"set here otherwise than {facts.site['title']} has it, and left so: {text}"


def variables(facts, route):
    """(what the environment of this route sets, what it must not have)."""
    routes = routes_of(facts)
    own = dict(routes.get(route, {}).get("variables", {}), XCCL_ROUTE=route)
    every = {name for known in routes.values() for name in known["variables"]}
    unset = sorted(name for name in every - set(own) if name in facts.environment)
    return {**missing_variables(facts), **own}, unset


def bearing(facts):
    """The variables of all launches that bear on results, without those of a route and of one job."""
    routes = routes_of(facts).values()
    set_by_route = {name for known in routes for name in known["variables"]}
    in_job = any(name in facts.environment for name in IN_JOB)
    return {
        name: value
        for name, value in {**missing_variables(facts), **facts.environment}.items()
        if BEARING.search(name)
        and not PASSING.search(name)
        and name not in set_by_route
        and not (in_job and name.endswith("_VISIBLE_DEVICES"))  # what the scheduler gave this time
    }


def why_not_ucc(facts, route):
    family = ucc.mpi_family(facts)
    if family is not None and family != "openmpi":
        return f"it goes through Open MPI, and the MPI here is {launchers.NAMES[family]}"
    lister = ucc.lister_without_ucc(facts)
    if lister is not None:
        return f"Open MPI has no coll/ucc component ({lister} lists none)"
    ccl = facts.site["ccl"]["library"]
    wanted = f"libucc_tl_{ccl}.so"
    if route == "ucc-ccl" and facts.ucc is not None and wanted not in facts.ucc.components:
        return f"UCC in {facts.ucc.folder} has no {wanted}, its transport over {NAMES[ccl]}"
    return None


def has_built_in_path(facts):
    """True where xccl was built with the path of the vendor's library."""
    try:
        command = [os.path.join(facts.prefix, "bin/xccl-info"), "--json"]
        out = subprocess.check_output(
            command, env=facts.env, stderr=subprocess.DEVNULL, timeout=60
        )
        return bool(json.loads(out.decode())["installation"]["ccl_path"])
    except (OSError, subprocess.SubprocessError, ValueError, KeyError):
        return False


def why_not_vendor(facts):
    if facts.ccl_file is None:
        return "neither a GPU nor a site says here whose library it would be: give --site"
    if facts.ccl_library is None and not has_built_in_path(facts):
        return f"{facts.ccl_file} was not found; set XCCL_CCL_LIBRARY, or load its module"
    return None


def why_not(facts, route):
    """Why this route cannot be measured here; None if nothing is known against it."""
    if route == "vendor":
        return why_not_vendor(facts)
    if route not in ("ucc", "ucc-ccl"):
        return None
    if not facts.sites:
        return "no sites are installed, whose variables it needs: make install adds them"
    if facts.site is None:
        return "no site was recognised, and its variables come from the site: give --site"
    refused = routes_of(facts)[route]["refused"]
    return f"not on {facts.site['title']}: {refused}" if refused else why_not_ucc(facts, route)
