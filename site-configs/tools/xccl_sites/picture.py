# SPDX-License-Identifier: BSD-3-Clause
"""A node as a picture: NUMA domains with their cores, GPUs and NICs, as the site's binding has them."""

from html import escape

WIDTH, ROW, HEAD, FOOT = 760, 46, 74, 20
COLUMNS = {"numa": (20, 270), "gpu": (340, 190), "nic": (580, 160)}  # x, width
INK, GREEN, GREY = "#37474f", ("#e0f2f1", "#00796b"), ("#f5f7f8", "#90a4ae")


def _text(x, y, words, bold=False, anchor="middle"):
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}"{weight}>{escape(str(words))}</text>'


def _box(column, top, rows, color, lines, *, dashed=False):
    """A box over some rows with lines of text in its middle, the first one bold."""
    x, width = COLUMNS[column]
    height = rows * ROW - 8
    fill, stroke = color
    dash = ' stroke-dasharray="4 3"' if dashed else ""
    yield (
        f'<rect x="{x}" y="{top}" width="{width}" height="{height}" rx="6" '
        f'fill="{fill}" stroke="{stroke}"{dash}/>'
    )
    first = top + height / 2 + 4.5 - 8 * (len(lines) - 1)
    for number, line in enumerate(lines):
        yield _text(x + width / 2, first + 16 * number, line, bold=number == 0)


def _unknown(value):
    return str(value) == "auto"


def _runs(ranks, key):
    """[(value, first row, rows)]: neighbours with the same value together, but not those that are not known."""
    runs = []
    for row, rank in enumerate(ranks):
        if runs and runs[-1][0] == rank[key] and not _unknown(rank[key]):
            runs[-1][2] += 1
        else:
            runs.append([rank[key], row, 1])
    return runs


def _rows(site):
    """The ranks in the order of their NUMA domains and cores, each with its number."""
    ranks = [
        {**rank, "rank": number}
        for number, rank in enumerate(site["hardware"]["binding"].get("ranks") or [])
    ]
    if not ranks or any(_unknown(r["gpu"]) or _unknown(r["cores"]) for r in ranks):
        return []
    return sorted(ranks, key=_place)


def _place(rank):
    first = int(str(rank["cores"]).split("-")[0])
    return (-1 if _unknown(rank["numa"]) else int(rank["numa"]), first)


def has_picture(site):
    """Nothing is drawn of a machine whose GPUs or cores are read at run time."""
    return bool(_rows(site))


def _cores(ranks):
    own = ", ".join(str(rank["cores"]) for rank in ranks)
    siblings = ", ".join(
        str(r["siblings"]) for r in ranks if str(r["siblings"]) not in ("-", "auto", "")
    )
    return [f"cores {own}", *([f"siblings {siblings}"] if siblings and len(ranks) == 1 else [])]


def _lines(ranks, top):
    """From the cores of each rank to its GPU, and from there to its NIC."""
    for row in range(len(ranks)):
        y = top + row * ROW + (ROW - 8) / 2
        for left, right in (("numa", "gpu"), ("gpu", "nic")):
            start = sum(COLUMNS[left])
            yield f'<path d="M{start} {y}H{COLUMNS[right][0]}" stroke="#607d8b" stroke-width="1.5"/>'


def _titles(site):
    hardware = site["hardware"]
    titles = {
        "numa": hardware["node"].get("cpu", "processors"),
        "gpu": f"{hardware['gpu'].get('model', 'GPU')}",
        "nic": hardware["nic"].get("kind", "network").split(" (")[0].split(",")[0],
    }
    yield _text(20, 26, f"One node of {site['title']}", bold=True, anchor="start")
    for column, title in titles.items():
        x, width = COLUMNS[column]
        yield _text(x + width / 2, HEAD - 14, title)


def node(site, mark):
    """The SVG of a site's node."""
    ranks = _rows(site)
    height = HEAD + ROW * len(ranks) + FOOT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'font-family="sans-serif" font-size="12.5" fill="{INK}">',
        f"<!-- SPDX-License-Identifier: BSD-3-Clause. {mark} from site-configs/{site['name']}/; do not edit. -->",
        f"<title>A node of {escape(site['title'])}: cores, GPUs and NICs</title>",
        f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#ffffff"/>',
        *_titles(site),
        *_lines(ranks, HEAD),
    ]
    for numa, row, count in _runs(ranks, "numa"):
        lines = _domain(numa, ranks[row : row + count])
        parts += _box("numa", HEAD + row * ROW, count, GREY, lines, dashed=_unknown(numa))
    for row, rank in enumerate(ranks):
        lines = [f"GPU {rank['gpu']}", f"local rank {rank['rank']}"]
        parts += _box("gpu", HEAD + row * ROW, 1, GREEN, lines)
    for nic, row, count in _runs(ranks, "nic"):
        lines = ["closest NIC", "read at run time"] if _unknown(nic) else [nic]
        parts += _box("nic", HEAD + row * ROW, count, GREY, lines, dashed=_unknown(nic))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _domain(numa, ranks):
    """What a box of cores says: the domain is left to the run where it is not known, and the cores come first."""
    cores = _cores(ranks)
    if _unknown(numa):
        return _short([*cores, "NUMA domain read at run time"])
    return (
        [f"NUMA domain {numa}", *cores]
        if len(ranks) > 1
        else _short([f"NUMA domain {numa}", *cores])
    )


def _short(lines):
    """Two lines fit into one row."""
    return [lines[0], "; ".join(lines[1:])] if len(lines) > 2 else lines
