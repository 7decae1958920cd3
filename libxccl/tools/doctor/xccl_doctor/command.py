# SPDX-License-Identifier: BSD-3-Clause
"""The command line of xccl-doctor: its options, and what is wrong with them."""

import difflib
import os
import sys

USAGE = """Usage: xccl-doctor [options]
       xccl-doctor [options] --run -- launcher [arguments]

Says what is wired to what, and what is wrong: an identifier, the cause, the remedy.

  --run -- LAUNCHER ...  also run a small job with logs on and read them: --run -- srun -N2 -n8
  --timeout SECONDS      time that the job may take (300)
  --log FILE             read the log of an earlier job instead; - is standard input
  --hang FOLDER          line up the files xccl-ops.*.json of the ranks of a job that hangs
  --app PROGRAM          check it against the launcher: which MPI it was built with
  --site NAME            instead of XCCL_SITE, or the site detected
  --route ROUTE          instead of XCCL_ROUTE (xccl, ucc, ucc-ccl, mpi)
  --sysroot FOLDER       read /proc, /sys and libraries below this folder
  --json                 print JSON
  --list                 print every finding that there is; --list --json for programs
  --explain ID           print one of them
  -h, --help             print this
  -V, --version          print the version

Exit status: 0 nothing found, 1 errors found, 2 wrong use (an option, a file that cannot be read),
3 warnings found and no error."""

ROUTES = ("xccl", "ucc", "ucc-ccl", "mpi")
WITH_VALUE = (
    "--timeout",
    "--log",
    "--hang",
    "--app",
    "--site",
    "--route",
    "--sysroot",
    "--explain",
)
FLAGS = ("--json", "--list", "--help", "--version", "--run")
SHORT = {"-h": "--help", "-V": "--version"}


class Wrong(Exception):
    """What is wrong with the options."""


def near(word, known, dashes=""):
    """ "; did you mean 'that'?", or nothing. Dashes that all begin with make none alike."""
    length = len(dashes)
    found = difflib.get_close_matches(word[length:], [name[length:] for name in known], 1)
    return f"; did you mean '{dashes}{found[0]}'?" if found else ""


def flush():
    """Here an output that takes no more can be told from other errors."""
    if sys.stdout is not None:  # it is closed
        sys.stdout.flush()


def output_failed(tool, error):
    """The exit status after an error in writing: of a full disk, or of a pager that has read enough."""
    if not isinstance(error, BrokenPipeError):
        what = error.filename or "the output"
        print(f"{tool}: {what}: {error.strerror}", file=sys.stderr)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is still kept for it is lost at exit
    return 1


def parse(words, with_value=WITH_VALUE, flags=FLAGS):
    """Options by name, and the words behind "--"."""
    given, rest = {}, list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            break
        word = SHORT.get(word, word)
        name, equals, value = word.partition("=")
        if name in with_value:
            if not equals:
                if not rest:
                    raise Wrong(f"{name} needs a value")
                value = rest.pop(0)
            given[name] = value
        elif word in flags:
            given[word] = True
        elif word.startswith("--"):
            hint = near(name, sorted(flags + with_value), dashes="--") or "; see --help"
            raise Wrong(f"unknown option '{word}'{hint}")
        elif word.startswith("-") and word != "-":
            raise Wrong(f"unknown option '{word}'; see --help")
        else:
            raise Wrong(f"unexpected argument '{word}'; a launcher goes behind '--', see --help")
    return given, rest


def check_choice(option, value, known):
    if value not in known:
        hint = near(value, known) or "; known: " + (", ".join(known) or "none is installed")
        raise Wrong(f"unknown {option} '{value}'{hint}")


def check_options(given, launcher, sites):
    if "--run" in given and not launcher:
        raise Wrong("--run needs a launcher: xccl-doctor --run -- srun -N2 -n8")
    if launcher and "--run" not in given:
        raise Wrong(f"'{launcher[0]}' would only be run with --run")
    if "--run" in given and "--log" in given:
        raise Wrong("--run makes a log, and --log reads one: give one of the two")
    if "--hang" in given and ("--run" in given or "--log" in given):
        raise Wrong("--hang reads files of a job that ran: give it without --run and --log")
    check_choice("route", given.get("--route", "xccl"), ROUTES)
    if "--site" in given:
        check_choice("site", given["--site"], sorted(sites))
    if not given.get("--timeout", "1").isdigit() or given.get("--timeout") == "0":
        text = given["--timeout"]
        raise Wrong(f"--timeout: invalid value '{text}': expected seconds, an integer >= 1")
    if "--sysroot" in given and not os.path.isdir(given["--sysroot"]):
        raise Wrong("--sysroot: no folder '{}'".format(given["--sysroot"]))
    if "--app" in given and not os.path.isfile(given["--app"]):
        raise Wrong("--app: no program '{}'".format(given["--app"]))
