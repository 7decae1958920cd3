# SPDX-License-Identifier: BSD-3-Clause
"""The page of what was tried, from docs/develop/matrix.yaml: every cell of MPI, library, installer and site."""

import itertools
import json
import re
from pathlib import Path

import yaml

TOP = Path(__file__).resolve().parents[2]
DATA = "docs/develop/matrix.yaml"
AXES = ("mpi", "library", "installer", "site")
HOW = ("run", "simulated")
RAW = "docs/benchmarks"
# How raw output names each MPI: xccl-perf's head, MPICH's tests, a file's first line, `mpich43 2 mpi_random ...`.
NAMES = {
    "openmpi": r'Open MPI v?4\.|"mpi": "openmpi"|^openmpi \d',
    "openmpi5": r"Open MPI v?5\.|^openmpi5 \d",
    "mpich": r'\bMPICH [34]\.|"mpi": "mpich"|^mpich\d* \d',
    "mpiabi": r"\bMPICH 5\.|^mpiabi \d",
    "craympich": r"(?i)\bcray[ -]?mpich\b",
}
HEAD = f"""# What was tried

Made by `docs/tools/render.py` from `{DATA}`; do not edit.

A cell is an MPI, a vendor library, an installer and a site. It is one of these:

- **run**: on real devices. Its proof is raw output.
- **simulated**: MPI programs on the [simulated accelerator](simulation.md). Its proof is a test.
- **not tried**: nobody ran it, or nobody kept a proof.

"""


def read():
    return yaml.safe_load((TOP / DATA).read_text(encoding="utf-8"))


def axes(data):
    """The values of each axis, by name, with their titles."""
    sites = {path.parent.name: "" for path in sorted(TOP.glob("site-configs/*/site.yaml"))}
    titles = {
        name: json.loads((TOP / f"site-configs/{name}/site.json").read_text())["title"]
        for name in sites
    }
    own = {axis: data[axis] for axis in AXES if axis != "site"}
    return {**own, "site": {**titles, **data["machine"]}}


def cells(data):
    """{(mpi, library, installer, site): entry} of all that were tried."""
    return {tuple(entry[axis] for axis in AXES): entry for entry in data["cells"]}


def missing_proof(proof):
    """Why there is no such proof, or an empty string."""
    path, _, function = proof.partition("::")
    if not (TOP / path).is_file():
        return f"there is no {path}"
    text = (TOP / path).read_text(encoding="utf-8")
    if function and not re.search(rf"^def {re.escape(function)}\(", text, re.M):
        return f"{path} has no {function}"
    return ""


def wrong_kind(entry):
    """A simulated run is no run, and a file is no test."""
    for proof in entry["proof"]:
        if entry["how"] == "simulated" and "::test_" not in proof:
            return f"{proof} is no test"
        if entry["how"] == "run" and not proof.startswith("docs/benchmarks/"):
            return f"{proof} is no raw output below docs/benchmarks"
        if entry["how"] == "run" and '"simulated": "' in (TOP / proof).read_text():
            return f"{proof} was made on simulated devices"
    return ""


def problems_of(entry, known):
    wrong = [f"unknown {axis}" for axis in AXES if entry.get(axis) not in known[axis]]
    wrong += [f"unknown 'how': {entry.get('how')}"] if entry.get("how") not in HOW else []
    wrong += ["no proof"] if not entry.get("proof") else []
    wrong += filter(None, map(missing_proof, entry.get("proof", [])))
    return wrong or list(filter(None, [wrong_kind(entry)]))


def runs():
    """{(folder, MPI): a file} of all raw output, for each MPI that it names; None where a folder's names none."""
    found = {}
    for folder in sorted(path for path in (TOP / RAW).iterdir() if path.is_dir()):
        named = {}
        for path in (path for path in sorted(folder.rglob("*")) if path.is_file()):
            text = path.read_text(encoding="utf-8", errors="replace")
            for mpi, pattern in NAMES.items():
                if re.search(pattern, text, re.M):
                    named.setdefault((folder.name, mpi), path.relative_to(TOP).as_posix())
        found |= named or {(folder.name, None): f"{RAW}/{folder.name}"}
    return found


def uncited(data):
    """Raw output of an MPI of which no cell says that it was run."""
    cited = {
        (proof.split("/")[2], entry["mpi"])
        for entry in data["cells"]
        for proof in entry["proof"]
        if entry["how"] == "run" and proof.startswith(f"{RAW}/")
    }
    left = {key: path for key, path in runs().items() if key[0] not in data["elsewhere"]}
    return [
        f"{path}: no cell that was run with {mpi or 'an MPI'} has a proof in {RAW}/{folder}"
        for (folder, mpi), path in left.items()
        if (folder, mpi) not in cited
    ]


