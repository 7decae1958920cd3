# SPDX-License-Identifier: BSD-3-Clause
"""XCCL_PROFILE: the numbers of calls that a program is known to make, merged over its ranks."""

import json
import os
import re
import shutil
import socket
import subprocess

import jsonschema
import pytest
from mpi_harness import CCL, TOP

SCHEMA = json.loads((TOP / "libxccl/src/observe/xccl-profile.schema.json").read_text())
TITLE = r"^xccl profile: mpi_profile-"


def profile(mpi, tmp_path, ranks, command, **options):
    """Run a program with a profile; what it printed, and the file."""
    file = tmp_path / "profile.json"
    env = {"XCCL_PROFILE": str(file), **CCL, **options.pop("env", {})}
    result = mpi.run(ranks, command, env=env, timeout=60, **options)
    assert result.status == 0, result.out
    assert len(result.lines("rank . *: over|rank .: over")) == ranks, result.out
    assert len(result.lines(TITLE)) == 1, result.out
    written = json.loads(file.read_text())
    jsonschema.validate(written, SCHEMA)
    assert written["ranks"] == written["ranks_merged"] == ranks
    assert not file.with_suffix(".json.part").exists()
    return result, written


def rows(written, call, **facts):
    return [
        row
        for row in written["rows"]
        if row["call"] == call and all(row[name] == value for name, value in facts.items())
    ]


