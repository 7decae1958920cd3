# SPDX-License-Identifier: BSD-3-Clause
"""What ci/gpu-chain packs: the environment for a machine without Lmod, and which libraries go along."""

import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOP / "ci/gpu_chain"))

import pack  # noqa: E402 (found through the line above)

PREFIX = Path("/opt/p")
UCX = "/opt/p/software/UCX/1.20.0-GCCcore"
CUDA = "/opt/p/software/CUDA/13.3.0"


def test_only_what_is_packed_is_named():
    assert pack.software(PREFIX, [f"{UCX}/lib:{CUDA}/lib", f"{UCX}/bin:/usr/bin", "1.20.0"]) == [
        Path(UCX)
    ]


def test_environment(tmp_path):
    """A shell gets what the modules set: in front of its own lists, and nothing of what is left out."""
    found = {
        "LD_LIBRARY_PATH": f"{UCX}/lib:{CUDA}/lib64",
        "PATH": f"{UCX}/bin:/usr/bin:/bin",
        "CUDA_HOME": CUDA,
        "NCCL_NET_PLUGIN": "ofi",
        "EB_UCC_EXTRA_COMPONENT_PATH": f"{UCX}/lib/ucc",
    }
    script = tmp_path / "env.sh"
    script.write_text(pack.render(found, PREFIX))
    names = "$LD_LIBRARY_PATH|${CUDA_HOME-}|$NCCL_NET_PLUGIN|$EB_UCC_EXTRA_COMPONENT_PATH|$PATH"
    command = ["sh", "-c", f'. {script} && echo "{names}"']
    env = {"PATH": "/usr/bin:/bin", "LD_LIBRARY_PATH": "/own"}
    said = subprocess.check_output(command, env=env, text=True).strip().split("|")
    libraries = f"{UCX}/lib:/own:/opt/p/oslib"
    assert said == [libraries, "", "ofi", f"{UCX}/lib/ucc", f"{UCX}/bin:/usr/bin:/bin"]


def test_libraries_that_go_along():
    taken = ["libibverbs.so.1", "libnuma.so.1", "libnl-route-3.so.200", "libefa.so.1"]
    left = [
        "libc.so.6",
        "libz.so.1",
        "libtinfo.so.6",
        "libstdc++.so.6",
        "libucp.so.0",
        "libnccl.so.2",
    ]
    assert [name for name in taken + left if pack.TAKEN.match(name)] == taken
    assert pack.RUNTIME.match("libcudart.so.13") and not pack.RUNTIME.match("libcuda.so.1")


def test_a_driver_without_the_short_name(tmp_path):
    """What is linked to libcuda.so gets the functions of libcuda.so.1."""
    driver, stubs, easybuild, oslib = (tmp_path / n for n in ("driver", "stubs", "eb", "oslib"))
    for folder in (driver, stubs, easybuild, oslib):
        folder.mkdir()
    source = tmp_path / "a.c"
    source.write_text("int cuInit(void) { return 42; }\n")
    shared = ["gcc", "-shared", "-fPIC", source]
    for folder, name in ((driver, "libcuda.so.1"), (stubs, "libcuda.so")):
        subprocess.run([*shared, "-Wl,-soname,libcuda.so.1", "-o", folder / name], check=True)
    subprocess.run([*shared, "-o", easybuild / "libcuda.so"], check=True)  # it gives it no name
    pack.forward(stubs / "libcuda.so", oslib)
    source.write_text("int cuInit(void);\nint main(void) { return cuInit(); }\n")
    program = tmp_path / "program"
    subprocess.run(["gcc", source, f"-L{easybuild}", "-lcuda", "-o", program], check=True)
    assert pack.needs(program, "libcuda.so")
    env = {"LD_LIBRARY_PATH": f"{oslib}:{driver}"}
    assert subprocess.run([program], env=env, check=False).returncode == 42
