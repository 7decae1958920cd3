# SPDX-License-Identifier: BSD-3-Clause
"""A tool from its command line to its exit status."""

import errno
import io
import os
import sys
from collections import namedtuple

from .options import Wrong

OK, FAILED, WRONG_USE, INTERRUPTED = 0, 1, 2, 130

# commit: of the sources; "" where it is unknown. prefix, libdir: of the installation.
Tool = namedtuple("Tool", "name version commit prefix libdir")


class Closed(io.TextIOBase):
    """In the place of an output that is closed: there Python has none, and drops what is printed."""

    def write(self, _text):
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))


def print_anything():
    """What the locale cannot write, or a file's name that is no text, is escaped: it is no error.

    Until Python 3.7 is the oldest, whose streams can be told (reconfigure).
    """
    out = sys.stdout
    if out is None:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 1)  # else a file that is opened is taken for it
        sys.stdout = Closed()
    elif isinstance(out, io.TextIOWrapper) and out.errors != "backslashreplace":
        lines = out.line_buffering
        sys.stdout = io.TextIOWrapper(out.detach(), out.encoding, "backslashreplace", None, lines)


def flush():
    """Here an output that takes no more can be told from other errors."""
    if sys.stdout is not None:  # closed, in a program that did not ask for print_anything()
        sys.stdout.flush()


def output_failed(name, error):
    """The exit status after an error in writing: of a full disk, or of a pager that has read enough."""
    if not isinstance(error, BrokenPipeError):
        what = error.filename or "the output"
        print(f"{name}: {what}: {error.strerror}", file=sys.stderr)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is still kept for it is lost at exit
    return FAILED


def status_of(name, work):
    """Do the work of a tool of this name. What ends it early is no traceback."""
    try:
        status = work()
        flush()
        return status
    except Wrong as wrong:
        print(f"{name}: {wrong}", file=sys.stderr)
        return WRONG_USE
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:
        return output_failed(name, error)
