# SPDX-License-Identifier: BSD-3-Clause
"""The sourced scripts of env/ in six shells: what they set, and that nothing of it stays."""

import os
import random
import shutil
import subprocess

import pytest
from site_shells import BY_NAME, PATH, SHELLS, Shell, difference, read_env
from site_tree import TOP, install, moved_drivers, put_libraries

POSIX = [shell for shell in SHELLS if shell.kind == "sh"]
# a value for some variables that the scripts set, among them empty ones and what needs care
STARTS = {
    "bare": {},
    "own": {"NCCL_IB_HCA": "mlx5_9", "OMPI_MCA_coll_ucc_enable": "yes", "XCCL_ROOT": "/opt/old"},
    "empty": {"NCCL_IB_HCA": "", "UCC_CONFIG_FILE": "", "LD_LIBRARY_PATH": "", "MANPATH": ""},
    "odd": {"NCCL_IB_HCA": 'a "b" $c * ?', "UCC_TLS": "x=y z", "PKG_CONFIG_PATH": "/a b::/c:"},
    "paths": {"LD_LIBRARY_PATH": "/x:/y", "MANPATH": "/m", "CMAKE_PREFIX_PATH": "/c"},
}


@pytest.fixture(params=SHELLS, ids=str)
def shell(request):
    request.param.need()
    return request.param


@pytest.fixture(params=POSIX, ids=str)
def posix(request):
    request.param.need()
    return request.param


@pytest.fixture(scope="module")
def of_lumi(tmp_path_factory):
    """An installation with a site of its own."""
    return install(tmp_path_factory.mktemp("lumi") / "tree", "--site", "lumi-g")


def expected(sites, prefix, site, route):
    """What must be set, from site.json alone."""
    facts = sites[site]["resolved"]
    return {
        "XCCL_ROOT": str(prefix),
        "XCCL_SITE": site,
        "XCCL_ROUTE": route,
        **facts["shell"],
        **facts["routes"][route]["variables"],
    }


def combinations(sites):
    return [
        (site, route)
        for site, facts in sites.items()
        for route, of in facts["resolved"]["routes"].items()
        if not of["refused"]
    ]


def test_every_site_and_route_sets_what_its_file_says(shell, prefix, sites, tmp_path):
    lines = []
    for site, route in combinations(sites):
        lines += shell.xccl(prefix, site, "--route", route)
        lines.append(shell.dump(tmp_path / f"{site}.{route}"))
    done = shell.run(lines, tmp_path)
    assert (done.stdout, done.stderr) == ("", "")
    for site, route in combinations(sites):
        now = read_env(tmp_path / f"{site}.{route}")
        want = expected(sites, prefix, site, route)
        assert {name: now.get(name) for name in want} == want
        known = {n for facts in sites.values() for n in facts["resolved"]["shell"]}
        known |= {
            n
            for facts in sites.values()
            for of in facts["resolved"]["routes"].values()
            for n in of["variables"]
        }
        assert not (known - set(want)) & set(now), "a variable of another site or route is left"
        assert now["PATH"].split(":")[0] == f"{prefix}/bin"
        assert now["LD_LIBRARY_PATH"] == f"{prefix}/lib"


@pytest.mark.parametrize("start", STARTS)
def test_off_restores_every_byte(shell, start, prefix, tmp_path):
    on = shell.xccl(prefix, "dgx-a100", "--route", "ucc-ccl")
    lines = [shell.dump(tmp_path / "before"), *on, shell.dump(tmp_path / "on")]
    lines += [*on, shell.dump(tmp_path / "again")]
    lines += ["xccl_env off", shell.dump(tmp_path / "after")]
    env = STARTS[start]
    done = shell.run(lines, tmp_path, env)
    assert (done.stdout, done.stderr) == ("", "")
    before, on, again, after = (read_env(tmp_path / n) for n in ("before", "on", "again", "after"))
    assert on != before
    assert on["NCCL_IB_HCA"].startswith("=mlx5_0")
    assert difference(on, again) == {}, "sourcing twice changed something"
    if shell.name == "dash":  # how one asks there, so these are the caller's own
        before.update(XCCL_SITE="dgx-a100", XCCL_ROUTE="ucc-ccl")
        after.update(XCCL_SITE="dgx-a100", XCCL_ROUTE="ucc-ccl")
    assert difference(before, after) == {}


