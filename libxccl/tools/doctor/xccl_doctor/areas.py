# SPDX-License-Identifier: BSD-3-Clause
"""The areas of findings, and the page that each has in the documentation."""

import posixpath

FOLDER = "findings"  # beside doctor.md, in the documentation and where it is installed

# Page, title, what the names of its findings begin with. A name belongs to the first that fits.
AREAS = (
    ("ucc", "Open MPI and UCC", ("ucc-", "hcoll-", "hpcx-", "nonblocking-")),
    ("mpi", "MPI and its launcher", ("mpi-", "mpirun-", "preload-", "program-")),
    (
        "ranks",
        "GPUs, cores and their ranks",
        ("gpu-", "ranks-", "visible-", "cores-", "not-bound", "srun-", "launch-"),
    ),
    ("mpich", "MPICH and Cray MPICH", ("nic-", "single-", "mpich-", "gtl-")),
    (
        "libraries",
        "Libraries and plugins",
        ("ccl-", "interposer-", "library-", "plugin-", "cray-", "cuda-", "driver-", "file-"),
    ),
    ("network", "Network", ("net-", "ib-", "init-", "mr-", "cxi-", "ll128")),
    ("hangs", "Ranks of a job that hangs", ("hang-",)),
    (
        "job",
        "Site, limits and the job itself",
        (
            "site-",
            "sim-",
            "open-",
            "no-gpu",
            "memlock",
            "memory-",
            "shm-",
            "tmp-",
            "ran-",
            "crash-",
            "job-",
            "log-",
            "xccl-",
            "run-",
        ),
    ),
)


def area_of(name):
    """The page of a finding's area."""
    for page, _, prefixes in AREAS:
        if name.startswith(prefixes):
            return page
    raise ValueError(f"the finding {name} is of no area")


def place(name):
    """Where its text is, from the folder of doctor.md on: findings/network.md#net-sockets."""
    return posixpath.join(FOLDER, f"{area_of(name)}.md") + f"#{name}"
