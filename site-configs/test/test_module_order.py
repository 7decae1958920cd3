# SPDX-License-Identifier: BSD-3-Clause
"""Modules of sites, routes and settings beside each other: releases, order, what a centre shows."""

import os
import shutil

import pytest
from site_lmod import OWN, VERSION, left_over, loaded, needs_lmod, short, shown, write_modules
from site_tree import TOP, install

pytestmark = needs_lmod


def test_swapping_the_software_keeps_site_and_route(lmod, prefix, tmp_path):
    tree = two_releases(prefix, tmp_path)
    commands = [f"load xccl/{VERSION} xccl-route/mpi/{VERSION}", "swap xccl xccl/99.0", "purge"]
    seen, _ = lmod(*commands, tree=tree)
    assert sorted(loaded(seen[2])) == ["xccl-route/mpi/99.0", "xccl-site/sim/99.0", "xccl/99.0"]
    assert left_over(seen[0], seen[3]) == {}


def test_swapping_there_and_back(lmod, prefix, tmp_path):
    """The site and route that the user chose stay, also those that only the release holds by now."""
    tree = two_releases(prefix, tmp_path)
    first = f"load xccl-site/dgx-a100/{VERSION} xccl/{VERSION} xccl-route/mpi/{VERSION}"
    swaps = ["swap xccl xccl/99.0", f"swap xccl xccl/{VERSION}", "load xccl/99.0"]
    seen, done = lmod(first, *swaps, "unload xccl", f"load xccl/{VERSION}", "purge", tree=tree)
    for env, release in zip(seen[1:5], [VERSION, "99.0", VERSION, "99.0"]):
        names = [f"xccl-route/mpi/{release}", f"xccl-site/dgx-a100/{release}", f"xccl/{release}"]
        assert sorted(loaded(env)) == names
    assert "no site is recognised" not in done.stderr
    assert left_over(seen[0], seen[5]) == {}, "nothing is remembered after a plain unload"
    assert short(seen[6]) == ["xccl-route/xccl", "xccl-site/sim"]
    assert left_over(seen[0], seen[7]) == {}


@pytest.mark.parametrize("start", ["xccl-site/alps xccl xccl-auto", "xccl-site/alps xccl-auto"])
def test_swapping_brings_settings_and_preload_along(lmod, prefix, tmp_path, start):
    tree = two_releases(prefix, tmp_path)
    with_release = " ".join(f"{m}/{VERSION}" for m in start.split())
    commands = [f"load {with_release} xccl-settings/debug/{VERSION} xccl-settings/alps/{VERSION}"]
    commands += ["swap xccl xccl/99.0", f"swap xccl xccl/{VERSION}", "purge"]
    seen, _ = lmod(*commands, tree=tree, env=OWN)
    for env, release in zip(seen[1:4], [VERSION, "99.0", VERSION]):
        assert {m.rsplit("/", 1)[1] for m in loaded(env)} == {release}
        assert {"xccl-settings/alps", "xccl-settings/debug"} < set(short(env))
        assert env["LD_PRELOAD"].count("libxccl-mpi.so") == 1
        assert f"xccl-auto/{release}" in loaded(env)
    assert left_over(seen[0], seen[4]) == {}


def test_settings_that_the_other_release_lacks(lmod, prefix, tmp_path):
    tree = two_releases(prefix, tmp_path)
    (tree / "share/xccl/modulefiles/xccl-settings/debug/99.0.lua").unlink()
    first = f"load xccl/{VERSION} xccl-settings/debug/{VERSION}"
    seen, done = lmod(first, "swap xccl xccl/99.0", tree=tree, fail=True)
    assert done.stdout.split() == ["status=0", "status=1"]
    assert "release 99.0 has no such module" in shown(done.stderr)
    assert "module unload xccl-settings/debug" in shown(done.stderr)
    assert left_over(seen[1], seen[2]) == {}


def test_another_release_that_a_module_brings(lmod, prefix, tmp_path):
    """Software that depends on the other release swaps it, too."""
    tree = two_releases(prefix, tmp_path)
    (tmp_path / "app").mkdir()
    (tmp_path / "app/1.0.lua").write_text('depends_on("xccl/99.0")\n', encoding="utf-8")
    commands = [f"load xccl/{VERSION} xccl-auto/{VERSION} xccl-route/mpi/{VERSION}"]
    seen, _ = lmod(*commands, "load app", "purge", tree=tree, extra=[tmp_path])
    assert {"xccl/99.0", "xccl-auto/99.0", "xccl-route/mpi/99.0"} < set(loaded(seen[2]))
    assert left_over(seen[0], seen[3]) == {}