@pytest.mark.parametrize("seed", range(4))
def test_any_order_ends_where_it_began(shell, seed, prefix, sites, tmp_path):
    choice = random.Random(seed)
    lines = [shell.dump(tmp_path / "before")]
    last = None
    for i in range(12):
        step = choice.random()
        if step < 0.2 and last:
            lines.append("xccl_env off")
            last = None
        else:
            last = choice.choice(combinations(sites))
            words = f"{last[0]} --route {last[1]}"
            lines += [f"xccl_env {words}"] if i and "off" not in lines[-1] else []
            lines += [] if i and "off" not in lines[-1] else shell.xccl(prefix, *words.split())
        lines.append(shell.dump(tmp_path / f"step{i}"))
    lines += [*([] if last is None else ["xccl_env off"]), shell.dump(tmp_path / "after")]
    # dash is told through variables, which are the caller's own then: begin with both set
    env = {"XCCL_SITE": "sim", "XCCL_ROUTE": "mpi", **STARTS["odd"], **STARTS["paths"]}
    shell.run([line for line in lines if line], tmp_path, env)
    before, after = read_env(tmp_path / "before"), read_env(tmp_path / "after")
    changed = difference(before, after)
    if shell.name == "dash":
        changed = {n: v for n, v in changed.items() if n not in ("XCCL_SITE", "XCCL_ROUTE")}
    assert changed == {}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("atlantis",), "unknown site 'atlantis'; sites: alps dgx-a100"),
        (("frontire",), "; did you mean 'frontier'?"),
        (("detect",), "unknown site 'detect'"),
        (("../sites/sim",), "unknown site '../sites/sim'"),
        (("sim", "--route", "nccl"), "there is no such route; routes: xccl ucc ucc-ccl mpi"),
        (("frontier", "--route", "ucc"), "UCC needs UCX, and Slingshot has libfabric only"),
        (("sim", "--route"), "--route needs a value: xccl, ucc, ucc-ccl or mpi"),
        (("--rout", "mpi"), "unknown option '--rout'"),
        (("sim", "alps"), "one site only: 'sim' or 'alps'?"),
    ],
)
@pytest.mark.parametrize("first", ["off", "on"])
def test_a_wrong_word_changes_nothing(shell, first, words, told, prefix, tmp_path):  # noqa: PLR0917
    if shell.name == "dash" and first == "off":
        pytest.skip("dash hands no arguments to a sourced file; xccl_env is tested")
    lines = shell.xccl(prefix, "dgx-h100") if first == "on" else []
    lines.append(shell.dump(tmp_path / "before"))
    call = " ".join(["xccl_env", *words]) if first == "on" else shell.xccl(prefix, *words)[0]
    lines += [call, shell.status(), shell.dump(tmp_path / "after")]
    done = shell.run(lines, tmp_path)
    assert told in done.stderr
    assert done.stdout == "status=1\n"
    assert difference(read_env(tmp_path / "before"), read_env(tmp_path / "after")) == {}


def test_dash_is_told_through_variables(prefix, tmp_path):
    dash = BY_NAME["dash"]
    dash.need()
    for name, value in (("XCCL_SITE", "atlantis"), ("XCCL_ROUTE", "nccl")):
        env = {"XCCL_SITE": "sim", "XCCL_ROUTE": "mpi", name: value}
        lines = [dash.dump(tmp_path / "a"), f". '{dash.script(prefix)}' || echo refused"]
        done = dash.run([*lines, dash.dump(tmp_path / "b")], tmp_path, env)
        assert done.stdout == "refused\n"
        assert value in done.stderr or "no such route" in done.stderr
        assert difference(read_env(tmp_path / "a"), read_env(tmp_path / "b")) == {}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--help", "usage: . xccl.sh [site]"),
        ("--list", "recognised here: none\n"),
        ("--status", "xccl is off\n"),
    ],
)
@pytest.mark.parametrize("form", ["XCCL_ENV_ARGS={0}; {1}", "XCCL_ENV_ARGS={0} {1}"])
def test_arguments_in_a_variable(posix, words, told, form, prefix, tmp_path):  # noqa: PLR0917
    """dash hands none to a sourced file; and where no site is recognised, there is no xccl_env."""
    if os.path.exists("/dev/kfd") or os.path.exists("/proc/driver/nvidia/version"):
        pytest.skip("this machine has GPUs: it is a known one")
    source = posix.source(posix.script(prefix))
    lines = ["set -u", posix.dump(tmp_path / "before"), form.format(words, source)]
    lines += ['test -z "${XCCL_ENV_ARGS+set}" || echo left', posix.dump(tmp_path / "after")]
    done = posix.run(lines, tmp_path, args=["in.dat"])
    assert told in done.stdout and not done.stderr and "left" not in done.stdout
    assert difference(read_env(tmp_path / "before"), read_env(tmp_path / "after")) == {}


