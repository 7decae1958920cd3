# SPDX-License-Identifier: BSD-3-Clause
"""The job scripts of published experiments, and what the pages about sites point to."""

import re
import shutil
import subprocess

import pytest
import yaml
from site_tree import TOP

EXPERIMENTS = TOP / "docs/experiments"
STUB = """
typedef int cudaError_t;
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2 };
cudaError_t cudaSetDevice(int device);
cudaError_t cudaMalloc(void **data, unsigned long size);
cudaError_t cudaMemcpy(void *to, const void *from, unsigned long size, enum cudaMemcpyKind kind);
cudaError_t cudaFree(void *data);
"""


@pytest.mark.parametrize("file", sorted(EXPERIMENTS.glob("*.sbatch")), ids=lambda f: f.stem)
def test_the_job_of_an_experiment_is_sound(file):
    text = file.read_text(encoding="utf-8")
    assert "# Replaces: " in text
    for command in (["bash", "-n"], ["shellcheck"]):
        if shutil.which(command[0]) is None:
            pytest.skip(f"{command[0]} is not installed")
        done = subprocess.run(
            [*command, file], capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stdout
    for name in re.findall(r"xccl-(?:site|route|settings)/([a-z0-9-]+)", text):
        assert list(TOP.glob(f"modulefiles/*/{name}/*.lua")), name


def test_jobs_use_options_that_xccl_perf_has():
    known = (TOP / "libxccl/tools/perf/options.c").read_text(encoding="utf-8")
    used = set()
    for file in EXPERIMENTS.glob("*.sbatch"):
        for rest in re.findall(r"xccl-perf (--[^\"\n#]*)", file.read_text(encoding="utf-8")):
            used |= set(re.findall(r"--[a-z-]+", rest))
    assert used, "no job measures anything"
    assert {option for option in used if f'"  {option} ' not in known} == set()


def test_the_program_of_the_fourth_seed_compiles(tmp_path):
    """Against a stand-in for CUDA's header: nothing here has the real one."""
    mpicc = next(filter(None, map(shutil.which, ("mpicc.openmpi", "mpicc.mpich", "mpicc"))), None)
    if mpicc is None:
        pytest.skip("no MPI compiler is installed")
    (tmp_path / "cuda_runtime.h").write_text(STUB, encoding="utf-8")
    source = EXPERIMENTS / "split-communicators.c"
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{tmp_path}"]
    done = subprocess.run(
        [mpicc, *flags, source], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("folder", ["docs/sites", "docs/experiments"])
def test_links_lead_somewhere(folder):
    for page in (TOP / folder).glob("*.md"):
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_site_has_a_page_that_says_how_sure_it_is():
    for file in (TOP / "site-configs").glob("*/site.yaml"):
        page = TOP / f"docs/sites/{file.parent.name}.md"
        text = page.read_text(encoding="utf-8")
        assert "## How sure each fact is" in text
        assert "Facts last checked on 20" in text


def test_routes_are_named_as_their_owners_write_them():
    """The page begins each summary with a capital letter, and changes no other one."""
    page = (TOP / "docs/sites/routes.md").read_text(encoding="utf-8")
    routes = yaml.safe_load((TOP / "site-configs/routes.yaml").read_text(encoding="utf-8"))[
        "routes"
    ]
    summaries = [route["summary"] for route in routes]
    assert summaries
    assert [text for text in summaries if text[1:] not in page] == []
