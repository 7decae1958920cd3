# SPDX-License-Identifier: BSD-3-Clause
"""Start a small job with logs on, and keep what it prints."""

import contextlib
import os
import signal
import subprocess
import tempfile
from types import SimpleNamespace

# Logs that say which library, plugin, provider and port are used.
LOGGING = {
    "XCCL_LOG": "info",
    "NCCL_DEBUG": "INFO",
    "NCCL_DEBUG_SUBSYS": "INIT,NET,ENV,P2P,BOOTSTRAP",
    "UCC_LOG_LEVEL": "INFO",
    "UCC_COLL_TRACE": "INFO",
    "FI_LOG_LEVEL": "warn",
    "MPICH_OFI_NIC_VERBOSE": "1",
}
# Small and large enough for every protocol; a few seconds even over TCP.
PROGRAM = ["--min", "8", "--max", "1m", "--iters", "3"]


def command(prefix, launcher, site, sim):
    run = [os.path.join(prefix, "bin/xccl-run"), "--report"]
    if sim:
        run += ["--sim", sim]
    if site:
        run += ["--site", site]
    return [*launcher, *run, os.path.join(prefix, "bin/xccl-perf"), *PROGRAM]


def stop(process):
    """End it with all that it started: politely first, so that a launcher ends its ranks."""
    with contextlib.suppress(ProcessLookupError):  # it may have ended by itself meanwhile
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def finish(process, seconds):
    """Its exit status; None if it had to be ended."""
    try:
        return process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        stop(process)
        return None
    except KeyboardInterrupt:  # a session of its own: the terminal does not interrupt it
        stop(process)
        raise


def start(words, **how):
    """A process in a session of its own. Ctrl-C is held back until there is a process to stop."""
    interrupts = []
    before = signal.signal(signal.SIGINT, lambda *_: interrupts.append(True))
    try:
        process = subprocess.Popen(words, start_new_session=True, **how)
    finally:
        signal.signal(signal.SIGINT, before)
    if interrupts:
        stop(process)
        raise KeyboardInterrupt
    return process


def run(words, env, seconds):
    """Status (None: it did not end), output of both kinds in order, and the file that keeps it."""
    variables = dict(env, **{k: v for k, v in LOGGING.items() if k not in env})
    with tempfile.NamedTemporaryFile(
        mode="wb", prefix="xccl-doctor-", suffix=".log", delete=False
    ) as log:
        try:
            process = start(
                words,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        except OSError as error:
            return SimpleNamespace(status=127, text=f"{words[0]}: {error.strerror}", log=log.name)
        status = finish(process, seconds)
        log.flush()
    with open(log.name, errors="replace") as f:
        return SimpleNamespace(status=status, text=f.read(), log=log.name)