def test_site_and_route_in_a_variable(posix, prefix, tmp_path):
    """Also exported, in a shell that parts words elsewhere; and off again."""
    source = posix.source(posix.script(prefix))
    lines = [posix.dump(tmp_path / "before"), "IFS=:", "export XCCL_ENV_ARGS='sim  --route mpi'"]
    lines += [source, posix.dump(tmp_path / "on"), "XCCL_ENV_ARGS=off", source]
    posix.run([*lines, posix.dump(tmp_path / "off")], tmp_path)
    before, on, off = (read_env(tmp_path / name) for name in ("before", "on", "off"))
    assert (on["XCCL_SITE"], on["XCCL_ROUTE"]) == ("sim", "mpi") and "XCCL_ENV_ARGS" not in on
    assert difference(before, off) == {}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--rout mpi", "unknown option '--rout'"),
        ("atlantis", "unknown site 'atlantis'"),
        ("*", "XCCL_ENV_ARGS='*': expected arguments as of xccl_env"),
    ],
)
def test_wrong_words_in_a_variable(posix, words, told, prefix, tmp_path):
    lines = [f"XCCL_ENV_ARGS='{words}'", posix.source(posix.script(prefix)), posix.status()]
    done = posix.run([*lines, 'echo "${XCCL_ENV_ARGS-unset}"'], tmp_path)
    assert told in done.stderr and done.stdout == "status=1\nunset\n"


def test_strict_shells(posix, prefix, tmp_path):
    lines = ["set -eu", *posix.xccl(prefix, "frontier"), *posix.xccl(prefix, "frontier")]
    lines += ["xccl_env sim --route ucc", "xccl_env off", "set +u", 'echo "$-" | tr -dc e']
    env = {"XCCL_ROUTE": "mpi", "NCCL_NET_GDR_LEVEL": ""}
    done = posix.run(lines, tmp_path, env)
    assert (done.stdout.strip(), done.stderr) == ("e", ""), "the caller's own options changed"


def test_an_error_ends_a_strict_script(shell, prefix, tmp_path):
    strict = {"sh": "set -eu", "csh": "", "fish": ""}[shell.kind]
    if shell.kind == "fish":
        pytest.skip("fish has no option that ends a script at the first error")
    lines = [strict, "true", *shell.xccl(prefix, "atlantis"), "echo went on"]
    options = ["-e"] if shell.kind == "csh" else []
    done = shell.run(lines, tmp_path, options=options, fail=True)
    assert done.returncode != 0
    assert "went on" not in done.stdout
    assert "unknown site 'atlantis'" in done.stderr


def test_a_variable_with_an_unknown_site(shell, prefix, tmp_path):
    done = shell.run(shell.xccl(prefix), tmp_path, {"XCCL_SITE": "atlantis"}, fail=True)
    assert "unknown site 'atlantis'" in done.stderr and "XCCL_SITE names it" in done.stderr
    assert "script" not in done.stderr
    if shell.name != "dash":  # it hands no arguments to a sourced file
        env = {"XCCL_SITE": "sim"}
        done = shell.run(shell.xccl(prefix, "atlantis"), tmp_path, env, fail=True)
        assert "unknown site 'atlantis'" in done.stderr and "XCCL_SITE" not in done.stderr


def test_odd_options_and_field_separators(posix, prefix, tmp_path):
    lines = ["IFS=:/", "set -f", *posix.xccl(prefix, "dgx-a100"), posix.dump(tmp_path / "on")]
    lines += ['printf "[%s]" "$IFS"', "xccl_env off", 'printf "[%s]" "$IFS"', "unset IFS"]
    lines += [*posix.xccl(prefix, "dgx-a100"), 'echo "${IFS-none}"']
    done = posix.run(lines, tmp_path)
    assert done.stdout == "[:/][:/]none\n"
    assert read_env(tmp_path / "on")["XCCL_SITE"] == "dgx-a100"


def test_shells_that_export_all(posix, prefix, tmp_path):
    """set -a: what is the script's own, IFS too, is no variable of the programs started after."""
    lines = ["set -a", posix.dump(tmp_path / "before"), *posix.xccl(prefix, "dgx-a100")]
    lines += [posix.dump(tmp_path / "on"), "xccl_env off", "unset XCCL_SITE"]  # dash's own
    lines += [posix.dump(tmp_path / "off"), 'echo "$-" | tr -dc a']
    assert posix.run(lines, tmp_path).stdout.strip() == "a", "the caller's own options changed"
    on = read_env(tmp_path / "on")
    assert [name for name in on if name == "IFS" or "xccl" in name] == []
    assert difference(read_env(tmp_path / "before"), read_env(tmp_path / "off")) == {}


