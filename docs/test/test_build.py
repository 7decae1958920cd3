# SPDX-License-Identifier: BSD-3-Clause
"""The build of the site refuses what a reader would stumble over."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
TAKEN = ("mkdocs.yml", "ci/docs", "ci/lib.sh")


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """What the build needs, with three pages in the place of all."""
    pytest.importorskip("material", reason="MkDocs Material is missing; ci/bootstrap lint has it")
    top = tmp_path_factory.mktemp("tree")
    for name in TAKEN:
        (top / name).parent.mkdir(exist_ok=True)
        shutil.copy(TOP / name, top / name)
    shutil.copytree(TOP / "docs/tools", top / "docs/tools")
    (top / "docs/sites").mkdir()
    for name, text in (("index", "# Home\n\n## 2 ranks\n"), ("sites/one", "# A site\n")):
        (top / f"docs/{name}.md").write_text(text)
    config = (top / "mkdocs.yml").read_text()
    head = config.split("\nnav:\n")[0]
    nav = "\nnav:\n  - Home: index.md\n  - Sites:\n      - sites/*.md\n"
    (top / "mkdocs.yml").write_text(head + nav)
    (top / ".venv").symlink_to(sys.prefix)
    return top


def build(top):
    done = subprocess.run(
        [top / "ci/docs", "build"],
        env={"PATH": "/usr/bin:/bin", "BUILD_DIR": str(top / "build")},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_good(copy):
    """Pages of the pattern are in the menu under their headings; ids begin with a letter."""
    status, output = build(copy)
    assert status == 0, output
    assert "A site" in (copy / "build/site/index.html").read_text()
    assert 'id="n2-ranks"' in (copy / "build/site/index.html").read_text()


@pytest.mark.parametrize(
    ("page", "text", "said"),
    [
        ("orphan.md", "# Not in the menu\n", "orphan.md"),
        ("sites/link.md", "# A\n\n[x](nowhere.md)\n", "nowhere.md"),
        ("sites/anchor.md", "# A\n\n[x](../index.md#nowhere)\n", "nowhere"),
        ("sites/picture.md", "# A\n\n![x](nowhere.svg)\n", "nowhere.svg"),
        ("sites/part.md", '# A\n\n--8<-- "docs/nowhere.c"\n', "nowhere.c"),
    ],
)
def test_refused(copy, page, text, said):
    (copy / "docs" / page).write_text(text)
    try:
        status, output = build(copy)
    finally:
        (copy / "docs" / page).unlink()
    assert status != 0
    assert said in output
