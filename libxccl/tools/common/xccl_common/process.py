# SPDX-License-Identifier: BSD-3-Clause
"""A job in a session of its own, which is ended with all that it started."""

import contextlib
import os
import signal
import subprocess

GRACE = 10  # seconds that a job has to end after SIGTERM
# With a limit Python looks for the end now and then. Without one it sleeps in the system until the job
# ends, and a signal that came just before that is noticed then.
FOREVER = 1e8  # seconds
INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def signal_all(process, number):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def stop(process):
    """End it with all that it started: politely first, so that a launcher ends its ranks."""
    try:
        signal_all(process, signal.SIGTERM)
        process.wait(timeout=GRACE)
    except (subprocess.TimeoutExpired, KeyboardInterrupt) as error:
        signal_all(process, signal.SIGKILL)
        process.wait()
        if isinstance(error, KeyboardInterrupt):
            raise


def heed_interrupts():
    """Let each of them raise KeyboardInterrupt, but for those that nohup or a script has switched off."""
    for number in INTERRUPTS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)


@contextlib.contextmanager
def interrupts_held():
    """Yields what lets them through again, and raises KeyboardInterrupt if one has come."""
    came = []
    heeded = [number for number in INTERRUPTS if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, lambda *_: came.append(1)) for number in heeded}

    def release():
        for number in heeded:
            signal.signal(number, signal.default_int_handler)
        if came:
            raise KeyboardInterrupt

    try:
        yield release
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run(words, seconds, **how):
    """Its exit status; None if it had to be ended after these seconds (None: there is no limit).

    The terminal does not interrupt it, because its session is its own: so Ctrl-C, SIGTERM and the end
    of the terminal end it here. They are held back until there is a process to end.
    """
    with interrupts_held() as release:
        process = subprocess.Popen(words, start_new_session=True, **how)
        try:
            release()
            return process.wait(timeout=FOREVER if seconds is None else seconds)
        except subprocess.TimeoutExpired:
            stop(process)
            return None
        except KeyboardInterrupt:
            stop(process)
            raise
