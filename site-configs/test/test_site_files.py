# SPDX-License-Identifier: BSD-3-Clause
"""Site files, their validator, and what is rendered from them."""

import datetime
import json
import re
import shutil
import subprocess
import sys

import pytest
import yaml
from site_tree import TOP
from xccl_sites.check import age_warnings, check_all, check_site, cpu_list
from xccl_sites.load import Fault, read_yaml
from xccl_sites.model import detectors, launch_variables, mpi_needs, shell_variables

CONFIGS = TOP / "site-configs"
RENDER = CONFIGS / "tools/render"
VALIDATE = CONFIGS / "tools/validate"
VERSION = (TOP / "libxccl/VERSION").read_text(encoding="utf-8").strip()
SITES = sorted(file.parent.name for file in CONFIGS.glob("*/site.yaml"))


def run(*command):
    return subprocess.run(
        [sys.executable, *map(str, command)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture(scope="module")
def routes():
    return check_all(CONFIGS)[0]


# ---- the validator


def test_the_sites_of_this_repository_are_sound():
    done = run(VALIDATE)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_an_unknown_option_is_no_file():
    done = run(VALIDATE, "--nonsense")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "validate: unknown option '--nonsense'; see --help\n"


# site, what is replaced, by what, and what the message must hold; {line} is where it was planted
PLANTED = [
    ("frontier", "name: frontier\n", "name: fronteir\n", "name: is 'fronteir', but the folder is"),
    ("frontier", "schema: 1", "schema: 2", "schema: '2' is not allowed; allowed: 1"),
    ("frontier", "vendor: amd", "vendor: ati", "allowed: nvidia, amd, sim"),
    ("frontier", "checked: 2026-11-21", "checked: 21.11.2026", "allowed: a day as YYYY-MM-DD"),
    ("frontier", "checked: 2026-11-21", "checked: 2026-02-30", "is no day of the calendar"),
    ("frontier", "checked: 2026-11-21", "checked: 2099-01-01", "lies in the future"),
    (
        "frontier",
        "    sockets: 1",
        "    socket: 1",
        "unknown key 'socket' (did you mean 'sockets'?)",
    ),
    (
        "frontier",
        "operator: Oak Ridge Leadership Computing Facility\n",
        "",
        "'operator' is missing",
    ),
    ("frontier", "{gpu: 4, numa: 0,", "{gpu: 5, numa: 0,", "GPU 5 belongs to rank 0 already"),
    ("frontier", "{gpu: 4, numa: 0,", "{gpu: 8, numa: 0,", "is 8; allowed: 0 to 7"),
    ("frontier", "numa: 3, cores: 49-55", "numa: 4, cores: 49-55", "is 4; allowed: 0 to 3"),
    ("frontier", "cores: 9-15", "cores: 7-13", "CPU 7 belongs to rank 0 already"),
    ("frontier", "cores: 57-63", "cores: 58-64", "names core 64; allowed: 0 to 63"),
    ("frontier", "siblings: 65-71", "siblings: 65-70", "has 6 CPUs for 7 cores with SMT 2"),
    ("frontier", "siblings: 121-127", "siblings: 122-128", "allowed: 64 to 127"),
    ("frontier", "nic: hsn2}", "nic: hsn7}", "is 'hsn7'; allowed: auto, hsn0, hsn1, hsn2, hsn3"),
    (
        "frontier",
        "    nodes: many",
        "    nodes: some",
        "'some' is not allowed; allowed: one, many",
    ),
    ("frontier", "value: OFI", "value: $(reboot)", "'$(reboot)' is not allowed; allowed: letters"),
    ("frontier", "value: OFI", "value: a:=b", "'a:=b' is not allowed; allowed: letters"),
    ("frontier", "value: OFI", "value: ~/lib", "'~/lib' is not allowed; allowed: letters"),
    ("frontier", "value: OFI", "value: ' =OFI'", "' =OFI' is not allowed; allowed: letters"),
    ("frontier", 'value: "131072"', "value: 131072", "(put it in quotes)"),
    ("frontier", "    nodes: one\n", "", "'NCCL_NET' is set by variables["),
    ("frontier", "name: NCCL_CROSS_NIC", "name: XCCL_TUNE", "a site sets no XCCL_ variable"),
    (
        "frontier",
        "name: NCCL_CROSS_NIC",
        "name: UCC_TLS",
        "belongs to the routes (site-configs/routes.yaml)",
    ),
    (
        "frontier",
        "    nodes: many\n",
        "    nodes: many\n    scope: shell\n",
        "key 'scope' is given twice",
    ),
    ("frontier", "source: charm", "source: chram", "'chram' is no key of sources; allowed: charm"),
    (
        "frontier",
        "    unless_module: rccl-net-plugin",
        "    unless_module: x",
        "not plugin.module",
    ),
    ("frontier", "any_of: [cray-mpich]", "any_of: [mpi]", "'mpi' has no family; add it"),
    ("frontier", "any_of: [cray-mpich]", "any_of: [OpenMPI]", "no module of the family 'mpich'"),
    (
        "frontier",
        "{route: ucc-ccl, ",
        "{route: ucc, ",
        "route 'ucc-ccl' cannot work with mpi family",
    ),
    ("frontier", "{route: ucc-ccl, ", "{route: rccl, ", "allowed: xccl, ucc, ucc-ccl, mpi"),
    ("frontier", "{route: ucc, ", "{route: xccl, ", "route 'xccl' is the default of every site"),
    ("frontier", "--gpu-bind=none,", "gpu-bind none,", "allowed: an option such as --name=value"),
    (
        "frontier",
        "verified: documented\n  source: olcf-pytorch\n  name",
        "name",
        "are missing; needed",
    ),
    ("sim", "  runtime:\n", "  idle:\n    title: x\n  runtime:\n", "is named by no fact"),
    ("sim", "- {gpu: 3, numa: auto", "- {gpu: x, numa: auto", "allowed: a value of type integer"),
    ("sim", "variables: []", "variables: [", "is not YAML"),
    (
        "frontier",
        "cores: 41-47",
        "cores: 47-41",
        "the range 47-41 runs backwards; allowed: low-high",
    ),
    ("frontier", "title: Frontier", 'title: Fron"tier', "without quotes"),
    ("frontier", "title: Frontier", 'title: "Frontier\\n"', "holds a line break"),
    ("frontier", 'value: "131072"', 'value: "131072\\n"', "holds a line break"),
    ("frontier", "name: frontier", "name: front\x01ier", "is not YAML"),
    ("frontier", "name: frontier", "name: !!python/name:os.system x", "is not YAML"),
    ("frontier", "name: frontier", "name: !!int x", "is not YAML"),
    ("frontier", "links:\n", "links: &a\n    - *a\n", "alias '*a'"),
    ("frontier", "detect:\n", "detect:\n  ? [x]\n  : y\n", "found unhashable key"),
    (
        "frontier",
        'MPICH_GPU_SUPPORT_ENABLED\n    value: "1"',
        'MPICH_GPU_SUPPORT_ENABLED\n    value: "0"',
        "switches GPU awareness off for every program of the shell",
    ),
    ("frontier", "maintainer: ", "maintained: ", "'maintainer' is missing"),
    ("dgx-a100", "    count: 8\n    names", "    count: 1\n    names", "is 1, but names has 8 of them"),
    (
        "dgx-a100",
        "srun: [--cpus-per-task=16",
        "srun: [--cpus-per-task=12",
        "is '--cpus-per-task=12', but launch.cpus_per_task is 16; make them equal",
    ),
    (
        "dgx-a100",
        "cpus_per_task: 16\n  srun: [--cpus-per-task=16",
        "cpus_per_task: 64\n  srun: [--cpus-per-task=64",
        "is 64: 8 ranks of it need 512 CPUs, and a node has 256; allowed: 1 to 32",
    ),
    ("frontier", 'hostnames: ["', 'hostnames: ["*", "', "detect.hostnames[0]: '*' fits every"),
    ("dgx-a100", 'products: ["', 'products: ["?*", "', "detect.products[0]: '?*' fits every"),
    (
        "lumi-g",
        "SLURM_CLUSTER_NAME: [lumi",
        "SLURM_CLUSTER_NAME: ['?*', lumi",
        "detect.environment.SLURM_CLUSTER_NAME[0]: '?*' fits every machine",
    ),
    ("sim", '"?*"', '"*"', "detect.environment.XCCL_SIM[0]: '*' fits every machine"),
    ("alps", ", siblings: auto", "", "with SMT 1 write siblings: auto"),
    ("alps", "siblings: auto", "siblings: 0-31", "allowed with SMT 1: siblings: auto"),
]  # fmt: skip


@pytest.mark.parametrize(("site", "old", "new", "told"), PLANTED)
def test_a_planted_error_is_named(site, old, new, told, routes, tmp_path):  # noqa: PLR0917
    file = tmp_path / site / "site.yaml"
    file.parent.mkdir()
    text = (CONFIGS / site / "site.yaml").read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")
    faults = [str(fault) for fault in check_site(file, routes)[1]]
    assert any(told in fault for fault in faults), faults
    for fault in faults:
        assert re.match(r"^\S*site\.yaml:\d+: ", fault), fault


def test_the_line_is_that_of_the_error(routes, tmp_path):
    file = tmp_path / "sim/site.yaml"
    file.parent.mkdir()
    lines = (CONFIGS / "sim/site.yaml").read_text(encoding="utf-8").splitlines()
    at = next(i for i, line in enumerate(lines) if "vendor: sim" in line)
    lines[at] = lines[at].replace("vendor: sim", "vendor: imaginary")
    file.write_text("\n".join(lines), encoding="utf-8")
    fault = str(check_site(file, routes)[1][0])
    assert f"site.yaml:{at + 1}: hardware.gpu.vendor: 'imaginary' is not allowed" in fault


def test_old_facts_are_warned_of(routes):
    site = check_site(CONFIGS / "frontier/site.yaml", routes)[0]
    checked = datetime.date.fromisoformat(site["checked"])
    year = datetime.timedelta(days=365)
    assert list(age_warnings([site], checked + year)) == []
    (warning,) = age_warnings([site], checked + year + datetime.timedelta(days=1))
    assert "frontier: its facts were last checked on" in warning
    assert site["maintainer"] in warning


def copy_site(folder, detect):
    """A copy of generic-nvidia under the name of @p folder, recognised by @p detect."""
    text = (CONFIGS / "generic-nvidia/site.yaml").read_text(encoding="utf-8")
    text = text.replace("name: generic-nvidia\n", f"name: {folder.name}\n")
    folder.mkdir()
    file = folder / "site.yaml"
    file.write_text(
        text.replace("exists: [/proc/driver/nvidia/version]", detect), encoding="utf-8"
    )
    return file


def test_a_site_that_is_recognised_by_the_same_as_another_is_warned_of(tmp_path):
    """A copied site whose detect nobody changed is never recognised."""
    file = copy_site(tmp_path / "atlantis", "exists: [/proc/driver/nvidia/version]")
    done = run(VALIDATE, file)
    expected = "warning: atlantis: detect.exists: /proc/driver/nvidia/version stands in generic-nvidia, too"
    assert (done.returncode, done.stdout) == (0, "")
    assert expected in done.stderr
    rendered = run(RENDER, "--site", file, "--output", tmp_path / "out")
    assert rendered.returncode == 0 and expected in rendered.stderr
    file = copy_site(tmp_path / "lemuria", "hostnames: ['jwb[0-9]*', 'lem*']")
    done = run(VALIDATE, file)
    assert "lemuria: detect.hostnames: jwb[0-9]* stands in juwels-booster, too" in done.stderr
    assert "lem*" not in done.stderr


def test_a_title_that_another_site_has_is_warned_of(tmp_path):
    file = copy_site(tmp_path / "atlantis", "exists: [/etc/atlantis]")
    expected = "warning: atlantis: its title 'Any machine with NVIDIA GPUs' is that of generic-nvidia, too"
    done = run(VALIDATE, file)
    assert done.returncode == 0 and expected in done.stderr
    rendered = run(RENDER, "--site", file, "--output", tmp_path / "out")
    assert rendered.returncode == 0 and expected in rendered.stderr


def test_a_rendered_site_has_a_folder_of_its_own(tmp_path):
    file = copy_site(tmp_path / "atlantis", "exists: [/etc/atlantis]")
    out = tmp_path / "out"
    (out / ".git").mkdir(parents=True)
    (out / "thesis").write_text("text", encoding="utf-8")
    done = run(RENDER, "--site", file, "--output", out)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"render: {out} holds what render does not write: thesis; choose" in done.stderr
    assert sorted(path.name for path in out.iterdir()) == [".git", "thesis"]
    (out / "thesis").unlink()
    assert run(RENDER, "--site", file, "--output", out).returncode == 0
    assert run(RENDER, "--site", file, "--output", out).returncode == 0


def test_generic_sites_are_tried_last(routes, tmp_path):
    """Their file is on every machine with such a GPU."""
    own = check_site(copy_site(tmp_path / "zealandia", "exists: [/etc/zealandia]"), routes)[0]
    names = [name for name, _ in detectors([*check_all(CONFIGS)[1], own], "exists")]
    assert names == ["zealandia", "generic-nvidia", "generic-amd"]


def test_no_site_switches_gpus_off_for_the_shell():
    """What xccl-run may set for one launch reaches no module and no script."""
    files = [*TOP.glob("env/sites/*"), *TOP.glob("modulefiles/**/*.lua")]
    files += TOP.glob("easyconfigs/settings/*/*.eb")
    assert len(files) > 80
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"MPICH_GPU_SUPPORT_ENABLED\W+0", text), file
    launch = (CONFIGS / "alps/launch.env").read_text(encoding="utf-8")
    assert "any - MPICH_GPU_SUPPORT_ENABLED 0" in launch


def test_no_site_chooses_how_slurm_starts_another_mpi(routes):
    """Where Open MPI and MPICH are both at home, the module of either says what Slurm has to speak."""
    for site in check_all(CONFIGS)[1]:
        families = set(mpi_needs(routes, site).values())
        names = {
            variable["name"] for variable in [*shell_variables(site), *launch_variables(site)]
        }
        assert len(families) == 1 or "SLURM_MPI_TYPE" not in names, site["name"]


def test_a_job_on_alps_names_its_uenv():
    """sbatch passes on none that was started before it, and refuses to be called in one."""
    job = (CONFIGS / "alps/jobs/uenv.sbatch").read_text(encoding="utf-8")
    head, _, body = job.partition("\nset -eu\n")
    assert {"#SBATCH --uenv=YOUR_UENV", "#SBATCH --view=default"} <= set(head.splitlines())
    assert "YOUR_UENV: for example prgenv-gnu/" in head and "uenv" not in body
    site = (CONFIGS / "alps/site.yaml").read_text(encoding="utf-8")
    assert "start it before" not in site


def test_a_job_on_frontier_begins_as_olcf_tells():
    """With the machine's own modules, and the cpe of the versions behind it."""
    job = (CONFIGS / "frontier/jobs/cpe-26.03.sbatch").read_text(encoding="utf-8")
    commands = re.findall(r"^module (.*)$", job, re.M)
    assert commands[:4] == [
        "reset",
        "load PrgEnv-gnu/8.7.0",
        "load cpe/26.03",
        "load cray-mpich/9.1.0",
    ]
    assert "module purge" in (CONFIGS / "juwels-booster/jobs/stages-2023.sbatch").read_text(
        encoding="utf-8"
    )


def test_spack_takes_no_cuda_that_the_driver_cannot_run():
    """Where a page of the site names the newest; elsewhere the file says that nobody does."""
    for site in check_all(CONFIGS)[1]:
        text = (CONFIGS / site["name"] / "spack/packages.yaml").read_text(encoding="utf-8")
        cuda = (yaml.safe_load(text)["packages"] or {}).get("cuda")
        nvidia = site["hardware"]["gpu"]["vendor"] == "nvidia"
        unknown = "The newest CUDA that the driver runs is unknown" in text
        assert (cuda is None, unknown) in (
            [(True, True), (False, False)] if nvidia else [(True, False)]
        )
        if site["name"] == "isambard-ai":
            assert cuda == {"require": ["@:12.7"]}


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(Fault, match="cannot be read"):
        read_yaml(tmp_path / "none.yaml")


def test_all_missing_keys_are_named_once(tmp_path):
    """With the path as it is, be it far from here; the folder stands for the file in it."""
    (tmp_path / "site.yaml").write_text("name: x\nschema: 1\n", encoding="utf-8")
    done = run(VALIDATE, tmp_path)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"{tmp_path}/site.yaml:1: keys 'title', 'operator', ")
    assert "'launch' are missing; needed: schema, " in line


