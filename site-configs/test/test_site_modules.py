# SPDX-License-Identifier: BSD-3-Clause
"""The module files under a real Lmod: what they set, what they refuse, and that nothing stays."""

import random
import re
import shutil
import subprocess

import pytest
from site_lmod import (
    LMOD,
    OWN,
    VERSION,
    left_over,
    loaded,
    needs,
    needs_lmod,
    short,
    shown,
    write_modules,
)
from site_shells import BY_NAME, SHELLS, difference, read_env
from site_tree import TOP, install, moved_drivers

pytestmark = needs_lmod


@pytest.mark.parametrize("shell", SHELLS, ids=str)
def test_load_and_unload_in_every_shell(shell, lmod):
    commands = ["load xccl xccl-auto", "unload xccl-auto xccl"]
    seen, done = lmod(*commands, shell=shell.name, env=OWN)
    assert (done.stdout, done.stderr) == ("", "")
    on = seen[1]
    assert loaded(on)[:2] == [f"xccl-site/sim/{VERSION}", f"xccl-route/xccl/{VERSION}"]
    assert on["XCCL_SITE"] == "sim"
    assert on["XCCL_ROUTE"] == "xccl"
    assert on["LD_PRELOAD"] == f"{on['XCCL_ROOT']}/lib/libxccl-mpi.so:libutil.so.1"
    assert on["MANPATH"] == f"{on['XCCL_ROOT']}/share/man:/m"
    assert loaded(seen[2]) == []
    assert left_over(seen[0], seen[2]) == {}


def test_modules_and_scripts_set_the_same(lmod, sites, prefix, tmp_path):
    """Whichever way it was switched on, a program gets the same environment."""
    bash = BY_NAME["bash"]
    for site, facts in sites.items():
        for route, of in facts["resolved"]["routes"].items():
            if of["refused"] or (route != "xccl" and site not in ("generic-amd", "dgx-a100")):
                continue  # what a route sets depends on the vendor only
            before = needs(sites, site)
            words = " ".join([*before, f"xccl-site/{site}", "xccl", f"xccl-route/{route}"])
            seen, _ = lmod(
                "load empty " + " ".join(before), f"load {words}", env={"XCCL_SITE": ""}
            )
            lines = [bash.dump(tmp_path / "a"), *bash.xccl(prefix, site, "--route", route)]
            bash.run([*lines, bash.dump(tmp_path / "b")], tmp_path, {"XCCL_SITE": ""})
            by_script = difference(read_env(tmp_path / "a"), read_env(tmp_path / "b"))
            by_module = left_over(seen[1], seen[2])
            strip = ("_XCCL_ENV_", "_XCCL_OLD_", "_XCCL_ROUTE_", "_XCCL_SITE_")
            assert {n: v[1] for n, v in by_module.items() if not n.startswith(strip)} == {
                n: v[1] for n, v in by_script.items() if not n.startswith(strip)
            }, (site, route)


@pytest.mark.parametrize("seed", range(6))
def test_any_order_leaves_nothing_behind(seed, lmod):
    choice = random.Random(seed)
    sites = ["sim", "dgx-a100", "dgx-h100", "generic-nvidia"]
    routes = ["xccl", "ucc", "ucc-ccl", "mpi"]
    settings = ["debug", "check", "many-comms"]
    steps = []
    for _ in range(12):
        steps.append(
            choice.choice(
                [
                    "load xccl",
                    "load xccl",
                    "unload xccl",
                    f"load xccl-site/{choice.choice(sites)}",
                    f"unload xccl-site/{choice.choice(sites)}",
                    f"load xccl xccl-route/{choice.choice(routes)}",
                    f"load xccl xccl-route/{choice.choice(routes)}",
                    f"unload xccl-route/{choice.choice(routes)}",
                    "load xccl-auto",
                    "unload xccl-auto",
                    f"load xccl-settings/{choice.choice(settings)}",
                    f"unload xccl-settings/{choice.choice(settings)}",
                ]
            )
        )
    seen, _ = lmod(*steps, "purge", env=OWN, fail=True)
    assert left_over(seen[0], seen[-1]) == {}, steps
    assert loaded(seen[-1]) == []
    for step, env in zip(steps, seen[1:]):
        check_consistent(env, step)


