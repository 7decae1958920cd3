# SPDX-License-Identifier: BSD-3-Clause
"""Logs of large jobs: most lines are passed over by a look for plain texts."""

import io
import itertools
import re
import time
import tracemalloc
from pathlib import Path

import pytest
from xccl_common import failure, lines
from xccl_common.tool import Tool
from xccl_doctor import logs
from xccl_doctor.main import TELLING, main, read_file

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


def long_log(path, ranks):
    """What NCCL says of so many ranks on nodes of eight, and of their calls."""
    say = "node{0}:20{1}:21 [{2}] NCCL INFO {3}\n"
    with open(path, "w") as f:
        for rank in range(ranks):
            where = rank // 8, rank, rank % 8
            init = f"comm 0x1 rank {rank} nranks {ranks} cudaDev {rank % 8} busId {rank % 8}1000"
            f.write(say.format(*where, init + " - Init START"))
            for channel in range(16):
                text = (
                    f"Channel {channel:02}/16 : {rank}[{rank % 8}] -> {rank + 1}[0] via P2P/CUMEM"
                )
                f.write(say.format(*where, text))
            for call in range(100):
                text = f"AllReduce: opCount {call} sendbuff 0x7f00 count {rank} op 0"
                f.write(say.format(*where, text))


def test_memory(tmp_path):
    """A log is kept once; it took more than six times its size."""
    long_log(tmp_path / "long.log", 800)
    size = (tmp_path / "long.log").stat().st_size
    tracemalloc.start()
    lines = read_file(str(tmp_path / "long.log"))
    facts = logs.parse(lines)
    assert failure.failure(lines) is None
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert facts.kinds == {"P2P"} and len(facts.hosts) == 800
    assert most < 1.5 * size


def test_a_log_that_is_too_long(doctor, world, monkeypatch, capsys):
    made = world("dgx-a100")
    made.file("a log", "x" * 5000)
    monkeypatch.setattr("xccl_doctor.main.MOST", 5000)
    assert doctor(made, "--log", str(made.root / "a log"))[0] == 3
    monkeypatch.setattr("xccl_doctor.main.MOST", 4999)
    tool = Tool("xccl-doctor", "0", "", str(made.prefix), str(made.prefix / "lib"))
    words = ["--sysroot", str(made.root), "--log", str(made.root / "a log")]
    assert main(words, tool) == 2
    said = capsys.readouterr().err
    assert "has more than 0 MiB" in said
    assert (
        f"grep -aiE '{TELLING}' '{made.root}/a log' | grep -av opCount | xccl-doctor --log -"
        in said
    )


@pytest.mark.parametrize("pattern", [cause.pattern for _, cause in failure.CAUSES])
def test_the_lines_that_tell(pattern):
    """What a log that is too long is cut down to has the lines that say why a job failed."""
    for variant in variants(sre_parse.parse(pattern)):
        assert re.search(TELLING, variant, re.IGNORECASE), variant


@pytest.mark.parametrize("length", [0, 1, 70, lines.BLOCK, 3 * lines.BLOCK])
def test_lines_of_a_file(length):
    """As of the text as a whole, however it is cut."""
    text = "a\nb\x0cc\n\n" + "x" * length + "\r\n" + "y z\n" * 50000 + "the end"
    for found in (lines.Lines(text), lines.Lines.read(io.StringIO(text, newline=""), "")):
        assert [found[at] for at in (0, 1, 2, 3, 4, 5, 50004, 50005)] == [
            *("a", "b", "c", "", "x" * length, "y z", "y z", "the end")
        ]
        assert len(found) == 50006 == len(text.splitlines())
        assert list(found.having(("end", "b"))) == [(1, "b"), (50005, "the end")]
    assert len(lines.Lines("")) == len(lines.Lines.read(io.StringIO(""))) == 0
