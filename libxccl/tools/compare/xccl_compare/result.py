# SPDX-License-Identifier: BSD-3-Clause
"""What was measured, as one JSON file: every sample, and what follows from it."""

import json
import platform
import re
import sys

from xccl_common.options import Wrong

from . import launch, peaks, site, stats, ucc, words

SCHEMA = "xccl-compare-1"
SHOWN = ("SLURM_JOB_ID", "SLURM_JOB_NODELIST", "SLURM_JOB_PARTITION", "LOADEDMODULES")


def merged(runs):
    """(facts that all launches agree on, sentences on those that differ)."""
    every, notes = [facts for *_, facts in runs.values() if facts], []
    if not every:
        return {}, notes
    out = {key: every[0][key] for key in ("mpi", "mpi_family", "machine", "simulated", "type")}
    for key, what in (
        ("mpi", "the MPI library"),
        ("machine", "the machine"),
        ("type", "the type"),
    ):
        if any(facts[key] != every[0][key] for facts in every):
            notes.append(f"{what} was not the same in all launches")
    libraries = [facts["ccl"] for facts in every if facts["ccl"]]
    out["ccl"] = libraries[0] if libraries else None
    if any(library != out["ccl"] for library in libraries):
        notes.append("the vendor's library was not the same in all launches")
    ranks = [rank for facts in every for rank in facts["ranks"]]
    out["hosts"] = sorted({rank["host"] for rank in ranks})
    out["devices"] = sorted({rank["device_name"] for rank in ranks if "device_name" in rank})
    return out, notes


def gpu_aware(session):
    """Whether MPI took device memory itself on route mpi; None: no launch says so."""
    paths = {
        row["path"]
        for one, rows, _ in session.runs.values()
        if one.variant.route == "mpi"
        for row in rows
    }
    if "mpi-staged" in paths:
        return False
    return True if "mpi" in paths else None


def case_of(session, case):
    """The case, with the nodes and ranks that the launcher gave it."""
    out = {"name": case.name, "nodes": case.nodes, "groups": case.groups}
    out["ranks"] = case.nodes * case.per_node if case.nodes else None
    placed = next(
        (f["ranks"] for one, _, f in session.runs.values() if f and one.case == case), None
    )
    if placed:
        out["nodes"] = len({rank["host"] for rank in placed})
        out["ranks"] = len(placed)
    elif out["ranks"] is None and session.probed:
        out["nodes"] = len({rank["host"] for rank in session.probed["ranks"]})
        out["ranks"] = len(session.probed["ranks"])
    return out


def gather(session):
    """{(case, variant, coll, bytes): {round: row}}, and the rows of launches for verification."""
    timed, apart = {}, {}
    for one, rows, _ in session.runs.values():
        if (one.case.name, one.variant.name) in session.wrong:
            continue  # right before, wrong now: none of its times is worth to be shown
        for row in rows:
            key = (one.case.name, one.variant.name, row["coll"], row["bytes"])
            (apart if one.round == 0 else timed).setdefault(key, {})[one.round] = row
    return timed, apart


def entry(key, rows, apart, bus):
    case, variant, coll, size = key
    checks = [row for part in (rows, apart) for row in part.values()]
    paths = list(dict.fromkeys(row["path"] for row in checks if row["path"]))
    return {
        "case": case,
        "variant": variant,
        "coll": coll,
        "bytes": size,
        "path": "+".join(paths) or None,
        "verified": any(row["verified"] for row in checks)
        and not any(row["verified"] is False for row in checks),
        "bus": bus,
        "samples_us": {str(number): row["us"] for number, row in sorted(rows.items())},
    }


def note_transports(session, entries, cases):
    """Adds who served the calls of UCC's routes, as UCC itself traced it in the launch that is not timed."""
    routes = {variant.name: variant.route for variant in session.plan.variants}
    sizes = {case["name"]: group_size(case) or 1 for case in cases}
    known = {}
    for one, *_ in session.runs.values():
        if one.round != 0 or one.variant.route not in ucc.ROUTES:
            continue
        place = (one.case.name, one.variant.name)
        rows = [(e["coll"], e["bytes"]) for e in entries if (e["case"], e["variant"]) == place]
        found = ucc.served(session.said(one), sizes[one.case.name], rows, session.program.name)
        for key, transport in found.items():
            known[(*place, *key)] = known.get((*place, *key)) or transport
    for one in entries:
        key = tuple(one[name] for name in ("case", "variant", "coll", "bytes"))
        one["transport"] = known.get(key)
        one["as_named"] = ucc.as_named(routes[one["variant"]], one["transport"])