def check_consistent(env, step):
    """The environment says what the list of modules says."""
    names = {m.split("/")[0]: m.split("/")[1] for m in loaded(env)}
    for name, variable in (("debug", "NCCL_DEBUG"), ("check", "XCCL_CHECK")):
        assert (variable in env) == (f"xccl-settings/{name}" in short(env)), step
    assert env["XCCL_SITE"] == names.get("xccl-site", "sim"), step
    assert env.get("XCCL_ROUTE") == names.get("xccl-route"), step
    enabled = {"xccl": "0", "mpi": "0", "ucc": "1", "ucc-ccl": "1"}
    want = enabled.get(names.get("xccl-route"), OWN["OMPI_MCA_coll_ucc_enable"])
    assert env["OMPI_MCA_coll_ucc_enable"] == want, step
    assert ("UCC_TL_NCCL_TUNE" in env) == (names.get("xccl-route") == "ucc-ccl"), step
    assert env["UCC_TLS"] == ("^nccl,rccl" if names.get("xccl-route") == "ucc" else "ucp"), step
    assert ("libxccl-mpi.so" in env["LD_PRELOAD"]) == ("xccl-auto" in names), step
    assert (env["XCCL_ROOT"] != OWN["XCCL_ROOT"]) == ("xccl" in names), step
    hca = env["NCCL_IB_HCA"].startswith("=mlx5_0")
    assert hca == names.get("xccl-site", "").startswith("dgx"), step


@pytest.mark.parametrize(
    ("shell", "own"),
    [*((shell, None) for shell in SHELLS), *((BY_NAME["zsh"], o) for o in ("mlx5_9", "=mlx5_9"))],
    ids=str,
)
def test_a_value_that_begins_with_an_equals_sign(shell, own, lmod, sites):
    """zsh reads =word as the path of a command, and Lmod does not quote it: the value arrives all the same."""
    value = {v["name"]: v["value"] for v in sites["dgx-a100"]["variables"]}["NCCL_IB_HCA"]
    assert value.startswith("=")
    commands = ["load xccl-site/dgx-a100 xccl", "load xccl-site/dgx-h100", "unload xccl", "purge"]
    env = {"NCCL_IB_HCA": own} if own else {}
    seen, done = lmod(*commands, "load xccl-site/dgx-a100", "purge", shell=shell.name, env=env)
    assert "not found" not in done.stderr
    assert (seen[1]["XCCL_SITE"], seen[1]["NCCL_IB_HCA"]) == ("dgx-a100", value)
    assert seen[2]["NCCL_IB_HCA"].startswith("=mlx5_0,mlx5_3,")
    assert left_over(seen[0], seen[4]) == {}
    assert seen[5]["NCCL_IB_HCA"] == value
    assert left_over(seen[0], seen[6]) == {}


def test_a_value_of_the_user_that_begins_with_an_equals_sign(lmod, sites):
    """Also where the site's own begins otherwise: zsh gets it back at unload."""
    site = "lumi-g"
    commands = [f"load xccl-site/{site}", f"unload xccl-site/{site}"]
    seen, done = lmod(*commands, shell="zsh", env={"NCCL_SOCKET_IFNAME": "=eth0"})
    assert "not found" not in done.stderr
    assert seen[1]["NCCL_SOCKET_IFNAME"] == sites[site]["resolved"]["shell"]["NCCL_SOCKET_IFNAME"]
    assert left_over(seen[0], seen[2]) == {}


def test_save_and_restore(lmod):
    commands = ["load xccl xccl-settings/debug", "load xccl-route/ucc", "-q save one"]
    seen, _ = lmod(*commands, "purge", "-q restore one", "purge", env=OWN)
    assert left_over(seen[2], seen[5]) == {}
    assert sorted(loaded(seen[2])) == sorted(loaded(seen[5]))
    assert seen[5]["UCC_TLS"] == "^nccl,rccl"
    assert left_over(seen[0], seen[6]) == {}


def test_a_route_chosen_by_hand_outlives_xccl(lmod):
    seen, _ = lmod("load xccl", "load xccl-route/mpi", "unload xccl", "unload xccl-route/mpi")
    assert short(seen[3]) == ["xccl-route/mpi"]
    assert loaded(seen[4]) == []
    assert left_over(seen[0], seen[4]) == {}


