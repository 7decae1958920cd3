# SPDX-License-Identifier: BSD-3-Clause
"""ci/install-tree: what it installs, and what it refuses."""

import os
import subprocess

import pytest
from site_tree import TOP, install


def install_tree(*arguments, **env):
    return subprocess.run(
        [TOP / "ci/install-tree", *arguments],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_nothing_is_left_to_fill_in(prefix):
    files = [file for file in (prefix / "share/xccl").rglob("*") if file.is_file()]
    assert len(files) > 100
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert not [p for p in ("@prefix@", "@site@", "@lib@") if p in text], file


def test_every_site_is_there_with_its_files(prefix, sites):
    for name in sites:
        folder = prefix / "share/xccl/sites" / name
        for file in ("site.json", "ranks.map", "launch.env"):
            assert (folder / file).is_file()
        jobs = list((folder / "jobs").glob("*.sbatch"))
        assert jobs
        for job in jobs:
            text = job.read_text(encoding="utf-8")
            assert f"module use '{prefix}/share/xccl/modulefiles'" in text


def test_a_staged_install_names_the_final_place(tmp_path):
    done = install_tree("/opt/xccl", DESTDIR=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    module = next((tmp_path / "opt/xccl/share/xccl/modulefiles/xccl").glob("*.lua"))
    assert 'local root = "/opt/xccl"' in module.read_text(encoding="utf-8")


def test_installing_twice_is_installing_once(tmp_path):
    prefix = install(tmp_path / "tree", "--site", "sim")

    def contents():
        return {f: f.read_bytes() for f in (prefix / "share").rglob("*") if f.is_file()}

    first = contents()
    old = prefix / "share/xccl/modulefiles/xccl/0.0.1.lua"
    old.write_text("-- of a version that was replaced\n", encoding="utf-8")
    assert install_tree("--site", "sim", prefix).returncode == 0
    assert contents() == first


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "usage: ci/install-tree"),
        (("--sit", "sim", "/tmp/x"), "usage: ci/install-tree"),
        (("--site", "atlantis", "/tmp/x"), "unknown site 'atlantis'; sites: alps dgx-a100"),
        (("/tmp/it's here",), "allowed: letters, digits"),
        (("/tmp/a|b",), "allowed: letters, digits"),
    ],
)
def test_what_it_refuses(arguments, told):
    done = install_tree(*arguments)
    assert done.returncode == 2
    assert told in done.stderr
    assert done.stdout == ""
