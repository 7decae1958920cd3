# SPDX-License-Identifier: BSD-3-Clause
"""The recipes for Apptainer fit this release. docs/install/containers.md says what was run of them."""

import re
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
PAGE = (TOP / "docs/install/containers.md").read_text(encoding="utf-8")
RECIPE = re.search(r"```singularity\n(.*?)```", PAGE, re.S).group(1)
SECTIONS = dict(re.findall(r"^%(\w+)\n((?: {4}.*\n)+)", RECIPE, re.M))


def test_the_tarball_is_this_releases():
    version = (TOP / "libxccl/VERSION").read_text(encoding="utf-8").split()[0]
    name, inside = SECTIONS["files"].split()
    assert name == f"xccl-{version}.tar.gz"
    assert SECTIONS["post"].count(inside) == 2, "unpacked, and removed"


def test_the_image_has_what_a_build_needs():
    bootstrap = (TOP / "ci/bootstrap").read_text(encoding="utf-8")
    needs = re.search(r"needs_of_build\(\) \{\n(.*?)\n\}", bootstrap, re.S).group(1)
    wanted = set(re.findall(r"need (\S+)", needs))
    (installed,) = re.findall(r"apt-get install -y --no-install-recommends (.*)", SECTIONS["post"])
    assert len(wanted) > 4 and wanted <= set(installed.split())


def test_ranks_share_a_namespace():
    launched = [
        line
        for line in PAGE.splitlines()
        if re.match(r"(XCCL_LOG=info )?srun .*-N 2|.*srun …", line)
    ]
    several = [line for line in launched if "apptainer exec" in line and "-n 1 " not in line]
    assert len(several) == 3
    assert all("--sharens" in line for line in several), several
