# SPDX-License-Identifier: BSD-3-Clause
"""Manual pages of the public headers (section 3), from the comments that docs/tools/api.py reads."""

import re
import textwrap

import api

MARK = '.\\" Rendered by docs/tools/render.py from libxccl/include/xccl; do not edit.'


def roff(text):
    """@p text as running text of roff."""
    text = re.sub(r"@p (\*?\w+)", r"\1", text)
    text = re.sub(r"(?<!\w)::(\w+)", r"\1", text).replace("`", "")
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"(?m)^(['.])", r"\\&\1", text)


def code(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return ".nf\n" + re.sub(r"(?m)^(['.])", r"\\&\1", text) + "\n.fi"


def paragraphs(text):
    """Running text, with the items of a list as items."""
    for line in api.flowing(text).splitlines():
        item = re.match(r"\s*- (.*)", line)
        yield f".IP \\(bu 2\n{roff(item[1])}" if item else roff(line) if line else ".PP"


def described(doc):
    for command, name, text in api.blocks(doc):
        if command == "code":
            yield code(textwrap.dedent(text))
        elif command == "param":
            word, _, direction = name.partition("[")
            arrow = f" ({direction.rstrip(']').replace(',', ', ')})" if direction else ""
            yield f'.TP\n.IR {word} "{arrow}"\n{roff(api.flowing(text))}'
        elif command in ("return", "note"):
            yield f".PP\n{'Returns' if command == 'return' else 'Note'}: {roff(api.flowing(text))}"
        elif command != "file":
            yield ".PP"
            yield from paragraphs(text)


def page(name, title, headers):
    """The page @p name over some headers; the version is filled in where it is installed."""
    lines = [
        '.\\" SPDX-License-Identifier: BSD-3-Clause',
        MARK,
        f'.TH {name.upper()} 3 "" "xccl @PROJECT_VERSION@" "Library Functions"',
        f".SH NAME\n{name} \\- {roff(title)}",
        ".SH SYNOPSIS\n.nf",
        *(f"#include <xccl/{header}>" for header in headers),
        '.fi\n.PP\nLink with the flags of\n.BR "pkg\\-config \\-\\-cflags \\-\\-libs xccl" .',
    ]
    for header in map(api.parse, (api.INCLUDE / name for name in headers)):
        lines += [f".SH {header.name.upper()}", *described(header.doc)]
        for entry in header.entries:
            if isinstance(entry, str):
                lines.append(f".SS {roff(entry)}")
                continue
            lines.append(f".SS {entry.names[0]}")
            lines.append(code("\n".join(textwrap.dedent(one) for one in entry.code)))
            lines += described(entry.doc)
    lines.append(".SH SEE ALSO\n.BR xccl (7),\n.BR xccl\\-info (1)")
    return "\n".join(lines) + "\n"
