# SPDX-License-Identifier: BSD-3-Clause
"""Check what no formatter knows: the rules of layout and of size that CONTRIBUTING.md states."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
SOURCES = (".c", ".h", ".cu", ".py", ".sh", ".lua")
MAX_FILE, MAX_FUNCTION = 800, 60

# The folders of libxccl/src in the order in which a call travels; each includes only from those
# after it. device/, kernels/ and base/ serve all of them: device/ may use base/, and the others none.
TRAVEL = [
    *(
        "entries",
        "streams",
        "calls",
        "ops",
        "transfers",
        "observe",
        "paths",
        "tables",
        "decide",
        "direct",
        "data",
        "comms",
        "mpi",
    ),
    *("api", "backends", "vendor"),
]
MAY_INCLUDE = {
    **{name: {*TRAVEL[place:], "device", "kernels", "base"} for place, name in enumerate(TRAVEL)},
    "device": {"device", "base"},
    "kernels": {"kernels"},
    "base": {"base"},
}
# decide/ is pure: no MPI and no device.
MAY_INCLUDE["decide"] = {"decide", "base"}
GETENV_ONLY_IN = tuple(
    f"libxccl/src/base/{name}.c" for name in ("params", "environment", "launch")
)


def tracked():
    """Paths of the tree, relative to its top: in git, or about to be."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=TOP,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return [path for path in listed.split("\0") if path and (TOP / path).is_file()]


def without_comments(text):
    """C with its comments blanked, line numbers kept."""
    blank = re.compile(r'"(?:\\.|[^"\\\n])*"|/\*.*?\*/|//[^\n]*', re.DOTALL)

    def keep(match):
        part = match.group()
        return part if part.startswith('"') else re.sub(r"[^\n]", " ", part)

    return blank.sub(keep, text)


def check_layers(path, text):
    """Includes of libxccl/src go downwards only; the simulation uses nothing of the library."""
    parts = Path(path).parts
    inside = parts[:2] == ("libxccl", "src") and len(parts) > 3
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*[<"]([^">]+)[">]', line)
        if not match:
            continue
        target = match.group(1)
        folder = target.split("/")[0] if "/" in target else ""
        # Kernels it runs, as a device does.
        outside = folder in MAY_INCLUDE and folder != "kernels"
        if parts[:2] == ("libxccl", "sim") and outside:
            yield f"{path}:{number}: the simulation stands outside the library: includes {target}"
        if inside and parts[2] not in MAY_INCLUDE:
            yield f"{path}:1: folder {parts[2]} has no place in ci/check_tree.py's order"
            return
        if inside and folder in MAY_INCLUDE and folder not in MAY_INCLUDE[parts[2]]:
            yield f"{path}:{number}: {parts[2]}/ must not include from {folder}/ ({target})"
        if inside and target == "mpi.h" and parts[2] in ("decide", "api", "backends", "vendor"):
            yield f"{path}:{number}: {parts[2]}/ must not know MPI"


def check_getenv(path, text):
    """Each variable of ours is a row of params.c; those of others are read in environment.c."""
    if path.startswith("libxccl/src/") and path not in GETENV_ONLY_IN:
        for number, line in enumerate(text.splitlines(), 1):
            if re.search(r"\b(secure_)?getenv\s*\(", line):
                yield f"{path}:{number}: getenv; use xc_params(), or what base/ has for others' variables"


def c_functions(text):
    """Line ranges of C functions: clang-format puts only their braces into column 0."""
    start = None
    for number, line in enumerate(text.splitlines(), 1):
        if line == "{":
            start = number
        elif line == "}" and start:
            yield start, number
            start = None


def sh_functions(text):
    start = None
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r"\w[\w-]*\(\) *[{(]", line):
            start = number
        elif line in ("}", ")") and start:
            yield start, number
            start = None


def py_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.lineno, node.end_lineno


def check_size(path, text):
    """A file is one step, and so is a function."""
    lines = text.count("\n")
    if lines > MAX_FILE:
        yield f"{path}: {lines} lines; a file has at most {MAX_FILE}"
    kind = Path(path).suffix
    find = {".py": py_functions, ".c": c_functions, ".h": c_functions, ".cu": c_functions}
    for start, end in find.get(kind, sh_functions)(text):
        if end - start > MAX_FUNCTION:
            yield f"{path}:{start}: a function of {end - start} lines; at most {MAX_FUNCTION}"


def check_licence(path, text):
    """Every source file says under which licence it is."""
    if "SPDX-License-Identifier: BSD-3-Clause" not in text[:400]:
        yield f"{path}:1: no line 'SPDX-License-Identifier: BSD-3-Clause'"


def check_paths(path, text):
    """No path of the machine on which this was written."""
    homes = {str(TOP), os.path.expanduser("~")} - {"/", ""}
    pattern = re.compile("|".join(rf"(?<![\w.-]){re.escape(home)}/" for home in sorted(homes)))
    for number, line in enumerate(text.splitlines(), 1):
        if pattern.search(line) or re.search(r"(?<![\w.-])/(home|Users)/[a-z0-9_]+/", line):
            yield f"{path}:{number}: a path of one machine"


def is_source(path, text):
    return path.endswith(SOURCES) or text.startswith("#!")


def problems_of(path):
    try:
        text = (TOP / path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return  # not a text: a picture
    if not path.startswith(("docs/", "site-configs/")):
        yield from check_paths(path, text)
    if not is_source(path, text):
        return
    yield from check_size(path, text)
    yield from check_licence(path, text)
    if path.endswith((".c", ".h")):
        code = without_comments(text)
        yield from check_layers(path, code)
        yield from check_getenv(path, code)


def check_test_names(paths):
    """pytest takes the files of folders that are no packages by their names alone."""
    seen = {}
    for path in paths:
        name = Path(path).name
        if re.fullmatch(r"test_\w+\.py", name):
            first = seen.setdefault(name, path)
            if first != path:
                yield f"{path}:1: the same name as {first}, which pytest takes for the same module"


def main():
    paths = tracked()
    problems = [problem for path in paths for problem in problems_of(path)]
    problems += check_test_names(paths)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