def test_a_site_loaded_by_hand_outlives_xccl(lmod):
    site = "xccl-site/dgx-a100"
    seen, _ = lmod(f"load {site}", "load xccl", "unload xccl", f"unload {site}")
    assert seen[2]["XCCL_SITE"] == "dgx-a100"
    assert short(seen[3]) == ["xccl-site/dgx-a100"]
    assert left_over(seen[0], seen[4]) == {}


@pytest.mark.parametrize(
    ("env", "site"),
    [
        ({"XCCL_SIM": "cuda:4"}, "sim"),
        ({"SLURMD_NODENAME": "jwb0431"}, "juwels-booster"),
        ({"NERSC_HOST": "perlmutter"}, "perlmutter"),
        ({"SLURM_CLUSTER_NAME": "frontier"}, "frontier"),
        ({"XCCL_SITE": "dgx-h100", "NERSC_HOST": "perlmutter"}, "dgx-h100"),
    ],
)
def test_detection(env, site, lmod, sites):
    words = " ".join([*needs(sites, site), "xccl"])
    seen, _ = lmod(f"load {words}", env={"XCCL_SITE": "", **env})
    assert seen[1]["XCCL_SITE"] == site


def test_detection_by_drivers(lmod, tmp_path):
    """An NVIDIA machine whose processor has graphics of AMD is no AMD machine."""
    tree = install(tmp_path / "tree")
    file = tree / f"share/xccl/modulefiles/xccl/{VERSION}.lua"
    file.write_text(moved_drivers(file.read_text(encoding="utf-8"), tmp_path), encoding="utf-8")
    (tmp_path / "kfd").touch()
    (tmp_path / "nvidia").touch()
    seen, _ = lmod("load xccl", tree=tree, env={"XCCL_SITE": ""})
    assert seen[1]["XCCL_SITE"] == "generic-nvidia"
    (tmp_path / "nvidia").unlink()
    seen, _ = lmod("load xccl", tree=tree, env={"XCCL_SITE": ""})
    assert seen[1]["XCCL_SITE"] == "generic-amd"


def test_a_machine_that_is_not_recognised(lmod, tmp_path):
    tree = install(tmp_path / "tree")
    file = tree / f"share/xccl/modulefiles/xccl/{VERSION}.lua"
    file.write_text(moved_drivers(file.read_text(encoding="utf-8"), tmp_path), encoding="utf-8")
    seen, done = lmod("load xccl", "unload xccl", tree=tree, env={"XCCL_SITE": ""})
    assert short(seen[1]) == ["xccl-route/xccl"]
    text = shown(done.stderr)
    assert text.count("no site is recognised on this host") == 1
    assert "module load xccl-site/generic-nvidia" in text and "alps, dgx-a100" in text
    _, done = lmod("load xccl-site/sim xccl", tree=tree, env={"XCCL_SITE": ""})
    assert done.stderr == ""


def test_a_search_path_of_man_that_needs_nothing_is_left_alone(lmod):
    seen, _ = lmod("load xccl", "unload xccl", env={"MANPATH": "/m:"})
    assert seen[1]["MANPATH"] == "/m:", "the empty part makes man look beside PATH"
    assert left_over(seen[0], seen[2]) == {}


@pytest.mark.parametrize(("twice", "after"), [("no", "/x:/y"), ("yes", "/x:/y:/x")])
def test_an_entry_that_a_search_path_had_twice(lmod, twice, after):
    """As docs/sites/environment.md says: Lmod drops the second one, unless it is told otherwise."""
    env = {"LD_LIBRARY_PATH": "/x:/y:/x", "LMOD_DUPLICATE_PATHS": twice}
    seen, _ = lmod("load xccl", "unload xccl", env=env)
    assert seen[2]["LD_LIBRARY_PATH"] == after


@pytest.mark.parametrize("later", ["$MANPATH:", ":$MANPATH", "/n::$MANPATH"])
def test_a_search_path_of_man_that_changes_after_load(lmod, later):
    """An empty part that came later does not keep the folder of xccl."""
    commands = ["load xccl", f'!export MANPATH="{later}"', "unload xccl"]
    seen, _ = lmod(*commands, env={"MANPATH": "/m"})
    assert "xccl" in seen[2]["MANPATH"]
    assert "xccl" not in seen[3]["MANPATH"]


def test_the_route_may_be_named_by_a_variable(lmod):
    seen, _ = lmod("load xccl", "unload xccl", env={"XCCL_ROUTE": "mpi"})
    assert "xccl-route/mpi" in short(seen[1])
    assert left_over(seen[0], seen[2]) == {}


