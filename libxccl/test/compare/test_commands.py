# SPDX-License-Identifier: BSD-3-Clause
"""What xccl-compare would start: for every launcher, route and suite; and what it refuses."""

import io
import re
import sys
from types import SimpleNamespace

import pytest
from compare_world import MPIRUN, TOOLS, TOP, program, program_of_mpi
from xccl_common import machine, options
from xccl_compare import command, measure, site, suites, ucc


def dry(world, *words, **env):
    """{"case, variant, series": its command}, and the other lines."""
    text = world.run("--dry-run", *words, **env).out
    found = dict(re.findall(r"^(\S.*):\n  (.+)$", text, re.M))
    return found, [line for line in text.splitlines() if line.startswith("left out: ")]


def test_routes(world):
    """Each route sets its variables, and takes those of the others away."""
    world.ucc()
    found, left_out = dry(
        world, "--", "mpirun", "-n", "4", UCC_TLS="^nccl", OMPI_MCA_coll_ucc_priority="7"
    )
    assert not left_out
    traces = [name for name in found if name.endswith(", not timed: UCC's trace")]
    assert traces == [f"job, {route}, sizes, not timed: UCC's trace" for route in ucc.ROUTES]
    assert [name for name in found if name not in traces] == [
        f"job, {route}, sizes" for route in command.ROUTES
    ]
    mpi, other = found["job, mpi, sizes"], found["job, ucc, sizes"]
    assert mpi.startswith("mpirun -n 4 env -u OMPI_MCA_coll_ucc_priority -u UCC_TLS ")
    assert " OMPI_MCA_coll_ucc_enable=0 " in mpi and " XCCL_ROUTE=mpi " in mpi
    assert " -u " not in other and "'UCC_TLS=^nccl,rccl'" in other
    assert "XCCL_ROUTE=ucc " in other and "UCC_COLL_TRACE" not in other
    assert "UCC_TL_NCCL_TUNE=allreduce:cuda:inf#" in found["job, ucc-ccl, sizes"]
    assert (
        "--vendor" in found["job, vendor, sizes"] and "--vendor" not in found["job, xccl, sizes"]
    )


def test_reasons(world):
    _, left_out = dry(world, "--", "mpirun", "-n", "4")
    program = world.bin / "ompi_info"
    why = f"Open MPI has no coll/ucc component ({program} lists none)"
    assert left_out == [f"left out: ucc, ucc-ccl: {why}"]
    _, left_out = dry(
        world, "--site", "frontier", "--", "srun", "-N2", "-n8", XCCL_CCL_LIBRARY="librccl.so.1"
    )
    assert "left out: ucc, ucc-ccl: not on Frontier: UCC needs UCX" in left_out[0]
    assert "left out: vendor: librccl.so.1 was not found" in left_out[-1]


def test_no_site():
    facts = SimpleNamespace(site=None, ccl_file="libnccl.so.2", ccl_library="there", sites={})
    assert "no sites are installed" in site.why_not(facts, "ucc")
    with pytest.raises(options.Wrong, match="site 'sim': no sites are installed; make install"):
        options.check_choice("site", "sim", facts.sites)
    facts.sites = {"frontier": {}}
    assert "no site was recognised" in site.why_not(facts, "ucc")
    assert site.why_not(facts, "xccl") is site.why_not(facts, "vendor") is None
    assert "neither a GPU nor a site" in site.why_not(SimpleNamespace(ccl_file=None), "vendor")


def test_a_library_that_was_built_in(world):
    """Then the vendor's route is tried, though the library is on no path."""
    assert "libnccl.so.2" in dry(world, "--", "mpirun", XCCL_CCL_LIBRARY="")[1][-1]
    program(
        world.prefix / "bin/xccl-info",
        """#!/bin/sh\necho '{"installation": {"ccl_path": "nccl=/opt/x"}}'\n""",
    )
    assert "job, vendor, sizes" in dry(world, "--", "mpirun", XCCL_CCL_LIBRARY="")[0]


def test_other_mpi(world):
    """UCC goes through Open MPI: said of MPICH's mpirun, too."""
    launcher = world.bin / "mpirun"
    launcher.write_text(launcher.read_text().replace("orterun", "hydra"))
    _, left_out = dry(world, "--", "mpirun", "-n", "4")
    assert (
        left_out[0]
        == "left out: ucc, ucc-ccl: it goes through Open MPI, and the MPI here is MPICH"
    )


