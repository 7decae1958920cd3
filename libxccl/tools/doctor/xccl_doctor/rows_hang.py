# SPDX-License-Identifier: BSD-3-Clause
"""Rows of ranks that hang, from the files that they wrote. {names} are filled in by the check that finds it."""

from .rows import ERROR, WARNING, Row

TABLE = {
    "hang-call": Row(
        ERROR,
        "{this} as collective {sequence} of communicator {comm}, {others}{more}",
        "make all ranks of a communicator call the same collectives in the same order; look for "
        "a branch before this call that not every rank takes",
        meaning="ranks of a communicator call different collectives",
    ),
    "hang-root": Row(
        ERROR,
        "{this}, collective {sequence} of communicator {comm}, {others}{more}",
        "pass the same root on every rank",
        meaning="ranks pass different roots to a collective",
    ),
    "hang-op": Row(
        ERROR,
        "{this}, collective {sequence} of communicator {comm}, {others}{more}",
        "pass the same operation on every rank",
        meaning="ranks pass different operations to a reduction",
    ),
    "hang-count": Row(
        ERROR,
        "{this}, collective {sequence} of communicator {comm}, {others}{more}",
        "pass the same count on every rank, or use the call with a count for each rank (MPI_Gatherv and the like)",
        meaning="ranks pass different counts to a collective",
    ),
    "hang-type": Row(
        ERROR,
        "{this}, collective {sequence} of communicator {comm}, {others}{more}",
        "pass the same type on every rank",
        meaning="ranks pass different datatypes to a collective",
    ),
    "hang-memory": Row(
        WARNING,
        "{this}, collective {sequence} of communicator {comm}, {others}{more}",
        "pass the same kind of memory on every rank, or set XCCL_MEMORY=mixed on all of them, which is slower",
        meaning="ranks pass different kinds of memory to a collective",
    ),
    "hang-path": Row(
        ERROR,
        "{this}, collective {sequence} of communicator {comm}, {others}{more}",
        "set the same XCCL_* variables on every rank; if they are the same, report it to xccl",
        meaning="ranks take different paths for a collective",
    ),
    "hang-cycle": Row(
        ERROR,
        "ranks wait for each other: {chain}",
        "call the collectives of communicators that share ranks in the same order on all of them, "
        "and receive what others have to send before they can go on (MPI_Sendrecv, MPI_Irecv)",
        meaning="ranks wait for each other in a circle",
    ),
    "hang-timeout": Row(
        ERROR,
        "{late}; {ranks} waited in {place} for as long as XCCL_TIMEOUT says, until {time}",
        "look at the ranks that have not entered it: what the job's output says of them last, and "
        "their stack (gdb -p, py-spy) in a run without XCCL_TIMEOUT",
        meaning="ranks waited in a collective for as long as XCCL_TIMEOUT says, and other ranks have not entered it",
    ),
    "hang-failed": Row(
        ERROR,
        "{ranks} failed in {place} at {time}{cause}",
        "look in the job's output for the messages of the ranks that failed; the other ranks wait for them",
        meaning="a collective failed on a rank, and other ranks wait for it",
    ),
    "hang-waiting": Row(
        ERROR,
        "{waiting} in collective {sequence} ({call}) of communicator {comm} {since}; {late}",
        "look at the ranks that have not entered it: their stack (gdb -p, py-spy) says where "
        "they are",
        meaning="ranks wait in a collective that another rank has not entered",
    ),
    "hang-message": Row(
        ERROR,
        "{waiting} in {call} for {message}, {since}; {other}",
        "look for the other side of this message: it has to name the same communicator, the same "
        "tag and the right rank, and come before what its rank waits in now",
        meaning="a rank waits for a message that another rank has not sent or received",
    ),
    "hang-unsure": Row(
        WARNING,
        "{waiting} in collective {sequence} ({call}) of communicator {comm} {since}; {late} "
        "(it may be in order: {why})",
        "have all ranks write their files again at one time, some seconds later, and compare",
        meaning="ranks wait in a collective that another rank has not entered, but that rank may still come",
    ),
    "hang-apart": Row(
        WARNING,
        "{waiting} inside MPI in {call} {since}; {others} (it may be in order: the call may be of "
        "some ranks only)",
        "look what keeps the others from that call (gdb -p, py-spy), or have all ranks write their "
        "files again some seconds later",
        meaning="ranks wait inside MPI in a call of several ranks that other ranks are not in",
    ),
    "hang-stuck": Row(
        ERROR,
        "every rank has entered collective {sequence} ({call}) of communicator {comm}, and "
        "{waiting} in it on path {path} {since}",
        "the calls agree as far as the files tell: XCCL_CHECK=1 also compares the counts for each "
        "rank (of MPI_Alltoallv and the like); then look at the network and the library below: "
        "NCCL_DEBUG=INFO, xccl-doctor --run",
        meaning="every rank has entered a collective with fitting arguments, and it does not end",
    ),
    "hang-missing": Row(
        WARNING,
        "{ranks} of {size} left no readable file in {folder}",
        "look whether they still run: a rank that died, or that cannot serve the signal, "
        "writes none",
        meaning="ranks left no readable file in the folder",
    ),
    "hang-mixed": Row(
        WARNING,
        "the files are of more than one run ({runs}); the newest, of {size} ranks, was read",
        "give each run a folder of its own",
        meaning="the files in the folder are of more than one run; the newest was read",
    ),
    "hang-unreadable": Row(
        WARNING,
        "{file} was left out: {why}",
        "go by the other files; a file that is cut off is of a rank that died while writing",
        meaning="a file was left out, because it cannot be read or is cut off",
    ),
}
