# SPDX-License-Identifier: BSD-3-Clause
"""Wrong arguments and wrong settings: the documented error, and never a hang."""

import shutil
import subprocess

import pytest
from mpi_harness import CCL, PATHS


@pytest.mark.each_value
@pytest.mark.parametrize("memory", ["host", "device"])
@pytest.mark.parametrize("ranks", [1, 2])
def test_classes(family, memory, ranks):
    """Each wrong argument gives MPI's class, through the same handler as without xccl."""
    family.run(ranks, f"mpi_errors cuda {memory}", timeout=60).good()


def test_fatal(mpi):
    """The default handler ends the job; nobody comes back."""
    result = mpi.run_heard(
        lambda r: "MPI_ERR_ROOT" in r.out or "Invalid root" in r.out,
        2,
        "mpi_errors cuda device fatal",
        timeout=60,
    )
    assert "came back" not in result.out


@pytest.mark.each_value
@pytest.mark.parametrize("case", ["once", "frees", "starts", "jumps", "looks", "waits"])
def test_handlers(mpi, case):
    """Of a non-blocking collective one handler is called, which may call MPI, or leave by longjmp()."""
    mpi.run(2, f"mpi_handlers cuda {case}", timeout=60).good()


def test_errors_without_a_communicator(mpi):
    """They go where the program has sent them; MPIs of later versions have tests of their own."""
    mpi.run(2, "mpi_world_errors cuda", timeout=60).good()


@pytest.mark.parametrize("case", ["asks", "asks_jumps"])
def test_handlers_while_the_ranks_agree(own_abi, case):
    """MPI may find an error in what xccl has posted, and call the handler: no lock is held there."""
    build = own_abi.build
    libraries = [build.interposer, build.programs / "libmpich_erring.so", build.mpich_idle]
    words = ["/usr/bin/env", f"LD_PRELOAD={build.preload(*libraries)}"]
    words += [own_abi.program("mpi_handlers"), "cuda", case]
    env = {**CCL, "XCCL_DIRECT": "off"}
    own_abi.run(2, words, preload=False, env=env, timeout=60).good()


def test_orphans(family):
    """The same for what is left of communicators that are gone."""
    family.run(1, "mpi_orphans none", sim=None, preload=False, timeout=60).good()


@pytest.mark.parametrize(
    ("case", "env"),
    [
        ("persistent", {"XCCL_TUNE": "*:*:*:*:staged"}),
        ("persistent_on_host", {"XCCL_MEMORY": "mixed"}),
    ],
)
def test_handlers_of_persistent(mpi, case, env):
    """The same of a start, whose collective MPI has on a communicator that the program does not know."""
    mpi.run(2, f"mpi_handlers cuda {case}", env=env, timeout=60).good()


@pytest.mark.parametrize("tune", ["*:*:*:*:direct", "*:*:*:*:staged"])
def test_handler_of_persistent_time_out(family, tune):
    """It is that of the program's communicator, even once the program has freed that."""
    env = {"XCCL_TIMEOUT": "1", "XCCL_TUNE": tune}
    family.run(2, "mpi_handlers cuda persistent_expires", env=env, timeout=60).good()


@pytest.mark.release_only
@pytest.mark.each_value
@pytest.mark.parametrize("tune", ["*:*:*:*:ccl", "*:*:*:*:staged"])
def test_handler_of_time_out(family, tune):
    """A failure that xccl finds is its communicator's alone, once."""
    env = {"XCCL_TIMEOUT": "1", "XCCL_TUNE": tune}
    family.run(2, "mpi_handlers cuda expires", env=env, timeout=60).good()


