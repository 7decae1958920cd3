# SPDX-License-Identifier: BSD-3-Clause
"""xccl-run: what the command sees, in front of and behind both launchers, and every refusal."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

# Nothing here is compiled: the sanitizers have nothing to find.
pytestmark = pytest.mark.release_only

TOOLS = Path(__file__).resolve().parents[2] / "tools"
TOP = Path(__file__).resolve().parents[3]
SHELLS = [shell for shell in ("dash", "bash", "ksh", "zsh", "busybox") if shutil.which(shell)]


def seen(ended):
    """The variables that `env -0` printed."""
    pairs = (entry.split("=", 1) for entry in ended.good().out.split("\0") if "=" in entry)
    return dict(pairs)


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["--rout", "mpi", "true"], 2, ["did you mean '--route'?"]),
        (["--explian"], 2, ["did you mean '--explain'?"]),
        (["--siet", "x", "true"], 2, ["did you mean '--site'?"]),
        (["--ruote=mpi", "true"], 2, ["unknown option '--ruote=mpi'; did you mean '--route'?"]),
        (["--josn"], 2, ["unknown option '--josn'; there is no --json here: xccl-info --json"]),
        (["--route", "xcl", "true"], 2, ["known: xccl, mpi; did you mean 'xccl'?"]),
        (["--sim", "cuad:4", "true"], 2, ["hpu:N (N devices); did you mean 'cuda:4'?"]),
        (["--sim", "cuda", "true"], 2, ["did you mean 'cuda:2'?"]),
        (["--sim", "ROCM:4", "true"], 2, ["unknown simulation 'ROCM:4'; known: cuda:N, "]),
        (["--bind", "hwlco", "true"], 2, ["known: auto site hwloc none; did you mean 'hwloc'?"]),
        (["--gpus", "some", "true"], 2, ["unknown value 'some'; known: all first only\n"]),
        (["--route", "ucc-ccl", "true"], 2, ["module xccl-route/ucc-ccl", "--route ucc-ccl"]),
        (["--zzz", "true"], 2, ["'--zzz'", "xccl-run --help"]),
        (["--route", "fast", "true"], 2, ["fast", "xccl, mpi"]),
        (["--route=", "true"], 2, ["--route", "xccl, mpi"]),
        (["--route"], 2, ["--route needs a value"]),
        (["--sim", "gaudi:2", "true"], 2, ["gaudi:2", "cuda:N", "rocm:N"]),
        (["--sim", "cuda", "true"], 2, ["cuda", "cuda:N"]),
        (["--sim", "cuda:0", "true"], 2, ["'0'", "cuda:4"]),
        (["--sim", "rocm:", "true"], 2, ["rocm:4"]),
        (["--sim", "cuda:4x", "true"], 2, ["'4x'"]),
        (["--sim", "cuda:65", "true"], 2, ["'65'", "1 to 64"]),
        (["--sim", "cuda:300", "true"], 2, ["'300'", "1 to 64"]),
        ([], 2, ["no command"]),
        (["--"], 2, ["no command"]),
        (["--report"], 2, ["behind a launcher", "srun -n 8 xccl-run --report true"]),
        (["--no-bind", "--report", "true"], 2, ["nothing is bound", "leave one of them out"]),
        (["--report", "--sim", "cuda:2"], 2, ["behind a launcher", "xccl-info shows"]),
        (["no-such-program"], 127, ["no-such-program", "PATH"]),
        (["if"], 127, ["'if' was not found"]),
        (["explain", "/"], 127, ["'explain' was not found"]),
        (["/no/such/file"], 127, ["/no/such/file"]),
        (["/proc/version"], 126, ["'/proc/version' may not be executed"]),
        (["/proc"], 126, ["'/proc' is a folder"]),
        (["--site", "", "true"], 2, ["--site: the name is missing"]),
        (["--topology", "pack:1", "true"], 2, ["no rank to bind here"]),
        (["--map", "/proc", "true"], 2, ["--map: '/proc' is a folder"]),
        (["--map", "/no/map", "true"], 2, ["--map: no file '/no/map'"]),
        (["-n", "4", "true"], 2, ["unknown option '-n'", "in front: mpirun -n 4 xccl-run"]),
        (["--map", "/dev/null", "true"], 2, ["'/dev/null' has no line of a rank", "local rank"]),
    ],
)
def test_refusals(stage, arguments, status, words):
    ended = stage.tool("xccl-run", *arguments)
    assert ended.status == status
    assert ended.out == ""
    assert ended.err.startswith("xccl-run: ")
    for word in words:
        assert word in ended.err


def test_a_pipe_is_no_map(stage, tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    ended = stage.tool("xccl-run", "--map", str(fifo), "true")
    assert (ended.status, ended.err) == (
        2,
        f"xccl-run: --map: '{fifo}' is a pipe, which one rank alone can read\n",
    )


RANK = {"SLURM_STEP_ID": "0", "SLURM_LOCALID": "0", "SLURM_STEP_NUM_NODES": "2"}


@pytest.mark.parametrize("env", [{}, RANK])
def test_exported_variables_of_the_job_are_left_alone(stage, env):
    """Jobs export names as plain as those that a script uses."""
    names = {"prefix", "rank", "nodes", "map", "lib", "version", "name", "value", "site", "known"}
    for script in ("xccl-run", "run/launch.sh"):
        text = (TOOLS / script).read_text()
        names |= set(re.findall(r"(?<![\w$.{-])([a-z]\w*)=", text))
        names |= set(re.findall(r"(?:for|read -r) ([a-z]\w*)", text))
    mine = {name: f"of the job: {name}" for name in names}
    options = ["--sim", "cuda:2", "--route", "xccl", "--site", "frontier", "--no-bind"]
    found = seen(stage.tool("xccl-run", *options, "env", "-0", env={**env, **mine}))
    assert {name: found.get(name) for name in names} == mine


def test_status_and_arguments_pass(stage):
    script = 'printf "<%s>" "$@"; exit 7'
    odd = ["a b", "", "*", "--route", "'", '"', "-n"]
    ended = stage.tool("xccl-run", "--", "sh", "-c", script, "sh", *odd)
    assert ended.status == 7
    assert ended.out == "".join(f"<{word}>" for word in odd)


def test_options_end_at_the_command(stage):
    ended = stage.tool("xccl-run", "echo", "--route", "nonsense").good()
    assert ended.out == "--route nonsense\n"


def test_preload_is_put_in_front(stage):
    if stage.sanitized:
        pytest.skip("behind the sanitizer's runtime; see test_sanitizer_stays_first")
    env = {"LD_PRELOAD": "libm.so.6"}
    assert seen(stage.tool("xccl-run", "env", "-0", env=env))["LD_PRELOAD"] == (
        f"{stage.interposer}:libm.so.6"
    )
    alone = seen(stage.tool("xccl-run", "env", "-0"))
    assert alone["LD_PRELOAD"] == str(stage.interposer)
    assert not [name for name in alone if name.startswith("XCCL_")]


def test_sanitizer_stays_first(stage):
    asan = subprocess.check_output(["cc", "-print-file-name=libasan.so"], text=True).strip()
    if not os.path.isabs(asan):
        pytest.skip("this compiler has no AddressSanitizer")
    variables = seen(stage.tool("xccl-run", "env", "-0", env={"LD_PRELOAD": asan}))
    assert variables["LD_PRELOAD"] == f"{asan}:{stage.interposer}"


def test_nesting_adds_nothing(stage):
    run = stage.bin / "xccl-run"
    once = seen(stage.run(run, "--sim", "cuda:2", "env", "-0"))
    twice = seen(stage.run(run, "--sim", "cuda:2", run, "--sim", "cuda:2", "env", "-0"))
    assert once["LD_PRELOAD"] == twice["LD_PRELOAD"]
    assert once["LD_LIBRARY_PATH"] == twice["LD_LIBRARY_PATH"]


def test_the_variable_asks_for_the_simulation(stage):
    """As in the job file of the site sim: no option is needed there."""
    run = stage.bin / "xccl-run"
    variables = seen(stage.run(run, "env", "-0", env={"XCCL_SIM": "cuda:4"}))
    assert variables["LD_LIBRARY_PATH"].split(":")[0] == f"{stage.lib}/xccl/sim/cuda"
    assert variables["XCCL_SIM"] == "cuda:4"
    ended = stage.run(run, "true", env={"XCCL_SIM": "cuda:300"})
    assert ended.status == 2
    assert "XCCL_SIM: invalid number of devices '300'" in ended.err
    variables = seen(stage.run(run, "--sim", "rocm:2", "env", "-0", env={"XCCL_SIM": "cuda:4"}))
    assert variables["XCCL_SIM"] == "rocm:2"


@pytest.mark.parametrize(
    "tool", ["xccl-bind", "xccl-doctor", "xccl-info", "xccl-perf", "xccl-run", "xccl-tune"]
)
def test_short_options(stage, tool):
    if not (stage.bin / tool).exists():
        pytest.skip(f"{tool} was not built")
    assert stage.tool(tool, "-V").good().out == stage.tool(tool, "--version").good().out
    assert stage.tool(tool, "-h").good().out == stage.tool(tool, "--help").good().out


def test_route_and_simulation(stage):
    env = {"LD_LIBRARY_PATH": "/usr/lib", "XCCL_ROUTE": "xccl"}
    options = ["--route", "mpi", "--sim", "rocm:8"]
    variables = seen(stage.tool("xccl-run", *options, "env", "-0", env=env))
    assert variables["XCCL_ROUTE"] == "mpi"
    assert variables["XCCL_SIM"] == "rocm:8"
    assert variables["LD_LIBRARY_PATH"] == f"{stage.lib}/xccl/sim/rocm:/usr/lib"


def test_users_route_stays(stage):
    variables = seen(stage.tool("xccl-run", "env", "-0", env={"XCCL_ROUTE": "mpi"}))
    assert variables["XCCL_ROUTE"] == "mpi"


def launched(stage, folder, name, *arguments, env=None):
    """The variables and arguments that a launcher of this name gets."""
    launcher = folder / name
    launcher.write_text('#!/bin/sh\nenv -0\nprintf "ARGUMENTS=%s\\0" "$*"\n')
    launcher.chmod(0o755)
    run = [stage.bin / "xccl-run", "--route", "mpi", launcher, *arguments]
    return seen(stage.run(*run, env={"XCCL_LOG": "info", **(env or {})}))


LIST = "OMPI_MCA_mca_base_env_list"


@pytest.mark.parametrize("theirs", ["", "theirs;XCCL_LOG=warn"])
def test_launcher_hands_on_variables(stage, tmp_path, theirs):
    """Open MPI hands ranks on other hosts nothing but what it is told to."""
    env = {LIST: theirs} if theirs else {}
    variables = launched(stage, tmp_path, "mpirun", "-n", "2", "./app", "-x", "3", env=env)
    names = variables[LIST].split(";")
    assert {"LD_PRELOAD", "XCCL_ROUTE"} <= set(names)
    assert [name for name in names if name.startswith("XCCL_LOG")] == [
        "XCCL_LOG=warn" if theirs else "XCCL_LOG"
    ]
    assert ("theirs" in names) == bool(theirs)
    assert variables["ARGUMENTS"] == "-n 2 ./app -x 3"


def with_sites(stage, prefix):
    """xccl-run of this tree in an installation of its own, with the sites' files."""
    command = install_copy(stage, prefix)
    (prefix / "lib/xccl").mkdir()
    shutil.copy(TOP / "libxccl/tools/run/launch.sh", prefix / "lib/xccl")
    for file in TOP.glob("site-configs/*/site.json"):
        target = prefix / "share/xccl/sites" / file.parent.name
        target.mkdir(parents=True)
        shutil.copy(file, target)
    return command


