# SPDX-License-Identifier: BSD-3-Clause
"""Findings and statements from the log of a job. Every check: (facts, log) to findings."""

from . import logs
from .checks_env import LIBFABRIC_NAMES, ccl_name, memory
from .checks_files import site_ranks
from .registry import TABLE, WARNING, Finding, finding

SLOW_START = 60  # seconds
NAMES = {
    "nccl": "NCCL",
    "rccl": "RCCL",
    "msccl": "MSCCL",
    "mscclpp": "MSCCL++",
    "oneccl": "oneCCL",
    "hccl": "HCCL",
}


def library_name(facts, log):
    if log.ccl_versions:
        return log.ccl_versions[0][0]
    if log.xccl_library:
        return NAMES.get(log.xccl_library[0][0], log.xccl_library[0][0])
    return ccl_name(facts)


def statements(facts, log):
    """What is wired to what, as sentences."""
    name = library_name(facts, log)
    for library, version, path in log.xccl_library[:1]:
        yield f"xccl uses {NAMES.get(library, library)} {version} from {path}"
    if not log.xccl_library and log.ccl_versions:
        yield "{} {} is used".format(*log.ccl_versions[0])
    for collective, path in log.xccl_paths:
        yield f"{collective} is served by {path}"
    if log.provider:
        provider, nics = log.provider[0]
        plugin = " ".join(log.plugin[0]) if log.plugin else "its plugin"
        yield f"{name} uses {plugin} over {provider} on {nics} NICs"
    elif log.ib_ports:
        yield "{} uses InfiniBand on {}".format(name, ", ".join(logs.ports(log.ib_ports)))
    elif log.network:
        yield f"{name} uses the network {log.network[0]}"
    for wanted in log.bootstrap[:1]:
        yield f"{name} starts over {wanted}"
    kinds = sorted({via.split("/")[0] for _, _, via in log.channels})
    if kinds:
        yield "{} connects GPUs via {}".format(name, ", ".join(kinds))
    used = sorted(set(log.ucc_cuda + log.ucc_trace))
    if used:
        yield "UCC serves GPU memory by {}".format(", ".join(used))


def many_hosts(log):
    return len(set(log.hosts.values())) > 1


def check_network(facts, log):
    name = library_name(facts, log)
    for network in log.no_network:
        if network in LIBFABRIC_NAMES and log.one_node:
            continue
        why = "no plugin of that name was loaded"
        yield finding("net-name-unknown", value=network, why=why)
    if log.no_network_started and facts.env.get("NCCL_NET") and not log.no_network:
        why = "no network of that name started"
        yield finding("net-name-unknown", value=facts.env["NCCL_NET"], why=why)
    if log.one_node:
        yield finding("net-on-one-node", value=facts.env.get("NCCL_NET", "the plugin"))
    sockets = any(network.strip() == "Socket" for network in log.network)
    if not sockets or (log.hosts and not many_hosts(log)) or log.no_network:
        return
    asked = facts.env.get("NCCL_NET") == "Socket"
    interfaces = ", ".join(logs.ports(log.socket_ports)) or "unknown interfaces"
    if log.no_plugin:
        why = f"{log.no_plugin[0].split()[-1]} was not found in {facts.search.listed()}"
    elif asked:
        why = "NCCL_NET=Socket asks for it"
    else:
        why = "no InfiniBand port and no plugin served it"
    module = (facts.site or {}).get("plugin", {}).get("module")
    remedy = "put the plugin's folder on LD_LIBRARY_PATH"
    if asked:
        remedy = "unset NCCL_NET"
    elif module:
        remedy = f"module load {module}"
    yield finding("net-sockets", ccl=name, interfaces=interfaces, why=why, remedy=remedy)


def check_ports(facts, log):
    used = [rank["nic"] for rank in site_ranks(facts)]
    seen = logs.ports(log.ib_ports)
    if used and "auto" not in used and seen:
        others = [name for name in seen if name not in used]
        if others:
            name = library_name(facts, log)
            yield finding(
                "net-storage-port", ports=", ".join(others), ccl=name, value=",".join(used)
            )
    wanted = facts.env.get("NCCL_SOCKET_IFNAME") or site_interface(facts)
    for interface in log.bootstrap[:1]:
        if wanted and not any(interface.startswith(w) for w in wanted.lstrip("=").split(",")):
            name = library_name(facts, log)
            yield finding("net-bootstrap", ccl=name, interface=interface, wanted=wanted)


