# SPDX-License-Identifier: BSD-3-Clause
"""Messages that stay in device memory until their receivers fetch them."""

import pytest
from mpi_harness import PATHS, pick

CASES = [
    "barrier",
    "crossing",
    "probes",
    "matched",
    "late",
    "reuse",
    "elements",
    "behind",
    "persistent",
    "started",
    "many",
    "short",
    "truncated",
]
# Those whose sends are all fetched, and say so.
SEEN = {"barrier", "late", "persistent", "reuse", "started"}
TIMEOUT = 40
UNABLE = 77  # of mpi_intercomm; what it printed may be lost in its abort
MOST_TRIES = 5  # a sender that the machine does not run at the right time is not waited for


def go(mpi, case, expected="fetched", runtime="cuda", env=None):
    path = expected if case in SEEN else ""
    result = mpi.run(
        2, f"mpi_rendezvous {runtime} {case} {path}", sim=f"{runtime}:2", timeout=TIMEOUT, env=env
    )
    result.good()
    return result


@pytest.mark.each_value
@pytest.mark.parametrize("case", CASES)
def test_rendezvous(mpi, case):
    go(mpi, case)


@pytest.mark.parametrize("case", ["barrier", "probes", "late"])
def test_rocm(openmpi, case):
    go(openmpi, case, runtime="rocm")


@pytest.mark.each_value
@pytest.mark.parametrize("case", ["crossing", "probes", "reuse", "sizes"])
def test_by_a_kernel_that_stays(mpi, case):
    go(mpi, case, env={"XCCL_DIRECT_LINGER": "1000"})


@pytest.mark.release_only
def test_by_several_blocks(mpi):
    """A kernel that stays reads single messages of up to 4 MiB by several blocks."""
    env = {"XCCL_DIRECT_LINGER": "1000", "XCCL_LOG": "trace"}
    result = mpi.run(2, "mpi_single cuda middle", sim="cuda:2", timeout=TIMEOUT, env=env)
    result.good()
    assert result.lines("read by a kernel that was there"), result.out


@pytest.mark.parametrize("sim", ["cuda:2", "cuda:1"])
def test_short_to_host(mpi, sim):
    """A kernel that stays brings them to host memory, from another device as well."""
    env = {"XCCL_DIRECT_LINGER": "1000", "XCCL_LOG": "trace"}
    result = mpi.run(2, "mpi_single cuda to-host", sim=sim, timeout=TIMEOUT, env=env)
    result.good()
    assert result.lines("read to host memory by a kernel that was there"), result.out


@pytest.mark.parametrize("p2p", ["auto", "staged"])
def test_irregular_again_and_again(family, p2p):
    """A kernel packs and unpacks such a type in all starts: else each run is a copy of its own."""
    env = {"XCCL_P2P": p2p, "XCCL_SIM_FAIL": "copy=1200"}  # the 1200th; 100 starts of 40 runs
    family.run(2, "mpi_single cuda irregular", sim="cuda:2", timeout=TIMEOUT, env=env).good()


def test_sent_first(mpi):
    """MPI takes a few bytes at once, and so a send of so few ends before its receiver comes."""
    env = {"XCCL_RENDEZVOUS": "240", "XCCL_LOG": "trace"}
    result = mpi.run(2, "mpi_single cuda unready", sim="cuda:2", timeout=TIMEOUT, env=env)
    result.good()
    assert result.lines("is left to its receiver"), result.out


@pytest.mark.tsan
@pytest.mark.parametrize(
    "case",
    [
        "short",
        "passed-over",
        "short-passed-over",
        "mixed",
        "awaited",
        "otherwise",
        "nobody",
        "too-long",
        "in-turn",
    ],
)
def test_short(mpi, case):
    """Short messages are offered to who has looked for them in all receives that may be pending."""
    ranks = 3 if case == "awaited" else 2
    mpi.run(ranks, f"mpi_single cuda {case}", sim="cuda:3", timeout=TIMEOUT).good()


