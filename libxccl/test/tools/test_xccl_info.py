# SPDX-License-Identifier: BSD-3-Clause
"""xccl-info: text and JSON say the same, faults of the configuration are errors, --link links."""

import json
import re
import shutil
from pathlib import Path

import jsonschema
import pytest

LIBXCCL = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((LIBXCCL / "tools/info/xccl-info.schema.json").read_text())
WHY_SCHEMA = json.loads((LIBXCCL / "tools/info/xccl-info-why.schema.json").read_text())
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
    built = sorted(stage.folder.glob("lib/xccl/libxccl-mpi-*.so"))
    assert sorted(mpi["interposer"] for mpi in written["installation"]["mpi"]) == list(
        map(str, built)
    )
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


@pytest.mark.parametrize(
    ("flavour", "library", "id_bytes"),
    [
        ("cuda", "nccl", 128),
        ("rocm", "rccl", 128),
        ("msccl", "msccl", 128),
        ("mscclpp", "mscclpp", 128),
        ("oneccl", "oneccl", 4096),
        ("hpu", "hccl", 1032),
    ],
)
def test_library_in_use(stage, flavour, library, id_bytes):
    written = info(stage, run=["--sim", f"{flavour}:2"], env={"XCCL_CCL": library})
    assert written["in_use"]["library"] == library
    (row,) = [r for r in written["libraries"] if r["name"] == library]
    assert row["found"] and row["path"].startswith(str(stage.lib / "xccl/sim" / flavour))
    assert "float32" in row["types"] and "sum" in row["operations"]
    assert row["id_bytes"] == id_bytes
    assert written["in_use"]["collectives"]["allreduce"] == "native"
    assert written["in_use"]["collectives"]["scatterv"] == "composed"
    text = (
        stage.tool("xccl-run", "--sim", f"{flavour}:2", stage.bin / "xccl-info", "-l").good().out
    )
    line = re.search(rf"^  {library} +{re.escape(row['version_text'])}, .*$", text, re.M)
    assert line and f"unique ids of {id_bytes} bytes" in line[0]


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


@pytest.mark.parametrize(
    ("variable", "words"),
    [
        ("XCCL_CCL_LIBRARY=/no/such/libnccl.so.2", "no such file"),
        ("XCCL_SITE=juwels-boster", "did you mean juwels-booster?"),
        ("XCCL_SITE=of-nobody", "no such site in "),
        ("XCCL_SIM=cude:4", "it takes cuda:N, "),
        ("XCCL_SIM=cuda", "it takes cuda:N, "),
        ("XCCL_SIM=cuda:65", "from 1 to 64"),
        ("XCCL_SIM=cuda:4x", "from 1 to 64"),
    ],
)
@pytest.mark.parametrize("options", [[], ["-c"], ["--json"]])
def test_what_variables_name_is_not_there(stage, variable, words, options):
    """No job ends by it, but none does what was meant: an error of the tool that is to tell."""
    name, value = variable.split("=")
    ended = stage.tool("xccl-info", *options, env={name: value})
    assert ended.status == 1
    (line,) = [line for line in ended.err.splitlines() if line.startswith("xccl-info: ")]
    assert line.startswith(f"xccl-info: {variable}: ") and words in line
    if "--json" in options:
        written = json.loads(ended.out)
        assert written["fault"] is None and written["missing"] in line


@pytest.mark.parametrize("part", ["libxccl.so.0", "libxccl-mpi.so", "xccl/libxccl-mpi-*.so"])
def test_a_part_that_is_missing(stage, tmp_path, part):
    """Programs would go on with MPI alone."""
    if not stage.interposer.exists():
        pytest.skip("xccl was built without an MPI")
    for folder in ("bin", "lib", "share"):
        shutil.copytree(stage.bin.parent / folder, tmp_path / folder, symlinks=True)
    assert not stage.run(tmp_path / "bin/xccl-info").good().err
    for file in (tmp_path / "lib").glob(part):
        file.unlink()
    ended = stage.run(tmp_path / "bin/xccl-info")
    name = part.split("/")[-1].removesuffix(".0").split("*")[0]
    assert ended.status == 1
    assert re.search(rf"^xccl-info: {re.escape(name)}\S* is missing in .*; install", ended.err), (
        ended.err
    )


def test_a_library_that_is_another(stage):
    """A file that is there, and cannot serve, is named as well."""
    ended = stage.tool("xccl-info", env={"XCCL_CCL_LIBRARY": "libm.so.6"})
    assert ended.status == 1
    assert "(found by: XCCL_CCL_LIBRARY)" in ended.err and "libm.so.6" in ended.err


