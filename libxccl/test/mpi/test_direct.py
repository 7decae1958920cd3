# SPDX-License-Identifier: BSD-3-Clause
"""The path of xccl's own kernels: taken where it should be, right there, and gone without a trace."""

import json
import re
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest
from mpi_harness import DIRECT, PATHS, level
from test_random import go as go_random

# Direct where all of their data together fits a workspace: no rank knows the blocks of all others.
VECTOR = {"alltoallv", "gatherv", "scatterv"}
# Blocks of other ranks may be larger.
SMALL = 64 << 10
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20}
SERVED = {
    *("allreduce", "bcast", "reduce", "reduce_scatter", "reduce_scatter_block"),
    *("allgather", "allgatherv", "alltoall", "gather", "scatter"),
    *VECTOR,
}
LINGER = ["500", "off"]
ONE_QUEUE = {"CUDA_DEVICE_MAX_CONNECTIONS": "1"}


def choices(result):
    """(collective, bytes, path, reason) of every line that says what was chosen."""
    line = r"info: (\w+) of (\d+) (\S+) to [^:]* ranks: (\S+) \((.*)\)"
    found = [
        (coll, int(number) * UNITS[unit], path, reason)
        for coll, number, unit, path, reason in re.findall(line, result.out)
    ]
    assert found, result.out
    return found


def all_direct(result, but=()):
    """Every collective that can be was direct, and others only for the reasons given."""
    seen = choices(result)
    assert {coll for coll, _, path, _ in seen if path == "direct"} == SERVED
    for coll, size, path, reason in seen:
        excused = coll in VECTOR or size >= SMALL or any(word in reason for word in but)
        # In place its blocks of different sizes overlap.
        excused = excused or coll == "reduce_scatter"
        assert path == "direct" or excused, (coll, size, path, reason)


def run(mpi, ranks, command, runtime="cuda", **env):
    """A program, all on the direct path where it can be."""
    words = command.split()
    words.insert(1, runtime)
    env = {**DIRECT, "XCCL_LOG": "info", **level(mpi, command), **env}
    return mpi.run(ranks, " ".join(words), sim=f"{runtime}:4", env=env, timeout=60)


@pytest.mark.release_only
@pytest.mark.parametrize(
    ("ranks", "workspace"),
    [
        (2, 512 << 10),
        pytest.param(3, 256 << 10, marks=pytest.mark.thorough),
        pytest.param(4, 256 << 10, marks=pytest.mark.thorough),
    ],
)
def test_borders(openmpi, ranks, workspace):
    """Sizes around every border, at every alignment, in place and not, roots that are not 0."""
    result = openmpi.run(
        ranks,
        "mpi_colls cuda dd borders",
        sim="cuda:6",
        env={**DIRECT, "XCCL_LOG": "info"},
        timeout=150,
    )
    result.good()
    seen = choices(result)
    # In place its blocks of different sizes overlap.
    all_but = [choice for choice in seen if choice[0] != "reduce_scatter"]
    small = {coll for coll, size, path, _ in all_but if size < SMALL and path != "direct"}
    assert small <= VECTOR
    large = {coll for coll, size, path, _ in seen if size >= workspace and path == "direct"}
    assert large >= SERVED - VECTOR - {"reduce_scatter", "allgatherv"}


@pytest.mark.release_only
@pytest.mark.thorough
def test_borders_lingering(openmpi):
    """The same by kernels that stay, with few blocks and with many."""
    env = {**DIRECT, "XCCL_DIRECT_LINGER": "1000"}
    openmpi.run(2, "mpi_colls cuda dd borders", sim="cuda:6", env=env, timeout=150).good()


@pytest.mark.parametrize(
    ("ranks", "sections"),
    [(2, "types large_types"), pytest.param(6, "types", marks=pytest.mark.release_only)],
)
def test_types(openmpi, ranks, sections):
    """Every type and operation that MPI defines."""
    env = {**DIRECT, "XCCL_LOG": "info"}
    result = openmpi.run(ranks, f"mpi_colls cuda dd {sections}", sim="cuda:6", env=env)
    result.good()
    all_direct(result, ["MPI does not define", "this MPI carries out", "lack", "without a kernel"])


@pytest.mark.each_value
@pytest.mark.parametrize("linger", LINGER)
@pytest.mark.parametrize("section", ["repeat", "comms"])
def test_lingering(family, section, linger):
    """With a kernel that stays for the next call, and without."""
    env = {**DIRECT, "XCCL_DIRECT_LINGER": linger}
    family.run(
        3 if family.family == "openmpi" else 2, f"mpi_colls cuda dd {section}", env=env
    ).good()