def two_releases(prefix, folder):
    """The modules of this release and of another one beside them."""
    tree = folder / "two"
    shutil.copytree(prefix, tree)
    for file in (tree / "share/xccl/modulefiles").rglob(f"{VERSION}.lua"):
        text = file.read_text(encoding="utf-8").replace(VERSION, "99.0")
        file.with_name("99.0.lua").write_text(text, encoding="utf-8")
    return tree


@pytest.mark.parametrize("name", ["xccl-route/mpi", "xccl-site/dgx-a100", "xccl-settings/debug"])
def test_two_releases_do_not_mix(lmod, prefix, tmp_path, name):
    tree = two_releases(prefix, tmp_path)
    commands = [f"load xccl/{VERSION}", f"load {name}", f"load {name}/{VERSION}", "purge"]
    seen, done = lmod(*commands, tree=tree, fail=True)
    assert f"{name}/99.0 is of another release than xccl/{VERSION}" in shown(done.stderr)
    assert f"module load {name}/{VERSION}" in shown(done.stderr)
    assert left_over(seen[1], seen[2]) == {}
    assert f"{name}/{VERSION}" in loaded(seen[3])
    assert left_over(seen[0], seen[4]) == {}


def test_settings_combine(lmod):
    every = ["xccl-settings/check", "xccl-settings/debug", "xccl-settings/many-comms"]
    words = " ".join(every)
    seen, done = lmod(f"load {words} xccl", f"unload {every[1]}", "purge", env=OWN)
    assert done.stderr == ""
    assert [m for m in short(seen[1]) if "settings" in m] == every
    assert (seen[1]["XCCL_CHECK"], seen[1]["NCCL_DEBUG"]) == ("1", "INFO")
    assert "NCCL_DEBUG" not in seen[2]
    assert seen[2]["NCCL_LAUNCH_ORDER_IMPLICIT"] == "1"
    assert left_over(seen[0], seen[3]) == {}


@pytest.mark.parametrize(
    "words",
    [
        "xccl xccl-site/dgx-a100 xccl-route/mpi",
        "xccl-route/mpi xccl xccl-site/dgx-a100",
        "xccl-site/dgx-a100 xccl-route/mpi xccl",
        "xccl-route/mpi xccl-site/dgx-a100 xccl",
    ],
)
@pytest.mark.parametrize("site", ["", "sim"])
def test_the_order_of_loading_does_not_matter(lmod, words, site):
    seen, _ = lmod(f"load {words}", "purge", env={**OWN, "XCCL_SITE": site})
    assert short(seen[1]) == ["xccl-route/mpi", "xccl-site/dgx-a100"]
    assert (seen[1]["XCCL_SITE"], seen[1]["XCCL_ROUTE"]) == ("dgx-a100", "mpi")
    assert seen[1]["NCCL_IB_HCA"].startswith("=mlx5_0")
    assert site == "" or left_over(seen[0], seen[2]) == {}  # Lmod unsets what was set and empty


def test_settings_come_after_their_site(lmod):
    """The one exception, and the error names the order that works."""
    words = ["xccl-settings/alps", "xccl-site/alps", "xccl"]
    seen, done = lmod(f"load {' '.join(words)}", fail=True, env=OWN)
    assert "status=1" in done.stdout
    assert "module load xccl-site/alps xccl xccl-settings/alps" in shown(done.stderr)
    assert loaded(seen[1]) == []
    seen, done = lmod(f"load {' '.join([*words[1:], words[0]])}", fail=True, env=OWN)
    assert "status=0" in done.stdout
    assert "xccl-settings/alps" in short(seen[1])


def test_a_route_is_compared_with_an_mpi_that_is_loaded_before_it(lmod):
    _, done = lmod("load mpich xccl xccl-route/ucc", "load xccl-route/ucc xccl mpich", fail=True)
    assert done.stdout.split() == ["status=1", "status=0"]
    assert "goes through Open MPI, but mpich is loaded" in shown(done.stderr)


@pytest.mark.parametrize("mpi", ["mvapich2", "intel-oneapi-mpi", "MVAPICH2", "impi"])
def test_every_name_of_an_mpi_without_ucc_is_known(lmod, tmp_path, mpi):
    """Spack's, OpenHPC's and EasyBuild's."""
    tree = write_modules(tmp_path / "mpi", {f"{mpi}/1.0": {}})
    for route in ("ucc", "ucc-ccl"):
        _, done = lmod(f"load {mpi} xccl xccl-route/{route}", extra=[tree], fail=True)
        assert done.stdout.split() == ["status=1"]
        assert f"goes through Open MPI, but {mpi} is loaded" in shown(done.stderr)


