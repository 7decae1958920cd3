# SPDX-License-Identifier: BSD-3-Clause
"""OSU's micro-benchmarks as the measuring program, in the form that they print."""

import json

import jsonschema
import pytest
from compare_world import SCHEMA, entry, program
from xccl_compare.osu import Osu, paths_of
from xccl_compare.perf import Broken

OLD = """# OSU MPI-CUDA Allreduce Latency Test v7.0
# Size       Avg Latency(us)
1000000000        1183590.64
"""
NEW = """
# OSU MPI-CUDA Reduce_scatter Latency Test v7.4
# Datatype: MPI_FLOAT.
# Size       Avg Latency(us)        Validation
8                      16.40              Pass
16                     16.52              Pass
"""
# -c: with validation; osu_xccl_* is the vendor's library; the path is xccl's own word.
PROGRAM = """#!/bin/sh
# mpi_float
case "$0 $*" in *osu_xccl_*" -c"* | *osu_xccl_*" -T"*) echo "Invalid Option" >&2; exit 1 ;; esac
case $0 in *osu_xccl_*) us=20.00 name=XCCL-CUDA ;; *) us=10.00 name=MPI-CUDA ;; esac
[ -z "$UCC_COLL_TRACE" ] || echo "[1.2] [vm:1 :0] ucc_coll.c:305  UCC_COLL INFO  coll_init: Allreduce sum: \
src={0x7f, 2, float32, Cuda}, dst={0x7e, 2, float32, Cuda}; CL_BASIC {$FAKE_TL}, team_id 32768" >&2
[ -z "$XCCL_LOG" ] || echo "xccl[0] info: allreduce of 8 B to 16 B in cuda on 4 ranks: direct (a table)" >&2
echo "# OSU $name Allreduce Latency Test v7.4"
case "$*" in
*" -c"*)
    echo "# Size   Avg Latency(us)  Validation"; echo "8   $us   $FAKE_VALIDATION"
    [ "$FAKE_VALIDATION" = Pass ] || {
        echo "DATA VALIDATION ERROR: osu exited with status 1 on message size 8."; exit 1; } ;;
*" -m 8:"*) echo "# Size   Avg Latency(us)"; echo "8   $us" ;;
*) echo "# Size   Avg Latency(us)"; echo "64   $us" ;;
esac
"""


def read(tmp_path, text):
    path = tmp_path / "out.txt"
    path.write_text(text)
    return Osu(None, {}, "nvidia", 10).read(str(path))[0]


def test_old_and_new_form(tmp_path):
    (one,) = read(tmp_path, OLD)
    assert (one["coll"], one["bytes"], one["us"]) == ("allreduce", 10**9, 1183590.64)
    assert one["verified"] is None
    rows = read(tmp_path, NEW)
    assert [(r["coll"], r["bytes"], r["us"], r["verified"]) for r in rows] == [
        ("reduce_scatter", 8, 16.40, True),
        ("reduce_scatter", 16, 16.52, True),
    ]


@pytest.mark.parametrize(
    ("title", "coll"),
    [
        ("All-to-All Personalized Exchange", "alltoall"),
        ("All-to-Allv Personalized Exchange", "alltoallv"),
        ("Broadcast", "bcast"),
        ("Reduce_scatter_block", "reduce_scatter_block"),
    ],
)
def test_titles(tmp_path, title, coll):
    text = OLD.replace("Allreduce", title)
    assert [row["coll"] for row in read(tmp_path, text)] == [coll]


def test_unknown_title(tmp_path):
    with pytest.raises(Broken, match="an unknown test of OSU's: OSU MPI-CUDA Barter Latency"):
        read(tmp_path, NEW + OLD.replace("Allreduce", "Barter"))


def test_what_is_no_table(tmp_path):
    with pytest.raises(Broken, match="no table of OSU's"):
        read(tmp_path, "Segmentation fault\n")
    with pytest.raises(Broken, match="WRONG RESULT: reduce_scatter of 16 bytes"):
        read(tmp_path, NEW.replace("16.52              Pass", "16.52              Fail"))


def test_paths():
    lines = (
        "xccl[0] info: bcast of 16 KiB to 32 KiB in cuda on 4 ranks: ccl (x)",
        "xccl[0] info: bcast of 8 B in cuda on 4 ranks: mpi-staged (x)",
        "xccl[0] info: reduce_scatter of 4 B to 8 B in cuda on 3 ranks: direct (x)",
    )
    text = "\n".join(lines)
    assert paths_of(text) == [
        ("bcast", 16384, 32768, "ccl"),
        ("bcast", 8, 9, "mpi-staged"),
        ("reduce_scatter", 12, 24, "direct"),
    ]


def test_path_of_a_size(tmp_path):
    """A size at a border is of the class that begins there; what the first calls took is no matter."""
    words = "xccl[0] info: allreduce of {} in cuda on 4 ranks: {} (x)\n"
    log = "".join(
        words.format(*line)
        for line in (("4 B to 8 B", "mpi"), ("8 B to 16 B", "mpi"), ("8 B to 16 B", "direct"))
    )
    rows = read(tmp_path, log + OLD.replace("1000000000", "8") + "4    1.00\n16    2.00\n")
    assert {row["bytes"]: row["path"] for row in rows} == {4: "mpi", 8: "direct", 16: None}


