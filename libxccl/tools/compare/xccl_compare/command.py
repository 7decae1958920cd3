# SPDX-License-Identifier: BSD-3-Clause
"""The command line of xccl-compare: its options, and what is wrong with them."""

from xccl_common.launchers import number
from xccl_common.options import Wrong, check_choice, near, parse

from . import words

USAGE = """Usage: xccl-compare [options] -- launcher [arguments]
       xccl-compare --against OLD.json NEW.json
       xccl-compare --plot RESULT.json
       xccl-compare --csv RESULT.json

Runs the same measurement over every route that this site has, in turns, verified, and leaves a
table, JSON, CSV and plots: xccl-compare -- mpirun -n 4

  --output FOLDER        where everything goes (xccl-compare, or xccl-compare-SUITE); the same
                         command goes on from what is there
  --suite NAME           juwels-2022, crusher-2023, splits or hybrid: a published experiment. It sets
                         nodes and ranks itself: xccl-compare --suite splits -- srun --gpus-per-node=8
  --routes LIST          of mpi, ucc, ucc-ccl, xccl and vendor (the vendor's library itself); all
  --coll LIST            collectives, as xccl-perf's without scan and exscan (allreduce)
  --min SIZE, --max SIZE from and to this size (8, 64m)
  --factor F             from one size to the next (4)
  --rounds N             launches of each route (6; below six there are no 95 % intervals)
  --iters N              timed calls per size and launch, at most (100)
  --with PROGRAM         xccl-perf (default) or osu
  --osu FOLDER           folder of OSU's programs (else PATH)
  --verify-to SIZE       largest size that OSU's programs validate, on the host: slow (--max)
  --nodes N              nodes that there are, where the job's variables do not say it
  --ranks-per-node N     for --suite splits and crusher-2023; else the site's GPUs per node, or 8
  --site NAME            instead of XCCL_SITE, the installation's own, or the site detected
  --sim FLAVOUR:N        simulated accelerators, as xccl-run's
  --timeout SECONDS      that one launch may take; 0: no limit (1800)
  --progress SECONDS     print progress every N seconds, except on a terminal; 0: never (30)
  --published NAME       published figures to draw beside (those of the suite), or none
  --no-plot              no pictures
  --dry-run              print the commands, and run nothing
  --sbatch               print a batch script for this comparison, and run nothing
  --list                 print routes with what they lack here, suites, and published figures
  --against OLD NEW      print where two results differ by more than noise
  --plot RESULT          draw a result again
  --csv RESULT           print a result as comma-separated values
  -h, --help             print this
  -V, --version          print the version

Exit status: 0; 1 if a route failed or gave a wrong result, or --against finds measurements missing
or launches that failed in NEW; 2 for wrong use; 3 if it misses nothing and NEW is slower somewhere;
4 if that is unsure only, by more than a tenth."""

ROUTES = ("mpi", "ucc", "ucc-ccl", "xccl", "vendor")
COLLS = (
    *("allreduce", "bcast", "reduce", "reduce_scatter", "reduce_scatter_block", "allgather"),
    *("allgatherv", "alltoall", "alltoallv", "gather", "gatherv", "scatter", "scatterv"),
)
PROGRAMS = ("xccl-perf", "osu")
FLAVOURS = ("cuda", "rocm", "msccl", "mscclpp", "oneccl", "hpu")
MOST_SIMULATED = 64  # as xccl-run
WITH_VALUE = (
    *("--output", "--suite", "--routes", "--coll", "--min", "--max", "--factor", "--rounds"),
    *("--iters", "--with", "--osu", "--verify-to", "--nodes", "--ranks-per-node", "--site"),
    *("--sim", "--timeout", "--progress", "--published", "--plot", "--csv", "--against"),
)
ELSEWHERE = {"--json": "result.json is always written, in the folder of --output"}
FLAGS = ("--no-plot", "--dry-run", "--sbatch", "--list", "--help", "--version")


def split_second(arguments):
    """(--against's second file or None, the other words): it is the one option with two values."""
    rest = list(arguments)
    end = rest.index("--") if "--" in rest else len(rest)
    for place, word in enumerate(rest[:end]):
        if word != "--against" and not word.startswith("--against="):
            continue
        second = place + (2 if word == "--against" else 1)
        if second >= end or (rest[second].startswith("-") and rest[second] != "-"):
            raise Wrong("--against needs two results: xccl-compare --against OLD.json NEW.json")
        return rest.pop(second), rest
    return None, rest


