# SPDX-License-Identifier: BSD-3-Clause
"""Each message that docs/use/troubleshooting.md quotes is still what some source file says."""

import re
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
PAGE = TOP / "docs/use/troubleshooting.md"
ANY = "\0"  # what differs from case to case: <...> on the page, %d or $name in a source

LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
GAP = re.compile(r"\s*(?:PRI\w+\s*)?")


def c_strings(text):
    """The string literals of C, adjacent ones joined."""
    joined, end = None, 0
    for match in LITERAL.finditer(text):
        if joined is not None and GAP.fullmatch(text, end, match.start()):
            joined += match.group(1)
        else:
            if joined is not None:
                yield joined
            joined = match.group(1)
        end = match.end()
    if joined is not None:
        yield joined


def normal_c(text):
    text = re.sub(r"%[-+ #0]*(?:\d+|\*)?(?:\.(?:\d+|\*))?(?:hh|h|ll|l|z|j|t)?[a-zA-Z]", ANY, text)
    return text.replace('\\"', '"').replace("%%", "%").replace("\\n", "")


def lua_messages(text):
    """What a module says: literals joined by "..", with what stands between them."""
    for call in re.findall(r"Lmod(?:Error|Message)\((.*?)\)\n", text, re.DOTALL):
        words = call.split('"')
        yield "".join(
            word if number % 2 else ANY * bool(re.search(r"\w", word))
            for number, word in enumerate(words)
        )


def said():
    """Every message of the library, the simulation, the tools, the modules and the scripts."""
    for path in (TOP / "libxccl").rglob("*.c"):
        if "test" not in path.relative_to(TOP).parts:
            yield from map(normal_c, c_strings(path.read_text(encoding="utf-8")))
    for path in (TOP / "modulefiles").rglob("*.lua"):
        yield from lua_messages(path.read_text(encoding="utf-8"))
    for script in ("libxccl/tools/xccl-run", "libxccl/tools/run/launch.sh", "env/xccl.sh"):
        for match in LITERAL.finditer((TOP / script).read_text(encoding="utf-8")):
            text = re.sub(r"\$(?:\w+|\{[^}]*\}|\([^)]*\))", ANY, match.group(1))
            yield f"xccl: {text}" if script.startswith("env") else text


def quoted():
    for block in re.findall(r"^```text\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE):
        yield from block.splitlines()


@pytest.fixture(scope="module")
def sources():
    return [re.sub(f"{ANY}+", ANY, one) for one in said()]


def normal(line):
    """A quoted message with its parts in <...> replaced; XCCL_TIMEOUT=<seconds> is printed so."""
    kept = line.replace("XCCL_TIMEOUT=<seconds>", "XCCL_TIMEOUT=\1seconds\2")
    return re.sub(f"{ANY}+", ANY, re.sub(r"<[^>]*>", ANY, kept)).translate({1: "<", 2: ">"})


def test_there_are_many():
    assert len(list(quoted())) > 25


@pytest.mark.parametrize("line", list(quoted()))
def test_is_said(line, sources):
    assert len(line.replace("<", "")) > 20
    assert any(normal(line) in source for source in sources), line


def test_others_are_not(sources):
    """The comparison can fail: a word more and it does."""
    line = normal("libcuda.so.1 was not found: no NVIDIA driver anywhere")
    assert not any(line in source for source in sources)
