# SPDX-License-Identifier: BSD-3-Clause
"""The patches for spack-packages apply to the release that they name, and say why."""

import re
import subprocess
from pathlib import Path

import pytest
import spack_sandbox

PATCHES = sorted((Path(__file__).resolve().parents[1] / "upstream").glob("*.patch"))


@pytest.mark.parametrize("patch", PATCHES, ids=lambda path: path.stem)
def test_patch_says_what_and_why(patch):
    head, _, diff = patch.read_text(encoding="utf-8").partition("\n---\n")
    title, why = head.split("\n\n", 1)
    assert re.fullmatch(rf"Subject: {patch.stem.replace('_', '-')}: [A-Z].*[^.]", title)
    assert why.endswith("Base: spack-packages v2026.06.0") and len(why) > 60
    assert diff.startswith(
        f"diff --git a/repos/spack_repo/builtin/packages/{patch.stem}/package.py"
    )


def test_patches_apply(tmp_path):
    packages = spack_sandbox.checkout("XCCL_SPACK_PACKAGES")
    if packages is None:
        pytest.skip(
            "XCCL_SPACK_PACKAGES names no checkout of spack-packages: ci/spack says how to get one"
        )
    names = [f"repos/spack_repo/builtin/packages/{patch.stem}" for patch in PATCHES]
    done = subprocess.run(
        ["git", "-C", packages, "archive", "v2026.06.0", *names], capture_output=True, check=False
    )
    if done.returncode != 0:
        pytest.skip("the checkout of spack-packages has no v2026.06.0: git fetch --tags")
    subprocess.run(["tar", "-x", "-C", tmp_path], input=done.stdout, check=True)
    for patch in PATCHES:
        applied = subprocess.run(
            ["patch", "--fuzz=0", "-p1", "-i", patch],
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert applied.returncode == 0, applied.stdout
        file = tmp_path / "repos/spack_repo/builtin/packages" / patch.stem / "package.py"
        compile(file.read_text(encoding="utf-8"), str(file), "exec")