@pytest.mark.parametrize(
    ("content", "told"), [(b"\xff", "no text in UTF-8"), (None, ": No such file")]
)
def test_a_file_that_cannot_be_read(tmp_path, content, told):
    file = tmp_path / "site.yaml"
    if content is not None:
        file.write_bytes(content)
    done = run(VALIDATE, file)
    assert (done.returncode, told in done.stderr, "Errno" in done.stderr) == (1, True, False)


def test_a_wrong_routes_file_is_named(tmp_path):
    copy = copy_tree(tmp_path)
    file = copy / "site-configs/routes.yaml"
    file.write_text(file.read_text().replace('value: "100"', "value: 100", 1), encoding="utf-8")
    done = run(copy / "site-configs/tools/validate")
    assert done.returncode == 1
    assert "routes.yaml:" in done.stderr
    assert "routes[1].variables[1].value: '100' is not allowed" in done.stderr


# ---- rendering


def copy_tree(folder):
    """What the renderer reads and writes, to be changed at will."""
    for name in ("site-configs", "env", "modulefiles", "docs/sites"):
        shutil.copytree(TOP / name, folder / name, symlinks=True)
    for name in ("libxccl/VERSION", "ci/source-url"):
        (folder / name).parent.mkdir()
        shutil.copy(TOP / name, folder / name)
    return folder