def test_juwels_with_srun(world):
    """The three variants of the text, on its shapes, at its size and over sizes."""
    world.ucc()
    found, left_out = dry(world, "--suite", "juwels-2022", "--", "srun", "--gres=gpu:4")
    timed = [name for name in found if "trace" not in name]
    assert not left_out and len(timed) == 6 * 5 * 2 and len(found) == len(timed) + 6 * 2 * 2
    one = found["2x2, ucc-ccl, 1gb"]
    assert one.startswith("srun --gres=gpu:4 --nodes=2 --ntasks=4 --ntasks-per-node=2 env ")
    assert "--min 1000000000 --max 1000000000" in one
    assert "--nodes=4 --ntasks=16 " in found["4x4, xccl, sizes"]


def test_nodes_of_the_job(world):
    found, left_out = dry(world, "--suite", "juwels-2022", "--", "srun", SLURM_JOB_NUM_NODES="2")
    assert {name.split(",")[0] for name in found} == {"1x2", "1x4", "2x2", "2x4"}
    assert (
        "left out: mpi, xccl, vendor (3x4): it needs 3 nodes, and the job has 2 (--nodes says"
        in left_out[0]
    )


def test_crusher(world):
    """With and without plugin on every number of nodes, bound by Slurm on one."""
    world.env["XCCL_SITE"] = "frontier"
    found, left_out = dry(world, "--suite", "crusher-2023", "--", "srun", "--gpu-bind=none")
    assert "NCCL_NET=Socket" in found["32x8, vendor-sockets, 32mib"]
    closest = found["1x8, vendor-closest, 32mib"]
    assert "--gpu-bind=closest" in closest and "--gpu-bind=none" not in closest
    assert "--min 33554432 --max 33554432" in closest
    assert "2x8, vendor-closest, 32mib" not in found
    assert any(
        "closest (2x8, 4x8, 8x8, 16x8, 32x8): it is for one node" in line for line in left_out
    )


def test_crusher_without_slurm(world):
    found, left_out = dry(world, "--suite", "crusher-2023", "--", "mpirun")
    assert "mpirun -n 4 env " in found["1x4, xccl, 32mib"] and "--gpu-bind" not in "".join(
        found.values()
    )
    assert any("--gpu-bind=closest is an option of srun" in line for line in left_out)


def test_splits(world):
    found, _ = dry(world, "--suite", "splits", "--ranks-per-node", "8", "--", "mpirun")
    groups = [
        re.search(r"--groups (\S+)", found[name]).group(1) for name in found if ", xccl," in name
    ]
    assert groups == ["0/1", "0/1+2/3", "0-7", "0/4", "0/4+1/5", "0/2/4/6/1/3/5/7"]


def test_hybrid(world):
    found, _ = dry(world, "--suite", "hybrid", "--", "mpirun", "-n", "16")
    assert "'XCCL_TUNE=*:0-1k:*:*:mpi#*:1k-inf:*:*:ccl'" in found["job, hybrid, sizes"]
    assert "'XCCL_TUNE=*:*:*:*:ccl'" in found["job, pure, sizes"]
    assert "XCCL_TUNE" not in found["job, xccl, sizes"]
    assert "alltoall" in found["job, mpi, sizes"]


def test_placeholders(world):
    words = ["flux", "run", "-N{nodes}", "-n", "{ranks}"]
    found, _ = dry(world, "--suite", "juwels-2022", "--nodes", "4", "--", *words)
    assert found["3x4, mpi, sizes"].startswith("flux run -N3 -n 12 env ")


def test_batch_script(world):
    text = world.run("--sbatch", "--suite", "juwels-2022", "--", "srun").out
    assert "#SBATCH --nodes=4\n#SBATCH --ntasks-per-node=4\n" in text
    assert "#SBATCH --account=YOUR_PROJECT\n" in text and "module load NCCL\n" in text
    assert "\nmodule purge\nmodule load Stages/2025\n" in text
    options = "--cpus-per-task=12 --hint=nomultithread --gres=gpu:4"
    assert text.endswith(f"/bin/xccl-compare --suite juwels-2022 -- srun {options}\n")


@pytest.mark.parametrize(
    ("site", "launcher", "whole"),
    [
        ("alps", "srun -N2", "srun --cpus-per-task=72 --gpus-per-node=4 --gpu-bind=none -N2"),
        ("alps", "srun -c8 --gres gpu:2", "srun --gpu-bind=none -c8 --gres gpu:2"),
        (
            "alps",
            "srun -G 2 --gpu-bind=closest",
            "srun --cpus-per-task=72 -G 2 --gpu-bind=closest",
        ),
        ("alps", "mpirun -np 8", "mpirun -np 8"),
        ("generic-amd", "srun -N2", "srun --gpu-bind=none -N2"),
    ],
)
def test_batch_script_has_the_options_of_the_site(world, site, launcher, whole):
    """Those that the launcher's words do not give otherwise."""
    text = world.run("--sbatch", "--site", site, "--", *launcher.split()).out
    assert text.endswith(f" -- {whole}\n")
    assert ("#SBATCH --gpus-per-node=" in text) == (site == "generic-amd")