@pytest.mark.parametrize("name", ["with blank", "with:colon"])
def test_a_prefix_that_preloading_cannot_hold_is_refused(shell, tmp_path, name):
    """An installation that was moved there."""
    tree = install(tmp_path / "tree").rename(tmp_path / name)
    lines = [shell.export("XCCL_ROOT", str(tree)), shell.export("XCCL_SITE", "sim")]
    lines += [shell.dump(tmp_path / "before"), shell.source(shell.script(tree), "sim")]
    lines += [shell.status(), shell.dump(tmp_path / "after")]
    done = shell.run(lines, tmp_path, fail=True)
    assert "status=1" in done.stdout
    assert f"LD_PRELOAD cannot hold a path with a colon or a blank: '{tree}'" in done.stderr
    assert difference(read_env(tmp_path / "before"), read_env(tmp_path / "after")) == {}


@pytest.mark.parametrize(
    "name", ["XCCL_ROUTE", "NCCL_CROSS_NIC", "OMPI_MCA_coll_ucc_enable", "PATH", "MANPATH"]
)
def test_a_name_that_is_read_only_is_refused(posix, prefix, tmp_path, name):
    """Whole or not at all: no settings of one site under the name of another."""
    value = {"XCCL_ROUTE": "mpi", "PATH": '"$PATH"'}.get(name, "1")
    lines = [f"{name}={value}", f"export {name}", f"readonly {name}"]
    lines += [posix.dump(tmp_path / "before"), "XCCL_SITE=frontier"]
    lines += [f"{posix.source(posix.script(prefix))} || echo refused"]
    lines += ["unset XCCL_SITE", posix.dump(tmp_path / "after")]
    done = posix.run(lines, tmp_path)
    assert done.stdout == "refused\n"
    assert (
        done.stderr
        == f"xccl: {name} is read-only in this shell; start another one, where it is not\n"
    )
    assert difference(read_env(tmp_path / "before"), read_env(tmp_path / "after")) == {}


def test_a_name_that_becomes_read_only_keeps_all_on(posix, prefix, tmp_path):
    """Neither off nor another site takes back a part."""
    lines = [*posix.xccl(prefix, "frontier"), "unset XCCL_ENV_ARGS", "readonly NCCL_CROSS_NIC"]
    lines += [posix.dump(tmp_path / "on"), "xccl_env off || echo stays"]
    lines += ["xccl_env sim || echo stays", posix.dump(tmp_path / "after")]
    done = posix.run(lines, tmp_path)
    assert done.stdout == "stays\nstays\n"
    assert done.stderr.count("NCCL_CROSS_NIC is read-only in this shell") == 2
    assert len(done.stderr.splitlines()) == 2
    assert difference(read_env(tmp_path / "on"), read_env(tmp_path / "after")) == {}


def test_bash_that_takes_capitals_for_small_letters(prefix, tmp_path):
    """shopt -s nocasematch: what was there comes back, and the option stays."""
    bash = BY_NAME["bash"]
    bash.need()
    lines = ["shopt -s nocasematch", bash.dump(tmp_path / "before"), *bash.xccl(prefix, "sim")]
    lines += ["LD_LIBRARY_PATH=/first:$LD_LIBRARY_PATH", "xccl_env --route ucc", "xccl_env off"]
    lines += ["shopt -q nocasematch || exit 1", bash.dump(tmp_path / "after")]
    bash.run(lines, tmp_path, STARTS["odd"])
    changed = difference(read_env(tmp_path / "before"), read_env(tmp_path / "after"))
    assert changed == {"LD_LIBRARY_PATH": (None, "/first")}


def test_a_variable_that_was_not_exported_is_not_exported_after(posix, prefix, tmp_path):
    lines = ["NCCL_IB_HCA=mine", "UCC_TLS=", *posix.xccl(prefix, "dgx-a100", "--route", "ucc")]
    lines += [posix.dump(tmp_path / "on"), "xccl_env off", posix.dump(tmp_path / "off")]
    done = posix.run([*lines, 'echo "$NCCL_IB_HCA,${UCC_TLS-unset}"'], tmp_path)
    assert done.stdout == "mine,\n"
    assert read_env(tmp_path / "on")["NCCL_IB_HCA"].startswith("=mlx5_0")
    assert not {"NCCL_IB_HCA", "UCC_TLS"} & set(read_env(tmp_path / "off"))


def test_a_search_path_that_was_not_exported_is_not_exported_after(posix, prefix, tmp_path):
    lines = ["LD_LIBRARY_PATH=/mine", "MANPATH=", *posix.xccl(prefix, "dgx-a100")]
    lines += [posix.dump(tmp_path / "on"), "xccl_env off", posix.dump(tmp_path / "off")]
    done = posix.run([*lines, 'echo "$LD_LIBRARY_PATH,${MANPATH-unset}"'], tmp_path)
    assert done.stdout == "/mine,\n"
    assert read_env(tmp_path / "on")["LD_LIBRARY_PATH"] == f"{prefix}/lib:/mine"
    assert not {"LD_LIBRARY_PATH", "MANPATH"} & set(read_env(tmp_path / "off"))


