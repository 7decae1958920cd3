# SPDX-License-Identifier: BSD-3-Clause
"""xccl-doctor: collect facts, check them, say what was found.

registry   every finding that there is, one row each
collect    facts of this machine and environment, from files below a root
elf        what a shared object needs, without loading it
logs       facts from the logs of a job
dumps      files that the ranks of a job wrote, read and bounded
job        those ranks, lined up
waits      who waits for whom
hang       how the ranks' operations differ; all of --hang
words      ranks, times and operations in plain English
checks_*   pure functions from facts to findings
main       options and output
"""