@pytest.mark.parametrize(
    ("words", "missing", "remedy"),
    [
        ("xccl-site/frontier", "MPI is not loaded yet", "module load PrgEnv-gnu cray-mpich"),
        (
            "cray-mpich xccl-site/frontier",
            "the ROCm runtime with RCCL is not loaded yet (rocm or amd)",
            "module load craype-accel-amd-gfx90a rocm",
        ),
        ("OpenMPI xccl-site/juwels-booster", "NCCL is not loaded yet", "module load Stages/2025"),
    ],
)
def test_what_a_site_needs_may_come_later(lmod, words, missing, remedy):
    """A warning, which is no failure: a job script with `set -e` goes on."""
    seen, done = lmod(f"!module load {words} || exit 9", "purge", env=OWN)
    assert done.returncode == 0
    assert missing in shown(done.stderr)
    assert remedy in shown(done.stderr)
    assert short(seen[1]) == [words.rsplit(" ", maxsplit=1)[-1]]
    assert left_over(seen[0], seen[2]) == {}


ERRORS = [
    ("load xccl", {"XCCL_SITE": "atlantis"}, "unknown site 'atlantis'", "sites: alps, dgx-a100"),
    ("load xccl", {"XCCL_ROUTE": "nccl"}, "unknown route 'nccl'", "routes: xccl, ucc, ucc-ccl"),
    (
        "load cray-mpich rocm xccl-site/frontier xccl xccl-route/ucc",
        {},
        "UCC needs UCX, and Slingshot has libfabric only",
        "module load xccl-route/xccl",
    ),
    (
        "load mpich xccl xccl-route/ucc-ccl",
        {},
        "goes through Open MPI, but mpich is loaded",
        "module load openmpi",
    ),
    (
        "load xccl xccl-settings/frontier",
        {},
        "these are settings of Frontier",
        "module load xccl-site/frontier xccl",
    ),
]


@pytest.mark.parametrize(("command", "env", "cause", "remedy"), ERRORS)
def test_errors_say_what_to_load(command, env, cause, remedy, lmod):
    seen, done = lmod(command, env={**OWN, **env}, fail=True)
    assert "status=1" in done.stdout
    assert cause in shown(done.stderr)
    assert remedy in shown(done.stderr)
    assert left_over(seen[0], seen[1]) == {}
    assert loaded(seen[1]) == []


def test_an_mpi_without_a_build_of_the_interposer(lmod, tmp_path):
    tree = install(tmp_path / "tree")
    (tree / "lib/xccl/libxccl-mpi-mpich.so").unlink()
    _, done = lmod("load mpich xccl", fail=True, tree=tree)
    assert "mpich is loaded, but this xccl was built for: openmpi" in shown(done.stderr)
    seen, _ = lmod("load openmpi xccl", tree=tree)
    assert "xccl-route/xccl" in short(seen[1])


def test_no_mpi_at_all(lmod, tmp_path):
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("env", "lua5.3", "lua", "uname", "bash", "tty", "ls", "expr", "sed", "ps"):
        if shutil.which(name):
            (tools / name).symlink_to(shutil.which(name))
    _, done = lmod("load xccl", env={"PATH": str(tools)}, fail=True)
    assert "no MPI is loaded yet; before you run, load it" in shown(done.stderr)
    (tools / "mpiexec").symlink_to("/bin/true")
    _, done = lmod("load xccl", env={"PATH": str(tools)}, fail=True)
    assert (done.stdout, done.stderr) == ("status=0\n", "")


def test_libraries_below_lib64(lmod, tmp_path):
    """Where CMake installs into lib64, modules and scripts say so."""
    tree = install(tmp_path / "tree")
    (tree / "lib").rename(tree / "lib64")
    shutil.rmtree(tree / "share")
    subprocess.run([TOP / "ci/install-tree", tree], check=True, timeout=60)
    seen, _ = lmod("load xccl xccl-auto", "purge", tree=tree)
    assert seen[1]["LD_LIBRARY_PATH"] == f"{tree}/lib64"
    assert seen[1]["LD_PRELOAD"] == f"{tree}/lib64/libxccl-mpi.so"
    for name in ("bash", "tcsh", "fish"):
        shell = BY_NAME[name]
        lines = [*shell.xccl(tree, "sim"), shell.dump(tmp_path / "on"), "xccl_env off"]
        shell.run([*lines, shell.dump(tmp_path / "off")], tmp_path)
        assert read_env(tmp_path / "on")["PKG_CONFIG_PATH"] == f"{tree}/lib64/pkgconfig"
        assert "LD_LIBRARY_PATH" not in read_env(tmp_path / "off")