def test_cancel(mpi):
    """A cancelled send is over without its receiver, which gets the message all the same."""
    mpi.run(2, "mpi_cancel cuda", sim="cuda:2", timeout=TIMEOUT).good()


PIECES = {"XCCL_THREADS": "multiple", "XCCL_PIPELINE": "4096", "XCCL_SIM_NODES": "2"}


@pytest.mark.parametrize(
    ("path", "env"),
    [("fetched", {}), ("pipelined", PIECES), ("mpi-staged", {"XCCL_P2P": "staged"})],
)
def test_after_the_default_stream(mpi, path, env):
    """What the program gave that stream for the buffer is over before the message comes there."""
    command = f"mpi_after_default cuda {path}"
    mpi.run(2, command, sim="cuda:2", timeout=TIMEOUT, env=env).good()


def test_half_a_descriptor(mpi):
    """A message is not taken before the last byte of its descriptor has come."""
    env = {"XCCL_RENDEZVOUS": "240"}  # its own receives of a descriptor are shorter
    mpi.run(2, "mpi_offers cuda pieces", sim="cuda:2", timeout=TIMEOUT, env=env).good()


def test_like_a_descriptor(family):
    family.run(2, "mpi_offers cuda alike", sim="cuda:2", timeout=TIMEOUT).good()


def test_sends_that_mpi_refuses(family):
    """Their offers are taken back: there are not that many."""
    family.run(2, "mpi_offers cuda refused fetched", sim="cuda:2", timeout=TIMEOUT).good()


def test_calls_that_are_refused(family):
    """Their offers are taken back, too: no host memory is there for what they would receive."""
    family.run(2, "mpi_offers cuda unmade fetched", sim="cuda:2", timeout=TIMEOUT).good()


@pytest.mark.parametrize(
    ("settings", "path"),
    [
        ("CUDA_VISIBLE_DEVICES=0,1", "fetched"),
        ("CUDA_VISIBLE_DEVICES=$rank", "fetched"),
        ("ROCR_VISIBLE_DEVICES=$rank", "mpi-staged"),
        ("few; ulimit -n 64", "fetched"),
        ("XCCL_RENDEZVOUS=$((240 + rank * 1000000))", "mpi-staged"),
    ],
)
def test_receivers_that_cannot_fetch(family, settings, path):
    """To a rank that does not see the device (ROCm), or looks at longer messages only, bytes are sent."""
    runtime = "rocm" if "ROCR" in settings else "cuda"
    own = f"rank=${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}}; export {settings}"
    command = ["/bin/sh", "-c", f'{own}; exec "$@"', "-", family.program("mpi_offers")]
    command += [runtime, "answered", path]
    family.run(2, command, sim=f"{runtime}:2", timeout=TIMEOUT).good()


def test_no_files_left(mpi):
    """A receiver that has opened all files it may have still reaches the sender."""
    mpi.run(2, "mpi_offers cuda files", sim="cuda:2", timeout=TIMEOUT).good()


def test_senders_out_of_reach(openmpi):
    """A descriptor is never taken for the message that it stands for."""
    openmpi.run_heard(
        lambda result: "its shared memory cannot be opened" in result.out,
        2,
        "mpi_offers cuda hidden",
        sim="cuda:2",
        timeout=TIMEOUT,
    )


@pytest.mark.parametrize("case", ["moment", "moment_probed"])
def test_senders_out_of_reach_for_a_moment(family, case):
    """The system's table of files is full when a receiver looks, and is not right after."""
    family.run(2, f"mpi_offers cuda {case}", sim="cuda:2", timeout=TIMEOUT).good()


def test_short_files(family):
    """ulimit -f below what the ranks would share: a signal of the system's would end them."""
    family.run(2, "mpi_offers cuda short_files", sim="cuda:2", timeout=TIMEOUT).good()


def test_messages_out_of_reach(family):
    """The sender of such a message learns that its receiver has none of it."""
    result = family.run(2, "mpi_offers cuda lost", sim="cuda:2", timeout=20)
    result.good()
    assert len(result.lines("rank 1 of MPI_COMM_WORLD cannot fetch a message")) == 2, result.out