@pytest.mark.parametrize("linger", LINGER)
def test_random(openmpi, linger):
    go_random(openmpi, 3, env={**DIRECT, "XCCL_DIRECT_LINGER": linger})


@pytest.mark.each_value
@pytest.mark.parametrize("linger", LINGER)
def test_bits(family, linger):
    """The same bits on all ranks and in every run, whoever comes first."""
    result = run(family, 3, "mpi_direct bits", XCCL_DIRECT_LINGER=linger)
    result.good()
    assert not result.lines(".*kernels are launched one by one.*"), result.out


@pytest.mark.parametrize("linger", LINGER)
def test_graph_fails(openmpi, linger):
    """A kernel whose graph cannot be launched is launched by itself."""
    env = {"XCCL_SIM_FAIL": "graph", "XCCL_SIM_LOG": "info", "XCCL_DIRECT_LINGER": linger}
    result = run(openmpi, 2, "mpi_direct bits", **env)
    result.good()
    assert result.lines("XCCL_SIM_FAIL strikes"), result.out


def some(cases, often):
    """All of them, those often run and those that only `ci/test thorough` runs."""
    return [c if c in often else pytest.param(*c, marks=pytest.mark.thorough) for c in cases]


@pytest.mark.release_only
@pytest.mark.parametrize(
    ("ranks", "linger"),
    some(
        [(ranks, linger) for ranks in range(1, 7) for linger in LINGER],
        [(2, "500"), (3, "off")],
    ),
)
def test_checked_sums(openmpi, ranks, linger):
    """Sums that leave a small integer's range are MPI's to the last bit, and others direct."""
    env = {**DIRECT, "XCCL_DIRECT_LINGER": linger}
    openmpi.run(ranks, "mpi_checked cuda forms", sim="cuda:6", env=env, timeout=120).good()


@pytest.mark.release_only
@pytest.mark.each_value
@pytest.mark.parametrize("case", ["forms", "large", "repeated", "burst", "waiting"])
def test_small_integers(family, case):
    """Also where MPI's sums wrap around, and nothing has to be checked."""
    family.run(2, f"mpi_checked cuda {case}", env=DIRECT, timeout=120).good()


@pytest.mark.release_only
@pytest.mark.parametrize(
    ("case", "ranks", "linger"),
    some(
        [
            (case, ranks, linger)
            for case in ("large", "repeated", "burst")
            for ranks in (3, 4, 6)
            for linger in LINGER
        ],
        [("repeated", 3, "off")],
    ),
)
def test_checked_mapped(openmpi, case, ranks, linger):
    """On the ranks' own buffers, mixed with others, and by a kernel that lingers."""
    env = {**DIRECT, "XCCL_DIRECT_LINGER": linger}
    openmpi.run(ranks, f"mpi_checked cuda {case}", sim="cuda:6", env=env, timeout=200).good()


@pytest.mark.each_value
@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("scratch", ["1", "256"])
@pytest.mark.parametrize(
    "case", [pytest.param("started", marks=pytest.mark.release_only), "restarted"]
)
def test_checked_persistent(family, case, ranks, scratch):
    """By MPI where it may have to do them over, which it can only while the program is in MPI_Wait."""
    env = {**DIRECT, "XCCL_COMM_CREATE": "first", "XCCL_SCRATCH": scratch}
    family.run(ranks, f"mpi_checked cuda {case}", env=env, sim="cuda:4", timeout=120).good()


@pytest.mark.each_value
@pytest.mark.parametrize("ranks", [2, 3])
def test_checked_persistent_early(family, ranks):
    """A start ends on one rank although another is in a call of MPI's that waits for the first."""
    env = {**DIRECT, "XCCL_COMM_CREATE": "first"}
    family.run(ranks, "mpi_checked cuda early", env=env, sim="cuda:4", timeout=60).good()


def test_checked_by_mpi(openmpi):
    """In place a copy is needed, and where there is no room for it MPI has the call."""
    env = {**DIRECT, "XCCL_SCRATCH": "1"}
    openmpi.run(2, "mpi_checked cuda long", env=env).good()


def test_devices_unseen(family):
    """Each rank sees its own device alone: memory of the other's is mapped all the same."""
    own = "export CUDA_VISIBLE_DEVICES=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"
    command = ["/bin/sh", "-c", f'{own}; exec "$@"', "-", family.program("mpi_colls")]
    env = {**DIRECT, "XCCL_LOG": "info"}
    result = family.run(2, [*command, "cuda", "dd", "counts"], sim="cuda:2", env=env)
    result.good()
    all_direct(result)