def test_what_is_committed_is_what_is_rendered():
    done = run(RENDER, "--check")
    assert done.returncode == 0, done.stdout + done.stderr


DIFFERENCES = {
    "edit": "-_xccl_set MPICH_GPU_SUPPORT_ENABLED '0'",
    "leave": "env/sites/atlantis.sh: made from nothing any more",
    "yaml": "+    _xccl_set NCCL_CROSS_NIC '0'",
    "remove": "env/sites/frontier.sh",
    "version": "modulefiles/xccl/9.9.9.lua (rendered)",
}


@pytest.mark.parametrize(
    "changes",
    ["edit leave yaml", *(pytest.param(c, marks=pytest.mark.thorough) for c in DIFFERENCES)],
)
def test_check_finds_every_difference(changes, tmp_path):
    tree = copy_tree(tmp_path)
    file = tree / "env/sites/frontier.sh"
    text = file.read_text(encoding="utf-8")
    for change in changes.split():
        if change == "edit":
            edited = text.replace("SUPPORT_ENABLED '1'", "SUPPORT_ENABLED '0'")
            file.write_text(edited, encoding="utf-8")
        elif change == "remove":
            file.unlink()
        elif change == "leave":
            (tree / "env/sites/atlantis.sh").write_text(text, encoding="utf-8")
        elif change == "version":
            (tree / "libxccl/VERSION").write_text("9.9.9\n", encoding="utf-8")
        else:
            site = tree / "site-configs/frontier/site.yaml"
            old = 'NCCL_CROSS_NIC\n    value: "1"'
            new = old.replace('"1"', '"0"')
            site.write_text(site.read_text().replace(old, new), encoding="utf-8")
    done = run(RENDER, "--check", "--root", tree)
    assert done.returncode == 1
    for change in changes.split():
        assert DIFFERENCES[change] in done.stdout
    assert "run site-configs/tools/render" in done.stderr
    assert run(RENDER, "--root", tree).returncode == 0
    assert run(RENDER, "--check", "--root", tree).returncode == 0


