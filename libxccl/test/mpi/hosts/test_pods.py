# SPDX-License-Identifier: BSD-3-Clause
"""What a library may take for a node: containers of one machine that share some things and not others.

Results are right in each, no rank hangs, and a fast path that cannot work is left, with a reason.
"""

import re

import pytest
from hosts import Host, HostsMpi

pytestmark = pytest.mark.release_only
TIMEOUT = 60
POD = Host(boot="shared")
ON_ANOTHER = (
    r"no direct path on \d ranks: rank \d is on the machine of rank 0, but in another container"
)
INVISIBLE = r"no direct path on 2 ranks: rank 0: it does not see the memory of all processes.*another user's"


def loop(mpi, hosts, layout):
    result = HostsMpi(mpi, hosts).run(
        layout, "mpi_loop cuda 5", timeout=TIMEOUT, env={"XCCL_LOG": "info"}
    )
    assert not result.timed_out and result.status == 0, result.out
    assert len(result.lines("all rounds good")) == sum(map(int, layout.split("+"))), result.out
    return result


def path(result):
    (chosen,) = set(re.findall(r"allreduce of .* ranks: (\S+) ", result.out))
    return chosen


def test_pods(family, start_hosts):
    """Kubernetes: one boot id, and nothing else in common."""
    result = loop(family, start_hosts(POD, POD), "2+1")
    assert path(result) == "ccl" and len(result.lines(ON_ANOTHER)) == 1, result.out


def test_nodes_are_no_containers(openmpi, nodes):
    assert not loop(openmpi, nodes, "1+1").lines("no direct path")


@pytest.mark.parametrize("boot", ["shared", "none"])
def test_shared_processes(openmpi, start_hosts, boot):
    """hostPID: a rank finds the others in /proc, and their memory; /dev/shm is not needed."""
    host = Host(boot=boot, hostname="node", processes=False)
    assert path(loop(openmpi, start_hosts(host, host), "1+1")) == "direct"


def test_other_user(openmpi, start_hosts):
    one, other = (Host(boot="shared", processes=False, user=user) for user in (1001, 1002))
    result = loop(openmpi, start_hosts(one, other), "1+1")
    assert path(result) == "mpi-staged" and len(result.lines(INVISIBLE)) == 1, result.out


@pytest.mark.thorough
@pytest.mark.parametrize(
    "pod",
    [
        Host(boot="shared", hostname="pod"),
        Host(boot="shared", hostname="pod", shm="shared"),
        Host(boot="none", hostname="pod"),
        Host(boot="none"),
    ],
)
def test_kinds_of_pods(openmpi, start_hosts, pod):
    """One host name; one /dev/shm, but process numbers that mean another process; no boot id.

    Not with Hydra, which has its ranks connect to the name that its own host has for itself.
    """
    result = loop(openmpi, start_hosts(pod, pod), "1+1")
    assert path(result) == "ccl", result.out
    alike = pod.boot == "shared" or pod.hostname
    assert len(result.lines(ON_ANOTHER)) == (1 if alike else 0), result.out


@pytest.mark.thorough
@pytest.mark.parametrize("pair", [(POD, POD), (Host(boot="shared", processes=False), POD)])
def test_messages_of_pods(family, start_hosts, pair):
    """One of the second pair sees the processes of the other, which does not see its own."""
    env = {"XCCL_RENDEZVOUS": "240"}
    HostsMpi(family, start_hosts(*pair)).run(
        "2+1", "mpi_messages cuda 5 60", timeout=TIMEOUT, env=env
    ).good()


@pytest.mark.thorough
@pytest.mark.parametrize("shm", ["size=4k", "ro", "noexec"])
def test_shared_memory(openmpi, start_hosts, shm):
    """xccl uses no file there. (MPICH needs one for two ranks of a node.)"""
    host = Host(shm=shm)
    result = HostsMpi(openmpi, start_hosts(host, host)).run(
        "2+1", "mpi_messages cuda 5 60", timeout=TIMEOUT, env={"XCCL_RENDEZVOUS": "240"}
    )
    result.good()
    assert path(loop(openmpi, start_hosts(host), "2")) == "direct"


@pytest.mark.thorough
def test_dumps_of_pods(openmpi, start_hosts):
    """Two hosts of one name write into one folder: a file for each rank."""
    pod = Host(boot="shared", hostname="pod")
    hosts = start_hosts(pod, pod)
    folder = hosts.folder / "dumps"
    folder.mkdir()
    env = {"XCCL_SIM_FAIL": "hang:allreduce@1=3", "XCCL_TIMEOUT": "2", "XCCL_DUMP_DIR": folder}
    HostsMpi(openmpi, hosts).run("1+1", "mpi_loop cuda 6 return", env=env, timeout=TIMEOUT)
    ranks = [re.match(r"xccl-ops\.pod\.\d+\.(\d)\.json$", path.name) for path in folder.iterdir()]
    assert {rank and rank.group(1) for rank in ranks} == {"0", "1"}, ranks