def test_a_name_within_a_value_is_no_variable(posix, prefix, tmp_path):
    env = {"OTHER": "x\ny NCCL_IB_HCA=1 export NCCL_IB_HCA=1 "}
    lines = ["NCCL_IB_HCA=mine", *posix.xccl(prefix, "dgx-a100"), "xccl_env off"]
    done = posix.run([*lines, posix.dump(tmp_path / "off"), 'echo "$NCCL_IB_HCA"'], tmp_path, env)
    assert done.stdout == "mine\n" and "NCCL_IB_HCA" not in read_env(tmp_path / "off")


def test_the_same_in_fish(prefix, tmp_path):
    fish = BY_NAME["fish"]
    fish.need()
    lines = ["set -g NCCL_IB_HCA mine", "set -g LD_LIBRARY_PATH /a /b"]
    lines += [*fish.xccl(prefix, "dgx-a100"), "xccl_env off", fish.dump(tmp_path / "off")]
    done = fish.run([*lines, 'echo "$NCCL_IB_HCA $LD_LIBRARY_PATH"'], tmp_path)
    assert done.stdout == "mine /a:/b\n"
    assert not {"NCCL_IB_HCA", "LD_LIBRARY_PATH"} & set(read_env(tmp_path / "off"))


def test_nothing_of_the_shell_itself_is_left(posix, prefix, tmp_path):
    listing = "set; typeset -f" if posix.name != "dash" else "set"
    show = f"({listing}) | grep -i xccl || :"
    lines = [*posix.xccl(prefix, "sim"), "xccl_env off", show]
    done = posix.run(lines, tmp_path)
    left = [line for line in done.stdout.splitlines() if not line.startswith(("_=", "BASH_"))]
    if posix.name == "dash":
        left = [line for line in left if not line.startswith("XCCL_SITE=")]
    left = [line for line in left if "script." not in line and "argv" not in line]
    assert not left


def test_what_others_put_in_front_stays(shell, prefix, tmp_path):
    lines = [*shell.xccl(prefix, "sim")]
    lines += [shell.export("PATH", f"/theirs:{prefix}/bin:/usr/bin:/bin")]
    lines += [shell.export("LD_LIBRARY_PATH", f"/theirs:{prefix}/lib")]
    lines += ["xccl_env off", shell.dump(tmp_path / "after")]
    shell.run(lines, tmp_path)
    after = read_env(tmp_path / "after")
    assert after["PATH"] == "/theirs:/usr/bin:/bin"
    assert after["LD_LIBRARY_PATH"] == "/theirs"


@pytest.mark.parametrize("child", [s for s in SHELLS if s.name != "dash"], ids=str)
def test_a_child_shell_switches_off_what_its_parent_set(shell, child, prefix, tmp_path):
    child.need()
    inner = tmp_path / "inner"
    inner.write_text(
        "\n".join([child.source(child.script(prefix), "off"), child.dump(tmp_path / "after")])
        + "\n"
    )
    run = " ".join([shutil.which(child.program), *child.options, str(inner)])
    lines = [shell.dump(tmp_path / "before"), *shell.xccl(prefix, "dgx-a100", "--route", "ucc")]
    env = {"NCCL_IB_HCA": "my own", "UCC_TLS": "", "MANPATH": "/m:"}
    if shell.name == "dash":
        env.update(XCCL_SITE="dgx-a100", XCCL_ROUTE="ucc")
    done = shell.run([*lines, run], tmp_path, env)
    assert (done.stdout, done.stderr) == ("", "")
    shells_own = {"HOST", "HOSTTYPE", "OSTYPE", "MACHTYPE", "VENDOR", "GROUP", "USER", "LOGNAME"}
    shells_own |= {"PWD", "NLSPATH", "TERM"}
    changed = difference(read_env(tmp_path / "before"), read_env(tmp_path / "after"))
    assert {n: v for n, v in changed.items() if n not in shells_own} == {}


@pytest.mark.parametrize(
    ("env", "site"),
    [
        ({"XCCL_SIM": "cuda:4"}, "sim"),
        ({"SLURM_CLUSTER_NAME": "frontier"}, "frontier"),
        ({"SLURM_CLUSTER_NAME": "lumi"}, "lumi-g"),
        ({"SYSTEMNAME": "juwelsbooster", "SLURM_CLUSTER_NAME": "juwels"}, "juwels-booster"),
        ({"NERSC_HOST": "perlmutter"}, "perlmutter"),
        ({"SLURMD_NODENAME": "jwb0431"}, "juwels-booster"),
        ({"SLURMD_NODENAME": "frontier01234"}, "frontier"),
        ({"CLUSTER_NAME": "daint"}, "alps"),
        ({"XCCL_SIM": "rocm:8", "SLURMD_NODENAME": "frontier01234"}, "sim"),
        ({"XCCL_SITE": "dgx-h100", "SLURMD_NODENAME": "frontier01234"}, "dgx-h100"),
    ],
)
def test_detection(shell, env, site, prefix, tmp_path):
    lines = [*shell.xccl(prefix), shell.dump(tmp_path / "on")]
    shell.run(lines, tmp_path, env)
    assert read_env(tmp_path / "on")["XCCL_SITE"] == site


