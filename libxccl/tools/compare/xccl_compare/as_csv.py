# SPDX-License-Identifier: BSD-3-Clause
"""A result as comma-separated values: a row for each case, variant, collective and size."""

import csv
import io

CASE = ("name", "nodes", "ranks", "groups")
HEAD = (
    *("case", "nodes", "ranks", "groups", "variant", "coll", "bytes", "path", "verified"),
    *("launches", "us", "us_low", "us_high", "busbw_gbs", "ratio", "ratio_low", "ratio_high"),
    "transport",
)


def interval(found):
    """A median and its interval; empty cells where there is none."""
    return [found["value"], found["low"], found["high"]] if found else [None] * 3


def rows(result):
    cases = {case["name"]: [case[key] for key in CASE] for case in result["cases"]}
    for one in result["results"]:
        yield [
            *cases[one["case"]],
            *(one[key] for key in ("variant", "coll", "bytes", "path")),
            "yes" if one["verified"] else "no",
            len(one["samples_us"]),
            *interval(one["us"]),
            one["busbw_gbs"],
            *interval(one["ratio"]),
            one.get("transport"),
        ]


def text(result):
    """By RFC 4180, but with the line ends of Unix."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(HEAD)
    writer.writerows(rows(result))
    return out.getvalue()