def test_a_site_and_a_simulation_that_are_there(stage):
    env = {"XCCL_SITE": "juwels-booster", "XCCL_SIM": "rocm:64"}
    assert not stage.tool("xccl-info", "-c", env=env).good().err


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
    text = stage.tool("xccl-info", "--long", env={"XCCL_TUNE": tune}).good().out
    for token in (*tune.split("#"), *re.split("[#\n]", written["tuning"]["built_in"])):
        assert f"\n    {token}\n" in text


TABLE = "measured = nobody\ntitle = of a test\n{condition}\n{rows}\n"


@pytest.fixture
def table(tmp_path):
    """Write a table of these rows, for communicators of this condition."""

    def write(rows, condition="", name="a.table"):
        path = tmp_path / name
        path.write_text(TABLE.format(rows=rows, condition=condition))
        return path

    return write


def why(stage, call, *arguments, sim="cuda:4", env=None):
    """xccl-info --why as JSON, valid by the schema, and the same as text."""
    front = [stage.bin / "xccl-run", "--sim", sim, stage.bin / "xccl-info"]
    options = ["--why", call, *arguments]
    written = json.loads(stage.run(*front, *options, "--json", env=env).good().out)
    jsonschema.validate(written, WHY_SCHEMA)
    text = stage.run(*front, *options, "--long", env=env).good().out
    assert text.splitlines()[1] == f"Path: {written['path']} ({written['reason']})"
    network = f"; network of the library: {written['machine']['network']}\n"
    assert (network in text) == (written["call"]["nodes"] > 1)  # on one node nothing goes over it
    for one in written["tables"]:
        assert f"\n  {one['source']}\n" in text
        for row in one["rows"]:
            assert re.search(rf"^    [ >] {re.escape(row['row'])} +{row['verdict']}$", text, re.M)
    check_short(stage.run(*front, *options, env=env).good().out, text, written["tables"])
    return written


def check_short(short, text, tables):
    """Without --long nothing is missing but the tables that are not asked, and their number is said."""
    kept = [line for line in short.splitlines() if "--long says why" not in line]
    assert set(kept) <= set(text.splitlines())
    for one in tables:
        assert (f"\n  {one['source']}\n" in short) == one["asked"]
    left = sum(not one["asked"] for one in tables)
    assert (f"\n{left} table{' is' if left == 1 else 's are'} not asked; " in short) == (left > 0)


def deciding(written):
    return [row["row"] for one in written["tables"] for row in one["rows"] if row["decides"]]


def test_why(stage):
    written = why(stage, "allreduce:64k:cuda:4", env={"XCCL_DIRECT": "off"})
    assert written["call"]["bytes"] == 65536 and written["call"]["nodes"] == 1
    assert written["paths"]["direct"] == {"available": False, "why": "XCCL_DIRECT=off"}
    assert written["path"] == "ccl" and deciding(written) == ["*:*:*:2-inf:ccl"]
    shipped = [one for one in written["tables"] if one["source"].endswith("h200-x4.table")]
    assert not shipped[0]["asked"] and shipped[0]["why_not"].startswith("gpu: ")
    assert written["tables"][-1]["source"] == "built-in table"


@pytest.mark.parametrize("size", ["64K", "64KiB", "64kib", "65536"])
def test_why_of_a_size_as_variables_take_it(stage, size):
    assert why(stage, f"allreduce:{size}:cuda:4")["call"]["bytes"] == 65536


@pytest.mark.parametrize("call", ["alltoallv:1m:cuda:4", "allgatherv:1g:cuda:2", "scan:1g:cuda:4"])
def test_why_long_blocks(stage, call):
    """Of any size: on the ranks' own buffers, or in rounds."""
    direct = why(stage, call, env={"XCCL_DIRECT": "on"})["paths"]["direct"]
    assert direct["available"], direct
    assert direct["why"] == "if every device reaches the memory of the others"


@pytest.mark.parametrize("name", ["MPI_Allreduce", "MPI_Iallreduce", "alreduce"])
def test_why_of_a_name_of_mpi(stage, name):
    """As the profile has it."""
    ended = stage.tool("xccl-info", "--why", f"{name}:64k:cuda:8")
    assert ended.status == 2 and "did you mean allreduce?" in ended.err, ended.err


