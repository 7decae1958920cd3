# SPDX-License-Identifier: BSD-3-Clause
"""Which of UCC's transports served its routes: from UCC's trace to the table, the JSON and the picture's words."""

import copy
import json
import re

import jsonschema
import pytest
from compare_world import SCHEMA, TOP, entry
from xccl_compare import plot, ucc

PROOF = (
    TOP / "docs/benchmarks/h200-x2/routes/proof.txt"
)  # recorded on two H200s, the first line of each job
LINE = "[1.2] [vm:1 :0]  ucc_coll.c:305  UCC_COLL INFO  coll_init: {}; {} {{{}}}, team_id 32768".format


def parts():
    """{(route, collective): what UCC said} of the recorded logs."""
    text = PROOF.read_text()
    found = re.findall(r"^## (ucc|ucc-ccl)-(\w+)\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    return {(route, coll): said for route, coll, said in found}


@pytest.mark.parametrize("program", ["osu", "xccl-perf"])
def test_recorded_traces(program):
    """Of 4 bytes on two ranks, as each program counts them; who serves them is in docs/benchmarks/routes.md."""
    for (route, coll), said in parts().items():
        size = 8 if coll == "reduce_scatter_block" and program == "osu" else 4
        size = 2 if coll == "reduce_scatter" and program == "xccl-perf" else size
        wanted = "TL_NCCL" if route == "ucc-ccl" and coll != "reduce_scatter" else None
        if wanted is None:
            wanted = "TL_UCP" if coll in ("allreduce", "reduce") else "TL_CUDA"
        rows = [(coll, size), (coll, size * 64)]
        found = ucc.served(said, 2, rows, program)
        assert found == {rows[0]: wanted, rows[1]: "mpi"}, (route, coll)
    assert len(parts()) == 14


def test_lines_of_other_shapes():
    """In place, of a root, of a hierarchy, of complex numbers; and of the host's memory, which counts for nothing."""
    dst = "dst={0x7f, 32, float32_complex, Rocm}"
    rows = [("gather", 64), ("allgather", 64), ("bcast", 64)]
    lines = [
        LINE(
            f"Gather root 0: src={{0x7f, 8, float32_complex, Rocm}}, {dst}", "CL_BASIC", "TL_RCCL"
        ),
        LINE(f"Allgather inplace: {dst}", "CL_HIER", "TL_UCP, TL_RCCL"),
        LINE("Bcast root 0: src={0x7f, 16, float32, Host}", "CL_BASIC", "TL_UCP"),
        LINE("Bcast root 0: src={0x7f, 16, float32, Cuda}", "NoOp", "NoOp"),
    ]
    found = ucc.served("\n".join(lines), 4, rows, "osu")
    assert found == dict(zip(rows, ("TL_RCCL", "TL_RCCL+TL_UCP", "mpi")))
    assert set(ucc.served("nothing of UCC's", 4, rows, "osu").values()) == {None}


@pytest.mark.parametrize(
    ("route", "transport", "answer"),
    [
        ("ucc", "TL_UCP+TL_CUDA", True),
        ("ucc", "TL_NCCL", False),
        ("ucc", "mpi", False),
        ("ucc-ccl", "TL_RCCL", True),
        ("ucc-ccl", "TL_CUDA", False),
        ("ucc-ccl", None, None),
    ],
)
def test_as_named(route, transport, answer):
    assert ucc.as_named(route, transport) is answer


@pytest.fixture
def measured(world):
    """A comparison whose UCC says that these transports serve 8 and 512 bytes."""

    def measure(**transports):
        world.ucc()
        world.fake["us"].update({"ucc": 40.0, "ucc-ccl": 20.0})
        world.fake["transports"] = {name.replace("_", "-"): by for name, by in transports.items()}
        ended = world.measure("--no-plot", "--rounds", "2")
        jsonschema.validate(world.result(), SCHEMA)
        return world.result(), ended

    return measure


def test_served_as_named(world, measured):
    result, ended = measured(ucc=["TL_UCP", "TL_CUDA"], ucc_ccl=["TL_NCCL"] * 2)
    traced = [call for call in world.launched() if "UCC_COLL_TRACE=INFO" in call]
    assert len(traced) == 2 and all(" --iters 1 " in call for call in traced)
    assert len(world.launched()) == 2 * 5 + 2
    assert set(entry(result, "ucc-ccl")["samples_us"]) == {"1", "2"}
    assert [entry(result, "ucc", size)["transport"] for size in (8, 512)] == ["TL_UCP", "TL_CUDA"]
    assert entry(result, "ucc-ccl")["as_named"] and entry(result, "xccl")["as_named"] is None
    assert "  ucc, allreduce: TL/UCP (8 B), TL/CUDA (512 B)\n" in ended.out
    assert "  ucc-ccl, allreduce: TL/NCCL\n" in ended.out and "NOT AS NAMED" not in ended.out
    assert (
        "8,TL_UCP" not in ended.out
        and ",TL_CUDA\n" in world.run("--csv", "xccl-compare/result.json").out
    )


def test_served_otherwise(measured):
    """UCC chose another transport, or Open MPI did without UCC: nobody takes the times for NCCL's."""
    result, ended = measured(ucc=["TL_NCCL"] * 2, ucc_ccl=["TL_CUDA", None])
    assert [entry(result, "ucc-ccl", size)["transport"] for size in (8, 512)] == ["TL_CUDA", "mpi"]
    assert entry(result, "ucc")["as_named"] is entry(result, "ucc-ccl")["as_named"] is False
    said = "TL/CUDA (8 B), Open MPI itself (512 B); NOT AS NAMED, which is NCCL\n"
    assert f"  ucc-ccl, allreduce: {said}" in ended.out
    assert "  ucc, allreduce: TL/NCCL; NOT AS NAMED, which is UCC without NCCL\n" in ended.out
    assert re.search(r"^ +8 B +100\.0 +40\.00! +20\.00! +5\.00 ", ended.out, re.M)
    assert "!: not served as the name of the route says." in ended.out


def test_not_proved(world, measured):
    """UCC before 1.2 prints no trace; and of a result of before nothing is known."""
    result, ended = measured()
    assert entry(result, "ucc-ccl")["transport"] is None
    assert f"  ucc-ccl, allreduce: not proved: {ucc.NO_TRACE}\n" in ended.out
    for one in result["results"]:
        del one["transport"], one["as_named"]
    rows = {one["bytes"]: one for one in result["results"] if one["variant"] == "ucc"}
    assert ucc.sentence("ucc", rows, "NCCL") == f"not proved: {ucc.NOT_RECORDED}"
    (world.work / "old.json").write_text(json.dumps(result))
    assert (
        world.run("--csv", "old.json").out and world.run("--against", "old.json", "old.json").out
    )


def test_taken_up_from_the_log(world, measured):
    """The second call launches nothing, and knows it still."""
    before, _ = measured(ucc=["TL_UCP"] * 2, ucc_ccl=["TL_NCCL"] * 2)
    again, _ = measured()
    assert not world.launched() and again["results"] == before["results"]


def test_words_of_the_picture(measured):
    result, _ = measured(ucc=["TL_UCP"] * 2, ucc_ccl=["TL_NCCL", "TL_CUDA"])
    rows = {one["bytes"]: one for one in result["results"] if one["variant"] == "ucc-ccl"}

    def text(**change):
        told = copy.deepcopy(rows)
        for one in told.values():
            one.update(change)
        return plot.legend_text(result, "ucc-ccl", told)

    assert text() == "MPI + UCC + NCCL: NOT AS NAMED, in part by TL/CUDA"
    assert text(transport="TL_NCCL") == "MPI + UCC + NCCL"
    assert text(transport="TL_UCP") == "MPI + UCC + NCCL: NOT AS NAMED, by TL/UCP"
    assert text(transport=None) == "MPI + UCC + NCCL (not proved)"
    assert plot.strip("ucc-ccl", "TL_CUDA") == (plot.NOT_AS_NAMED, "TL/CUDA: not as named")
    assert (
        plot.strip("ucc", "TL_CUDA")[1] == "TL/CUDA" and plot.strip("ucc", None)[1] == "not proved"
    )