def test_the_tools_complete_in_bash(lmod, tmp_path):
    tree = install(tmp_path / "tree")
    source = TOP / "libxccl/tools/completion/bash"
    shutil.copytree(source, tree / "share/bash-completion/completions")
    tools = sorted(path.name for path in source.iterdir())
    show = f"!complete -p {' '.join(tools)}; declare -F _xccl_run"
    _, done = lmod("load xccl", show, "purge", f"{show} || echo gone", tree=tree, fail=True)
    lines = [line for line in done.stdout.splitlines() if not line.startswith("status")]
    complete = [f"complete -F _{tool.replace('-', '_')} {tool}" for tool in tools]
    assert lines == [*complete, "_xccl_run", "gone"]


def test_a_source_tree_is_refused(lmod, tmp_path):
    target = tmp_path / "source/share/xccl"
    target.mkdir(parents=True)
    (target / "modulefiles").symlink_to(TOP / "modulefiles")
    _, done = lmod("load xccl", fail=True, tree=tmp_path / "source")
    assert "install xccl (make install PREFIX=...)" in shown(done.stderr)


def test_a_moved_installation_is_refused(lmod, tmp_path):
    tree = install(tmp_path / "tree").rename(tmp_path / "moved")
    seen, done = lmod("load xccl", fail=True, tree=tree)
    assert "status=1" in done.stdout and loaded(seen[1]) == []
    text = shown(done.stderr)
    assert f"installed in {tmp_path}/tree, which is not there any more" in text
    assert "ci/install-tree PREFIX" in text
    subprocess.run([TOP / "ci/install-tree", tree], check=True, timeout=60)
    seen, done = lmod("load xccl", tree=tree)
    assert (seen[1]["XCCL_ROOT"], done.stderr) == (str(tree), "")


def test_changing_the_vendor_under_a_route_that_depends_on_it(lmod):
    seen, done = lmod(
        "load xccl-site/generic-amd xccl xccl-route/ucc-ccl",
        "load xccl-site/dgx-h100",
        "unload xccl-route/ucc-ccl",
        "load xccl-site/dgx-h100",
        "load xccl-route/ucc-ccl",
        "purge",
        fail=True,
        env=OWN,
    )
    assert "UCC_TL_RCCL_TUNE" in seen[1]
    assert "module unload xccl-route/ucc-ccl" in shown(done.stderr)
    assert left_over(seen[1], seen[2]) == {}
    assert "UCC_TL_NCCL_TUNE" in seen[5]
    assert "UCC_TL_RCCL_TUNE" not in seen[5]
    assert left_over(seen[0], seen[6]) == {}


def test_the_plugin_module_of_a_site_is_used_where_it_is(lmod, tmp_path):
    plugin = write_modules(
        tmp_path / "olcf", {"rccl-net-plugin/1.0": {"NCCL_NET_PLUGIN": "/opt/librccl-net.so"}}
    )
    words = "cray-mpich rocm"
    commands = [
        f"load {words}",
        "load xccl-site/frontier xccl",
        "unload xccl xccl-site/frontier",
        "purge",
    ]
    seen, _ = lmod(*commands, extra=[plugin], env=OWN)
    assert "rccl-net-plugin/1.0" in loaded(seen[2])
    assert seen[2]["NCCL_NET_PLUGIN"] == "/opt/librccl-net.so"
    assert seen[2]["NCCL_CROSS_NIC"] == OWN["NCCL_CROSS_NIC"], "the module sets these itself"
    assert left_over(seen[1], seen[3]) == {}
    manual, _ = lmod(*commands, env=OWN)
    assert manual[2]["NCCL_CROSS_NIC"] == "1"
    assert manual[2]["NCCL_SOCKET_IFNAME"] == "hsn0,hsn1,hsn2,hsn3"
    assert left_over(manual[1], manual[3]) == {}


