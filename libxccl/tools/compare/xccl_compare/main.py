# SPDX-License-Identifier: BSD-3-Clause
"""What xccl-compare does with its options."""

import json
import os
import shlex
import shutil
import sys

from xccl_common import launchers, process
from xccl_common.options import Wrong
from xccl_common.tool import FAILED, INTERRUPTED, OK, status_of

from . import (
    against,
    as_csv,
    command,
    launch,
    measure,
    peaks,
    plot,
    published,
    site,
    store,
    suites,
    table,
    words,
)
from . import result as results
from .osu import Osu
from .perf import Perf


def say(text=""):
    print(text, flush=True)


def warn(text):
    print(f"xccl-compare: {text}", file=sys.stderr)


def look(given, launcher, tool):
    """Facts of this machine, with the environment that launches get."""
    env = dict(os.environ)
    if "--sim" in given:
        env["XCCL_SIM"] = given["--sim"]
    facts = site.look(tool, env, given.get("--site"), launcher)
    facts.environment = env
    return facts


def ranks_per_node(given, facts):
    count = facts.site["hardware"]["gpu"].get("count") if facts.site else None
    return given.get("--ranks-per-node") or (len(facts.gpus) if facts.simulated else count) or 8


def program_of(given, tool, facts):
    if given.get("--with") == "osu":
        limits = given["--iters"], given.get("--verify-to")
        return Osu(given.get("--osu"), facts.environment, facts.vendor, *limits)
    return Perf(tool.prefix, given["--iters"])


def probe(session):
    """OSU's programs say nothing of the machine: xccl-perf does, in a launch of its own."""
    plain = session.plan.cases[0]
    one = measure.Launch(plain, suites.Series("probe", 4, 4, 2.0), suites.variant("xccl"), 1)
    perf = Perf(session.tool.prefix, 1)
    whole, session.program = session.program, perf
    try:
        if not session.take_up(one):
            session.start(one)
        return session.runs.pop(session.name(one))[2]
    except measure.Failed as failed:
        raise Wrong(
            f"the launcher starts no xccl-perf: {failed}; log: {session.store.runs}"
        ) from None
    finally:
        session.program = whole


def print_commands(session, commands):
    for name, lines in commands.items():
        say(f"{name}:")
        for line in lines:
            say(f"  {line}")
    for line in table.left_out(
        {
            "left_out": [
                {"case": case, "variant": variant, "reason": reason}
                for (case, variant), reason in session.left_out.items()
            ],
            "cases": session.plan.cases,
            "measured_with": {},
        }
    ):
        say(f"left out:{line[1:]}")
    for line in site.variable_notes(session.facts):
        say(f"note: {line}")


def write(session, arguments, tool):
    """Everything that follows from what was measured; the result."""
    value = results.build(session, arguments)
    figures = published.choose(tool.prefix, value["published"])
    text = "\n".join(table.whole(value, figures)) + "\n"
    store.write_text(session.store.path("result.json"), json.dumps(value, indent=1) + "\n")
    store.write_text(session.store.path("table.txt"), text)
    store.write_text(session.store.path("result.csv"), as_csv.text(value))
    say(text)
    written = ["result.json", "result.csv", "table.txt"]
    if value["results"] and "--no-plot" not in session.given:
        written += draw(value, figures, session.store.folder)
    say(f"in {session.store.folder}: {', '.join(written)}")
    for failure in value["failures"]:
        warn("{variant}, {case}, round {round}: {cause}; log: {log}".format(**failure))
    return value


def draw(value, figures, folder):
    try:
        return plot.draw(value, figures, folder)
    except plot.NoMatplotlib as error:
        again = f"xccl-compare --plot {shlex.quote(os.path.join(folder, 'result.json'))}"
        warn(
            f"no plots: {error}. Table, JSON and CSV are complete; draw them here or elsewhere: {again}"
        )
        return []


def measure_all(session):
    """The launches; and a word where there is none left, which would pass for a measurement of now."""
    if session.program.verifies_apart:
        session.probed = probe(session)
    if session.work() == 0:
        done, date = words.count(len(session.runs), "launch"), session.measured_on()
        say(f"all {done} were done before ({date}); nothing was started\n")


