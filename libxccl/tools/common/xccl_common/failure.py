# SPDX-License-Identifier: BSD-3-Clause
# ruff: noqa: E501
"""The line of a log that says why a job failed."""

import re

# What a report, an informational line or a launcher's frame begins with, or is.
NO_CAUSE = re.compile(
    r"NCCL INFO|xccl-(?:run|perf|tune): (?: |host |node |warning\b)|xccl(?:\[\d+\])? (?:info|trace|warning): |^\W*$"
)
# Words of the program that failed itself; then what is only said of it. The first that is found counts.
CAUSES = tuple(
    re.compile(text)
    for text in (
        r"(?:^|[\s>])xccl(?:\[\d+\])? error: ",
        r"(?:^|[\s>])xccl-(?:run|bind|perf|tune): |^DATA VALIDATION ERROR: ",
        r"unable to launch|could not (?:access|execute)|not enough slots|attempt to run as root|^Traceback \(most recent call last\)|terminate called|[Ff]atal error in",
        r"NCCL WARN",
        r"\*\*\* An error occurred in |Signal: |Segmentation fault|Bus error|[Ff]loating point exception",
        r"MPI_ABORT was invoked|BAD TERMINATION|DUE TO TIME LIMIT|oom-kill|Out Of Memory",
        r"(?:srun|slurmstepd|prterun|mpirun|mpiexec)\b.*(?:error:|exited|noticed that|Exited with)",
        r"Primary job +terminated|a non-zero exit code",
    )
)


def failure(text, failed=False):
    """The line that says best why a job failed; None if no line says that it failed.

    failed: that it did is known; else a warning of NCCL alone is no failure.
    """
    lines = text.splitlines()
    sure = [cause for cause in CAUSES if cause.pattern != "NCCL WARN"]
    own = [line for line in lines if not NO_CAUSE.search(line)]
    failed = failed or any(cause.search(line) for line in own for cause in sure)
    for cause in CAUSES if failed else sure:
        for number, line in enumerate(lines):
            if not cause.search(line) or NO_CAUSE.search(line):
                continue
            # xccl-run puts the reason on a line of its own.
            reason = lines[number + 1] if number + 1 < len(lines) else ""
            more = [reason.strip()] if "xccl-run: " in line and reason.startswith(" " * 10) else []
            return ": ".join([line.strip(), *more])
    return None


def telling_line(text):
    """The line that says why it failed, else the first that speaks of an error, else the last."""
    cause = failure(text, failed=True)
    if cause:
        return cause
    lines = [line.strip() for line in text.splitlines() if not NO_CAUSE.search(line)]
    telling = [line for line in lines if "error" in line.lower()] or lines[-1:] or ["no output"]
    return telling[0]
