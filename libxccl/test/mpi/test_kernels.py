# SPDX-License-Identifier: BSD-3-Clause
"""What the devices' compilers made of the kernels. What they do is tested on the simulation."""

import re

import pytest

# The first bytes of a container of several devices' code.
MAGIC = {"cuda": bytes.fromhex("50ed55ba"), "hip": b"__CLANG_OFFLOAD_BUNDLE__"}
KERNELS = [b"xk_batch", b"xk_pack", b"xk_linger", b"xk_attend", b"xk_exchange", b"xk_mapped"]


@pytest.mark.parametrize("runtime", sorted(MAGIC))
def test_plugin(build, runtime):
    file = build.folder / f"stage/lib/xccl/libxccl-direct-{runtime}.so"
    if not file.exists():
        pytest.skip(f"no compiler for the kernels of {runtime} was found when this was built")
    text = file.read_bytes()
    start = text.find(MAGIC[runtime])
    assert start > 0 and b"xccl_direct_image" in text
    assert [name for name in KERNELS if text.find(name, start) < 0] == []


@pytest.mark.parametrize(
    ("words", "loaded"),
    [("mpi_messages cuda 7 60", {"copies"}), ("mpi_colls cuda dd odd", {"copies", "collectives"})],
    ids=["messages", "collectives"],
)
def test_loaded_when_needed(openmpi, words, loaded):
    """To load those for collectives takes some milliseconds, in which the device launches nothing."""
    result = openmpi.run(2, words.split(), sim="cuda:2", env={"XCCL_LOG": "info"})
    result.good()
    assert (
        set(re.findall(r"xccl\[0\] info: device 0: kernels for (\w+) are ready", result.out))
        == loaded
    ), result.out