def whole(given, option, default, least):
    text = given.get(option, str(default))
    value = number(text)
    if value is None or value < least:
        raise Wrong(f"{option}: invalid value '{text}': expected an integer >= {least}")
    return value


def size(given, option):
    found = words.parse_size(given[option])
    if found is None:
        raise Wrong(
            f"{option}: invalid value '{given[option]}': expected bytes, or a number with k, m or g"
        )
    return found


def factor(given):
    text = given.get("--factor", "4")
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 1.01 <= value <= 1e6:
        raise Wrong(f"--factor: invalid value '{text}': expected a number >= 1.01")
    return value


def names(text, known, what):
    """A list separated by commas; "all" is every one."""
    if text == "all":
        return list(known)
    chosen = text.split(",")
    for name in chosen:
        check_choice(what, name, known)
    return list(dict.fromkeys(chosen))


def check_compared(text):
    """xccl-perf measures two collectives that not every route has."""
    for name in text.split(","):
        if name in ("scan", "exscan"):
            raise Wrong(
                f"--coll: the vendors' libraries have no {name}; xccl-perf --coll {name} measures it"
            )


def check_together(given, launcher, suites):
    modes = [o for o in ("--against", "--plot", "--csv", "--list") if o in given]
    if len(modes) > 1:
        raise Wrong(f"{modes[0]} and {modes[1]} are two different things: give one of them")
    if "--against" in given and launcher:
        raise Wrong("--against compares two files, and runs nothing: leave '-- ...' out")
    if not modes and not launcher:
        raise Wrong("no launcher: xccl-compare -- mpirun -n 4, or -- srun -N2 -n8; see --help")
    if "--suite" in given:
        check_choice("suite", given["--suite"], suites)


NUMBERS = (  # option, default (None: it has none), least
    ("--rounds", 6, 1),
    ("--iters", 100, 1),
    ("--timeout", 1800, 0),
    ("--progress", 30, 0),
    ("--nodes", None, 1),
    ("--ranks-per-node", None, 1),
)


def check_simulation(text):
    flavour, _, count = text.partition(":")
    meant = near(flavour, FLAVOURS) if flavour not in FLAVOURS else ""
    if flavour not in FLAVOURS or not 1 <= (number(count) or 0) <= MOST_SIMULATED:
        raise Wrong(
            f"--sim: invalid value '{text}': expected FLAVOUR:N, as cuda:4, with "
            f"N from 1 to {MOST_SIMULATED} and FLAVOUR one of {', '.join(FLAVOURS)}{meant}"
        )


def check_for_osu(given):
    if given.get("--with") == "osu":
        return
    if "--osu" in given:
        raise Wrong("--osu says where OSU's programs lie: give --with osu, too")
    if "--verify-to" in given:
        raise Wrong("--verify-to is for OSU's programs: xccl-perf verifies every size")


def check_values(given):
    """Texts become what they stand for."""
    check_choice("program for --with", given.get("--with", "xccl-perf"), PROGRAMS)
    check_for_osu(given)
    check_compared(given.get("--coll", ""))
    for option, known, what in (("--routes", ROUTES, "route"), ("--coll", COLLS, "collective")):
        if option in given:
            given[option] = names(given[option], known, what)
    for option in ("--min", "--max", "--verify-to"):
        if option in given:
            given[option] = size(given, option)
    if "--factor" in given:
        given["--factor"] = factor(given)
    if "--sim" in given:
        check_simulation(given["--sim"])
    for option, default, least in NUMBERS:
        if option in given or default is not None:
            given[option] = whole(given, option, default, least)


def read(arguments, suites):
    """(options by name, launcher). Values are checked; other defaults are a suite's business."""
    second, rest = split_second(arguments)
    given, launcher = parse(rest, WITH_VALUE, FLAGS, ELSEWHERE)
    if "--help" in given or "--version" in given:
        return given, launcher
    if second is not None:
        given["--against"] = (given["--against"], second)
    check_together(given, launcher, suites)
    check_values(given)
    if given.get("--output") == "":
        raise Wrong("--output: the folder has no name")
    if given.get("--min", 0) > given.get("--max", given.get("--min", 0)):
        raise Wrong("--min {} is larger than --max {}".format(given["--min"], given["--max"]))
    return given, launcher