@pytest.fixture(scope="module")
def drivers(tmp_path_factory):
    """(an installation, the folder in which it looks for the drivers' files)"""
    folder = tmp_path_factory.mktemp("drivers")
    prefix = install(folder / "tree")
    for file in (prefix / "share/xccl/env/sites").glob("detect.*"):
        text = moved_drivers(file.read_text(encoding="utf-8"), folder)
        file.write_text(text, encoding="utf-8")
    return prefix, folder


def test_detection_by_drivers(shell, drivers, tmp_path):
    """An NVIDIA machine whose processor has graphics of AMD is no AMD machine."""
    prefix, folder = drivers
    lines = [*shell.xccl(prefix), shell.dump(tmp_path / "on")]
    (folder / "kfd").touch()
    (folder / "nvidia").unlink(missing_ok=True)
    shell.run(lines, tmp_path)
    assert read_env(tmp_path / "on")["XCCL_SITE"] == "generic-amd"
    (folder / "nvidia").touch()
    shell.run(lines, tmp_path)
    assert read_env(tmp_path / "on")["XCCL_SITE"] == "generic-nvidia"


def in_own_host(command, name):
    """Run @p command where the host has another name; skip where that is not allowed."""
    wrapped = ["unshare", "--uts", "--", "sh", "-c", f'hostname {name} && exec "$@"', "sh"]
    probe = subprocess.run([*wrapped, "true"], capture_output=True, timeout=20, check=False)
    if probe.returncode != 0:
        pytest.skip("giving the host another name needs root (unshare --uts)")
    return subprocess.run([*wrapped, *command], timeout=20, check=False, **CAPTURE)


CAPTURE = {"capture_output": True, "text": True}


@pytest.mark.parametrize(
    ("host", "site"),
    [("jwb0001.juwels", "juwels-booster"), ("login03.frontier.olcf.ornl.gov", "frontier")],
)
def test_detection_by_the_name_of_the_host(shell, host, site, prefix, tmp_path):
    script = tmp_path / "script"
    lines = [*shell.xccl(prefix), "/usr/bin/env"]
    script.write_text("\n".join(lines) + "\n")
    command = ["env", "-i", f"HOME={tmp_path}", "PATH=/usr/bin:/bin", shutil.which(shell.program)]
    done = in_own_host([*command, *shell.options, str(script)], host)
    assert f"XCCL_SITE={site}\n" in done.stdout, done.stderr


def test_an_unknown_machine_is_told_the_sites(shell, prefix, tmp_path):
    if os.path.exists("/dev/kfd") or os.path.exists("/proc/driver/nvidia/version"):
        pytest.skip("this machine has GPUs: it is a known one")
    lines = [shell.dump(tmp_path / "a"), *shell.xccl(prefix), shell.status()]
    done = shell.run([*lines, shell.dump(tmp_path / "b")], tmp_path)
    assert done.stdout == "status=1\n"
    assert "no site recognised here; name one of: alps dgx-a100" in done.stderr
    assert "generic-nvidia" in done.stderr.split("GPUs)")[1], done.stderr
    assert ("set XCCL_SITE first" in done.stderr) == (shell.name == "dash")
    assert difference(read_env(tmp_path / "a"), read_env(tmp_path / "b")) == {}


def test_the_installation_may_name_its_site(shell, of_lumi, tmp_path):
    shell.run([*shell.xccl(of_lumi), shell.dump(tmp_path / "on")], tmp_path)
    assert read_env(tmp_path / "on")["XCCL_SITE"] == "lumi-g"


def test_a_loaded_plugin_module_is_left_alone(shell, prefix, tmp_path):
    env = {"LOADEDMODULES": "rocm/7.1.1:rccl-net-plugin/1.0", "NCCL_CROSS_NIC": "theirs"}
    lines = [*shell.xccl(prefix, "frontier"), shell.dump(tmp_path / "on")]
    shell.run(lines, tmp_path, env)
    on = read_env(tmp_path / "on")
    assert on["NCCL_CROSS_NIC"] == "theirs"
    assert "NCCL_SOCKET_IFNAME" not in on
    assert on["MPICH_GPU_SUPPORT_ENABLED"] == "1"