def test_a_new_site_is_one_folder(tmp_path):
    tree = copy_tree(tmp_path)
    (tree / "site-configs/atlantis").mkdir()
    text = (TOP / "site-configs/generic-amd/site.yaml").read_text(encoding="utf-8")
    text = text.replace("name: generic-amd", "name: atlantis")
    text = text.replace("exists: [/dev/kfd]", 'hostnames: ["atl*"]')
    (tree / "site-configs/atlantis/site.yaml").write_text(text, encoding="utf-8")
    assert run(RENDER, "--root", tree).returncode == 0
    for path in (
        "env/sites/atlantis.sh",
        "env/sites/atlantis.csh",
        "env/sites/atlantis.fish",
        f"modulefiles/xccl-site/atlantis/{VERSION}.lua",
        "site-configs/atlantis/site.json",
        "site-configs/atlantis/ranks.map",
        "docs/sites/atlantis.md",
    ):
        assert (tree / path).is_file(), path
    assert "atl*" in (tree / "env/sites/detect.sh").read_text(encoding="utf-8")


def test_spack_is_told_of_an_mpi_only_where_the_site_fixes_one():
    for site in SITES:
        facts = read_yaml(CONFIGS / site / "site.yaml")[0]
        text = (CONFIGS / site / "spack/packages.yaml").read_text(encoding="utf-8")
        packages = yaml.safe_load(text)["packages"]
        assert isinstance(packages, dict), site
        provider = packages.get("all", {}).get("providers", {}).get("mpi")
        wanted = {"openmpi": ["openmpi"], "mpich": ["cray-mpich"], "any": None}
        assert provider == wanted[facts["mpi"]["family"]], site
        modules = yaml.safe_load((CONFIGS / site / "spack/modules.yaml").read_text())
        paths = modules["modules"]["default"]["lmod"]["xccl"]["environment"]["append_path"]
        assert paths == {"MODULEPATH": "{prefix}/share/xccl/packaged"}


