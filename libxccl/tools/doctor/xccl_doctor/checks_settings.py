# SPDX-License-Identifier: BSD-3-Clause
"""What the variables of xccl itself, and the preload, are set to. Every check: facts to findings."""

import json
import os
import re
import subprocess
from types import SimpleNamespace

from xccl_common.options import near

from .checks_env import ccl_name, uses_ccl
from .registry import finding

SAID = re.compile(r"^xccl-info: (warning: )?(.+)$", re.M)
# Tables of the installation; the fault of a variable begins with its name.
LEFT_OUT = re.compile(r"^xccl warning: a tuning table is left out: (.+)$", re.M)
IN_A_TABLE = re.compile(r"/")
SECONDS = 30
FLAVOURS = ("cuda", "rocm", "msccl", "mscclpp", "oneccl", "hpu")
MOST_DEVICES = 64  # that one process simulates


def collect(prefix, env):
    """What xccl-info says of this environment: its parser is the one that MPI_Init uses."""
    none = SimpleNamespace(errors=[], warnings=[], left_out=[], refused=None)
    # A preload that is broken would be complained of here, and a whole one takes no part.
    quiet = {name: value for name, value in env.items() if name != "LD_PRELOAD"}
    try:
        done = subprocess.run(  # noqa: UP022 (its advice needs Python 3.7)
            [os.path.join(prefix, "bin/xccl-info"), "--json"],
            env=quiet,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=SECONDS,
            check=False,
        )
        written = json.loads(done.stdout.decode("utf-8", "replace"))
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return none
    text = done.stderr.decode("utf-8", "replace")
    said = SAID.findall(text)
    # What is not there, each check finds by itself: MPI_Init does not refuse it.
    wrong = [text for warning, text in said if not warning and text != written.get("missing")]
    # XCCL_LOG may hide the warnings; the fault of the first table is there in any case.
    left_out = [text for text in wrong if IN_A_TABLE.match(text)]
    return SimpleNamespace(
        errors=[text for text in wrong if not IN_A_TABLE.match(text)],
        warnings=[text for warning, text in said if warning],
        left_out=list(dict.fromkeys(left_out + LEFT_OUT.findall(text))),
        refused=written.get("in_use", {}).get("why_not"),
    )


def check_settings(facts):
    if facts.settings.errors:
        yield finding("xccl-setting", problem="; ".join(facts.settings.errors))
    if facts.settings.warnings:
        yield finding("xccl-unknown", problem="; ".join(facts.settings.warnings))
    if facts.settings.left_out:
        yield finding("xccl-table", problem="; ".join(facts.settings.left_out))


# Of the first kind it can be loaded, but is another library; of the second it cannot be loaded.
REFUSED, UNLOADABLE = "(found by: XCCL_CCL_LIBRARY)", "(from XCCL_CCL_LIBRARY)"


def refusal_of_library(facts):
    """Why a file that is there, and that XCCL_CCL_LIBRARY names, is not used; else None."""
    why = facts.settings.refused or ""
    if facts.ccl_library is None or facts.route != "xccl":
        return None
    if REFUSED in why:
        return why
    if UNLOADABLE in why and not facts.search.unloadable(facts.ccl_library.path)[0]:
        return why  # what it needs is there; else library-broken names what is missing
    return None


def check_ccl(facts):
    why = refusal_of_library(facts)
    if why is not None:
        yield finding("ccl-refused", why=why)


def missing_library(facts):
    """What XCCL_CCL_LIBRARY names by its path, if that is not there; else None."""
    named = facts.env.get("XCCL_CCL_LIBRARY", "")
    return named if "/" in named and not os.path.exists(facts.root + named) else None


def check_library_file(facts):
    named = missing_library(facts)
    if named and facts.route == "xccl":
        yield finding("ccl-file-missing", file=named)


# What the ranks write, and what comes of it where they cannot.
WRITTEN = (
    ("XCCL_LOG_FILE", "messages go to stderr"),
    ("XCCL_PROFILE", "MPI_Finalize prints the table, and writes no file"),
    ("XCCL_DUMP_DIR", "the last operations of ranks that fail or hang are lost"),
)


def expanded(name):
    """A file's name as xccl makes it: %h is the host, %p the process."""
    return name.replace("%h", os.uname().nodename).replace("%p", str(os.getpid()))


def unwritable(root, name, is_folder):
    """Why no file of that name, or in that folder, can be written; None if it can."""
    path = root + name if name.startswith("/") else os.path.abspath(name)
    folder = path if is_folder else os.path.dirname(path)
    if not os.path.isdir(folder):
        shown = folder[len(root) :] if name.startswith("/") else folder
        return f"{shown} is no folder" if os.path.exists(folder) else f"there is no folder {shown}"
    if not is_folder and os.path.isdir(path):
        return "that is a folder"
    there = not is_folder and os.path.exists(path)
    if os.access(path if there else folder, os.W_OK if there else os.W_OK | os.X_OK):
        return None
    return "it is read-only, or this user may not write there"


def check_written(facts):
    problems = []
    for variable, effect in WRITTEN:
        value = facts.env.get(variable, "")
        if not value or facts.route != "xccl":
            continue
        if variable == "XCCL_PROFILE" and not value.endswith(".json"):
            continue  # 0, 1, or what MPI_Init refuses
        why = unwritable(facts.root, expanded(value), variable == "XCCL_DUMP_DIR")
        if why is not None:
            problems.append(f"{variable}={value} ({why}), so {effect}")
    if problems:
        yield finding("xccl-unwritable", problems="; ".join(problems))


# Files that NCCL and RCCL read or load, where a path names them.
NAMED_FILES = ("NCCL_TOPO_FILE", "NCCL_GRAPH_FILE", "NCCL_CONF_FILE", "NCCL_TUNER_PLUGIN")


def check_named_files(facts):
    for name in NAMED_FILES:
        value = facts.env.get(name, "")
        if uses_ccl(facts) and value.startswith("/") and not os.path.exists(facts.root + value):
            yield finding("file-missing", variable=name, value=value, ccl=ccl_name(facts))


def check_preload(facts):
    for word in re.split(r"[\s:]+", facts.env.get("LD_PRELOAD", "")):
        # A name without a slash is looked up, and $LIB and the like are the loader's.
        if "/" in word and "$" not in word and not os.path.exists(facts.root + word):
            yield finding("preload-missing", file=word, why="which is not there")
            return


def check_site(facts):
    if facts.site_name and facts.sites and facts.site_name not in facts.sites:
        sites = sorted(facts.sites)
        hint = near(facts.site_name, sites)
        yield finding("site-unknown", site=facts.site_name, sites=", ".join(sites) + hint)


def check_simulation(facts):
    """As the simulation reads it: else it offers no device."""
    value = facts.env.get("XCCL_SIM", "")
    kind, _, number = value.partition(":")
    whole = re.match(r"[0-9]{1,9}$", number)
    if value and (kind not in FLAVOURS or not whole or not 1 <= int(number) <= MOST_DEVICES):
        allowed = ", ".join(f"{flavour}:N" for flavour in FLAVOURS)
        hint = near(kind, FLAVOURS)
        yield finding("sim-unknown", value=value, allowed=allowed, most=MOST_DEVICES, hint=hint)


CHECKS = (
    check_settings,
    check_ccl,
    check_library_file,
    check_written,
    check_named_files,
    check_preload,
    check_site,
    check_simulation,
)
