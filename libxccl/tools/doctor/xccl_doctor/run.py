# SPDX-License-Identifier: BSD-3-Clause
"""Start a small job with logs on, and keep what it prints."""

import os
import subprocess
import tempfile
from types import SimpleNamespace

from xccl_common import process
from xccl_common.options import Wrong

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


def start(words, env, log, seconds):
    """Its status, or what keeps it from being started."""
    try:
        return process.run(
            words,
            seconds,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        ), None
    except OSError as error:
        return 127, f"{words[0]}: {error.strerror}"


def run(words, env, seconds):
    """Status (None: it had to be ended), output of both kinds in order, and the file that keeps it.

    Only what a job printed that did not end well is kept.
    """
    variables = dict(env, **{k: v for k, v in LOGGING.items() if k not in env})
    try:
        handle, path = tempfile.mkstemp(prefix="xccl-doctor-", suffix=".log")
    except OSError as error:
        raise Wrong(
            f"--run: there is no room for the job's output ({error.strerror}); export TMPDIR=FOLDER with one that "
            "is writable. Without --run, the findings of the environment are printed"
        ) from error
    kept = False
    try:
        with os.fdopen(handle, "wb") as log:
            status, refused = start(words, variables, log, seconds)
        with open(path, errors="replace") as f:
            text = f.read()
        kept = status != 0 and bool(text)
        text = refused or text
        return SimpleNamespace(status=status, text=text, log=path if kept else None)
    finally:
        if not kept:
            os.unlink(path)
