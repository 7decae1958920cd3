# SPDX-License-Identifier: BSD-3-Clause
"""Small copies through GDRCopy, on its stand-in, which ends a process that touches freed memory."""

import re

import pytest

STAGED = {
    "XCCL_TUNE": "*:*:*:*:mpi",
    "XCCL_DIRECT": "off",
    "XCCL_LOG": "info",
    "XCCL_SIM_LOG": "info",
}
THERE = {"XCCL_SIM_GDRCOPY": "1"}
# How many pages are mapped at a time, at most; large allocations are not.
CASES = {
    "sizes": 8,
    "freed": 5,
    "gone": 6,
    "neighbours": 7,
    "pages": 67,  # some are just being given back
    "much": 8,
    "large": 0,
    "messages": 4,
}


def run(family, case, copies, env):
    env = {**STAGED, "XCCL_RENDEZVOUS": "4096", "XCCL_GDRCOPY": str(copies), **env}
    result = family.run(2, f"mpi_gdrcopy cuda {case}", sim="cuda:2", env=env, timeout=60)
    result.good()
    return result


def copies_of(result):
    """[(to devices, from devices, pages at most)] of each rank that has opened GDRCopy."""
    line = r"GDRCopy: (\d+) copies to devices, (\d+) from devices, (\d+) pins at most"
    return [tuple(map(int, found)) for found in re.findall(line, result.out)]


@pytest.mark.each_value
@pytest.mark.parametrize("case", CASES)
def test_cases(family, case):
    result = run(family, case, 2, THERE)
    copies = copies_of(result)
    assert len(result.lines(r".* left: .* 0 pins")) == 2, result.out
    assert len(copies) == (2 if CASES[case] > 0 else 0), result.out
    assert all(to > 5 and out > 5 and most <= CASES[case] for to, out, most in copies), result.out


def test_off(openmpi):
    """It is not opened before a program's copies ask for it."""
    assert copies_of(run(openmpi, "sizes", 0, THERE)) == []
    assert copies_of(run(openmpi, "sizes", 10000, THERE)) == []


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({}, "gdr_open failed: is the kernel module gdrdrv loaded"),
        ({**THERE, "XCCL_SIM_FAIL": "pin"}, "64 KiB of device 0 could not be mapped"),
    ],
)
def test_not_there(openmpi, env, said):
    """The copies go another way, and a rank says why, once."""
    result = run(openmpi, "sizes", 2, env)
    assert said in result.out, result.out
    assert all(to == 0 for to, *_ in copies_of(result)), result.out
    assert len(result.lines(r".*gdr_open failed")) <= 2, result.out


@pytest.mark.parametrize("fault", ["pin=1", "pin=2", "pin@1"])
def test_some_pages_refused(openmpi, fault):
    run(openmpi, "neighbours", 2, {**THERE, "XCCL_SIM_FAIL": fault})


@pytest.mark.release_only
def test_random(openmpi):
    """Random calls and messages are as right as without."""
    env = {**STAGED, **THERE, "XCCL_GDRCOPY": "1", "XCCL_LOG": "warn", "XCCL_SIM_LOG": "none"}
    for program in ("mpi_random cuda 11 150", "mpi_messages cuda 12 150"):
        openmpi.run(2, program, sim="cuda:2", env=env, timeout=60).good()
