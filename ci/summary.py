# SPDX-License-Identifier: BSD-3-Clause
"""Add up JUnit reports: the slowest tests, the skips with their reasons, and one closing line.

Usage: summary.py REPORT.xml ...; the exit status is 0 only if tests ran and none failed.

Beside each REPORT.xml lies REPORT.status with the exit status of what wrote it. These count as
failures as well: a report that is missing, cannot be read or has no tests, a status that is missing,
and one that tells of more than the failures in the report: the tests never came to an end.

REPORT-again.xml, if there is one, is of the tests that failed in REPORT.xml, run once more. One that
passes there is unsteady, and no failure.
"""

import sys
from pathlib import Path
from xml.etree import ElementTree

SLOWEST = 10
# Exit statuses that say: all tests ran, and some failed.
FAILURES = {"ctest": 8, "pytest": 1}


def outcome(case):
    """One of passed, failed, skipped, and the reason of a skip."""
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed", ""
    skipped = case.find("skipped")
    if skipped is not None or case.get("status") in ("notrun", "disabled"):
        reason = (skipped.get("message") or skipped.text or "") if skipped is not None else ""
        return "skipped", " ".join(reason.split()) or reason_in_output(case)
    return "passed", ""


def reason_in_output(case):
    """ctest knows only that a test skipped; by convention its last line of output says why."""
    lines = (case.findtext("system-out") or "").strip().splitlines()
    return lines[-1] if lines else "no reason given"


def read_report(path):
    """All cases of one report as (name, outcome, reason, seconds)."""
    report = Path(path).stem
    try:
        root = ElementTree.parse(path).getroot()
    except (OSError, ElementTree.ParseError) as error:
        return [(f"{report}: no report: {error}", "failed", "", 0.0)]
    cases = []
    for case in root.iter("testcase"):
        name = "::".join(part for part in (case.get("classname"), case.get("name")) if part)
        if report.startswith("ctest"):
            name = case.get("name")
        cases.append((f"{report}: {name}", *outcome(case), float(case.get("time") or 0)))
    return cases or [(f"{report}: no test was run", "failed", "", 0.0)]


def wrong_status(path, cases):
    """What the exit status says that the report does not; empty if nothing."""
    try:
        status = int(path.with_suffix(".status").read_text())
    except (OSError, ValueError) as error:
        return f"no exit status: {error}"
    failed = any(outcome == "failed" for _, outcome, _, _ in cases)
    if status == 0 or (failed and status == FAILURES.get(path.stem.split("-")[0])):
        return ""
    return f"exit status {status}" + ("" if failed else ", and no failure in the report")


def passed_again(path):
    """Names, as in the report at path, of those that failed there and then passed."""
    again = path.with_name(f"{path.stem}-again.xml")
    if not again.exists():
        return set()
    cases = read_report(again)
    if wrong_status(again, cases):
        return set()
    names = {name for name, outcome, _, _ in cases if outcome == "passed"}
    return {name.replace(again.stem, path.stem, 1) for name in names}


def read(path):
    """All cases of one report, and one more where its exit status tells of another failure."""
    path = Path(path)
    cases = read_report(path)
    wrong = wrong_status(path, cases)
    again = passed_again(path)
    cases = [
        (name, "unsteady" if outcome == "failed" and name in again else outcome, reason, seconds)
        for name, outcome, reason, seconds in cases
    ]
    return [*cases, (f"{path.stem}: {wrong}", "failed", "", 0.0)] if wrong else cases


def show(cases):
    """Print the summary and return the exit status."""
    kinds = ("passed", "failed", "skipped", "unsteady")
    names = {kind: [c for c in cases if c[1] == kind] for kind in kinds}
    print("\nSlowest:")
    for name, _, _, seconds in sorted(cases, key=lambda c: -c[3])[:SLOWEST]:
        print(f"  {seconds:7.1f} s  {name}")
    if names["skipped"]:
        print("\nSkipped:")
        for name, _, reason, _ in names["skipped"]:
            print(f"  {name}: {reason}")
    if names["failed"]:
        print("\nFailed:")
        for name, *_ in names["failed"]:
            print(f"  {name}")
    if names["unsteady"]:
        print(
            "\nUnsteady, failed among others and then passed by themselves; see what they printed:"
        )
        for name, *_ in names["unsteady"]:
            print(f"  {name}")
    told = [kind for kind in kinds if names[kind] or kind != "unsteady"]
    print("\n" + ", ".join(f"{len(names[kind])} {kind}" for kind in told))
    return 0 if names["passed"] and not names["failed"] else 1


if __name__ == "__main__":
    sys.exit(show([case for path in sys.argv[1:] for case in read(path)]))
