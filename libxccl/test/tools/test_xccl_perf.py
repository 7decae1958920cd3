# SPDX-License-Identifier: BSD-3-Clause
"""xccl-perf: it verifies what it times, finds what is wrong, and writes what its schema says."""

import json
import os
import re
import subprocess
from pathlib import Path

import jsonschema
import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"
SCHEMA = json.loads((TOOLS / "perf/xccl-perf.schema.json").read_text())
QUICK = ["--iters", "2", "--warmup", "0", "--max-time", "0", "--timeout", "50"]
COLLS = [
    "allreduce",
    "bcast",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_block",
    "allgather",
    "allgatherv",
    "alltoall",
    "alltoallv",
    "gather",
    "gatherv",
    "scatter",
    "scatterv",
    "scan",
    "exscan",
]
SCANS = COLLS[-2:]
MSGS = ["latency", "bandwidth", "bibandwidth", "halo2d", "halo3d"]
# nccl-tests: total bytes per bytes as defined here, and bus per algorithm bandwidth.
VOLUME = {coll: lambda n: n for coll in COLLS}
VOLUME.update({coll: lambda n: 1 for coll in ("allreduce", "bcast", "reduce", *SCANS)})
BUS = {coll: lambda n: (n - 1) / n for coll in COLLS}
BUS.update({coll: lambda n: 1 for coll in ("bcast", "reduce", *SCANS)})
BUS["allreduce"] = lambda n: 2 * (n - 1) / n


def results(tmp_path, mpi, ranks, *arguments, **options):
    """Run with --json; what it wrote, valid by the schema."""
    file = tmp_path / "out.json"
    mpi.perf(ranks, *QUICK, *arguments, "--json", file, **options).good()
    written = json.loads(file.read_text())
    jsonschema.validate(written, SCHEMA)
    assert written["results"], "nothing was measured"
    assert not (tmp_path / "out.json.part").exists()
    return written


def exact(size):
    """This size alone."""
    return ["--min", str(size), "--max", str(size)]


@pytest.mark.each_value
@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("place", [[], ["--in-place"]])
def test_all_collectives(tmp_path, mpi, ranks, place):
    """Every collective at sizes none, one element, odd, and more than one chunk of the tool's."""
    sizes = ["--min", "0", "--max", "20KiB", "--factor", "70"]
    root = ["--root", str(ranks - 1)]
    written = results(tmp_path, mpi, ranks, "--coll", "all", *sizes, *root, *place)
    assert [r["bytes"] for r in written["results"] if r["coll"] == "gatherv"] == [0, 4, 280, 19600]
    assert list(dict.fromkeys(r["coll"] for r in written["results"])) == COLLS
    assert all(r["verified"] for r in written["results"])
    assert written["passed"] is True


@pytest.mark.each_value
@pytest.mark.parametrize("place", [[], ["--in-place"]])
def test_nonblocking(tmp_path, mpi, place):
    """The other form of every collective; and that the time is that of two calls."""
    sizes = ["--min", "4", "--max", "20k", "--factor", "70"]
    written = results(tmp_path, mpi, 3, "--coll", "all", "--nonblocking", *sizes, *place)
    assert list(dict.fromkeys(r["coll"] for r in written["results"])) == COLLS
    assert all(r["verified"] for r in written["results"])
    options = written["options"]
    assert options["nonblocking"] is True and options["work_us"] == 0


@pytest.mark.release_only
def test_work(tmp_path, any_mpi):
    """What is computed beside it is no part of the time."""
    calls = ["--coll", "alltoall", "--nonblocking", *exact(4), "--mem", "host", "--iters", "2"]
    written = results(tmp_path, any_mpi, 2, *calls, "--work", "200000")
    assert written["options"]["work_us"] == 200000
    assert 0 <= written["results"][0]["min_us"] < 200000


def test_vendor(tmp_path, mpi):
    """Every collective by the vendor's library itself, verified, under a name of its own."""
    sizes = ["--min", "4", "--max", "4k", "--factor", "32"]
    written = results(tmp_path, mpi, 3, "--coll", "all", "--root", "2", *sizes, "--vendor")
    assert (
        list(dict.fromkeys(r["coll"] for r in written["results"])) == COLLS[:-2]
    )  # it has no scans
    assert {r["path"] for r in written["results"]} == {"vendor"} == {written["route"]}
    assert all(r["verified"] for r in written["results"])
    assert written["ccl"]["name"] == "nccl"