def test_messages_out_of_reach_and_freed(mpi):
    """The error handler is told of those whose requests were freed; the next start is as any other."""
    mpi.run(2, "mpi_offers cuda lost_again", sim="cuda:2", timeout=TIMEOUT).good()


def test_late_again(mpi):
    """Each start of a persistent send waits for its receiver as long as the first one did."""
    env = {"XCCL_RENDEZVOUS": "4000"}
    mpi.run(2, "mpi_offers cuda late_again", sim="cuda:2", timeout=TIMEOUT, env=env).good()


@pytest.mark.parametrize("name", ["mpich", "mpich43", "mpiabi", "openmpi5"])
def test_messages_out_of_reach_beside_others(mpis, name):
    """MPI_Isendrecv ends in the error of what it sends, where it receives a message that was probed."""
    mpi = pick(mpis, name)
    mpi.run(2, "mpi_offers cuda lost_beside", sim="cuda:2", timeout=20).good()


@pytest.mark.parametrize("case", ["ahead", "ahead_without_files"])
def test_ahead(mpi, case):
    """Hundreds of short sends end before their receives begin, as MPI's own do."""
    mpi.run(2, f"mpi_offers cuda {case}", sim="cuda:2", timeout=TIMEOUT).good()


def test_many_pending(family):
    """They cost the program little of its core while nothing happens to them."""
    family.run(2, "mpi_offers cuda many", sim="cuda:2", timeout=TIMEOUT).good()


@pytest.mark.tsan
def test_probing_threads(mpi):
    """What a thread takes out of MPI's queue to probe it, another one may be about to receive."""
    mpi.run(2, "mpi_probing cuda", sim="cuda:2", timeout=TIMEOUT).good()


@pytest.mark.parametrize("case", ["probe", "mprobe"])
def test_late_probe(family, case):
    """A thread comes to use a device while another one waits in a probe."""
    family.run(2, f"mpi_late_probe cuda {case}", sim="cuda:2", timeout=TIMEOUT).good()


def test_sent_and_received_after_a_probe(mpich):
    """Whose message MPI_Isendrecv has received, which Open MPI 4.1 lacks."""
    mpich.run(2, "mpi_late_probe cuda isendrecv", sim="cuda:2", timeout=TIMEOUT).good()


@pytest.mark.parametrize("case", ["replace", "left"])
def test_types_that_mpi_unpacks(mpi, case):
    """Nobody takes such a type apart: what comes as a descriptor is found all the same."""
    mpi.run(2, f"mpi_whole_types cuda {case}", sim="cuda:2", timeout=TIMEOUT).good()


@pytest.mark.release_only
def test_parts_of_such_types_in_threads(mpi):
    """Each thread gets what is left of its own message, behind whole elements."""
    mpi.run(2, "mpi_whole_types cuda threads", sim="cuda:2", timeout=TIMEOUT).good()


@pytest.mark.parametrize("name", ["openmpi5", "mpich43"])
def test_isendrecv_of_such_types(mpis, name):
    """MPI_Isendrecv: whose message came; MPICH's status says nothing of it, and not how much."""
    case = "status" if name == "openmpi5" else "behind"
    command = f"mpi_whole_types cuda {case}"
    pick(mpis, name).run(2, command, sim="cuda:2", timeout=TIMEOUT).good()


@pytest.mark.release_only
@pytest.mark.parametrize("case", ["room", "room_for_uneven"])
def test_types_with_much_room(family, case):
    """More than 2 GiB would find room, and a short message comes."""
    family.run(2, f"mpi_whole_types cuda {case}", sim="cuda:2", timeout=TIMEOUT).good()


@pytest.mark.parametrize(
    "case", ["one_too_large", pytest.param("many", marks=pytest.mark.thorough)]
)
def test_replaced_after_a_probe(family, case):
    """More than 2 GiB are sent from a copy; where there is none the message stays."""
    family.run(2, f"mpi_whole_types cuda {case}", sim="cuda:2", timeout=TIMEOUT).good()


