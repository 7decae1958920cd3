# SPDX-License-Identifier: BSD-3-Clause
"""What the tools in Python share: jobs that end with the tool, and exit statuses."""

import os
import signal
import subprocess
import sys

import pytest
from xccl_common import process
from xccl_common.options import Wrong, near
from xccl_common.tool import FAILED, INTERRUPTED, OK, WRONG_USE, status_of

# Nothing here is compiled: the sanitizers have nothing to find.
pytestmark = pytest.mark.release_only

STUBBORN = "trap '' TERM; echo ready; while :; do sleep 0.1; done"


@pytest.fixture
def started(monkeypatch):
    """The jobs that were started; a signal comes while one is."""
    jobs, comes = [], []
    popen = subprocess.Popen

    def start(*words, **how):
        jobs.append(popen(*words, **how))
        for number in comes:
            os.kill(os.getpid(), number)
        return jobs[-1]

    monkeypatch.setattr(subprocess, "Popen", start)
    jobs_and_signals = (jobs, comes)
    yield jobs_and_signals
    for job in jobs:
        assert job.poll() is not None, "it stayed behind"


@pytest.mark.parametrize("number", process.INTERRUPTS)
def test_interrupted_while_it_starts(heeds_hangups, started, number):
    """The job that was just being started does not stay behind, and handlers are as before."""
    before = [signal.getsignal(one) for one in process.INTERRUPTS]
    started[1].append(number)
    with pytest.raises(KeyboardInterrupt):
        process.run(["sleep", "100"], 60)
    assert started[0][0].poll() == -signal.SIGTERM
    assert [signal.getsignal(one) for one in process.INTERRUPTS] == before


def test_interrupted_twice(started, monkeypatch, tmp_path):
    """Who presses Ctrl-C again does not wait for a job that does not end."""
    signals = process.signal_all

    def interrupted_again(job, number):
        signals(job, number)
        if number == signal.SIGTERM:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(process, "signal_all", interrupted_again)
    with open(tmp_path / "out", "wb") as out, pytest.raises(KeyboardInterrupt):
        started[1].append(signal.SIGINT)
        process.run(["sh", "-c", STUBBORN], 60, stdout=out)
    assert started[0][0].poll() is not None


def test_ignored_interrupts_stay_ignored(started):
    """As of a script's background job."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        started[1].append(signal.SIGINT)
        assert process.run(["true"], 60) == 0
    finally:
        signal.signal(signal.SIGINT, before)


def test_job_that_ended_before_it_was_stopped():
    """Ctrl-C may meet a job that has just ended by itself."""
    job = subprocess.Popen(["true"], start_new_session=True)
    job.wait()
    process.stop(job)
    assert job.returncode == 0


def test_end_of_its_time(started, monkeypatch):
    monkeypatch.setattr(process, "GRACE", 0.2)
    assert process.run(["sh", "-c", STUBBORN], 0.2, stdout=subprocess.DEVNULL) is None


def raise_it(error):
    raise error


@pytest.mark.parametrize(
    ("work", "status", "said"),
    [
        (lambda: OK, OK, ""),
        (lambda: raise_it(Wrong("no such thing")), WRONG_USE, "tool: no such thing\n"),
        (lambda: raise_it(KeyboardInterrupt()), INTERRUPTED, ""),
    ],
)
def test_status(capsys, work, status, said):
    assert status_of("tool", work) == status
    assert capsys.readouterr().err == said


def test_reader_that_is_gone():
    """It is no traceback, whether the text is written at once or at the end."""
    folder = os.path.dirname(os.path.dirname(process.__file__))
    for lines in (1, 100000):
        text = (
            f"import sys; sys.path.insert(0, {folder!r}); from xccl_common.tool import status_of; "
        )
        text += f"sys.exit(status_of('tool', lambda: print('word\\n' * {lines})))"
        command = f'exec 3>&1; {{ {sys.executable} -c "$TEXT"; echo $? >&3; }} | sleep 0'
        ended = subprocess.run(
            ["sh", "-c", command],
            env={**os.environ, "TEXT": "import time; time.sleep(0.5); " + text},
            capture_output=True,
            text=True,
            check=True,
        )
        assert (ended.stdout, ended.stderr) == (f"{FAILED}\n", "")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("frontire", "frontier"),
        ("JUWLES", "juwels-booster"),
        ("juwels", "juwels-booster"),
        ("lumi", "lumi-g"),
        ("nowhere", None),
        ("ju", None),
        ("", None),
    ],
)
def test_what_was_meant(typed, meant):
    known = ("alps", "frontier", "jureca-dc", "juwels-booster", "lumi-g")
    assert near(typed, known) == (f"; did you mean '{meant}'?" if meant else "")
