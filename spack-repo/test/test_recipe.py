# SPDX-License-Identifier: BSD-3-Clause
"""Parts of the recipe that can be tried without Spack."""

import ast
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

RECIPE = Path(__file__).resolve().parents[1] / "spack_repo/xccl/packages/xccl/package.py"


def program(name, **_):
    """Stands for Spack's which(): a program whose call gives what it prints, if asked for it."""

    def call(extra_env, **more):
        done = subprocess.run(
            [name], env={**os.environ, **extra_env}, capture_output=True, text=True, check=True
        )
        return done.stdout + done.stderr if more.get("error") is str else None

    return call


def harmless(prefix):
    """Run the recipe's test on an installation in @p prefix."""
    tree = ast.parse(RECIPE.read_text(encoding="utf-8"))
    (found,) = [n for n in ast.walk(tree) if getattr(n, "name", "") == "test_harmless"]
    known = {"which": program, "join_path": os.path.join, "SkipTest": pytest.skip.Exception}
    exec(compile(ast.Module([found], []), RECIPE, "exec"), known)
    spec = SimpleNamespace(satisfies=lambda _: False)
    known["test_harmless"](SimpleNamespace(spec=spec, prefix=SimpleNamespace(lib=prefix)))


def test_an_interposer_that_is_not_loaded_is_found(tmp_path):
    """The loader says that an object is missing, and runs the program all the same."""
    with pytest.raises(AssertionError, match="cannot be preloaded"):
        harmless(tmp_path)
    command = ["cc", "-shared", "-x", "c", "-", "-o", tmp_path / "libxccl-mpi.so"]
    subprocess.run(command, input=b"int here;\n", check=True, timeout=60)
    harmless(tmp_path)