@pytest.mark.parametrize("case", ["one", "both", "both_threads"])
def test_received_in_finalize(mpi, case):
    """A delete callback of MPI_COMM_SELF receives what was sent before MPI_Finalize."""
    mpi.run(2, f"mpi_ending cuda {case}", sim="cuda:2", timeout=TIMEOUT).good()


@pytest.mark.parametrize("path", ["direct", "ccl"])
def test_sent_in_finalize(mpi, path):
    """A callback sends what another rank waits for: no communicator of the vendor's delays it."""
    env = {**PATHS[path], "XCCL_COMM_CREATE": "first"}
    mpi.run(2, "mpi_ending cuda late", sim="cuda:2", env=env, timeout=TIMEOUT).good()


@pytest.mark.each_value
@pytest.mark.parametrize("case", ["replace", "answer"])
@pytest.mark.parametrize("mapped", [True, False])
def test_both_ways_at_once(family, case, mapped):
    """A call that sends and receives serves its sender's part while it waits for the other one."""
    env = {} if mapped else {"XCCL_SIM_FAIL": "ipc"}
    family.run(2, f"mpi_exchange cuda {case}", sim="cuda:2", timeout=TIMEOUT, env=env).good()


@pytest.mark.parametrize("devices", [1, 2])
def test_replaced_on_the_device(mpi, devices):
    """MPI_Sendrecv_replace sends from a copy on the device, as MPI_Sendrecv does."""
    words = "mpi_exchange cuda replaced fetched"
    mpi.run(2, words, sim=f"cuda:{devices}", timeout=TIMEOUT).good()


def test_replaced_without_scratch(mpi):
    """What is longer than XCCL_SCRATCH is not copied on the device."""
    words = "mpi_exchange cuda huge mpi-staged"
    mpi.run(2, words, sim="cuda:2", timeout=TIMEOUT, env={"XCCL_SCRATCH": "1"}).good()


def test_first(mpi):
    """Ranks that have met in a barrier, with a device in use, know that they fetch."""
    mpi.run(2, "mpi_exchange cuda first fetched", sim="cuda:2", timeout=TIMEOUT).good()


def test_orders(mpi):
    """Who waits for its own send fetches meanwhile what it was sent."""
    env = {"XCCL_DIRECT_LINGER": "off"}  # a simulated kernel is a thread, too, and naps
    mpi.run(2, "mpi_exchange cuda orders", sim="cuda:2", timeout=TIMEOUT, env=env).good()


@pytest.mark.parametrize("managed", ["concurrent", "exclusive"])
def test_no_kernel_stays(openmpi, managed):
    """Where the program could not touch its managed memory behind a call, a kernel being there."""
    env = {"XCCL_DIRECT_LINGER": "1000", "XCCL_LOG": "trace", "XCCL_SIM_MANAGED": managed}
    words = "mpi_exchange cuda faces"
    result = openmpi.run(2, words, sim="cuda:2", timeout=TIMEOUT, env=env)
    result.good()
    assert bool(result.lines("kernel that was there")) == (managed == "concurrent"), result.out


@pytest.mark.parametrize("devices", [1, 2])
def test_who_copies_one(mpi, devices):
    """A single message is read by a kernel within a device, and by an engine from another one."""
    env = {"XCCL_DIRECT_LINGER": "off", "XCCL_LOG": "trace"}
    words, sim = "mpi_exchange cuda short fetched", f"cuda:{devices}"
    result = mpi.run(2, words, sim=sim, timeout=TIMEOUT, env=env)
    result.good()
    assert bool(result.lines("copies by one kernel: 1")) == (devices == 1), result.out