def test_spack_takes_a_cuda_that_the_pinned_nccl_knows():
    """NCCL 2.22 and UCC 1.3 do not compile with the newest CUDA, which Spack would take."""
    found = [
        yaml.safe_load(file.read_text(encoding="utf-8"))["packages"]
        for file in CONFIGS.glob("*/spack/**/packages.yaml")
    ]
    pinned = [packages for packages in found if "nccl" in packages]
    assert len(pinned) >= 3
    assert [packages for packages in pinned if "cuda" not in packages] == []


def test_quick_starts_and_jobs_say_how_many():
    for site in SITES:
        page = (TOP / f"docs/sites/{site}.md").read_text(encoding="utf-8")
        launch = "mpirun" if site == "sim" else "srun -N 2"  # a laptop has no Slurm
        assert re.search(rf"^{launch} -n \d+ .*xccl-run \./app( +# .*)?$", page, re.M), site
        for job in (CONFIGS / site / "jobs").glob("*.sbatch"):
            text = job.read_text(encoding="utf-8")
            assert "#SBATCH --nodes=" in text
            assert "#SBATCH --ntasks-per-node=" in text
            if site not in ("sim", "lumi-g"):  # LUMI's mask names the cores of whole nodes
                assert "#SBATCH --cpus-per-task=" in text, job
            # A job that asks for no GPU gets none.
            assert site == "sim" or "--gpus-per-node=" in text or "--gres=gpu:" in text, job