def site_interface(facts):
    for variable in (facts.site or {}).get("variables", []):
        if variable["name"] == "NCCL_SOCKET_IFNAME":
            return variable["value"]
    return None


def check_gpus(facts, log):
    shared = [place for place, processes in sorted(log.devices.items()) if len(processes) > 1]
    told = log.duplicate + log.multiple + [f"ranks {ranks}" for ranks in log.same_device]
    caused = {"gpu-shared", "ranks-over-gpus"} & {name for name, _ in log.run_notes}
    if (told or shared) and not caused:  # else check_run says why
        host, gpu = shared[0] if shared else ("a node", told[0])
        yield finding("gpu-duplicate", host=host, gpu=gpu)
    if told or shared:
        return
    for first, second, via in log.channels:
        host = log.hosts.get(first)
        if host and host == log.hosts.get(second) and via.split("/")[0] in ("SHM", "NET"):
            yield finding("gpu-peer-lost", host=host, via=via)
            return


def check_ccl(facts, log):
    versions = sorted({version for _, version in log.ccl_versions})
    if log.mismatch or len(versions) > 1:
        yield finding("ccl-mismatch", versions=(log.first("mismatch") or ", ".join(versions)))
    slow = [(int(n), float(s)) for n, s in log.init_total if float(s) > SLOW_START]
    if slow:
        ranks, seconds = max(slow)
        yield finding("init-slow", ranks=ranks, seconds=seconds)
    if log.ib_timeout:
        yield finding("ib-timeout")
    for why in log.xccl_gave_up[:1]:
        known = log.duplicate + log.multiple + log.same_device + log.mismatch
        if not (known or log.no_network or log.no_network_started):
            remedy = "XCCL_LOG=info and NCCL_DEBUG=INFO say more; the log holds both"
            yield finding("ran-by-mpi", why=why, remedy=remedy)


def check_ucc(facts, log):
    for line in log.ucc_not_selected[:1]:
        yield finding("ucc-not-selected", line=line)
    for collective, wanted, used in log.ucc_fallback[:1]:
        yield finding("ucc-fallback", collective=collective, wanted=wanted, used=used)
    if log.ucc_mlx5:
        yield finding("ucc-mlx5")
    wanted = "TL_{}".format((facts.ccl or "nccl").upper())
    used = log.ucc_trace or log.ucc_cuda
    if facts.route == "ucc-ccl" and used and wanted not in used and not log.ucc_fallback:
        variable = "UCC_TL_{}_TUNE".format((facts.ccl or "nccl").upper())
        yield finding(
            "ucc-other-transport", used=", ".join(used), variable=variable, memory=memory(facts)
        )


def check_mpich(_facts, log):
    if log.gtl:
        yield finding("gtl-missing")
    for policy, why in log.nic_numa[:1]:
        yield finding("nic-policy", policy=policy, why=why)
    for line in log.cxil_map[:1]:
        yield finding("cxi-map", line=line)
    for line in log.cxi_full[:1]:
        yield finding("cxi-exhausted", line=line.strip())


def check_crash(_facts, log):
    if not log.signal:
        return
    if any("nbc" in name for name in log.crash):
        yield finding("nonblocking-on-gpu")
    elif log.crash:
        yield finding("crash-at-end")


def check_run(_facts, log):
    """What xccl-run said itself, in its own words; and ranks that it could not bind."""
    noted = {}
    for name, text in log.run_notes:
        if name in TABLE and name not in noted:
            cause, _, remedy = text.partition("; ")
            noted[name] = Finding(
                name, WARNING, cause, remedy or TABLE[name].remedy, f"docs/use/doctor.md#{name}"
            )
    yield from noted.values()
    # A simulated GPU has no place, so there is nothing to be bound to.
    ranks = {(host, local) for host, local, _ in log.not_bound}
    if len(ranks) > 1 and not noted and "XCCL_SIM" not in _facts.env:
        yield finding("not-bound", ranks=len(ranks), cores=log.not_bound[0][2])


CHECKS = (
    check_network,
    check_ports,
    check_gpus,
    check_ccl,
    check_ucc,
    check_mpich,
    check_crash,
    check_run,
)