def test_isambard_gets_the_nccl_of_its_centre(lmod, tmp_path):
    """BriCS's module has NCCL and the plugin, and sets the variables: it is loaded, or a warning names it."""
    job = (TOP / "site-configs/isambard-ai/jobs/gnu.sbatch").read_text(encoding="utf-8")
    assert job.index("module load brics/nccl\n") < job.index("module load xccl-site")
    tree = write_modules(tmp_path / "brics", {"brics/nccl/2.26.6-1": {"NCCL_CROSS_NIC": "0"}})
    commands = ["load cray-mpich", "load xccl-site/isambard-ai xccl", "purge"]
    seen, done = lmod(*commands, extra=[tree])
    assert "warning" not in done.stderr
    assert "brics/nccl/2.26.6-1" in loaded(seen[2])
    assert (seen[2]["NCCL_CROSS_NIC"], seen[2].get("NCCL_MIN_NCHANNELS")) == ("0", None)
    assert left_over(seen[0], seen[3]) == {}
    seen, done = lmod(*commands)
    assert "NCCL with the plugin for Slingshot is not loaded yet" in shown(done.stderr)
    assert (seen[2]["NCCL_CROSS_NIC"], seen[2]["NCCL_MIN_NCHANNELS"]) == ("1", "4")


@pytest.mark.parametrize("mpi", ["openmpi4", "openmpi5"])
def test_every_name_of_open_mpi_is_known(lmod, tmp_path, mpi):
    """OpenHPC's too: the build of the interposer for it must be there."""
    modules = write_modules(tmp_path / "mpi", {f"{mpi}/1.0": {}})
    tree = install(tmp_path / "tree")
    (tree / "lib/xccl/libxccl-mpi-openmpi.so").unlink()
    _, done = lmod(f"load {mpi} xccl", extra=[modules], fail=True, tree=tree)
    assert f"{mpi} is loaded, but this xccl was built for: mpich" in shown(done.stderr)


@pytest.mark.parametrize("site", ["juwels-booster", "frontier", "sim"])
def test_settings_of_another_site_are_refused(lmod, site):
    """Loading another site takes the place of the one before, but its settings would stay."""
    other = "alps" if site == "frontier" else "frontier"
    commands = [f"load xccl-site/{other} xccl xccl-settings/{other}", f"load xccl-site/{site}",
                f"unload xccl-settings/{other}", f"load xccl-site/{site}", "purge"]  # fmt: skip
    seen, done = lmod(*commands, fail=True, env=OWN)
    assert [line[-1] for line in done.stdout.splitlines()] == ["0", "1", "0", "0", "0"]
    assert f"module unload xccl-settings/{other}" in shown(done.stderr)
    assert "xccl-site/" + other in short(seen[2]), "nothing has changed"
    assert left_over(seen[1], seen[2]) == {}
    assert seen[4]["XCCL_SITE"] == site
    assert [name for name in seen[4] if name.startswith("FI_CXI_")] == []
    assert left_over(seen[0], seen[5]) == {}


def test_no_site_is_there_by_accident(lmod):
    """Neither by the name alone, nor where none is recognised."""
    seen, done = lmod("load xccl-site", fail=True, env={"XCCL_SITE": ""})
    assert "unknown" in done.stderr
    assert loaded(seen[1]) == []
    if os.path.exists("/proc/driver/nvidia/version"):
        pytest.skip("this machine has GPUs: it is a known one")
    seen, done = lmod("load xccl", "unload xccl", env={"XCCL_SITE": ""})
    assert done.stdout == "" and "no site is recognised on this host" in done.stderr
    assert short(seen[1]) == ["xccl-route/xccl"]
    assert seen[1].get("XCCL_SITE", "") == ""
    assert left_over(seen[0], seen[2]) == {}


def test_a_centre_shows_its_own_modules(lmod, tmp_path):
    tree = install(tmp_path / "tree", "--site", "frontier")
    _, done = lmod("-t avail", tree=tree)
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line.endswith(VERSION)]
    assert [line for line in lines if line.startswith("xccl-site")] == [
        f"xccl-site/frontier/{VERSION}"
    ]
    settings = [line.split("/")[1] for line in lines if line.startswith("xccl-settings")]
    assert sorted(settings) == ["check", "debug", "frontier", "many-comms"]
    seen, _ = lmod("load xccl", tree=tree, env={"XCCL_SITE": "dgx-a100"})
    assert short(seen[1]) == ["xccl-route/xccl", "xccl-site/dgx-a100"], "hidden, and there"
