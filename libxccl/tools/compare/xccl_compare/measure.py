# SPDX-License-Identifier: BSD-3-Clause
"""The launches of a comparison, in turns."""

import contextlib
import os
import shutil
import subprocess
import sys
import threading
import time
from collections import namedtuple

from xccl_common import process
from xccl_common.failure import telling_line

from . import launch, site, ucc, words
from .perf import Broken

Launch = namedtuple("Launch", "case series variant round")
Setting = namedtuple("Setting", "tool given launcher facts")


# What xccl-perf and OSU's programs print of a result that is wrong.
WRONG = ("WRONG RESULT: ", "DATA VALIDATION ERROR")


# What Open MPI says where the job has more ranks than there are cores.
NO_ROOM = "not enough slots"


class Failed(Exception):
    """Why a launch left nothing that can be used."""


def turns(plan, rounds, left_out, first):
    """All launches: round by round, within a round case by case, and there every variant in turn.

    The order of the variants turns from round to round, so that none has the same place always.
    """
    for number in range(first, rounds + 1):
        for case in plan.cases:
            for series in plan.series:
                usable = [v for v in plan.variants if (case.name, v.name) not in left_out]
                start = number % len(usable) if usable else 0
                order = usable[start:] + usable[:start]
                for variant in order[::-1] if number % 2 == 0 else order:
                    yield Launch(case, series, variant, number)


class Progress:
    """Where it stands: on a terminal in one line, in the place of the one before; else a line every so often."""

    def __init__(self, total, every=0.0):
        self.total, self.done, self.spent = total, 0, 0.0
        self.shown = sys.stderr.isatty()
        self.every = 0.0 if self.shown else every
        self.place, self.ended = None, threading.Event()
        self.speaker = None

    def say(self, text):
        if self.shown:
            # Of a line that takes two, the first would stay.
            width = shutil.get_terminal_size().columns
            sys.stderr.write(f"\r\033[K{text[: max(width - 1, 1)]}")
            sys.stderr.flush()

    def text(self):
        left = ""
        if self.done:
            seconds = self.spent / self.done * (self.total - self.done)
            left = f", about {words.duration(seconds)} left"
        return f"[{self.done + 1}/{self.total}] {self.place}{left}"

    def speak(self):
        """In a thread of its own, because a launch may take longer than it is silent."""
        while not self.ended.wait(self.every):
            print(f"xccl-compare: {self.text()}", file=sys.stderr, flush=True)

    def begin(self, one):
        which = f"round {one.round}" if one.round else "untimed"
        self.place = f"{one.case.name}, {one.variant.name}, {which}"
        self.say(self.text())
        if self.every and self.speaker is None:
            self.speaker = threading.Thread(target=self.speak, daemon=True)
            self.speaker.start()

    def end(self, seconds):
        self.done += 1
        self.spent += seconds

    def close(self):
        self.say("")
        self.ended.set()
        if self.speaker is not None:
            self.speaker.join()