def test_groups(tmp_path, any_mpi):
    """Two communicators at once, their ranks in the order of the list; ranks in none take no part."""
    groups = ["--groups", "4/0+1/3", "--min", "4", "--max", "64"]
    for more in ([], ["--vendor"]):
        written = results(tmp_path, any_mpi, 5, *groups, *more, run=("--sim", "cuda:5"))
        assert [rank["device"] for rank in written["ranks"]] == [4, 0, 1, 3]
        for r in written["results"]:
            assert r["verified"] and r["busbw_gbs"] == pytest.approx(
                r["algbw_gbs"]
            )  # of two ranks
            assert [rank["rank"] for rank in r["ranks"]] == [0, 1, 2, 3]


@pytest.mark.release_only
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--groups", "0/1+2"], "'0/1+2': the communicators differ in size"),
        pytest.param(["--groups", "0/0"], "a rank is named twice", marks=pytest.mark.thorough),
        (["--groups", "0/7"], "'0/7': the job has 3 ranks, numbered from 0: no rank 7"),
        pytest.param(
            ["--groups", "0,1"], "expected '/' between ranks", marks=pytest.mark.thorough
        ),
        (["--groups", "0/1", "--msg", "latency"], "--groups is for collectives"),
        pytest.param(
            ["--vendor", "--mem", "host"],
            "--vendor is for collectives on device memory",
            marks=pytest.mark.thorough,
        ),
        (["--vendor", "--type", "cfloat"], "nccl has no sum of cfloat"),
        (["--vendor", "--coll", "scan"], "nccl has no scan of float with sum"),
    ],
)
def test_refused_groups_and_vendor(any_mpi, words, message):
    ended = any_mpi.perf(3, *QUICK, *words)
    assert ended.status in (1, 2) and ended.err.count(message) == 1


@pytest.mark.release_only
def test_factors(tmp_path, mpi):
    sizes = ["--min", "4k", "--max", "4k"]
    written = results(tmp_path, mpi, 2, "--coll", "all", *sizes, "--mem", "host", run=None)
    for r in written["results"]:
        algbw = VOLUME[r["coll"]](2) * r["bytes"] / (r["avg_us"] * 1e3)
        assert r["algbw_gbs"] == pytest.approx(algbw, rel=1e-2)
        assert r["busbw_gbs"] == pytest.approx(r["algbw_gbs"] * BUS[r["coll"]](2), rel=1e-4)
        ranks = [rank["avg_us"] for rank in r["ranks"]]
        assert r["min_us"] == pytest.approx(min(ranks), abs=2e-3)
        assert r["max_us"] == pytest.approx(max(ranks), abs=2e-3)
        assert r["avg_us"] == pytest.approx(sum(ranks) / 2, abs=2e-3)


@pytest.mark.each_value
@pytest.mark.release_only
@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("faces", ["derived", "contiguous"])
def test_all_messages(tmp_path, mpi, ranks, faces):
    """Grids of one rank, of one dimension and of two."""
    tests = MSGS if ranks > 1 else ["halo2d", "halo3d"]
    options = ["--faces", faces, *(["--window", "3"] if ranks > 1 else [])]
    sizes = ["--min", "0", "--max", "20k", "--factor", "70"]
    written = results(tmp_path, mpi, ranks, "--msg", ",".join(tests), *options, *sizes)
    assert [r["msg"] for r in written["results"] if r["bytes"] == 4] == tests
    assert [r["bytes"] for r in written["results"] if r["msg"] == "halo2d"] == [4, 256, 19600]
    assert [r["bytes"] for r in written["results"] if r["msg"] == "halo3d"] == [4, 256, 16384]
    for r in written["results"]:
        size = r["message_bytes"]
        path = "fetched" if size >= 16384 else "mpi-staged" if size > 0 else "mpi"
        # A receiver that comes late, on a busy machine, has the next short ones staged.
        short = 256 <= size < 4096 or size == 16384
        paths = {"fetched", "mpi-staged", "mixed"} if short else {path}
        assert r["path"] in paths, size
    assert all(r["verified"] for r in written["results"])
    assert (written["options"]["faces"], written["passed"]) == (faces, True)


@pytest.mark.release_only
def test_halo_of_every_kind(tmp_path, any_mpi):
    """A block that is larger than a chunk of the tool's, on each memory and with other types."""
    for options in (["--mem", "host"], ["--mem", "managed"], ["--type", "cdouble"]):
        options += ["--msg", "halo2d,halo3d"]
        written = results(tmp_path, any_mpi, 2, *options, *exact("5m"))
        assert all(r["verified"] for r in written["results"])
    written = results(tmp_path, any_mpi, 2, "--msg", "all", *exact("64"), "--type", "int8")
    assert [(r["count"], r["message_bytes"]) for r in written["results"]] == [
        *[(64, 64)] * 3,
        (64, 8),
        (64, 16),
    ]


