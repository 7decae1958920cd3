# SPDX-License-Identifier: BSD-3-Clause
"""Logs of large jobs: most lines are passed over by a look for plain texts."""

import itertools
import time
from pathlib import Path

import pytest
from xccl_common import failure
from xccl_doctor import logs

try:
    from re import _parser as sre_parse
except ImportError:  # Python before 3.11
    import sre_parse

GAP = "\0"  # something that is not known


def variants(items):
    """What matches may look like, with a gap for each part that is not plain text."""
    parts = []
    for code, argument in items:
        name = str(code)
        if name == "LITERAL":
            parts.append([chr(argument)])
        elif name == "AT":
            parts.append([""])
        elif name == "SUBPATTERN":
            parts.append(variants(argument[-1]))
        elif name == "BRANCH":
            parts.append([text for branch in argument[1] for text in variants(branch)])
        elif name == "IN" and all(str(kind) == "LITERAL" for kind, _ in argument):
            parts.append([chr(letter) for _, letter in argument])
        elif name in ("MAX_REPEAT", "MIN_REPEAT") and argument[:2] == (0, 1):
            parts.append(["", *variants(argument[2])])
        else:
            parts.append([GAP])
    return ["".join(choice) for choice in itertools.product(*parts)]


EXPRESSIONS = [
    *[(name, texts, expression.pattern) for name, texts, expression in logs.EXPRESSIONS],
    *[(cause.pattern, texts, cause.pattern) for texts, cause in failure.CAUSES],
    ("speaks", logs.SPEAKING, logs.SPEAKS.pattern),
    ("alone", ("# xccl-perf ", "ank"), logs.ALONE.pattern),
    ("init", logs.CONNECTED, logs.INIT.pattern),
    ("channel", logs.CONNECTED, logs.CHANNEL.pattern),
]


@pytest.mark.parametrize(("texts", "pattern"), [row[1:] for row in EXPRESSIONS])
def test_texts(texts, pattern):
    """No line that an expression matches is passed over: each match holds one of its texts."""
    for variant in variants(sre_parse.parse(pattern)):
        assert any(text in variant for text in texts), variant


def test_same_facts():
    """Lines far apart are all found, in their order, by the expressions alone as well."""
    lines = []
    for sample in sorted(Path(__file__).with_name("samples").glob("*.log")):
        lines += sample.read_text().splitlines()
        lines += [f"step {i} of the program" for i in range(700)]
    found = logs.parse("\n".join(lines))
    assert found.lines == len(lines) and found.speaks
    for name, _, expression in logs.EXPRESSIONS:
        expected = []
        for match in filter(None, map(expression.search, lines)):
            groups = tuple(group for group in match.groups() if group is not None)
            value = groups[0] if len(groups) == 1 else groups
            expected += [value] if value not in expected else []
        assert getattr(found, name) == expected, name


def test_time():
    """A log of 5 MB takes a fraction of a second; with each expression on each line it took nine."""
    line = (
        "node001:20000:21000 [0] NCCL INFO AllReduce: opCount {} sendbuff 0x7f00 count 64 op 0\n"
    )
    text = "".join(line.format(i) for i in range(60000))
    begin = time.process_time()
    assert logs.parse(text).speaks and failure.failure(text) is None
    assert time.process_time() - begin < 3
