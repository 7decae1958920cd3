# SPDX-License-Identifier: BSD-3-Clause
"""The hardware's peaks: from the site's file, else by the model of the GPUs; and which of them bound a case."""

import json
import os
import re

from xccl_common.options import Wrong

SCHEMA = "xccl-peaks-1"


def of_site(site):
    """Those of the site's file that say for which nodes they are."""
    sources = site["sources"] if site else {}
    return [
        {
            "of": link["of"],
            "gbytes_per_s": link["gbytes_per_s"],
            "nodes": link["nodes"],
            "gpus": link.get("gpus"),
            "verified": link["verified"],
            "source": sources[link["source"]]["title"],
        }
        for link in (site["hardware"]["links"] if site else [])
        if "nodes" in link
    ]


def load(prefix):
    """What the vendors say of their GPUs; nothing where the file is not installed."""
    path = os.path.join(prefix, "share/xccl/peaks.json")
    try:
        with open(path, encoding="utf-8") as f:
            value = json.load(f)
    except FileNotFoundError:
        return {"gpus": [], "sources": {}}
    except (OSError, ValueError) as error:
        raise Wrong(f"{path}: cannot be read ({error}); install xccl again") from error
    if value.get("schema") != SCHEMA:
        raise Wrong(f"{path}: no peaks (schema {value.get('schema')})")
    return value


def of_model(devices, known):
    """What bounds these GPUs within a node, where they are all of one model that is known."""
    fits = [
        next((gpu for gpu in known["gpus"] if re.fullmatch(gpu["device"], name)), None)
        for name in devices
    ]
    if not fits or None in fits or any(fit is not fits[0] for fit in fits):
        return []
    gpu = fits[0]
    return [
        {
            "of": gpu["of"],
            "gbytes_per_s": gpu["gbytes_per_s"],
            "nodes": "one",
            "gpus": None,
            "verified": "documented",
            "source": known["sources"][gpu["source"]]["title"],
        }
    ]


def of_result(found, measured_with, prefix):
    """The site's, and the model's where the site says nothing of one node."""
    if any(peak["nodes"] == "one" for peak in found) or measured_with.get("simulated"):
        return found
    return [*found, *of_model(measured_with.get("devices") or [], load(prefix))]


def of_case(every, case):
    """Those that bound a case: within a node or between nodes, with so many GPUs of a node."""
    nodes, ranks = case.get("nodes"), case.get("ranks")
    if not nodes or not ranks or case.get("groups"):
        return []
    kind = "one" if nodes == 1 else "many"
    return [
        peak
        for peak in every
        if peak["nodes"] == kind and peak["gpus"] in (None, -(-ranks // nodes))
    ]
