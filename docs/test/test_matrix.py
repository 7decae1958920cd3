# SPDX-License-Identifier: BSD-3-Clause
"""The page of what was tried claims nothing without a proof that exists."""

import copy
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "docs/tools"))

import matrix  # noqa: E402


def test_claims_are_proved():
    assert matrix.problems(matrix.read()) == []


def test_nothing_that_was_run_is_left_out():
    assert matrix.uncited(matrix.read()) == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"proof": ["libxccl/test/mpi/test_none.py::test_a"]}, "there is no libxccl"),
        ({"proof": ["libxccl/test/mpi/test_collectives.py::test_a"]}, "has no test_a"),
        ({"proof": []}, "no proof"),
        ({"how": "simulated", "proof": ["README.md"]}, "README.md is no test"),
        ({"how": "run", "proof": ["README.md"]}, "README.md is no raw output"),
        ({"how": "tested"}, "unknown 'how': tested"),
        ({"site": "atlantis"}, "unknown site"),
        ({"library": "nickel"}, "unknown library"),
    ],
)
def test_a_wrong_claim_is_named(change, told):
    data = copy.deepcopy(matrix.read())
    data["cells"][0].update(change)
    (problem,) = matrix.problems(data)
    assert told in problem


def test_a_simulated_run_is_no_run(tmp_path, monkeypatch):
    raw = tmp_path / "docs/benchmarks/new.json"
    raw.parent.mkdir(parents=True)
    raw.write_text('{"simulated": "cuda:4"}')
    monkeypatch.setattr(matrix, "TOP", tmp_path)
    entry = {"how": "run", "proof": ["docs/benchmarks/new.json"]}
    assert "simulated devices" in matrix.wrong_kind(entry)
    raw.write_text('{"simulated": null}')
    assert matrix.wrong_kind(entry) == ""


def test_a_cell_is_claimed_once():
    data = matrix.read()
    data["cells"].append(data["cells"][0])
    assert matrix.problems(data) == ["a cell is named twice"]


def test_every_claim_is_on_the_page():
    page = matrix.page()
    for entry in matrix.read()["cells"]:
        assert all(proof.removeprefix("docs/") in page for proof in entry["proof"])
    assert page.count("**run**") == 1 + sum(e["how"] == "run" for e in matrix.read()["cells"])


@pytest.mark.parametrize(
    ("text", "mpi"),
    [
        ("# xccl-perf 0.1.0, 4 rank(s), Open MPI v4.1.6\n", "openmpi"),
        ("# 2 x H100, Open MPI 5.0.7, NCCL 2.28.3\n", "openmpi5"),
        ("a line\nmpich43 2 mpi_random cuda 101 300: rc 0\n", "mpich"),
        ('[\n {\n  "mpi": "mpich",\n', "mpich"),
        ("mpiabi 2 mpi_random cuda 101 300: rc 0\n", "mpiabi"),
        ("openmpi5 3 mpi_random cuda 102 150: rc 0\n", "openmpi5"),
        ("nothing that names an MPI\n", None),
    ],
)
def test_raw_output_without_a_cell_is_named(tmp_path, monkeypatch, text, mpi):
    """A new machine, or another MPI on one, is either a cell or listed as none."""
    raw = tmp_path / "docs/benchmarks/b300-x8/new.txt"
    raw.parent.mkdir(parents=True)
    raw.write_text(text)
    monkeypatch.setattr(matrix, "TOP", tmp_path)
    assert list(matrix.runs()) == [("b300-x8", mpi)]
    data = {"cells": [], "elsewhere": {}}
    (problem,) = matrix.uncited(data)
    assert problem.endswith("has a proof in docs/benchmarks/b300-x8")
    cell = {"how": "run", "mpi": mpi, "proof": ["docs/benchmarks/b300-x8/new.txt"]}
    assert matrix.uncited({"cells": [cell], "elsewhere": {}}) == []
    assert matrix.uncited({"cells": [], "elsewhere": {"b300-x8": "no MPI"}}) == []


def test_every_exception_has_a_folder_and_a_reason():
    for folder, why in matrix.read()["elsewhere"].items():
        assert (TOP / "docs/benchmarks" / folder).is_dir() and len(why) > 10