def quick_start(site):
    """The lines of the first block of commands of a site's page."""
    page = (TOP / f"docs/sites/{site}.md").read_text(encoding="utf-8")
    return re.search(r"```sh\n(.*?)```", page, re.S)[1].splitlines()


@pytest.mark.parametrize("site", [site for site in SITES if site != "sim"])
def test_quick_starts_ask_for_what_a_rank_needs(site):
    """GPUs, more than one core, and what the settings of the network expect of the job."""
    facts = read_yaml(CONFIGS / site / "site.yaml")[0]
    *_, run_line, doctor = quick_start(site)
    for line in (run_line, doctor):
        assert re.search(r" --(gpus-per-node=|gres=gpu:)\d", line), line
    assert doctor.startswith("srun -N 1 -n 1 ") and doctor.endswith(" xccl-doctor")
    values = {v["name"]: v["value"] for v in facts["variables"] if v.get("apply") != "never"}
    cores = re.search(r" --(cpus-per-task=\d+|cpu-bind=mask_cpu:)", run_line)
    assert cores, "Slurm gives a task one core where jobs share a node"
    rendezvous = values.get("FI_CXI_RDZV_PROTO") == "alt_read"
    if rendezvous and values["FI_CXI_RX_MATCH_MODE"] != "software":
        for line in (run_line, doctor):
            assert " --network=disable_rdzv_get " in line, line


