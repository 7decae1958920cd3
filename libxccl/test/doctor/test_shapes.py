# SPDX-License-Identifier: BSD-3-Clause
"""How many nodes and ranks of a node there are, by the variables of launchers within each other."""

import pytest
from xccl_common import launchers

# A job of Slurm with eight tasks on each of two nodes, and what srun adds for all, and for one.
JOB = {"SLURM_JOB_ID": "1", "SLURM_JOB_NUM_NODES": "2", "SLURM_NTASKS_PER_NODE": "8"}
STEP = {
    **JOB,
    "SLURM_STEP_ID": "0",
    "SLURM_STEP_NUM_TASKS": "8",
    "SLURM_STEP_NUM_NODES": "2",
    "SLURM_STEP_TASKS_PER_NODE": "4(x2)",
}
ALONE = {
    **JOB,
    "SLURM_STEP_ID": "0",
    "SLURM_STEP_NUM_TASKS": "1",
    "SLURM_STEP_NUM_NODES": "1",
    "SLURM_STEP_TASKS_PER_NODE": "1",
}
SHELL = {**STEP, "SLURM_STEP_ID": "4294967290"}  # salloc's own step


def ompi(size, local):
    return {"OMPI_COMM_WORLD_SIZE": str(size), "OMPI_COMM_WORLD_LOCAL_SIZE": str(local)}


@pytest.mark.parametrize(
    ("env", "nodes", "ranks"),
    [
        ({}, None, None),
        (JOB, 2, 8),
        (STEP, 2, 4),
        ({**STEP, "SLURM_STEP_NUM_NODES": "1"}, 1, 4),
        (ALONE, 2, 1),  # which looks at the job
        (SHELL, 2, 8),
        ({**JOB, **ompi(4, 4)}, 1, 4),
        ({**STEP, **ompi(6, 3)}, 2, 3),  # the step is that of mpirun's daemons
        ({**JOB, **ompi(1, 1)}, 2, 1),
        ({**STEP, "PMI_SIZE": "4", "MPI_LOCALNRANKS": "4"}, 1, 4),
        ({**STEP, "PMI_SIZE": "16"}, 2, 4),  # srun with PMI
        ({"PALS_NUM_NODES": "3", "PALS_LOCAL_SIZE": "12", "PMI_SIZE": "36"}, 3, 12),
        ({"FLUX_JOB_SIZE": "16", "FLUX_JOB_NNODES": "2"}, 2, 8),
        ({"SLURM_JOB_NUM_NODES": "1", "SLURM_TASKS_PER_NODE": "128"}, 1, None),  # its cores
        ({"SLURM_TASKS_PER_NODE": "8(x2)", "SLURM_NTASKS": "16"}, None, 8),
    ],
)
def test_shape(env, nodes, ranks):
    assert (launchers.nodes_of(env), launchers.ranks_per_node(env)) == (nodes, ranks)


@pytest.mark.parametrize(
    "env",
    [
        {**JOB, "SLURM_NTASKS_PER_NODE": "48", **ompi(4, 4)},
        ALONE,
        {"SLURM_JOB_NUM_NODES": "1", "SLURM_TASKS_PER_NODE": "128"},
    ],
)
def test_no_ranks_too_many_for_the_gpus(doctor, world, env):
    made = world("juwels-booster")
    made.env.update(env)
    status, found = doctor(made)
    assert (status, found["findings"]) == (0, [])


@pytest.mark.parametrize(
    ("site", "broken", "found_in_shell", "found_in_rank"),
    [
        ("juwels-booster", {"SLURM_CPUS_PER_TASK": "12"}, ["srun-cpus-per-task"], ["not-bound"]),
        ("juwels-booster", {"SLURM_NTASKS_PER_NODE": "4"}, [], ["not-bound"]),
        ("frontier", {"SLURM_NETWORK": ""}, ["cxi-rendezvous"], ["not-bound"]),
        ("frontier", {"MPICH_OFI_NIC_POLICY": "NUMA"}, [], ["not-bound", "nic-policy"]),
    ],
)
def test_a_shell_of_salloc_is_no_rank(  # noqa: PLR0917
    doctor, world, site, broken, found_in_shell, found_in_rank
):
    """Its step has a number beyond those of srun's, and the node's cores are free for what it starts."""
    made = world(site)
    made.file("proc/self/status", "Cpus_allowed_list:\t0-95\n")
    made.env.update({**SHELL, "PMIX_RANK": "0", "SLURM_NTASKS_PER_NODE": "4", **broken})
    assert [one["id"] for one in doctor(made)[1]["findings"]] == found_in_shell
    made.env.update(SLURM_STEP_ID="0")
    assert [one["id"] for one in doctor(made)[1]["findings"]] == found_in_rank
