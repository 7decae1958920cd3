# SPDX-License-Identifier: BSD-3-Clause
"""What bin/xccl-perf and bin/xccl-tune are: a script that starts the program of the MPI in use."""

import shutil

import pytest


@pytest.mark.release_only
class TestWrapper:
    """bin/xccl-perf picks the program of the MPI in use."""

    @pytest.fixture
    def make(self, stage, tmp_path):
        def install(*families):
            programs = tmp_path / "lib/xccl"
            programs.mkdir(parents=True)
            (tmp_path / "bin").mkdir()
            shutil.copy(stage.bin / "xccl-perf", tmp_path / "bin")
            for family in families:
                program = programs / f"xccl-perf-{family}"
                program.write_text(f'#!/bin/sh\necho {family} "$@"\n')
                program.chmod(0o755)

            def run(**env):
                drop = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMI_FD", "PMIX_RANK")
                more = ("MPI_LOCALRANKID", "SLURM_STEP_ID", "LD_LIBRARY_PATH")
                left = [name for name in drop + more if name not in env]
                return stage.run(tmp_path / "bin/xccl-perf", "a b", env=env, drop=left)

            return run

        return install

    @pytest.mark.parametrize(
        ("env", "family"),
        [
            ({}, "openmpi"),
            ({"PMI_RANK": "0"}, "mpich"),
            ({"PMIX_RANK": "0"}, "openmpi"),
            ({"OMPI_COMM_WORLD_RANK": "0", "PMI_RANK": "0"}, "openmpi"),
            ({"XCCL_MPI": "mpich", "OMPI_COMM_WORLD_RANK": "0"}, "mpich"),
            ({"XCCL_MPI": "openmpi", "PMI_RANK": "0"}, "openmpi"),
        ],
    )
    @pytest.mark.parametrize("more", [(), ("mpiabi",)])
    def test_both_built(self, make, env, family, more):
        assert make("openmpi", "mpich", *more)(**env).good().out == f"{family} a b\n"

    @pytest.mark.parametrize("family", ["mpich", "mpiabi"])
    def test_only_one_built(self, make, family):
        assert make(family)().good().out == f"{family} a b\n"

    def test_standard_abi(self, make):
        """Its library may be that of any launcher; beside others it has to be asked for."""
        both = make("mpich", "mpiabi")
        assert both().good().out == "mpich a b\n"
        assert both(PMI_RANK="0").good().out == "mpich a b\n"
        assert both(PMI_RANK="0", XCCL_MPI="mpiabi").good().out == "mpiabi a b\n"

    @pytest.mark.parametrize("variable", ["PMI_RANK", "OMPI_COMM_WORLD_RANK"])
    def test_standard_abi_alone(self, make, variable):
        run = make("mpiabi")
        assert run(**{variable: "0"}).good().out == "mpiabi a b\n"
        assert run(XCCL_MPI="mpich").status == 1

    def test_not_built(self, make):
        ended = make("mpich")(OMPI_COMM_WORLD_RANK="0")
        assert ended.status == 1
        assert "openmpi" in ended.err and "built for: mpich" in ended.err
        assert "XCCL_MPI=mpich" in ended.err

    def test_hydra_is_mpichs_own(self, make):
        ended = make("openmpi")(PMI_RANK="0", MPI_LOCALRANKID="0")
        assert ended.status == 1 and "built for: openmpi" in ended.err
        assert "XCCL_MPI=openmpi" in ended.err

    @pytest.mark.parametrize("variable", ["PMI_RANK", "PMIX_RANK"])
    @pytest.mark.parametrize("family", ["openmpi", "mpich"])
    def test_slurm_with_one_built(self, make, variable, family):
        """Slurm's PMI serves either MPI, and there is nothing to choose."""
        run = make(family)
        assert (
            run(SLURM_STEP_ID="0", PMI_FD="5", **{variable: "0"}).good().out == f"{family} a b\n"
        )

    def test_slurm_with_both_built(self, make, tmp_path):
        """The first MPI on LD_LIBRARY_PATH; without one it is MPICH's interface."""
        run, folders = make("openmpi", "mpich"), []
        for file in ("libfoo.so", "libmpi_abi.so.1", "libmpi.so.40", "libmpi.so.12"):
            folders.append(tmp_path / f"with {file}")
            folders[-1].mkdir()
            (folders[-1] / file).touch()
        step = {"PMI_RANK": "0", "SLURM_STEP_ID": "0", "PMI_FD": "5"}
        for order, family in ((folders, "openmpi"), (folders[::-1], "mpich"), ([], "mpich")):
            path = ":".join(map(str, order))
            assert run(LD_LIBRARY_PATH=path, **step).good().out == f"{family} a b\n"
        assert run(LD_LIBRARY_PATH=path, XCCL_MPI="openmpi", **step).good().out == "openmpi a b\n"

    def test_slurm_with_the_standard_abi(self, make, tmp_path):
        (tmp_path / "libmpi_abi.so.1").touch()
        step = {"PMI_RANK": "0", "SLURM_STEP_ID": "0", "PMI_FD": "5"}
        run = make("openmpi", "mpiabi")
        assert run(LD_LIBRARY_PATH=str(tmp_path), **step).good().out == "mpiabi a b\n"

    def test_none_built(self, make):
        ended = make()()
        assert (ended.status, "with an MPI" in ended.err) == (1, True)

    def test_bad_choice(self, make):
        ended = make("openmpi")(XCCL_MPI="lam")
        assert (ended.status, "openmpi, mpich or mpiabi" in ended.err) == (2, True)