@pytest.mark.parametrize("shell", SHELLS)
def test_launcher_hands_on_what_site_and_route_set(stage, tmp_path, shell):
    """Else a rank on another host has half a site and half a route. What belongs to neither stays."""
    command = with_sites(stage, tmp_path / "prefix")
    launcher = tmp_path / "mpirun"
    launcher.write_text("#!/bin/sh\nenv -0\n")
    launcher.chmod(0o755)
    front = {"busybox": [shell, "sh"], "zsh": [shell, "--emulate", "sh"]}.get(shell, [shell])
    env = {
        "XCCL_SITE": "dgx-h100", "XCCL_ROUTE": "ucc-ccl", "NCCL_IB_HCA": "=mlx5_0", "UCC_TL_NCCL_TUNE": "x y",
        "OMPI_MCA_coll_ucc_enable": "1", "UCC_CONFIG_FILE": "/dev/null", "NCCL_MINE": "1", "MPICH": "1",
    }  # fmt: skip
    entries = seen(stage.run(*front, command, launcher, "-n", "2", "./app", env=env))[LIST]
    assert ";NCCL_IB_HCA==mlx5_0;" in f";{entries};"  # of the name alone mlx5_0 would be left
    names = [entry.split("=")[0] for entry in entries.split(";")]
    wanted = {
        "NCCL_IB_HCA",
        "UCC_TL_NCCL_TUNE",
        "OMPI_MCA_coll_ucc_enable",
        "UCC_CONFIG_FILE",
        "XCCL_SITE",
    }
    assert wanted <= set(names) and len(set(names)) == len(names)
    assert not {"NCCL_MINE", "PATH", "UCC_TL_RCCL_TUNE"} & set(names)


