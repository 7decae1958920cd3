# SPDX-License-Identifier: BSD-3-Clause
"""Options and output of xccl-doctor."""

import json
import os
import sys
from types import SimpleNamespace

from . import checks_env, checks_files, checks_log, collect, hang, logs, registry, run

USAGE = """Usage: xccl-doctor [options]
       xccl-doctor [options] --run -- launcher [arguments]

Says what is wired to what, and what is wrong: an identifier, the cause, the remedy.

  --run -- LAUNCHER ...  also run a small job with logs on and read them: --run -- srun -N2 -n8
  --timeout SECONDS      time that the job may take (300)
  --log FILE             read the log of an earlier job instead
  --hang FOLDER          line up the files xccl-ops.*.json of the ranks of a job that hangs
  --site NAME            instead of XCCL_SITE, or the site detected
  --route ROUTE          instead of XCCL_ROUTE (xccl, ucc, ucc-ccl, mpi)
  --sysroot FOLDER       read /proc, /sys and libraries below this folder
  --json                 print JSON
  --list                 print every finding that there is; --list --json for programs
  --explain ID           print one of them
  --help, --version

Exit status: 0 nothing found, 1 warnings, 2 errors, 64 a wrong option."""

OK, USAGE_ERROR = 0, 64
SEVERITY_STATUS = {registry.WARNING: 1, registry.ERROR: 2}
ROUTES = ("xccl", "ucc", "ucc-ccl", "mpi")
WITH_VALUE = ("--timeout", "--log", "--hang", "--site", "--route", "--sysroot", "--explain")
FAILED = ("run-failed", "job-failed")  # said only if no other error explains it
FLAGS = ("--json", "--list", "--help", "--version", "--run")


class Wrong(Exception):
    """What is wrong with the options."""


def parse(words):
    """Options by name, and the words behind "--"."""
    given, rest = {}, list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            break
        name, equals, value = word.partition("=")
        if name in WITH_VALUE:
            if not equals:
                if not rest:
                    raise Wrong(f"{name} needs a value")
                value = rest.pop(0)
            given[name] = value
        elif word in FLAGS:
            given[word] = True
        else:
            known = ", ".join(sorted(FLAGS + WITH_VALUE))
            raise Wrong(f"unknown option '{word}'; known: {known}")
    return given, rest


def check_options(given, launcher, sites):
    if "--run" in given and not launcher:
        raise Wrong("--run needs a launcher: xccl-doctor --run -- srun -N2 -n8")
    if launcher and "--run" not in given:
        raise Wrong(f"'{launcher[0]}' would only be run with --run")
    if "--run" in given and "--log" in given:
        raise Wrong("--run makes a log, and --log reads one: give one of the two")
    if "--hang" in given and ("--run" in given or "--log" in given):
        raise Wrong("--hang reads files of a job that ran: give it without --run and --log")
    if given.get("--route", "xccl") not in ROUTES:
        raise Wrong("unknown route '{}'; known: {}".format(given["--route"], ", ".join(ROUTES)))
    if "--site" in given and given["--site"] not in sites:
        raise Wrong(
            "unknown site '{}'; known: {}".format(given["--site"], ", ".join(sorted(sites)))
        )
    if not given.get("--timeout", "1").isdigit() or given.get("--timeout") == "0":
        raise Wrong("--timeout: '{}' is no number of seconds".format(given["--timeout"]))
    if "--sysroot" in given and not os.path.isdir(given["--sysroot"]):
        raise Wrong("--sysroot: no folder '{}'".format(given["--sysroot"]))


def static_statements(facts):
    site = facts.site["title"] if facts.site else "none recognised"
    yield f"site: {site}; route: {facts.route}"
    what = "simulated" if facts.simulated else (facts.vendor or "no vendor's")
    ports = ", ".join(facts.nics["ib"] + facts.nics["cxi"]) or "none for InfiniBand or Slingshot"
    yield f"{len(facts.gpus)} {what} GPUs; ports: {ports}"
    for name, library in ((facts.ccl_file, facts.ccl_library), ("network plugin", facts.plugin)):
        if library:
            version = getattr(library, "version", None)
            known = f" {version}" if version else ""
            yield f"{name}{known} would be {library.path} ({library.why})"
    if facts.mpi:
        yield f"MPI: {facts.mpi.family}, {facts.mpi.path} ({facts.mpi.why})"


def telling_line(text):
    """The line that says why it failed, else the first that speaks of an error, else the last."""
    cause = logs.failure(text, failed=True)
    if cause:
        return cause
    lines = [line.strip() for line in text.splitlines() if not logs.NO_CAUSE.search(line)]
    telling = [line for line in lines if "error" in line.lower()] or lines[-1:] or ["no output"]
    return telling[0]