def test_why_names_the_library_for_this_memory(stage):
    """Also where the machine has the other vendor's runtime."""
    for memory, other in (("cuda", "rccl"), ("rocm", "nccl")):
        ended = stage.tool("xccl-info", "--why", f"allreduce:64k:{memory}:8")
        assert f"no {other} library" not in ended.out, ended.out


@pytest.mark.parametrize("options", [[], ["--why", "allreduce:64k:cuda:8"]])
def test_no_library_by_a_wrong_value(stage, options):
    """None is looked for, so it is the value that is to blame."""
    words = ["--sim", "cuda:2", "--", stage.bin / "xccl-info", *options]
    ended = stage.tool("xccl-run", *words, env={"XCCL_CHECK": "2"})
    assert ended.status == 1
    (line,) = re.findall(r"^  (?:library +none: |ccl +not available: )(.*)$", ended.out, re.M)
    assert line.startswith("XCCL_CHECK=2 is not allowed"), ended.out


def test_why_on_another_model(stage):
    written = why(stage, "reduce:128m:cuda:4", "--gpu", "NVIDIA H200")
    (one,) = [one for one in written["tables"] if one["source"].endswith("h200-x4.table")]
    assert one["asked"] and one["measured"] == "2026-11-28"
    assert deciding(written) == ["reduce:96m-inf:cuda:4:ccl"] and written["path"] == "ccl"
    # Two nodes: this table is not asked, and the direct path does not carry it.
    written = why(stage, "reduce:128m:cuda:4:2", "--gpu", "NVIDIA H200")
    (one,) = [one for one in written["tables"] if one["source"].endswith("h200-x4.table")]
    assert (
        one["why_not"] == "nodes: 2, the table is for 1"
        and not written["paths"]["direct"]["available"]
    )


@pytest.mark.parametrize(
    ("env", "path", "tables"),
    [
        ({}, "ccl", 0),
        ({"XCCL_MPI_GPU_AWARE": "yes", "NCCL_NET": "Socket"}, "mpi", 1),
        ({"XCCL_MPI_GPU_AWARE": "yes", "NCCL_NET_PLUGIN": "/bin/sh"}, "ccl", 0),
    ],
)
def test_why_without_a_network(stage, env, path, tables):
    written = why(stage, "allreduce:1m:cuda:8:2", env=env)
    assert written["path"] == path
    asked = [one for one in written["tables"] if one["asked"]]
    assert len([one for one in asked if "no-network" in one["source"]]) == tables


@pytest.mark.parametrize("aware", ["yes", "no"])
def test_why_short_across_nodes(stage, aware):
    env = {"XCCL_MPI_GPU_AWARE": aware, "NCCL_NET": "Socket"}
    for call, path in (
        ("allreduce:1k:cuda:8:2", "staged"),
        ("allreduce:2k:cuda:8:2", "mpi" if aware == "yes" else "ccl"),
        ("alltoallv:1k:cuda:8:2", "mpi" if aware == "yes" else "ccl"),
    ):
        written = why(stage, call, "--gpu", "NVIDIA H200", env=env)
        assert written["path"] == path
        assert written["reason"].startswith("40-several-nodes.table:") == (path == "staged")


@pytest.mark.parametrize(
    ("call", "env", "path"),
    [
        ("allreduce:64k:cuda:1", {}, "self"),
        ("alltoallw:8:rocm:1", {}, "self"),
        ("neighbor_alltoall:8:cuda:1", {}, "mpi"),
        ("allreduce:0:cuda:1", {}, "mpi"),
        ("bcast:8:cuda:1", {"XCCL_ROUTE": "mpi"}, "mpi"),
        ("bcast:8:cuda:1", {"XCCL_MPI_GPU_AWARE": "yes"}, "mpi"),
        ("bcast:8:cuda:1", {"XCCL_TUNE": "*:*:*:*:direct"}, "self"),
        ("bcast:8:cuda:1", {"XCCL_TUNE": "*:*:*:*:staged"}, "staged"),
        ("bcast:8:cuda:2", {"XCCL_CCL": "none", "XCCL_DIRECT": "off"}, "mpi"),
    ],
)
def test_why_of_one_rank(stage, call, env, path):
    written = why(stage, call, env=env)
    assert written["path"] == path
    tuned = env.get("XCCL_TUNE", "").endswith("staged")
    assert written["paths"]["self"]["available"] == (path == "self" or tuned)