def test_arguments_of_the_calling_script_are_not_taken(shell, prefix, tmp_path):
    words = [] if shell.name == "dash" else ["--"]
    line = shell.source(shell.script(prefix), *words)
    lines = [line, "echo $argv" if shell.kind != "sh" else 'echo "$@"']
    lines.append(shell.dump(tmp_path / "on"))
    done = shell.run(lines, tmp_path, {"XCCL_SITE": "sim"}, args=["in.dat", "out.dat"])
    assert done.stdout == "in.dat out.dat\n"
    assert read_env(tmp_path / "on")["XCCL_SITE"] == "sim"


def test_inherited_arguments_are_explained(prefix, tmp_path):
    bash = BY_NAME["bash"]
    done = bash.run(
        [bash.source(bash.script(prefix))],
        tmp_path,
        {"XCCL_SITE": "sim"},
        args=["in.dat"],
        fail=True,
    )
    assert "unknown site 'in.dat'" in done.stderr
    assert ". xccl.sh --" in done.stderr


def test_from_the_source_tree(shell, tmp_path):
    file = TOP / "env" / shell.script(TOP).name
    root = put_libraries(tmp_path / "tree")
    lines = [f"cd {TOP}", shell.source(file, *(["sim"] if shell.name != "dash" else []))]
    env = {"XCCL_ROOT": str(root), "XCCL_SITE": "sim"}
    done = shell.run([*lines, shell.dump(tmp_path / "on")], tmp_path, env)
    assert done.stderr == ""
    assert read_env(tmp_path / "on")["PATH"].split(":")[0] == f"{root}/bin"


def test_a_source_tree_without_a_build_says_so(shell, tmp_path):
    shutil.copytree(TOP / "env", tmp_path / "checkout/env", symlinks=True)
    file = tmp_path / "checkout/env" / shell.script(TOP).name
    lines = [f"cd {tmp_path / 'checkout'}", shell.source(file, "sim"), shell.status()]
    done = shell.run(lines, tmp_path, {"XCCL_SITE": "sim"})
    assert "nothing is built" in done.stderr
    assert done.stdout == "status=1\n"


def test_started_as_a_program_it_says_so(posix, tmp_path):
    """It could change nothing but itself. A script of the same name may source it."""
    env = {"PATH": PATH, "XCCL_SITE": "sim", "XCCL_ROOT": str(put_libraries(tmp_path / "tree"))}
    mine = tmp_path / "xccl.sh"
    mine.write_text(f". {TOP}/env/xccl.sh --\n", encoding="utf-8")
    told = "xccl: this changes the shell that sources it: . xccl.sh (with a dot in front)\n"
    for file, wanted in ((TOP / "env/xccl.sh", (1, told)), (mine, (0, ""))):
        done = subprocess.run(
            [posix.program, file], env=env, capture_output=True, text=True, timeout=60, check=False
        )
        assert (done.returncode, done.stderr) == wanted


def test_a_source_tree_finds_what_make_demo_built(shell, tmp_path):
    checkout = tmp_path / "checkout"
    shutil.copytree(TOP / "env", checkout / "env", symlinks=True)
    (checkout / "build/demo/prefix/lib").mkdir(parents=True)
    file = checkout / "env" / shell.script(TOP).name
    lines = [f"cd {checkout}", shell.source(file, "sim"), shell.dump(tmp_path / "on")]
    done = shell.run(lines, tmp_path, {"XCCL_SITE": "sim"})
    assert done.stderr == ""
    assert read_env(tmp_path / "on")["XCCL_ROOT"] == f"{checkout}/build/demo/prefix"


def test_a_moved_installation_finds_itself(shell, prefix, tmp_path):
    if shell.name in ("dash", "tcsh"):
        pytest.skip(f"{shell.name} does not tell a sourced file where it lies")
    shutil.copytree(prefix, tmp_path / "moved", symlinks=True)
    lines = [*shell.xccl(tmp_path / "moved", "sim"), shell.dump(tmp_path / "on")]
    shell.run(lines, tmp_path)
    assert read_env(tmp_path / "on")["XCCL_ROOT"] == str(tmp_path / "moved")


def test_a_relative_path_is_made_a_plain_one(posix, prefix, tmp_path):
    """Paths that end in "/." would come beside those that a module has set."""
    if posix.name == "dash":
        pytest.skip("dash does not tell a sourced file where it lies")
    env = f"./{prefix.name}/share/../share/xccl/env"
    lines = [f"cd {prefix.parent}", f". {env}/xccl.sh sim", posix.dump(tmp_path / "on")]
    posix.run(lines, tmp_path, {"CDPATH": "/usr"})
    assert read_env(tmp_path / "on")["XCCL_ROOT"] == str(prefix)


