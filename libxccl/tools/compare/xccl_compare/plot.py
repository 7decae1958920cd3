# SPDX-License-Identifier: BSD-3-Clause
"""A result as pictures: PNG and SVG, with Matplotlib, which is optional."""

import os
import re
import sys
import textwrap
from collections import namedtuple
from math import log

from . import peaks as limits
from . import published, ucc, words
from . import result as results

COLORS = {
    "mpi": "#8d8d8d",
    "ucc": "#ef6c00",
    "ucc-ccl": "#8e24aa",
    "xccl": "#00897b",
    "vendor": "#3949ab",
}
MORE = ("#c62828", "#6d4c41", "#0277bd", "#9e9d24", "#d81b60")
MARKERS = "osD^vPX*<>"
PATHS = {
    "direct": ("#00897b", "direct"),
    "ccl": ("#7986cb", "ccl"),
    "self": ("#4db6ac", "self"),
    "mpi": ("#bdbdbd", "mpi"),
    "mpi-staged": ("#d7a86e", "staged"),
    "host": ("#cfd8dc", "host"),
    "vendor": ("#7986cb", "vendor"),
    "TL_NCCL": ("#7986cb", "TL/NCCL"),
    "TL_RCCL": ("#7986cb", "TL/RCCL"),
    "TL_CUDA": ("#ffb74d", "TL/CUDA"),
    "TL_ROCM": ("#ffb74d", "TL/ROCM"),
    "TL_UCP": ("#ffe0b2", "TL/UCP"),
}
UNPROVED = ("#eceff1", "not proved")
NOT_AS_NAMED = "#e57373"
INK, GRID, PEAK = "#263238", "#dfe5e8", "#ad1457"
SPELLED = {"mpi": "MPI", "ucc": "MPI + UCC", "xccl": "MPI + xccl"}
DECADES = 3e4  # of bandwidth are shown: what is slower is start-up time
MOST_RATIO = 4  # what is slower than this is named, and not drawn to scale
NO_PATH = (None, "none", "no interposer", "vendor")


Page = namedtuple("Page", "plt result figures folder")


class NoMatplotlib(Exception):
    """Why there are no plots."""


def pyplot():
    try:
        import matplotlib
    except ImportError as error:
        raise NoMatplotlib(
            f"{sys.executable} has no Matplotlib ({error}); load its module, or: "
            "python3 -m venv plots && plots/bin/pip install matplotlib && . plots/bin/activate"
        ) from error
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    plt.rcParams.update(
        {
            "font.family": "sans-serif",
            "font.sans-serif": ["DejaVu Sans"],
            "font.size": 10,
            "text.color": INK,
            "axes.labelcolor": INK,
            "axes.edgecolor": "#90a4ae",
            "xtick.color": INK,
            "ytick.color": INK,
            "axes.grid": True,
            "grid.color": GRID,
            "grid.linewidth": 0.8,
            "axes.axisbelow": True,
            "legend.frameon": False,
            "svg.hashsalt": "xccl",  # the same file from the same data
            "svg.fonttype": "none",  # text stays text
        }
    )
    return plt


def color_of(result, name):
    if name in COLORS:
        return COLORS[name]
    others = [v["name"] for v in result["variants"] if v["name"] not in COLORS]
    return MORE[others.index(name) % len(MORE)]


def route_text(result, route):
    base = results.label(result, "vendor")
    return {"vendor": base, "ucc-ccl": f"MPI + UCC + {base}", **SPELLED}[route]


def legend_text(result, name, rows=None):
    """The route, what a suite's variant changes of it, and what of it is not served as it is named."""
    (variant,) = [v for v in result["variants"] if v["name"] == name]
    text = route_text(result, variant["route"])
    change = variant["title"].partition(", ")[2] if name not in COLORS else ""
    text = f"{text}, {change}" if change else text
    return text + (ucc.change(variant["route"], rows) if rows and is_ucc(result, name) else "")


def is_ucc(result, name):
    return results.route_of(result, name) in ucc.ROUTES


def marker_of(result, name):
    return MARKERS[[v["name"] for v in result["variants"]].index(name) % len(MARKERS)]


def save(page, figure, name):
    out = []
    for kind in ("png", "svg"):
        file = f"{name}.{kind}"
        meta = (
            {"Date": None, "Creator": "xccl-compare"}
            if kind == "svg"
            else {"Software": "xccl-compare"}
        )
        figure.savefig(os.path.join(page.folder, file), dpi=150, metadata=meta)
        out.append(file)
    page.plt.close(figure)
    return out


