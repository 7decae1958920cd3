# SPDX-License-Identifier: BSD-3-Clause
"""What routes.py and plugin.py share: jobs in a route's environment, their logs, and xccl-doctor's verdict on them."""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[3]
# What each library says of the calls that it serves. UCC's trace is a line per call and rank.
TALK = {
    "XCCL_LOG": "info",
    "NCCL_DEBUG": "INFO",
    "NCCL_DEBUG_SUBSYS": "INIT,ENV,NET,P2P,BOOTSTRAP,COLL",
    "UCC_LOG_LEVEL": "INFO",
    "UCC_COLL_TRACE": "INFO",
}
# Site and route are given as variables: not every shell hands arguments to a file that is sourced. Those that do would
# hand over the command without the "--".
ON_ROUTE = '. "$1" -- && shift && exec "$@"'
SHELL = shutil.which("bash") or "sh"


class Wrong(Exception):
    """What is wrong with the call of the program."""


def find_script(prefix):
    """env/xccl.sh of the installation; of this checkout, if the prefix is one of its builds."""
    for path in (prefix / "share/xccl/env/xccl.sh", CHECKOUT / "env/xccl.sh"):
        if path.exists():
            return path
    raise Wrong(f"{prefix} has no share/xccl/env/xccl.sh: name an installation of xccl (--xccl)")


class Machine:
    """One installation of xccl on one site, a launcher, and the folder for what comes out."""

    def __init__(self, given, launcher):
        self.prefix = find_prefix(given.xccl)
        self.script = find_script(self.prefix)
        self.site, self.sim, self.launcher = given.site, given.sim, launcher
        self.limit = given.timeout
        self.out = Path(given.output).resolve()
        self.out.mkdir(parents=True, exist_ok=True)
        if not launcher:
            raise Wrong("no launcher: give it behind --, for example -- mpirun -n 2")
        if "XCCL_ROUTE" in os.environ:
            raise Wrong("a route of xccl is chosen in this shell, and this program chooses it: "
                        "unload xccl's modules, or call '. xccl.sh off'")  # fmt: skip

    def tool(self, name):
        return str(self.prefix / "bin" / name)

    def xccl_run(self):
        return [self.tool("xccl-run"), *(["--sim", self.sim] if self.sim else [])]

    def environment(self, route, more):
        own = {"XCCL_ROOT": str(self.prefix), "XCCL_ROUTE": route, "XCCL_SITE": self.site}
        return {**os.environ, **own}, [f"{name}={value}" for name, value in more.items()]

    def on(self, route, words, more=None):
        """Run words in the environment that env/xccl.sh makes: (status, output)."""
        environment, pairs = self.environment(route, more or {})
        command = [SHELL, "-c", ON_ROUTE, SHELL, str(self.script), "env", *pairs, *map(str, words)]
        try:
            done = subprocess.run(
                command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, timeout=self.limit, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired as late:
            text = (late.stdout or b"").decode("utf-8", "replace")
            return 124, f"{text}\nno end after {self.limit} s (--timeout)\n"
        return done.returncode, done.stdout.decode("utf-8", "replace")

    def job(self, route, words, name, more=None):
        """A job with all logs on: (status, output, file of its log)."""
        status, text = self.on(route, [*self.launcher, *words], {**TALK, **(more or {})})
        log = self.out / f"{name}.log"
        log.write_text(text, encoding="utf-8")
        return status, text, log

    def doctor(self, route, name, more=None, log=None):
        """xccl-doctor's report goes to a file; returns the identifiers of what it found."""
        words = [self.tool("xccl-doctor"), *(["--log", str(log)] if log else [])]
        _, text = self.on(route, words, more)
        (self.out / f"{name}-doctor.txt").write_text(text, encoding="utf-8")
        _, found = self.on(route, [*words, "--json"], more)
        try:
            return [finding["id"] for finding in json.loads(found)["findings"]]
        except (ValueError, KeyError):
            return ["xccl-doctor failed: " + found.strip()[:200]]

    def describe(self):
        """What the machine is, as far as its own tools say."""
        parts = []
        for words in (["uname", "-a"], ["nvidia-smi"], ["nvidia-smi", "topo", "-m"],
                      ["ompi_info", "--version"], ["ucx_info", "-v"], ["ucc_info", "-v"],
                      ["fi_info", "--version"], [self.tool("xccl-info")]):  # fmt: skip
            if shutil.which(words[0]):
                status, text = self.on("xccl", words)
                parts.append(f"## {' '.join(words)} (status {status})\n{text}")
        (self.out / "machine.txt").write_text("\n".join(parts), encoding="utf-8")

    def pack(self):
        """All of the folder as one file beside it."""
        target = self.out.with_name(self.out.name + ".tar.gz")
        with tarfile.open(target, "w:gz") as archive:
            archive.add(self.out, self.out.name)
        return target


def find_prefix(named):
    found = named or shutil.which("xccl-run")
    if not found:
        raise Wrong("xccl-run is not on PATH: name an installation of xccl (--xccl)")
    prefix = Path(found).resolve() if named else Path(found).resolve().parents[1]
    if not (prefix / "bin/xccl-run").exists():
        raise Wrong(f"{prefix} has no bin/xccl-run: name an installation of xccl (--xccl)")
    return prefix


def new_parser(text, output):
    """The options that both programs have."""
    shape = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=text, formatter_class=shape)
    option = parser.add_argument
    option("--xccl", metavar="PREFIX", help="installation of xccl; else that on PATH")
    option("--site", default="generic-nvidia", help="(%(default)s)")
    option("--sim", metavar="FLAVOUR:N", help="simulated devices, as xccl-run's")
    option("--output", default=output, metavar="FOLDER", help="(%(default)s)")
    option("--timeout", type=int, default=120, metavar="SECONDS", help="of one job (%(default)d)")
    return parser


def read_arguments(parser):
    """(options, words behind --)."""
    words = sys.argv[1:]
    end = words.index("--") if "--" in words else len(words)
    return parser.parse_args(words[:end]), words[end + 1 :]


class Verdicts:
    """What was expected and what came, printed as it comes."""

    def __init__(self, out):
        self.failed, self.out = 0, out
        self.lines = []

    def say(self, good, text):
        self.failed += not good
        self.note(f"{'ok    ' if good else 'FAILED'} {text}")

    def note(self, text):
        self.lines.append(text)
        print(self.lines[-1], flush=True)
        (self.out / "verdicts.txt").write_text("\n".join(self.lines) + "\n", encoding="utf-8")

    def status(self):
        return 1 if self.failed else 0