@pytest.mark.parametrize("given", ["1", "0", "2", None])
def test_devices_shared_by_mistake(openmpi, tmp_path, given):
    """Ranks 0 and 2 work on device 0. That is said if one of both was given another that is there."""
    env = {**DIRECT, "XCCL_SIM_MPS": str(tmp_path)}
    if given is not None:
        env["XCCL_LOCAL_DEVICE"] = given
    result = openmpi.run(3, "mpi_loop cuda 20", sim="cuda:2", env=env)
    assert len(result.lines("all rounds good")) == 3, result.out
    told = result.lines(
        "ranks 0 and 2 share device 0, but XCCL_LOCAL_DEVICE gives rank 0 device 1"
    )
    assert len(told) == (given == "1"), result.out
    assert len(result.lines("XCCL_LOCAL_DEVICE gives rank")) == len(told), result.out


@pytest.mark.parametrize(("sim", "told"), [("cuda:2", 0), ("cuda:4", 1)])
@pytest.mark.parametrize("mps", [True, False])
def test_devices_left_over(openmpi, tmp_path, sim, told, mps):
    """Three ranks work on devices 0 and 1. That is said if there are more."""
    env = {**DIRECT, "MT_DEVICES": "2", **({"XCCL_SIM_MPS": str(tmp_path)} if mps else {})}
    result = openmpi.run(3, "mpi_loop cuda 20", sim=sim, env=env)
    assert len(result.lines("all rounds good")) == 3, result.out
    assert len(result.lines("3 ranks share 2 of the 4 devices that rank 0 sees")) == told, (
        result.out
    )
    assert len(result.lines("ranks share")) == told, result.out


@pytest.mark.release_only
@pytest.mark.parametrize("vendor", ["auto", "none"])
@pytest.mark.parametrize("coll", ["alltoallv", "allgather"])
def test_first_long_call(family, coll, vendor):
    """Ranks wait for the path where staging takes longer, also if counts are not the same on all."""
    sizes = "--min 16m --max 16m --iters 1 --warmup 0 --check no"
    env = {"XCCL_COMM_CREATE": "auto", "XCCL_LOG": "info", "XCCL_CCL": vendor}
    command = f"{family.build.stage}/bin/xccl-perf --coll {coll} {sizes}"
    result = family.run(2, command, sim="cuda:2", env=env)
    assert {choice[:3] for choice in choices(result)} == {(coll, 16 << 20, "direct")}, result.out


@pytest.mark.parametrize("linger", LINGER)
def test_churn(openmpi, linger):
    """Communicators come and go: direct from the first call on, and nothing is left of them."""
    lives = 600 if openmpi.build.sanitized else 1500
    run(openmpi, 2, f"mpi_direct churn {lives}", XCCL_DIRECT_LINGER=linger, XCCL_LOG="warn").good()


@pytest.mark.parametrize("ccl", ["auto", "none"])
def test_churn_shared(openmpi, tmp_path, ccl):
    """The vendor's library is asked each time, and has a device for one rank alone."""
    env = {**DIRECT, "XCCL_SIM_MPS": str(tmp_path), "XCCL_CCL": ccl}
    openmpi.run(2, "mpi_direct cuda churn 600", sim="cuda:1", env=env, timeout=120).good()


@pytest.mark.parametrize("ranks", [2, 3])
def test_crowd(openmpi, ranks):
    """No room for all of them: some take another path, and room that was freed is used again."""
    run(openmpi, ranks, "mpi_direct crowd", XCCL_DIRECT_MEMORY="8").good()


# The number of the operation that the value of the program's data stands for, and one beside it.
@pytest.mark.parametrize("case", ["trouble 30", "meeting 10", "meeting 11"])
def test_stale(family, case):
    """Data of an earlier communicator lies where another one's words are; 11 and 30 are its numbers."""
    run(family, 3, f"mpi_stale {case}").good()


def test_mapped_before(openmpi):
    """What lay in the place of the path's memory is still mapped by the other rank, which ends that."""
    run(openmpi, 2, "mpi_stale arena", XCCL_DIRECT_MEMORY="32").good()


@pytest.mark.parametrize("vendor", [{}, {"XCCL_CCL": "none"}], ids=["vendor", "alone"])
@pytest.mark.parametrize("case", ["fresh", "freed", "foreign"])
def test_not_mapped_soon(openmpi, case, vendor):
    """A rank that cannot map another's buffer, or not before the call, says so: all do otherwise."""
    run(openmpi, 2, f"mpi_stale {case}", **vendor).good()


def test_mapped_once(openmpi):
    """The ranks ask each other whether all of it is mapped at the first call on it, not at others."""
    result = run(openmpi, 3, "mpi_direct parts", XCCL_LOG="trace")
    result.good()
    assert len(result.lines("mapped for the first time")) == 3, result.out


