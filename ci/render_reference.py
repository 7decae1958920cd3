# SPDX-License-Identifier: BSD-3-Clause
"""Turn the JSON of xccl-info, on standard input, into the page of variables.

Usage: render_reference.py PAGE [--check]; with --check the page is compared, not written.
"""

import json
import sys
from pathlib import Path

HEAD = """\
<!-- Rendered by ci/render-reference from libxccl/src/base/params.c; do not edit. -->
# Variables

Each is read once, at the first call. A name that begins with `XCCL_` and is not here, or a value
that is not allowed, is an error that names it. `xccl-info -c` prints the values in force and where
they come from.

| variable | takes | default | meaning | read by |
|---|---|---|---|---|
"""


def row(variable):
    def cell(text):
        return text.replace("|", "\\|")

    fallback = f"`{variable['default']}`" if variable["default"] else "none"
    return (
        f"| `{variable['name']}` | {cell(variable['allowed'])} | {fallback} "
        f"| {cell(variable['meaning'])} | {variable['read_by']} |\n"
    )


def main():
    page = Path(sys.argv[1])
    text = HEAD + "".join(map(row, json.load(sys.stdin)["configuration"]))
    if sys.argv[2:] != ["--check"]:
        page.write_text(text)
    elif not page.exists() or page.read_text() != text:
        print(f"{page}: differs from what the library says; run ci/render-reference")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
