# SPDX-License-Identifier: BSD-3-Clause
"""Routes ucc and ucc-ccl on which UCC serves nothing: an Open MPI without it says no word of that."""

import json
import shutil
import subprocess

import pytest
from planted import INFO, env, log
from test_doctor import SIMULATED, TOP, environment, need_launcher, run
from xccl_common import ucc
from xccl_common.launchers import find_program

SERVED = INFO + "NCCL version 2.28.3+cuda13.0\nxccl[0] info: allreduce of 8 bytes, 2 ranks: mpi\n"
UCP = "[1.1] [n1:1:0]  ucc_context.c:402  UCC  INFO  created ucc context for lib UCC: TL_UCP\n"
NCCL = "[1.1] [n1:1:0]  ucc_coll_score_map.c:230  UCC  INFO      Cuda: {0..inf}:TL_NCCL:inf\n"
ROUTE = {"OMPI_MCA_coll_ucc_enable": "1", "OMPI_MCA_coll_ucc_priority": "100"}


def program(path, text):
    path.write_text(f"#!/bin/sh\n{text}")
    path.chmod(0o755)
    return path


def lists(*components):
    """An ompi_info with these components for collectives."""
    return "".join(f"echo 'mca:coll:{name}:version:\"mca:2.1.0\"'\n" for name in components)


def examined(doctor, made, route):
    made.env["XCCL_ROUTE"] = route
    return [(f["id"], f["cause"]) for f in doctor(made)[1]["findings"]]


@pytest.mark.parametrize("route", ["ucc", "ucc-ccl"])
def test_a_log_without_a_line_of_ucc(doctor, world, route):
    made = world("juwels-booster")
    made.route_ucc_ccl()
    log(SERVED)(made)
    ((name, cause),) = examined(doctor, made, route)
    assert name == "ucc-silent"
    assert cause.startswith(f"route {route}, but the job's log has no line of UCC: nothing shows")


@pytest.mark.parametrize(
    ("route", "lines", "silent"),
    [
        ("ucc", UCP, None),
        ("ucc-ccl", UCP, "TL_NCCL, UCC's transport over NCCL"),
        ("ucc-ccl", UCP + NCCL, None),
        ("xccl", "", None),
        ("mpi", "", None),
    ],
)
def test_a_log_with_lines_of_ucc(doctor, world, route, lines, silent):  # noqa: PLR0917
    made = world("juwels-booster")
    made.route_ucc_ccl()
    if not route.startswith("ucc"):
        env(OMPI_MCA_coll_ucc_enable="0")(made)
    log(SERVED + lines)(made)
    found = examined(doctor, made, route)
    assert [name for name, _ in found] == (["ucc-silent"] if silent else [])
    assert silent is None or f"has no line of {silent}: nothing shows" in found[0][1]


@pytest.mark.parametrize("route", ["ucc", "ucc-ccl"])
def test_a_log_in_which_xccl_saw_no_ucc(doctor, world, route):
    """MPI_Init's warning is sure of it."""
    made = world("juwels-booster")
    made.route_ucc_ccl()
    log(SERVED + f"xccl[0] warning: XCCL_ROUTE={route}, but libucc is not loaded: UCC serves\n")(
        made
    )
    ((name, cause),) = examined(doctor, made, route)
    assert name == "ucc-missing" and "(the job did not load libucc)" in cause


def test_an_error_explains_the_silence(doctor, world):
    """That of a job that failed, or of UCC that is off."""
    made = world("juwels-booster")
    made.route_ucc_ccl()
    env(OMPI_MCA_coll_ucc_enable="0")(made)
    log(SERVED)(made)
    assert [name for name, _ in examined(doctor, made, "ucc")] == ["ucc-disabled"]


@pytest.mark.parametrize("route", ["ucc", "ucc-ccl", "xccl"])
@pytest.mark.parametrize("there", [True, False])
def test_the_component_of_open_mpi(stage, tmp_path, route, there):
    """What the ompi_info beside the launcher lists."""
    program(tmp_path / "mpirun", "# orterun\n")
    info = program(tmp_path / "ompi_info", lists("tuned", "basic", *(["ucc"] if there else [])))
    more = {**SIMULATED, **ROUTE, "PATH": f"{tmp_path}:/usr/bin:/bin", "XCCL_SITE": "sim"}
    ended = run(stage, "--json", "--route", route, **more)
    found = {f["id"]: f for f in json.loads(ended.stdout)["findings"]}
    if route == "xccl" or there:
        assert "ucc-missing" not in found
        return
    assert ended.returncode == 1
    text = f"route {route}: this Open MPI has no coll/ucc component, or libucc is missing ({info} lists no ucc)"
    assert found["ucc-missing"]["cause"].startswith(text)
    assert "load an Open MPI that was built with UCC" in found["ucc-missing"]["remedy"]


@pytest.mark.parametrize("text", ["exit 1\n", "echo nothing\n", None])
def test_an_ompi_info_that_says_nothing(stage, tmp_path, text):
    """Then nothing is known of the components."""
    program(tmp_path / "mpirun", "# orterun\n")
    for name in ("python3", "ldconfig", "sh"):
        (tmp_path / name).symlink_to(shutil.which(name, path="/usr/bin:/bin:/usr/sbin:/sbin"))
    if text is not None:
        program(tmp_path / "ompi_info", text)
    more = {**SIMULATED, **ROUTE, "PATH": str(tmp_path), "XCCL_SITE": "sim"}
    ended = run(stage, "--json", "--route", "ucc", **more)
    assert "ucc-missing" not in {f["id"] for f in json.loads(ended.stdout)["findings"]}


@pytest.mark.parametrize("route", ["ucc", "ucc-ccl"])
@pytest.mark.parametrize("site", ["sim", "generic-nvidia"])
def test_a_job_under_an_open_mpi_without_ucc(stage, route, site):
    """The whole way: the route's environment, and a job that runs well without UCC."""
    launcher = need_launcher()
    info = find_program("", {"PATH": "/usr/bin:/bin"}, "ompi_info")
    if info is None or b":coll:ucc:" in subprocess.check_output([info, "--parsable"]):
        pytest.skip("no ompi_info, or an Open MPI with UCC")
    script = f'. "{TOP}/env/xccl.sh" {site} --route {route} && exec "$@"'
    tool = [stage / "bin/xccl-doctor", "--json", "--run", "--", *launcher]
    ended = subprocess.run(
        ["bash", "-c", script, "-", *tool],
        env=environment(stage, XCCL_ROOT=str(stage), XCCL_SIM="cuda:2"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    found = json.loads(ended.stdout)
    assert ended.returncode == 1, ended.stdout
    assert [f["id"] for f in found["findings"]] == ["ucc-missing"]


def test_the_mpi_of_the_launcher_counts():
    """Before that of the library that is found."""

    class Facts:
        mpirun = type("", (), {"family": None})
        mpi = type("", (), {"family": "openmpi"})

    assert ucc.mpi_family(Facts) == "openmpi"
    Facts.mpirun.family = "mpich"
    assert ucc.mpi_family(Facts) == "mpich"