def test_bus_bandwidth():
    """OSU's size of a reduce_scatter is all that a rank sends, xccl-perf's what it receives."""
    assert Osu.bus("reduce_scatter", 4) == 0.75 and Osu.bus("allgather", 4) == 3
    assert Osu.bus("allreduce", 4) == 1.5 and Osu.bus("bcast", 4) == 1


@pytest.fixture
def osu(world):
    for name in ("osu_allreduce", "osu_xccl_allreduce"):
        program(world.folder / "osu/c/mpi/collective" / name, PROGRAM)
    return lambda *words, **more: world.measure(
        "--no-plot",
        "--with",
        "osu",
        "--osu",
        world.folder / "osu",
        "--rounds",
        "2",
        *words,
        **more,
    )


def test_a_comparison(world, osu):
    """Validation has a launch of its own, and its times do not count; the vendor's is OSU's own program."""
    osu(FAKE_VALIDATION="Pass")
    calls = world.launched()
    checks = [call for call in calls if call.endswith(" -c")]
    assert len(checks) == 2 and all("XCCL_LOG=info" in call for call in checks)
    assert all("-d cuda" in call for call in calls if "osu_" in call)
    assert all("-T mpi_float" in call for call in calls if "/osu_allreduce" in call)
    assert "osu_xccl_allreduce" in "".join(calls)
    result = world.result()
    jsonschema.validate(result, SCHEMA)
    assert result["complete"] and result["program"] == "osu"
    assert entry(result, "vendor")["samples_us"] == {"1": 20.0, "2": 20.0}
    assert not entry(result, "vendor")["verified"]
    assert result["notes"][0] == "OSU's programs for the vendor's library validate nothing"
    assert "20.00?" in (world.work / "xccl-compare/table.txt").read_text()
    one = entry(result, "xccl")
    assert one["verified"] and one["path"] == "direct" and one["ratio"]["value"] == 0.5
    assert result["measured_with"]["devices"] == ["Made up"] and result["cases"][0]["ranks"] == 4
    osu(FAKE_VALIDATION="Pass")
    assert not world.launched()


def test_the_launch_that_verifies_has_the_trace(world, osu):
    """One launch that is not timed is enough for both; what it prints stands beside OSU's table."""
    world.ucc()
    ended = osu(FAKE_VALIDATION="Pass", FAKE_TL="TL_NCCL", UCX_LOG_FILE="elsewhere")
    traced = [call for call in world.launched() if "UCC_COLL_TRACE=INFO" in call]
    assert len(traced) == 2 and all("-u UCX_LOG_FILE" in call for call in traced)
    assert all(call.endswith(" -c") for call in traced)
    result = world.result()
    assert entry(result, "ucc-ccl")["transport"] == entry(result, "ucc")["transport"] == "TL_NCCL"
    assert entry(result, "ucc-ccl")["as_named"] and not entry(result, "ucc")["as_named"]
    assert "  ucc-ccl, allreduce: TL/NCCL\n" in ended.out


@pytest.mark.parametrize(
    ("limit", "validated", "called"),
    [("8", "8:8", "16:64"), ("40", "8:40", "64:64"), ("4", None, "8:64"), ("1m", "8:64", None)],
)
def test_validation_ends_at_a_size(world, osu, limit, validated, called):
    """It takes long, on the host. What lies beyond is called all the same, for the path that it takes."""
    osu("--max", "64", "--verify-to", limit, "--coll", "allreduce", FAKE_VALIDATION="Pass")
    calls = [call for call in world.launched() if "XCCL_LOG=info" in call and "osu_" in call]
    assert [call.endswith(" -c") for call in calls] == 2 * [
        is_validated for is_validated in (True, False) if (validated if is_validated else called)
    ]
    for call in calls:
        assert f" -m {validated if call.endswith(' -c') else called} " in call
    assert entry(world.result(), "xccl")["verified"] == (validated is not None)


def test_sizes_from_none(world, osu):
    osu(
        "--min",
        "0",
        "--max",
        "8",
        "--verify-to",
        "4",
        "--coll",
        "allreduce",
        FAKE_VALIDATION="Pass",
    )
    calls = "".join(world.launched())
    assert " -m 0:4 " in calls and " -m 8:8 " in calls


def test_wrong_result(world, osu):
    ended = osu(status=1, FAKE_VALIDATION="Fail")
    assert (
        ended.err.count("DATA VALIDATION ERROR: osu exited with status 1 on message size 8.") == 2
    )
    assert {e["variant"] for e in world.result()["results"]} == {"vendor"}


def test_missing_program(world, osu):
    ended = osu("--coll", "bcast", status=2)
    assert "OSU's osu_bcast was not found" in ended.err and "--osu names the folder" in ended.err
    (world.folder / "osu/c/mpi/collective/osu_xccl_allreduce").unlink()
    assert (
        "left out: vendor: OSU's osu_xccl_allreduce was not found"
        in osu(FAKE_VALIDATION="Pass").out
    )
    assert json.dumps(world.result()["left_out"]).count("osu_xccl_allreduce") == 1
