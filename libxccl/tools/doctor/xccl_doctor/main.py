# SPDX-License-Identifier: BSD-3-Clause
"""What xccl-doctor does with its options: collect, check, report."""

import os
import re
import shlex
import shutil
from types import SimpleNamespace

from xccl_common import elf, launchers, machine, ucc
from xccl_common.failure import failure, telling_line
from xccl_common.lines import Lines, TooLong
from xccl_common.options import Wrong, near
from xccl_common.tool import OK, status_of

from . import (
    checks_env,
    checks_files,
    checks_launch,
    checks_log,
    checks_net,
    checks_settings,
    command,
    hang,
    logs,
    registry,
    report,
    run,
)

SEVERITY_STATUS = {registry.WARNING: 3, registry.ERROR: 1}
XCCL_ERROR = re.compile(r"xccl(?:\[\d+\])? error: ")
# What a job that failed says of itself: only if no error explains it.
REPEATED = ("run-failed", "job-failed")
# Of the machine where a log is read, as a login node: the job ran elsewhere, and with modules of its own.
OF_THIS_MACHINE = (
    *("ccl-missing", "memlock", "shm-small", "open-files", "net-interface-wrong"),
    *("net-hca-unknown", "net-storage-port", "site-gpus", "site-nic", "site-numa"),
)
# Of the lines of a log that is too long these are read: each that a finding comes from has one of them.
TELLING = (
    "ccl|ucc|ucx|tl_|mpi|libfabric|error|signal|fault|fatal|launch|access|execut|slots|root|traceback|terminat|"
    "exit|exception|notice|limit|oom|memory|insufficient|preload"
)
HEAD = 4096  # characters of a log
MOST = 2 << 30  # characters of one, which all are kept: more may end a login node's limits
UNEXPLAINED = "ccl-said"  # said only if there is nothing else to say


def read_file(path):
    """The lines of a log; "-" is standard input."""
    given = {"encoding": "utf-8", "errors": "replace", "closefd": path != "-"}
    try:
        with open(0 if path == "-" else path, **given) as f:
            head = f.read(HEAD)
            if "\0" in head:  # nothing would be found in a program, and /dev/zero has no end
                raise Wrong(f"--log: '{path}' is no text; name the file with what the job printed")
            return Lines.read(f, head, MOST)
    except TooLong:
        name = "FILE" if path == "-" else shlex.quote(path)
        raise Wrong(
            f"--log: '{path}' has more than {MOST >> 20} MiB; give it the lines that tell something: "
            f"grep -aiE '{TELLING}' {name} | grep -av opCount | xccl-doctor --log -"
        ) from None
    except OSError as error:
        raise Wrong(f"--log: cannot read '{path}': {error.strerror}") from error


def run_job(seconds, launcher, facts, options):
    """(log facts, findings about the run itself, where its output is kept or None)."""
    site = facts.site["name"] if facts.site else None
    words = run.command(options.prefix, launcher, site, options.env.get("XCCL_SIM"))
    ended = run.run(words, options.env, seconds)
    found = []
    if ended.status is None:
        interface = facts.env.get("NCCL_SOCKET_IFNAME", "hsn0").split(",")[0]
        found.append(registry.finding("run-hung", seconds=seconds, interface=interface))
    elif ended.status != 0:
        line, log = telling_line(ended.text), ended.log or "there is none, the job printed nothing"
        found.append(registry.finding("run-failed", status=ended.status, line=line, log=log))
    log = logs.parse(ended.text)
    log.expect_xccl = facts.route == "xccl" and ended.status == 0
    return log, found, ended.log


def read_log(given, launcher, facts, options):
    """(log facts or None, findings about the run itself, where its output is kept or None)."""
    if "--log" in given:
        lines = read_file(given["--log"])
        line = failure(lines)
        whose = "xccl" if line and XCCL_ERROR.match(line) else "any"
        found = [registry.finding("job-failed", whose, line=line)] if line else []
        return logs.parse(lines), found, None
    if "--run" not in given:
        return None, [], None
    launchers.check_alone(options.env, "xccl-doctor --run -- mpirun -n 4")
    launchers.check_bare(launcher, options.env)
    if not options.sysroot and shutil.which(launcher[0], path=options.env.get("PATH")) is None:
        raise Wrong(f"--run: '{launcher[0]}' was not found; check the spelling and PATH")
    return run_job(int(given.get("--timeout", 300)), launcher, facts, options)


