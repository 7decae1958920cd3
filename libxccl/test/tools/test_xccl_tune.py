# SPDX-License-Identifier: BSD-3-Clause
"""xccl-tune on the simulation: what it measures, writes, keeps and takes up again.

Times of the simulation mean nothing: that a table follows from times is tested by unit.tune.
"""

import json
import os
import re
import shlex
import signal
import subprocess
import time
from pathlib import Path

import jsonschema
import pytest

LIBXCCL = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((LIBXCCL / "tools/tune/xccl-tune.schema.json").read_text())
QUICK = [
    *("--max", "4k", "--factor", "32", "--resolution", "64"),
    *("--samples", "1", "--max-samples", "1", "--iters", "2"),
]


def tune(mpi, ranks, folder, *arguments, run=("--sim", "cuda:4"), **options):
    """xccl-tune behind xccl-run, with few and short measurements."""
    options.setdefault("env", {})["XCCL_DIRECT"] = "on"
    wrapper = [] if run is None else [mpi.stage.bin / "xccl-run", *run]
    command = [*wrapper, mpi.stage.bin / "xccl-tune", "--output", folder, *QUICK]
    return mpi.run(ranks, *command, *arguments, **options)


def wait_for(condition):
    for _ in range(300):
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError("waited for nothing")


def rows(path):
    """(collective, ranks, path) of each row of a table."""
    found = re.findall(r"^(\w+):[^:]+:(\w+):(\d+):(\w+)$", path.read_text(), re.M)
    assert found
    return found


def samples(state):
    """Lines of a state, without its head, and without those that say what is measured to the end."""
    lines = state.read_text().splitlines(keepends=True)[2:]
    return [line for line in lines if not line.endswith(" whole\n")]


def carried(lines):
    return [line for line in lines if not line.endswith(" -1.000\n")]


@pytest.fixture(scope="module")
def tuned(any_mpi, tmp_path_factory):
    """One run that the tests look at."""
    folder = tmp_path_factory.mktemp("tuned") / "Ada's tables"
    ended = tune(any_mpi, 3, folder, "--coll", "allreduce,alltoallv").good()
    return any_mpi, folder, ended


def test_every_mpi(mpi, tmp_path):
    tune(mpi, 2, tmp_path / "t", "--coll", "bcast", "--max", "8").good()
    assert {path for *_, path in rows(tmp_path / "t/nodes-1.table")} <= {"mpi", "ccl", "direct"}


def test_scans(any_mpi, tmp_path):
    """The direct path and MPI carry them, the vendor's library does not."""
    ended = tune(any_mpi, 3, tmp_path / "t", "--coll", "scan,exscan", "--max", "8")
    ended.good()
    assert {(c, r) for c, _, r, _ in rows(tmp_path / "t/nodes-1.table")} == {
        (coll, ranks) for coll in ("scan", "exscan") for ranks in "23"
    }
    points = [
        point
        for series in json.loads((tmp_path / "t/raw.json").read_text())["series"]
        for point in series["points"]
    ]
    assert points and all(p["paths"]["direct"] and p["paths"]["mpi"] for p in points)
    assert not any(p["paths"]["ccl"] for p in points)
    # MPI works on copies by itself here.
    assert not any(p["paths"]["staged"] for p in points)


@pytest.mark.release_only
def test_measures_what_paths_differ_in(any_mpi):
    """Every collective that another path than MPI's carries; one that is left out gets no rows."""
    listed = (LIBXCCL / "src/base/collectives.h").read_text()
    run = [any_mpi.stage.bin / "xccl-run", "--sim", "cuda:4", any_mpi.stage.bin / "xccl-info"]
    carried = set()
    for coll in re.findall(r"^ *(?:#define .*)?X\(\w+, (\w+), ", listed, re.M):
        ended = any_mpi.stage.run(
            *run, "--why", f"{coll}:1k:cuda:4", "--json", env={"XCCL_DIRECT": "on"}
        )
        paths = json.loads(ended.good().out)["paths"]
        if paths["direct"]["available"] or paths["ccl"]["available"]:
            carried.add(coll)
    text = any_mpi.stage.tool("xccl-tune", "--help").good().out
    named = re.search(r"\(default: all\): ([a-z_\s]+)\n  --min", text).group(1).split()
    assert len(named) == 15 and set(named) == carried