def headline(figure, result, title, height):
    """Title and where the numbers are from; the lines keep their size whatever the height."""
    inch = 1 / height
    figure.text(0.02, 1 - 0.30 * inch, title, fontsize=14, fontweight="bold", va="center")
    where = f"{results.devices(result)}; {results.software(result)}; {result['program']}, {result['date'][:10]}"
    lines = textwrap.wrap(where, 118)[:2]
    figure.text(0.02, 1 - 0.52 * inch, "\n".join(lines), fontsize=8.5, va="top", color="#546e7a")


def line(axes, result, name, points, *, band=None, joined=True, rows=None):
    """One variant: sizes and values, with the interval behind them. rows: entries that its label tells of."""
    color = color_of(result, name)
    xs = [x for x, _ in points]
    axes.plot(
        xs, [y for _, y in points], color=color, marker=marker_of(result, name), markersize=4.2,
        linewidth=1.8 if joined else 0, label=legend_text(result, name, rows), zorder=3,
    )  # fmt: skip
    if band and all(low is not None for low, _ in band):
        axes.fill_between(
            xs, [b[0] for b in band], [b[1] for b in band], color=color, alpha=0.18, linewidth=0
        )


def size_axis(axes, sizes, shown):
    """Powers of two, as many labels as there is room for."""
    axes.set_xscale("log", base=2)
    powers = [size for size in sizes if size & (size - 1) == 0]
    ticks = powers if len(powers) > 2 else sizes
    ticks = ticks[:: -(-len(ticks) // 11)]
    axes.set_xticks(ticks)
    axes.set_xticks([], minor=True)
    axes.set_xticklabels([words.human(t) for t in ticks] if shown else [])
    low, high = min(sizes), max(sizes)
    axes.set_xlim(low / 1.6, high * 1.6)


def time_text(value, _):
    if value >= 1e6:
        return f"{value / 1e6:g} s"
    return f"{value / 1e3:g} ms" if value >= 1e3 else f"{value:g} µs"


def label_log(axes, text=None):
    """Labels of a logarithmic axis: decades, and 2 and 5 where there are few of them."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

    text = text or (lambda value, _: f"{value:g}")
    low, high = axes.get_ylim()
    few = high / low < 300
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if few else (1,), numticks=20))
    axes.yaxis.set_major_formatter(FuncFormatter(text))
    axes.yaxis.set_minor_formatter(NullFormatter())
    if few:
        axes.yaxis.set_minor_locator(NullLocator())


def say_no_peak(axes):
    axes.text(
        0.01, 0.96, "peak of the hardware: unknown", transform=axes.transAxes, fontsize=8,
        color=PEAK, va="top",
    )  # fmt: skip


def draw_peaks(axes, peaks):
    """The hardware's limits; equal ones share a line and its words."""
    by_value = {}
    for peak in peaks:
        by_value.setdefault(peak["gbytes_per_s"], []).append(peak["of"])
    for value, names in sorted(by_value.items()):
        axes.axhline(value, color=PEAK, linestyle=(0, (5, 3)), linewidth=1.2, zorder=2)
        axes.annotate(
            f"{value:g} GB/s: {'; '.join(names)}", (0.01, value), xycoords=("axes fraction", "data"),
            xytext=(0, 3), textcoords="offset points", fontsize=8, color=PEAK, va="bottom",
        )  # fmt: skip


def draw_time(axes, result, by_variant, figures):
    for name, rows in by_variant.items():
        points = [(size, rows[size]["us"]["value"]) for size in sorted(rows)]
        band = [(rows[s]["us"]["low"], rows[s]["us"]["high"]) for s in sorted(rows)]
        line(axes, result, name, points, band=band, rows=rows)
    for number, point in enumerate(p for p in figures if p.get("us")):
        axes.plot(
            [point["bytes"]], [point["us"]], linestyle="none", marker="s", markersize=8, fillstyle="none",
            markeredgewidth=1.6, color=figure_color(result, point, number), zorder=4,
            label=f"published: {point['label']}",
        )  # fmt: skip
    axes.set_yscale("log")
    label_log(axes, time_text)
    axes.set_ylabel("time of a call")
    axes.legend(loc="best", fontsize=9, ncol=1 if len(by_variant) < 6 else 2)


def figure_color(result, point, number):
    return (
        color_of(result, point["variant"])
        if known(result, point["variant"])
        else MORE[number % len(MORE)]
    )


def known(result, name):
    return name in COLORS or any(v["name"] == name for v in result["variants"])


def draw_bandwidth(axes, result, by_variant, peaks, figures):
    highest = 0.0
    for name, rows in by_variant.items():
        points = [(s, rows[s]["busbw_gbs"]) for s in sorted(rows) if rows[s]["busbw_gbs"]]
        if points:
            line(axes, result, name, points)
            highest = max([highest, *(y for _, y in points)])
    for number, point in enumerate(figures):
        value = published.busbw(point)
        if value:
            axes.plot(
                [point["bytes"]], [value], linestyle="none", marker="s", markersize=8, fillstyle="none",
                markeredgewidth=1.6, color=figure_color(result, point, number), zorder=4,
            )  # fmt: skip
    axes.set_yscale("log")
    draw_peaks(axes, peaks)
    if not peaks and not result["measured_with"].get("simulated"):
        say_no_peak(axes)
    top = max([highest, *(peak["gbytes_per_s"] for peak in peaks)]) or 1
    axes.set_ylim(max(axes.get_ylim()[0], top / DECADES), top * 3)
    label_log(axes)
    axes.set_ylabel("bus bandwidth, GB/s")


def ratio_limits(values):
    """A range that holds 1 and the values, but for those that are very large, with some air."""
    low, high = min([*values, 1.0]), max([*values, 1.0])
    return low / 1.25, min(high * 1.25, MOST_RATIO)


def name_the_slow(axes, result, by_variant):
    """Says how far the lines go that leave the panel."""
    worst = {
        name: max(row["ratio"]["value"] for row in rows.values() if row["ratio"])
        for name, rows in by_variant.items()
        if any(row["ratio"] for row in rows.values())
    }
    slow = [
        f"{legend_text(result, name)} up to {value:,.0f}"
        for name, value in worst.items()
        if value > MOST_RATIO
    ]
    if slow:
        axes.text(
            0.01, 0.96, f"above {MOST_RATIO}: {', '.join(slow)}", transform=axes.transAxes, fontsize=8.5,
            va="top", color="#546e7a", bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5},
        )  # fmt: skip


def draw_ratio(axes, result, by_variant):
    values = []
    for name, rows in by_variant.items():
        sizes = [s for s in sorted(rows) if rows[s]["ratio"]]
        if not sizes:
            continue
        ratios = [rows[s]["ratio"] for s in sizes]
        values += [ratio["value"] for ratio in ratios]
        line(
            axes, result, name, [(s, r["value"]) for s, r in zip(sizes, ratios)],
            band=[(r["low"], r["high"]) for r in ratios],
        )  # fmt: skip
    base = results.label(result, result["base"])
    axes.axhline(1, color=color_of(result, result["base"]), linewidth=1.4, zorder=2)
    axes.set_yscale("log")
    low, high = ratio_limits(values)
    axes.set_ylim(low, high)
    steps = (
        (0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 4)
        if high / low > 1.6
        else (0.8, 0.9, 0.95, 1, 1.05, 1.1, 1.25)
    )
    ticks = [step for step in steps if low <= step <= high]
    axes.set_yticks(ticks)
    axes.set_yticklabels([f"{tick:g}" for tick in ticks])
    axes.set_yticks([], minor=True)
    axes.set_ylabel(f"time / {base}'s")
    name_the_slow(axes, result, by_variant)


def edges(sizes):
    """Borders half way between neighbouring sizes, on the logarithmic axis."""
    inner = [(a * b) ** 0.5 for a, b in zip(sizes, sizes[1:])]
    return [sizes[0] / 1.6, *inner, sizes[-1] * 1.6]


def ribbon_rows(by_variant):
    """Variants of which the path is known, or of UCC's routes the transport."""
    return {
        name: rows
        for name, rows in by_variant.items()
        if any(row["path"] not in NO_PATH or row.get("transport") for row in rows.values())
    }


def runs_of(rows, what="path"):
    """[(path, first size, last size)] of neighbours with the same path, or transport."""
    out = []
    for size in sorted(rows):
        path = rows[size].get(what)
        if out and out[-1][0] == path:
            out[-1] = (path, out[-1][1], size)
        else:
            out.append((path, size, size))
    return out


def strip(route, path):
    """(color, text) of a path, or of what served a route of UCC's."""
    if route not in ucc.ROUTES:
        return PATHS.get(path, ("#b39ddb", path or "unknown"))
    if path is None:
        return UNPROVED
    color, text = PATHS.get(path, ("#b39ddb", ucc.text(path)))
    if ucc.as_named(route, path):
        return color, text
    return NOT_AS_NAMED, f"{ucc.text(path)}: not as named"


def draw_ribbon(axes, result, by_variant, sizes):
    """Which path carried each size, a strip a variant."""
    borders = dict(zip(sizes, zip(edges(sizes), edges(sizes)[1:])))
    whole = (sizes[-1] / sizes[0]) * 2.56
    names = list(ribbon_rows(by_variant))
    for place, name in enumerate(names):
        route = results.route_of(result, name)
        what = "transport" if route in ucc.ROUTES else "path"
        for path, first, last in runs_of(by_variant[name], what):
            left, right = borders[first][0], borders[last][1]
            color, text = strip(route, path)
            axes.barh(
                place,
                right - left,
                left=left,
                height=0.72,
                color=color,
                edgecolor="white",
                linewidth=1,
            )
            share = log(right / left) / log(whole)
            if share * 95 > len(text) + 1:  # characters that the strip has room for
                axes.text(
                    (left * right) ** 0.5, place, text, ha="center", va="center", fontsize=8.5,
                    color="white" if path == "direct" else INK,
                )  # fmt: skip
    axes.set_yticks(range(len(names)))
    axes.set_yticklabels([legend_text(result, name) for name in names], fontsize=9)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(False)
    axes.tick_params(axis="y", length=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.set_title("path taken", fontsize=9, loc="left", pad=3, color=INK)


def over_sizes(page, case, coll, by_variant):
    """Time, bus bandwidth, ratio and path over the size."""
    plt, result, figures, _ = page
    sizes = sorted({size for rows in by_variant.values() for size in rows})
    strips = len(ribbon_rows(by_variant))
    has_ratio = any(row["ratio"] for rows in by_variant.values() for row in rows.values())
    heights = (
        [3.6, 2.9] + ([2.1] if has_ratio else []) + ([0.24 * strips + 0.12] if strips else [])
    )
    height = sum(heights) + 1.9 + 0.12 * len(heights)
    figure = plt.figure(figsize=(9, height))
    grid = figure.add_gridspec(
        len(heights), 1, height_ratios=heights, hspace=0.12, left=0.155, right=0.97,
        top=1 - 0.95 / height, bottom=0.62 / height,
    )  # fmt: skip
    panels = [figure.add_subplot(grid[i]) for i in range(len(heights))]
    points = published.of_case(figures, case, coll)
    draw_time(panels[0], result, by_variant, points)
    draw_bandwidth(panels[1], result, by_variant, limits.of_case(result["peaks"], case), points)
    if has_ratio:
        draw_ratio(panels[2], result, by_variant)
    if strips:
        draw_ribbon(panels[-1], result, by_variant, sizes)
    for panel in panels:
        size_axis(panel, sizes, panel is panels[-1])
    panels[-1].set_xlabel("size" if coll in ("allreduce", "bcast", "reduce") else "size per rank")
    figure.align_ylabels(panels[:-1] if strips else panels)  # the strips' names need the room
    headline(figure, result, f"{coll}, {words.shape(case)}", height)
    return save(page, figure, f"{slug(case['name'])}-{coll}")


def slug(text):
    return re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-")


def scaling_points(result, coll, size, variant):
    """{case: entry}."""
    return {
        e["case"]: e
        for e in result["results"]
        if (e["coll"], e["bytes"], e["variant"]) == (coll, size, variant)
    }


def case_label(case):
    if case["groups"]:
        return case["groups"].replace("+", " +\n") if len(case["groups"]) < 12 else case["name"]
    return f"{case['ranks']}\n{words.count(case['nodes'], 'node')}"


def draw_published(axes, page, cases, of, value_of):
    """Others' figures of a (collective, size), hollow and dashed, at the cases that they belong to."""
    result, figures = page.result, page.figures
    places = {(c["ranks"], c["nodes"]): i for i, c in enumerate(cases)}
    series = {}
    for point in figures["points"] if figures else ():
        place = places.get((point["ranks"], point["nodes"]))
        value = value_of(point)
        if place is not None and value and (point["coll"], point["bytes"]) == of:
            series.setdefault((point["label"], point["variant"]), []).append((place, value))
    for number, ((text, variant), points) in enumerate(series.items()):
        points.sort()
        axes.plot(
            [x for x, _ in points], [y for _, y in points], linestyle=(0, (2, 2)), marker="s",
            markersize=8, fillstyle="none", markeredgewidth=1.5, linewidth=1.2, zorder=2,
            color=figure_color(result, {"variant": variant}, number), label=f"published: {text}",
        )  # fmt: skip


def over_cases(page, cases, coll, size):
    """Time and bus bandwidth over the number of ranks, at one size."""
    plt, result, _, _ = page
    joined = not any(case["groups"] for case in cases)  # between communicators there is nothing
    height = 8.6
    figure, (upper, lower) = plt.subplots(2, 1, figsize=(9, height), sharex=True)
    figure.subplots_adjust(left=0.105, right=0.97, top=1 - 0.95 / height, hspace=0.08)
    for variant in result["variants"]:
        found = scaling_points(result, coll, size, variant["name"])
        rows = [(i, found[c["name"]]) for i, c in enumerate(cases) if c["name"] in found]
        if rows:
            band = [(e["us"]["low"], e["us"]["high"]) for _, e in rows]
            times = [(i, e["us"]["value"]) for i, e in rows]
            how = {"joined": joined, "rows": dict(rows)}
            line(upper, result, variant["name"], times, band=joined and band, **how)
            rates = [(i, e["busbw_gbs"]) for i, e in rows]
            line(lower, result, variant["name"], rates, **how)
    draw_published(upper, page, cases, (coll, size), lambda p: p.get("us"))
    draw_published(lower, page, cases, (coll, size), published.busbw)
    for place, case in enumerate(cases):
        for peak in limits.of_case(result["peaks"], case):
            lower.plot(
                [place - 0.4, place + 0.4], [peak["gbytes_per_s"]] * 2, color=PEAK, linewidth=1.6
            )
    if any(limits.of_case(result["peaks"], case) for case in cases):
        lower.plot([], [], color=PEAK, linewidth=1.6, label="peak of the hardware")
    elif not result["measured_with"].get("simulated"):
        say_no_peak(lower)
    for axes in (upper, lower):
        axes.set_yscale("log")
        axes.set_xlim(-0.6, len(cases) - 0.4)
    label_log(upper, time_text)
    label_log(lower)
    upper.set_ylabel("time of a call")
    lower.set_ylabel("bus bandwidth, GB/s")
    lower.set_xticks(range(len(cases)))
    lower.set_xticklabels([case_label(case) for case in cases])
    lower.set_xlabel("communicators" if any(c["groups"] for c in cases) else "ranks")
    handles = dict(zip(*reversed(upper.get_legend_handles_labels())))
    handles.update(zip(*reversed(lower.get_legend_handles_labels())))
    figure.align_ylabels((upper, lower))
    figure.legend(handles.values(), handles.keys(), fontsize=9, ncol=2, loc="lower center")
    figure.subplots_adjust(bottom=(0.85 + 0.2 * -(-len(handles) // 2)) / height)
    headline(figure, result, f"{coll} of {words.human(size)}", height)
    return save(page, figure, f"{coll}-{slug(words.human(size))}")


def common_sizes(result, coll):
    """Sizes to draw over the cases: those that a suite measures alone, else the largest."""
    sizes = {}
    for one in result["results"]:
        if one["coll"] == coll:
            sizes.setdefault(one["bytes"], set()).add(one["case"])
    shared = [size for size, cases in sizes.items() if len(cases) > 1]
    figures = [size for size in shared if size & (size - 1)]  # 1 GB is no power of two
    return sorted(figures) or sorted(shared)[-1:]


def draw(result, figures, folder):
    """All pictures of a result; their file names."""
    page = Page(pyplot(), result, figures, folder)
    out = []
    for case, coll, by_variant in results.tables(result):
        if max(len(rows) for rows in by_variant.values()) > 1:
            out += over_sizes(page, case, coll, by_variant)
    for coll in dict.fromkeys(e["coll"] for e in result["results"]):
        for size in common_sizes(result, coll):
            here = {
                e["case"] for e in result["results"] if (e["coll"], e["bytes"]) == (coll, size)
            }
            cases = [c for c in result["cases"] if c["name"] in here and c["ranks"]]
            out += over_cases(page, cases, coll, size)
    return out
