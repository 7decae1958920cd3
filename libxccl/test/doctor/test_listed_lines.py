# SPDX-License-Identifier: BSD-3-Clause
"""The page of messages promises that the doctor finds other software's lines in a log, too."""

import re
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[3]
PAGE = (TOP / "docs/use/troubleshooting.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `(.+?)`.* \|$", PAGE.split("## Messages of other software")[1], re.M)
FOUND = {
    "Duplicate GPU detected": "gpu-duplicate",
    "mca_coll_ucc_save_coll_handlers failed": "ucc-not-selected",
    "MPI Error in NBC subrequest": "mpi-calls-unlike",
    "No plugin found": "plugin-none",
    "GPU_SUPPORT_ENABLED is requested": "gtl-missing",
    "object '<file>' from LD_PRELOAD": "preload-missing",
    "CUDA driver version is insufficient": "driver-insufficient",
    "API call is not supported": "driver-call",
    "There are not enough slots": "job-failed",
    "mpirun has detected an attempt to run as root": "job-failed",
    "rank 0 of 1": "mpi-other-launcher",
}


def log_of(world, *lines):
    """A log, looked at on a machine on which all is well."""
    made = world("generic-nvidia")
    made.file(made.gpu(0) + "/vendor", "0x10de\n")
    made.file(made.gpu(0) + "/class", "0x030200\n")
    made.file("job.log", "".join(f"{line}\n" for line in lines))
    made.options += ["--log", str(made.root / "job.log")]
    return made


@pytest.mark.parametrize("row", ROWS)
def test_each_line_of_the_page_is_found(doctor, world, row):
    """As the page has it, between lines of a program; a second process says the same."""
    line = f"n1:1:1 [0] NCCL INFO NET/Plugin : {row}" if row.startswith("No plugin") else row
    found = doctor(log_of(world, "hello", line, line, "bye"))[1]["findings"]
    (expected,) = (name for start, name in FOUND.items() if row.startswith(start))
    assert [finding["id"] for finding in found] == [expected]


def test_every_line_of_the_page_has_a_case():
    assert len(ROWS) == len(FOUND)


@pytest.mark.parametrize(
    ("lines", "name"),
    [([], "the vendor's library"), (["NET/Plugin: Could not find: librccl-net.so"], "RCCL")],
)
def test_the_library_is_named_as_people_write_it(doctor, world, lines, name):
    """Also where neither GPUs nor versions in the log say which one it is."""
    said = [f"n1:1:1 [0] NCCL INFO {line}" for line in [*lines, "Using network Socket"]]
    made = log_of(world, *said)
    made.remove("sys/bus/pci/devices")
    del made.env["XCCL_SITE"]
    (finding,) = doctor(made)[1]["findings"]
    assert finding["cause"].startswith(f"{name} fell back to TCP sockets")


@pytest.mark.parametrize(("lines", "count"), [(1, "(1 line)"), (2, "(2 lines)")])
def test_lines_are_counted(doctor, world, lines, count):
    (finding,) = doctor(log_of(world, *["hello"] * lines))[1]["findings"]
    assert finding["id"] == "log-silent"
    assert f"the log {count} has no line" in finding["cause"]