def problems(data):
    """All that is wrong with the claims, as sentences."""
    known = axes(data)
    found = [
        f"{'/'.join(str(entry.get(axis)) for axis in AXES)}: {wrong}"
        for entry in data["cells"]
        for wrong in problems_of(entry, known)
    ]
    if not found and len(cells(data)) != len(data["cells"]):
        found.append("a cell is named twice")
    found += [f"sites: {row}" for row in data["sites"] if set(row) != {"what", "proof"}]
    proofs = (proof for row in data["sites"] for proof in row["proof"])
    return found + list(filter(None, map(missing_proof, proofs)))


def link(proof):
    path = proof.partition("::")[0]
    if path.startswith("docs/"):
        return f"[`{path[5:]}`](../{path[5:]})"
    return f"`{proof}`"


def cell(entry):
    if entry is None:
        return "not tried"
    note = f", {entry['note']}" if "note" in entry else ""
    return f"**{entry['how']}**{note}"


def table(data, site, tried):
    """One site: a row for each MPI and library of which anything was tried, then the others at once."""
    known = axes(data)
    rows = [f"| MPI | library | {' | '.join(known['installer'].values())} |"]
    rows += ["|---" * (2 + len(known["installer"])) + "|"]
    left = {}
    for mpi, library in itertools.product(known["mpi"], known["library"]):
        found = [tried.get((mpi, library, installer, site)) for installer in known["installer"]]
        if any(found):
            words = " | ".join(map(cell, found))
            rows.append(f"| {known['mpi'][mpi]} | {known['library'][library]} | {words} |")
        else:
            left.setdefault(known["mpi"][mpi], []).append(known["library"][library])
    rows += ["", "Not tried here, by any installer:", ""]
    for mpi, libraries in left.items():
        whole = len(libraries) == len(known["library"])
        rows.append(f"- {mpi} with {'any library' if whole else ', '.join(libraries)}")
    return [*rows, ""]


def proofs(data, known):
    rows = ["| cell | proof |", "|---|---|"]
    for entry in data["cells"]:
        name = ", ".join(known[axis][entry[axis]] for axis in AXES)
        rows.append(f"| {name}: {entry['how']} | {', '.join(map(link, entry['proof']))} |")
    return rows


def systems(data):
    """On which systems the tests ran; by hand, as the rows say when and what."""
    rows = [
        "## Systems",
        "",
        "| system | tools and MPIs | what ran | result |",
        "|---|---|---|---|",
    ]
    for row in data["systems"]:
        rows.append(f"| {row['name']} | {row['with']} | {row['ran']} | {row['result']} |")
    return [*rows, "", "More of these runs: [results](results.md#other-systems).", ""]


def by_abi(data):
    """Which other libraries the tests ran with; by hand."""
    rows = [
        "## MPI libraries by their ABI",
        "",
        "| library | what ran | result |",
        "|---|---|---|",
    ]
    rows += [f"| {row['name']} | {row['ran']} | {row['result']} |" for row in data["by_abi"]]
    return [
        *rows,
        "",
        "What failed, and why: [results](results.md#mpi-libraries-by-their-abi).",
        "",
    ]


def page():
    data = read()
    known, tried = axes(data), cells(data)
    total = 1
    for axis in AXES:
        total *= len(known[axis])
    count = {how: sum(entry["how"] == how for entry in data["cells"]) for how in HOW}
    lines = [
        f"Of {total} cells {count['run']} were run, {count['simulated']} simulated, and "
        f"{total - len(tried)} not tried.",
        "",
    ]
    sites = list(dict.fromkeys(key[3] for key in tried))
    for site in sites:
        lines += [f"## {known['site'][site]}", "", *table(data, site, tried)]
    others = ", ".join(title for site, title in known["site"].items() if site not in sites)
    lines += ["## All other sites", "", f"No cell was tried at: {others}.", ""]
    lines += ["What the tests do for each of them, without a device:", ""]
    lines += [f"- {row['what']} {', '.join(map(link, row['proof']))}" for row in data["sites"]]
    lines += ["", *systems(data), *by_abi(data), "## Proofs", "", *proofs(data, known)]
    lines += [
        "",
        "oneCCL serves the C API only; `api.collectives.oneccl.real` runs the real library on host",
    ]
    lines += ["memory, where it is installed. [Vendor libraries](../reference/libraries.md)"]
    return HEAD + "\n".join(lines) + "\n"