def test_soon(family):
    """Without a blocking collective, too."""
    run(family, 2, "mpi_requests soon").good()


def test_counted(openmpi):
    run(openmpi, 3, "mpi_direct counted").good()


@pytest.mark.each_value
@pytest.mark.parametrize("linger", LINGER)
def test_renewal(family, linger):
    """Operations' numbers come to their end: the ranks join anew, and the path goes on."""
    # Little memory: what was joined before must have been left.
    env = {"XCCL_SIM_NUMBERS": "40", "XCCL_DIRECT_LINGER": linger, "XCCL_DIRECT_MEMORY": "16"}
    run(family, 2, "mpi_direct renew", **env).good()


def test_renewal_of_many(openmpi):
    env = {**DIRECT, "XCCL_SIM_NUMBERS": "12", "XCCL_DIRECT_MEMORY": "8"}
    openmpi.run(3, "mpi_colls cuda dd comms counts", env=env).good()


@pytest.mark.each_value
@pytest.mark.parametrize("runtime", ["cuda", "rocm"])
@pytest.mark.parametrize("case", ["parts", "reused", "managed", "pools", "pending"])
def test_mapped(openmpi, case, runtime):
    """Large vectors on the program's own memory: any part of it, freed and allocated again."""
    run(openmpi, 3, f"mpi_direct {case}", runtime).good()


@pytest.mark.parametrize("least", ["16", "1048576"])
def test_moved(openmpi, least):
    """Between two ranks by copy engines, from so many bytes on."""
    env = {"XCCL_DIRECT_COPIES": least, "XCCL_LOG": "trace"}
    result = run(openmpi, 2, "mpi_direct moved", **env)
    result.good()
    assert bool(result.lines("[0-9]+ bytes by a copy engine")) == (least == "16"), result.out


@pytest.mark.parametrize(("least", "pieces"), [("16", 2048), ("1024", 131072), ("16384", None)])
def test_summed(openmpi, least, pieces):
    """Between two ranks an allreduce by copy engines, with kernels that add, in pieces."""
    env = {"XCCL_DIRECT_COPIES": least, "XCCL_LOG": "trace"}
    result = run(openmpi, 2, "mpi_direct summed", **env)
    result.good()
    found = {int(n) for n in re.findall(r"added in pieces of (\d+)", result.out)}
    assert bool(found) == (pieces is not None), result.out
    assert all(0 < n <= pieces + 16 for n in found), found


@pytest.mark.each_value
@pytest.mark.parametrize(
    ("ranks", "least"),
    [
        (3, "16"),
        (3, "16777216"),
        pytest.param(4, "16", marks=pytest.mark.release_only),
        pytest.param(8, "16", marks=pytest.mark.release_only),
        pytest.param(4, "16777216", marks=pytest.mark.release_only),
    ],
)
@pytest.mark.parametrize("case", ["moved", "summed", "reduced", "ordered"])
def test_among_more(openmpi, case, ranks, least):
    """Long ones of more than two ranks by copy engines, where that is faster."""
    env = {**DIRECT, "XCCL_DIRECT_COPIES": least, "XCCL_LOG": "trace"}
    result = openmpi.run(ranks, f"mpi_direct cuda {case}", sim=f"cuda:{ranks}", env=env)
    result.good()
    said = "[0-9]+ bytes by " + ("a copy engine" if case == "moved" else "copy engines, added")
    assert bool(result.lines(said)) == (least == "16"), result.out


VECTORS = {"XCCL_COMM_CREATE": "first", "XCCL_LOG": "trace"}


@pytest.mark.each_value
@pytest.mark.parametrize("ranks", [2, 3, pytest.param(4, marks=pytest.mark.release_only)])
@pytest.mark.parametrize("linger", LINGER)
@pytest.mark.parametrize("case", ["drawn", "long"])
def test_vectors(family, case, ranks, linger):
    """Blocks of any length at any place, short ones told to the kernel that lingers."""
    env = {**VECTORS, "XCCL_DIRECT_LINGER": linger}
    run(family, ranks, f"mpi_vectors {case} direct", **env).good()


@pytest.mark.each_value
@pytest.mark.parametrize("ranks", [2, 3, pytest.param(4, marks=pytest.mark.release_only)])
@pytest.mark.parametrize("case", ["drawn", "long"])
@pytest.mark.parametrize(
    ("form", "path"),
    [(form, path) for form in ["persistent", "nonblocking"] for path in ["direct", "ccl"]],
)
def test_vectors_of_requests(family, case, ranks, form, path):
    """The same in forms that may not wait for the other ranks, which have the counts."""
    env = {**PATHS[path], **VECTORS}
    command = f"mpi_vectors cuda {case} {path} {form}"
    family.run(ranks, command, sim="cuda:4", env=env, timeout=60).good()


