# SPDX-License-Identifier: BSD-3-Clause
"""Machines of many kinds: what is seen of them, and what is not held against them."""

import pytest


def ids(found):
    return [one["id"] for one in found["findings"]]


def device(made, address, vendor, kind):
    made.file(f"sys/bus/pci/devices/{address}/vendor", f"{vendor}\n")
    made.file(f"sys/bus/pci/devices/{address}/class", f"{kind}\n")


def kfd(made, *identifiers):
    for number, identifier in enumerate(identifiers):
        made.file(f"sys/class/kfd/kfd/topology/nodes/{number}/gpu_id", f"{identifier}\n")


def nvidia_driver(made):
    made.file("proc/driver/nvidia/version", "NVRM version: NVIDIA x86_64  580.65.06\n")


def test_mi300(doctor, world):
    """They are no display controllers."""
    made = world("generic-amd")
    for number in range(4):
        device(made, f"0000:{0x20 + number:02x}:00.0", "0x1002", "0x120000")
    status, found = doctor(made)
    assert (status, ids(found)) == (0, []) and "4 amd GPUs; " in found["facts"][1]


@pytest.mark.parametrize(
    ("drivers", "nvidia", "amd", "seen"),
    [
        ([nvidia_driver], 4, 1, "4 nvidia GPUs; "),
        ([], 4, 1, "4 nvidia GPUs; "),
        ([nvidia_driver, lambda made: kfd(made, 0, 7)], 4, 1, "4 nvidia GPUs; "),
        ([nvidia_driver], 1, 2, "1 nvidia GPUs; "),
        ([lambda made: kfd(made, 0, 7, 8)], 1, 2, "2 amd GPUs; "),
        ([lambda made: kfd(made, 0)], 1, 1, "1 nvidia GPUs; "),
    ],
)
def test_two_vendors(doctor, world, drivers, nvidia, amd, seen):  # noqa: PLR0917
    """The graphics of a processor are no GPU of a job."""
    made = world("generic-nvidia" if "nvidia" in seen else "generic-amd")
    for number in range(nvidia):
        device(made, f"0000:{0x20 + number:02x}:00.0", "0x10de", "0x030200")
    for number in range(amd):
        device(made, f"0000:{0xC0 + number:02x}:00.0", "0x1002", "0x030000")
    for driver in drivers:
        driver(made)
    status, found = doctor(made)
    assert (status, ids(found)) == (0, []) and seen in found["facts"][1]
