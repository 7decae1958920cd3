# SPDX-License-Identifier: BSD-3-Clause
"""xccl-doctor: collect facts (xccl_common.machine), check them, say what was found.

rows_*     every finding that there is, one row each
registry   all of them, and how one is made
run        the small job of --run
logs       facts from the logs of a job
dumps      files that the ranks of a job wrote, read and bounded
job        those ranks, lined up
waits      who waits for whom
hang       how the ranks' operations differ; all of --hang
words      ranks, times and operations in plain English
checks_*   pure functions from facts to findings
command    options
report     output
docs       the page of all findings
main       from options to an exit status
"""
