# SPDX-License-Identifier: BSD-3-Clause
"""Figures that others have published, each with the words that it was taken from."""

import glob
import json
import os

from xccl_common.options import Wrong, check_choice

from . import words

SCHEMA = "xccl-published-1"


def folder(prefix):
    return os.path.join(prefix, "share/xccl/published")


def load(prefix):
    """{name: set of figures}."""
    out = {}
    for path in sorted(glob.glob(os.path.join(folder(prefix), "*.json"))):
        try:
            with open(path, encoding="utf-8") as f:
                value = json.load(f)
        except (OSError, ValueError) as error:
            raise Wrong(f"{path}: cannot be read ({error}); install xccl again") from error
        if value.get("schema") != SCHEMA:
            raise Wrong(f"{path}: no published figures (schema {value.get('schema')})")
        out[value["name"]] = value
    return out


def choose(prefix, name):
    """The set of this name; None for none."""
    if name is None:
        return None
    every = load(prefix)
    check_choice("set of published figures", name, sorted(every))
    return every[name]


def amount(figures):
    """How many figures can be drawn; the text may have them in pictures only."""
    number = len(figures["points"])
    return words.count(number, "figure") if number else "nothing to draw: figures only in pictures"


def busbw(point):
    """GB/s, as the text gives it, or by nccl-tests' formula from its time."""
    if point.get("busbw_gbs") is not None:
        return point["busbw_gbs"]
    if point.get("us") and point["coll"] == "allreduce":
        n = point["ranks"]
        return point["bytes"] / point["us"] / 1e3 * 2 * (n - 1) / n
    return None


def of_case(figures, case, coll):
    """Points for this many ranks on this many nodes."""
    if figures is None or case.get("groups"):
        return []
    return [
        p
        for p in figures["points"]
        if p["coll"] == coll and p["ranks"] == case["ranks"] and p["nodes"] == case["nodes"]
    ]