def test_made_early(mpi):
    """Persistent requests on memory that no message has used yet: each start takes the fast way."""
    env = {"XCCL_DIRECT_LINGER": "off", "XCCL_LOG": "trace"}
    words = "mpi_exchange cuda early fetched"
    result = mpi.run(2, words, sim="cuda:1", timeout=TIMEOUT, env=env)
    result.good()
    assert len(result.lines("copies by one kernel: 1")) >= 30, result.out  # of 2 x 40


def test_sent_beside_one_that_is_too_long(mpich):
    """MPI_Isendrecv, which Open MPI 4.1 lacks."""
    mpich.run(2, "mpi_exchange cuda too-long", sim="cuda:2", timeout=TIMEOUT).good()


@pytest.mark.parametrize("linger", ["off", "1000"])
def test_self(mpi, linger):
    """Messages of a rank to itself stay on the device as well."""
    env = {"XCCL_DIRECT_LINGER": linger}
    mpi.run(1, "mpi_exchange cuda self fetched", sim="cuda:2", timeout=TIMEOUT, env=env).good()


def test_window(mpi):
    """Of messages that have come, several are fetched by one kernel."""
    env = {"XCCL_LOG": "trace", "XCCL_DIRECT_LINGER": "off"}
    result = go(mpi, "window", env=env)
    together = [int(line.split()[-1]) for line in result.lines("copies by one kernel: [0-9]+")]
    assert together and max(together) > 1, together


def test_faces(mpi):
    """Copies that begin together are one command to the kernel that stays."""
    env = {"XCCL_LOG": "trace", "XCCL_DIRECT_LINGER": "1000"}
    result = mpi.run(2, "mpi_exchange cuda faces", sim="cuda:2", timeout=TIMEOUT, env=env)
    result.good()
    lines = result.lines("copies by a kernel that was there: [0-9]+")
    together = [int(line.split()[-1]) for line in lines]
    assert together and max(together) > 1, together


def test_posted(mpi, tmp_path):
    """Long messages begin to move while the program posts others, before it waits."""
    words = f"mpi_exchange cuda posted {tmp_path}/sent"
    mpi.run(2, words, sim="cuda:2", timeout=TIMEOUT).good()


def test_later(mpi):
    """MPI_Irecv leaves a message that is there: the other rank may wait for the program's next call."""
    env = {"XCCL_DIRECT_LINGER": "1000"}
    mpi.run(2, "mpi_exchange cuda later", sim="cuda:2", timeout=TIMEOUT, env=env).good()


def test_written_by_the_sender(mpi):
    result = go(mpi, "sizes", env={"XCCL_P2P_PUSH": "on", "XCCL_LOG": "trace"})
    assert result.lines("[0-9]+ bytes were written by their sender"), result.out


def test_written_while_the_receiver_is_elsewhere(mpi):
    """The thread that asks for it has no device of its own."""
    env = {"XCCL_P2P_PUSH": "on", "XCCL_LOG": "trace"}
    result = mpi.run(2, "mpi_exchange cuda elsewhere", sim="cuda:2", env=env, timeout=TIMEOUT)
    result.good()
    assert result.lines("[0-9]+ bytes were written by their sender"), result.out


def expect_written(mpi, words, *, written, tries=MOST_TRIES):
    """Does a sender write messages of xccl-perf? One that is not run just then does not."""
    command = [str(mpi.build.stage / "bin/xccl-perf"), "--msg", *words]
    wrote = False
    for _ in range(tries if written else 1):
        result = mpi.run(2, command, sim="cuda:2", env={"XCCL_LOG": "trace"}, timeout=TIMEOUT)
        assert result.status == 0, result.out
        wrote = bool(result.lines("[0-9]+ bytes were written by their sender"))
        if wrote:
            break
    assert wrote == written, result.out


@pytest.mark.release_only
@pytest.mark.each_value
@pytest.mark.parametrize(("ways", "written"), [("bibandwidth", True), ("bandwidth", False)])
def test_long_both_ways(mpi, ways, written):
    """Long messages are written by senders that receive such ones, and read from others."""
    words = [ways, "--min", "8m", "--max", "8m", "--window", "8", "--max-time", "0.1"]
    expect_written(mpi, words, written=written)


