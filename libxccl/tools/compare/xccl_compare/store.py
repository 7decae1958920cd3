# SPDX-License-Identifier: BSD-3-Clause
"""The folder of a comparison: what was asked for, and every launch that is done.

plan.json            what was asked for; another plan needs another folder
runs/ID.json, .txt   what the launch left; under this name only when it is whole and verified
runs/ID.log          what it printed
wrong.json           launches that computed something wrong, be they right when they are repeated
runs/ID.wrongN.log   what such a launch printed
"""

import contextlib
import errno
import fcntl
import json
import os
import tempfile
import time

from xccl_common.options import Wrong

from . import site, words

SCHEMA = "xccl-compare-plan-1"
DATE = "%Y-%m-%dT%H:%M:%SZ"
WRITTEN = ("result.json", "result.csv", "table.txt", "runs/launch.log")
# What a plan holds, in the words of the command line, where they are not the same.
ASKED = {
    "version": "the version of xccl",
    "commit": "the build of xccl",
    "program": "--with",
    "osu": "--osu",
    "verify_to": "--verify-to",
    "site": "the site",
    "sim": "the simulated accelerators",
    "suite": "--suite",
    "iters": "--iters",
    "collectives": "--coll",
    "cases": "nodes and ranks",
    "variants": "--routes",
    "series": "sizes",
    "environment": "the environment",
}


def write_text(path, text):
    """Whole, or not at all. A file's name that is no text is escaped in it."""
    part = path + ".part"
    try:
        with open(part, "w", encoding="utf-8", errors="backslashreplace") as f:
            f.write(text)
        os.replace(part, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.remove(part)
        raise OSError(error.errno, f"cannot be written: {error.strerror}", path) from error


def described(session):
    """What has to stay the same for launches to belong together."""
    plan, program, given, tool = session.plan, session.program, session.given, session.tool
    facts = session.facts
    return {
        "schema": SCHEMA,
        "version": tool.version,
        "commit": tool.commit,
        "launcher": list(session.launcher),
        "suite": plan.suite,
        "program": program.name,
        "osu": given.get("--osu"),
        "verify_to": given.get("--verify-to"),
        "site": facts.site["name"] if facts.site else None,
        "sim": facts.environment.get("XCCL_SIM") or None,
        "environment": site.bearing(facts),
        "iters": given["--iters"],
        "collectives": plan.colls,
        "cases": [dict(case._asdict()) for case in plan.cases],
        "variants": [dict(one._asdict()) for one in plan.variants],
        "series": [dict(one._asdict()) for one in plan.series],
    }


def differences(before, asked):
    """What is asked for otherwise than before, as people call it."""
    asked = json.loads(json.dumps(asked))
    for key, value in asked.items():
        old = before.get(key)
        if key == "environment" and isinstance(old, dict):
            yield from words.changed(old, value)
        elif old != value:
            yield ASKED.get(key, key)


class Store:
    def __init__(self, folder):
        self.folder, self.runs = folder, os.path.join(folder, "runs")

    def path(self, name):
        return os.path.join(self.folder, name)

    def open(self, asked):
        """Take the folder for this plan, or raise Wrong."""
        try:
            os.makedirs(self.runs, exist_ok=True)
            self.lock = open(self.path("lock"), "w", encoding="utf-8")  # noqa: SIM115
            for name in WRITTEN:
                self.check_writable(name)
        except OSError as error:
            raise Wrong(f"--output: cannot use '{self.folder}': {error.strerror}") from error
        self.take_lock()
        before = self.read_plan()
        if before is None:
            write_text(self.path("plan.json"), json.dumps(asked, indent=1) + "\n")
            return
        other = list(differences(before, asked))
        if other:
            raise Wrong(
                f"'{self.folder}' holds a comparison that was asked for differently "
                f"({'; '.join(other)}): name another folder with --output, or repeat its command in "
                "the environment of before"
            )

    def check_writable(self, name):
        """Of what is only written at the end: raise OSError now."""
        path = self.path(name)
        if os.path.isdir(path):
            raise OSError(errno.EISDIR, f"{name} is a folder")
        with tempfile.TemporaryFile(dir=os.path.dirname(path)):
            pass

    def take_lock(self):
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Wrong(
                f"another xccl-compare works in '{self.folder}': wait for it, or name another "
                "folder with --output"
            ) from None
        except OSError:
            pass  # Lustre has no locks unless it is mounted with them: nobody keeps two apart then

    def read_plan(self):
        plan = self.read("plan.json")
        return plan if plan is None or isinstance(plan, dict) else {}

    def read(self, name):
        """What a file of JSON holds; None: there is none."""
        path = self.path(name)
        try:
            with open(path, encoding="utf-8") as f:
                return json.load(f)
        except FileNotFoundError:
            return None
        except (OSError, RecursionError, ValueError) as error:
            raise Wrong(
                f"{path}: cannot be read ({error}); name another folder with --output"
            ) from error

    def read_wrong(self):
        """Failures of earlier calls that were wrong results, as in result.json."""
        return self.read("wrong.json") or []

    def keep_wrong(self, failure):
        """Keep the failure and its log, which the next try would write over; the failure as kept."""
        kept, number = dict(failure), 1
        if os.path.exists(failure["log"]):
            stem = os.path.splitext(failure["log"])[0]
            while os.path.exists(f"{stem}.wrong{number}.log"):
                number += 1
            kept["log"] = f"{stem}.wrong{number}.log"
            os.replace(failure["log"], kept["log"])
        every = [*self.read_wrong(), kept]
        write_text(self.path("wrong.json"), json.dumps(every, indent=1) + "\n")
        return kept

    def run(self, name):
        return os.path.join(self.runs, name)

    def newest(self, paths):
        """When the last of these launches ended, as in result.json; now, where there is none."""
        times = [os.path.getmtime(path) for path in paths if os.path.exists(path)]
        return time.strftime(DATE, time.gmtime(max(times) if times else None))

    def set_aside(self, path):
        """A file that is no use stays, under a name that nobody takes for a result."""
        number = 1
        while os.path.exists(f"{path}.broken{number}"):
            number += 1
        os.replace(path, f"{path}.broken{number}")
        return f"{path}.broken{number}"
