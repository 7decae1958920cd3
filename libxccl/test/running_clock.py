# SPDX-License-Identifier: BSD-3-Clause
"""A clock that stands still while this machine does.

A virtual machine may be held for half a minute. A limit of a test must not count such a time: the
program under test had none of it either.
"""

import subprocess
import threading
import time

STEP = 0.05
# A thread that sleeps for a step comes back within this time on a machine that is merely crowded.
MOST = 0.5


class RunningClock:
    """Adds up short steps of a thread; of a step that took longer only so much counts."""

    def __init__(self, clock=time.monotonic, sleep=time.sleep):
        self._clock, self._sleep = clock, sleep
        self._seconds = 0.0
        self._lock = threading.Lock()  # a thread can be started only once
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        last = self._clock()
        while True:
            self._sleep(STEP)
            last = self._step(last)

    def _step(self, last):
        now = self._clock()
        self._seconds += min(now - last, MOST)
        return now

    def now(self):
        """Seconds that the machine ran since the first call."""
        with self._lock:
            if self._thread.ident is None:
                self._thread.start()
        return self._seconds


now = RunningClock().now


def communicate(process, timeout):
    """process.communicate() with a limit in seconds that the machine ran."""
    end = now() + timeout
    while True:
        try:
            return process.communicate(timeout=1)
        except subprocess.TimeoutExpired:
            if now() > end:
                raise subprocess.TimeoutExpired(process.args, timeout) from None