@pytest.mark.release_only
@pytest.mark.parametrize("launch", ["now", "met"])
def test_vectors_at_once(openmpi, launch):
    """Enqueued in the call, they cannot wait for others' counts."""
    env = {**VECTORS, "XCCL_LAUNCH": launch}
    result = run(openmpi, 2, "mpi_vectors drawn any nonblocking", **env)
    result.good()
    shown = result.lines("the ranks show their counts when all have come")
    assert bool(shown) == (launch == "met"), result.out


@pytest.mark.each_value
@pytest.mark.parametrize("ranks", [2, 3, pytest.param(4, marks=pytest.mark.release_only)])
@pytest.mark.parametrize("case", ["orders", "changes", "unlike", "managed", "freed"])
def test_counts_shown(family, case, ranks):
    """Ranks show each other the counts of calls that do not wait, once all have come."""
    run(family, ranks, f"mpi_counted {case}", XCCL_COMM_CREATE="first").good()


@pytest.mark.each_value
@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("case", ["orders", "changes", "unlike", "managed", "freed"])
def test_counts_unasked(family, case, ranks):
    """The vendor's library carries an alltoallv by what each rank knows, MPI the others."""
    env = {**PATHS["ccl"], "XCCL_COMM_CREATE": "first"}
    family.run(ranks, f"mpi_counted cuda {case} any", sim="cuda:4", env=env, timeout=60).good()


def test_counts_shown_anew(family):
    """Such a call has several numbers, which come to their end: the ranks join anew, in no call."""
    env = {"XCCL_SIM_NUMBERS": "60", "XCCL_COMM_CREATE": "first"}
    run(family, 2, "mpi_counted unlike", **env).good()


@pytest.mark.parametrize("least", ["16", pytest.param("16777216", marks=pytest.mark.thorough)])
def test_vectors_moved(openmpi, least):
    """Between two ranks by copy engines, from so many bytes on."""
    env = {**VECTORS, "XCCL_DIRECT_COPIES": least}
    result = run(openmpi, 2, "mpi_vectors long direct", **env)
    result.good()
    assert bool(result.lines("[0-9]+ bytes by a copy engine")) == (least == "16"), result.out


def test_vectors_mismatch(family):
    """Counts that do not fit together are named, on the rank that would write, or fetch, too much."""
    result = run(family, 2, "mpi_vectors mismatch", **VECTORS)
    result.good()
    said = r"rank 0 sends 2097152 bytes to rank 1, which has counts for 2097136"
    assert re.search(said, result.out), result.out
    result = run(family, 3, "mpi_vectors fetched", **VECTORS)
    result.good()
    said = r"rank 0 sends 2097152 bytes to rank 2, which has counts for 2097136"
    assert re.search(said, result.out), result.out


@pytest.mark.parametrize("case", ["parts", "reused"])
def test_mapped_mixed(openmpi, case):
    run(openmpi, 2, f"mpi_direct {case}", XCCL_MEMORY="mixed").good()


@pytest.mark.release_only
@pytest.mark.parametrize(
    ("memory", "sections"),
    [
        ("hd", "counts"),
        ("mm", "counts"),
        *(
            pytest.param(m, "counts large", marks=pytest.mark.thorough)
            for m in ("hd", "dh", "md", "mm")
        ),
    ],
)
def test_memory(openmpi, memory, sections):
    """Host and managed memory on some sides, in calls short and long."""
    env = {**DIRECT, "XCCL_MEMORY": "mixed"}
    openmpi.run(2, f"mpi_colls cuda {memory} {sections}", env=env).good()


@pytest.mark.each_value
@pytest.mark.parametrize("env", [{}, ONE_QUEUE], ids=["queues", "one_queue"])
@pytest.mark.parametrize(
    "command",
    [
        "mpi_direct threads",
        "mpi_requests orders",
        "mpi_requests comms",
        "mpi_requests threads",
    ],
)
def test_orders(openmpi, command, env):
    """Communicators used in different orders, by threads and by non-blocking calls."""
    run(openmpi, 2, command, **env, XCCL_LOG="warn").good()