def test_table(tuned):
    """Every collective and communicator has rows, which the library reads."""
    mpi, folder, ended = tuned
    table = folder / "nodes-1.table"
    named = re.search(r"export XCCL_TABLE=(.*)\n", ended.out).group(1)
    assert str(table) in ended.out and shlex.split(named) == [str(folder)]
    seen = {(coll, ranks) for coll, mem, ranks, _ in rows(table)}
    assert seen == {(coll, ranks) for coll in ("allreduce", "alltoallv") for ranks in "23"}
    assert {mem for _, mem, _, _ in rows(table)} == {"cuda"}
    # Nobody measured a machine here.
    assert "measured = nobody\n" in table.read_text() and "simulated" in table.read_text()
    command = [mpi.stage.bin / "xccl-run", "--sim", "cuda:4", mpi.stage.bin / "xccl-info"]
    why = [*command, "--why", "allreduce:16:cuda:2", "--json"]
    told = json.loads(mpi.stage.run(*why, env={"XCCL_TABLE": str(folder)}).good().out)
    assert told["tables"][0]["source"] == str(table) and told["tables"][0]["asked"]


def test_raw(tuned):
    """All samples, and rows that follow from them."""
    _, folder, _ = tuned
    raw = json.loads((folder / "raw.json").read_text())
    jsonschema.validate(raw, SCHEMA)
    assert raw["simulated"] and raw["gpu_model"] and raw["library"].startswith("nccl ")
    assert len(raw["series"]) == 4
    count = 0
    for series in raw["series"]:
        chosen = [point["chosen"] for point in series["points"]]
        ranks = str(series["nodes"] * series["ranks_per_node"])
        changes = [path for i, path in enumerate(chosen) if i == 0 or path != chosen[i - 1]]
        written = [
            r[3]
            for r in rows(folder / "nodes-1.table")
            if r[0] == series["collective"] and r[2] == ranks
        ]
        assert written == changes
        for point in series["points"]:
            paths = point["paths"]
            assert set(paths) == {"mpi", "ccl", "direct", "staged"}
            assert paths["mpi"] and paths["ccl"]  # each was forced, and served
            count += sum(len(path["samples"]) for path in paths.values() if path)
    assert count == len([line for line in samples(folder / "state") if " -1.000" not in line])


def test_used(tuned):
    """The library takes the paths of the table."""
    mpi, folder, _ = tuned
    (first, *_) = [
        r[3] for r in rows(folder / "nodes-1.table") if r[0] == "allreduce" and r[2] == "2"
    ]
    ended = mpi.perf(
        2, "--max", "4", "--iters", "2", env={"XCCL_TABLE": str(folder), "XCCL_DIRECT": "on"}
    )
    (path,) = re.findall(r"^ +4 +1 (\S+)", ended.good().out, re.M)
    assert path.startswith(first)


