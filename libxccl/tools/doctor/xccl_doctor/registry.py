# SPDX-License-Identifier: BSD-3-Clause
"""Every finding that there is, and how one is made from its row."""

import re
from collections import namedtuple

from . import areas, rows_hang, rows_job, rows_network, rows_software
from .rows import ERROR, WARNING

__all__ = [
    "ERROR",
    "TABLE",
    "WARNING",
    "Finding",
    "anchor",
    "finding",
    "meaning",
    "plain",
    "remedies",
]

Finding = namedtuple("Finding", "id severity cause remedy anchor")

DOCS = "docs/use"

TABLE = {}
for _rows in (rows_software, rows_network, rows_job, rows_hang):
    TABLE.update(_rows.TABLE)


def plain(text):
    """A text of a row for people: names that a check fills in stand in <>."""
    return re.sub(r"\{(\w+)\}", r"<\1>", text)


def meaning(name):
    """What such a finding means, whatever the job."""
    row = TABLE[name]
    return row.meaning or plain(row.cause)


def remedies(name):
    """All that a check may advise there, for people."""
    remedy = TABLE[name].remedy
    return [plain(text) for text in ([remedy] if isinstance(remedy, str) else remedy.values())]


def anchor(name):
    """Where the documentation says more of it."""
    return f"{DOCS}/{areas.place(name)}"


def finding(name, remedy=None, **details):
    """The finding of that id with its texts filled in; remedy: which one of several."""
    row = TABLE[name]
    advice = row.remedy if remedy is None else row.remedy[remedy]
    return Finding(
        name,
        row.severity,
        row.cause.format(**details),
        advice.format(**details),
        anchor(name),
    )
