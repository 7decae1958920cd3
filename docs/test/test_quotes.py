# SPDX-License-Identifier: BSD-3-Clause
"""What pages quote: variables, options of tools."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
DOCS = TOP / "docs"


@pytest.fixture(scope="module")
def variables():
    build = os.environ.get("XCCL_TEST_BUILD")
    if not build:
        pytest.skip("XCCL_TEST_BUILD names no build; ci/test sets it")
    done = subprocess.run(
        [f"{build}/stage/bin/xccl-info", "--json"], capture_output=True, text=True, check=False
    )
    return {row["name"] for row in json.loads(done.stdout)["configuration"]}


def test_variables_exist(variables):
    """Every XCCL_ variable that a hand-written page names is one, or belongs to another part."""
    others = re.compile(
        r"XCCL_(SIM|SITES|ENV|TEST|SPACK|MPICC|CCL_PATH|NVCC|HIPCC|CUDA_ARCHS|HIP_ARCHS|SANITIZE|TESTS|REQUIRE)"
        # What module systems set.
        r"|XCCL_(DIR|HOME|BASE|INC|INCLUDE|LIB|BIN)$"
        # Macros of the API.
        r"|XCCL_(CONFIG|UNIQUE_ID|COMM_NULL|SPLIT|VERSION|MAJOR|MINOR|PATCH|API|EXPORT|$)"
    )
    pages = [path for path in DOCS.rglob("*.md") if "reference" not in path.parts]
    unknown = {
        f"{path.relative_to(DOCS)}: {name}"
        for path in [*pages, TOP / "README.md"]
        for name in re.findall(r"\bXCCL_[A-Z0-9_]*[A-Z0-9]", path.read_text(encoding="utf-8"))
        if name not in variables and not others.match(name)
    }
    assert len(pages) > 30
    assert not unknown


def descriptions():
    """Every file that says what xccl is, where nothing stands beside it: in a list of packages, for instance."""
    yield from (
        TOP / name
        for name in ("README.md", "docs/index.md", "Makefile", "mkdocs.yml", "CITATION.cff")
    )
    yield from (TOP / "libxccl/tools/man").glob("xccl.7")
    yield from (TOP / "modulefiles/xccl").glob("*.lua")
    yield from (TOP / "easyconfigs").glob("**/xccl/xccl-*.eb")
    yield from (TOP / "spack-repo").glob("**/packages/xccl/package.py")


def test_xccl_is_described_alike():
    """By the first sentence of the README; what xccl is must not depend on where one reads of it."""
    sentence = re.search(r"^\*\*xccl (.*?)\.\*\*$", (TOP / "README.md").read_text(), re.M)[1]
    found = list(descriptions())
    assert len(found) > 20
    for path in found:
        text = " ".join(path.read_text(encoding="utf-8").split())
        assert sentence in text, f"{path.relative_to(TOP)} does not say: xccl {sentence}"


def commands():
    """(page, command) of every srun in a block of a hand-written page that starts ranks on GPUs."""
    pages = [*DOCS.rglob("*.md"), TOP / "README.md"]
    for page in (page for page in pages if page.parent != DOCS / "sites"):
        for block in re.findall(r"```sh\n(.*?)```", page.read_text(encoding="utf-8"), re.S):
            for line in block.splitlines():
                if re.search(r"\bsrun\b.*--gpus-per-node", line) and "xccl-doctor" not in line:
                    yield page.relative_to(TOP), line


def test_commands_ask_for_cores():
    """Where jobs share a node, Slurm gives a task one core unless it is asked for more."""
    found = list(commands())
    assert len(found) >= 6
    assert [one for one in found if "--cpus-per-task=" not in one[1]] == []


GPUS = r"--(?:gpus-per-node|gpus-per-task|gpus|gres)="


def cores_of_job(text):
    """Whether a job file asks for cores, and hands them on: since 22.05 srun does not take sbatch's --cpus-per-task."""
    if re.search(r"^#SBATCH --exclusive", text, re.M):
        return True
    asks = re.search(r"^#SBATCH --cpus-per-task=", text, re.M)
    return bool(asks and ("export SRUN_CPUS_PER_TASK=" in text or not steps_without_cores(text)))


def steps_without_cores(text):
    return [
        line
        for line in re.findall(r"^[^#\n]*\bsrun .*", text, re.M)
        if "--cpus-per-task=" not in line
    ]


def test_jobs_ask_for_cores():
    jobs = [*DOCS.rglob("*.sbatch"), *(TOP / "site-configs").glob("*/jobs/*.sbatch")]
    texts = {path.relative_to(TOP): path.read_text(encoding="utf-8") for path in jobs}
    on_gpus = {path: text for path, text in texts.items() if re.search(GPUS, text)}
    assert len(on_gpus) >= 15
    assert [path for path, text in on_gpus.items() if not cores_of_job(text)] == []


def test_help_asks_for_cores():
    """Of recipes, and the form that asks for a command: what they show is copied."""
    files = [
        *(TOP / "easyconfigs").glob("**/xccl/xccl-*.eb"),
        TOP / ".github/ISSUE_TEMPLATE/bug.yml",
    ]
    assert len(files) > 10
    for path in files:
        found = re.findall(r"\bsrun .*xccl-run .*", path.read_text(encoding="utf-8"))
        assert found, path
        assert [one for one in found if not re.search(f"{GPUS}.*--cpus-per-task=", one)] == [], (
            path
        )


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("#SBATCH --gpus-per-node=4\nsrun ./app\n", False),
        ("#SBATCH --cpus-per-task=8\nsrun ./app\n", False),
        ("#SBATCH --cpus-per-task=8\nexport SRUN_CPUS_PER_TASK=8\nsrun ./app\n", True),
        ("#SBATCH --cpus-per-task=8\nsrun --cpus-per-task=8 ./app\n", True),
        ("#SBATCH --exclusive\nsrun ./app\n", True),
    ],
)
def test_cores_of_a_job(text, asks):
    assert cores_of_job(text) == asks


def test_whose_files_are_is_as_security_says():
    """The library makes files in one place, its owner's alone; results of tools are left to the umask."""
    makes = re.compile(r'\bO_CREAT\b|\bfopen\([^;]*"[wa]|\b(?:creat|mkstemp|mkfifo|shm_open)\(')
    sources = (TOP / "libxccl/src").rglob("*.c")
    makers = [path for path in sources if makes.search(path.read_text(encoding="utf-8"))]
    assert makers == [TOP / "libxccl/src/base/files.c"]
    assert "O_NOFOLLOW), 0600)" in makers[0].read_text(encoding="utf-8")
    results = (TOP / "libxccl/tools/perf/json.c").read_text(encoding="utf-8")
    assert set(re.findall(r"O_CREAT.*, (0\d+)\)", results)) == {"0666"}
    text = (TOP / "SECURITY.md").read_text(encoding="utf-8")
    assert (
        "are their owner's alone, mode 0600" in text
        and "follow the umask: `xccl-perf --json`" in text
    )


def test_signals_go_to_the_ranks():
    """scancel's --batch takes no value, and means the batch script instead of the ranks."""
    text = (DOCS / "use/troubleshooting.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"`scancel ([^`]*)`", text)
    assert command == "--signal=USR1 <jobid>"
