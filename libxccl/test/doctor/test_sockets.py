# SPDX-License-Identifier: BSD-3-Clause
"""Why a job went over TCP: NCCL says in every job without a plugin that it found none."""

import pytest
from planted import INFO, NODES, SOCKETS, env, log

NO_PLUGIN = INFO + "NET/Plugin: Could not find: libnccl-net.so\n"
NO_DEVICE = INFO + "NET/IB : No device found.\n"
OVER_TCP = NO_PLUGIN + NO_DEVICE + INFO + "NET/Socket : Using [0]eth0:192.0.2.2<0>\n" + SOCKETS
OVER_IB = NO_PLUGIN + INFO + "NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB ib0:192.0.2.2<0>\n"
OVER_IB += INFO + "Using network IB\n" + NODES
PLUGIN = "libnccl-net.so was not found in /opt/lib"


def look(doctor, made):
    return [(f["id"], f["cause"], f["remedy"]) for f in doctor(made)[1]["findings"]]


def a_gpu(made):
    """That of a site whose description names none."""
    made.file(made.gpu(0) + "/vendor", "0x10de\n")
    made.file(made.gpu(0) + "/class", "0x030200\n")
    return made


def efa(made):
    made.nic("rdmap0s6")
    made.port("rdmap0s6", "4: ACTIVE", "Unspecified")
    made.file("sys/class/infiniband/rdmap0s6/device/vendor", "0x1d0f\n")


@pytest.mark.parametrize("site", ["juwels-booster", "dgx-h100", "jupiter", "generic-nvidia"])
@pytest.mark.parametrize("text", [OVER_TCP, OVER_TCP.replace(NODES, "")])
def test_infiniband_needs_no_plugin(doctor, world, site, text):
    made = world(site)
    log(text)(made if site != "generic-nvidia" else a_gpu(made))
    ((name, cause, remedy),) = look(doctor, made)
    assert name == "net-sockets"
    assert "no InfiniBand device that it may use" in cause and "libnccl-net" not in cause
    for word in ("ibstat", "/dev/infiniband", "container", "NCCL_IB_HCA"):
        assert word in remedy
    assert "LD_LIBRARY_PATH" not in remedy
    assert ("over Slingshot or EFA" in remedy) == (site == "generic-nvidia")


@pytest.mark.parametrize(
    ("site", "wanted"),
    [
        ("juwels-booster", env(NCCL_NET_PLUGIN="ofi")),
        ("juwels-booster", env(NCCL_NET="AWS Libfabric")),
        ("generic-nvidia", efa),
        ("perlmutter", lambda made: None),
        ("alps", lambda made: None),
    ],
)
def test_a_plugin_that_is_missed(doctor, world, site, wanted):
    """One that was asked for, or that the network needs."""
    made = world(site)
    wanted(made if site != "generic-nvidia" else a_gpu(made))
    log(OVER_TCP)(made)
    found = {name: (cause, remedy) for name, cause, remedy in look(doctor, made)}
    cause, remedy = found["net-sockets"]
    assert PLUGIN in cause
    assert remedy.startswith(("put the plugin's folder on LD_LIBRARY_PATH", "module load "))


@pytest.mark.parametrize(
    "setting", ["NCCL_NET_PLUGIN set by environment to ofi", "NCCL_NET set to OFI"]
)
def test_a_plugin_that_the_job_asked_for(doctor, world, setting):
    """As NCCL said in the log."""
    made = world("juwels-booster")
    log(f"{INFO}{setting}\n" + OVER_TCP)(made)
    ((name, cause, _),) = look(doctor, made)
    assert name == "net-sockets" and PLUGIN in cause


@pytest.mark.parametrize("plugin", ["none", ""])
def test_a_plugin_that_was_declined(doctor, world, plugin):
    made = world("juwels-booster")
    made.env["NCCL_NET_PLUGIN"] = plugin
    log(OVER_TCP)(made)
    assert [(name, PLUGIN in cause) for name, cause, _ in look(doctor, made)] == [
        ("net-sockets", False)
    ]


@pytest.mark.parametrize("text", [OVER_IB, NO_PLUGIN + NODES, OVER_TCP.replace("n2:", "n1:")])
def test_healthy_logs(doctor, world, text):
    """Over InfiniBand; where the log says no more; and on one node."""
    made = world("juwels-booster")
    log(text.replace("cudaDev 0 busId 10\n", "cudaDev 1 busId 20\n", 1))(made)
    assert look(doctor, made) == []
