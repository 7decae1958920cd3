# SPDX-License-Identifier: BSD-3-Clause
"""One way to say the same thing to six shells, in an environment that is known to the byte."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

LMOD_INIT = Path("/usr/share/lmod/lmod/init")
PATH = "/usr/bin:/bin"


def quote(text):
    """A word that all six shells read alike: no value has a quote, a backslash or a '!'."""
    assert not set(text) & set("'\\!\n"), text
    return f"'{text}'"


class Shell:
    """A shell, and how it says things."""

    def __init__(self, name, program, kind, options=(), lmod=None):
        self.name, self.program, self.kind = name, program, kind
        self.options, self.lmod = list(options), lmod or program

    def __repr__(self):
        return self.name

    def need(self):
        """Skip the test where this shell is missing."""
        if shutil.which(self.program) is None:
            pytest.skip(f"{self.program} is not installed")

    def script(self, prefix):
        """The file of env/ for this shell."""
        ending = {"csh": "csh", "fish": "fish"}.get(self.kind, "sh")
        return prefix / f"share/xccl/env/xccl.{ending}"

    def source(self, file, *words):
        word = "." if self.kind == "sh" else "source"
        return " ".join([word, quote(str(file)), *map(quote, words)])

    def xccl(self, prefix, *words):
        """Lines that source env/ with arguments; dash takes them from variables."""
        if self.name != "dash":
            return [self.source(self.script(prefix), *(words or ("--",)))]
        lines, words = [], list(words)
        if words == ["off"]:
            return ["xccl_env off"]
        if "--route" in words:
            at = words.index("--route")
            lines.append(f"XCCL_ROUTE={words[at + 1]}")
            del words[at : at + 2]
        lines += [f"XCCL_SITE={word}" for word in words if word != "--"]
        return [*lines, self.source(self.script(prefix))]

    def export(self, name, value):
        return {
            "sh": f"export {name}={quote(value)}",
            "csh": f"setenv {name} {quote(value)}",
            "fish": f"set -gx {name} {quote(value)}",
        }[self.kind]

    def unset(self, name):
        return {"sh": f"unset {name}", "csh": f"unsetenv {name}", "fish": f"set -e {name}"}[
            self.kind
        ]

    def dump(self, file):
        """Write the environment, as a program started now would get it."""
        return f"/usr/bin/env -0 > {quote(str(file))}"

    def status(self):
        return "echo status=$status" if self.kind != "sh" else "echo status=$?"

    def start_lmod(self, *folders):
        """Lines that make `module` known, with @p folders on MODULEPATH."""
        init = LMOD_INIT / self.lmod
        lines = [self.source(init)]
        if self.name == "ksh":
            lines.insert(
                0, "alias local=typeset"
            )  # Debian's ksh93 has no local, Lmod's init uses it
        return [*lines, *(f"module use {quote(str(folder))}" for folder in folders)]

    def run(self, lines, folder, env=None, *, args=(), options=(), fail=False):
        """Run a script of @p lines in a clean environment; return the finished process."""
        script = folder / f"script.{self.name}"
        script.write_text("\n".join(lines) + "\n", encoding="utf-8")
        clean = {"HOME": str(folder), "PATH": PATH, "LC_ALL": "C.UTF-8", **(env or {})}
        done = subprocess.run(
            [shutil.which(self.program), *self.options, *options, script, *args],
            env=clean,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        if not fail and done.returncode != 0:
            pytest.fail(f"{self.name}: status {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done


SHELLS = [
    Shell("dash", "dash", "sh", lmod="sh"),
    Shell("bash", "bash", "sh", ["--noprofile", "--norc"]),
    Shell("zsh", "zsh", "sh", ["-f"]),
    Shell("ksh", "ksh", "sh"),
    Shell("tcsh", "tcsh", "csh", ["-f"]),
    Shell("fish", "fish", "fish", ["--no-config"]),
]
BY_NAME = {shell.name: shell for shell in SHELLS}


def read_env(file):
    """{name: value} of a dump, without what every shell changes as it runs."""
    variables = {}
    for item in file.read_bytes().split(b"\0"):
        name, _, value = item.partition(b"=")
        # ksh93 adds two of its own
        if name and name not in (b"_", b"SHLVL", b"OLDPWD", b"A__z", b"_AST_FEATURES"):
            variables[os.fsdecode(name)] = os.fsdecode(value)
    return variables


def without_lmod(variables):
    """The environment without Lmod's own books, which it keeps between commands."""
    own = ("LMOD_", "__LMOD_", "_ModuleTable", "_LMFILES_", "LOADEDMODULES")
    return {name: value for name, value in variables.items() if not name.startswith(own)}


def difference(before, after):
    """What changed, readable."""
    names = sorted(set(before) | set(after))
    return {n: (before.get(n), after.get(n)) for n in names if before.get(n) != after.get(n)}
