# SPDX-License-Identifier: BSD-3-Clause
"""Every command of the README and the pages is run, on two simulated GPUs, or is of a kind that cannot run here.

What is not run is in not_run.yaml, with the reason: a new command is run, or fails, until it is named there. A command
of a cluster is run by mpirun in the place of srun, on two ranks and with few sizes: it shows that the tools take it.
"""

import contextlib
import functools
import os
import re
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

TOP = Path(__file__).resolve().parents[2]
DOCS = TOP / "docs"
sys.path[:0] = [str(TOP / "libxccl/test"), str(TOP / "libxccl/test/mpi")]

import mpi_harness  # noqa: E402
from running_clock import communicate  # noqa: E402

NOT_RUN = yaml.safe_load(Path(__file__).with_name("not_run.yaml").read_text(encoding="utf-8"))
PAGES = [TOP / "README.md", *sorted(DOCS.rglob("*.md"))]
SECONDS = 100  # of one page, that a crowded machine ran; a command takes about one

# Tools that say by their status what they found. Wrong options are 2 everywhere.
STATUSES = {r"\bxccl-doctor\b": (0, 1, 3), r"\bxccl-tune --(check|compare)\b": (0, 1)}

SRUN = re.compile(r"\bsrun((?: +(?:-[Nn] ?\d+|--[\w-]+(?:=[^ ]+)?))*)(?= |$)")
APP = """
#include <mpi.h>
int main(int argc, char **argv)
{
    int one = 1, sum = 0, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return sum != ranks;
}
"""


def blocks(page):
    """The text of each block of shell commands of a page, without its indentation."""
    found = re.findall(r"^( *)```sh\n(.*?)^\1```$", page.read_text(encoding="utf-8"), re.S | re.M)
    return [re.sub(rf"(?m)^{indent}", "", text) for indent, text in found]


def split(block):
    """The commands of a block: lines, those that a backslash joins, and whole loops; without comments."""
    if block.startswith("#!"):
        return [block]
    text = re.sub(r"(?m)(^|\s+)#.*$", "", block.replace("\\\n", " "))
    found = re.findall(r"(?ms)^for .*?^done$|^[^\n]+$", text)
    return [re.sub(r" +", " ", one) if "\n" not in one else one for one in found]


def reason(page, command):
    """Why a command is not run, or None."""
    kinds = NOT_RUN["kinds"] + NOT_RUN["pages"].get(page.relative_to(TOP).as_posix(), [])
    return next((one["why"] for one in kinds if re.search(one["pattern"], command)), None)


def on_two_ranks(found):
    """mpirun in the place of srun, on as many ranks; without a number where a tool sets it."""
    ranks = re.search(r" -n ?(\d+)", found[1])
    return f"mpirun -n {ranks[1]}" if ranks else "mpirun"


def here(command, number):
    """The command with fewer ranks and sizes, and with the folders of this test."""
    command = SRUN.sub(on_two_ranks, command)
    command = re.sub(
        r"\b(mpirun\b.*? -n) \d+",
        lambda found: f"{found[1]} {min(2, int(found[0].split()[-1]))}",
        command,
    )
    command = re.sub(r"--max \w+", "--max 64", command)
    command = re.sub(r"(?<=\bxccl-perf)(?= -)", " --max 64 --iters 2", command)
    command = re.sub(
        r"(?<=\bxccl-tune)(?= --output)", " --coll allreduce --max 64 --samples 2", command
    )
    command = re.sub(
        r"(?<=\bxccl-compare)(?= (?:-.* )?-- )",
        f" --output compared-{number} --rounds 1 --max 64 --no-plot",
        command,
    )
    command = re.sub(
        r"(?<=\bxccl-compare)(?=.*--suite)", " --sim cuda:8 --nodes 2 --dry-run", command
    )
    command = re.sub(r"(\bmpi_random-\w+ cuda \d+) \d+", r"\1 200", command)
    command = re.sub(r"(?<=^make)(?= )", f" -C {TOP} --dry-run", command)
    return command.replace("/opt/xccl", "$HOME/xccl")


@functools.cache
def commands():
    """[(page, command, None or why it is not run)] of all pages."""
    return [
        (page, command, reason(page, command))
        for page in PAGES
        for block in blocks(page)
        for command in split(block)
    ]


def script(page):
    """What is run of a page, in order and in one shell, with a line for the status of each command."""
    mine = [command for of, command, why in commands() if of == page and why is None]
    lines = []
    for number, command in enumerate(mine):
        lines += [f"echo '== {number}'", here(command, number), f"echo {number} $? >>statuses"]
    return "\n".join(lines)


@pytest.fixture(scope="module")
def stage():
    folder = os.environ.get("XCCL_TEST_BUILD")
    if not folder:
        pytest.skip("XCCL_TEST_BUILD names no build; ci/test sets it")
    build = mpi_harness.Build(Path(folder))
    build.runs_here()
    mpi = mpi_harness.known_mpis(build).get("openmpi")
    if mpi is None or not shutil.which("mpicc.openmpi"):
        pytest.skip("Open MPI is not installed, or xccl was built without it")
    return mpi


