# SPDX-License-Identifier: BSD-3-Clause
"""This checkout, and an installed tree made by the installer itself."""

import functools
import shutil
import subprocess
import tempfile
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]


def moved_drivers(text, folder):
    """@p text of a detection with the drivers' files, which only machines with GPUs have, in @p folder."""
    for path, name in (("/dev/kfd", "kfd"), ("/proc/driver/nvidia/version", "nvidia")):
        assert path in text
        text = text.replace(path, str(folder / name))
    return text


@functools.lru_cache(maxsize=None)
def shared_object():
    """One that the loader accepts."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "fake.so")
        command = ["cc", "-shared", "-x", "c", "-", "-o", file]
        subprocess.run(command, input=b"int xccl_fake;\n", check=True, timeout=60)
        return file.read_bytes()


def fake_library(file):
    """For what only has to be there."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(shared_object())


def put_libraries(prefix):
    """Stand-ins for what is built, below @p prefix."""
    prefix.mkdir(parents=True)
    fake_library(prefix / "lib/libxccl-mpi.so")
    for family in ("openmpi", "mpich"):
        target = prefix / f"lib/xccl/libxccl-mpi-{family}.so"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(prefix / "lib/libxccl-mpi.so", target)
    (prefix / "bin").mkdir()
    (prefix / "bin/xccl-run").write_text("#!/bin/sh\n", encoding="utf-8")
    return prefix


def install(prefix, *options):
    """Install scripts and modules below @p prefix, beside stand-ins for the libraries."""
    put_libraries(prefix)
    subprocess.run([TOP / "ci/install-tree", *options, prefix], check=True, timeout=60)
    return prefix