@pytest.mark.release_only
@pytest.mark.parametrize(
    ("large", "linger"),
    some(
        [(large, linger) for large in (0, 1, 2) for linger in LINGER],
        [(0, "500"), (2, "off")],
    ),
)
def test_absent(openmpi, large, linger):
    """A rank never comes: the others get an error that names it, and their devices go on."""
    env = {"XCCL_TIMEOUT": "1", "XCCL_DIRECT_LINGER": linger}
    if large == 2:
        env["XCCL_CCL"] = "none"  # which would carry it
    run(openmpi, 3, f"mpi_direct absent {large}", **env).good()


@pytest.mark.release_only
def test_absent_told_by_another(openmpi):
    """Who hears of it from a rank that has given up is told for whom that one waited."""
    run(openmpi, 3, "mpi_direct absent 0 500", XCCL_TIMEOUT="1").good()


def never_joined(result, ranks, reason, path="ccl"):
    """Right results by another path, and the reason is given once."""
    assert not result.timed_out and result.status == 0, result.out
    assert len(result.lines("all rounds good")) == ranks, result.out
    assert {choice[2] for choice in choices(result)} == {path}, result.out
    lines = result.lines("no direct path on")
    assert len(lines) == (1 if reason else 0), result.out
    assert not reason or re.search(reason, lines[0]), lines[0]


def loop(mpi, ranks, **options):
    options["env"] = {"XCCL_LOG": "info", **options.get("env", {})}
    return mpi.run(ranks, "mpi_loop cuda 5", timeout=60, **options)


def test_off(family):
    never_joined(loop(family, 2, env={"XCCL_DIRECT": "off"}), 2, None)


@pytest.mark.parametrize(
    ("runtime", "env", "reason"),
    [("rocm", {}, "nobody has tried it on ROCm"), ("cuda", {"NCCL_P2P_DISABLE": "1"}, "NCCL_P2P")],
)
def test_only_on_request(openmpi, runtime, env, reason):
    """Where it may not work it has to be asked for."""
    for asked in (False, True):
        settings = {"XCCL_LOG": "info", **env, **({"XCCL_DIRECT": "on"} if asked else {})}
        result = openmpi.run(2, f"mpi_loop {runtime} 5", sim=f"{runtime}:4", env=settings)
        if asked:
            assert {choice[2] for choice in choices(result)} == {"direct"}, result.out
        else:
            never_joined(result, 2, rf"rank 0: {reason}")


def test_switched_off_in_a_file(openmpi, tmp_path):
    conf = tmp_path / "own.conf"
    conf.write_text("NCCL_P2P_DISABLE=1\n")
    settings = {"XCCL_LOG": "info", "NCCL_CONF_FILE": str(conf)}
    result = openmpi.run(2, "mpi_loop cuda 5", sim="cuda:4", env=settings)
    never_joined(result, 2, "rank 0: NCCL_P2P")


# Ranks that take turns on a device, for want of MPS.
TURNS = {"XCCL_TUNE": DIRECT["XCCL_TUNE"], "XCCL_LOG": "info"}


@pytest.mark.release_only
def test_turns(openmpi):
    """Short calls would wait for each other's turns; long ones go between the buffers."""
    result = openmpi.run(3, "mpi_colls cuda dd large", sim="cuda:2", env=TURNS)
    result.good()
    seen = choices(result)
    assert {path for _, _, path, _ in seen} == {"direct", "mpi-staged"}, result.out
    assert all(size >= 1 << 20 for _, size, path, _ in seen if path == "direct"), result.out
    assert result.lines("ranks 0 and 2 use the same device; give each rank"), result.out
    said = result.lines("info: ranks share a device that gives its processes turns")
    assert said and all("xccl[0]" in line for line in said), result.out


@pytest.mark.release_only
@pytest.mark.parametrize("least", [1 << 20, 1 << 21])
def test_turns_from(openmpi, build, least):
    """XCCL_DIRECT_TURNS says which calls are long; 1 MiB by default."""
    words = "--coll allreduce --min 256k --max 4m --factor 2 --iters 3"
    command = [build.stage / "bin/xccl-perf", *words.split()]
    env = {**TURNS, **({} if least == 1 << 20 else {"XCCL_DIRECT_TURNS": str(least)})}
    result = openmpi.run(2, command, sim="cuda:1", env=env)
    assert result.status == 0, result.out
    seen = {(size, path) for coll, size, path, _ in choices(result) if coll == "allreduce"}
    sizes = [1 << power for power in range(18, 23)]
    assert seen == {(size, "direct" if size >= least else "mpi-staged") for size in sizes}, seen