@pytest.mark.release_only
def test_resume(any_mpi, tmp_path):
    """What was measured is kept, but for a line that was cut off; the rest is measured."""
    folder, state = tmp_path / "t", tmp_path / "t/state"
    tune(any_mpi, 2, folder, "--coll", "bcast", "--max", "256").good()
    whole = samples(state)
    head = state.read_text().splitlines(keepends=True)[:2]
    kept = whole[: len(whole) // 2]
    state.write_text("".join([*head, *kept, whole[-1][:10]]))
    (folder / "raw.json").unlink()
    tune(any_mpi, 2, folder, "--coll", "bcast", "--max", "256").good()
    again = samples(state)
    assert again[: len(kept)] == kept and len(carried(again)) == len(carried(whole))
    # All is known now: nothing is measured, but one call by each path that carried none.
    tune(any_mpi, 2, folder, "--coll", "bcast", "--max", "256").good()
    more = samples(state)
    assert more[: len(again)] == again and (folder / "raw.json").exists()
    assert {line.split()[4] for line in more[len(again) :]} == {"staged"}
    assert len(more) == len(again) + 1


@pytest.mark.release_only
def test_paths_that_were_missing(any_mpi, tmp_path):
    """A vendor's library that could not start in one run is measured in the next."""
    folder, options = tmp_path / "t", ["--coll", "allreduce,bcast", "--max", "8"]
    ended = tune(any_mpi, 2, folder, *options, run=("--sim", "cuda:1")).good()
    told = re.findall(r"^(\w+) carried no call: (.+)$", ended.out, re.M)
    assert [path for path, _ in told] == ["ccl", "staged"] or told[1][0] == "direct"
    assert "use the same device" in told[0][1], ended.out
    assert {path for *_, path in rows(folder / "nodes-1.table")} <= {"mpi", "direct"}
    ended = tune(any_mpi, 2, folder, *options, run=("--sim", "cuda:2")).good()
    assert "ccl carried no call" not in ended.out
    raw = json.loads((folder / "raw.json").read_text())
    points = [point["paths"] for series in raw["series"] for point in series["points"]]
    assert points and all(paths["ccl"] and paths["direct"] for paths in points)


@pytest.mark.release_only
def test_progress(any_mpi, tmp_path):
    """Launchers put a pipe before the terminal: it is said on lines, as often as asked for."""
    options = ["--coll", "bcast", "--max", "64"]
    ended = tune(any_mpi, 2, tmp_path / "a", *options, "--progress", "0.000001").good()
    lines = re.findall(r"^xccl-tune: bcast on 1 x 2 ranks, \w+, \w+; (\d+) mea", ended.err, re.M)
    assert len(lines) > 2 and int(lines[-1]) <= int(lines[0])
    assert "measurements" not in tune(any_mpi, 2, tmp_path / "b", *options).good().err


@pytest.mark.release_only
def test_stop(any_mpi, tmp_path):
    """--minutes ends it after a measurement, with a status of its own and without tables."""
    folder = tmp_path / "t"
    ended = tune(any_mpi, 2, folder, "--coll", "bcast", "--minutes", "0.0000001")
    assert ended.status == 3 and "goes on from here" in ended.out
    assert not list(folder.glob("*.table")) and (folder / "state").exists()
    tune(any_mpi, 2, folder, "--coll", "bcast", "--max", "256").good()
    assert (folder / "nodes-1.table").exists()


@pytest.mark.release_only
def test_state_of_another_machine(any_mpi, tmp_path):
    folder = tmp_path / "t"
    tune(any_mpi, 2, folder, "--coll", "bcast", "--minutes", "0.0000001")
    ended = tune(any_mpi, 3, folder, "--coll", "bcast")
    assert ended.status == 2 and f"{folder}/state: it was begun with other" in ended.err
    assert "(then: 1 nodes, 2 ranks each; now: 1 nodes, 3 ranks each)" in ended.err


@pytest.mark.release_only
def test_state_of_other_settings(any_mpi, tmp_path):
    """What changes results counts, what only says more does not."""
    folder, options = tmp_path / "t", ["--coll", "bcast", "--max", "8"]
    tune(any_mpi, 2, folder, *options).good()
    tune(any_mpi, 2, folder, *options, env={"NCCL_DEBUG": "WARN", "XCCL_LOG": "info"}).good()
    ended = tune(any_mpi, 2, folder, *options, env={"NCCL_ALGO": "Ring"})
    assert ended.status == 2 and "(now: NCCL_ALGO=Ring), so its samples" in ended.err


def test_state_with_a_line_that_is_no_sample(any_mpi, tmp_path):
    folder = tmp_path / "t"
    tune(any_mpi, 2, folder, "--coll", "bcast", "--max", "8").good()
    with (folder / "state").open("a") as state:
        state.write("rubbish\n")
    ended = tune(any_mpi, 2, folder, "--coll", "bcast", "--max", "8")
    assert ended.status == 2
    assert "is no sample: 'rubbish'; remove the line, or give another folder" in ended.err


@pytest.mark.release_only
def test_what_was_not_measured_to_the_end(any_mpi, tmp_path):
    """One sample of a run that was stopped, which --coll leaves out now, makes no row."""
    folder = tmp_path / "t"
    tune(any_mpi, 2, folder, "--coll", "bcast,allgather", "--max", "8").good()
    with (folder / "state").open("a") as state:
        state.write("1 2 alltoall 4 mpi 12.000\n")
    ended = tune(any_mpi, 2, folder, "--coll", "bcast", "--max", "8").good()
    assert {coll for coll, *_ in rows(folder / "nodes-1.table")} == {"bcast", "allgather"}
    assert "alltoall on 1 x 2 ranks is not measured to the end, and left out" in ended.err
    ended = tune(any_mpi, 2, folder, "--coll", "alltoall", "--max", "8").good()
    assert "alltoall" in (folder / "nodes-1.table").read_text()
    assert "left out" not in ended.err


@pytest.mark.release_only
@pytest.mark.parametrize(
    ("case", "words"),
    [
        (("allgatherv", "4g", "64g"), "is 3200m there, not 4g: larger counts and displacements"),
        (("alltoall", "64m", "256m"), "is 25m there, not 64m: the buffers of larger sizes take"),
    ],
)
def test_sizes_that_do_not_fit(any_mpi, tmp_path, case, words):
    """A collective is measured up to what an int and the device's memory hold."""
    coll, most, memory = case
    least = most.replace("g", "").replace("m", "")  # so that the largest size is asked for
    options = ["--coll", coll, "--min", least, "--max", most, "--factor", "1024"]
    ended = tune(any_mpi, 2, tmp_path / "t", *options, env={"XCCL_SIM_MEMORY": memory}).good()
    assert ended.err.count(f"xccl-tune: {coll} on 1 x 2 ranks: --max {words}") == 1, ended.err
    assert {coll for coll, *_ in rows(tmp_path / "t/nodes-1.table")} == {coll}


@pytest.mark.release_only
def test_no_size_that_fits(any_mpi, tmp_path):
    options = ["--coll", "allgatherv", "--min", "4g", "--max", "4g"]
    ended = tune(any_mpi, 2, tmp_path / "t", *options, env={"XCCL_SIM_MEMORY": "64g"})
    assert ended.status == 1 and "nothing was measured" in ended.err
    assert not list((tmp_path / "t").glob("*.table"))


@pytest.mark.release_only
def test_table_of_a_part(any_mpi, tmp_path):
    """What was whole when a run is stopped makes rows; no row of before is lost."""
    folder, stop = tmp_path / "t", ["--minutes", "0.0000001"]
    written = folder / "nodes-1.table"
    tune(any_mpi, 2, folder, "--coll", "bcast", "--max", "8").good()
    written.unlink()
    ended = tune(any_mpi, 2, folder, "--coll", "bcast,alltoall", "--max", "8", *stop)
    assert ended.status == 3 and "of what was measured to the end so far" in ended.out
    assert {coll for coll, *_ in rows(written)} == {"bcast"}
    assert "title = 1 node, a part, on the sim" in written.read_text()
    with (folder / "state").open("a") as state:
        state.write("1 2 bcast 4096 mpi 12.000\n")
    kept = written.read_text()
    for coll in ("bcast", "bcast,alltoall"):
        ended = tune(any_mpi, 2, folder, "--coll", coll, "--max", "8", *stop)
        assert ended.status == 3 and written.read_text() == kept
    # That sample asks for others of its size.
    tune(any_mpi, 2, folder, "--coll", "bcast,alltoall", "--max", "8").good()
    assert {coll for coll, *_ in rows(written)} == {"bcast", "alltoall"}
    assert "a part" not in written.read_text()


@pytest.mark.release_only
def test_table_where_a_result_was_wrong(faulty, mpi, tmp_path):
    run = [mpi.stage.bin / "xccl-run", "--sim", "cuda:2"]
    options = ["--output", tmp_path / "t", *QUICK, "--max", "8", "--coll"]
    faulty("short", *options, "bcast", run=run, tool="xccl-tune").good()
    (tmp_path / "t/nodes-1.table").unlink()
    ended = faulty("short", *options, "bcast,allreduce", run=run, tool="xccl-tune")
    assert ended.status == 1 and "xccl-tune: WRONG RESULT: allreduce" in ended.err
    assert {coll for coll, *_ in rows(tmp_path / "t/nodes-1.table")} == {"bcast"}


def test_wrong_result(faulty, mpi, tmp_path):
    """A result that is wrong ends the run: no sample is kept of it, and no table is made."""
    run = [mpi.stage.bin / "xccl-run", "--sim", "cuda:2"]
    options = ["--output", tmp_path / "t", *QUICK, "--coll", "bcast,allreduce", "--max", "8"]
    ended = faulty("short", *options, run=run, tool="xccl-tune")
    assert ended.status == 1
    assert "xccl-tune: WRONG RESULT: allreduce, 8 bytes" in ended.err
    assert not samples(tmp_path / "t/state") and not list((tmp_path / "t").glob("*.table"))


@pytest.mark.release_only
def test_timeout_with_idle_ranks(faulty, mpi, tmp_path):
    """They wait for those that measure, and the launcher may leave them alone, as srun does."""
    alone = ["-disable-auto-cleanup"] if mpi.family == "mpich" else []
    run = [mpi.stage.bin / "xccl-run", "--sim", "cuda:3"]
    options = ["--output", tmp_path / "t", *QUICK, "--coll", "allreduce", "--timeout", "1"]
    ended = faulty("hang", *options, run=run, tool="xccl-tune", ranks=3, launching=alone)
    assert ended.status != 0
    assert "xccl-tune: TIMEOUT: rank " in ended.err and "took more than 1 s" in ended.err


def handles_sigterm(pid):
    """The shells that start the program do not."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    mask = re.search(r"^SigCgt:\s*(\w+)", status, re.M).group(1)
    return int(mask, 16) >> (signal.SIGTERM - 1) & 1


@pytest.mark.release_only
def test_second_signal(faulty_library, mpi, tmp_path):
    """The first stops the run behind the call that is under way; the next ends one that hangs."""
    rank = "${OMPI_COMM_WORLD_RANK-$PMI_RANK}"
    preload = f"LD_PRELOAD={faulty_library}" + "${LD_PRELOAD:+:$LD_PRELOAD}"
    inner = f"echo $$ > {tmp_path}/part.{rank}; mv {tmp_path}/part.{rank} {tmp_path}/pid.{rank}; "
    command = [
        *mpi.command(2),
        *(mpi.stage.bin / "xccl-run", "--sim", "cuda:2"),
        *("sh", "-c", f'{inner} export {preload}; exec "$@"', "sh"),
        *(mpi.stage.bin / "xccl-tune", "--output", tmp_path / "t", *QUICK, "--coll", "allreduce"),
    ]
    env = mpi.stage.environment({"FAULTY": "hang", "FAULTY_HANGS": str(tmp_path / "hangs")})
    with subprocess.Popen([str(word) for word in command], env=env) as job:
        try:
            wait_for(lambda: (tmp_path / "t/state").exists() and (tmp_path / "pid.1").exists())
            pid = int((tmp_path / "pid.1").read_text())
            wait_for(lambda: handles_sigterm(pid))
            wait_for((tmp_path / "hangs").exists)
            for _ in range(2):
                os.kill(pid, signal.SIGTERM)
            with pytest.raises(subprocess.TimeoutExpired):
                job.wait(2.5)
            os.kill(pid, signal.SIGTERM)
            assert job.wait(30) != 0
        finally:
            job.kill()


def test_path_that_changes(faulty, mpi, tmp_path):
    """The time of another path is no sample of the one that was asked for."""
    run = [mpi.stage.bin / "xccl-run", "--sim", "cuda:2"]
    options = ["--output", tmp_path / "t", *QUICK, "--coll", "allreduce", "--max", "8"]
    faulty("moves", *options, run=run, tool="xccl-tune").good()
    kept = [line.split()[4:] for line in samples(tmp_path / "t/state")]
    assert ["direct", "-1.000"] in kept and [path for path, _ in kept].count("direct") == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--coll", "allreduse"], "allreduse"),
        (["--min", "1m", "--max", "1k"], "--min"),
        (["--min", "0"], "expected bytes >= 1"),
        (["--nodes", "0"], "--nodes"),
        (["--ranks-per-node", "2,"], "--ranks-per-node"),
        (["--nope"], "--nope"),
        (["--josn"], "'--josn'; there is no --json here: raw.json in the folder of --output"),
        (["--compare", "one"], "two files"),
        (["--compare", "/no/such", "/no/such"], "/no/such"),
        (["--compare", "/tmp", "/tmp"], "/tmp: is a folder; name a table in it"),
        (["--check", "/no/such"], "/no/such"),
    ],
)
def test_refusals(any_mpi, arguments, words):
    ended = any_mpi.stage.run(any_mpi.stage.bin / "xccl-tune", *arguments)
    assert ended.status == 2 and words in ended.err, ended.err


@pytest.mark.release_only
@pytest.mark.parametrize("tool", ["xccl-tune", "xccl-perf"])
def test_refused_without_mpi(stage, tool):
    """Where no launcher started a rank, a mistake in its words is told before MPI_Init."""
    fails = {"OMPI_MCA_pml": "none-such"}  # in MPI_Init
    ended = stage.run(stage.bin / tool, "--nope", env=fails)
    assert ended.status == 2 and f"{tool}: unknown option" in ended.err, ended.err


@pytest.mark.release_only
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--nodes", "2"], "--nodes 2: this job has 1 node(s)"),
        (["--ranks-per-node", "2,3"], "--ranks-per-node 3: this job has 2 rank(s)"),
        (["--ranks-per-node", "1"], "a communicator of one rank has nothing to measure"),
    ],
)
def test_shapes_that_cannot_be(any_mpi, tmp_path, arguments, words):
    ended = tune(any_mpi, 2, tmp_path / "t", *arguments)
    assert ended.status == 2 and words in ended.err and not (tmp_path / "t").exists()


def test_needs_the_interposer(any_mpi, tmp_path):
    command = [any_mpi.stage.bin / "xccl-run", "--route", "mpi", "--sim", "cuda:2"]
    ended = any_mpi.run(2, *command, any_mpi.stage.bin / "xccl-tune", "--output", tmp_path / "t")
    assert ended.status == 2 and "XCCL_ROUTE" in ended.err


def table(path, rows, **settings):
    head = {"measured": "nobody", **settings}
    path.write_text("".join(f"{k} = {v}\n" for k, v in head.items()) + rows + "\n")
    return path


def test_compare(any_mpi, tmp_path):
    a = table(tmp_path / "a", "bcast:0-64k:cuda:4:direct#bcast:64k-inf:cuda:4:ccl")
    b = table(tmp_path / "b", "bcast:0-1m:cuda:4:direct#bcast:1m-inf:cuda:4:ccl")
    ended = any_mpi.stage.tool("xccl-tune", "--compare", a, b)
    assert ended.status == 1 and ended.out == "bcast, cuda, 4 ranks, 64k-1m: ccl -> direct\n"
    same = any_mpi.stage.tool("xccl-tune", "--compare", a, a).good()
    assert same.out == "the same choices\n"
    one, two = (table(tmp_path / str(n), "*:*:*:*:ccl", nodes=n, gpu="A*") for n in (1, 2))
    ended = any_mpi.stage.tool("xccl-tune", "--compare", one, two)
    assert ended.status == 1
    assert ended.out == (
        "nodes: another setting: the tables are for different communicators\n"
        "the same choices:\n  *:*:*:*:ccl\n"
    )


def test_check(any_mpi, tmp_path):
    """What a table names and what is here; a table that was made here has nothing to say."""
    run = [any_mpi.stage.bin / "xccl-run", "--sim", "cuda:2", any_mpi.stage.bin / "xccl-tune"]
    old = table(tmp_path / "old", "*:*:*:*:ccl", gpu_model="Other", library="nccl 2.20.5")
    ended = any_mpi.stage.run(*run, "--check", old)
    assert ended.status == 1
    assert re.search(r"^gpu_model: was Other, here Simulated", ended.out, re.M)
    assert re.search(r"^library: was nccl 2.20.5, here nccl ", ended.out, re.M)
    assert re.search(r"^driver: the table does not say", ended.out, re.M)


def test_check_without_a_gpu(any_mpi, tmp_path):
    """Nothing has changed where there is nothing to compare with."""
    old = table(tmp_path / "old", "*:*:*:*:ccl", gpu_model="Other", library="nccl 2.20.5")
    env = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": "", "ROCR_VISIBLE_DEVICES": ""}
    ended = any_mpi.stage.run(any_mpi.stage.bin / "xccl-tune", "--check", old, env=env)
    assert (ended.status, ended.out) == (2, "")
    assert "xccl-tune: --check: there is no GPU here to compare with: " in ended.err


def test_check_of_an_own_table(tuned):
    mpi, folder, _ = tuned
    run = [mpi.stage.bin / "xccl-run", "--sim", "cuda:4", mpi.stage.bin / "xccl-tune"]
    ended = mpi.stage.run(*run, "--check", folder / "nodes-1.table", env={"XCCL_MPI": mpi.family})
    assert "nothing that it names has changed here" in ended.good().out
    assert "nodes-1.table: measured by nobody\n" in ended.out


def test_documented_everywhere(any_mpi):
    """Options of --help, of the manual page and of the completion are the same."""

    def options(text):
        return set(re.findall(r"--[a-z][a-z-]*", text.replace("\\-", "-")))

    shown = options(any_mpi.stage.tool("xccl-tune", "--help").good().out)
    assert len(shown) > 15
    assert shown <= options((LIBXCCL / "tools/man/xccl-tune.1").read_text())
    assert shown <= options((LIBXCCL / "tools/completion/bash/xccl-tune").read_text())