def test_universal_variables_of_fish_are_not_shadowed(prefix, tmp_path):
    """After off, what the user changes in all shells changes in this one, too."""
    fish = Shell("fish", "fish", "fish")  # --no-config would leave it without them
    fish.need()
    lines = ["set -Ux UCC_TLS mine", "set -Ux LD_LIBRARY_PATH /a:/b", *fish.xccl(prefix, "sim")]
    lines += ["xccl_env --route ucc", 'echo "$UCC_TLS"', "xccl_env off"]
    lines += ["set -Ux UCC_TLS other", "set -Ux LD_LIBRARY_PATH /c", fish.dump(tmp_path / "off")]
    assert fish.run(lines, tmp_path).stdout == "^nccl,rccl\n"
    after = read_env(tmp_path / "off")
    assert (after["UCC_TLS"], after["LD_LIBRARY_PATH"]) == ("other", "/c")


@pytest.mark.parametrize(
    ("name", "define"),
    [
        ("bash", 'cd() { builtin cd "$@" && pwd; }'),
        ("zsh", 'cd() { builtin cd "$@" && pwd; }'),
        ("zsh", "chpwd() { pwd; }"),
    ],
)
def test_a_cd_that_lists_the_folder(name, define, prefix, tmp_path):
    """Users have one; what it says is no part of the path of a moved installation."""
    shell = BY_NAME[name]
    shell.need()
    shutil.copytree(prefix, tmp_path / "moved", symlinks=True)
    (tmp_path / "work").mkdir()
    lines = [f"cd {tmp_path}/work", define]
    lines += [". ../moved/share/xccl/env/xccl.sh sim", shell.dump(tmp_path / "on")]
    shell.run(lines, tmp_path)
    assert read_env(tmp_path / "on")["XCCL_ROOT"] == str(tmp_path / "moved")


def test_links_for_each_shell_are_the_one_file():
    for name in ("bash", "zsh", "ksh"):
        assert os.readlink(TOP / f"env/xccl.{name}") == "xccl.sh"


def test_what_it_can_say(shell, prefix, sites, tmp_path):
    """--list, --status and --help speak, and change nothing."""
    on = shell.xccl(prefix, "dgx-a100", "--route", "mpi")
    lines = [*on, shell.dump(tmp_path / "before")]
    lines += ["xccl_env --list", "echo =", "xccl_env --status", "echo =", "xccl_env --help"]
    lines += ["echo =", "xccl_env -h", shell.dump(tmp_path / "after")]
    done = shell.run(lines, tmp_path)
    assert done.stderr == ""
    assert difference(read_env(tmp_path / "before"), read_env(tmp_path / "after")) == {}
    listed, status, usage, short = (text.strip() for text in done.stdout.split("=\n"))
    assert f"sites: {' '.join(sites)}" in listed
    assert "recognised here: " in listed
    assert "routes: xccl ucc ucc-ccl mpi" in listed
    assert f"xccl is on: site dgx-a100, route mpi, in {prefix}" in status
    assert "  NCCL_IB_HCA==mlx5_0,mlx5_1" in status
    assert "  OMPI_MCA_coll_ucc_enable=0" in status
    assert usage == short
    for word in ("[--route xccl|ucc|ucc-ccl|mpi]", "off", "--list | --status | --help"):
        assert word in usage


def test_what_it_says_while_off(shell, prefix, tmp_path):
    if shell.name == "dash":
        pytest.skip("dash hands no arguments to a sourced file")
    lines = [shell.dump(tmp_path / "before"), *shell.xccl(prefix, "--status")]
    lines += [*shell.xccl(prefix, "--list"), shell.dump(tmp_path / "after")]
    done = shell.run(lines, tmp_path)
    assert done.stderr == ""
    assert done.stdout.startswith("xccl is off\nsites: alps")
    assert difference(read_env(tmp_path / "before"), read_env(tmp_path / "after")) == {}


def test_off_ends_where_the_list_lost_its_last_blank(posix, prefix, tmp_path):
    """Others trim what they pass on."""
    lines = [posix.dump(tmp_path / "before"), *posix.xccl(prefix, "dgx-a100")]
    lines += ["_XCCL_ENV_VARS=${_XCCL_ENV_VARS% }", "xccl_env off", posix.dump(tmp_path / "after")]
    env = {"XCCL_SITE": "dgx-a100"} if posix.name == "dash" else {}
    posix.run(lines, tmp_path, env)
    assert difference(read_env(tmp_path / "before"), read_env(tmp_path / "after")) == {}


def test_the_site_of_the_installation_is_listed(shell, prefix, of_lumi, tmp_path):
    if shell.name == "dash":
        pytest.skip("dash hands no arguments to a sourced file")
    done = shell.run(shell.xccl(of_lumi, "--list"), tmp_path)
    assert "site of this installation: lumi-g\n" in done.stdout
    assert "of this installation" not in shell.run(shell.xccl(prefix, "--list"), tmp_path).stdout