def test_turns_are_the_reason(openmpi, tmp_path):
    """Not a vendor communicator, which such ranks never get; the first calls have a row of their own."""
    file = tmp_path / "profile.json"
    env = {"XCCL_LOG": "info", "XCCL_PROFILE": str(file), "XCCL_COMM_CREATE": "auto"}
    result = openmpi.run(2, "mpi_loop cuda 8 return", sim="cuda:1", env=env)
    assert result.status == 0, result.out
    first, later = (
        "a first call, before the direct path is ready",
        "ranks share a device, MPS does not run, and the call is a short or a non-blocking one",
    )
    reasons = [reason for coll, _, _, reason in choices(result) if coll == "allreduce"]
    assert reasons == [first, later], result.out
    rows = json.loads(file.read_text())["rows"]
    calls = {
        row["reason"]: row["calls"]
        for row in rows
        if row["call"] == "MPI_Allreduce" and row["memory"] == "cuda"
    }
    assert set(calls) == {first, later}
    assert calls[later] > calls[first]
    (row,) = (row for row in rows if row["reason"] == later and row["memory"] == "cuda")
    assert (row["otherwise"], row["otherwise_possible"]) == ("ccl", None)


def test_library_that_is_to_come_is_the_reason(openmpi):
    """Not the row of the direct path, which nobody asked for: XCCL_TUNE seemed to have no effect."""
    env = {"XCCL_TUNE": "allreduce:*:*:*:ccl", "XCCL_LOG": "info", "XCCL_COMM_CREATE": "auto"}
    result = openmpi.run(2, "mpi_loop cuda 8 return", sim="cuda:2", env=env)
    assert result.status == 0, result.out
    reasons = {reason for coll, _, path, reason in choices(result) if path == "direct"}
    assert reasons == {"a vendor communicator has not paid for itself yet"}, result.out


@pytest.mark.each_value
@pytest.mark.parametrize(
    "command",
    [
        *("mpi_direct cuda parts", "mpi_direct cuda reused", "mpi_direct cuda pending"),
        "mpi_colls cuda dd counts",
        pytest.param("mpi_vectors cuda long direct", marks=pytest.mark.release_only),
    ],
)
def test_in_turns(openmpi, command):
    """Of any length that is mapped at all, and where some rank's memory cannot be."""
    env = {**TURNS, "XCCL_DIRECT_TURNS": "1", "XCCL_COMM_CREATE": "first"}
    openmpi.run(3, command, sim="cuda:1", env=env).good()


def test_turns_random(openmpi):
    go_random(openmpi, 3, devices=1, env={**TURNS, "XCCL_DIRECT_TURNS": "1"})


def shared(mpi, ranks, command, folder, **env):
    """Ranks on one device whose kernels run at the same time, as far as there is room for them."""
    words = command.split()
    words.insert(1, "cuda")
    env = {**DIRECT, "XCCL_SIM_MPS": str(folder), "XCCL_LOG": "info", **env}
    return mpi.run(ranks, " ".join(words), sim="cuda:1", env=env, timeout=100)


def test_no_vendor_library(openmpi):
    """On one node it is not needed: said once, and not that collectives go to MPI."""
    env = {"XCCL_CCL_LIBRARY": "/nowhere/libnccl.so.2", "XCCL_LOG": "info"}
    result = openmpi.run(2, "mpi_loop cuda 200", sim="cuda:2", env=env)
    assert len(result.lines("all rounds good")) == 2, result.out
    assert "direct" in {path for _, _, path, _ in choices(result)}, result.out
    (warning,) = result.lines(" warning: ")
    assert "all 2 ranks do without the vendor's library: rank 0: nccl: cannot load" in warning
    assert len(result.lines("info: nccl: cannot load /nowhere/libnccl.so.2")) < 8, result.out


@pytest.mark.parametrize("linger", LINGER)
@pytest.mark.parametrize("sections", ["counts", pytest.param("large", marks=pytest.mark.thorough)])
def test_shared_at_once(family, sections, linger, tmp_path):
    words = f"mpi_colls dd {sections}"
    result = shared(family, 2, words, tmp_path, XCCL_DIRECT_LINGER=linger)
    result.good()
    assert result.lines("up to 2 ranks share a device that has room for 32 blocks"), result.out
    assert {path for _, _, path, _ in choices(result)} >= {"direct"}, result.out
    assert not result.lines("warning: all 2 ranks"), result.out


@pytest.mark.each_value
@pytest.mark.parametrize("linger", LINGER)
@pytest.mark.parametrize("case", ["drawn", pytest.param("long", marks=pytest.mark.release_only)])
def test_shared_vectors(openmpi, case, linger, tmp_path):
    env = {"XCCL_COMM_CREATE": "first", "XCCL_DIRECT_LINGER": linger}
    shared(openmpi, 3, f"mpi_vectors {case} direct", tmp_path, **env).good()


