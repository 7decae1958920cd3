# SPDX-License-Identifier: BSD-3-Clause
"""Rows of networks and their plugins. {names} are filled in by the check that finds it."""

from .rows import ERROR, WARNING, Row

INFINIBAND = (
    "look on a node of the job: ibstat shows the InfiniBand ports, which have to be Active; ls -l /dev/infiniband "
    "whether this user may open them (a container needs them: docker run --device=/dev/infiniband); NCCL_IB_HCA, if "
    "it is set, has to name them"
)

TABLE = {
    "net-sockets": Row(
        ERROR,
        "{ccl} fell back to TCP sockets ({interfaces}): {why}",
        {
            "unset": "unset {variable}",
            "module": "module load {module}",
            "folder": "put the plugin's folder on LD_LIBRARY_PATH",
            "infiniband": INFINIBAND,
            "unknown": INFINIBAND + "; over Slingshot or EFA, load the network plugin",
        },
        meaning="NCCL or RCCL fell back to TCP sockets between nodes",
    ),
    "net-name-unknown": Row(
        ERROR,
        "NCCL_NET={value} names no network: {why}",
        'the plugin is called "AWS Libfabric", OFI or Libfabric; set NCCL_NET or '
        "NCCL_NET_PLUGIN, not both",
    ),
    "net-name-unsure": Row(
        WARNING,
        "NCCL_NET={value}: whether the network plugin {file} goes by that name is not known; if not, {ccl} does not "
        "start",
        "look for the line 'Using network' of a job with NCCL_DEBUG=INFO, or for the name in the plugin's "
        "documentation; without NCCL_NET the plugin is taken, whatever its name",
    ),
    "net-on-one-node": Row(
        ERROR,
        "NCCL_NET={value} in a job of one node: Slingshot is not configured there and the "
        "plugin does not start",
        "start ranks by xccl-run, which decides by the number of nodes; or unset NCCL_NET, or "
        "srun --network=single_node_vni",
    ),
    "net-interface": Row(
        WARNING,
        "NCCL_SOCKET_IFNAME is not set, so the start of {ccl} may run over the management network",
        "export NCCL_SOCKET_IFNAME={value}",
    ),
    "net-interface-wrong": Row(
        ERROR,
        "NCCL_SOCKET_IFNAME={value} {why}: {ccl} cannot start",
        "export NCCL_SOCKET_IFNAME={wanted}, or unset it",
    ),
    "net-hca-unknown": Row(
        ERROR,
        "NCCL_IB_HCA={value} names no port that is here ({ports}): {ccl} goes over TCP sockets",
        {
            "site": "export NCCL_IB_HCA={wanted}",
            "unset": "unset NCCL_IB_HCA, or name ports of this machine",
        },
    ),
    "net-leftover": Row(
        WARNING,
        "with {settings} {ccl} cannot choose by itself; such settings are usually left over from an experiment",
        "unset {names}, unless you set it on purpose",
    ),
    "net-bootstrap": Row(
        WARNING,
        "{ccl} started over {interface}, not over {wanted}",
        "export NCCL_SOCKET_IFNAME={wanted}",
        meaning="NCCL or RCCL started over another network interface than the one wanted",
    ),
    "net-storage-port": Row(
        WARNING,
        "{ports} carry storage, not MPI, and would be used by {ccl}",
        "export NCCL_IB_HCA={value}",
        meaning="ports that carry storage, not MPI, would be used by NCCL or RCCL",
    ),
    "ib-timeout": Row(
        ERROR,
        "an InfiniBand transfer timed out",
        "export NCCL_IB_TIMEOUT=22 NCCL_IB_RETRY_CNT=7 UCX_RC_TIMEOUT=4s",
    ),
    "init-slow": Row(
        WARNING,
        "making a communicator of {ranks} ranks took {seconds} s",
        "NCCL 2.28.7 and later start faster; keep CUDA_MODULE_LOADING=LAZY",
    ),
    "mr-cache": Row(
        ERROR,
        "FI_MR_CACHE_MONITOR={value}: the memhooks monitor deadlocks with {ccl}",
        "export FI_MR_CACHE_MONITOR={wanted}",
    ),
    "cxi-host-register": Row(
        ERROR,
        "FI_CXI_DISABLE_HOST_REGISTER is not 1: allocation on the device can deadlock",
        "export FI_CXI_DISABLE_HOST_REGISTER=1",
    ),
    "cxi-queues": Row(
        WARNING,
        "{names} too small or not set: queues overflow at scale",
        "export {values}",
        meaning="the queues of Slingshot's libfabric provider are too small, or their sizes not set: they "
        "overflow at scale",
    ),
    "cxi-eager": Row(
        WARNING,
        "{names} not 0: eager transfers ended in hangs",
        "export FI_CXI_RDZV_EAGER_SIZE=0 FI_CXI_RDZV_THRESHOLD=0 FI_CXI_RDZV_GET_MIN=0",
        meaning="eager transfers of Slingshot's libfabric provider are on, which ended in hangs",
    ),
    "cxi-rendezvous": Row(
        WARNING,
        "FI_CXI_RDZV_PROTO=alt_read has no effect unless the job was started for it",
        "start the job, or each srun in it, with --network=disable_rdzv_get (#SBATCH, salloc or srun)",
    ),
    "cxi-exhausted": Row(
        ERROR,
        "the NIC ran out of room: {line}",
        "export FI_CXI_DEFAULT_CQ_SIZE=131072 FI_CXI_RX_MATCH_MODE=hybrid (or software)",
    ),
    "cxi-map": Row(
        ERROR,
        "Cray MPICH could not register memory: {line}",
        "export FI_MR_CACHE_MONITOR=userfaultfd FI_CXI_SAFE_DEVMEM_COPY_THRESHOLD=0",
    ),
    "ll128": Row(
        WARNING,
        "NCCL {version} uses the LL128 protocol, which is slow over Slingshot since 2.27",
        "export NCCL_PROTO=^LL128",
    ),
}