@pytest.mark.release_only
@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ("XCCL_TIMEOUT=-1", "XCCL_TIMEOUT=-1"),
        ("XCCL_TIMEOUT=soon", "XCCL_TIMEOUT=soon"),
        ("XCCL_LOG=loud", "XCCL_LOG=loud"),
        ("XCCL_CCL=ncccl", "XCCL_CCL=ncccl"),
        ("XCCL_CHECK=2", "XCCL_CHECK=2"),
        ("XCCL_LOCAL_DEVICE=x", "XCCL_LOCAL_DEVICE=x is not allowed"),
        ("XCCL_TUNE=allreduce:0-64k:cuda:2-8:warp", "column 26"),
        ("XCCL_TUNE=*:*:*:*:mpi#alreduce:*:*:*:mpi", "column 13"),
        ("XCCL_TUNE=*:64k-1k:*:*:mpi", "column 3"),
        ("XCCL_TUNE=*:*:*:*", "XCCL_TUNE"),
    ],
)
def test_settings(openmpi, setting, named):
    """A wrong variable is an error that names it and, of a table, the column; rank 0 says it."""
    name, value = setting.split("=", 1)
    result = openmpi.run_heard(
        lambda r: r.lines(r"^xccl\[\d\] error: .*XCCL_"),
        3,
        "mpi_loop cuda 2 return",
        env={name: value},
        timeout=30,
    )
    (line,) = result.lines("^xccl")
    assert line.startswith("xccl[0] error: ") and named in line, result.out
    assert not result.lines("all rounds good")


def test_setting_of_one_rank_is_wrong(openmpi):
    """It says so itself where rank 0 has nothing to say."""
    own = '[ "$OMPI_COMM_WORLD_RANK" != 1 ] || export XCCL_CHECK=2; exec "$@"'
    program = openmpi.program("mpi_loop")
    openmpi.run_heard(
        lambda r: r.lines(r"^xccl\[1\] error: XCCL_CHECK=2 is not allowed"),
        2,
        ["/bin/sh", "-c", own, "-", program, "cuda", "2", "return"],
        timeout=30,
    )


def test_local_device_that_is_not_there(openmpi):
    env = {"XCCL_LOCAL_DEVICE": "7"}
    result = openmpi.run(2, "mpi_loop cuda 4 return", sim="cuda:4", env=env, timeout=30)
    assert result.status == 0, result.out
    assert len(result.lines("warning: XCCL_LOCAL_DEVICE=7 is none of the 4 devices")) == 2
    result = openmpi.run(2, "mpi_loop cuda 4 return", sim="cuda:8", env=env, timeout=30)
    assert result.status == 0 and "XCCL_LOCAL_DEVICE" not in result.out, result.out


def test_log_file_that_cannot_be_opened(family, tmp_path):
    """One rank of the node says so."""
    env = {"XCCL_LOG_FILE": str(tmp_path / "missing/log")}
    result = family.run(3, "mpi_host", sim=None, env=env, timeout=30)
    assert result.status == 0, result.out
    (line,) = result.lines("xccl")
    assert "XCCL_LOG_FILE: cannot open" in line


def test_log_file_on_a_full_disk(openmpi):
    """No message is lost, and one rank of the node says why it is there."""
    env = {"XCCL_LOG_FILE": "/dev/full", "XCCL_LOG": "info", "XCCL_TIMEOT": "3"}
    result = openmpi.run(3, "mpi_host", sim=None, env=env, timeout=30)
    assert result.status == 0, result.out
    (line,) = result.lines("XCCL_LOG_FILE")
    assert (
        line
        == "xccl warning: XCCL_LOG_FILE: cannot be written (No space left on device); messages go to stderr"
    )
    assert len(result.lines("XCCL_TIMEOT is not")) == 1 and len(result.lines("is active")) == 1


@pytest.mark.parametrize("name", ["juwels-boster", "../sites/sim", "x" * 300])
def test_site_that_is_unknown(openmpi, name):
    """xccl-run refuses it; set behind it, or without it, the job runs, and rank 0 says so."""
    result = openmpi.run(3, "mpi_host", sim=None, env={"XCCL_SITE": name}, timeout=30)
    assert result.status == 0, result.out
    (line,) = result.lines("xccl")
    assert line.startswith(f"xccl[0] warning: XCCL_SITE={name}: no such site in /")
    result = openmpi.run(3, "mpi_host", sim=None, env={"XCCL_SITE": "sim"}, timeout=30)
    assert result.status == 0 and not result.lines("xccl"), result.out


