# SPDX-License-Identifier: BSD-3-Clause
"""The plot and the table of the README, from committed results of docs/benchmarks.

Every series names the file that it is read from. Nothing is typed in here but names.
"""

import json
import math
import sys
from dataclasses import dataclass
from html import escape
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "libxccl/tools/compare"))
from xccl_compare.words import human  # noqa: E402

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
DIRECT = "h200-x4/direct/allreduce-all-4.json"
STAGED = "h200-x4/perf-4-mpi.json"
ROUTES = "h200-x2/compare/allreduce/result.json"
# Below it the sizes hold what the first calls of a job set up.
ROUTES_LEAST = 64
# NVIDIA's data sheet of the H200: 900 GB/s over 18 NVLinks, both directions together.
LINK_GBS = 450
TABLE_SIZES = (8, 4096, 65536, 1 << 20, 16 << 20, 256 << 20, 1 << 30)

INK, GRID = "#37474f", "#e3e8ea"
LINE = 20  # pixels from one line of the legend to the next


@dataclass(frozen=True)
class Frame:
    """Where the axes lie in a picture; the legend stands among the curves, or above them."""

    width: int = 760
    height: int = 430
    left: int = 70
    right: int = 740
    top: int = 62
    bottom: int = 378
    legend_top: int = 80
    legend_left: int = 84


def narrow(lines):
    """For a telephone: the same words in half of the width."""
    above = 66 + LINE * lines
    return Frame(400, above + 330, 62, 376, above, above + 278, 72, 14)


@dataclass(frozen=True)
class Series:
    name: str
    color: str
    points: tuple  # of (bytes, microseconds)
    dashed: bool = False  # what was not measured


def read(name):
    return json.loads((BENCHMARKS / name).read_text(encoding="utf-8"))


def ratios(field):
    """What direct_ratio measured of allreduce, by size: `field` is vendor_us, mpi_us or ratio."""
    rows = read(DIRECT)["rows"]
    return {row["bytes"]: row[field] for row in rows if row["collective"] == "allreduce"}


def staged():
    """Times of xccl-perf on route mpi: this MPI takes no device memory."""
    run = read(STAGED)
    if not run["passed"] or run["route"] != "mpi" or len(run["ranks"]) != 4:
        raise SystemExit(f"{STAGED}: not a verified run of 4 ranks on route mpi")
    return {r["bytes"]: r["avg_us"] for r in run["results"] if r["coll"] == "allreduce"}


def allreduce():
    """The series of the plot, slowest first, as the legend lists them."""
    return [
        Series("Open MPI 4.1.6, through host memory", "#9e9e9e", tuple(sorted(staged().items()))),
        Series(
            "NCCL 2.28.3, called directly", "#5c6bc0", tuple(sorted(ratios("vendor_us").items()))
        ),
        Series("MPI_Allreduce with xccl", "#00897b", tuple(sorted(ratios("mpi_us").items()))),
    ]


def routes():
    """Allreduce of two ranks on every route, as xccl-compare measured it, and what the link allows."""
    run = read(ROUTES)
    if run["failures"] or not run["complete"]:
        raise SystemExit(f"{ROUTES}: not a whole comparison without failures")
    names = {
        "mpi": ("Open MPI 5.0.7 with UCX (GPU-aware)", "#9e9e9e"),
        "ucc": ("the same with UCC", "#ef6c00"),
        "ucc-ccl": ("the same with UCC and NCCL", "#8e24aa"),
        "vendor": ("NCCL 2.28.9 itself", "#5c6bc0"),
        "xccl": ("Open MPI 5.0.7 with xccl", "#00897b"),
    }
    lines = []
    for variant, (name, color) in names.items():
        points = {r["bytes"]: r["us"]["value"] for r in run["results"] if r["variant"] == variant}
        kept = tuple(sorted(p for p in points.items() if p[0] >= ROUTES_LEAST))
        lines.append(Series(name, color, kept))
    # Between two ranks every byte crosses the link once each way.
    sizes = [size for size, _ in lines[0].points if size >= 1 << 20]
    peak = tuple((size, size / LINK_GBS / 1e3) for size in sizes)
    return [*lines, Series(f"what {LINK_GBS} GB/s of NVLink allow", "#b71c1c", peak, dashed=True)]


def micros(value):
    if value >= 1e6:
        return f"{value / 1e6:g} s"
    return f"{value / 1e3:g} ms" if value >= 1e3 else f"{value:g} µs"


