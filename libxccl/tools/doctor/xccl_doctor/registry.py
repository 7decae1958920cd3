# SPDX-License-Identifier: BSD-3-Clause
"""Every finding that there is, and how one is made from its row."""

import re
from collections import namedtuple

from . import areas, rows_hang, rows_job, rows_network, rows_software
from .rows import ERROR, WARNING

__all__ = ["ERROR", "TABLE", "WARNING", "Finding", "anchor", "finding", "plain"]

Finding = namedtuple("Finding", "id severity cause remedy anchor")

DOCS = "docs/use"

TABLE = {}
for _rows in (rows_software, rows_network, rows_job, rows_hang):
    TABLE.update(_rows.TABLE)


def plain(text):
    """A text of a row for people: names that a check fills in stand in <>."""
    return re.sub(r"\{(\w+)\}", r"<\1>", text)


def anchor(name):
    """Where the documentation says more of it."""
    return f"{DOCS}/{areas.place(name)}"


def finding(name, **details):
    """The finding of that id with its texts filled in."""
    row = TABLE[name]
    return Finding(
        name,
        row.severity,
        row.cause.format(**details),
        row.remedy.format(**details),
        anchor(name),
    )