def test_batch_script_loads_what_job_scripts_load(world):
    share = world.prefix / "share/xccl/modulefiles"
    (share / "xccl-site/frontier").mkdir(parents=True)
    script = world.run("--sbatch", "--site", "frontier", "--", "srun", "-n8").out
    job = (TOP / "site-configs/frontier/jobs/cpe-26.03.sbatch").read_text()
    loads = re.compile(r"^(?:module|export LD_LIBRARY_PATH=).*", re.M)
    theirs = [
        line.replace("'@prefix@/share", f"{world.prefix}/share").rstrip("'")
        for line in loads.findall(job)
    ]
    assert loads.findall(script) == theirs
    assert script.count("module load xccl-site/frontier xccl\n") == 1
    (share / "xccl-site/frontier").rmdir()
    text = world.run("--sbatch", "--site", "frontier", "--", "srun", "-n8").out
    assert "\nmodule load xccl\n" in text


@pytest.mark.parametrize(
    ("words", "nodes", "ranks"),
    [
        ("srun -N2 -n8", 2, 4),
        ("srun --nodes 3 --ntasks-per-node=2", 3, 2),
        ("srun --nodes=2 --ntasks=7", 2, 4),
        ("mpirun -np 2", 1, 2),
    ],
)
def test_batch_script_of_a_launcher(world, words, nodes, ranks):
    text = world.run("--sbatch", "--", *words.split()).out
    assert f"#SBATCH --nodes={nodes}\n#SBATCH --ntasks-per-node={ranks}\n" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "no launcher: xccl-compare -- mpirun -n 4"),
        (["--ruotes", "mpi"], "did you mean '--routes'?"),
        (["--routes", "nccl,xcl"], "unknown route 'nccl'"),
        (["--routes", "xcl"], "did you mean 'xccl'?"),
        (["--suite", "juwels"], "did you mean 'juwels-2022'?"),
        (["--coll", "allredcue", "--", "mpirun"], "did you mean 'allreduce'?"),
        (["--coll", "bcast,scan", "--", "mpirun"], "have no scan; xccl-perf --coll scan measures"),
        (["--min", "1q", "--", "mpirun"], "--min: invalid value '1q'"),
        (["--output", "", "--", "mpirun"], "--output: the folder has no name"),
        (["--min", "1m", "--max", "4", "--", "mpirun"], "--min 1048576 is larger than --max 4"),
        (["--factor", "1", "--", "mpirun"], "--factor: invalid value '1'"),
        (
            ["--rounds", "0", "--", "mpirun"],
            "--rounds: invalid value '0': expected an integer >= 1",
        ),
        (["--rounds", "²", "--", "mpirun"], "--rounds: invalid value '²'"),
        (["--sim", "cuda:²", "--", "mpirun"], "--sim: invalid value 'cuda:²'"),
        (["--site", "fronteir", "--", "mpirun"], "did you mean 'frontier'?"),
        (["--sim", "cuda:300", "--", "mpirun"], "N from 1 to 64"),
        (["-n", "4"], "unknown option '-n'"),
        (["--jsn"], "unknown option '--jsn'; there is no --json here: result.json is always"),
        (["--josn"], "there is no --json here: result.json is always written"),
        (["--zzz"], "unknown option '--zzz'; see --help"),
        (["--sim", "cuad:4", "--", "mpirun"], "mscclpp, oneccl, hpu; did you mean 'cuda'?"),
        (["--site", "juwles", "--", "mpirun"], "did you mean 'juwels-booster'?"),
        (["--suite", "JUWLES", "--", "mpirun"], "did you mean 'juwels-2022'?"),
        (["mpirun", "-n", "4"], "unexpected argument 'mpirun'; a launcher goes behind '--'"),
        (["--", "no-such-launcher"], "'no-such-launcher' was not found"),
        (["--sim", "gpu", "--", "mpirun"], "--sim: invalid value 'gpu'"),
        (["--osu", "/x", "--", "mpirun"], "give --with osu"),
        (["--verify-to", "1m", "--", "mpirun"], "xccl-perf verifies every size"),
        (["--with", "osu", "--verify-to", "x", "--", "mpirun"], "--verify-to: invalid value 'x'"),
        (["--against", "a.json"], "--against needs two results"),
        (["--against", "/no/a.json", "/no/b.json"], "cannot read '/no/a.json': No such file"),
        (["--plot", "/no/a.json"], "cannot read '/no/a.json': No such file"),
        (["--csv", "/no/a.json"], "cannot read '/no/a.json': No such file"),
        (["--csv", "a.json", "--plot", "b.json"], "are two different things"),
        (["--published", "nobody", "--", "mpirun"], "unknown set of published figures 'nobody'"),
        (["--suite", "splits", "--", "mpirun", "-n", "4"], "leave '-n' out of the launcher"),
        (["--suite", "splits", "--ranks-per-node", "3", "--", "mpirun"], "even number of ranks"),
        (["--suite", "splits", "--", "launchit"], "'launchit': unknown launcher; write {nodes}"),
        (["--suite", "splits", "--with", "osu", "--", "mpirun"], "needs xccl-perf"),
        (
            ["--suite", "splits", "--routes", "ucc", "--", "mpirun"],
            "no variant on these routes: ucc",
        ),
    ],
)
def test_refusals(world, words, message):
    if "--" not in words and {"--routes", "--suite", "--ruotes"} & set(words):
        words = [*words, "--", "mpirun"]
    ended = world.run(*words, status=2)
    assert message in ended.err and ended.err.count("xccl-compare: ") == 1
    assert "Traceback" not in ended.err