@pytest.mark.release_only
@pytest.mark.parametrize("size", ["256k", "512k", "2m", "4m"])
def test_written_by_default(family, size):
    """One message at a time is written by a sender that looks at it, from 512 KiB and below 4 MiB."""
    words = ["latency", "--min", size, "--max", size, "--iters", "1000", "--max-time", "0.5"]
    expect_written(family, words, written=size in ("512k", "2m"), tries=4 * MOST_TRIES)


def test_write_refused(openmpi):
    """The sender cannot map the receiver's memory: the receiver fetches, or gets them served."""
    env = {"XCCL_P2P_PUSH": "on", "XCCL_LOG": "trace", "XCCL_SIM_FAIL": "ipc"}
    result = go(openmpi, "sizes", expected="", env=env)
    assert not result.lines("bytes were written by their sender"), result.out


# Not "truncated": with threads, Open MPI 4.1 waits for ever in an MPI_Waitall of a failed request.
@pytest.mark.release_only
@pytest.mark.parametrize("case", [case for case in CASES if case != "truncated"])
def test_staged(openmpi, case):
    """The same messages when their bytes are sent."""
    go(openmpi, case, expected="mpi-staged", env={"XCCL_P2P": "staged"})


@pytest.mark.each_value
@pytest.mark.parametrize("case", ["barrier", "crossing", "probes", "matched"])
def test_refused(mpi, case):
    """The receiver cannot map the sender's memory: it gets the first messages another way."""
    go(mpi, case, expected="", env={"XCCL_SIM_FAIL": "ipc"})


def test_refused_and_truncated(mpich):
    """In one MPI_Waitall a message that was fetched does not fit, and one that MPI has received."""
    go(mpich, "truncated", expected="", env={"XCCL_SIM_FAIL": "ipc"})


@pytest.mark.parametrize(("case", "ranks"), [("alone mpi-staged", 2), ("reordered", 3)])
def test_beside_a_rank_without_xccl(mpi, case, ranks):
    """A process that does not look for descriptors is sent none, whatever its rank."""
    last = str(ranks - 1)
    bare = f'[ "${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}}" != {last} ] || unset LD_PRELOAD; exec "$@"'
    program = mpi.program("mpi_offers")
    command = ["/bin/sh", "-c", bare, "-", program, "cuda", *case.split()]
    mpi.run(ranks, command, sim="cuda:2", timeout=TIMEOUT).good()


@pytest.mark.parametrize(("case", "ranks"), [("halves", 3), ("halves", 4), ("parity", 4)])
def test_between_groups(mpi, case, ranks):
    """On an intercommunicator of one world ranks are those of the other group."""
    mpi.run(ranks, f"mpi_intercomm cuda {case} fetched", sim="cuda:4", timeout=TIMEOUT).good()


@pytest.mark.release_only
def test_between_groups_staged(family):
    env = {"XCCL_P2P": "staged"}
    command = "mpi_intercomm cuda parity mpi-staged"
    family.run(4, command, sim="cuda:4", env=env, timeout=TIMEOUT).good()


@pytest.mark.release_only
@pytest.mark.parametrize(("case", "ranks"), [("accept", 3), ("join", 2)])
@pytest.mark.parametrize("name", ["openmpi", "openmpi5", "mpich", "mpich43"])
def test_connected_groups(mpis, name, case, ranks):
    """Groups that were connected at run time, and are of one world all the same."""
    mpi = pick(mpis, name)
    plain = mpi.run(ranks, f"mpi_intercomm none {case}", sim=None, preload=False, timeout=TIMEOUT)
    if plain.status == UNABLE:
        why = plain.lines("is not possible here") or [f"{case} is not possible here"]
        pytest.skip(f"{name} without xccl: {why[0]}")
    plain.good()
    mpi.run(ranks, f"mpi_intercomm cuda {case}", sim="cuda:4", timeout=TIMEOUT).good()