def compare(given, launcher, arguments, tool):
    launchers.check_alone(os.environ, "xccl-compare -- mpirun -n 4")
    launchers.check_bare(launcher, os.environ)
    facts = look(given, launcher, tool)
    plan = suites.make(given, ranks_per_node(given, facts))
    published.choose(tool.prefix, plan.published)
    if "--sbatch" in given:
        kept = [word for word in arguments if word != "--sbatch"]
        job = launch.job_of(launcher, ranks_per_node(given, facts))
        say(launch.batch_script(plan, facts, launcher, kept, job).rstrip("\n"))
        return OK
    folder = given.get("--output", "xccl-compare" + (f"-{plan.suite}" if plan.suite else ""))
    program = program_of(given, tool, facts)
    setting = measure.Setting(tool, given, launcher, facts)
    session = measure.Session(plan, store.Store(folder), program, setting)
    session.choose()
    if not session.launches():
        reasons = "; ".join(dict.fromkeys(session.left_out.values()))
        raise Wrong(f"nothing can be measured here: {reasons}")
    commands = results.commands(session)
    found = shutil.which(launcher[0], path=facts.environment.get("PATH"))
    if found is None and "--dry-run" not in given:
        raise Wrong(f"'{launcher[0]}' was not found; check the spelling and PATH")
    if "--dry-run" not in given:
        session.store.open(store.described(session))
    print_commands(session, commands)
    if facts.site is None and not facts.gpus and not facts.simulated:
        warn("no GPU was found on this machine; to try the tool on simulated ones: --sim cuda:2")
    if "--dry-run" in given:
        return OK
    process.heed_interrupts()
    try:
        measure_all(session)
    except KeyboardInterrupt:
        warn("stopped; the same command goes on from here")
        if session.runs:
            write(session, arguments, tool)
        return INTERRUPTED
    return FAILED if write(session, arguments, tool)["failures"] else OK


def compare_results(pair):
    old, new = (results.load(path) for path in pair)
    lines, status = against.report(old, new, against.verdicts(old, new))
    say("\n".join(lines))
    return status


def draw_again(given, tool):
    value = results.load(given["--plot"])
    if "--published" in given:
        value["published"] = None if given["--published"] == "none" else given["--published"]
    value["peaks"] = peaks.of_result(value["peaks"], value["measured_with"], tool.prefix)
    folder = given.get("--output", os.path.dirname(os.path.abspath(given["--plot"])))
    try:
        os.makedirs(folder, exist_ok=True)
        written = plot.draw(value, published.choose(tool.prefix, value.get("published")), folder)
    except plot.NoMatplotlib as error:
        warn(str(error))
        return FAILED
    except OSError as error:
        raise Wrong(f"--output: cannot write in '{folder}': {error.strerror}") from error
    say(f"in {folder}: {', '.join(written)}")
    return OK


def print_csv(path):
    say(as_csv.text(results.load(path)).rstrip("\n"))


def print_list(given, launcher, tool):
    facts = look(given, launcher, tool)
    where = facts.site["title"] if facts.site else "no site recognised"
    say(f"routes here ({where}):")
    for route in command.ROUTES:
        say(f"  {route:<13} {site.why_not(facts, route) or suites.TITLES[route]}")
    say("suites:")
    for name, make in suites.SUITES.items():
        say(f"  {name:<13} {make.__doc__.rstrip('.')}")
    say("published figures:")
    for name, figures in published.load(tool.prefix).items():
        say(f"  {name:<13} {figures['title']}: {published.amount(figures)}")
        origin = ", ".join(filter(None, (figures.get("date"), figures.get("url"))))
        if origin:
            say(f"  {'':<13} {origin}")
    return OK


def whole(option, work):
    """Work on a result that was written before: what does not fit into it is the file's fault."""
    try:
        return work()
    except (ArithmeticError, AttributeError, LookupError, TypeError) as error:
        what = f"no {error}" if isinstance(error, KeyError) else error
        raise Wrong(f"{option}: the file is damaged, or was changed by hand: {what}") from error


# What is done in place of a comparison.
MODES = {
    "--help": lambda *_: say(command.USAGE),
    "--version": lambda given, launcher, tool: say(f"{tool.name} {tool.version}"),
    "--against": lambda given, *_: whole("--against", lambda: compare_results(given["--against"])),
    "--plot": lambda given, launcher, tool: whole("--plot", lambda: draw_again(given, tool)),
    "--csv": lambda given, *_: whole("--csv", lambda: print_csv(given["--csv"])),
    "--list": print_list,
}


def run(arguments, tool):
    given, launcher = command.read(arguments, sorted(suites.SUITES))
    for option, work in MODES.items():
        if option in given:
            return work(given, launcher, tool) or OK
    return compare(given, launcher, arguments, tool)


def main(arguments, tool):
    return status_of(tool.name, lambda: run(arguments, tool))