class LogAxis:
    """Positions on a logarithmic axis between two pixels."""

    def __init__(self, low, high, start, end):
        self.low, self.span = math.log(low), math.log(high) - math.log(low)
        self.start, self.length = start, end - start

    def __call__(self, value):
        return round(self.start + self.length * (math.log(value) - self.low) / self.span, 1)


def text(x, y, words, anchor="middle", extra=""):
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}"{extra}>{escape(words)}</text>'


def axes(frame, x, y, sizes, times):
    for size in sizes:
        yield f'<path d="M{x(size)} {frame.top}V{frame.bottom}" stroke="{GRID}"/>'
        yield text(x(size), frame.bottom + 18, human(size))
    for time in times:
        yield f'<path d="M{frame.left} {y(time)}H{frame.right}" stroke="{GRID}"/>'
        yield text(frame.left - 8, y(time) + 4, micros(time), "end")
    yield text((frame.left + frame.right) / 2, frame.height - 12, "size of the vector")


def curve(series, x, y):
    places = [(x(size), y(time)) for size, time in series.points]
    path = "M" + "L".join(f"{px} {py}" for px, py in places)
    dashes = ' stroke-dasharray="6 4"' if series.dashed else ""
    yield f'<path d="{path}" fill="none" stroke="{series.color}" stroke-width="2.2"{dashes}/>'
    if series.dashed:
        return
    for (px, py), (size, time) in zip(places, series.points):
        label = escape(f"{series.name}: {human(size)} in {time:,.2f} µs")
        yield (
            f'<circle cx="{px}" cy="{py}" r="3.2" fill="{series.color}">'
            f"<title>{label}</title></circle>"
        )


def legend(frame, lines):
    for number, series in enumerate(lines):
        x, y = frame.legend_left, frame.legend_top + LINE * number
        dashes = ' stroke-dasharray="6 4"' if series.dashed else ""
        yield f'<path d="M{x} {y - 4}h26" stroke="{series.color}" stroke-width="3"{dashes}/>'
        yield text(x + 34, y, series.name, "start")


def plot(title, subtitle, lines, telephone=False):
    """One SVG on a card of its own, legible on light and on dark pages."""
    frame = narrow(len(lines)) if telephone else Frame()
    heading = 14 if telephone else frame.left
    sizes = [size for line in lines for size, _ in line.points]
    times = [time for line in lines for _, time in line.points]
    decades = range(math.floor(math.log10(min(times))), math.ceil(math.log10(max(times))) + 1)
    step = 6 if telephone else 3
    ticks = [1 << p for p in range(step, 31, step) if min(sizes) <= 1 << p <= max(sizes)]
    x = LogAxis(min(sizes), max(sizes), frame.left, frame.right)
    y = LogAxis(10 ** decades[0], 10 ** decades[-1], frame.bottom, frame.top)
    size = f'width="{frame.width}" height="{frame.height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {frame.width} {frame.height}" role="img" '
        f'font-family="sans-serif" font-size="12.5" fill="{INK}">',
        "<!-- SPDX-License-Identifier: BSD-3-Clause. Made by docs/tools/render.py; do not edit. -->",
        f"<title>{escape(title)}</title>",
        f'<rect {size} rx="8" fill="#ffffff"/>',
        text(heading, 28, title, "start", ' font-size="16" font-weight="bold"'),
        text(heading, 48, subtitle, "start"),
        *axes(frame, x, y, ticks, [10**power for power in decades]),
    ]
    for line in lines:
        parts += curve(line, x, y)
    return "\n".join([*parts, *legend(frame, lines), "</svg>"]) + "\n"


def allreduce_svg(telephone=False):
    title = "Allreduce on 4 NVIDIA H200, 4 ranks"
    return plot(title, "time of a blocking call; lower is better", allreduce(), telephone)


def routes_svg(telephone=False):
    title = "Allreduce on 2 NVIDIA H200, 2 ranks"
    return plot(title, "time of a call, by osu_allreduce; lower is better", routes(), telephone)


def numbers():
    """The README's table: one line per size; the ratio is the median of the blocks' ratios."""
    vendor, mpi, ratio = (ratios(field) for field in ("vendor_us", "mpi_us", "ratio"))
    yield "| size | NCCL, called directly | `MPI_Allreduce` with xccl | xccl / NCCL |"
    yield "|---:|---:|---:|---:|"
    for size in TABLE_SIZES:
        times = f"{vendor[size]:,.1f} µs | {mpi[size]:,.1f} µs"
        yield f"| {human(size)} | {times} | {ratio[size]:.2f} |"
