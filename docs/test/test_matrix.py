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