@pytest.mark.parametrize(
    ("words", "dropped"),
    [
        ("mpirun -n 2 ./app", "./app"),
        ("mpirun -n 2 xccl-run ./app -x 3", "xccl-run ./app -x 3"),
        ("mpirun -np 2 --mca btl self,vader --oversubscribe ./app", "./app"),
        ("srun -N2 -n8 --gpus-per-node=4 ./app", "./app"),
        ("srun -N 1 -n 4 -l sleep 1", "sleep 1"),
        ("mpirun_rsh -np 2 -hostfile hosts A=1 ./app", "./app"),
        ("mpirun -n 2 numactl --localalloc python3 app.py", "python3 app.py"),
        ("mpirun -n 2 ./none -x 3", "./none -x 3"),
        ("mpirun -n 2 --nolocal ./app", "./app"),
        ("srun -N2 --unheard-of -n 8 /scratch/none", "/scratch/none"),
        ("mpirun -n 2 --unheard-of ./of-mpi", "./of-mpi"),
    ],
)
def test_a_program_behind_the_launcher(world, words, dropped):
    """It would be run in place of what is measured, in every round."""
    (world.work / "app").write_text("#!/bin/sh\n")
    (world.work / "app").chmod(0o755)
    program_of_mpi(world.work)
    ended = world.run("--", *words.split(), status=2)
    assert f"xccl-compare: the launcher stands alone: drop '{dropped}', and give" in ended.err
    assert f"give '{words[: -len(dropped) - 1]}' only;" in ended.err
    assert not list(world.work.glob("xccl-compare*")) and world.calls.read_text() == ""


@pytest.mark.parametrize(
    "words",
    [
        "mpirun -n 2 --mca plm_rsh_agent /bin/sh",
        "mpirun -n 2 -x PATH -H a,b --hostfile hosts",
        "srun -p batch --task-prolog /bin/true -n4",
        "srun -n 4 env A=b",
        "srun --unheard-of -D /scratch/none -n 4",
        "srun --chdir /scratch/none -n 4",
        "mpirun -n 2 --prefix /opt/none --unheard-of -wdir /scratch/none",
        "mpirun_rsh -np 2 host1 host2 A=/scratch/none",
        "mpiexec -n 2 -env A /scratch/none -genvall -rmk user",
        "mpirun -n 2 --unheard-of /bin/true --mca rmaps_base_x -1",
        "srun -n 4 numactl --localalloc",
        "flux run -n 4",
    ],
)
def test_what_is_no_program_behind_the_launcher(world, words):
    """Values of the launcher's options, wrappers, and launchers that are not known."""
    program(world.bin / "flux", MPIRUN)
    program(world.bin / "numactl", MPIRUN)
    ended = world.run("--dry-run", "--", *words.split())
    assert f"{words} env " in ended.out


def test_behind_a_launcher(world):
    """mpirun xccl-compare -- mpirun: each process would start all the jobs."""
    ended = world.run("--", "mpirun", status=2, OMPI_COMM_WORLD_SIZE="4")
    assert "started this 4 times" in ended.err and not world.launched()
    world.run("--no-plot", "--dry-run", "--", "mpirun", OMPI_COMM_WORLD_SIZE="1")