def check_host_rows(written, ranks):
    (row,) = rows(written, "MPI_Allreduce", memory="host")
    assert (row["calls"], row["bytes"]) == (10 * ranks, 10 * ranks * 4000)
    assert (row["bytes_from"], row["bytes_below"]) == (2048, 4096)
    assert (row["ranks"], row["on_ranks"], row["path"]) == (ranks, ranks, "host")
    assert 0 < row["seconds_least"] <= row["seconds_most"] <= row["seconds"]
    assert row["share"] == pytest.approx(row["seconds"] / written["run_seconds"], abs=1e-5)
    (row,) = rows(written, "MPI_Bcast")
    assert (row["calls"], row["ranks"], row["bytes"]) == (2 * ranks, ranks // 2, 2 * ranks * 100)
    for call in ("MPI_Gather", "MPI_Scatter"):  # at the root, too, whose part is in place
        (row,) = rows(written, call)
        assert (row["calls"], row["bytes"]) == (ranks, ranks * 100), row
    (row,) = rows(written, "MPI_Sendrecv")
    assert (row["calls"], row["on_ranks"], row["bytes"], row["ranks"]) == (7, 1, 7 * 16, None)
    (row,) = rows(written, "MPI_Barrier")
    assert (row["calls"], row["bytes"]) == (ranks, 0)


def test_jump(family, tmp_path):
    """Calls count after an error handler has left one by longjmp()."""
    file = tmp_path / "profile.json"
    env = {"XCCL_PROFILE": str(file)}
    family.run(2, "mpi_corners cuda jumping", env=env, timeout=60).good()
    written = json.loads(file.read_text())
    assert sum(row["calls"] for row in rows(written, "MPI_Allreduce", memory="cuda")) == 3 * 2


def test_host(mpi, tmp_path):
    """Nothing of a device: rows of host memory, of one rank alone too."""
    _, written = profile(mpi, tmp_path, 4, "mpi_profile none known", sim=None)
    check_host_rows(written, 4)
    assert {row["memory"] for row in written["rows"]} <= {"host", None}
    assert written["run_seconds_most"] <= written["run_seconds"] < 60 * 4


def test_clocks_of_nodes_differ(family, tmp_path):
    """Ranks that are all there are not missed because of their time of day."""
    _, written = profile(family, tmp_path, 4, "mpi_profile none apart", sim=None)
    check_host_rows(written, 4)


def test_fifo(openmpi, tmp_path):
    """It stays one, also behind a link, and who reads it gets the profile."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    (tmp_path / "link.json").symlink_to(fifo)
    with open(os.open(fifo, os.O_RDONLY | os.O_NONBLOCK), encoding="utf-8") as reader:
        env = {"XCCL_PROFILE": str(tmp_path / "link.json")}
        result = openmpi.run(1, "mpi_profile none known", sim=None, env=env, timeout=60)
        assert result.status == 0, result.out
        jsonschema.validate(json.loads(reader.read()), SCHEMA)
    assert fifo.is_fifo() and (tmp_path / "link.json").is_symlink()
    assert sorted(os.listdir(tmp_path)) == ["fifo", "link.json"]


@pytest.mark.release_only
def test_locale_of_the_program(openmpi, tmp_path):
    """Numbers have points, also where the program's language writes commas."""
    name = "de_DE.UTF-8"
    command = ["localedef", "-i", "de_DE", "-f", "UTF-8", str(tmp_path / name)]
    if not shutil.which("localedef") or subprocess.run(command, check=False).returncode != 0:
        pytest.skip("localedef makes no German locale here (apt install locales)")
    env = {"LC_ALL": name, "LOCPATH": str(tmp_path)}
    result, written = profile(openmpi, tmp_path, 2, "mpi_profile none known", sim=None, env=env)
    check_host_rows(written, 2)
    assert result.lines(r"\d\.\d{3} s from MPI_Init to MPI_Finalize")


def test_device(family, tmp_path):
    """Paths, the token that chose them, completions, and what the tables say otherwise."""
    result, written = profile(family, tmp_path, 2, "mpi_profile cuda known")
    check_host_rows(written, 2)
    (row,) = rows(written, "MPI_Allreduce", memory="cuda")
    assert (row["calls"], row["bytes"], row["path"]) == (10, 40000, "ccl")
    assert row["reason"] == "XCCL_TUNE *:*:*:2-inf:ccl"
    assert (row["otherwise"], row["otherwise_possible"]) == ("mpi", True)
    assert row["completions"] == 0
    for call, started in (("MPI_Iallreduce", 6), ("MPI_Allreduce_init", 4)):
        (row,) = rows(written, call, memory="cuda")
        assert (row["calls"], row["completions"]) == (started, started), row
        assert row["completion_seconds"] > 0
    # Each by one path or the other: where the receiver comes late, the sender is not kept waiting.
    sent = rows(written, "MPI_Isend", memory="cuda")
    assert {row["path"] for row in sent} <= {"fetched", "mpi-staged"}
    for name, expected in (("calls", 4), ("completions", 4), ("bytes", 4 * 16384)):
        assert sum(row[name] for row in sent) == expected, sent
    assert sum(row["calls"] for row in rows(written, "MPI_Recv", memory="cuda")) == 3
    (row,) = rows(written, "MPI_Irecv", memory="cuda")
    assert (row["calls"], row["completions"], row["path"]) == (1, 1, None), row
    assert rows(written, "MPI_Start")[0]["calls"] == 4
    assert sum(row["calls"] for row in rows(written, "MPI_Wait")) == 6 + 4 + 4 + 1
    # The same for people.
    assert result.lines(r"^Collectives on 2 ranks")
    assert result.lines(
        r"^  MPI_Allreduce  +2 KiB to 4 KiB  +cuda  +ccl  +10 .* mpi; XCCL_TUNE \*"
    )
    assert result.lines(r"^Messages, files, windows, packing")
    assert result.lines(r"^Waiting and testing")


def test_nothing_agreed_on(openmpi, tmp_path):
    """A non-blocking call of which the ranks agree on nothing has its own bytes."""
    env = {"XCCL_MEMORY": "mixed"}
    _, written = profile(openmpi, tmp_path, 2, "mpi_profile cuda known", env=env)
    (row,) = rows(written, "MPI_Iallreduce", memory="cuda")
    assert (row["calls"], row["bytes"], row["path"]) == (6, 6 * 4000, "mpi-staged")


def test_other_route(openmpi, tmp_path):
    """On route mpi the tables still say what they would have chosen; nobody looked if it can."""
    env = {"XCCL_ROUTE": "mpi"}
    result, written = profile(openmpi, tmp_path, 2, "mpi_profile cuda known", env=env)
    (row,) = rows(written, "MPI_Allreduce", memory="cuda")
    assert (row["path"], row["reason"]) == ("mpi-staged", "XCCL_ROUTE is not xccl")
    assert (row["otherwise"], row["otherwise_possible"]) == ("ccl", None)
    assert result.lines(r"^  MPI_Allreduce .* ccl\?; XCCL_ROUTE is not xccl$")


def test_otherwise_staged(openmpi, tmp_path):
    """Each path that a table can name has its word, `staged` too."""
    env = {"XCCL_TUNE": "*:*:cuda:2:ccl#*:*:cuda:2:staged"}
    _, written = profile(openmpi, tmp_path, 2, "mpi_profile cuda known", env=env)
    (row,) = rows(written, "MPI_Allreduce", memory="cuda")
    assert (row["path"], row["otherwise"], row["otherwise_possible"]) == ("ccl", "staged", True)
    env = {"XCCL_ROUTE": "mpi", "XCCL_TUNE": "*:*:cuda:2:staged"}
    result, written = profile(openmpi, tmp_path, 2, "mpi_profile cuda known", env=env)
    (row,) = rows(written, "MPI_Allreduce", memory="cuda")
    assert (row["otherwise"], row["otherwise_possible"]) == ("staged", None)
    assert result.lines(r"^  MPI_Allreduce .* staged\?; XCCL_ROUTE is not xccl$")


def test_other_route_of_own_counts(openmpi, tmp_path):
    """Nothing is agreed on there, and the reason is the same."""
    file = tmp_path / "profile.json"
    env = {"XCCL_ROUTE": "mpi", "XCCL_PROFILE": str(file)}
    openmpi.run(2, "mpi_colls cuda dd counts", env=env, timeout=60).good()
    found = rows(json.loads(file.read_text()), "MPI_Alltoallv", memory="cuda")
    assert {row["reason"] for row in found} == {"XCCL_ROUTE is not xccl"}


def test_more_kinds_than_rows(family, tmp_path):
    """What has no room is counted all the same, on each rank and where they are merged."""
    _, written = profile(family, tmp_path, 2, "mpi_profile none many", sim=None)
    made = 2 * 2 * 19 * 12
    assert sum(row["calls"] for row in written["rows"]) + written["lost_calls"] == made
    assert 0 < written["lost_calls"] < made
    assert len(written["rows"]) == 384


def test_more_kinds_than_rows_on_device(family, tmp_path):
    """Non-blocking calls, which are counted where they start, are lost once and not twice."""
    _, written = profile(family, tmp_path, 2, "mpi_profile cuda many")
    made = 2 * (2 * 19 * 12 + 19 * 5)
    assert sum(row["calls"] for row in written["rows"]) + written["lost_calls"] == made


def test_two_worlds_of_one_file(openmpi, tmp_path):
    """A job and what it spawned end at the same time: what it spawned has a file of its own."""
    for i in range(4):
        folder = tmp_path / str(i)
        folder.mkdir()
        env = {"XCCL_PROFILE": str(folder / "profile.json")}
        result = openmpi.run(1, "mpi_spawn cuda", sim="cuda:2", env=env, timeout=60)
        assert result.status == 0 and not result.lines("warning"), result.out
        own, spawned = sorted(folder.iterdir(), key=lambda path: len(path.name))
        assert own.name == "profile.json"
        assert re.fullmatch(
            rf"profile\.{re.escape(socket.gethostname())}\.\d+\.json", spawned.name
        )
        for path in (own, spawned):
            jsonschema.validate(json.loads(path.read_text()), SCHEMA)


def test_world_after_a_session(mpich, tmp_path):
    """A program that used a session has a profile of what it called between MPI_Init and its end."""
    file = tmp_path / "profile.json"
    result = mpich.run(2, "mpi_session cuda before", env={"XCCL_PROFILE": str(file)}, timeout=60)
    assert result.status == 0, result.out
    written = json.loads(file.read_text())
    jsonschema.validate(written, SCHEMA)
    (start,) = rows(written, "MPI_Start")
    assert start["calls"] == 2 * 2 * 3, start  # on two communicators, not on the three before


def test_table_alone(openmpi, tmp_path):
    """XCCL_PROFILE=1: a table where messages go, and no file."""
    log = tmp_path / "log"
    env = {"XCCL_PROFILE": "1", "XCCL_LOG_FILE": str(log)}
    result = openmpi.run(1, "mpi_profile none many", sim=None, env=env, timeout=60)
    assert result.status == 0 and not result.lines("xccl profile"), result.out
    assert "xccl profile: mpi_profile-openmpi, 1 rank, " in log.read_text()
    assert "Collectives on 1 rank\n" in log.read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["log"]


def test_off(openmpi):
    result = openmpi.run(2, "mpi_profile none known", sim=None, timeout=60)
    assert result.status == 0 and not result.lines("xccl"), result.out


def test_unwritable(openmpi, tmp_path):
    """The job has ended well by then: a warning with the cause."""
    env = {"XCCL_PROFILE": str(tmp_path / "no/such/folder.json")}
    result = openmpi.run(2, "mpi_profile none known", sim=None, env=env, timeout=60)
    assert result.status == 0, result.out
    assert len(result.lines(r"warning: XCCL_PROFILE: cannot write .*: No such file")) == 1
    assert result.lines(TITLE)


# No file may have a byte, as on a full disk; Open MPI has then no memory to share, and needs none.
NO_SPACE = 'trap "" XFSZ; ulimit -f 0; exec "$@"'


def test_no_space(openmpi, tmp_path):
    """Nothing is left of a file that cannot be written."""
    command = ["/bin/sh", "-c", NO_SPACE, "sh", openmpi.program("mpi_profile"), "none", "known"]
    env = {"XCCL_PROFILE": str(tmp_path / "profile.json")}
    result = openmpi.run(1, command, sim=None, env=env, timeout=60)
    assert result.status == 0, result.out
    assert len(result.lines(r"warning: XCCL_PROFILE: cannot write .*: File too large")) == 1
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("value", ["yes", ".json"])
def test_wrong_value(openmpi, value):
    openmpi.run_heard(
        lambda r: f"XCCL_PROFILE={value} is not allowed; it takes 0|1|FILE.json" in r.out,
        1,
        "mpi_profile none known",
        sim=None,
        env={"XCCL_PROFILE": value},
        timeout=30,
    )


@pytest.mark.each_value
@pytest.mark.parametrize("who", ["first", "others"])
def test_on_some_ranks_only(mpi, who):
    """A launcher that hands the variable to some ranks: the job ends, and says what is missing."""
    test = "=" if who == "first" else "!="
    script = (
        f'[ "${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}}" {test} 0 ] && export XCCL_PROFILE=1; exec "$@"'
    )
    program = mpi.program("mpi_profile")
    command = ["/bin/sh", "-c", script, "sh", program, "none", "known"]
    result = mpi.run(3, command, sim=None, env={"XCCL_TIMEOUT": "1"}, timeout=40)
    assert result.status == 0 and not result.timed_out, result.out
    assert len(result.lines("rank .: over")) == 3
    alone = result.lines("THESE ARE THE CALLS OF RANK 0 ALONE")
    assert len(alone) == (1 if who == "first" else 0), result.out


def test_enqueued(openmpi, tmp_path):
    """Calls on a stream have rows of their own, with the path that they were enqueued on."""
    file = tmp_path / "profile.json"
    env = {"XCCL_PROFILE": str(file), **CCL}
    openmpi.run(2, "mpi_streams cuda collectives", env=env, timeout=60).good()
    written = json.loads(file.read_text())
    jsonschema.validate(written, SCHEMA)
    found = rows(written, "MPIX_Allreduce_enqueue", ranks=2, memory="cuda")
    assert found and {row["path"] for row in found} <= {"ccl", "direct", "mpi-staged"}
    assert sum(row["bytes"] for row in found) > 0


@pytest.mark.parametrize(
    ("name", "value", "fault"),
    [
        ("XCCL_PROFILE", "missing/a.json", "No such file or directory"),
        ("XCCL_PROFILE", "folder.json", "Is a directory"),
        ("XCCL_DUMP_DIR", "missing", "No such file or directory"),
        ("XCCL_DUMP_DIR", "file", "Not a directory"),
    ],
)
def test_output_that_cannot_be_written(family, tmp_path, name, value, fault):
    """MPI_Init says so, once, and not only the end of the job."""
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "file").write_text("")
    env = {name: str(tmp_path / value)}
    result = family.run(3, "mpi_host", sim=None, env=env, timeout=30)
    assert result.status == 0, result.out
    (line,) = result.lines(rf"warning: {name}={env[name]}: ")
    assert fault in line, line
    assert result.out.index(line) < result.out.index("sum right"), result.out
