# SPDX-License-Identifier: BSD-3-Clause
"""Can the MPI here hand collectives to UCC? That takes Open MPI with its component coll/ucc."""

import os
import subprocess

from . import launchers


def mpi_family(facts):
    """The launcher's, where it is an MPI's own; else that of the library that would be loaded."""
    if facts.mpirun is not None and facts.mpirun.family:
        return facts.mpirun.family
    return facts.mpi.family if facts.mpi else None


def find_ompi_info(facts):
    """The one beside the launcher, else the one on PATH."""
    beside = os.path.dirname(facts.mpirun.path) if facts.mpirun else None
    program = beside and os.path.join(beside, "ompi_info")
    if program and os.access(program, os.X_OK):
        return program
    return launchers.find_program("", facts.env, "ompi_info")


def lister_without_ucc(facts):
    """The ompi_info that lists components for collectives, but not coll/ucc; None if there is none.

    A component whose libucc is missing is not listed either.
    """
    program = find_ompi_info(facts)
    if program is None:
        return None
    try:
        out = subprocess.check_output(
            [program, "--parsable"], env=facts.env, stderr=subprocess.DEVNULL, timeout=60
        )
    except (OSError, subprocess.SubprocessError):
        return None
    lines = out.decode("utf-8", "replace").splitlines()
    names = {line.split(":")[2] for line in lines if line.startswith("mca:coll:")}
    return program if names and "ucc" not in names else None