def test_every_rendered_file_says_from_what():
    sys_files = [*TOP.glob("env/sites/*"), *TOP.glob("modulefiles/**/*.lua")]
    sys_files += [*CONFIGS.glob("*/jobs/*"), *CONFIGS.glob("*/*.map"), *CONFIGS.glob("*/*.env")]
    assert len(sys_files) > 60
    for file in sys_files:
        head = file.read_text(encoding="utf-8")[:400]
        assert "Rendered by site-configs/tools/render from site-configs" in head, file
        assert "SPDX-License-Identifier: BSD-3-Clause" in head, file


@pytest.mark.parametrize("site", SITES)
def test_maps_say_what_the_site_says(site):
    facts, _ = read_yaml(CONFIGS / site / "site.yaml")
    rows = [
        line.split()
        for line in (CONFIGS / site / "ranks.map").read_text(encoding="utf-8").splitlines()
        if not line.startswith("#")
    ]
    ranks = facts["hardware"]["binding"]["ranks"]
    assert rows == [
        [str(i), *(str(rank[k]) for k in ("gpu", "numa", "cores", "siblings", "nic"))]
        for i, rank in enumerate(ranks)
    ]
    launch = [v for v in facts["variables"] if v.get("scope") == "launch"]
    lines = (CONFIGS / site / "launch.env").read_text(encoding="utf-8").splitlines()
    parsed = [line.split(" ", 3) for line in lines if not line.startswith("#")]
    assert parsed == [
        [v.get("nodes", "any"), v.get("unless_module", "-"), v["name"], v["value"]] for v in launch
    ]