def read_log(given, launcher, facts, options):
    """(log facts or None, findings about the run itself)."""
    if "--log" in given:
        try:
            with open(given["--log"], errors="replace") as f:
                text = f.read()
        except OSError as error:
            raise Wrong(f"--log: {error}") from error
        line = logs.failure(text)
        return logs.parse(text), [registry.finding("job-failed", line=line)] if line else []
    if "--run" not in given:
        return None, []
    seconds = int(given.get("--timeout", 300))
    site = facts.site["name"] if facts.site else None
    command = run.command(options.prefix, launcher, site, options.env.get("XCCL_SIM"))
    ended = run.run(command, options.env, seconds)
    found = []
    if ended.status is None:
        interface = facts.env.get("NCCL_SOCKET_IFNAME", "hsn0").split(",")[0]
        found.append(registry.finding("run-hung", seconds=seconds, interface=interface))
    elif ended.status != 0:
        line = telling_line(ended.text)
        found.append(registry.finding("run-failed", status=ended.status, line=line, log=ended.log))
    else:
        os.unlink(ended.log)
    return logs.parse(ended.text), found


def examine_hang(folder):
    """(statements, findings) of the files that ranks wrote; this machine has no part in it."""
    try:
        return hang.examine(folder)
    except hang.Empty:
        raise Wrong(f"--hang: no file xccl-ops.*.json in '{folder}'") from None
    except OSError as error:
        raise Wrong(f"--hang: {error}") from error


def examine(given, launcher, options):
    """(statements, findings), each finding once, errors first."""
    if "--hang" in given:
        return examine_hang(given["--hang"])
    facts = collect.collect(options)
    found = []
    for check in checks_env.CHECKS + checks_files.CHECKS:
        found += check(facts)
    said = list(static_statements(facts))
    log, about_run = read_log(given, launcher, facts, options)
    if log is not None:
        said += checks_log.statements(facts, log)
        for check in checks_log.CHECKS:
            found += check(facts, log)
        explained = any(finding.severity == registry.ERROR for finding in found)
        found += [f for f in about_run if f.id not in FAILED or not explained]
    unique = {}
    for finding in found:
        unique.setdefault(finding.id, finding)
    order = sorted(unique.values(), key=lambda f: -SEVERITY_STATUS[f.severity])
    return said, order


def print_text(said, found):
    for sentence in said:
        print(f"  {sentence}")
    for finding in found:
        print(f"\n{finding.severity.upper()} [{finding.id}] {finding.cause}")
        print(f"  do: {finding.remedy}")
        print(f"  see: {finding.anchor}")
    if not found:
        print("nothing found")


def print_list(as_json):
    if as_json:
        rows = {name: row._asdict() for name, row in registry.TABLE.items()}
        print(json.dumps(rows, indent=1, sort_keys=True))
        return
    for name, row in sorted(registry.TABLE.items()):
        print(f"{name:<22} {row.severity:<8} {row.cause}")


def explain(name):
    if name not in registry.TABLE:
        raise Wrong(f"no finding '{name}'; xccl-doctor --list prints all")
    row = registry.TABLE[name]
    print(f"{name} ({row.severity})\n  {row.cause}\n  do: {row.remedy}")
    print(f"  see: {registry.DOCS}#{name}")


def work(given, launcher, options, version):
    if "--help" in given:
        print(USAGE)
        return OK
    if "--version" in given:
        print(f"xccl-doctor {version}")
        return OK
    if "--list" in given:
        print_list("--json" in given)
        return OK
    if "--explain" in given:
        explain(given["--explain"])
        return OK
    check_options(given, launcher, collect.load_sites(options.prefix))
    said, found = examine(given, launcher, options)
    status = max([SEVERITY_STATUS[f.severity] for f in found] or [OK])
    if "--json" in given:
        result = {
            "schema": "xccl-doctor/1",
            "version": version,
            "status": status,
            "facts": said,
            "findings": [f._asdict() for f in found],
        }
        print(json.dumps(result, indent=1))
    else:
        print_text(said, found)
    return status


def main(words, version, prefix, libdir):
    try:
        given, launcher = parse(words)
        options = SimpleNamespace(
            env=dict(os.environ),
            prefix=prefix,
            libdir=libdir,
            sysroot=given.get("--sysroot", "").rstrip("/"),
            site=given.get("--site"),
            route=given.get("--route"),
        )
        return work(given, launcher, options, version)
    except Wrong as wrong:
        print(f"xccl-doctor: {wrong}", file=sys.stderr)
        return USAGE_ERROR
