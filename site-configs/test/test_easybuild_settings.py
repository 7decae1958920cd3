# SPDX-License-Identifier: BSD-3-Clause
"""The settings for EasyBuild under a real Lmod, beside the modules of xccl; EasyBuild itself is in easyconfigs/test."""

import runpy

import pytest
from site_lmod import OWN, left_over, needs_lmod, short, shown, write_modules
from site_tree import TOP

pytestmark = needs_lmod
# What a user may have set of what these modules set.
MINE = {**OWN, "NCCL_NET_GDR_LEVEL": "LOC", "MPICH_GPU_SUPPORT_ENABLED": "0", "XCCL_ROUTE": "mpi"}
FIRST = "load cray-mpich rocm"


def as_module(folder, site, route):
    """Write what EasyBuild makes of a settings file into @p folder."""
    file = TOP / f"easyconfigs/settings/{site}/xccl-settings-{route}.eb"
    known = runpy.run_path(file, {"SYSTEM": {"name": "system", "version": "system"}})
    lines = [f'setenv("{n}", "{v}")' for n, v in known.get("modextravars", {}).items()]
    module = folder / known["name"] / f"{known['version']}.lua"
    module.parent.mkdir(parents=True, exist_ok=True)
    module.write_text("\n".join([*lines, known["modluafooter"]]), encoding="utf-8")
    return folder


@pytest.fixture
def frontier(lmod, tmp_path):
    """Modules of Frontier: lmod(...) with the settings of route xccl and the centre's plugin."""
    tree = as_module(tmp_path / "eb", "frontier", "xccl")
    write_modules(tree, {"rccl-net-plugin/1.0": {"NCCL_NET_PLUGIN": "x"}})
    return lambda *commands, **more: lmod(*commands, extra=[tree], env=MINE, **more)


@pytest.mark.parametrize("shell", ["bash", "zsh"])
@pytest.mark.parametrize(
    "commands",
    [
        ["load xccl-settings/xccl", "unload xccl-settings/xccl"],
        ["load xccl-settings/xccl", "load xccl-site/frontier xccl"],
        ["load xccl-settings/xccl", "load rccl-net-plugin", "unload xccl-settings/xccl"],
        ["load rccl-net-plugin", "load xccl-settings/xccl", "unload rccl-net-plugin"],
    ],
)
def test_purge_leaves_nothing(frontier, commands, shell):
    seen, _ = frontier(FIRST, *commands, "purge", shell=shell)
    assert left_over(seen[0], seen[-1]) == {}


def test_the_settings_choose_site_and_route(frontier):
    seen, _ = frontier(FIRST, "load xccl-settings/xccl", "load xccl")
    assert (seen[2]["XCCL_SITE"], seen[2]["XCCL_ROUTE"]) == ("frontier", "xccl")
    assert (seen[2]["NCCL_NET_GDR_LEVEL"], seen[2]["NCCL_CROSS_NIC"]) == ("PHB", "1")
    assert {"xccl-site/frontier", "xccl-route/xccl"} <= set(short(seen[3]))


def test_behind_xccl_they_are_refused(frontier):
    """Either would take back the values of the other."""
    commands = ["load xccl-site/frontier xccl", "load xccl-settings/xccl", "purge"]
    seen, done = frontier(FIRST, *commands, fail=True)
    assert done.stdout.split() == ["status=0", "status=0", "status=1", "status=0"]
    assert "which sets the same variables" in shown(done.stderr)
    assert "module load xccl-route/xccl" in shown(done.stderr)
    assert left_over(seen[2], seen[3]) == {}
    assert left_over(seen[0], seen[4]) == {}


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_long_values_and_values_that_begin_with_an_equals_sign(lmod, sites, tmp_path, shell):
    """What EasyBuild's module sets is what xccl's own modules set."""
    tree = as_module(tmp_path / "eb", "dgx-h100", "ucc-ccl")
    words = ["load openmpi xccl-settings/ucc-ccl", "purge"]
    seen, done = lmod(*words, extra=[tree], env=OWN, shell=shell)
    assert "not found" not in done.stderr
    facts = sites["dgx-h100"]["resolved"]
    wanted = {**facts["shell"], **facts["routes"]["ucc-ccl"]["variables"]}
    assert len(wanted) > 5 and {name: seen[1].get(name) for name in wanted} == wanted
    assert left_over(seen[0], seen[2]) == {}
