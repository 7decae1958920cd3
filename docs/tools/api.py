# SPDX-License-Identifier: BSD-3-Clause
"""Pages of the public headers: every documented declaration, with its comment, in the header's order.

The comments are Doxygen's dialect as the headers use it: @brief, @param, @return, @note, @code,
@p and ::name. An unknown command is an error, so that none is printed raw.
"""

import re
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

INCLUDE = Path(__file__).resolve().parents[2] / "libxccl/include/xccl"
NEXT = re.compile(
    r"/\*\*(?P<doc>.*?)\*/[ \t]*\n"
    r"|/\* ---- (?P<section>.*?) ---- \*/[ \t]*\n"
    r"|(?P<function>^XCCL_EXPORT [^;{]*;)"
    r"|(?P<type>^typedef [^;{]*(?:\{.*?\}[^;]*)?;)"
    r"|(?P<macro>^#define [^\n\\]*(?:\\\n[^\n\\]*)*)",
    re.DOTALL | re.MULTILINE,
)
INTERNAL = ("XCCL_EXPORT", "XCCL_API_MAGIC")  # and the guards, which end with _H


@dataclass
class Entry:
    """Declarations that share a comment: the first one's name is the heading."""

    kind: str
    names: list
    code: list
    doc: str = ""


@dataclass
class Header:
    name: str
    doc: str = ""
    entries: list = field(default_factory=list)  # of Entry, and of str: the title of a section


def comment_text(raw):
    """The lines of a comment without its stars."""
    lines = [re.sub(r"^\s*\* ?", "", line).rstrip() for line in raw.strip().splitlines()]
    return "\n".join(lines).strip()


def name_of(kind, code):
    if kind == "function":
        return re.search(r"(\w+)\s*\(", code).group(1)
    if kind == "macro":
        return re.match(r"#define\s+(\w+)", code).group(1)
    return re.search(r"(\w+)\s*;$", code).group(1)


def parse(path):
    """A Header. A declaration without a comment of its own belongs to the one before it."""
    header, doc = Header(path.name), None
    for match in NEXT.finditer(path.read_text(encoding="utf-8")):
        kind = match.lastgroup
        if kind == "doc":
            doc = comment_text(match["doc"])
            if doc.startswith("@file"):
                header.doc, doc = doc, None
            continue
        if kind == "section":
            header.entries.append(match["section"])
            continue
        name = name_of(kind, match[kind])
        # What follows on later lines moves left with the first one.
        code = re.sub(r"\n {12}", r"\n", match[kind].replace("XCCL_EXPORT ", ""))
        code = code if kind == "function" else match[kind]
        if name in INTERNAL or name.endswith("_H"):
            continue
        before = header.entries[-1] if header.entries else None
        joins = doc is None and isinstance(before, Entry)
        if joins:
            before.names.append(name)
            before.code.append(code)
        else:
            header.entries.append(Entry(kind, [name], [code], doc or ""))
        doc = None
    return header


def inline(text):
    """Doxygen's marks in running text, as Markdown."""
    parts = re.split(r"(`[^`]*`)", text)
    for number, part in enumerate(parts):
        if part.startswith("`"):
            continue
        marked = re.sub(r"@p (\*?\w+)", r"`\1`", part)
        marked = re.sub(r"(?<!\w)::(\w+)", r"`\1`", marked)
        marked = re.sub(r"(?<![\w`])((?:xccl|MPIX?_|nccl)\w*\(\))", r"`\1`", marked)
        parts[number] = re.sub(r"(?<![\w`])(XCCL_[A-Z_]+|MPI_[A-Z_]+)(?![\w`])", r"`\1`", marked)
    return "".join(parts)


def command_of(line):
    """(command, argument, text) of a line that begins with '@'."""
    match = re.match(r"@(file|brief|return|note|p|param\S*)\s+(.*)", line)
    if not match:
        raise SystemExit(f"api: unknown command in a comment: {line}")
    command, rest = match.groups()
    if command == "p":  # a sentence that begins with a name
        return ["text", "", line]
    if command.startswith("param"):
        name, _, rest = rest.partition(" ")
        return ["param", name + command[len("param") :], rest]
    return [command, "", rest]


def blocks(doc):
    """(command, argument, text) of each block; running text has the command 'text'."""
    found, in_code = [["text", "", ""]], False
    for line in doc.splitlines():
        if line.startswith("@code"):
            found.append(["code", "", ""])
            in_code = True
        elif line.startswith("@endcode"):
            found.append(["text", "", ""])
            in_code = False
        elif in_code or (line.strip() and not line.startswith("@")):
            found[-1][2] += "\n" + line
        else:
            found.append(command_of(line) if line.startswith("@") else ["text", "", ""])
    return [(command, name, text.strip("\n")) for command, name, text in found if text.strip()]


def flowing(text):
    """A paragraph on one line; a list keeps its items."""
    items = re.split(r"\n(?=\s*- )", textwrap.dedent(text))
    return "\n".join(" ".join(item.split()) for item in items).replace("\n-", "\n\n-", 1)


def described(doc):
    """Markdown of a comment."""
    params = []
    for command, name, text in blocks(doc):
        if command == "code":
            yield f"```c\n{text}\n```\n"
        elif command == "param":
            word, _, direction = name.partition("[")
            arrow = direction.rstrip("]").replace(",", ", ")
            params.append(f"| `{word}` | {arrow} | {inline(flowing(text))} |")
        elif command in ("return", "note"):
            if params:
                yield table(params)
                params = []
            title = "Returns" if command == "return" else "Note"
            yield f"**{title}:** {inline(flowing(text))}\n"
        elif command != "file":
            yield inline(flowing(text)) + "\n"
    if params:
        yield table(params)


def table(rows):
    return "\n".join(["| parameter | | meaning |", "|---|---|---|", *rows]) + "\n"


def entry_text(entry):
    yield f"### {entry.names[0]}\n"
    if entry.kind == "function" and len(entry.names) > 1:
        yield "Also: " + ", ".join(f"`{name}`" for name in entry.names[1:]) + ".\n"
    yield from described(entry.doc)
    code = "\n".join(textwrap.dedent(one) for one in entry.code)
    yield f"```c\n{code}\n```\n"


def page(title, names):
    """One page over some headers."""
    lines = [
        "<!-- SPDX-License-Identifier: BSD-3-Clause -->",
        "<!-- Rendered by docs/tools/render.py from libxccl/include/xccl; do not edit. -->",
        f"# {title}\n",
    ]
    for name in names:
        header = parse(INCLUDE / name)
        lines += [f"## {name}\n", f"`#include <xccl/{name}>`\n", *described(header.doc)]
        for entry in header.entries:
            if isinstance(entry, str):
                lines.append(f"**{entry}**\n")
            else:
                lines += entry_text(entry)
    return "\n".join(lines).rstrip() + "\n"
