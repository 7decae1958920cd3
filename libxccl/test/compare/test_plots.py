# SPDX-License-Identifier: BSD-3-Clause
"""The pictures of xccl-compare: which there are, and what is in them."""

import copy
import json
import re

import pytest
from xccl_compare import peaks, plot

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def drawn(world, plots, fonts):
    """Draws a result, and gives the text of each SVG by its name."""

    def draw(result):
        (world.work / "r.json").write_text(json.dumps(result))
        ended = world.script(
            "--plot", "r.json", "--output", "plots", PYTHONPATH=plots, MPLCONFIGDIR=fonts
        )
        assert ended.returncode == 0, ended.stderr
        folder = world.work / "plots"
        for picture in folder.glob("*.png"):
            assert picture.read_bytes()[:8] == PNG and picture.stat().st_size > 10000
        names = {p.stem for p in folder.glob("*.png")}
        assert names == {p.stem for p in folder.glob("*.svg")}
        return {p.stem: p.read_text() for p in folder.glob("*.svg")}

    return draw


def words_of(svg):
    return set(re.findall(r"<text[^>]*>([^<]+)</text>", svg))


def test_over_sizes(world, drawn):
    """Time, bus bandwidth with the peak, ratio, path; the same picture from the same data."""
    world.measure("--no-plot", "--max", "64k", "--rounds", "6")
    result = world.result()
    for one in result["results"]:
        if one["variant"] == "xccl":
            one["path"] = "direct" if one["bytes"] < 600 else "mpi-staged"
    pictures = drawn(result)
    assert list(pictures) == ["job-allreduce"]
    words = words_of(pictures["job-allreduce"])
    assert {"allreduce, 4 ranks on 1 node", "MPI", "NCCL", "MPI + xccl"} <= words
    assert {
        "time of a call",
        "bus bandwidth, GB/s",
        "time / NCCL's",
        "path taken",
        "size",
    } <= words
    assert {"direct", "staged", "8 B", "512 B", "32 KiB"} <= words
    assert "300 GB/s: NVLink 3, 4 GPUs of a node" in words
    assert "above 4: MPI up to 10" in words
    assert any("NCCL 2.28.3" in text and "Made up" in text for text in words)
    assert drawn(result) == pictures


def test_over_ranks(world, drawn):
    """A suite: over the number of ranks, with the published figures and the peak of each shape."""
    world.run(
        "--suite",
        "juwels-2022",
        "--max",
        "64",
        "--rounds",
        "1",
        "--no-plot",
        "--nodes",
        "1",
        "--",
        "mpirun",
    )
    result = world.result("xccl-compare-juwels-2022")
    result["cases"] = [
        {"name": f"{n}x4", "nodes": n, "ranks": 4 * n, "groups": None} for n in (1, 2, 4)
    ]
    entries, result["results"] = result["results"][:3], []
    for case in result["cases"]:
        for one in copy.deepcopy(entries):
            result["results"].append({**one, "case": case["name"], "bytes": 10**9})
    pictures = drawn(result)
    assert list(pictures) == ["allreduce-1-GB"]
    words = words_of(pictures["allreduce-1-GB"])
    assert {"allreduce of 1 GB", "ranks", "peak of the hardware"} <= words
    assert (
        "published: JSC, Open MPI with UCC+NCCL" in words
        and "published: JSC, plain Open MPI" in words
    )


def test_peaks_of_a_case():
    """A line only where the site says that it bounds this shape."""
    every = [
        {"nodes": "one", "gpus": 4, "gbytes_per_s": 300},
        {"nodes": "one", "gpus": 2, "gbytes_per_s": 100},
        {"nodes": "many", "gpus": 4, "gbytes_per_s": 90},
        {"nodes": "one", "gpus": None, "gbytes_per_s": 450},
    ]

    def values(nodes, ranks, groups=None):
        case = {"nodes": nodes, "ranks": ranks, "groups": groups}
        return [peak["gbytes_per_s"] for peak in peaks.of_case(every, case)]

    assert values(1, 4) == [300, 450] and values(1, 2) == [100, 450] and values(3, 12) == [90]
    assert values(3, 6) == [] and values(None, None) == [] and values(1, 4, "0/1+2/3") == []


