# SPDX-License-Identifier: BSD-3-Clause
"""A tool from its command line to its exit status."""

import os
import sys
from collections import namedtuple

from .options import Wrong

OK, FAILED, WRONG_USE, INTERRUPTED = 0, 1, 2, 130

# commit: of the sources; "" where it is unknown. prefix, libdir: of the installation.
Tool = namedtuple("Tool", "name version commit prefix libdir")


def status_of(name, work):
    """Do the work of a tool of this name. What ends it early is no traceback."""
    try:
        status = work()
        sys.stdout.flush()  # here a reader that is gone can be told from other errors
        return status
    except Wrong as wrong:
        print(f"{name}: {wrong}", file=sys.stderr)
        return WRONG_USE
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # of a pager or head that has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