def test_why_with_a_plugin(stage, tmp_path):
    """A network plugin is found where the loader looks, and is not loaded."""
    (tmp_path / "libnccl-net.so").write_text("no shared object")
    env = {"LD_LIBRARY_PATH": str(tmp_path), "NCCL_IB_DISABLE": "1"}
    assert why(stage, "allreduce:1m:cuda:8:2", env=env)["machine"]["network"] == "fabric"
    env["NCCL_NET"] = "socket"
    assert why(stage, "allreduce:1m:cuda:8:2", env=env)["machine"]["network"] == "tcp"
    env = {"NCCL_IB_DISABLE": "1"}
    assert why(stage, "allreduce:1m:cuda:8:2", env=env)["machine"]["network"] == "tcp"
    (tmp_path / "conf").write_text("NCCL_NET=Socket\n")
    env = {"LD_LIBRARY_PATH": str(tmp_path), "NCCL_CONF_FILE": str(tmp_path / "conf")}
    assert why(stage, "allreduce:1m:cuda:8:2", env=env)["machine"]["network"] == "tcp"


def test_why_by_own_tables(stage, table):
    """XCCL_TUNE before XCCL_TABLE, that in place of what is installed, before the built-in rows."""
    path = table(
        "bcast:*:*:*:mpi\n# why not\nreduce:*:*:*:mpi#scatter:0-1k:*:*:mpi", "ranks = 2-4"
    )
    env = {"XCCL_TABLE": str(path), "XCCL_TUNE": "reduce:*:*:*:ccl"}
    written = why(stage, "bcast:8:cuda:2", env=env)
    sources = [one["source"] for one in written["tables"]]
    assert sources == ["XCCL_TUNE", str(path), "built-in table"]
    assert written["reason"] == "a.table:4 bcast:*:*:*:mpi" and written["path"] == "mpi"
    assert why(stage, "reduce:8:cuda:2", env=env)["reason"] == "XCCL_TUNE reduce:*:*:*:ccl"
    assert (
        why(stage, "bcast:8:cuda:5", env=env)["tables"][1]["why_not"]
        == "ranks: 5, the table is for 2-4"
    )
    none = why(stage, "bcast:8:cuda:2", env={"XCCL_TABLE": "none"})
    assert [one["source"] for one in none["tables"]] == ["built-in table"]
    folder = why(stage, "bcast:8:cuda:2", env={"XCCL_TABLE": str(path.parent)})
    assert folder["tables"][0]["source"] == str(path)


def test_why_has_an_obstacle(stage):
    assert (
        why(stage, "bcast:8:cuda:2", env={"XCCL_ROUTE": "mpi"})["reason"]
        == "XCCL_ROUTE is not xccl"
    )
    alone = why(stage, "alltoallw:8:cuda:2")
    assert alone["path"] == "mpi" and not alone["paths"]["ccl"]["available"]
    assert "a message for each block" in alone["paths"]["mpi"]["why"]
    for env in ({"XCCL_P2P": "staged"}, {"XCCL_ROUTE": "mpi"}, {"XCCL_MPI_GPU_AWARE": "yes"}):
        assert "message" not in why(stage, "alltoallw:8:cuda:2", env=env)["paths"]["mpi"]["why"]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("allreduce", "1 field given, 4 or 5 are needed"),
        ("allreduce:64k:cuda:8:2:3", "6 fields given, 4 or 5 are needed"),
        ("allreduse:64k:cuda:8", "8: collective 'allreduse'; allowed: allreduce, "),
        ("allreduce:64x:cuda:8", "8: bytes '64x'; allowed: one size, a number that may end in k"),
        ("allreduce:64k:host:8", "rocm_managed, hpu; it takes coll:bytes:mem:ranks"),
        ("*:64k:cuda:8", "one value"),
        ("allreduce:0-64k:cuda:8", "one value"),
        ("allreduce:64k:cuda:2-8", "one value"),
        ("allreduce:64k:cuda:0", "ranks '0'; allowed: an integer >= 1; it takes"),
        ("allreduce:64k:cuda:-1", "ranks '-1'; allowed: an integer >= 1; it takes"),
        ("allreduce:64k:cuda:8:0", "nodes: expected an integer >= 1"),
        ("allreduce:64k:cuda:2:4", "more nodes than ranks"),
    ],
)
def test_why_refuses(stage, call, words):
    ended = stage.tool("xccl-info", "--why", call)
    assert ended.status == 2 and not ended.out
    assert words in ended.err and "allreduce:64k:cuda:8" in ended.err
    assert ":mpi" not in ended.err  # a path, which calls do not have