@pytest.mark.parametrize("case", ["alone", "after"])
@pytest.mark.parametrize("mpi", ["mpich"], indirect=True)
def test_mistyped_variable_with_sessions(mpi, case):
    """Said once, also where no rank is rank 0 of a world."""
    result = mpi.run(3, f"mpi_session none {case}", sim=None, env={"XCCL_TIMEOT": "3"}, timeout=60)
    assert result.status == 0, result.out
    assert len(result.lines("XCCL_TIMEOT is not a variable of xccl")) == 1, result.out


def test_settings_of_host_programs(mpi):
    """MPI_Init itself reports a wrong value: a program without devices hears of it too."""
    mpi.run_heard(
        lambda r: "XCCL_TIMEOUT=soon is not allowed" in r.out,
        2,
        "mpi_host",
        sim=None,
        env={"XCCL_TIMEOUT": "soon"},
        timeout=30,
    )


@pytest.mark.parametrize("rank", [0, 2])
def test_settings_that_differ(openmpi, rank):
    """A variable that one rank has by itself is an error of all, and names that rank and both values."""
    own = f'[ "$OMPI_COMM_WORLD_RANK" != {rank} ] || export XCCL_SCRATCH=8; exec "$@"'
    program = openmpi.program("mpi_loop")
    result = openmpi.run_heard(
        lambda r: len(r.lines(r"rank \d: round 0: class \d+: .*XCCL_SCRATCH is")) == 3,
        3,
        ["/bin/sh", "-c", own, "-", program, "cuda", "2", "return"],
        timeout=30,
    )
    # A rank that has waited for a while looks at the others by itself.
    said = f"XCCL_SCRATCH is '8' on rank {rank}(?: of MPI_COMM_WORLD)?, and '256' on most other ranks;"
    assert len(result.lines(rf"rank \d: round 0: .*{said}")) == 3, result.out


@pytest.mark.each_value
@pytest.mark.parametrize(
    ("setting", "memory"),
    [
        ("XCCL_CHECK=1", ""),
        ("XCCL_CHECK=1", "host"),
        ("XCCL_MEMORY=mixed", ""),
        ("XCCL_MEMORY=mixed", "host"),
        ("XCCL_ROUTE=mpi", "counts"),
        ("XCCL_CCL_NATIVE=off", ""),
        ("XCCL_DIRECT_COPIES=16", ""),
    ],
)
def test_settings_of_one_rank(family, setting, memory):
    """A variable that makes one rank ask the others, or take another path, ends in an error too."""
    name, value = setting.split("=", maxsplit=1)
    rank = "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"
    own = f'[ "{rank}" != 1 ] || export {setting}; exec "$@"'
    program = family.program("mpi_loop")
    family.run_heard(
        lambda r: r.lines(rf"error: {name} is '{value}' on rank 1( of MPI_COMM_WORLD)?, and '"),
        3,
        ["/bin/sh", "-c", own, "-", program, "cuda", "3", "fatal", memory],
        timeout=20,
    )


def test_unknown_variables(mpi):
    """A name that nobody knows is a warning of rank 0; what module systems set is not even that."""
    env = {"XCCL_TIMEOU": "5", "XCCL_OF_OUR_CENTRE": "1", "XCCL_HOME": "/opt", "XCCL_LIB": "/opt"}
    result = mpi.run(2, "mpi_host", sim=None, env=env, timeout=30)
    assert result.status == 0, result.out
    (line,) = result.lines("xccl")
    assert line.startswith("xccl[0] warning: ")
    assert (
        "XCCL_TIMEOU is not a variable of xccl and has no effect; did you mean XCCL_TIMEOUT?"
        in line
    )
    assert "XCCL_OF_OUR_CENTRE is not" in line
    assert "XCCL_HOME" not in line and "XCCL_LIB" not in line


