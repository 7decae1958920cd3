# SPDX-License-Identifier: BSD-3-Clause
"""What the devices' compilers made of the kernels. What they do is tested on the simulation."""

import pytest

# The first bytes of a container of several devices' code.
MAGIC = {"cuda": bytes.fromhex("50ed55ba"), "hip": b"__CLANG_OFFLOAD_BUNDLE__"}
KERNELS = [b"xk_batch", b"xk_pack", b"xk_linger", b"xk_exchange", b"xk_mapped"]


@pytest.mark.parametrize("runtime", sorted(MAGIC))
def test_plugin(build, runtime):
    file = build.folder / f"stage/lib/xccl/libxccl-direct-{runtime}.so"
    if not file.exists():
        pytest.skip(f"no compiler for the kernels of {runtime} was found when this was built")
    text = file.read_bytes()
    start = text.find(MAGIC[runtime])
    assert start > 0 and b"xccl_direct_image" in text
    assert [name for name in KERNELS if text.find(name, start) < 0] == []
