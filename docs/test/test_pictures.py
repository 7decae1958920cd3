# SPDX-License-Identifier: BSD-3-Clause
"""Each site's picture shows its binding: every local rank with its GPU, its cores and its NIC."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

TOP = Path(__file__).resolve().parents[2]
SITES = {path.parent.name: path for path in sorted(TOP.glob("site-configs/*/site.json"))}


def ranks_of(name):
    hardware = json.loads(SITES[name].read_text(encoding="utf-8"))["hardware"]
    return hardware["binding"].get("ranks") or []


def words_of(name):
    root = ElementTree.parse(TOP / f"docs/sites/{name}.svg").getroot()
    return [one.text for one in root.iter("{http://www.w3.org/2000/svg}text")]


def test_some_have_one():
    drawn = [name for name in SITES if (TOP / f"docs/sites/{name}.svg").exists()]
    assert len(drawn) >= 9


@pytest.mark.parametrize("name", sorted(SITES))
def test_picture(name):
    """A site whose GPUs or cores are read at run time has no picture, and its page names none."""
    ranks, page = ranks_of(name), (TOP / f"docs/sites/{name}.md").read_text(encoding="utf-8")
    known = ranks and not any("auto" in map(str, (r["gpu"], r["cores"])) for r in ranks)
    assert (TOP / f"docs/sites/{name}.svg").exists() == bool(known)
    assert (f"({name}.svg)" in page) == bool(known)
    if not known:
        return
    words = words_of(name)
    for number, rank in enumerate(ranks):
        place = words.index(f"GPU {rank['gpu']}")
        assert words[place + 1] == f"local rank {number}"
        assert any(re.search(rf"\b{rank['cores']}\b", word) for word in words)
        assert str(rank["nic"]) in words or "closest NIC" in words
        unknown = str(rank["numa"]) == "auto"
        assert (
            "NUMA domain read at run time" if unknown else f"NUMA domain {rank['numa']}"
        ) in words
    unknown = sum(str(rank["numa"]) == "auto" for rank in ranks)
    assert words.count("NUMA domain read at run time") == unknown


def test_parts_stay_apart():
    """No two boxes of a picture overlap, and none leaves it."""
    for name in SITES:
        path = TOP / f"docs/sites/{name}.svg"
        if not path.exists():
            continue
        root = ElementTree.parse(path).getroot()
        _, _, width, height = map(float, root.get("viewBox").split())
        boxes = [
            tuple(float(one.get(key)) for key in ("x", "y", "width", "height"))
            for one in root.iter("{http://www.w3.org/2000/svg}rect")
            if one.get("x")
        ]
        assert len(boxes) > len(ranks_of(name))
        for number, (x, y, w, h) in enumerate(boxes):
            assert x >= 0 and y >= 0 and x + w <= width and y + h <= height, name
            for ox, oy, ow, oh in boxes[number + 1 :]:
                apart = x + w <= ox or ox + ow <= x or y + h <= oy or oy + oh <= y
                assert apart, name
