# SPDX-License-Identifier: BSD-3-Clause
"""What the documentation takes from elsewhere in the repository is what it was taken from."""

import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "docs/tools"))

import plot  # noqa: E402
import render  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("path", sorted(render.RENDERED))
def test_fresh(path):
    """docs/tools/render.py would change nothing."""
    text = render.RENDERED[path]()
    assert (TOP / path).read_text(encoding="utf-8") == text, "run docs/tools/render.py"


def test_check_finds_stale(tmp_path, monkeypatch, capsys):
    """--check names a file that differs, and writes nothing."""
    wanted = {"some/file": lambda: "new\n"}
    monkeypatch.setattr(render, "TOP", tmp_path)
    monkeypatch.setattr(render, "RENDERED", wanted)
    (tmp_path / "some").mkdir()
    (tmp_path / "some/file").write_text("old\n")
    assert render.main(["--check"]) == 1
    assert "some/file" in capsys.readouterr().out
    assert (tmp_path / "some/file").read_text() == "old\n"
    assert render.main([]) == 0
    assert render.main(["--check", "some/file"]) == 0
    with pytest.raises(SystemExit):
        render.main(["another/file"])


@pytest.mark.parametrize(
    ("changes", "url", "told"),
    [
        ("## Unreleased\n", "https://xccl.example.org/xccl", ""),
        (
            "## 1.2.3 - 2027-01-02\n",
            "https://xccl.example.org/xccl",
            'date-released: "2027-01-02"\n',
        ),
        (
            "## 1.2.2 - 2027-01-02\n",
            "https://git.centre.eu/x",
            'repository-code: "https://git.centre.eu/x"\n',
        ),
    ],
)
def test_citation_invents_nothing(tmp_path, monkeypatch, changes, url, told):
    """A day only of a version that has one, and no address of the names that are for examples."""
    for name, text in (
        ("libxccl/VERSION", "1.2.3\n"),
        ("CHANGELOG.md", f"# Changelog\n\n{changes}"),
        ("ci/source-url", f"{url}\n"),
        ("CITATION.cff", 'title: x\nversion: 1.0.0\ndate-released: "1999-01-01"\nlicense: y\n'),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(render, "TOP", tmp_path)
    assert render.citation() == f"title: x\nversion: 1.2.3\n{told}license: y\n"


def test_marks():
    """A page that lost a mark is refused, rather than overwritten."""
    with pytest.raises(SystemExit, match="numbers"):
        render.between("no marks", "numbers", "body")


@pytest.mark.parametrize("telephone", [False, True])
def test_plot_shows_every_point(telephone):
    """Each committed result is one point, at the place that its label says."""
    series = plot.allreduce()
    frame = plot.narrow(len(series)) if telephone else plot.Frame()
    root = ElementTree.fromstring(plot.allreduce_svg(telephone))
    circles = list(root.iter(f"{SVG}circle"))
    assert len(circles) == sum(len(one.points) for one in series) > 40
    labels = [circle.find(f"{SVG}title").text for circle in circles]
    times = plot.ratios("mpi_us")
    assert f"MPI_Allreduce with xccl: 8 B in {times[8]:.2f} µs" in labels
    for circle in circles:
        assert frame.left <= float(circle.get("cx")) <= frame.right
        assert frame.top <= float(circle.get("cy")) <= frame.bottom
    slow, fast = (max(points) for points in (series[0].points, series[2].points))
    heights = {label: float(c.get("cy")) for label, c in zip(labels, circles)}
    above = heights[f"{series[0].name}: {plot.human(slow[0])} in {slow[1]:,.2f} µs"]
    below = heights[f"{series[2].name}: {plot.human(fast[0])} in {fast[1]:,.2f} µs"]
    assert above < below  # a longer time stands higher, which is a smaller y


def links(text):
    """Targets of Markdown links and pictures, without code blocks."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"\]\(([^)\s]+)\)|(?:src|srcset)=\"([^\"]+)\"", text)


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_links_outside_of_the_site(page):
    """MkDocs checks the links of its pages; these are not among them."""
    text = (TOP / page).read_text(encoding="utf-8")
    found = ["".join(target).split("#")[0] for target in links(text)]
    missing = [target for target in found if "://" not in target and not (TOP / target).exists()]
    assert found
    assert not missing


def test_tuning_tables_are_listed():
    """Each table that is installed has a line on the page about tuning, and no other has one."""
    page = (TOP / "docs/use/tuning.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(\d+-[\w-]+\.table)` \|", page, re.M)
    assert listed == sorted(file.name for file in (TOP / "libxccl/tables").glob("*.table"))