@pytest.mark.parametrize(
    ("what", "message"),
    [
        (
            "type",
            "allreduce: the type differs between ranks: signed integers of 4 bytes on rank 1, ",
        ),
        ("operation", "the operation differs between ranks: MPI_MAX on rank 1, MPI_SUM on rank 0"),
        ("root", "bcast: the root differs between ranks: 1 on rank 1, 0 on rank 0"),
        (
            "counts",
            r"allgatherv: the array of receive counts differs .* digest \w+ on rank 1, digest",
        ),
        ("pairs", "alltoallv: rank 1 sends 28 bytes to rank 0, which expects 32"),
        (
            "collective",
            "the collective differs between ranks: bcast on rank 1, allreduce on rank 0",
        ),
    ],
)
def test_unequal_arguments(openmpi, what, message):
    """XCCL_CHECK=1 names what differs in words that tell the two apart."""
    result = openmpi.run(3, f"mpi_unequal cuda {what}", env={"XCCL_CHECK": "1"}, timeout=30)
    result.good()
    assert result.lines(f"error: XCCL_CHECK: .*{message}"), result.out


@pytest.mark.parametrize(
    ("roots", "message"),
    [
        ("1000", "1 on rank 0, 0 on rank 1"),
        ("10002", "1 on rank 0, 0 on rank 1"),
        ("11023", "0 on rank 2, 1 on rank 0"),
    ],
)
def test_rank_of_the_fewer_is_named(openmpi, roots, message):
    """Where most ranks pass one value, it is another rank that differs, be it rank 0."""
    env = {"XCCL_CHECK": "1"}
    result = openmpi.run(len(roots), f"mpi_unequal cuda roots {roots}", env=env, timeout=30)
    result.good()
    assert result.lines(f"error: XCCL_CHECK: bcast: the root differs .*: {message}"), result.out


def test_unequal_memory(openmpi):
    """XCCL_CHECK=1 finds the rank whose buffer is of another kind, instead of a deadlock."""
    result = openmpi.run(2, "mpi_loop cuda 2 return unequal", env={"XCCL_CHECK": "1"}, timeout=30)
    assert not result.timed_out, result.out
    assert len(result.lines(r"rank \d: round 0: class \d+: .*rank 1")) == 2, result.out


def test_unequal_memory_is_named(openmpi):
    """Where the others would wait for ever for a rank that went to MPI, they say so."""
    env = {"XCCL_DIRECT": "on", "XCCL_TUNE": "*:*:*:*:direct"}
    result = openmpi.run(3, "mpi_unequal cuda memory", env=env, timeout=30)
    assert result.status != 0 and not result.timed_out, result.out
    said = "rank 1 passes host memory .or memory that it has freed. to allreduce, and rank [02] device"
    assert result.lines(said), result.out


NAMED = (
    "rank 1( of MPI_COMM_WORLD)? passes host memory .or memory that it has freed. to allreduce, "
    "and rank [02] device memory in the same call"
)


@pytest.mark.parametrize("case", ["first", "later", "met", "test", "all", "none", "return"])
def test_unequal_memory_is_named_without_blocking(family, case):
    """Also in a first call, and if the rank on host memory has no device; on a duplicate, later."""
    ranks = 3 if case in ("first", "met") else 2
    family.run_heard(lambda r: r.lines(NAMED), ranks, f"mpi_mixed cuda {case}", timeout=30)


@pytest.mark.parametrize("case", ["first", "later", "met", "test", "all", "none", "return"])
def test_unequal_memory_is_named_by_single_copies(openmpi, case):
    """Which Open MPI makes before it finds that the data is too long for what the ranks agree by."""
    env = {"OMPI_MCA_btl_vader_single_copy_mechanism": "cma"}
    ranks = 3 if case in ("first", "met") else 2
    result = openmpi.run_heard(
        lambda r: r.lines(NAMED), ranks, f"mpi_mixed cuda {case}", env=env, timeout=30
    )
    assert not result.lines("egmentation|corrupt|invalid old size"), result.out


@pytest.mark.parametrize("path", ["direct", "ccl"])
def test_unequal_memory_is_named_on_each_path(openmpi, path):
    env = {**PATHS[path], "XCCL_LAUNCH": "now"}
    openmpi.run_heard(lambda r: r.lines(NAMED), 2, "mpi_mixed cuda later", env=env, timeout=30)


