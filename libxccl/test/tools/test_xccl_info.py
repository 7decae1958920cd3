# SPDX-License-Identifier: BSD-3-Clause
"""xccl-info: text and JSON say the same, faults of the configuration are errors, --link links."""

import json
import re
from pathlib import Path

import jsonschema
import pytest

LIBXCCL = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((LIBXCCL / "tools/info/xccl-info.schema.json").read_text())
PROGRAM = """
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    float send = 1, recv = 0;
    const char *(*last)(void);
    MPI_Init(&argc, &argv);
    MPI_Allreduce(&send, &recv, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    *(void **)&last = dlsym(RTLD_DEFAULT, "xccl_mpi_last_path");
    printf("%s %g\\n", last ? last() : "not linked", recv);
    return MPI_Finalize();
}
"""


def info(stage, *arguments, run=None, **options):
    """xccl-info --json, valid by the schema."""
    front = [] if run is None else [stage.bin / "xccl-run", *run]
    ended = stage.run(*front, stage.bin / "xccl-info", "--json", *arguments, **options)
    written = json.loads(ended.out)
    jsonschema.validate(written, SCHEMA)
    return written


def test_installation(stage):
    written = info(stage)
    assert written["version"] == (LIBXCCL / "VERSION").read_text().strip()
    assert written["installation"]["prefix"] == str(stage.folder)
    assert Path(written["installation"]["interposer"]) == stage.interposer
    for mpi in written["installation"]["mpi"]:
        assert Path(mpi["interposer"]).exists() and Path(mpi["perf"]).exists()


def test_versions_agree(stage):
    version = (LIBXCCL / "VERSION").read_text().strip()
    for tool in ("xccl-run", "xccl-perf", "xccl-info"):
        assert stage.tool(tool, "--version").good().out == f"{tool} {version}\n"


def test_simulated_devices(stage):
    quiet = info(stage, run=["--sim", "cuda:3"])
    (cuda,) = [r for r in quiet["runtimes"] if r["name"] == "cuda"]
    assert cuda["started"] is False and "devices" not in cuda
    (cuda,) = [
        r
        for r in info(stage, "--devices", run=["--sim", "cuda:3"])["runtimes"]
        if r["name"] == "cuda"
    ]
    assert [device["index"] for device in cuda["devices"]] == [0, 1, 2]
    assert len({device["uuid"] for device in cuda["devices"]}) == 3


@pytest.mark.parametrize(("flavour", "library"), [("cuda", "nccl"), ("rocm", "rccl")])
def test_library_in_use(stage, flavour, library):
    written = info(stage, run=["--sim", f"{flavour}:2"], env={"XCCL_CCL": library})
    assert written["in_use"]["library"] == library
    (row,) = [r for r in written["libraries"] if r["name"] == library]
    assert row["found"] and row["path"].startswith(str(stage.lib / "xccl/sim" / flavour))
    assert "float32" in row["types"] and "sum" in row["operations"]
    assert written["in_use"]["collectives"]["allreduce"] == "native"
    assert written["in_use"]["collectives"]["scatterv"] == "composed"
    text = stage.tool("xccl-run", "--sim", f"{flavour}:2", stage.bin / "xccl-info").good().out
    assert re.search(rf"^  {library} +{re.escape(row['version_text'])}, ", text, re.M)


def test_library_not_found(stage):
    written = info(stage, env={"XCCL_CCL_LIBRARY": "/no/such/libnccl.so.2", "XCCL_CCL": "nccl"})
    assert written["in_use"]["library"] is None
    assert "/no/such/libnccl.so.2" in written["in_use"]["why_not"]


def test_every_variable_is_listed(stage):
    env = {"XCCL_TIMEOUT": "77"}
    text = stage.tool("xccl-info", "-c", env=env).good().out
    rows = info(stage, env=env)["configuration"]
    source = (LIBXCCL / "src/base/params.c").read_text()
    assert {row["name"] for row in rows} == set(re.findall(r'\{\{"(XCCL_\w+)"', source))
    for row in rows:
        assert f"  {row['name']}={row['value']}\n" in text
        assert row["meaning"] in text
        changed = row["name"] == "XCCL_TIMEOUT"
        assert row["origin"] == ("environment" if changed else "default")
        assert row["value"] == ("77" if changed else row["default"])


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({"XCCL_TIMEOUT": "soon"}, ["XCCL_TIMEOUT=soon", "seconds"]),
        ({"XCCL_ROUTE": "fast"}, ["XCCL_ROUTE=fast", "xccl|mpi"]),
        ({"XCCL_TUNE": "allreduce:0-4:cuda:2:ccx"}, ["XCCL_TUNE", "ccx"]),
    ],
)
@pytest.mark.parametrize("options", [[], ["-c"], ["--json"]])
def test_faults_of_the_configuration(stage, env, words, options):
    ended = stage.tool("xccl-info", *options, env=env)
    assert ended.status == 1
    assert ended.err.startswith("xccl-info: ")
    for word in words:
        assert word in ended.err
    if "--json" in options:
        assert json.loads(ended.out)["fault"] in ended.err


@pytest.mark.parametrize("options", [[], ["-c"], ["--json"]])
def test_unknown_variables(stage, options):
    """A warning, once; the rest is as without them."""
    ended = stage.tool("xccl-info", *options, env={"XCCL_TIMEOT": "3", "XCCL_HOME": "/opt"}).good()
    (line,) = ended.err.splitlines()
    assert line.startswith("xccl-info: warning: XCCL_TIMEOT is not a variable of xccl")
    assert line.endswith("did you mean XCCL_TIMEOUT?")
    if "--json" in options:
        written = json.loads(ended.out)
        assert written["fault"] is None and written["unknown"] in line


def test_tuning(stage):
    tune = "allreduce:0-64k:cuda:2-8:mpi#bcast:*:*:*:ccl"
    written = info(stage, env={"XCCL_TUNE": tune})
    assert written["tuning"]["XCCL_TUNE"] == tune
    assert written["tuning"]["built_in"]
    text = stage.tool("xccl-info", env={"XCCL_TUNE": tune}).good().out
    for token in (*tune.split("#"), *re.split("[#\n]", written["tuning"]["built_in"])):
        assert f"\n    {token}\n" in text


def test_link(mpi, tmp_path):
    """A program linked with these flags needs no preloading."""
    flags = mpi.stage.tool("xccl-info", "--link").good().out.split()
    source = tmp_path / "app.c"
    source.write_text(PROGRAM)
    if mpi.stage.sanitized:
        flags.append("-fsanitize=address")
    program = mpi.compile(source, tmp_path / "app", *flags, "-ldl")
    assert mpi.run(1, program).good().out.split()[-2:] == ["host", "1"]


@pytest.mark.parametrize("option", ["--nope", "-x", "stray"])
def test_refusals(stage, option):
    ended = stage.tool("xccl-info", option)
    assert ended.status == 2
    assert option in ended.err and "--json" in ended.err


@pytest.mark.parametrize("tool", ["xccl-run", "xccl-info"])
def test_documented_everywhere(stage, tool):
    """Options of --help, of the manual page and of the completion are the same."""

    def options(text):
        return set(re.findall(r"--[a-z][a-z-]*", text.replace("\\-", "-")))

    shown = options(stage.tool(tool, "--help").good().out)
    assert shown
    assert shown <= options((LIBXCCL / f"tools/man/{tool}.1").read_text())
    assert shown <= options((LIBXCCL / f"tools/completion/{tool}").read_text())
