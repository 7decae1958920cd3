# SPDX-License-Identifier: BSD-3-Clause
"""The pages of Spack and EasyBuild name real variants, packages, releases, easyconfigs, options of scripts."""

import re
from pathlib import Path

import pytest
import spack_sandbox

TOP = Path(__file__).resolve().parents[2]
PACKAGES = TOP / "spack-repo/spack_repo/xccl/packages"
SPACK = (TOP / "docs/install/spack.md").read_text(encoding="utf-8")
EASYBUILD = (TOP / "docs/install/easybuild.md").read_text(encoding="utf-8")
PAGES = [*(TOP / "docs/install").glob("*.md"), TOP / "docs/sites/add-a-site.md"]


def section(title):
    return SPACK.split(f"\n## {title}\n")[1].split("\n## ")[0]


def variants(package):
    """Variants of a recipe, with those of the GPUs that it inherits."""
    text = (PACKAGES / package / "package.py").read_text(encoding="utf-8")
    own = set(re.findall(r'(?m)^ +variant\(\s*"(\w+)"', text))
    return own | {"cuda", "cuda_arch", "rocm", "amdgpu_target"}


def test_every_variant_is_on_the_page():
    named = set(re.findall(r"[`+ ]\+?(\w+)=", section("Variants")))
    named |= set(re.findall(r"`\+(\w+)", section("Variants")))
    assert named == variants("xccl")


def test_commands_use_variants_that_there_are():
    chain = section("The whole chain")
    for command in re.findall(r"xccl-stack ([^#^\n]+)", chain):
        for word in re.findall(r"\+(\w+)|(\w+)=", command):
            assert set(word) - {""} <= variants("xccl_stack"), command
    for name in re.findall(r"`(\w+)=", chain):
        assert name in variants("xccl_stack"), name


def test_every_overlay_is_in_the_table():
    table = section("What the overlays change")
    named = {
        name
        for row in re.findall(r"^\| (`.*?) \|", table, re.M)
        for name in re.findall(r"`([\w-]+)`", row)
    }
    there = {path.parent.name.replace("_", "-") for path in PACKAGES.glob("*/package.py")}
    assert named == there - {"xccl", "xccl-stack"}
    patches = {path.stem.replace("_", "-") for path in TOP.glob("spack-repo/upstream/*.patch")}
    assert patches <= named


def test_the_releases_that_are_tested_are_named():
    assert set(re.findall(r"v20\d\d\.\d\d\.\d", SPACK)) == set(spack_sandbox.TAGS)


def test_easyconfigs_of_the_table_exist():
    rows = re.findall(r"^\| (`\S.*?) \|", EASYBUILD, re.MULTILINE)
    assert len(rows) > 4
    for pattern in (one for row in rows for one in re.findall(r"`([\w./*<>{},\[\]-]+)`", row)):
        plain = re.sub(r"\{.*?\}|\[.*?\]|<\w+>|…", "*", pattern).rstrip("*/")
        assert list((TOP / "easyconfigs").glob(f"{plain}*")), pattern


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_scripts_and_their_options_exist(page):
    text = page.read_text(encoding="utf-8")
    for line in re.findall(r"((?:ci|site-configs/tools)/[\w-]+(?: --?\w[^`\n]*)?)", text):
        script, *rest = line.split()
        file = TOP / script
        assert file.is_file(), script
        source = file.read_text(encoding="utf-8")
        for option in (word.split("=")[0] for word in rest if word.startswith("--")):
            assert option in source, line
