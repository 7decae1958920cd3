# SPDX-License-Identifier: BSD-3-Clause
"""The command line of xccl-doctor: its options, and what is wrong with them."""

import os

from xccl_common.launchers import number
from xccl_common.options import Wrong, check_choice, parse

USAGE = """Usage: xccl-doctor [options]
       xccl-doctor [options] --run -- launcher [arguments]

Says which libraries, GPUs and NICs are used, and what is wrong: identifier, cause, remedy.

  --run -- LAUNCHER ...  also run a small job with logs on and read them: --run -- srun -N2 -n8
  --timeout SECONDS      time that the job may take (300)
  --log FILE             read the log of an earlier job instead; - is standard input
  --hang FOLDER          compare the files xccl-ops.*.json of the ranks of a job that hangs
  --app PROGRAM          check it against the launcher: which MPI it was built with
  --site NAME            instead of XCCL_SITE, the installation's own, or the site detected
  --route ROUTE          instead of XCCL_ROUTE (xccl, ucc, ucc-ccl, mpi)
  --sysroot FOLDER       read /proc, /sys and libraries below this folder
  --json                 print JSON
  --list                 print all findings that it knows; with --json for programs
  --explain ID           print one of them; with --json for programs
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


def read(words):
    return parse(words, WITH_VALUE, FLAGS)


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
    if not number(given.get("--timeout", "1")):
        text = given["--timeout"]
        raise Wrong(f"--timeout: invalid value '{text}': expected seconds, an integer >= 1")
    if "--sysroot" in given and not os.path.isdir(given["--sysroot"]):
        raise Wrong("--sysroot: no folder '{}'".format(given["--sysroot"]))
    if "--app" in given and not os.path.isfile(given["--app"]):
        raise Wrong("--app: no program '{}'".format(given["--app"]))