GPUS = {
    "NVIDIA H200": 450,
    "NVIDIA H100 80GB HBM3": 450,
    "NVIDIA GH200 120GB": 450,
    "NVIDIA A100-SXM4-40GB": 300,
    "A100-SXM4-80GB": 300,
    "Tesla V100-SXM2-16GB": 150,
    "NVIDIA B200": 900,
    "NVIDIA H200 NVL": None,
    "NVIDIA H100 PCIe": None,
    "NVIDIA A100 80GB PCIe": None,
    "NVIDIA A100-SXM-64GB": None,
    "Tesla V100-PCIE-16GB": None,
    "AMD Instinct MI300X": None,
}


@pytest.mark.parametrize(("device", "value"), GPUS.items())
def test_peak_of_a_model(world, device, value):
    """For a site that has none of its own; not of cards on PCIe, which have names much like it."""
    found = peaks.of_result([], {"devices": [device]}, str(world.prefix))
    assert [(peak["gbytes_per_s"], peak["nodes"]) for peak in found] == [(value, "one")] * (
        value is not None
    )
    assert not found or "NVIDIA" in found[0]["source"]


def test_peaks_of_models(world):
    """The site's own comes first; two models at once, and the simulation, have none."""
    prefix = str(world.prefix)
    own = [{"nodes": "one", "gpus": 2, "gbytes_per_s": 100}]
    assert peaks.of_result(own, {"devices": ["NVIDIA H200"]}, prefix) is own
    far = [{"nodes": "many", "gpus": 4, "gbytes_per_s": 100}]
    both = peaks.of_result(far, {"devices": ["NVIDIA H200"]}, prefix)
    assert both[:1] == far and len(both) == 2
    assert peaks.of_result(both, {"devices": ["NVIDIA H200"]}, prefix) is both
    assert peaks.of_result([], {"devices": ["NVIDIA H200", "NVIDIA B200"]}, prefix) == []
    told = {"devices": ["NVIDIA H200"], "simulated": "cuda:2"}
    assert peaks.of_result([], told, prefix) == [] == peaks.of_result([], {}, prefix)
    assert peaks.load("/no/prefix")["gpus"] == []


def test_peak_in_the_picture(world, drawn):
    """Of a result without peaks: by the model where that is known, else it is said that none is."""
    world.ucc()
    world.measure("--no-plot", "--site", "generic-nvidia", "--rounds", "1")
    result = world.result()
    assert result["peaks"] == []
    unknown = "peak of the hardware: unknown"
    assert unknown in words_of(drawn(result)["job-allreduce"])
    result["measured_with"]["devices"] = ["NVIDIA H200"]
    words = words_of(drawn(result)["job-allreduce"])
    assert "450 GB/s: NVLink 4, all links of an H200" in words and unknown not in words


def test_ribbon():
    """Neighbours with the same path are one strip; borders lie half way on the axis."""
    rows = {size: {"path": path} for size, path in ((8, "a"), (16, "a"), (32, "b"), (64, "a"))}
    assert plot.runs_of(rows) == [("a", 8, 16), ("b", 32, 32), ("a", 64, 64)]
    assert plot.edges([4, 16, 64]) == [2.5, 8, 32, 102.4]


def test_ratio_axis_is_bounded():
    assert plot.ratio_limits([0.5, 2.0]) == (0.4, 2.5)
    assert plot.ratio_limits([0.5, 600.0]) == (0.4, 4)


def test_transports_in_the_picture(world, drawn):
    """The curve of a route that was not served as it is named says so, and so does its strip."""
    world.ucc()
    world.fake["transports"] = {"ucc": ["TL_UCP"] * 4, "ucc-ccl": ["TL_CUDA"] * 4}
    world.measure("--no-plot", "--max", "256k", "--rounds", "1")
    result = world.result()
    words = words_of(drawn(result)["job-allreduce"])
    assert {"MPI + UCC + NCCL: NOT AS NAMED, by TL/CUDA", "MPI + UCC"} <= words
    assert {"TL/UCP", "TL/CUDA: not as named"} <= words
    for one in result["results"]:
        del one["transport"], one["as_named"]
    words = words_of(drawn(result)["job-allreduce"])
    assert {"MPI + UCC + NCCL (not proved)", "MPI + UCC (not proved)", "not proved"} <= words