def summarise(entries, base):
    """Adds medians, bandwidths and ratios to the base; a ratio is taken within each round."""
    table = {(e["case"], e["variant"], e["coll"], e["bytes"]): e for e in entries}
    for one in entries:
        middle = stats.median_interval(list(one["samples_us"].values()))
        one["us"] = dict(middle._asdict())
        one["busbw_gbs"] = one["bytes"] * one["bus"] / middle.value / 1e3 if middle.value else None
        other = table.get((one["case"], base, one["coll"], one["bytes"]))
        one["ratio"] = None
        if base and one["variant"] != base and other:
            both = [n for n in one["samples_us"] if other["samples_us"].get(n)]
            if both:
                pairs = [one["samples_us"][n] / other["samples_us"][n] for n in both]
                one["ratio"] = dict(stats.median_interval(pairs)._asdict())


def base_of(entries):
    """What ratios refer to: the vendor's library, where it was measured, else MPI."""
    names = {one["variant"] for one in entries}
    return next((name for name in ("vendor", "mpi") if name in names), None)


def commands(session):
    """One launch of each variant and case, as a shell takes it; and where UCC says what it takes."""
    seen, order = {}, [v.name for v in session.plan.variants]
    launches = session.launches()
    last = max((one.round for one in launches), default=0)
    for one in sorted(launches, key=lambda one: order.index(one.variant.name)):
        traced = one.round == 0 and one.variant.route in ucc.ROUTES
        if one.round == last or traced:
            key = f"{one.case.name}, {one.variant.name}, {one.series.name}"
            key += ", not timed: UCC's trace" if traced else ""
            target = session.target(one)
            seen[key] = [launch.text(words) for words in session.commands(one, target)]
    return seen


def note_hosts(session):
    """Of launches on other nodes, as those of another job in the same folder."""
    places = {}
    for one, _, facts in session.runs.values():
        if facts:
            hosts = " ".join(sorted({rank["host"] for rank in facts["ranks"]}))
            places.setdefault(one.case.name, {})[hosts] = None
    for case, hosts in places.items():
        if len(hosts) > 1:
            yield (
                f"the launches of {case} were not all on the same hosts ({'; '.join(hosts)}): differences of "
                "their times may come from that"
            )


def noted(session):
    """What has to be known of the launches beside their times."""
    notes = list(note_hosts(session))
    if any(
        not session.program.validates(one.variant.route) for one, _, _ in session.runs.values()
    ):
        notes.append("OSU's programs for the vendor's library validate nothing")
    for failure in session.flaky():
        notes.append(
            "{variant}, {case}, round {round} computed something wrong before it was right: do not "
            "trust this route; {log} has what it said".format(**failure)
        )
    notes += site.variable_notes(session.facts)
    return notes


def build(session, arguments):
    """The result of a session, with all that was measured before it in the same folder."""
    facts, notes = merged(session.runs)
    if session.probed:
        facts, more = merged({None: (session.probed,)})
        notes += more
    notes += noted(session)
    if facts:
        facts["gpu_aware"] = gpu_aware(session)
    timed, apart = gather(session)
    cases = [case_of(session, case) for case in session.plan.cases]
    n = {c["name"]: group_size(c) for c in cases}
    entries = [
        entry(key, rows, apart.get(key, {}), session.program.bus(key[2], n[key[0]] or 1))
        for key, rows in timed.items()
    ]
    note_transports(session, entries, cases)
    base = base_of(entries)
    summarise(entries, base)
    env, tool, plan = session.env, session.tool, session.plan
    wanted = {(c.name, v.name) for c in plan.cases for v in plan.variants} - set(session.left_out)
    every = {session.name(one) for one in session.launches()}
    return {
        "schema": SCHEMA,
        "version": tool.version,
        "commit": tool.commit or None,
        "date": session.measured_on(),
        "command": ["xccl-compare", *arguments],
        "complete": bool(wanted) and not every - set(session.runs) and not session.failures,
        "suite": plan.suite,
        "title": plan.title,
        "published": plan.published,
        "program": session.program.name,
        "rounds": session.given["--rounds"],
        "base": base,
        "site": session.facts.site["name"] if session.facts.site else None,
        "started_on": platform.node(),
        "python": platform.python_version(),
        "launcher": list(session.launcher),
        "environment": {
            k: v for k, v in sorted(env.items()) if site.BEARING.search(k) or k in SHOWN
        },
        "measured_with": facts,
        "notes": notes,
        "peaks": peaks.of_result(peaks.of_site(session.facts.site), facts, tool.prefix),
        "commands": commands(session),
        "cases": cases,
        "variants": [
            {"name": v.name, "title": v.title, "route": v.route, "environment": v.env}
            for v in plan.variants
        ],
        "left_out": [
            {"case": case, "variant": variant, "reason": reason}
            for (case, variant), reason in sorted(session.left_out.items())
        ],
        "failures": session.failures,
        "results": sorted(entries, key=lambda e: (e["coll"], e["bytes"])),
    }