def test_launcher_with_variables_of_the_user(stage, tmp_path):
    """Open MPI 4.1 takes its list, or options, but not both."""
    variables = launched(stage, tmp_path, "mpirun", "-x", "XCCL_LOG", "-n", "2", "./app")
    assert LIST not in variables
    words = variables["ARGUMENTS"].split()
    assert words[-5:] == ["-x", "XCCL_LOG", "-n", "2", "./app"]
    named = words[1:-5:2]
    assert set(words[:-5:2]) == {"-x"} and {"LD_PRELOAD", "XCCL_ROUTE"} <= set(named)
    assert "XCCL_LOG" not in named


@pytest.mark.parametrize(
    "front", ["", "--oversubscribe", "--mca btl self,tcp --np=2", "-n 1 ./a :"]
)
def test_launcher_with_an_option_of_the_program(stage, tmp_path, front):
    """What stands behind the program's name says nothing to Open MPI."""
    words = [*front.split(), "-n", "2", "./app", "-x", "foo"]
    variables = launched(stage, tmp_path, "mpirun", *words)
    assert variables["ARGUMENTS"] == " ".join(words) and "LD_PRELOAD" in variables[LIST]


@pytest.mark.parametrize("front", ["--display-allocation", "--bind-to none", "-n 1 ./a :"])
def test_launcher_with_variables_behind_other_options(stage, tmp_path, front):
    variables = launched(stage, tmp_path, "mpirun", *front.split(), "-x", "XCCL_LOG", "./app")
    assert variables["ARGUMENTS"].startswith("-x LD_PRELOAD") and LIST not in variables