@pytest.mark.parametrize(
    ("kinds", "path"),
    [
        ("device,host", "mpi-staged"),
        ("host,device", "mpi-staged"),
        ("host,managed", "mpi"),
        ("managed,device", "mixed"),
    ],
)
def test_ends_on_different_memory(tmp_path, mpi, kinds, path):
    tests = ["latency", "bandwidth", "bibandwidth"]
    options = ["--mem", kinds, "--msg", ",".join(tests), "--window", "2", *exact("4k")]
    written = results(tmp_path, mpi, 2, *options, run=("--no-bind", "--sim", "cuda:1"))
    assert [(r["msg"], r["path"]) for r in written["results"]] == [(t, path) for t in tests]
    assert all(r["verified"] for r in written["results"])
    options = written["options"]
    assert f"{options['memory']},{options['memory_second']}" == kinds
    assert options["runtime"] == "cuda"
    devices = ["host" if "device" not in rank else "gpu" for rank in written["ranks"]]
    assert devices == ["host" if kind == "host" else "gpu" for kind in kinds.split(",")]


@pytest.mark.release_only
def test_messages_on_different_paths(tmp_path, any_mpi):
    """XCCL_P2P=mpi would crash on device memory, so it is tried on managed memory."""
    options = ["--msg", "latency", *exact("64")]
    for more, path in (
        ({"options": ["--mem", "host"]}, "host"),
        ({"options": ["--mem", "managed"], "env": {"XCCL_P2P": "mpi"}}, "mpi"),
        (
            {"options": [], "env": {"XCCL_MPI_GPU_AWARE": "yes", "XCCL_P2P": "staged"}},
            "mpi-staged",
        ),
        ({"options": ["--mem", "host"], "run": None}, "no interposer"),
    ):
        given = more.pop("options")
        written = results(tmp_path, any_mpi, 2, *options, *given, **more)
        assert [r["path"] for r in written["results"]] == [path]