def test_unequal_memory_is_named_before_others(mpich):
    """In a call on host memory that waits for what the ranks agree on. Open MPI ends it itself."""
    result = mpich.run_heard(
        lambda r: r.lines(f"warning: {NAMED}"), 2, "mpi_mixed cuda barrier", timeout=30
    )
    assert result.lines(f"error: {NAMED}"), result.out


def test_data_of_another_call(mpich):
    """What came in place of an answer of xccl is not taken for one."""
    said = f"{NAMED}|rank [01] of the communicator answers with the data of another call"
    mpich.run_heard(lambda r: r.lines(said), 2, "mpi_mixed cuda blocking", timeout=30)


@pytest.mark.parametrize("case", ["dup", "split", "cart", "nested", "blocked"])
def test_unequal_memory_is_named_on_others(family, case):
    """In the first call of a communicator that was made of MPI_COMM_WORLD, at once or by steps."""
    ranks = 3 if case == "split" else 2
    family.run_heard(lambda r: r.lines(NAMED), ranks, f"mpi_mixed cuda {case}", timeout=30)


def test_equal_memory_on_others(family):
    """Each part of a split has memory of its own kind, and ranks come late to each."""
    family.run(4, "mpi_mixed cuda derived", timeout=60).good()


def test_unequal_memory_at_the_time_out(family):
    """Of a duplicate by MPI_Comm_idup no rank knows from the start which one another one is in."""
    line = "a call on host memory .which needs XCCL_MEMORY=mixed., in another call than allreduce, number 1"
    family.run_heard(
        lambda r: r.lines(line), 2, "mpi_mixed cuda idup", env={"XCCL_TIMEOUT": "1"}, timeout=30
    )


@pytest.mark.parametrize("case", ["apart", "twice", "vector", "late", "meanwhile"])
def test_equal_memory_is_no_fault(family, case):
    """Ranks that come late, or to other communicators first, and what MPI carries anyway."""
    family.run(2, f"mpi_mixed cuda {case}", timeout=60).good()


def test_unequal_collective_is_named(openmpi):
    """So do ranks that wait for one that is in another collective, without XCCL_CHECK."""
    env = {"XCCL_DIRECT": "on", "XCCL_TUNE": "*:*:*:*:direct"}
    result = openmpi.run(3, "mpi_unequal cuda collective", env=env, timeout=30)
    assert result.lines(r"rank 1 calls bcast where rank [02] calls allreduce"), result.out


def test_unequal_length_at_the_time_out(openmpi):
    """No rank is missing, and the error does not say that one may be."""
    env = {"XCCL_DIRECT": "on", "XCCL_TUNE": "*:*:*:*:direct", "XCCL_TIMEOUT": "1"}
    result = openmpi.run(3, "mpi_unequal cuda length", env=env, timeout=30)
    line = (
        r"error: not completed within 1 s \(XCCL_TIMEOUT\): all ranks have come to allreduce, "
        r"number \d+ of its communicator of 3 ranks; they may pass different counts, types or roots: "
        "XCCL_CHECK=1 names the rank"
    )
    assert result.lines(line), result.out


def test_first_collective_is_named(openmpi):
    """Before the ranks see each other's calls they say which one they wait in."""
    line = "another call than allreduce, number 1 of its communicator of 2 ranks"
    openmpi.run_heard(
        lambda r: r.lines(line), 2, "mpi_unequal cuda first", env={"XCCL_TIMEOUT": "1"}, timeout=30
    )


@pytest.mark.release_only
def test_ranks_in_containers_of_their_own(openmpi):
    """As Apptainer starts them where it is not setuid root: no rank reaches another's memory."""
    command = [shutil.which("unshare") or "unshare", "-U", "-r"]
    if subprocess.run([*command, "true"], check=False, capture_output=True).returncode != 0:
        pytest.skip("no user namespaces here")
    program = openmpi.program("mpi_colls")
    env = {"XCCL_LOG": "info"}
    result = openmpi.run(2, [*command, program, "cuda", "dd", "counts"], env=env)
    result.good()
    assert result.lines(
        "no direct path on 2 ranks: .*one user namespace .apptainer exec --sharens"
    )
    assert result.lines("cannot be reached: it is another user's, or in a container")