def test_the_plugin_module_of_a_site_may_need_what_comes_later(lmod, tmp_path):
    """A runtime that is not loaded yet is a warning, also where the plugin's module insists on it."""
    file = tmp_path / "olcf/rccl-net-plugin/1.0.lua"
    file.parent.mkdir(parents=True)
    file.write_text('prereq("rocm")\nsetenv("NCCL_NET_PLUGIN", "/opt/plugin")\n', encoding="utf-8")
    commands = ["load cray-mpich xccl-site/frontier xccl", "load rocm", "load xccl-site/frontier",
                "unload rccl-net-plugin", "load xccl-site/frontier", "purge"]  # fmt: skip
    seen, done = lmod(*commands, extra=[tmp_path / "olcf"], env=OWN, fail=True)
    assert done.stdout.splitlines() == ["status=0"] * len(commands)
    assert "it comes after rocm or amd; load that, and then again" in shown(done.stderr)
    for without in (seen[1], seen[2]):
        assert "NCCL_NET_PLUGIN" not in without
        assert without["NCCL_CROSS_NIC"] == "1", "the site's own value"
    for within in (seen[3], seen[5]):
        assert "rccl-net-plugin/1.0" in loaded(within)
        assert within["NCCL_CROSS_NIC"] == OWN["NCCL_CROSS_NIC"], "the module sets these itself"
    assert (seen[4].get("NCCL_NET_PLUGIN"), seen[4]["NCCL_CROSS_NIC"]) == (None, "2")
    assert left_over(seen[0], seen[6]) == {}


def test_network_settings_for_programs_without_a_wrapper(lmod, sites):
    words = "load cray-mpich rocm xccl-site/frontier xccl"
    seen, _ = lmod(
        words, "load xccl-settings/frontier", "unload xccl-settings/frontier", "purge", env=OWN
    )
    launch = [v for v in sites["frontier"]["variables"] if v.get("scope") == "launch"]
    assert len(launch) > 5
    for variable in launch:
        assert variable["name"] not in seen[1], "libfabric serves MPI too: not for every program"
        if variable.get("nodes") != "one":
            assert seen[2][variable["name"]] == variable["value"]
    assert left_over(seen[1], seen[3]) == {}


def test_help_whatis_show_avail_and_spider_read_well(lmod):
    commands = ["help xccl", "whatis xccl", "show xccl-route/ucc", "-t avail", "spider xccl"]
    _, done = lmod(*commands, "-t spider", "help xccl-site/frontier", env={"LMOD_PAGER": "none"})
    text = done.stdout + done.stderr
    # With GPUs and cores, as a user can copy it: the README's.
    command = "srun -N 1 -n 4 --gpus-per-node=4 --cpus-per-task=8 --gpu-bind=none xccl-run ./app"
    assert command in text and command in (TOP / "README.md").read_text()
    assert "Description: xccl runs the MPI collectives of unmodified GPU programs" in text
    assert 'pushenv("OMPI_MCA_coll_ucc_priority","100")' in text
    for name in ("xccl-site/frontier", "xccl-route/ucc-ccl", "xccl-settings/debug/", "xccl-auto/"):
        assert name in text
    assert "Frontier (Oak Ridge Leadership Computing Facility)" in text
    assert "rror" not in text


def test_the_help_is_short_and_true(lmod, prefix):
    """It fits on a screen, names no list of sites, and what it names is there."""
    _, done = lmod("help xccl", env={"LMOD_PAGER": "none"})
    lines = (done.stdout + done.stderr).splitlines()
    assert len(lines) <= 20 and max(map(len, lines)) <= 120
    text = "\n".join(lines)
    assert not any(site in text for site in ("frontier", "lumi-g", "juwels"))
    named = set(re.findall(r"module load (xccl[a-z/-]*)\s", text + "\n"))
    assert {"xccl", "xccl-route/mpi", "xccl-auto"} <= named
    for name in named - {"xccl-site/"}:
        assert (prefix / "share/xccl/modulefiles" / name).is_dir(), name


def test_every_module_file_is_sound(prefix):
    """Several times: Lmod visits the files in an order of chance."""
    for _ in range(8):
        done = subprocess.run(
            [LMOD / "check_module_tree_syntax", prefix / "share/xccl/modulefiles"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_reading_all_modules_needs_no_site(prefix):
    """Spider's cache is made by a cron job of the centre: no file may fail or speak there."""
    done = subprocess.run(
        [LMOD / "spider", "-o", "jsonSoftwarePage", prefix / "share/xccl/modulefiles"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0
    assert done.stderr == ""
    assert '"xccl-route' in done.stdout
