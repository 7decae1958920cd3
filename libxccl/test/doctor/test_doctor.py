# SPDX-License-Identifier: BSD-3-Clause
"""xccl-doctor as installed: options, exit status, documentation, and a job that it runs."""

import ast
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from running_clock import communicate, now
from xccl_common import machine
from xccl_common.failure import telling_line
from xccl_common.tool import Tool
from xccl_doctor import command, docs, registry
from xccl_doctor.main import main

TOP = Path(__file__).resolve().parents[3]
SIMULATED = {"XCCL_SIM": "cuda:4"}
HOST = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def environment(stage, **more):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("XCCL_", "SLURM_", "NCCL_"))}
    cache = (stage.parent / "CMakeCache.txt").read_text()
    if re.search(r"^XCCL_SANITIZE:[A-Z]+=(ON|1|TRUE)$", cache, re.M):
        env["ASAN_OPTIONS"] = "detect_leaks=0"
        command = ["cc", "-print-file-name=libasan.so"]  # insists on being loaded first
        env["LD_PRELOAD"] = subprocess.check_output(command, text=True).strip()
    env["SOURCE_DATE_EPOCH"] = "1798761600"  # sites of that year are fresh
    return {**env, **HOST, "OMPI_MCA_mpi_yield_when_idle": "1", **more}


def run(stage, *words, timeout=100, **more):
    return subprocess.run(
        [stage / "bin/xccl-doctor", *map(str, words)],
        env=environment(stage, **more),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--jsn"], "did you mean '--json'?"),
        (["--site", "fronteir"], "did you mean 'frontier'?"),
        (["--site", "JUWLES"], "did you mean 'juwels-booster'?"),
        (["--explain", "gpu-hiden"], "did you mean 'gpu-hidden'?"),
        (["--app", "/no/program"], "no program '/no/program'"),
        (["--app", "/etc/hostname"], "is not a program that this machine runs"),
        (["--run"], "needs a launcher"),
        (["--", "srun"], "only be run with --run"),
        (["--run", "--", "srun", "-n", "2", "sleep", "1"], "stands alone: drop 'sleep 1'"),
        (
            ["--run", "--", "/no/launcher"],
            "--run: '/no/launcher' was not found; check the spelling",
        ),
        (["--run", "--", "mpirnu", "-n", "2"], "'mpirnu' was not found"),
        (["--route", "fast"], "xccl, ucc, ucc-ccl, mpi"),
        (["--site", "atlantis"], "juwels-booster"),
        (["--timeout", "x"], "'x'"),
        (["--timeout", "²"], "--timeout: invalid value"),
        (["--timeout"], "needs a value"),
        (["-x"], "unknown option '-x'; see --help"),
        (["--log", "/no/log"], "/no/log"),
        (
            ["--log", "/dev/zero"],
            "--log: '/dev/zero' is no text; name the file with what the job printed",
        ),
        (["--log", sys.executable], "is no text"),
        (["--sysroot", "/no/folder"], "/no/folder"),
        (["--explain", "nothing"], "--list"),
    ],
)
def test_wrong_options(stage, capsys, monkeypatch, words, message):
    for name in set(os.environ) - set(environment(stage)):
        monkeypatch.delenv(name)
    status = main(words, Tool("xccl-doctor", "0", "", str(stage), f"{stage}/lib"))
    out, err = capsys.readouterr()
    assert (status, out) == (2, "")
    assert message in err


def test_wrong_option(stage):
    ended = run(stage, "--nonsense")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "--nonsense" in ended.stderr