def examine_hang(folder):
    """(statements, findings) of the files that ranks wrote; this machine has no part in it."""
    try:
        return hang.examine(folder)
    except hang.Empty:
        raise Wrong(
            f"--hang: no file xccl-ops.*.json in '{folder}'; ranks write them to their current folder, or to "
            "XCCL_DUMP_DIR, on SIGUSR1: scancel --signal=USR1 JOBID, or kill -USR1 PID of each rank"
        ) from None
    except OSError as error:
        raise Wrong(f"--hang: cannot read '{folder}': {error.strerror}") from error


def collect_facts(given, options):
    try:
        facts = machine.collect(options)
    except (OSError, elf.NotElf, elf.Damaged) as error:
        raise Wrong(
            f"--app: '{options.app}' is not a program that this machine runs; "
            "of a script, name the program that it starts"
        ) from error
    facts.settings = checks_settings.collect(options.prefix, facts.shell_env)
    facts.log_given = "--log" in given
    facts.lister_without_ucc = None
    # Programs of another machine are not started.
    if facts.route in ("ucc", "ucc-ccl") and not options.sysroot:
        facts.lister_without_ucc = ucc.lister_without_ucc(facts)
    return facts


def ordered(found):
    """Each finding once, errors first."""
    unique = {}
    for finding in found:
        unique.setdefault(finding.id, finding)
    return sorted(unique.values(), key=lambda f: f.severity != registry.ERROR)


def examine_machine(given, facts):
    """Findings of this machine and its environment."""
    found = []
    for checks in (checks_settings, checks_env, checks_launch, checks_net, checks_files):
        for check in checks.CHECKS:
            found += check(facts)
    return [one for one in found if "--log" not in given or one.id not in OF_THIS_MACHINE]


def has_error(found):
    return any(one.severity == registry.ERROR for one in found)


def examine_log(given, facts, log, found, about_run):
    """All findings, with those of the log and the job that it is of; found: those of this machine."""
    in_log = [one for check in checks_log.CHECKS for one in check(facts, log)]
    if about_run:  # a job that did not run says nothing, and why it did not is said
        in_log = [one for one in in_log if one.id != "log-silent"]
    every = in_log + found if "--log" in given else found + in_log
    # What is wrong on this machine explains a job that was started here, not the end of one elsewhere.
    causes = in_log if "--log" in given else every
    if has_error(every):
        every = [one for one in every if one.id != "ucc-silent"]
    if has_error(causes):
        every = [one for one in every if one.id != "xccl-said"]
        about_run = [one for one in about_run if one.id not in REPEATED]
    every += about_run
    known = any(one.id != UNEXPLAINED for one in causes + about_run)
    return [one for one in every if one.id != UNEXPLAINED or not known]


def examine(given, launcher, options):
    """(statements, (looked at, not there), findings)."""
    if "--hang" in given:
        said, found = examine_hang(given["--hang"])
        return said, ([], []), found  # in an order of its own
    facts = collect_facts(given, options)
    found = examine_machine(given, facts)
    said = list(report.static_statements(facts))
    log, about_run, kept = read_log(given, launcher, facts, options)
    if log is not None:
        said += checks_log.statements(facts, log)
        said += [f"the job's output is kept in {kept}"] if kept else []
        found = examine_log(given, facts, log, found, about_run)
    found += checks_launch.check_site_variables(facts, found)
    return said, report.looked_at(facts, log), ordered(found)


def work(given, launcher, options, tool):
    if "--help" in given:
        print(command.USAGE)
        return OK
    if "--version" in given:
        print(f"{tool.name} {tool.version}")
        return OK
    if "--list" in given:
        report.print_list("--json" in given)
        return OK
    installed = report.pages(options.prefix)
    if "--explain" in given:
        name = given["--explain"]
        if name not in registry.TABLE:
            hint = near(name, sorted(registry.TABLE))
            raise Wrong(f"no finding '{name}'{hint or '; xccl-doctor --list prints all'}")
        report.explain(name, installed, "--json" in given)
        return OK
    command.check_options(given, launcher, machine.load_sites(options.prefix))
    said, looked, found = examine(given, launcher, options)
    severities = {finding.severity for finding in found}
    worst = registry.ERROR if registry.ERROR in severities else registry.WARNING
    status = SEVERITY_STATUS[worst] if found else OK
    if "--json" in given:
        report.print_json(tool.version, status, said, looked, found)
    else:
        report.print_text(said, *looked, found, installed)
    return status


def main(words, tool):
    def start():
        given, launcher = command.read(words)
        options = SimpleNamespace(
            env=dict(os.environ),
            prefix=tool.prefix,
            libdir=tool.libdir,
            sysroot=given.get("--sysroot", "").rstrip("/"),
            site=given.get("--site"),
            route=given.get("--route"),
            app=given.get("--app"),
            launcher=launcher,
        )
        return work(given, launcher, options, tool)

    return status_of(tool.name, start)
