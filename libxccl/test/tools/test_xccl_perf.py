# SPDX-License-Identifier: BSD-3-Clause
"""xccl-perf: it verifies what it times, finds what is wrong, and writes what its schema says."""

import json
import re
import shutil
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
]
# nccl-tests: total bytes per bytes as defined here, and bus per algorithm bandwidth.
VOLUME = {coll: lambda n: n for coll in COLLS}
VOLUME.update({coll: lambda n: 1 for coll in ("allreduce", "bcast", "reduce")})
BUS = {coll: lambda n: (n - 1) / n for coll in COLLS}
BUS.update({"allreduce": lambda n: 2 * (n - 1) / n, "bcast": lambda n: 1, "reduce": lambda n: 1})


def results(tmp_path, mpi, ranks, *arguments, **options):
    """Run with --json; what it wrote, valid by the schema."""
    file = tmp_path / "out.json"
    mpi.perf(ranks, *QUICK, *arguments, "--json", file, **options).good()
    written = json.loads(file.read_text())
    jsonschema.validate(written, SCHEMA)
    assert not (tmp_path / "out.json.part").exists()
    return written


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("place", [[], ["--in-place"]])
def test_all_collectives(tmp_path, mpi, ranks, place):
    """Every collective at sizes none, one element, odd, and more than one chunk of the tool's."""
    sizes = ["--min", "0", "--max", "20k", "--factor", "70"]
    root = ["--root", str(ranks - 1)]
    written = results(tmp_path, mpi, ranks, "--coll", "all", *sizes, *root, *place)
    assert [r["bytes"] for r in written["results"] if r["coll"] == "gatherv"] == [0, 4, 280, 19600]
    assert list(dict.fromkeys(r["coll"] for r in written["results"])) == COLLS
    assert all(r["verified"] for r in written["results"])
    assert written["passed"] is True


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


def test_samples(tmp_path, mpi):
    written = results(tmp_path, mpi, 2, "--min", "64", "--max", "64", "--samples", "--iters", "7")
    (result,) = written["results"]
    assert result["calls"] == 7
    for rank in result["ranks"]:
        assert len(rank["times_us"]) == 7
        assert rank["median_us"] == pytest.approx(sorted(rank["times_us"])[3], abs=1e-3)


