# SPDX-License-Identifier: BSD-3-Clause
# ruff: noqa: E501
"""The line of a log that says why a job failed."""

import re

from xccl_common.lines import Lines

# What a report, an informational line or a launcher's frame begins with, or is.
NO_CAUSE = re.compile(
    r"NCCL INFO|xccl-(?:run|perf|tune): (?: |host |node |warning\b)|xccl(?:\[\d+\])? (?:info|trace|warning): |^\W*$"
)
# Words of the program that failed itself; then what is only said of it. The first that is found counts.
# Each with the texts of which such a line holds one.
CAUSES = tuple(
    (texts, re.compile(expression))
    for texts, expression in (
        ((" error: ",), r"(?:^|[\s>])xccl(?:\[\d+\])? error: "),
        (
            ("xccl-run: ", "xccl-bind: ", "xccl-perf: ", "xccl-tune: ", "DATA VALIDATION ERROR: "),
            r"(?:^|[\s>])xccl-(?:run|bind|perf|tune): |^DATA VALIDATION ERROR: ",
        ),
        (
            ("unable to launch", "could not access", "could not execute", "not enough slots", "attempt to run as root", "Traceback", "terminate called", "atal error in"),
            r"unable to launch|could not (?:access|execute)|not enough slots|attempt to run as root|^Traceback \(most recent call last\)|terminate called|[Ff]atal error in",
        ),
        (("NCCL WARN",), r"NCCL WARN"),
        (
            ("*** An error occurred in ", "Signal: ", "Segmentation fault", "Bus error", "loating point exception"),
            r"\*\*\* An error occurred in |Signal: |Segmentation fault|Bus error|[Ff]loating point exception",
        ),
        (
            ("MPI_ABORT was invoked", "BAD TERMINATION", "DUE TO TIME LIMIT", "oom-kill", "Out Of Memory"),
            r"MPI_ABORT was invoked|BAD TERMINATION|DUE TO TIME LIMIT|oom-kill|Out Of Memory",
        ),
        (
            ("error:", "exited", "noticed that", "Exited with"),
            r"(?:srun|slurmstepd|prterun|mpirun|mpiexec)\b.*(?:error:|exited|noticed that|Exited with)",
        ),
        (("Primary job", "a non-zero exit code"), r"Primary job +terminated|a non-zero exit code"),
    )
)  # fmt: skip


# Of launchers, whose sentences may take several lines.
LAUNCHERS = CAUSES[2]
# A line that the next one goes on with: it has words, and does not end like a sentence or a title.
BROKEN = re.compile(r"[a-z].*[^\s.:!?)]\s*$")
MOST_LINES = 4


def first_line(lines, cause):
    """The number of the first line that names this cause, or None."""
    texts, expression = cause
    for number, line in lines.having(texts):
        if expression.search(line) and not NO_CAUSE.search(line):
            return number
    return None


def sentence(lines, number):
    """The sentence that a line begins or goes on with: launchers break theirs over several lines."""
    first, last = number, number
    while first > 0 and number - first < MOST_LINES and BROKEN.search(lines[first - 1]):
        first -= 1
    while last + 1 < len(lines) and last - number < MOST_LINES and BROKEN.search(lines[last]):
        last += 1
    return " ".join(lines[at].strip() for at in range(first, last + 1)).rstrip(" :")


def failure(text, failed=False):
    """The line that says best why a job failed; None if no line says that it failed.

    text: its output, or the Lines of it. failed: that it did is known; else a warning of NCCL alone is no failure.
    """
    lines = text if isinstance(text, Lines) else Lines(text)
    numbers = [first_line(lines, cause) for cause in CAUSES]
    sure = [
        number
        for number, (_, expression) in zip(numbers, CAUSES)
        if number is not None and expression.pattern != "NCCL WARN"
    ]
    if not sure and not failed:
        return None
    for number, cause in zip(numbers, CAUSES):
        if number is not None and cause is LAUNCHERS:
            return sentence(lines, number)
        if number is not None:
            line, after = lines[number], lines[number + 1] if number + 1 < len(lines) else ""
            # xccl-run puts the reason on a line of its own.
            reason = after if after.startswith(" " * 10) else ""
            more = [reason.strip()] if reason and "xccl-run: " in line else []
            return ": ".join([line.strip(), *more])
    return None


def telling_line(text):
    """The line that says why it failed, else the first that speaks of an error, else the last."""
    cause = failure(text, failed=True)
    if cause:
        return cause
    lines = text.splitlines()
    for line in lines:
        if "error" in line.lower() and not NO_CAUSE.search(line):
            return line.strip()
    for line in reversed(lines):
        if not NO_CAUSE.search(line):
            return line.strip()
    return "no output"