def furnish(folder, mpi):
    """What the pages take for granted: a program, an installation, logs, results."""
    (folder / "xccl").symlink_to(mpi.build.stage)
    (folder / "build/demo").mkdir(parents=True)
    (folder / "build/demo/prefix").symlink_to(mpi.build.stage)
    (folder / "build/release").symlink_to(mpi.build.folder)
    (folder / "bin").mkdir()
    (folder / "bin/mpirun").symlink_to(mpi.mpiexec)
    (folder / "bin/mpicc").symlink_to(shutil.which("mpicc.openmpi"))
    (folder / "app.c").write_text(APP)
    (folder / "job.out").write_text("nothing of interest\n")
    for name in ("old", "new", "before", "after"):
        (folder / name).mkdir()
        shutil.copy(DOCS / "benchmarks/h100-x4/tuning/nodes-1.table", folder / name)
        shutil.copy(DOCS / "benchmarks/h100-x4/compare/allreduce/result.json", folder / name)


def environment(folder, mpi):
    env = {
        k: v
        for k, v in os.environ.items()
        if not k.startswith(("XCCL_", "LD_PRELOAD", "OMPI_", "SLURM_"))
    }
    return {
        **env,
        **mpi_harness.launcher("openmpi", mpi.mpiexec, 2)[1],
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "OMPI_MCA_hwloc_base_binding_policy": "none",
        "PATH": f"{folder}/bin:{mpi.build.stage}/bin:{env['PATH']}",
        "HOME": str(folder),
        "PREFIX": str(mpi.build.stage),
        "XCCL_ROOT": str(mpi.build.stage),
        "XCCL_SIM": "cuda:2",
    }


def run(text, folder, mpi):
    """({number: status}, output) of a script in a folder of its own."""
    furnish(folder, mpi)
    env = environment(folder, mpi)
    subprocess.run(["mpicc", "-o", "app", "app.c"], cwd=folder, env=env, check=True)
    with open(folder / "output", "w+", encoding="utf-8") as output:
        shell = subprocess.Popen(
            ["sh", "-c", text], cwd=folder, env=env, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=output, stderr=output,
        )  # fmt: skip
        try:
            communicate(shell, SECONDS)
        except subprocess.TimeoutExpired:
            output.write(f"\nended after {SECONDS} s\n")
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
            shell.wait()
    statuses = (folder / "statuses").read_text().split() if (folder / "statuses").exists() else []
    return (
        dict(zip(map(int, statuses[::2]), map(int, statuses[1::2]))),
        (folder / "output").read_text(encoding="utf-8", errors="replace"),
    )


@pytest.fixture(scope="module")
def ended(stage, tmp_path_factory, request):
    """Each script's end. Pages of sites have the same one; two are run at a time."""
    wanted = {
        item.callspec.params["page"]
        for item in request.session.items
        if "ended" in item.fixturenames
    }
    texts = sorted({script(page) for page in wanted})
    folders = [tmp_path_factory.mktemp("page") for _ in texts]
    with ThreadPoolExecutor(2) as pool:
        return dict(zip(texts, pool.map(run, texts, folders, [stage] * len(texts))))


WITH_COMMANDS = [page for page in PAGES if script(page)]


@pytest.mark.release_only
@pytest.mark.parametrize("page", WITH_COMMANDS, ids=lambda page: page.relative_to(TOP).as_posix())
def test_commands_of_a_page(ended, page):
    statuses, output = ended[script(page)]
    mine = [command for of, command, why in commands() if of == page and why is None]
    for number, command in enumerate(mine):
        right = next(
            (also for pattern, also in STATUSES.items() if re.search(pattern, command)), (0,)
        )
        told = output.partition(f"== {number}\n")[2].partition(f"== {number + 1}\n")[0]
        said = f"{command}\nrun as: {here(command, number)}\nstatus {statuses.get(number)}\n{told[-3000:]}"
        assert statuses.get(number) in right, said


def test_most_kinds_are_run():
    """The rest is named, with a reason, and no name is left over from a command that is gone."""
    every = commands()
    assert len(WITH_COMMANDS) > 25 and sum(why is None for _, _, why in every) > 70
    patterns = [(None, one) for one in NOT_RUN["kinds"]]
    patterns += [(page, one) for page, rows in NOT_RUN["pages"].items() for one in rows]
    for where, one in patterns:
        assert len(one["why"]) > 10, one
        assert any(
            re.search(one["pattern"], command)
            for page, command, _ in every
            if where in (None, page.relative_to(TOP).as_posix())
        ), f"{where or 'all pages'}: no command has {one['pattern']}"


def test_reasons_name_what_exists():
    for one in [*NOT_RUN["kinds"], *(row for rows in NOT_RUN["pages"].values() for row in rows)]:
        for path in re.findall(r"[\w-]+/[\w/-]+(?:\.py)?", one["why"]):
            assert (TOP / path).exists(), path


@pytest.mark.parametrize(
    ("block", "wanted"),
    [
        ("srun -N2 -n8 --gpus-per-node=4 xccl-run ./app  # here\n", ["mpirun -n 2 xccl-run ./app"]),
        ("xccl-info \\\n    --long\n", ["xccl-info --long"]),
        ("# nothing\nmake demo\n", [f"make -C {TOP} --dry-run demo"]),
        ("for a in b; do\n    echo $a\ndone\ntrue\n", ["for a in b; do\n    echo $a\ndone", "true"]),
    ],
)  # fmt: skip
def test_how_a_command_is_run(block, wanted):
    assert [here(command, 0) for command in split(block)] == wanted
