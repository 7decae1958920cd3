# SPDX-License-Identifier: BSD-3-Clause
"""How Open MPI 4.1.4 now and then ends a rank on a machine under load, in MPI_Finalize.

It does so without xccl as well (1 of 400 jobs): orte_finalize unloads components while its progress
thread still has events for them, which then jumps to where the code was; AddressSanitizer says so in
its own way. Such a job is run again in view of everybody. This can go with Open MPI 4.1.
"""

import re

JUMPED = r"SEGV on unknown address (?P<place>0x[0-9a-f]+) \(pc (?P=place) [^)]*T[1-9]"
CRASHED = rf"(exited on signal 11|{JUMPED})"
ENDED_BADLY = rf"(exiting improperly|{CRASHED})"
# A line of a backtrace, as Open MPI and the sanitizers write it.
THROUGH_XCCL = r"(?m:^.*(\[ *\d+\]|#\d+) .*libxccl)"
REPORTED = rf"(ERROR|WARNING): \w+Sanitizer: (?!{JUMPED})|: runtime error: "


def ours(out):
    """Is what was printed an error of xccl: a backtrace through it, or any other of a sanitizer's reports?"""
    return re.search(f"{THROUGH_XCCL}|{REPORTED}", out) is not None


def crashed(err):
    """By what was printed."""
    return re.search(CRASHED, err) is not None and not ours(err)
