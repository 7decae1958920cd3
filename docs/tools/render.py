#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Render what the documentation takes from elsewhere in the repository: docs/tools/render.py [--check] [FILE ...]

With --check nothing is written; exit status 1 if a file is not what it is made from.
"""

import argparse
import importlib
import re
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "docs/tools"))


def made(module, function, *arguments):
    """By a module beside this file, which one part may need and the others do without."""
    return lambda: getattr(importlib.import_module(module), function)(*arguments)


def between(text, name, body):
    """`text` with what stands between its two marks of this name replaced."""
    begin, end = f"<!-- {name}: rendered by docs/tools/render.py -->\n", f"<!-- end of {name} -->"
    if text.count(begin) != 1 or text.count(end) != 1:
        raise SystemExit(f"render: the marks of '{name}' are not there exactly once")
    head, rest = text.split(begin)
    return f"{head}{begin}{body}{end}{rest.split(end)[1]}"


def marked(path, name, lines):
    text = (TOP / path).read_text(encoding="utf-8")
    return between(text, name, "\n" + "\n".join(lines) + "\n\n")


# Names that RFC 2606 reserves for examples: the address where nothing is published yet.
NO_ADDRESS = re.compile(r"^https?://([^/]*\.)?example\.(org|com|net)(/|$)")


def citation():
    """CITATION.cff with the version of the tree, and with the day and the address of a version that is published."""
    version = (TOP / "libxccl/VERSION").read_text(encoding="utf-8").split()[0]
    changes = (TOP / "CHANGELOG.md").read_text(encoding="utf-8")
    url = (TOP / "ci/source-url").read_text(encoding="utf-8").strip()
    day = re.search(rf"(?m)^## {re.escape(version)} - (\d{{4}}-\d\d-\d\d)$", changes)
    lines = [f"version: {version}"]
    lines += [f'date-released: "{day[1]}"'] if day else []
    lines += [] if NO_ADDRESS.match(url) else [f'repository-code: "{url}"']
    text = (TOP / "CITATION.cff").read_text(encoding="utf-8")
    text = re.sub(r"(?m)^(date-released|repository-code): .*\n", "", text)
    return re.sub(r"(?m)^version: .*$", lambda _: "\n".join(lines), text)


RENDERED = {
    "docs/benchmarks/allreduce-h200-x4.svg": made("plot", "allreduce_svg"),
    "docs/benchmarks/allreduce-h200-x4-narrow.svg": made("plot", "allreduce_svg", True),
    "docs/benchmarks/allreduce-routes-h200-x2.svg": made("plot", "routes_svg"),
    "docs/benchmarks/allreduce-routes-h200-x2-narrow.svg": made("plot", "routes_svg", True),
    "docs/reference/xccl-h.md": made(
        "api", "page", "xccl.h and xccl_mpi.h", ["xccl.h", "xccl_mpi.h"]
    ),
    "docs/reference/mpix-h.md": made("api", "page", "mpix.h", ["mpix.h"]),
    "docs/develop/matrix.md": made("matrix", "page"),
    "libxccl/tools/man/xccl.3": made(
        "manpage",
        "page",
        "xccl",
        "one C API over the vendors' collective libraries",
        ["xccl.h", "xccl_mpi.h"],
    ),
    "libxccl/tools/man/xccl-mpix.3": made(
        "manpage", "page", "xccl-mpix", "MPI calls on streams of CUDA and HIP", ["mpix.h"]
    ),
    "CITATION.cff": citation,
    "docs/use/tuning.md": lambda: marked(
        "docs/use/tuning.md", "choices", made("choices", "lines")()
    ),
    "README.md": lambda: marked("README.md", "numbers", made("plot", "numbers")()),
}


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Render parts of the documentation.")
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    parser.add_argument("files", nargs="*", metavar="FILE", help="these alone; default: all")
    options = parser.parse_args(arguments)
    unknown = [path for path in options.files if path not in RENDERED]
    if unknown:
        parser.error(f"not rendered: {', '.join(unknown)}; there are {', '.join(RENDERED)}")
    stale = []
    for path in options.files or RENDERED:
        target, text = TOP / path, RENDERED[path]()
        if not target.exists() or target.read_text(encoding="utf-8") != text:
            stale.append(path)
            if not options.check:
                target.write_text(text, encoding="utf-8")
    if options.check and stale:
        print(f"render: not what they are made from: {', '.join(stale)}; run docs/tools/render.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
