# SPDX-License-Identifier: BSD-3-Clause
"""Devices that the kernels are compiled for: those asked for that the compiler knows."""

import re
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.release_only  # nothing of the build is run

LIBXCCL = Path(__file__).resolve().parents[2]
KNOWN = ("75", "80", "90", "100")  # as of CUDA 13, which does not know 70


@pytest.fixture
def configure(tmp_path):
    """Configure with a compiler that knows these devices; what CMake said, and the devices of each image."""
    nvcc = tmp_path / "nvcc"
    nvcc.write_text("#!/bin/sh\n" + "".join(f"echo compute_{arch}\n" for arch in KNOWN))
    nvcc.chmod(0o755)

    def run(archs):
        parts = [f"-DXCCL_{part}=OFF" for part in ("SIM", "TESTS")]
        done = subprocess.run(
            ["cmake", "-G", "Unix Makefiles", "-S", LIBXCCL, "-B", tmp_path / "build", *parts,
             f"-DXCCL_NVCC={nvcc}", "-DXCCL_HIPCC=", f"-DXCCL_CUDA_ARCHS={archs}"],
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        rules = tmp_path / "build/src/kernels/CMakeFiles/xccl-image-cuda.dir/build.make"
        text = rules.read_text() if rules.is_file() else ""
        images = {
            re.search(r"(\w+)\.cu\b", line)[1]: re.findall(r"code=(\w+)", line)
            for line in text.splitlines()
            if "code=" in line
        }
        return done, images

    return run


@pytest.mark.parametrize(
    ("archs", "codes"),
    [
        ("70;80;90;100;120", ["sm_80", "sm_90", "sm_100", "compute_100"]),
        ("100;90", ["sm_100", "sm_90", "compute_100"]),
        ("90a;8;90", ["sm_90", "compute_90"]),
    ],
)
def test_devices_that_the_compiler_knows(configure, archs, codes):
    """Others are left out; the intermediate form is the newest one's, in any order."""
    done, found = configure(archs)
    assert done.returncode == 0, done.stderr
    assert found == {"local": codes, "collectives": codes}


@pytest.mark.parametrize("archs", ["70", "90a", "7.0;sm_80"])
def test_no_device_that_the_compiler_knows(configure, archs):
    done, found = configure(archs)
    told = " ".join(done.stderr.split())
    assert (done.returncode, found) == (1, {})
    assert f"for none of XCCL_CUDA_ARCHS '{archs.replace(';', ' ')}'" in told
    assert "it knows: 75 80 90 100. Name one" in told