def test_launcher_with_a_list_of_the_user(stage, tmp_path):
    """Open MPI 4.1 takes no options beside it, and only one list."""
    variables = launched(stage, tmp_path, "mpirun", "-x", "A", "./app", env={LIST: "B"})
    assert variables["ARGUMENTS"] == "-x A ./app" and "LD_PRELOAD" in variables[LIST]
    words = "-mca mca_base_env_list A -x B ./app"
    variables = launched(stage, tmp_path, "mpirun", *words.split())
    assert variables["ARGUMENTS"] == words and LIST not in variables


def test_other_launchers_hand_on_all(stage, tmp_path):
    variables = launched(stage, tmp_path, "srun", "-n", "2", "./app")
    assert LIST not in variables and variables["ARGUMENTS"] == "-n 2 ./app"


@pytest.mark.parametrize("name", ["mpirun_rsh", "jsrun", "mpiexec.hydra"])
def test_a_launcher_is_no_rank(stage, tmp_path, name):
    """Not even where the job's step has the variables of one."""
    env = {"SLURM_STEP_ID": "0", "SLURM_LOCALID": "0", "SLURM_PROCID": "0"}
    variables = launched(stage, tmp_path, name, "-n", "2", "./app", env=env)
    assert variables["ARGUMENTS"] == "-n 2 ./app" and "XCCL_LOCAL_DEVICE" not in variables
    ended = stage.tool("xccl-run", "--report", tmp_path / name, env=env)
    assert ended.status == 2 and "behind the launcher" in ended.err


def test_explain(stage):
    ended = stage.tool("xccl-run", "--explain", "--route", "mpi", "--sim", "cuda:2").good()
    for name in ("LD_PRELOAD", "XCCL_ROUTE", "XCCL_SIM", "LD_LIBRARY_PATH"):
        assert re.search(rf"^xccl-run: {name}=.+\n +\S+", ended.err, re.M), name
    assert ended.out == ""
    assert stage.tool("xccl-run", "--explain", "echo", "ran").good().out == "ran\n"


def test_version_and_help(stage):
    version = stage.tool("xccl-run", "--version").good().out
    assert re.fullmatch(r"xccl-run \d+\.\d+\.\d+\S*\n", version)
    assert "--sim" in stage.tool("xccl-run", "--help").good().out


