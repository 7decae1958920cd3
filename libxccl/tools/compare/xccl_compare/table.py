# SPDX-License-Identifier: BSD-3-Clause
"""A result as a table."""

from . import published, stats, ucc, words
from . import result as results


def is_noise(ratio):
    """Nothing says that the two times differ."""
    sure = ratio["level"] is not None and ratio["level"] >= stats.LEVEL
    return not sure or ratio["low"] <= 1 <= ratio["high"]


def ratio_text(ratio):
    """Two digits; "~" where the difference may be noise."""
    if ratio is None:
        return "-"
    return ("~" if is_noise(ratio) else "") + f"{ratio['value']:.2f}"


def lay_out(rows):
    """Columns to the right, but for the last one."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        cells = [cell.rjust(width) for cell, width in zip(row[:-1], widths)]
        yield "  ".join([*cells, row[-1]]).rstrip()


def path_column(by_variant):
    """The variant whose path is worth a column: xccl's."""
    own = [name for name in by_variant if name not in ("mpi", "ucc", "ucc-ccl", "vendor")]
    return "xccl" if "xccl" in own else (own[0] if own else None)


def marks(one):
    """What is to be known of a time: "?" not verified, "!" not served as the route's name says."""
    return ("" if one["verified"] else "?") + ("!" if one.get("as_named") is False else "")


def served(result):
    """Who served the calls of UCC's routes: what their names promise, the trace has to prove."""
    lines, several = [], len(result["cases"]) > 1
    for case, coll, by_variant in results.tables(result):
        for name, rows in by_variant.items():
            route = results.route_of(result, name)
            if route in ucc.ROUTES:
                where = f"{name}, {case['name']}" if several else name
                said = ucc.sentence(route, rows, results.vendor(result))
                lines.append(f"  {where}, {coll}: {said}")
    if lines:
        yield "Served by (UCC's trace of a launch that is not timed):"
        yield from lines


def block(result, case, coll, by_variant):
    base = result["base"]
    names = list(by_variant)
    against = [name for name in names if name != base and base in by_variant]
    chosen = path_column(by_variant)
    head = ["size", *(f"{results.label(result, n)}, µs" for n in names)]
    head += [f"{results.label(result, n)} / {results.label(result, base)}" for n in against]
    best = chosen or names[-1]
    head += [f"{results.label(result, best)}, GB/s", "path" if chosen else ""]
    rows = [head]
    for size in sorted({size for rows in by_variant.values() for size in rows}):
        row = [words.human(size)]
        for name in names:
            one = by_variant[name].get(size)
            row.append(words.micros(one["us"]["value"]) + marks(one) if one else "-")
        for name in against:
            one = by_variant[name].get(size)
            row.append(ratio_text(one["ratio"]) if one else "-")
        one = by_variant[best].get(size)
        row.append(f"{one['busbw_gbs']:.3g}" if one and one["busbw_gbs"] is not None else "-")
        row.append((one["path"] or "-") if one and chosen else "")
        rows.append(row)
    yield f"{coll}, {words.shape(case)}"
    yield from lay_out(rows)


def intervals(result):
    """How sure the numbers are, in a sentence or two."""
    counts = [len(e["samples_us"]) for e in result["results"]]
    if not counts:
        return
    least, most = min(counts), max(counts)
    number = words.count(most, "launch") if least == most else f"{least} to {most} launches"
    yield f"Times are medians of {number}; a ratio is the median of the rounds' ratios."
    if least >= 6:
        yield "~: the 95 % interval of the ratio holds 1, so the difference is noise."
    else:
        yield "~: may be noise. Below six rounds no difference is told from it: --rounds 6."


def left_out(result):
    """Each reason once, with the routes, and with the cases where it does not hold in all of them."""
    cases_of, routes_of = {}, {}
    for one in result["left_out"]:
        cases_of.setdefault((one["reason"], one["variant"]), []).append(one["case"])
    for (reason, variant), cases in cases_of.items():
        name = results.label(result, variant)
        routes_of.setdefault((reason, tuple(cases)), []).append(name)
    for (reason, cases), names in routes_of.items():
        where = "" if len(cases) == len(result["cases"]) else f" ({', '.join(cases)})"
        yield f"  {', '.join(names)}{where}: {reason}"


def point_text(point):
    """One published figure: what, where, how long, how fast."""
    values = [f"{words.micros(point['us'])} µs"] if point.get("us") else []
    rate = published.busbw(point)
    values += [f"{rate:.3g} GB/s"] if rate else []
    what = f"{point['coll']} of {words.human(point['bytes'])}"
    return f"{what}, {words.shape(point)}: {', '.join(values)}"


def beside(result, figures):
    """What others have published of the same collectives and shapes."""
    shapes = {(case["ranks"], case["nodes"]) for case in result["cases"]}
    colls = {one["coll"] for one in result["results"]}
    lines = [
        f"  {point['label']}: {point_text(point)}"
        for point in figures["points"]
        if (point["ranks"], point["nodes"]) in shapes and point["coll"] in colls
    ]
    lines += [f"  {statement['what']}" for statement in figures.get("statements", ())]
    if not lines and not figures["points"]:
        yield ""
        yield f"Published: {figures['title']}: {published.amount(figures)}"
    if lines:
        yield ""
        yield f"Published: {figures['title']}"
        yield f"on {figures['machine']}; {figures['software']}"
        yield from lines


def awareness(result):
    """Whether MPI takes device memory itself, where that was seen."""
    known = result["measured_with"].get("gpu_aware")
    if known is None:
        return []
    text = (
        "is GPU-aware" if known else "is NOT GPU-aware: its calls were staged through host memory"
    )
    return [f"# MPI {text}"]


def whole(result, figures=None):
    yield f"# {result['title']}: {results.devices(result)}"
    yield f"# {results.software(result)}; {result['program']}; {result['date'][:10]}"
    site = result["site"] or "none recognised"
    yield f"# site: {site}; hosts: {', '.join(result['measured_with'].get('hosts', ['unknown']))}"
    yield from awareness(result)
    for case, coll, by_variant in results.tables(result):
        yield ""
        yield from block(result, case, coll, by_variant)
    if not result["results"]:
        yield ""
        yield "Nothing was measured."
    yield ""
    yield from intervals(result)
    unverified = [e for e in result["results"] if not e["verified"]]
    if result["results"]:
        yield "?: not verified." if unverified else "Every result was verified."
    if any(one.get("as_named") is False for one in result["results"]):
        yield "!: not served as the name of the route says."
    yield from served(result)
    if result["left_out"]:
        yield "Left out:"
        yield from left_out(result)
    for note in result["notes"]:
        yield f"Note: {note}."
    if figures is not None:
        yield from beside(result, figures)