class Session:
    """One call of the tool: what it starts, reads and could not do."""

    def __init__(self, plan, store, program, setting):
        self.plan, self.store, self.program = plan, store, program
        self.tool, self.given, self.launcher, self.facts = setting
        self.left_out, self.failures, self.runs = {}, [], {}
        self.wrong = set()  # (case, variant) of launches that computed something wrong
        self.env = dict(self.facts.environment)
        self.probed = None  # what xccl-perf says of the machine, where the program says nothing

    def choose(self):
        """Finds what cannot run here, with the reason."""
        for variant in self.plan.variants:
            reason = site.why_not(self.facts, variant.route)
            reason = reason or self.program.why_not(variant.route, self.plan.colls)
            for case in self.plan.cases:
                own = launch.why_not(self.launcher, case, variant, self.nodes())
                if reason or own:
                    self.left_out[case.name, variant.name] = reason or own

    def nodes(self):
        return self.given.get("--nodes", self.facts.nodes)

    def name(self, one):
        return f"{one.case.name}.{one.series.name}.{one.variant.name}.{one.round}"

    def target(self, one):
        return self.store.run(self.name(one) + self.program.suffix)

    def untimed(self, variant):
        """A launch that is not timed: it verifies, or has UCC say which transports it takes."""
        verifies = self.program.verifies_apart and self.program.validates(variant.route)
        return verifies or variant.route in ucc.ROUTES

    def launches(self):
        every = turns(self.plan, self.given["--rounds"], self.left_out, 0)
        return [one for one in every if one.round > 0 or self.untimed(one.variant)]

    def environment(self, one):
        """(what this launch sets, what it must not have)."""
        route = "xccl" if one.variant.route == "vendor" else one.variant.route
        sets, unsets = site.variables(self.facts, route)
        if one.round == 0 and self.program.verifies_apart:
            sets = dict(sets, XCCL_LOG="info")  # OSU does not say which path a call takes
        if one.round == 0 and one.variant.route in ucc.ROUTES:
            sets = {**sets, **ucc.TRACE}
            unsets = [*unsets, *(name for name in ucc.ELSEWHERE if name in self.env)]
        return sets, unsets

    def said(self, one):
        """What this launch printed."""
        log = self.store.run(self.name(one) + ".log")
        return self.printed(log if self.program.suffix.endswith("json") else self.target(one))

    def commands(self, one, target):
        """The commands of a launch."""
        run = [os.path.join(self.tool.prefix, "bin/xccl-run")]
        for option in ("--sim", "--site"):
            if option in self.given:
                run += [option, self.given[option]]
        environment = self.environment(one)
        for programs in self.program.programs(one, self.plan.colls, target):
            yield launch.command(self.launcher, one, environment, [*run, *programs], self.env)

    def take_up(self, one):
        """True if this launch was done before; a broken file is set aside."""
        target = self.target(one)
        if not os.path.exists(target):
            return False
        try:
            self.runs[self.name(one)] = (one, *self.program.read(target))
        except Broken as broken:
            kept = self.store.set_aside(target)
            print(f"xccl-compare: {broken}; measured again, and kept as {kept}", file=sys.stderr)
            return False
        return True

    def start(self, one):
        """Run it, and read what it left. Raises Failed."""
        log, new = self.store.run(self.name(one) + ".log"), self.target(one) + ".new"
        limit = self.given["--timeout"] or None
        with contextlib.suppress(FileNotFoundError):
            os.remove(new)  # of a launch that failed: nobody shall take it for this one's
        with open(log, "wb") as output:
            for command in self.commands(one, new):
                self.start_one(command, output, limit, log)
        if not self.program.suffix.endswith("json"):
            os.replace(log, new)
        try:
            found = self.program.read(new)
        except Broken as broken:
            raise Failed(str(broken)) from None
        os.replace(new, self.target(one))
        self.runs[self.name(one)] = (one, *found)

    def start_one(self, command, output, limit, log):
        try:
            status = process.run(
                command,
                limit,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        except OSError as error:
            raise Failed(f"{command[0]}: {error.strerror}") from error
        if status is None:
            raise Failed(f"no end after {limit} s (--timeout)")
        if status != 0:
            with open(log, encoding="utf-8", errors="replace") as f:
                raise Failed(f"{telling_line(f.read())} (status {status})")

    @staticmethod
    def printed(log):
        try:
            with open(log, encoding="utf-8", errors="replace") as f:
                return f.read()
        except OSError:
            return ""

    def note_failure(self, one, cause):
        log = self.store.run(self.name(one) + ".log")
        failure = {
            "case": one.case.name,
            "variant": one.variant.name,
            "series": one.series.name,
            "round": one.round,
            "cause": cause,
            "log": log if os.path.exists(log) else self.target(one) + ".new",
        }
        if any(word in cause + self.printed(failure["log"]) for word in WRONG):
            self.wrong.add((one.case.name, one.variant.name))
            failure = self.store.keep_wrong(failure)
        self.left_out[one.case.name, one.variant.name] = f"failed: {cause}"
        if NO_ROOM in cause:  # nor has the launcher for the other routes
            for variant in self.plan.variants:
                self.left_out.setdefault((one.case.name, variant.name), f"not started: {cause}")
        self.failures.append(failure)

    def flaky(self):
        """Failures of launches that computed something wrong, and were right when repeated."""
        names = {
            (o.case.name, o.variant.name, o.series.name, o.round) for o, *_ in self.runs.values()
        }
        keys = ("case", "variant", "series", "round")
        return [one for one in self.failures if tuple(one[key] for key in keys) in names]

    def measured_on(self):
        """When the last launch ended: what was measured before keeps its date."""
        return self.store.newest([self.target(one) for one, *_ in self.runs.values()])

    def work(self):
        """All that is left to do; what fails is left out from there on, and the rest goes on.

        How many launches that were.
        """
        self.failures = self.store.read_wrong()
        todo = [one for one in self.launches() if not self.take_up(one)]
        progress = Progress(len(todo), self.given["--progress"])
        try:
            for one in todo:
                if (one.case.name, one.variant.name) in self.left_out:
                    progress.total -= 1
                    continue
                progress.begin(one)
                started = time.monotonic()
                try:
                    self.start(one)
                except Failed as failed:
                    self.note_failure(one, str(failed))
                progress.end(time.monotonic() - started)
        finally:
            progress.close()
        return len(todo)