@pytest.mark.parametrize(
    ("rows", "words"),
    [("*:*:*:*:ccx", "line 4, column 9"), ("#*:*:*:*:ccl", "begins with '# '")],
)
def test_a_table_with_a_mistake(stage, table, rows, words):
    path = table(rows)
    ended = stage.tool("xccl-info", env={"XCCL_TABLE": str(path)})
    assert ended.status == 1
    assert f"xccl-info: XCCL_TABLE: {path}: " in ended.err and words in ended.err


def test_output_that_takes_no_more(stage):
    """Where the output is longer than a buffer, glibc 2.41 has forgotten the reason at the end."""
    ended = stage.run("sh", "-c", f"exec {stage.bin}/xccl-info --version >/dev/full")
    assert (ended.status, ended.err) == (1, "xccl-info: the output: No space left on device\n")
    ended = stage.run("sh", "-c", f"exec {stage.bin}/xccl-info --long >/dev/full")
    assert ended.status == 1 and ended.err.startswith("xccl-info: the output: ")


def test_link(mpi, tmp_path):
    """A program linked with these flags needs no preloading."""
    flags = mpi.stage.tool("xccl-info", "--link").good().out.split()
    source = tmp_path / "app.c"
    source.write_text(PROGRAM)
    if mpi.stage.sanitized:
        flags.append("-fsanitize=address")
    program = mpi.compile(source, tmp_path / "app", *flags, "-ldl")
    assert mpi.run(1, program).good().out.split()[-2:] == ["host", "1"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--zzz"], "unknown option '--zzz'; see xccl-info --help"),
        (["-x"], "unknown option '-x'; see xccl-info --help"),
        (["stray"], "unexpected argument 'stray'; see xccl-info --help"),
        (["--jsn"], "unknown option '--jsn'; did you mean '--json'?"),
        (["--why", "allreduce:64k:cuda:8", "--gpu", ""], "--gpu: the model is missing"),
        (["--link", "--json"], "--link goes with no other option"),
        (["--config", "--why", "bcast:8:cuda:2"], "--why goes with"),
    ],
)
def test_refusals(stage, words, message):
    ended = stage.tool("xccl-info", *words)
    assert ended.status == 2 and not ended.out
    assert f"xccl-info: {message}" in ended.err


@pytest.mark.parametrize("tool", ["xccl-bind", "xccl-perf", "xccl-tune", "xccl-run"])
def test_a_slip_is_answered_alike(stage, tool):
    ended = stage.tool(tool, "--versoin")
    assert ended.status == 2
    assert f"{tool}: unknown option '--versoin'; did you mean '--version'?" in ended.err


def test_short(stage):
    """One screen, the fault before the facts, and all that decides how a job runs."""
    env = {"XCCL_TIMEOUT": "77", "XCCL_TIMEOT": "3"}
    command = f"{stage.bin}/xccl-run --sim cuda:2 {stage.bin}/xccl-info --devices 2>&1"
    text = stage.run("sh", "-c", command, env=env).good().out
    lines = text.splitlines()
    assert len(lines) < 25
    assert lines[0].startswith("xccl-info: warning: XCCL_TIMEOT")
    assert lines[1].startswith("xccl ") and lines[1].endswith(f" in {stage.folder}")
    assert re.search(r"^ {15}device 1: Simulated CUDA accelerator, ", text, re.M)
    assert re.search(rf"^  library      nccl [\d.]+, {re.escape(str(stage.lib))}/", text, re.M)
    assert re.search(r"^ +(variables +)?XCCL_TIMEOUT=77$", text, re.M)
    assert "XCCL_COMM_POOL" not in text


def test_short_without_a_library(stage):
    named = stage.tool("xccl-info", env={"XCCL_CCL_LIBRARY": "/no/such/libnccl.so.2"})
    assert named.status == 1
    assert "  library      none: nccl: cannot load /no/such/libnccl.so.2" in named.out


@pytest.mark.parametrize("tool", ["xccl-run", "xccl-info"])
def test_documented_everywhere(stage, tool):
    """Options of --help, of the manual page and of the completion are the same."""

    def options(text):
        return set(re.findall(r"--[a-z][a-z-]*", text.replace("\\-", "-")))

    shown = options(stage.tool(tool, "--help").good().out)
    assert shown
    assert shown <= options((LIBXCCL / f"tools/man/{tool}.1").read_text())
    assert shown <= options((LIBXCCL / f"tools/completion/bash/{tool}").read_text())
