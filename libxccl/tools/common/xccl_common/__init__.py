# SPDX-License-Identifier: BSD-3-Clause
"""What xccl-doctor and xccl-compare share.

options    a command line: options, and what is wrong with them
tool       from the command line to an exit status
process    start a job, and end it with all that it started
failure    the line of a log that says why a job failed
machine    facts of this machine, environment and installation
launchers  what started this process, what mpirun is, which MPI a program was built with
libraries  which file of a library would be loaded
elf        what a shared object needs, without loading it
"""
