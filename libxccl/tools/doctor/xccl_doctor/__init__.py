# SPDX-License-Identifier: BSD-3-Clause
"""xccl-doctor: collect facts, check them, say what was found.

registry   every finding that there is, one row each
collect    facts of this machine and environment, from files below a root
elf        what a shared object needs, without loading it
logs       facts from the logs of a job
checks_*   pure functions from facts to findings
main       options and output
"""
