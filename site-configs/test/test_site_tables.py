# SPDX-License-Identifier: BSD-3-Clause
"""A site's tuning tables: the validator takes those that the library takes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from site_tree import TOP
from xccl_sites.tables import collectives, table_faults

HEAD = "measured = nobody\n"
ROW = "allreduce:64k-inf:cuda:2-inf:ccl"
MEASURED = "measured = 2026-11-22\nwhere = here\nlibrary = nccl 2.28.3\n"
SOUND = [
    f"{HEAD}{ROW}\n",
    f"\ufeff# of Windows\r\n{HEAD}\r\n##\n#\n  {ROW}#*:*:*:1:mpi\n",
    f"{MEASURED}gpu = NVIDIA H200, AMD *\nranks = 2-8\nnodes=*\nranks_per_node = 4\nmpi = staged\n{ROW}",
    f"{HEAD}ccl = nccl 2.27-2.28.3\nnetwork = tcp\n{ROW}",
    f"{HEAD}ccl = rccl\n{ROW}",
    f"{HEAD}ccl = mscclpp 0.9\n{ROW}",
    f"{HEAD}ccl = msccl 2.30-inf\n{ROW}",
    f"{HEAD}ccl = nccl 2.28.3-2.28\n{ROW}",
    f"{HEAD}reduce:8:rocm_managed:0-8:direct\nscan:0-1K:*:*:staged",
    f"{HEAD}reduce:1KiB-64kib:*:*:direct#scan:1MiB-inf:*:*:ccl",
]
FAULTY = [
    (f"{ROW}\n", 1, "no line 'measured = ...'"),
    (f"{HEAD}", 2, "no row"),
    (f"measured = yesterday\n{ROW}", 1, "allowed: the day, as 2026-11-22, or nobody"),
    (f"measured = 2026-13-22\n{ROW}", 1, "allowed: the day"),
    (f"measured = 2026-11-22\n{ROW}", 1, "without 'where' and 'library'"),
    (f"{HEAD}{HEAD}{ROW}", 2, "second 'measured'; allowed: each key once"),
    (f"{HEAD}gpus = NVIDIA *\n{ROW}", 2, "key 'gpus'; allowed: ccl, driver, gpu, "),
    (f"{HEAD}gpu =\n{ROW}", 2, "value '' of gpu"),
    (f"{HEAD}title = {160 * 'x'}\n{ROW}", 2, "a text of at most 159 bytes"),
    (f"{HEAD}ranks = 8-2\n{ROW}", 2, "value '8-2' of ranks; allowed: lo-hi"),
    (f"{HEAD}nodes = 0\n{ROW}", 2, "value '0' of nodes"),
    (f"{HEAD}ccl = gloo\n{ROW}", 2, "allowed: nccl, rccl, msccl, mscclpp, oneccl, hccl, and"),
    (f"{HEAD}ccl = nccl 2.28-2.27\n{ROW}", 2, "versions if not all, as nccl 2.27-2.28.3"),
    (f"{HEAD}network = ib\n{ROW}", 2, "allowed: fabric, tcp, *"),
    (f"{HEAD}mpi = cuda\n{ROW}", 2, "allowed: gpu-aware, staged, *"),
    (f"{HEAD}{ROW}\nranks = 2\n", 3, "allowed: settings before the first row"),
    (f"{HEAD}#{ROW}\n{ROW}", 2, "allowed: a comment, which begins with '# '"),
    (f"{HEAD}{ROW}\nallreduce 8 ccl", 3, "not five fields: 'allreduce 8 ccl'"),
    (f"{HEAD}{ROW}:x", 2, "not five fields"),
    (f"{HEAD}{ROW}#", 2, "not five fields: ''"),
    (f"{HEAD}allreduc:*:*:*:ccl", 2, "collective 'allreduc' in 'allreduc:*:*:*:ccl'; allowed: allred"),
    (f"{HEAD}*:64q:*:*:ccl", 2, "bytes '64q'"),
    (f"{HEAD}*:64kb:*:*:ccl", 2, "bytes '64kb'"),
    (f"{HEAD}*:1m-64k:*:*:ccl", 2, "bytes '1m-64k'"),
    (f"{HEAD}*:8-8:*:*:ccl", 2, "bytes '8-8'"),
    (f"{HEAD}*:*:gpu:*:ccl", 2, "memory 'gpu'"),
    (f"{HEAD}*:*:*:0:ccl", 2, "ranks '0'"),
    (f"{HEAD}*:*:*:2k:ccl", 2, "ranks '2k'"),
    (f"{HEAD}*:*:*:*:*", 2, "path '*'"),
    (f"{HEAD}*:*:*:*:nccl", 2, "path 'nccl' in '*:*:*:*:nccl'; allowed: mpi, ccl, direct, staged"),
]  # fmt: skip


def write(folder, text):
    file = folder / "one.table"
    file.write_text(text, encoding="utf-8", newline="")
    return file


def library_takes(file):
    """Whether the library reads the table; None without a build."""
    info = Path(os.environ.get("XCCL_TEST_BUILD", "/nowhere")) / "stage/bin/xccl-info"
    if not info.is_file():
        return None
    done = subprocess.run(
        [info, "--why", "allreduce:64k:cuda:8", "--gpu", "none"], capture_output=True, text=True,
        timeout=60, check=False, env={"PATH": os.environ["PATH"], "XCCL_TABLE": str(file)},
    )  # fmt: skip
    return "one.table: line " not in done.stderr


@pytest.mark.parametrize("text", SOUND)
def test_a_sound_table(text, tmp_path):
    file = write(tmp_path, text)
    assert [str(fault) for fault in table_faults(file)] == []
    assert library_takes(file) in (None, True)


@pytest.mark.parametrize(("text", "line", "told"), FAULTY)
def test_a_faulty_table(text, line, told, tmp_path):
    file = write(tmp_path, text)
    faults = [str(fault) for fault in table_faults(file)]
    assert any(fault.startswith(f"{file}:{line}: ") and told in fault for fault in faults), faults
    assert library_takes(file) in (None, False)


def test_the_tables_that_come_with_the_library():
    files = sorted((TOP / "libxccl/tables").glob("*.table"))
    assert len(files) > 5
    assert [fault for file in files for fault in table_faults(file)] == []
    assert len(collectives()) == 22 and {"allreduce", "barrier"} <= set(collectives())


@pytest.mark.parametrize("tool", ["validate", "render"])
def test_the_tools_name_a_faulty_table(tool, tmp_path):
    folder = tmp_path / "generic-amd"
    (folder / "tables").mkdir(parents=True)
    text = (TOP / "site-configs/generic-amd/site.yaml").read_text(encoding="utf-8")
    (folder / "site.yaml").write_text(text, encoding="utf-8")
    write(folder / "tables", f"{HEAD}*:*:*:*:nccl\n")
    command = [sys.executable, TOP / "site-configs/tools" / tool]
    out = tmp_path / "out"
    command += [folder] if tool == "validate" else ["--site", folder, "--output", out]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "tables/one.table:2: path 'nccl' in" in done.stderr
    assert not out.exists()