@pytest.mark.release_only
@pytest.mark.each_value
@pytest.mark.parametrize(
    "command",
    ["mpi_direct threads", "mpi_requests orders", "mpi_requests comms", "mpi_hang threads"],
)
def test_shared_orders(family, command, tmp_path):
    """One kernel of each rank at a time: those of all communicators would find no room."""
    shared(family, 2, command, tmp_path, XCCL_LOG="warn").good()


# A launch takes so long that other calls come meanwhile.
SLOW = {"XCCL_SIM_LAUNCH_US": "1000"}


def test_shared_random(openmpi, tmp_path):
    go_random(openmpi, 4, devices=1, env={**DIRECT, **SLOW, "XCCL_SIM_MPS": str(tmp_path)})


@pytest.mark.release_only
def test_one_queue_random(openmpi):
    go_random(openmpi, 4, env={**DIRECT, **SLOW, **ONE_QUEUE})


@pytest.mark.release_only
@pytest.mark.parametrize("devices", [1, 2])
def test_two_jobs(openmpi, build, devices, tmp_path):
    """Kernels that wait for those of their own job find room beside those of another's, which do so as
    well: also where each job has a device for each of its ranks."""
    env = {**DIRECT, "XCCL_SIM_MPS": str(tmp_path), "XCCL_DIRECT_LINGER": "off"}
    words = ["--coll", "allreduce", "--min", "256k", "--max", "256k", "--iters", "400"]

    def job(_):
        command = [str(build.stage / "bin/xccl-perf"), *words, "--max-time", "0"]
        return openmpi.run(2, command, sim=f"cuda:{devices}", env=env, timeout=40)

    with ThreadPoolExecutor(2) as pool:
        for result in pool.map(job, range(2)):
            assert result.status == 0, result.out
            assert result.lines(r" 262144 +65536 direct .* ok$"), result.out


def test_shared_on_request(openmpi):
    """Slow where a device gives processes turns, and right."""
    result = loop(openmpi, 2, sim="cuda:1", env={**DIRECT, "XCCL_DIRECT": "on"})
    assert {choice[2] for choice in choices(result)} == {"direct"}, result.out


def test_shared_long_reduce(openmpi, tmp_path):
    """A row for the vendor's library, which refuses such ranks, is left out."""
    env = {"XCCL_TUNE": "reduce:*:*:*:ccl#*:*:*:*:direct", "XCCL_LOG": "info"}
    env["XCCL_SIM_MPS"] = str(tmp_path)
    result = openmpi.run(2, "mpi_colls cuda dd counts", sim="cuda:1", env=env, timeout=60)
    result.good()
    assert "ccl" not in {path for _, _, path, _ in choices(result)}, result.out
    assert "direct" in {path for coll, _, path, _ in choices(result) if coll == "reduce"}


def test_shared_streams(openmpi, tmp_path):
    """Kernels in the program's own streams may not wait for others there."""
    shared(openmpi, 2, "mpi_streams collectives", tmp_path).good()


@pytest.mark.parametrize("fault", ["ipc", "ipc@1"])
def test_out_of_reach(openmpi, fault):
    """A device that cannot map the memory of another."""
    result = loop(openmpi, 2, env={"XCCL_SIM_FAIL": fault})
    never_joined(result, 2, r"rank [01]: the device cannot reach")


def test_out_of_reach_once(openmpi):
    """What could not be mapped for one communicator is tried again for a later one."""
    env = {"XCCL_SIM_FAIL": "ipc@1=1", "XCCL_LOG": "info"}
    result = openmpi.run(2, "mpi_direct cuda crowd", sim="cuda:2", env=env, timeout=60)
    assert len(result.lines("no direct path on 2 ranks: rank 1: the device cannot reach")) == 1
    assert "direct" in {path for _, _, path, _ in choices(result)}, result.out


def test_no_plugin(openmpi, tmp_path):
    folder = tmp_path / "sim"
    shutil.copytree(openmpi.build.stage / "lib/xccl/sim", folder, symlinks=True)
    (folder / "cuda/libxccl-direct-cuda.so").unlink()
    result = loop(openmpi, 2, env={"LD_LIBRARY_PATH": str(folder / "cuda")})
    # A real one may lie beside the library: the simulation cannot load it.
    assert len(result.lines("copies by the runtime alone: .+")) == 2, result.out
    never_joined(result, 2, "rank [01]: there are no kernels")


@pytest.mark.release_only
def test_two_nodes(openmpi):
    """On pretend nodes the devices of other nodes are out of reach, though the host's memory is not."""
    result = loop(openmpi, 4, env={"XCCL_SIM_NODES": "2"})
    never_joined(result, 4, "the device cannot reach")
