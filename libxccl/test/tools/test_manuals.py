# SPDX-License-Identifier: BSD-3-Clause
"""A manual page for every tool, for the C API and for the whole; each is sound."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

# Nothing here is compiled: the sanitizers have nothing to find.
pytestmark = pytest.mark.release_only

TOOLS = Path(__file__).resolve().parents[2] / "tools"
PAGES = sorted(TOOLS.glob("man/*.[0-9]"))


def test_every_tool_has_one():
    names = {page.name for page in PAGES}
    options = yaml.safe_load((TOOLS / "completion/options.yaml").read_text())
    assert {f"{tool}.1" for tool in options["tools"]} | {
        "xccl.3",
        "xccl-mpix.3",
        "xccl.7",
    } == names


def test_every_option_is_explained():
    options = yaml.safe_load((TOOLS / "completion/options.yaml").read_text())
    for tool, known in options["tools"].items():
        text = (TOOLS / f"man/{tool}.1").read_text(encoding="utf-8").replace("\\-", "-")
        named = set(re.findall(r"--[a-z-]+", text))
        assert set(known["options"]) - named == set(), tool


def test_references_lead_somewhere():
    known = {(page.stem, page.suffix[1:]) for page in PAGES}
    for page in PAGES:
        text = page.read_text(encoding="utf-8").replace("\\-", "-")
        for name, section in re.findall(r"^\.BR (xccl\S*) \((\d)\)", text, re.MULTILINE):
            assert (name, section) in known, f"{page.name}: {name}({section})"


def test_overview_names_every_tool():
    text = (TOOLS / "man/xccl.7").read_text(encoding="utf-8").replace("\\-", "-")
    named = re.findall(r"^\.TP\n\.BR (xccl-\w+) \(1\)$", text, re.MULTILINE)
    assert sorted(named) == sorted(page.stem for page in PAGES if page.suffix == ".1")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_sound(page):
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    done = subprocess.run(
        ["groff", "-man", "-ww", "-z", page],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