def test_the_maps_of_the_big_machines_are_those_of_the_facts():
    """Written down a second time, by hand, from the centres' pages."""
    want = {
        "juwels-booster": [(0, 3), (1, 1), (2, 7), (3, 5)],
        "frontier": [(4, 0), (5, 0), (2, 1), (3, 1), (6, 2), (7, 2), (0, 3), (1, 3)],
        "dgx-a100": [(0, 3), (1, 3), (2, 1), (3, 1), (4, 7), (5, 7), (6, 5), (7, 5)],
        "dgx-h100": [(gpu, gpu // 4) for gpu in range(8)],
        "perlmutter": [(3, 0), (2, 1), (1, 2), (0, 3)],
        "lumi-g": [(0, 3), (1, 3), (2, 1), (3, 1), (4, 0), (5, 0), (6, 2), (7, 2)],
    }
    for site, pairs in want.items():
        ranks = read_yaml(CONFIGS / site / "site.yaml")[0]["hardware"]["binding"]["ranks"]
        assert [(rank["gpu"], rank["numa"]) for rank in ranks] == pairs, site
    masks = {  # LUMI's own mask list, without the first core of each L3
        "lumi-g": "fe000000000000,fe00000000000000,fe0000,fe000000,fe,fe00,fe00000000,fe0000000000"
    }
    for site, text in masks.items():
        ranks = read_yaml(CONFIGS / site / "site.yaml")[0]["hardware"]["binding"]["ranks"]
        got = [f"{sum(1 << cpu for cpu in cpu_list(rank['cores'])):x}" for rank in ranks]
        assert ",".join(got) == text


@pytest.mark.parametrize("site", SITES)
def test_site_json_is_the_site(site):
    text = (CONFIGS / site / "site.json").read_text(encoding="utf-8")
    value = json.loads(text)
    facts, _ = read_yaml(CONFIGS / site / "site.yaml")
    assert {name: value[name] for name in facts} == facts


def test_routes_are_those_of_the_first_seed(sites):
    """The three variants of JSC's text, and nothing of one in another."""
    routes = sites["juwels-booster"]["resolved"]["routes"]
    plain, ucc, nccl = (routes[name]["variables"] for name in ("mpi", "ucc", "ucc-ccl"))
    assert plain == {"OMPI_MCA_coll_ucc_enable": "0"}
    for variables in (ucc, nccl):
        assert variables["OMPI_MCA_coll_ucc_enable"] == "1"
        assert int(variables["OMPI_MCA_coll_ucc_priority"]) > 78, "coll/accelerator would win"
        assert variables["UCC_CONFIG_FILE"] == "/dev/null"
    assert "nccl" in ucc["UCC_TLS"] and ucc["UCC_TLS"].startswith("^")
    assert "UCC_TLS" not in nccl
    assert not [name for name in ucc if name.endswith("_TUNE")]
    tokens = nccl["UCC_TL_NCCL_TUNE"].split("#")
    assert tokens[0] == "allreduce:cuda:inf", "the token of the seed"
    assert {token.split(":", 1)[1] for token in tokens} == {"cuda:inf"}
    assert len({token.split(":")[0] for token in tokens}) == len(tokens) == 12
    amd = sites["generic-amd"]["resolved"]["routes"]["ucc-ccl"]["variables"]
    assert amd["UCC_TL_RCCL_TUNE"] == nccl["UCC_TL_NCCL_TUNE"].replace("cuda", "rocm")
    assert "UCC_TL_NCCL_TUNE" not in amd


def test_slingshot_refuses_ucc_with_the_reason(sites):
    for name, facts in sites.items():
        for route in ("ucc", "ucc-ccl"):
            reason = facts["resolved"]["routes"][route]["refused"]
            assert (reason is not None) == (facts["mpi"]["transport"] == "ofi"), name
            assert reason is None or "libfabric" in reason


@pytest.mark.parametrize("file", sorted(CONFIGS.glob("*/jobs/*")), ids=lambda f: f.stem)
def test_job_scripts_are_sound(file):
    for command in (["bash", "-n"], ["shellcheck", "-s", "bash"]):
        if shutil.which(command[0]) is None:
            pytest.skip(f"{command[0]} is not installed")
        done = subprocess.run(
            [*command, file], capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
    text = file.read_text(encoding="utf-8")
    assert text.startswith("#!/bin/bash\n")
    assert re.search(r"^srun .*xccl-run \"\$@\"$", text, re.MULTILINE)
    options = [line for line in text.splitlines() if line.startswith("#SBATCH")]
    assert text.index("set -eu") > text.index(options[-1]), "Slurm reads no option after a command"


def test_the_unverified_is_not_applied(sites):
    """What only users' scripts say (the time-outs of JUWELS) is documented and never set."""
    for name, facts in sites.items():
        for variable in facts["variables"]:
            if variable["verified"] == "unverified":
                assert variable.get("apply") == "never", (name, variable["name"])
                assert variable["name"] not in facts["resolved"]["shell"]
    nics = {rank["nic"] for rank in sites["juwels-booster"]["hardware"]["binding"]["ranks"]}
    assert nics == {"auto"}, "no public text numbers the adapters of JUWELS"