def group_size(case):
    """Ranks of one communicator."""
    if not case["groups"]:
        return case["ranks"]
    first = case["groups"].split("+")[0]
    ends = [part.split("-") for part in first.split("/")]
    return sum(int(end[-1]) - int(end[0]) + 1 for end in ends)


def load(path):
    """A result that was written before; "-" is standard input."""
    try:
        if path == "-":
            value = json.loads(sys.stdin.read())
        else:
            with open(path, encoding="utf-8") as f:
                value = json.loads(f.read())
    except OSError as error:
        raise Wrong(f"cannot read '{path}': {error.strerror}") from error
    except ValueError as error:
        raise Wrong(f"{path}: no JSON ({error}); is it cut off?") from error
    except RecursionError as error:
        raise Wrong(f"{path}: no result of xccl-compare (nested too deeply)") from error
    if not isinstance(value, dict) or value.get("schema") != SCHEMA:
        found = value.get("schema") if isinstance(value, dict) else None
        raise Wrong(f"{path}: no result of xccl-compare (schema {found}, expected {SCHEMA})")
    for key in ("results", "cases", "variants", "measured_with", "peaks", "rounds"):
        if key not in value:
            raise Wrong(f"{path}: '{key}' is missing; the file is damaged")
    return value


def route_of(result, name):
    return next((v["route"] for v in result["variants"] if v["name"] == name), name)


def vendor(result):
    """The vendor's library by its own name."""
    ccl = result["measured_with"].get("ccl")
    return ccl["name"].upper() if ccl else "the vendor's library"


def label(result, variant):
    """What a variant is called: the vendor's library by its own name."""
    ccl = result["measured_with"].get("ccl")
    name = ccl["name"].upper() if ccl else "vendor"
    return variant.replace("vendor", name)


def software(result):
    """ "xccl 0.1.0 (abc), Open MPI v4.1.4, NCCL 2.28.3"."""
    facts = result["measured_with"]
    commit = f" ({result['commit']})" if result.get("commit") else ""
    parts = [f"xccl {result['version']}{commit}"]
    if facts.get("mpi"):
        parts.append(re.split(r"[,\n]", facts["mpi"])[0].replace("\t", " ").strip())
    if facts.get("ccl"):
        version = words.ccl_version(facts["ccl"]["version"])
        parts.append(f"{facts['ccl']['name'].upper()} {version}")
    return ", ".join(parts)


def devices(result):
    facts = result["measured_with"]
    text = ", ".join(facts.get("devices") or ["unknown device"])
    return f"{text}, SIMULATED: these times mean nothing" if facts.get("simulated") else text


def tables(result):
    """[(case, collective, {variant: {bytes: entry}})] of all that has results."""
    out = []
    for case in result["cases"]:
        mine = [e for e in result["results"] if e["case"] == case["name"]]
        for coll in dict.fromkeys(e["coll"] for e in mine):
            by_variant = {}
            for variant in result["variants"]:
                rows = {
                    e["bytes"]: e
                    for e in mine
                    if e["coll"] == coll and e["variant"] == variant["name"]
                }
                if rows:
                    by_variant[variant["name"]] = rows
            out.append((case, coll, by_variant))
    return out