def test_interrupted(stage, tmp_path):
    """Ctrl-C ends the job too, prints no traceback and leaves no file."""
    mark, folder = tmp_path / "mark", tmp_path / "folder"
    folder.mkdir()
    job = f"echo $$ >{mark}; exec sleep 100"
    doctor = subprocess.Popen(
        [stage / "bin/xccl-doctor", "--run", "--", "sh", "-c", job],
        env=environment(stage, TMPDIR=str(folder)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = now() + 60
    while not (mark.exists() and mark.read_text().strip()) and now() < deadline:
        time.sleep(0.05)
    doctor.send_signal(signal.SIGINT)
    out, err = communicate(doctor, 60)
    assert (doctor.returncode, out, err) == (130, "", "")
    assert not Path(f"/proc/{mark.read_text().strip()}").exists()
    assert list(folder.iterdir()) == []


def test_reader_that_has_enough(stage):
    command = f"{stage}/bin/xccl-doctor --list | head -1"
    ended = subprocess.run(
        ["sh", "-c", command], env=environment(stage), capture_output=True, text=True, check=True
    )
    assert len(ended.stdout.splitlines()) == 1 and ended.stderr == ""


@pytest.mark.parametrize("words", ["--list", "--list --json", "--help", ""])
def test_output_that_takes_no_more(stage, words):
    """A full disk and a closed output are said in a line, as the other tools say it."""
    for where, told in ((">/dev/full", "No space left"), (">&-", "Bad file descriptor")):
        command = f"{stage}/bin/xccl-doctor {words} {where}"
        ended = subprocess.run(
            ["sh", "-c", command],
            env=environment(stage),
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        assert ended.stderr.startswith(f"xccl-doctor: the output: {told}")
        assert (len(ended.stderr.splitlines()), ended.returncode) == (1, 1)


def test_version_help_list(stage):
    version, text, listed = (
        run(stage, *words).stdout for words in (["--version"], ["--help"], ["--list", "--json"])
    )
    assert re.fullmatch(r"xccl-doctor \d+\.\d+\.\d+\S*\n", version)
    assert "--run" in text
    assert set(json.loads(listed)) == set(registry.TABLE)
    assert "do: " in run(stage, "--explain", "gpu-hidden").stdout
    one = json.loads(run(stage, "--json", "--explain", "gpu-hidden").stdout)
    assert one.pop("id") == "gpu-hidden"
    assert {n: one[n] for n in one if n != "see"} == json.loads(listed)["gpu-hidden"]
    assert run(stage, "-h").stdout == text
    assert run(stage, "-V").stdout == version
    others = (run(stage, *words).stdout for words in (["--list"], ["--explain", "mr-cache"]))
    for text in (listed, *others):
        assert "<ccl>" in text
        assert not re.search(r"\{\w+\}", text), "a template"


def test_each_finding_has_a_sentence_of_its_own(stage):
    """Not made of a job's names alone, and not another finding's; and it lists what may be done."""
    listed = json.loads(run(stage, "--list", "--json").stdout)
    causes = [row["cause"] for row in listed.values()]
    assert len(set(causes)) == len(causes)
    assert [cause for cause in causes if cause.startswith("<")] == []
    remedies = [remedy for row in listed.values() for remedy in row["remedies"]]
    assert [text for text in remedies if re.fullmatch(r"<\w+>", text) or text == ""] == []
    text = run(stage, "--explain", "gpu-shared").stdout
    assert "\n  do: ask for one GPU per rank: " in text and "\n  or: unset <variable>" in text
    for row in listed.values():
        assert row["remedy"] == "; or: ".join(row["remedies"])


@pytest.mark.parametrize(
    ("name", "value", "found", "cause"),
    [
        ("XCCL_LOG", "loud", "xccl-setting", "it takes none|error|warn|info|trace"),
        ("XCCL_TUNE", "allreduce", "xccl-setting", "XCCL_TUNE: column 1"),
        ("XCCL_TABLE", "/no/table", "xccl-setting", "XCCL_TABLE: /no/table cannot be opened"),
        ("XCCL_TABEL", "x", "xccl-unknown", "did you mean XCCL_TABLE?"),
        ("XCCL_CCL_LIBRARY", "libm.so.6", "ccl-refused", "has no symbol ncclGetVersion"),
        ("XCCL_CCL_LIBRARY", "/etc/passwd", "ccl-refused", "/etc/passwd: invalid ELF header"),
        ("XCCL_CCL_LIBRARY", "/etc", "ccl-refused", "/etc (from XCCL_CCL_LIBRARY) is a folder"),
        ("XCCL_LOG_FILE", "/no/x.log", "xccl-unwritable", "so messages go to stderr"),
        ("XCCL_DUMP_DIR", "/no/x", "xccl-unwritable", "there is no folder /no/x"),
        ("XCCL_P2PP", "mpi", "xccl-unknown", "did you mean XCCL_P2P?"),
        ("XCCL_CCL_LIBRARY", "/no/libnccl.so.2", "ccl-file-missing", "/no/libnccl.so.2"),
        ("XCCL_SITE", "juwels-boster", "site-unknown", "XCCL_SITE=juwels-boster"),
        ("LD_PRELOAD", "/no/libxccl-mpi.so", "preload-missing", "/no/libxccl-mpi.so"),
    ],
)
def test_settings_of_its_own(stage, name, value, found, cause):
    """What the library itself would say of the environment, without a job."""
    ended = run(stage, "--json", **{**SIMULATED, name: value})
    printed = json.loads(ended.stdout)
    (finding,) = printed["findings"]
    assert (finding["id"], cause in finding["cause"]) == (found, True), finding["cause"]
    refused = found in ("ccl-refused", "ccl-file-missing")
    assert any(" is taken from " in fact for fact in printed["facts"]) is not refused


@pytest.mark.parametrize(
    ("name", "found"), [("XCCL_TABLE", "xccl-setting"), ("XCCL_CCL_LIBRARY", "ccl-refused")]
)
def test_a_pipe_is_not_waited_for(stage, tmp_path, name, found):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    printed = json.loads(run(stage, "--json", **{**SIMULATED, name: str(fifo)}).stdout)
    (finding,) = printed["findings"]
    assert finding["id"] == found and "is a pipe or a device" in finding["cause"], finding


@pytest.mark.parametrize("level", ["warn", "none"])
def test_a_table_of_the_site_with_a_mistake(stage, tmp_path, level):
    """MPI_Init goes on without it."""
    shutil.copytree(stage, tmp_path / "moved", symlinks=True)
    shutil.copy(stage.parent / "CMakeCache.txt", tmp_path)
    table = tmp_path / "moved/share/xccl/sites/sim/tables/10-mistake.table"
    table.parent.mkdir(exist_ok=True)
    table.write_text("garbage row\n")
    ended = run(tmp_path / "moved", "--json", **SIMULATED, XCCL_SITE="sim", XCCL_LOG=level)
    (finding,) = json.loads(ended.stdout)["findings"]
    assert (ended.returncode, finding["id"]) == (3, "xccl-table")
    assert finding["cause"].count(f"{table}: line 1") == 1


def test_the_pages_are_installed_with_it(stage):
    folder = stage / "share/doc/xccl"
    for path, text in docs.render().items():
        assert (folder / path).read_text() == text
    page = folder / "findings/ranks.md"
    assert f"see: {page}#gpu-hidden" in run(stage, "--explain", "gpu-hidden").stdout


def test_help_and_manual_name_every_option(stage):
    manual = (TOP / "libxccl/tools/man/xccl-doctor.1").read_text().replace("\\-", "-")
    completion = (TOP / "libxccl/tools/completion/bash/xccl-doctor").read_text()
    for option in (*command.WITH_VALUE, *command.FLAGS):
        assert option in command.USAGE
        assert option in manual, option
        assert option in completion, option


def test_nothing_to_look_at_is_said(stage, tmp_path):
    """Without GPU, job or log it does not reassure."""
    (tmp_path / "root").mkdir()
    ended = run(stage, "--sysroot", tmp_path / "root")
    assert ended.returncode != 0
    assert "no GPU was found on this machine" in ended.stdout
    assert "not there to look at: GPUs (none on this machine)" in ended.stdout
    assert "nothing found" not in ended.stdout
    ended = run(stage, "--app", "/bin/true", **SIMULATED)
    assert "an MPI of /bin/true (it is linked with none:" in ended.stdout
    ended = run(stage, "--log", "/dev/null", **SIMULATED)
    assert ended.returncode == 3
    assert "[log-silent] the log (0 lines)" in ended.stdout


def test_log_from_standard_input(stage):
    ended = subprocess.run(
        [stage / "bin/xccl-doctor", "--log", "-"],
        env=environment(stage, **SIMULATED),
        input="n1:1:1 [0] NCCL WARN Duplicate GPU detected : rank 1 and rank 0\n",
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert (ended.returncode, "[gpu-duplicate]" in ended.stdout) == (1, True)


def test_log_from_a_closed_standard_input(stage):
    ended = subprocess.run(
        ["sh", "-c", 'exec "$0" --log - <&-', stage / "bin/xccl-doctor"],
        env=environment(stage, **SIMULATED),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "--log: cannot read '-': Bad file descriptor" in ended.stderr


def test_moved_installation(stage, tmp_path):
    """By a link, and from a copy elsewhere."""
    (tmp_path / "link").symlink_to(stage / "bin/xccl-doctor")
    shutil.copytree(stage / "lib/xccl/python", tmp_path / "moved/lib/xccl/python")
    (tmp_path / "moved/bin").mkdir()
    shutil.copy(stage / "bin/xccl-doctor", tmp_path / "moved/bin")
    for program in (tmp_path / "link", tmp_path / "moved/bin/xccl-doctor"):
        ended = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
        assert ended.stdout.startswith("xccl-doctor ")


def test_text_names_all_parts(stage, tmp_path):
    (tmp_path / "log").write_text(
        "n1:1:1 [0] NCCL WARN Duplicate GPU detected : rank 1 and rank 0\n"
    )
    ended = run(stage, "--log", tmp_path / "log", **SIMULATED)
    assert ended.returncode == 1
    assert "ERROR [gpu-duplicate] " in ended.stdout
    assert "\n  do: start ranks by xccl-run" in ended.stdout
    assert f"\n  see: {stage}/share/doc/xccl/findings/ranks.md#gpu-duplicate\n" in ended.stdout
    assert "\nlooked at: " in ended.stdout


@pytest.mark.parametrize(
    ("flavour", "ccl", "file"),
    [
        ("mscclpp", "mscclpp", "libmscclpp_nccl.so.0"),
        ("oneccl", "oneccl", "libccl.so.2"),
        ("hpu", "auto", "libSynapse.so"),
    ],
)
def test_other_libraries(stage, flavour, ccl, file):
    """The file of the library that this environment chooses, where it would come from."""
    ended = run(stage, **{**SIMULATED, "XCCL_SIM": f"{flavour}:2", "XCCL_CCL": ccl})
    assert f" is taken from {stage}/lib/xccl/sim/{flavour}/{file} (found by: " in ended.stdout
    assert "ccl-missing" not in ended.stdout


def need_launcher():
    mpirun = shutil.which("mpirun.openmpi") or shutil.which("mpirun")
    if mpirun is None:
        pytest.skip("no mpirun")
    return [mpirun, "--oversubscribe", "--bind-to", "none", "-n", "2"]


def test_run_on_a_healthy_simulated_site(stage):
    ended = run(stage, "--json", "--run", "--", *need_launcher(), **SIMULATED)
    found = json.loads(ended.stdout)
    assert (ended.returncode, found["findings"]) == (0, []), ended.stdout
    assert "allreduce is served by direct" in found["facts"]
    assert any(fact.startswith("xccl uses NCCL 2.") for fact in found["facts"]), found["facts"]


def test_run_sees_the_fault(stage):
    """One simulated GPU for two ranks, in a real job."""
    broken = {**SIMULATED, "XCCL_SIM": "cuda:1"}
    ended = run(stage, "--json", "--run", "--", *need_launcher(), **broken)
    found = json.loads(ended.stdout)
    assert [f["id"] for f in found["findings"]] == ["ranks-over-gpus"], ended.stdout
    assert ended.returncode == 3


def test_run_sees_the_wrong_launcher(stage):
    """A program of MPICH under Open MPI's mpirun: as many jobs of one rank."""
    if not (stage / "lib/xccl/xccl-perf-mpich").exists() or not shutil.which("mpirun.openmpi"):
        pytest.skip("xccl was not built for MPICH, or there is no mpirun of Open MPI")
    ended = run(stage, "--json", "--run", "--", *need_launcher(), XCCL_MPI="mpich", **SIMULATED)
    assert ended.returncode == 1, ended.stdout
    (finding,) = json.loads(ended.stdout)["findings"]
    assert finding["id"] == "mpi-other-launcher"
    assert "2 processes each say that they are rank 0 of 1 (MPICH" in finding["cause"]


def test_a_rank_sees_the_wrong_launcher(stage, compile_library, tmp_path):
    """Inside of a job: the program that was built with one MPI, the launcher's variables of another."""
    program = tmp_path / "app"
    compile_library(program, ["libmpi.so.12"])
    launched = {"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_SIZE": "4"}
    ended = run(stage, "--json", "--app", program, **SIMULATED, **launched)
    found = [f["id"] for f in json.loads(ended.stdout)["findings"]]
    assert "mpi-other-launcher" in found


def test_run_behind_a_launcher(stage):
    """Each of its processes would start a job."""
    ended = run(stage, "--run", "--", "true", **SIMULATED, OMPI_COMM_WORLD_SIZE="4")
    assert ended.returncode == 2 and "started this 4 times" in ended.stderr


def test_run_that_fails(stage, tmp_path):
    env = {**SIMULATED, "TMPDIR": str(tmp_path)}  # where the log is kept
    ended = run(stage, "--json", "--run", "--", "sh", "-c", "echo no; exit 7", **env)
    found = json.loads(ended.stdout)
    (log,) = tmp_path.iterdir()
    (finding,) = found["findings"]
    assert (ended.returncode, finding["id"]) == (1, "run-failed")
    assert str(log) in finding["remedy"] and log.read_text() == "no\n"
    assert f"the job's output is kept in {log}" in found["facts"]


def test_no_file_of_a_job_that_said_nothing(stage, tmp_path):
    env = {**SIMULATED, "TMPDIR": str(tmp_path)}
    ended = run(stage, "--run", "--", "/bin/false", **env)
    assert (ended.returncode, list(tmp_path.iterdir())) == (1, [])
    assert "status 1: no output" in ended.stdout and "see the log: there is none" in ended.stdout


FRAME = "-" * 74
PRIMARY = f"""{FRAME}
Primary job  terminated normally, but 1 process returned
a non-zero exit code. Per user-direction, the job has been aborted.
{FRAME}
"""
REPORT = "xccl-run: node n1: 2 ranks, 4 GPUs, by the site's map\nxccl-run:   package NUMA  cores\n"
TELLING = [
    ("xccl-run: 'a.out' was not found; check PATH\n" + PRIMARY, "xccl-run: 'a.out' was not found"),
    (
        "xccl-run: XCCL_BIND=x\n          invalid value 'x'\n" + PRIMARY,
        "xccl-run: XCCL_BIND=x: invalid value 'x'",
    ),
    (REPORT + "error 7 of the program\n", "error 7 of the program"),
    (REPORT + "bye\n" + FRAME + "\n\n", "bye"),
    (REPORT, "no output"),
    ("xccl-run: warning [memlock]: 64 KiB\nxccl[0] info: no error here\nbye\n", "bye"),
    (
        PRIMARY + "[1,0]<stderr>xccl[0] error: XCCL_X is no variable\n",
        "[1,0]<stderr>xccl[0] error",
    ),
    ("0 errors so far\n" + PRIMARY, "Primary job"),
    (
        "n1:1:1 [0] NCCL INFO error: none\nn1:1:1 [0] NCCL WARN Cuda failure\nbye\n",
        "n1:1:1 [0] NCCL WARN",
    ),
    (f"{FRAME}\nmpirun was unable to launch the specified\n{FRAME}\n", "mpirun was unable"),
    (f"{FRAME}\nThere are not enough slots available\n\nfor launch.\n{FRAME}\n", "There are not"),
    (
        f"{FRAME}\nThere are not enough slots available in the system to satisfy the 7\nslots that "
        f"were requested by the application:\n\n  env\n\nEither request fewer.\n{FRAME}\n",
        "There are not enough slots available in the system to satisfy the 7 slots that were "
        "requested by the application",
    ),
    (
        f"{FRAME}\nmpirun was unable to launch the specified application as it could not access\n"
        f"or execute an executable:\n\nExecutable: ./app\n{FRAME}\n",
        "mpirun was unable to launch the specified application as it could not access or execute "
        "an executable",
    ),
    (
        f"mpirun has detected an attempt to run as root.\n\nat your own risk.\n{FRAME}\n",
        "mpirun has",
    ),
    (
        "xccl-perf: warning: 4 ranks share 2 device(s)\nxccl-perf: rank 0: no device\n" + PRIMARY,
        "xccl-perf: rank 0: no device",
    ),
    (
        "DATA VALIDATION ERROR: osu exited with status 1\nmpirun has exited with error 1\n",
        "DATA VALIDATION ERROR",
    ),
    ("srun: error: n1: task 0: Exited with exit code 3\nhello\n", "srun: error: n1"),
]


@pytest.mark.parametrize(("text", "line"), TELLING, ids=range(len(TELLING)))
def test_line_that_tells_why(text, line):
    assert telling_line(text).startswith(line)


@pytest.mark.parametrize(
    ("text", "line"), [row for row in TELLING if "Primary" in row[0] or "srun: " in row[0]]
)
def test_log_of_a_job_that_failed(stage, tmp_path, text, line):
    (tmp_path / "log").write_text(text)
    ended = run(stage, "--json", "--log", tmp_path / "log", **SIMULATED)
    (finding,) = json.loads(ended.stdout)["findings"]
    assert (ended.returncode, finding["id"]) == (1, "job-failed")
    assert finding["cause"].startswith(f"the log is of a job that failed: {line}")


def test_error_of_xccl_says_what_to_do(stage, tmp_path):
    (tmp_path / "log").write_text("xccl[0] error: XCCL_TABLE: none.table cannot be opened: gone\n")
    ended = run(stage, "--json", "--log", tmp_path / "log", **SIMULATED)
    (finding,) = json.loads(ended.stdout)["findings"]
    assert finding["id"] == "job-failed"
    assert finding["remedy"].startswith("do what the line says; the page on troubleshooting")


def test_paths_of_first_calls(stage, tmp_path):
    """They are facts of a job that made no others alone."""
    line = "xccl[0] info: {} of 8 B to 16 B in cuda on 4 ranks: {}\n"
    first = "mpi-staged (a first call, before the direct path is ready)"
    text = line.format("allreduce", first) + line.format("bcast", first)
    (tmp_path / "log").write_text(text + line.format("allreduce", "direct (built-in table)"))
    ended = run(stage, "--json", "--log", tmp_path / "log", **SIMULATED)
    facts = [fact for fact in json.loads(ended.stdout)["facts"] if "is served by" in fact]
    assert facts == [
        "bcast is served by mpi-staged in its first calls",
        "allreduce is served by direct",
    ]


@pytest.mark.parametrize(
    "text",
    [
        REPORT + "0 errors\nbye\n",
        "n1:1:1 [0] NCCL INFO Signal: none\n",
        REPORT + "n1:1:1 [0] NCCL WARN old driver\n",
    ],
)
def test_log_of_a_job_that_ended_well(stage, tmp_path, text):
    (tmp_path / "log").write_text(text)
    ended = run(stage, "--json", "--log", tmp_path / "log", **SIMULATED)
    assert (ended.returncode, json.loads(ended.stdout)["findings"]) == (0, [])


def test_failure_that_is_explained(stage, tmp_path):
    duplicate = "n1:1:1 [0] NCCL WARN Duplicate GPU detected : rank 1 and rank 0\n"
    (tmp_path / "log").write_text(duplicate + PRIMARY)
    ended = run(stage, "--json", "--log", tmp_path / "log", **SIMULATED)
    assert [f["id"] for f in json.loads(ended.stdout)["findings"]] == ["gpu-duplicate"]


def test_run_quotes_what_xccl_run_said(stage, tmp_path):
    launcher = tmp_path / "launcher"
    launcher.write_text("#!/bin/sh\necho \"xccl-run: 'a.out' was not found\"\necho ---\nexit 1\n")
    launcher.chmod(0o755)
    env = {**SIMULATED, "TMPDIR": str(tmp_path)}
    (finding,) = json.loads(run(stage, "--json", "--run", "--", launcher, **env).stdout)[
        "findings"
    ]
    assert finding["cause"].endswith("status 1: xccl-run: 'a.out' was not found")


def test_run_that_hangs(stage, tmp_path):
    launcher = tmp_path / "launcher"
    launcher.write_text("#!/bin/sh\nsleep 60 &\nwait\n")
    launcher.chmod(0o755)
    start = now()
    env = {**SIMULATED, "TMPDIR": str(tmp_path)}
    ended = run(stage, "--json", "--timeout", "1", "--run", "--", launcher, **env)
    assert [f["id"] for f in json.loads(ended.stdout)["findings"]] == ["run-hung"]
    assert now() - start < 20


def test_documentation_is_of_this_registry():
    """The pages were written anew since the last change of a finding; none is left of before."""
    pages = docs.render()
    for path, text in pages.items():
        assert (TOP / "docs/use" / path).read_text() == text, docs.__doc__
    there = {f"findings/{path.name}" for path in (TOP / "docs/use/findings").glob("*.md")}
    assert there == set(pages) - {"doctor.md"}
    anchors = re.findall(r'<a id="([\w-]+)"></a>', "".join(pages.values()))
    links = re.findall(r"\((findings/\w+\.md)#([\w-]+)\)", pages["doctor.md"])
    assert all(f'<a id="{name}"></a>' in pages[path] for path, name in links)
    assert sorted(name for _, name in links) == sorted(registry.TABLE)
    assert sorted(anchors) == sorted(registry.TABLE)
    assert set(docs.SOURCES) <= set(registry.TABLE)


def test_no_newer_python_than_promised():
    """Python 3.6 has no dataclasses, no walrus, no capture_output."""
    tools = TOP / "libxccl/tools"
    files = [
        file for name in ("common", "compare", "doctor") for file in (tools / name).rglob("*.py")
    ]
    assert files
    for file in files:
        text = file.read_text()
        for newer in ("dataclass", "capture_output", "text=True", "removeprefix"):
            assert newer not in text, f"{file.name}: {newer}"
        ast.parse(text, str(file), feature_version=(3, 6))


def test_the_site_of_the_installation(world):
    """Where no module was loaded, too; the simulation has a site of its own."""
    here = world("juwels-booster")
    del here.env["XCCL_SITE"]
    sites = here.prefix / "share/xccl/sites"
    sites.unlink()
    sites.mkdir()
    for site in ("frontier", "juwels-booster", "sim"):
        (sites / site).symlink_to(TOP / "site-configs" / site)
    (sites / "default").write_text("frontier\n")
    nothing = SimpleNamespace(
        env=here.env, sysroot=str(here.root), site=None, route=None, prefix=str(here.prefix),
        libdir=str(here.prefix / "lib"), launcher=[], app=None,
    )  # fmt: skip

    def site():
        return machine.collect(nothing).site["name"]

    assert site() == "frontier"
    here.env["XCCL_SITE"] = "juwels-booster"
    assert site() == "juwels-booster"
    here.env.update(XCCL_SITE="", XCCL_SIM="cuda:4")
    assert site() == "sim"