def test_documented_everywhere(world):
    manual = (TOOLS / "man/xccl-compare.1").read_text().replace("\\-", "-")
    completion = (TOOLS / "completion/bash/xccl-compare").read_text()
    for option in (*command.WITH_VALUE, *command.FLAGS):
        assert option in command.USAGE, option
        assert option in manual, option
        assert option in completion, option
    for name in suites.SUITES:
        assert name in command.USAGE and name in manual and name in completion
    assert world.script("-h").stdout == command.USAGE + "\n"
    assert world.script("--version").stdout == "xccl-compare 0.1.0\n"


def test_list(world):
    text = world.run("--list").out
    assert "routes here (JUWELS Booster):" in text
    assert re.search(r"^  ucc +Open MPI has no coll/ucc component", text, re.M)
    assert "crusher-2023" in text and "11 figures" in text
    for name in ("splits", "hybrid"):
        assert re.search(rf"^  {name} .*: nothing to draw: figures only in pictures$", text, re.M)
    assert " 2023-07-12, https://gist.github.com/frobnitzem/" in text


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_takes_one_line(monkeypatch):
    """The line is cut to the terminal's width: of one that takes two, the first would stay."""
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setattr(sys, "stderr", Terminal())
    measure.Progress(3).say("[1/3] job, reduce_scatter_block, round 1")
    assert sys.stderr.getvalue() == "\r\033[K[1/3] job, reduce_s"


def test_progress_elsewhere(world):
    """Without a terminal a line every so often, also while one launch takes long."""
    words = ["--rounds", "1", "--routes", "mpi", "--no-plot"]
    said = world.measure(*words, "--progress", "1", FAKE_SECONDS="1.5").err
    assert said == "xccl-compare: [1/1] job, mpi, round 1\n"
    assert world.measure(*words, "--output", "b", "--progress", "0", FAKE_SECONDS="1.5").err == ""
    assert "--progress: invalid value 'x'" in world.measure("--progress", "x", status=2).err


def test_machine_without_gpus(world, monkeypatch):
    """Said before anything is started: every launch would fail. A site's login node has none either."""
    monkeypatch.setattr(machine, "collect_pci", lambda root: (None, []))
    monkeypatch.setattr(machine, "matches", lambda *_: False)
    words = ["--dry-run", "--", "mpirun", "-n", "2"]
    assert "--sim cuda:2" in world.run(*words, XCCL_SITE="").err
    assert "--sim" not in world.run(*words).err
    assert "--sim" not in world.run("--sim", "cuda:2", *words, XCCL_SITE="").err


class TestSiteVariables:
    """A site's own variables, where its module is not loaded: MPI would not be GPU-aware on LUMI."""

    WORDS = ("--site", "lumi-g", "--", "srun", "-N1", "-n8")

    def test_each_launch_sets_them(self, world):
        text = world.run("--dry-run", *self.WORDS).out
        mpi = re.search(r"^job, mpi, sizes:\n  (.+)$", text, re.M).group(1)
        assert " MPICH_GPU_SUPPORT_ENABLED=1 MPICH_OFI_NIC_POLICY=GPU " in mpi
        (note,) = [line for line in text.splitlines() if line.startswith("note: ")]
        assert "LUMI-G's own variables were not in the environment" in note
        assert "MPICH_GPU_SUPPORT_ENABLED=1" in note

    def test_of_the_environment_they_stay(self, world):
        own = {"MPICH_GPU_SUPPORT_ENABLED": "1", "MPICH_OFI_NIC_POLICY": "NUMA"}
        text = world.run("--dry-run", *self.WORDS, **own).out
        assert "MPICH_" not in re.search(r"^job, mpi, sizes:\n  (.+)$", text, re.M).group(1)
        assert "and left so: MPICH_OFI_NIC_POLICY=NUMA (the site: GPU)" in text

    def test_nothing_to_say(self, world):
        assert "note: " not in world.run("--dry-run", "--site", "sim", "--", "mpirun").out


@pytest.mark.parametrize(("path", "aware"), [("mpi", True), ("mpi-staged", False), ("none", None)])
def test_whether_mpi_is_gpu_aware(world, path, aware):
    """The baseline of a comparison is another one where its calls were staged."""
    world.fake["paths"] = {"mpi": path}
    ended = world.measure("--no-plot", "--rounds", "1", "--routes", "mpi,xccl")
    assert world.result()["measured_with"]["gpu_aware"] is aware
    assert ("# MPI is GPU-aware\n" in ended.out) == (aware is True)
    assert ("# MPI is NOT GPU-aware" in ended.out) == (aware is False)