@pytest.mark.release_only
@pytest.mark.parametrize("ranks", [2, 5])
def test_bandwidths_of_messages(tmp_path, any_mpi, ranks):
    options = ["--msg", "all", "--mem", "host", "--window", "5", *exact(27 * 64 * 64)]
    written = results(tmp_path, any_mpi, ranks, *options, run=None)
    moved = {"latency": 1, "bandwidth": 1, "bibandwidth": 2}
    firsts = list(range(ranks // 2))
    timed = {"latency": firsts, "bandwidth": firsts, "bibandwidth": list(range(ranks // 2 * 2))}
    sent = {"latency": 1, "bandwidth": 5, "bibandwidth": 5, "halo2d": 4, "halo3d": 6}
    assert [r["msg"] for r in written["results"]] == MSGS
    for r in written["results"]:
        halo = r["msg"].startswith("halo")
        factor = r["messages"] if halo else moved[r["msg"]]
        bw = factor * r["message_bytes"] / (r["avg_us"] * 1e3)
        assert r["bw_gbs"] == pytest.approx(bw, rel=1e-2)
        at_once = ranks if halo else ranks // 2
        assert r["total_gbs"] == pytest.approx(r["bw_gbs"] * at_once, rel=1e-4)
        assert r["messages"] == sent[r["msg"]]
        counted = [rank["rank"] for rank in r["ranks"]]
        assert counted == (list(range(ranks)) if halo else timed[r["msg"]])
        averages = [rank["avg_us"] for rank in r["ranks"]]
        assert r["avg_us"] == pytest.approx(sum(averages) / len(averages), abs=2e-3)
    grids = [r["grid"] for r in written["results"] if "grid" in r]
    assert grids == [[ranks, 1], [ranks, 1, 1]]
    # n^2 and n^3 floats below 27 * 64 * 64 bytes: 166 and 30 on a side.
    sides = [(r["count"], r["message_bytes"]) for r in written["results"] if "grid" in r]
    assert sides == [(166**2, 4 * 166), (30**3, 4 * 30**2)]


@pytest.mark.release_only
def test_window(tmp_path, any_mpi):
    """64 messages, or what 256 MiB hold."""
    for size, messages in (("4", 64), ("16m", 16)):
        options = ["--msg", "bandwidth", "--mem", "host", *exact(size), "--iters", "1"]
        (result,) = results(tmp_path, any_mpi, 2, *options)["results"]
        assert (result["messages"], result["verified"]) == (messages, True)


def test_messages_beside_collectives(tmp_path, any_mpi):
    options = ["--coll", "bcast", "--msg", "latency", *exact("64")]
    first, second = results(tmp_path, any_mpi, 2, *options)["results"]
    assert (first["coll"], first["path"]) == ("bcast", "direct")
    assert (second["msg"], second["path"]) == ("latency", "mpi-staged")


def test_samples(tmp_path, mpi):
    written = results(tmp_path, mpi, 2, "--min", "64", "--max", "64", "--samples", "--iters", "7")
    (result,) = written["results"]
    assert result["calls"] == 7
    for rank in result["ranks"]:
        assert len(rank["times_us"]) == 7
        assert rank["median_us"] == pytest.approx(sorted(rank["times_us"])[3], abs=1e-3)


@pytest.mark.release_only
@pytest.mark.parametrize(
    "kind",
    [
        *("int8", "float", "cdouble"),
        *(pytest.param(k, marks=pytest.mark.thorough) for k in ("uint16", "int64", "double")),
        pytest.param("cfloat", marks=pytest.mark.thorough),
    ],
)
def test_types_and_operations(tmp_path, any_mpi, kind):
    """The reference itself: against MPI's own reductions on host memory, on three ranks."""
    ops = ["sum", "prod"]
    # MPICH 4.0 compares MPI_UINT16_T as signed numbers, which this tool then finds.
    if not kind.startswith("c") and (kind, any_mpi.family) != ("uint16", "mpich"):
        ops += ["max", "min"]
    if "int" in kind:
        ops += ["land", "lor", "lxor", "band", "bor", "bxor"]
    for op in ops:
        sizes = ["--min", "4k", "--max", "4k", "--mem", "host"]
        colls = ["--coll", "allreduce,reduce_scatter"]
        results(tmp_path, any_mpi, 3, *colls, *sizes, "--type", kind, "--op", op, run=None)


@pytest.mark.each_value
@pytest.mark.release_only
@pytest.mark.parametrize(
    ("route", "path"), [("xccl", "ccl"), ("xccl", "direct"), ("mpi", "mpi-staged")]
)
@pytest.mark.parametrize("flavour", ["cuda", "rocm"])
def test_routes(tmp_path, mpi, route, path, flavour):
    run = ("--sim", f"{flavour}:2", "--route", route)
    env = {"XCCL_DIRECT": "off" if path == "ccl" else "on"}
    written = results(tmp_path, mpi, 2, "--max", "64", run=run, env=env)
    assert {r["path"] for r in written["results"]} == {path}
    assert written["route"] == route
    assert written["simulated"] == f"{flavour}:2"
    assert written["options"]["runtime"] == flavour
    assert [rank["device"] for rank in written["ranks"]] == [0, 1]
    used = written["ccl"] and written["ccl"]["name"]
    assert used == ({"cuda": "nccl", "rocm": "rccl"}[flavour] if path == "ccl" else None)


def test_host_and_managed_memory(tmp_path, mpi):
    written = results(tmp_path, mpi, 2, "--max", "64", "--mem", "host")
    assert {r["path"] for r in written["results"]} == {"host"}
    written = results(tmp_path, mpi, 2, "--max", "64", "--mem", "managed")
    assert written["options"]["memory"] == "managed"
    assert all(r["verified"] for r in written["results"])


@pytest.mark.release_only
def test_more_ranks_than_devices(mpi):
    run = ("--no-bind", "--sim", "cuda:1", "--route", "mpi")
    ended = mpi.perf(2, *QUICK, "--max", "4", run=run).good()
    assert "2 ranks share 1 device(s)" in ended.err


@pytest.mark.release_only
def test_local_device(tmp_path, mpi):
    run = ("--no-bind", "--sim", "cuda:4", "--route", "mpi")
    env = {"XCCL_LOCAL_DEVICE": "3"}
    written = results(tmp_path, mpi, 2, "--max", "4", run=run, env=env)
    assert [rank["device"] for rank in written["ranks"]] == [3, 3]
    ended = mpi.perf(2, *QUICK, run=run, env={"XCCL_LOCAL_DEVICE": "4"})
    assert ended.status != 0
    assert "XCCL_LOCAL_DEVICE=4" in ended.err and "0 to 3" in ended.err


def test_device_memory_is_refused_without_interposer(mpi):
    """An MPI that does not take device memory would crash on it."""
    folder = str(mpi.stage.lib / "xccl/sim/cuda")
    env = {"LD_LIBRARY_PATH": folder, "XCCL_SIM": "cuda:2"}
    ended = mpi.perf(2, *QUICK, run=None, env=env)
    assert ended.status == 1
    assert "xccl-run" in ended.err and "--force" in ended.err


def test_no_device(mpi):
    ended = mpi.perf(
        2, *QUICK, run=(), env={"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": ""}
    )
    assert ended.status == 1
    assert "xccl-run --sim cuda:4" in ended.err


@pytest.mark.parametrize(
    ("fault", "where", "element"),
    [
        ("short", "rank 0, element 255:", "got"),
        ("flip", "rank 1, element 0:", "got"),
        ("nan", "rank 0, element 128:", "nan"),
        ("send", "rank 0, element 0 of the send buffer", "not to be written"),
    ],
)
def test_faults_are_found(faulty, fault, where, element):
    ended = faulty(fault, *QUICK, "--mem", "host", "--min", "1k", "--max", "1k")
    assert ended.status == 1
    assert "WRONG RESULT: allreduce, 1024 bytes (256 x float, sum)" in ended.err
    assert where in ended.err and element in ended.err
    assert "1 element(s) wrong" in ended.err and "--seed" in ended.err
    assert " ok" not in ended.out


def test_fault_on_device_memory_is_found(faulty, mpi):
    run = [mpi.stage.bin / "xccl-run", "--sim", "cuda:2"]
    ended = faulty("short", *QUICK, "--min", "1k", "--max", "1k", "--type", "int32", run=run)
    assert ended.status == 1
    poison = str(int.from_bytes(b"\xa5" * 4, "little", signed=True))
    assert f"element 255: got {poison}, expected" in ended.err


@pytest.mark.each_value
@pytest.mark.release_only
@pytest.mark.parametrize(
    ("msg", "fault", "where", "wrong"),
    [
        ("latency", "flip", "rank 1, element 0:", 1),
        ("latency", "short", "rank 1, element 224:", 1),
        ("bandwidth", "short", "rank 1, element 224:", 4),
        ("bandwidth", "repeat", "rank 1, element 225:", 3 * 225),
        ("bibandwidth", "repeat", "rank 1, element 225:", 3 * 225),
        # A block of 15 x 15 in one of 17 x 17; rank 0 is behind two faces of it.
        ("halo2d", "short", "rank 1, element 1:", 2 * 15),
        ("halo2d", "corner", "rank 1, element 0 (in a corner", 1),
        ("halo2d", "inside", "rank 1, element 144 (inside the block", 1),
        ("halo3d", "short", "rank 1, element 9:", 2 * 6 * 6),
    ],
)
def test_faults_in_messages_are_found(faulty, msg, fault, where, wrong):
    window = ["--window", "4"] if "bandwidth" in msg else []
    ended = faulty(fault, *QUICK, "--msg", msg, "--mem", "host", *window, *exact(900))
    assert ended.status == 1
    assert f"WRONG RESULT: {msg}, " in ended.err
    (line,) = [line for line in ended.err.splitlines() if ": rank 1, " in line]
    assert where in line and f"; {wrong} element(s) wrong" in line
    assert " ok" not in ended.out


def test_faults_in_contiguous_faces_are_found(faulty):
    """Every message of rank 0 brings its first face, which rank 1 wants in none but the second."""
    options = ["--msg", "halo2d", "--faces", "contiguous", "--mem", "host", *exact(900)]
    ended = faulty("repeat", *QUICK, *options)
    assert ended.status == 1
    assert "rank 1, element 0: got" in ended.err and "; 15 element(s) wrong" in ended.err


@pytest.mark.parametrize("msg", ["latency", "bandwidth", "halo3d"])
def test_fault_in_messages_on_device_memory_is_found(faulty, mpi, msg):
    run = [mpi.stage.bin / "xccl-run", "--sim", "cuda:2"]
    ended = faulty("short", *QUICK, "--msg", msg, *exact("1k"), "--type", "int32", run=run)
    assert ended.status == 1
    poison = str(int.from_bytes(b"\xa5" * 4, "little", signed=True))
    assert re.search(rf"{msg}, .*rank 1, element \d+: got {poison}, expected", ended.err)


def test_fault_between_blocks_is_found(faulty):
    sizes = ["--min", "16", "--max", "16"]
    ended = faulty("gap", *QUICK, "--coll", "allgatherv", "--mem", "host", *sizes)
    assert ended.status == 1
    assert "rank 0, element 5 (between blocks, not to be written)" in ended.err


def test_failed_run_says_so_in_json(faulty, tmp_path):
    file = tmp_path / "out.json"
    sizes = ["--min", "1k", "--max", "4k"]
    ended = faulty("flip", *QUICK, "--mem", "host", *sizes, "--json", file)
    assert ended.status == 1
    written = json.loads(file.read_text())
    jsonschema.validate(written, SCHEMA)
    assert written["passed"] is False
    assert [r["verified"] for r in written["results"]] == [False]


@pytest.mark.release_only
def test_unchecked_is_not_called_right(faulty, tmp_path):
    file = tmp_path / "out.json"
    options = ["--mem", "host", "--max", "4", "--check", "no", "--json", file]
    faulty("flip", *QUICK, *options).good()
    assert [r["verified"] for r in json.loads(file.read_text())["results"]] == [None]


@pytest.mark.release_only
def test_timeout(faulty):
    ended = faulty("hang", *QUICK, "--mem", "host", "--max", "4", "--timeout", "1")
    assert ended.status != 0
    assert re.search(r"TIMEOUT: rank [01]: allreduce of 4 bytes took more than 1 s", ended.err)


@pytest.mark.release_only
def test_seed_repeats_the_data(faulty):
    def values(seed):
        sizes = ["--min", "4", "--max", "4", "--seed", seed]
        ended = faulty("flip", *QUICK, "--mem", "host", *sizes)
        return re.search(r"got (\S+), expected (\S+)", ended.err).groups()

    once = values("7")
    assert values("7") == once
    assert values("8") != once


@pytest.mark.release_only
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--nope"], ["--nope"]),
        (["stray"], ["stray"]),
        (["--coll", "allreduce,bkast"], ["'bkast'; did you mean 'bcast'?"]),
        (["--msg", "latncy"], ["did you mean 'latency'?"]),
        (["--coll", "permute"], ["'permute'; xccl-perf --help lists them"]),
        (["--coll", ""], ["--coll"]),
        (["--coll", "latency"], ["--coll", "latency"]),
        (["--msg", "halo2d,allreduce"], ["--msg", "allreduce"]),
        (["--msg", ""], ["--msg"]),
        (["--msg", "halo2d,latency"], ["latency needs two ranks"]),
        (["--msg", "bandwidth", "--window", "0"], ["--window", "0"]),
        (["--msg", "bandwidth", "--window", "65537"], ["--window", "65537"]),
        (["--msg", "latency", "--window", "4"], ["--window", "bibandwidth"]),
        (["--msg", "halo3d", "--faces", "both"], ["--faces", "both", "contiguous"]),
        (["--faces", "derived"], ["--faces", "halo2d"]),
        (["--mem", "device,host"], ["--mem", "latency"]),
        (["--msg", "halo2d", "--mem", "device,host"], ["--mem", "latency"]),
        (["--msg", "latency", "--mem", "device,"], ["--mem", "device, host or managed"]),
        (["--msg", "latency", "--mem", "host,host,host"], ["'host,host'"]),
        (["--min", "4q"], ["--min", "4q"]),
        (["--min", "-4"], ["--min", "-4"]),
        (["--max", "99999999999g"], ["--max"]),
        (["--min", "8", "--max", "4"], ["--min 8", "--max 4"]),
        (["--factor", "1"], ["--factor"]),
        (["--factor", "nan"], ["--factor"]),
        (["--iters", "0"], ["invalid value '0': expected an integer >= 1"]),
        (["--iters", "3x"], ["3x"]),
        (["--warmup", "-1"], ["--warmup"]),
        (["--barrier", "maybe"], ["maybe"]),
        (["--check", "1"], ["--check"]),
        (["--type", "half"], ["half", "float"]),
        (["--op", "avg"], ["avg", "sum"]),
        (["--op", "band"], ["band", "float"]),
        (["--op", "max", "--type", "cfloat"], ["max", "cfloat"]),
        (
            ["--min", "5", "--max", "7", "--type", "double"],
            ["--max 7", "double, which has 8 bytes"],
        ),
        (["--max", "3", "--min", "1"], ["--max 3", "float, which has 4 bytes"]),
        (["--mem", "gpu"], ["gpu", "device, host or managed"]),
        (["--device", "tpu"], ["tpu", "auto, cuda or rocm"]),
        (["--root", "1"], ["--root", "rank 1"]),
        (["--root", "99999999999"], ["--root"]),
        (["--seed", "x"], ["--seed"]),
        (["--samples"], ["--json"]),
        (["--work", "10"], ["--work", "--nonblocking"]),
        (["--work", "-1", "--nonblocking"], ["--work: invalid value '-1'"]),
        (["--msg", "halo2d", "--nonblocking"], ["--nonblocking is for collectives"]),
        (["--vendor", "--nonblocking"], ["--vendor"]),
        (["--json", ""], ["--json: the file has no name"]),
        (["--timeout"], ["--timeout needs a value"]),
        (["--max", "4g", "--min", "4g", "--type", "int8", "--mem", "host"], ["larger type"]),
    ],
)
def test_refusals(stage, arguments, words):
    """On one rank without a launcher, which either family can."""
    ended = stage.tool("xccl-perf", "--mem", "host", *arguments)
    assert ended.status == (1 if "larger type" in words else 2), ended.err
    assert ended.err.count("xccl-perf: ") == 1
    for word in words:
        assert word in ended.err


@pytest.mark.release_only
@pytest.mark.parametrize(
    ("arguments", "head"),
    [
        (["--coll", "bcast"], "root 0"),
        (["--coll", "allreduce"], "op sum, in place"),
        (["--coll", "alltoall"], "in place"),
        (["--coll", "bcast,reduce"], "op sum, root 0, in place but bcast"),
    ],
)
def test_head(any_mpi, arguments, head):
    """It has what applies to the collectives that are measured, and nothing else."""
    options = ["--mem", "host", "--max", "4", "--iters", "1", "--in-place"]
    ended = any_mpi.perf(2, *options, *arguments, run=None).good()
    assert f"\n# type float, {head}, seed " in ended.out


@pytest.mark.release_only
@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--min", "4", "--max", "4g", "--type", "int8", "--mem", "host"], "MPI cannot take"),
        (["--min", "64", "--max", "64m"], "no 134217728 bytes on device"),
    ],
)
def test_sizes_that_do_not_fit(any_mpi, tmp_path, arguments, why):
    """They are left out; what fits is measured, and passes."""
    options = ["--coll", "alltoall,alltoallv", "--factor", "1024", "--iters", "1"]
    target = tmp_path / "result.json"
    ended = any_mpi.perf(
        2, *options, *arguments, "--json", target, env={"XCCL_SIM_MEMORY": "100m"}
    ).good()
    result = json.loads(target.read_text())
    sizes = {(row["coll"], row["bytes"]) for row in result["results"]}
    least = int(arguments[1])
    assert result["passed"] and len(sizes) == 2 * 2 + 2 * (least == 4)
    assert why in ended.err
    for coll in ("alltoall", "alltoallv"):
        left = f"xccl-perf: {coll}: sizes from {least << (30 if least == 4 else 20)} bytes on are"
        assert left in ended.err, ended.err


def test_hidden_devices(mpi):
    """Whoever finds no GPU reads which variable may hide them."""
    ended = mpi.perf(1, *QUICK, env={"CUDA_VISIBLE_DEVICES": ""})
    assert ended.status != 0 and "(CUDA_VISIBLE_DEVICES='' hides" in ended.out + ended.err


@pytest.mark.parametrize("sim", ["hpu:2", "oneccl:2"])
def test_simulated_devices_of_another_kind(stage, sim):
    """Whoever simulates already is not told to simulate, but what."""
    ended = stage.tool("xccl-run", "--sim", sim, "--no-bind", stage.bin / "xccl-perf")
    assert ended.status == 1 and f"; {sim} simulates none; " in ended.err
    assert "--sim cuda:4" not in ended.err and "simulate cuda, rocm, msccl or mscclpp" in ended.err


def test_json_to_stdout(stage, tmp_path):
    """Nothing else stands there, so that it can be piped; the table goes to stderr."""
    words = ["--mem", "host", *QUICK, *exact(64), "--json", "-"]
    ended = stage.tool("xccl-perf", *words, cwd=tmp_path).good()
    jsonschema.validate(json.loads(ended.out), SCHEMA)
    assert "# allreduce" in ended.err and not list(tmp_path.iterdir())


def test_json_that_cannot_be_written(stage):
    ended = stage.tool("xccl-perf", "--mem", "host", "--json", "/no/such/folder/x.json")
    assert ended.status == 2
    assert "cannot write '/no/such/folder/x.json': No such file" in ended.err


def test_json_on_a_full_disk(stage, tmp_path):
    """Half a file is not left behind, and the reason is said."""
    (tmp_path / "x.json.part").symlink_to("/dev/full")
    ended = stage.tool("xccl-perf", "--mem", "host", *QUICK, "--json", tmp_path / "x.json")
    assert ended.status == 1
    assert f"cannot write '{tmp_path}/x.json': No space left on device" in ended.err
    assert not os.listdir(tmp_path)


@pytest.mark.release_only
def test_json_of_a_run_that_is_stopped(stage, tmp_path):
    """Before anything was measured: neither half a file nor a part is left, whoever ends it."""
    words = ["--mem", "host", "--max-time", "60", "--iters", "100000000", "--timeout", "1"]
    ended = stage.tool("xccl-perf", *words, "--json", tmp_path / "x.json")
    assert ended.status == 124 and not os.listdir(tmp_path)


def test_json_of_the_sizes_before(stage, tmp_path):
    """What was measured is there, whole, in a file that says that the run was stopped; the next run begins anew."""
    words = ["--mem", "host", "--min", "8", "--factor", "2", "--iters", "20", "--coll", "bcast"]
    command = [stage.bin / "xccl-perf", *words, "--max", "8g", "--json", tmp_path / "x.json"]
    env = stage.environment()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as run:
        for line in run.stdout:
            if line.split()[0] == "64":
                run.kill()
    assert os.listdir(tmp_path) == ["x.json.part"]
    stopped = json.loads((tmp_path / "x.json.part").read_text())
    jsonschema.validate(stopped, SCHEMA)
    assert [one["bytes"] for one in stopped["results"]][:3] == [8, 16, 32]
    assert (stopped["passed"], stopped["stopped"]) == (False, True)
    stage.tool("xccl-perf", *words, "--max", "16", "--json", tmp_path / "x.json").good()
    assert os.listdir(tmp_path) == ["x.json"]
    whole = json.loads((tmp_path / "x.json").read_text())
    jsonschema.validate(whole, SCHEMA)
    assert (len(whole["results"]), whole["passed"], "stopped" in whole) == (2, True, False)


def test_json_into_a_fifo(stage, tmp_path):
    """It stays one, as a device does, and who reads it gets all."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with open(os.open(fifo, os.O_RDONLY | os.O_NONBLOCK), encoding="utf-8") as reader:
        stage.tool("xccl-perf", "--mem", "host", *QUICK, *exact(64), "--json", fifo).good()
        jsonschema.validate(json.loads(reader.read()), SCHEMA)
    assert fifo.is_fifo() and os.listdir(tmp_path) == ["fifo"]


def test_json_through_a_link(stage, tmp_path):
    """What a link leads to is written, and the link stays; also where nothing is there yet."""
    link, file = tmp_path / "link", tmp_path / "file"
    link.symlink_to("file")
    for _ in range(2):
        stage.tool("xccl-perf", "--mem", "host", *QUICK, *exact(64), "--json", link).good()
        assert link.is_symlink() and not file.is_symlink()
        jsonschema.validate(json.loads(file.read_text()), SCHEMA)
    assert sorted(os.listdir(tmp_path)) == ["file", "link"]


def test_json_that_is_a_folder(stage, tmp_path):
    """Said before anything is measured, and nothing is left beside it."""
    folder = tmp_path / "results"
    folder.mkdir()
    ended = stage.tool("xccl-perf", "--mem", "host", "--json", folder)
    assert ended.status == 2 and f"'{folder}' is a folder" in ended.err
    assert list(tmp_path.iterdir()) == [folder]


def test_wrong_variable(stage):
    ended = stage.tool("xccl-perf", "--mem", "host", env={"XCCL_TIMEOUT": "soon"})
    assert ended.status == 2
    assert "XCCL_TIMEOUT=soon is not allowed" in ended.err


@pytest.mark.parametrize("front", [[], ["xccl-run"]])
def test_mistyped_variable(stage, front):
    """Somebody warns of it, once: the interposer where there is one."""
    words = [*front, "xccl-perf", "--mem", "host", "--max", "4", "--iters", "1"]
    words = [words[0], *(stage.bin / w if w == "xccl-perf" else w for w in words[1:])]
    ended = stage.tool(*words, env={"XCCL_TIMEOT": "3"}).good()
    assert ended.err.count("XCCL_TIMEOT is not a variable of xccl") == 1, ended.err
    assert "did you mean XCCL_TIMEOUT?" in ended.err


@pytest.mark.parametrize("front", [[], ["xccl-run"]])
def test_log_file_that_cannot_be_opened(stage, front):
    """Said once, too: the program and the interposer have a log each."""
    words = [*front, stage.bin / "xccl-perf", "--mem", "host", "--max", "4", "--iters", "1"]
    ended = stage.tool(*words, env={"XCCL_LOG_FILE": "/no/ranks.log"}).good()
    assert ended.err.count("XCCL_LOG_FILE: cannot open /no/ranks.log") == 1, ended.err


def test_help_names_every_option(stage):
    text = stage.tool("xccl-perf", "--help").good().out
    source = (TOOLS / "perf/options.c").read_text()
    options = re.findall(r'\{"([a-z-]+)", [01], NULL', source)
    assert len(options) > 20
    manual = (TOOLS / "man/xccl-perf.1").read_text().replace("\\-", "-")
    completion = (TOOLS / "completion/bash/xccl-perf").read_text()
    for option in options:
        assert f"--{option}" in text, option
        assert f"--{option}" in completion, option
        if option not in ("help", "version"):
            assert f"--{option}" in manual, option
    for test in COLLS + MSGS:
        assert test in text and test in completion and test in manual
