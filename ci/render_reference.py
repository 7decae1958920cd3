# SPDX-License-Identifier: BSD-3-Clause
"""Turn the JSON of xccl-info, on standard input, into the page of variables.

Usage: render_reference.py PAGE [--check]; with --check the page is compared, not written.
"""

import json
import sys
from pathlib import Path

HEAD = """\
---
hide:
  - toc
---
<!-- Rendered by ci/render-reference from libxccl/src/base/params.c; do not edit. -->
# Variables

Each is read once, at the first call. A value that is not allowed is an error that names the
variable; of `XCCL_MPI` it is a warning, because only tools read it. Rank 0 warns of any other name that
begins with `XCCL_`. These names are silent: those that module systems set (`XCCL_DIR`, `XCCL_HOME`,
`XCCL_BASE`, `XCCL_INC`, `XCCL_INCLUDE`, `XCCL_LIB`, `XCCL_BIN` and `XCCL_VERSION`), and those that begin
with `XCCL_SIM_`, `XCCL_ENV_` or `XCCL_TEST_`. `xccl-info -c` prints the values in force and where they come from.

An empty value is the same as none: after `export XCCL_LOG=` the default is in force.

Sizes take a number with `k`, `m` or `g`, which are powers of 1024; `KiB`, `MiB` and `GiB` are the
same. A number alone is in the unit that the table names. Options of the tools and rows of
tuning tables take sizes in the same way.
"""

# What a reader looks for, in the order in which it is needed.
GROUPS = {
    "See what happens": ("LOG", "LOG_FILE", "PROFILE", "RANGES"),
    "Find errors and hangs": ("CHECK", "TIMEOUT", "DUMP_DIR"),
    "Choose the path of collectives": ("ROUTE", "TUNE", "TABLE", "MEMORY", "MPI_GPU_AWARE"),
    "The vendor's library": ("CCL", "CCL_LIBRARY", "CCL_NATIVE", "COMM_CREATE", "COMM_POOL"),
    "Kernels and memory": (
        "DIRECT",
        "DIRECT_LINGER",
        "DIRECT_MEMORY",
        "DIRECT_COPIES",
        "DIRECT_TURNS",
        "LAUNCH",
        "GDRCOPY",
        "SCRATCH",
        "STAGING",
    ),
    "Messages, files, windows": (
        "P2P",
        "P2P_PUSH",
        "RENDEZVOUS",
        "THREADS",
        "PIPELINE",
        "PIPELINE_PIECE",
        "WINDOWS",
        "GPU_QUERY",
    ),
    "Set by modules, scripts and tools": ("SITE", "ROOT", "LOCAL_DEVICE", "MPI", "SIM"),
}

TABLE = """
## {}

| variable | meaning | takes | default |
|---|---|---|---|
"""


def row(variable):
    def cell(text):
        return text.replace("|", " \\| ")  # with room to break the line

    fallback = f"`{variable['default']}`" if variable["default"] else "none"
    return (
        f"| `{variable['name']}` | {cell(variable['meaning'])} "
        f"| {cell(variable['allowed'])} | {fallback} |\n"
    )


def main():
    page = Path(sys.argv[1])
    variables = {one["name"]: one for one in json.load(sys.stdin)["configuration"]}
    text = HEAD
    for title, names in GROUPS.items():
        text += TABLE.format(title) + "".join(row(variables.pop(f"XCCL_{name}")) for name in names)
    if variables:
        print(f"{__file__}: variables of no group: {', '.join(variables)}")
        return 1
    if sys.argv[2:] != ["--check"]:
        page.write_text(text)
    elif not page.exists() or page.read_text() != text:
        print(f"{page}: differs from what the library says; run ci/render-reference")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