def install_copy(stage, target):
    """The script and the interposer alone, elsewhere."""
    (target / "bin").mkdir(parents=True)
    (target / "lib").mkdir()
    shutil.copy(stage.bin / "xccl-run", target / "bin")
    shutil.copy(stage.interposer, target / "lib")
    return target / "bin/xccl-run"


@pytest.mark.parametrize("how", ["link", "chain", "relative", "path", "moved"])
def test_finds_its_installation(stage, tmp_path, how):
    """By its own path, whatever it was called by."""
    prefix, env, cwd = stage.folder, {}, None
    if how == "moved":
        prefix = tmp_path / "elsewhere"
        command = install_copy(stage, prefix)
    elif how == "relative":
        cwd, command = stage.folder, "./bin/xccl-run"
    elif how == "path":
        env, command = {"PATH": f"{stage.bin}:{os.environ['PATH']}"}, "xccl-run"
    else:
        (tmp_path / "first").symlink_to(stage.bin / "xccl-run")
        (tmp_path / "second").symlink_to("first")
        command = tmp_path / ("first" if how == "link" else "second")
    if how == "path":
        command = shutil.which("xccl-run", path=env["PATH"])
    preload = seen(stage.run(command, "env", "-0", env=env, cwd=cwd))["LD_PRELOAD"]
    last = preload.split(":")[-1]
    assert os.path.realpath(last) == str(prefix / "lib/libxccl-mpi.so")
    assert os.path.isabs(last)


@pytest.mark.parametrize("name", ["with blank", "with:colon"])
def test_path_that_preloading_cannot_hold(stage, tmp_path, name):
    command = install_copy(stage, tmp_path / name)
    ended = stage.run(command, "true")
    assert ended.status == 1
    assert "LD_PRELOAD cannot hold" in ended.err
    shutil.copy(stage.bin / "xccl-info", command.with_name("xccl-info"))
    ended = stage.run(command.with_name("xccl-info"), "--link")
    assert (ended.status, ended.out) == (1, "")
    assert "cannot hold a path with a colon or a blank" in ended.err


def test_missing_parts(stage, tmp_path):
    command = install_copy(stage, tmp_path)
    ended = stage.run(command, "--sim", "cuda:2", "true")
    assert (ended.status, "-DXCCL_SIM=ON" in ended.err) == (1, True)
    (tmp_path / "lib/libxccl-mpi.so").unlink()
    ended = stage.run(command, "true")
    assert (ended.status, "libxccl-mpi.so was not found" in ended.err) == (1, True)


@pytest.mark.parametrize("shell", SHELLS)
def test_every_posix_shell(stage, shell):
    front = [shell, "sh"] if shell == "busybox" else [shell]
    options = ["--route", "mpi", "--sim", "cuda:3", "env", "-0"]
    variables = seen(stage.run(*front, stage.bin / "xccl-run", *options))
    assert variables["XCCL_SIM"] == "cuda:3"
    assert variables["LD_PRELOAD"].endswith(str(stage.interposer))


def test_forks_nothing(stage, tmp_path):
    """Thousands of ranks start it at once: the shell becomes the command."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    trace = tmp_path / "trace"
    words = ["strace", "-f", "-o", trace, "-e", "trace=process"]
    options = ["--route", "xccl", "--sim", "cuda:2", "/bin/true"]
    stage.run(*words, stage.bin / "xccl-run", *options).good()
    calls = trace.read_text()
    assert calls.count("execve(") == 2, calls
    assert not re.search(r"\b(clone3?|v?fork)\(", calls), calls


@pytest.mark.parametrize("where", ["front", "behind", "both"])
def test_launchers(mpi, where):
    """Ranks are served by kernels on the simulated devices wherever xccl-run stands."""
    run = [mpi.stage.bin / "xccl-run", "--sim", "cuda:2"]
    perf = [mpi.stage.bin / "xccl-perf", "--min", "1k", "--max", "1k", "--iters", "2"]
    front = run if where != "behind" else []
    behind = run if where != "front" else []
    ended = mpi.stage.run(*front, *mpi.command(2), *behind, *perf).good()
    rows = [line.split() for line in ended.out.splitlines() if not line.startswith("#")]
    assert [row[2] for row in rows] == ["direct"], ended.out