@pytest.mark.parametrize(
    "kind", ["int8", "uint16", "int64", "float", "double", "cfloat", "cdouble"]
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


@pytest.mark.parametrize(("route", "path"), [("xccl", "ccl"), ("mpi", "mpi-staged")])
@pytest.mark.parametrize("flavour", ["cuda", "rocm"])
def test_routes(tmp_path, mpi, route, path, flavour):
    run = ("--sim", f"{flavour}:2", "--route", route)
    written = results(tmp_path, mpi, 2, "--max", "64", run=run)
    assert {r["path"] for r in written["results"]} == {path}
    assert written["route"] == route
    assert written["simulated"] == f"{flavour}:2"
    assert written["options"]["runtime"] == flavour
    assert [rank["device"] for rank in written["ranks"]] == [0, 1]
    used = written["ccl"] and written["ccl"]["name"]
    assert used == (None if route == "mpi" else {"cuda": "nccl", "rocm": "rccl"}[flavour])


def test_host_and_managed_memory(tmp_path, mpi):
    written = results(tmp_path, mpi, 2, "--max", "64", "--mem", "host")
    assert {r["path"] for r in written["results"]} == {"host"}
    written = results(tmp_path, mpi, 2, "--max", "64", "--mem", "managed")
    assert written["options"]["memory"] == "managed"
    assert all(r["verified"] for r in written["results"])


def test_more_ranks_than_devices(mpi):
    run = ("--no-bind", "--sim", "cuda:1", "--route", "mpi")
    ended = mpi.perf(2, *QUICK, "--max", "4", run=run).good()
    assert "2 ranks share 1 device(s)" in ended.err


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
    assert "--mem host" in ended.err


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


def test_unchecked_is_not_called_right(faulty, tmp_path):
    file = tmp_path / "out.json"
    options = ["--mem", "host", "--max", "4", "--check", "no", "--json", file]
    faulty("flip", *QUICK, *options).good()
    assert [r["verified"] for r in json.loads(file.read_text())["results"]] == [None]


def test_timeout(faulty):
    ended = faulty("hang", *QUICK, "--mem", "host", "--max", "4", "--timeout", "2")
    assert ended.status != 0
    assert re.search(r"TIMEOUT: rank 0: allreduce of 4 bytes took more than 2 s", ended.err)


def test_seed_repeats_the_data(faulty):
    def values(seed):
        sizes = ["--min", "4", "--max", "4", "--seed", seed]
        ended = faulty("flip", *QUICK, "--mem", "host", *sizes)
        return re.search(r"got (\S+), expected (\S+)", ended.err).groups()

    assert values("7") == values("7")
    assert values("7") != values("8")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--nope"], ["--nope"]),
        (["stray"], ["stray"]),
        (["--coll", "allreduce,bkast"], ["bkast"]),
        (["--coll", ""], ["--coll"]),
        (["--min", "4q"], ["--min", "4q"]),
        (["--min", "-4"], ["--min", "-4"]),
        (["--max", "99999999999g"], ["--max"]),
        (["--min", "8", "--max", "4"], ["--min 8", "--max 4"]),
        (["--factor", "1"], ["--factor"]),
        (["--factor", "nan"], ["--factor"]),
        (["--iters", "0"], ["--iters"]),
        (["--iters", "3x"], ["3x"]),
        (["--warmup", "-1"], ["--warmup"]),
        (["--barrier", "maybe"], ["maybe"]),
        (["--check", "1"], ["--check"]),
        (["--type", "half"], ["half", "float"]),
        (["--op", "avg"], ["avg", "sum"]),
        (["--op", "band"], ["band", "float"]),
        (["--op", "max", "--type", "cfloat"], ["max", "cfloat"]),
        (["--mem", "gpu"], ["gpu", "device, host, managed"]),
        (["--device", "tpu"], ["tpu", "auto, cuda, rocm"]),
        (["--root", "1"], ["--root", "rank 1"]),
        (["--root", "99999999999"], ["--root"]),
        (["--seed", "x"], ["--seed"]),
        (["--samples"], ["--json"]),
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


def test_json_that_cannot_be_written(stage):
    ended = stage.tool("xccl-perf", "--mem", "host", "--json", "/no/such/folder/x.json")
    assert ended.status == 1
    assert "/no/such/folder/x.json" in ended.err


def test_mistyped_variable(stage):
    ended = stage.tool("xccl-perf", "--mem", "host", env={"XCCL_TIMEOT": "3"})
    assert ended.status == 2
    assert "XCCL_TIMEOT" in ended.err and "XCCL_TIMEOUT" in ended.err


def test_help_names_every_option(stage):
    text = stage.tool("xccl-perf", "--help").good().out
    source = (TOOLS / "perf/options.c").read_text()
    options = re.findall(r'\{"([a-z-]+)", [01], NULL', source)
    assert len(options) > 20
    manual = (TOOLS / "man/xccl-perf.1").read_text().replace("\\-", "-")
    completion = (TOOLS / "completion/xccl-perf").read_text()
    for option in options:
        assert f"--{option}" in text, option
        assert f"--{option}" in completion, option
        if option not in ("help", "version"):
            assert f"--{option}" in manual, option
    for coll in COLLS:
        assert coll in text and coll in completion and coll in manual


class TestWrapper:
    """bin/xccl-perf picks the program of the MPI in use."""

    @pytest.fixture
    def make(self, stage, tmp_path):
        def install(*families):
            programs = tmp_path / "lib/xccl"
            programs.mkdir(parents=True)
            (tmp_path / "bin").mkdir()
            shutil.copy(stage.bin / "xccl-perf", tmp_path / "bin")
            for family in families:
                program = programs / f"xccl-perf-{family}"
                program.write_text(f'#!/bin/sh\necho {family} "$@"\n')
                program.chmod(0o755)

            def run(**env):
                drop = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK")
                left = [name for name in drop if name not in env]
                return stage.run(tmp_path / "bin/xccl-perf", "a b", env=env, drop=left)

            return run

        return install

    @pytest.mark.parametrize(
        ("env", "family"),
        [
            ({}, "openmpi"),
            ({"PMI_RANK": "0"}, "mpich"),
            ({"PMIX_RANK": "0"}, "openmpi"),
            ({"OMPI_COMM_WORLD_RANK": "0", "PMI_RANK": "0"}, "openmpi"),
            ({"XCCL_MPI": "mpich", "OMPI_COMM_WORLD_RANK": "0"}, "mpich"),
            ({"XCCL_MPI": "openmpi", "PMI_RANK": "0"}, "openmpi"),
        ],
    )
    def test_both_built(self, make, env, family):
        assert make("openmpi", "mpich")(**env).good().out == f"{family} a b\n"

    def test_only_one_built(self, make):
        assert make("mpich")().good().out == "mpich a b\n"

    def test_not_built(self, make):
        ended = make("mpich")(OMPI_COMM_WORLD_RANK="0")
        assert ended.status == 1
        assert "openmpi" in ended.err and "built for: mpich" in ended.err

    def test_none_built(self, make):
        ended = make()()
        assert (ended.status, "with an MPI" in ended.err) == (1, True)

    def test_bad_choice(self, make):
        ended = make("openmpi")(XCCL_MPI="lam")
        assert (ended.status, "openmpi or mpich" in ended.err) == (2, True)
