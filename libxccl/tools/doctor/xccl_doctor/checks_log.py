# SPDX-License-Identifier: BSD-3-Clause
"""Findings and statements from the log of a job. Every check: (facts, log) to findings."""

import os

from xccl_common.failure import failure

from . import logs
from .checks_env import NAMES, UCC_LISTS, ccl_name, hides, memory, ucc_setting
from .checks_files import OLDEST_DRIVER, plugin_remedy, site_ranks
from .checks_net import (
    BUILT_IN_NAMES,
    LIBFABRIC_NAMES,
    hca_unknown,
    interface_wanted,
    is_named,
    site_value,
)
from .registry import TABLE, WARNING, Finding, anchor, finding, remedies

SLOW_START = 60  # seconds


def library_name(facts, log):
    if log.ccl_versions:
        return log.ccl_versions[0][0]
    if log.xccl_library:
        return NAMES.get(log.xccl_library[0][0], log.xccl_library[0][0])
    if "librccl-net" in " ".join(log.no_plugin):  # a name that RCCL alone looks for
        return "RCCL"
    return ccl_name(facts)


def network_statements(name, log):
    if log.provider:
        provider, nics = log.provider[0]
        plugin = " ".join(log.plugin[0]) if log.plugin else "its plugin"
        yield f"{name} uses {plugin} over {provider} on {nics} NICs"
    elif logs.ports(log.ib_ports):
        yield "{} uses InfiniBand on {}".format(name, ", ".join(logs.ports(log.ib_ports)))
    elif log.network:
        yield f"{name} uses the network {log.network[0]}"
    for plugin, interface in log.plugin_loaded[:1]:
        yield f"{name} loaded the network plugin {plugin} (interface {interface})"
    for wanted in log.bootstrap[:1]:
        yield f"{name} starts over {wanted}"


def statements(facts, log):
    """Which libraries, GPUs and NICs are used, as sentences."""
    name = library_name(facts, log)
    for library, version, path in log.xccl_library[:1]:
        yield f"xccl uses {NAMES.get(library, library)} {version} from {path}"
    if not log.xccl_library and log.ccl_versions:
        yield "{} {} is used".format(*log.ccl_versions[0])
    settled = {collective for collective, _, first in log.xccl_paths if not first}
    for collective, path, first in log.xccl_paths:
        if not first or collective not in settled:
            yield f"{collective} is served by {path}{' in its first calls' if first else ''}"
    yield from network_statements(name, log)
    if log.kinds:
        yield "{} connects GPUs via {}".format(name, ", ".join(sorted(log.kinds)))
    used = sorted(set(log.ucc_cuda + log.ucc_trace))
    if used:
        yield "UCC serves GPU memory by {}".format(", ".join(used))


def many_hosts(log):
    return len(set(log.hosts.values())) > 1


def network_libraries(log):
    """File names of plugins that were looked for and not found."""
    words = " ".join(log.no_plugin).split()
    return [word for word in words if word.startswith("lib") or "/" in word] or words


def check_plugin(facts, log):
    """The plugin was found, and is of no use."""
    name = library_name(facts, log)
    if log.plugin_symbol and not log.plugin_loaded and not log.plugin:
        yield finding("plugin-abi", ccl=name, line=log.plugin_symbol[-1])
    for line in log.plugin_refused:
        needed = line.split(":")[0].strip()
        if not needed.endswith("-net.so") and ".so" in needed and "ccl-net" not in needed:
            key, plain_name = "old" if "version " in line else "needed", os.path.basename(needed)
            yield finding(
                "plugin-failed", key, ccl=name, line=line, needed=needed, needed_name=plain_name
            )
    if log.ofi_failed and not log.provider:
        wanted = "cxi" if facts.nics["cxi"] else "your network's provider"
        yield finding(
            "plugin-failed", "provider", ccl=name, line=log.ofi_failed[-1], provider=wanted
        )
    slingshot = facts.nics["cxi"] or slingshot_of(facts)
    for provider, _ in log.provider[:1]:
        if slingshot and provider.split(";")[0] != "cxi":
            ports = ", ".join(facts.nics["cxi"]) or slingshot
            yield finding(
                "plugin-provider", ccl=name, provider=provider, wanted="cxi", ports=ports
            )


def slingshot_of(facts):
    kind = (facts.site or {}).get("hardware", {}).get("nic", {}).get("kind", "")
    return kind if kind.startswith("Slingshot") else None


def check_network(facts, log):
    broken = {found.id for found in check_plugin(facts, log)}
    for network in log.no_network:
        if (is_named(network, LIBFABRIC_NAMES) and log.one_node) or broken:
            continue
        why = "no plugin of that name was loaded"
        yield finding("net-name-unknown", value=network, why=why)
    net = log.setting("NCCL_NET") or facts.env.get("NCCL_NET")
    if log.no_network_started and net and not log.no_network and not broken:
        why = "no network of that name started"
        yield finding("net-name-unknown", value=net, why=why)
    if log.one_node:
        yield finding("net-on-one-node", value=net or "the plugin")
    yield from check_interface(facts, log)
    sockets = any(network.strip() == "Socket" for network in log.network)
    if not sockets or (log.hosts and not many_hosts(log)) or log.no_network:
        return
    if not broken:
        yield why_sockets(facts, log)


def network_setting(facts, log, name):
    return log.setting(name) or facts.env.get(name, "")


def needs_plugin(facts, log):
    """Is a plugin meant to be there? NCCL says that it found none in every job without one."""
    asked = network_setting(facts, log, "NCCL_NET_PLUGIN") not in ("", "none")
    net = network_setting(facts, log, "NCCL_NET")
    by_name = bool(net) and not is_named(net, BUILT_IN_NAMES)
    by_site = bool((facts.site or {}).get("plugin")) or bool(slingshot_of(facts))
    return asked or by_name or by_site or bool(facts.nics["cxi"]) or bool(facts.efa)


def serves_itself(facts):
    """Is the site's network known as one that the library serves without a plugin?"""
    site = facts.site or {}
    kind = site.get("hardware", {}).get("nic", {}).get("kind", "")
    return kind.startswith("InfiniBand") and not site.get("plugin")


def why_sockets(facts, log):
    name, hca = library_name(facts, log), network_setting(facts, log, "NCCL_IB_HCA")
    of_site = site_value(facts, "NCCL_IB_HCA", None)
    if log.ib_none and hca and hca != of_site and not facts.nics["cxi"]:
        return hca_unknown(facts, hca, ", ".join(facts.ports) or "NCCL found none", name)
    interfaces = ", ".join(logs.ports(log.socket_ports)) or "unknown interfaces"
    why, remedy, names = cause_of_sockets(facts, log)
    return finding("net-sockets", remedy, ccl=name, interfaces=interfaces, why=why, **names)


def cause_of_sockets(facts, log):
    """(why, which remedy, names in it)"""
    if is_named(network_setting(facts, log, "NCCL_NET"), ("Socket",)):
        return "NCCL_NET=Socket asks for it", "unset", {"variable": "NCCL_NET"}
    if network_setting(facts, log, "NCCL_IB_DISABLE") == "1":
        return "NCCL_IB_DISABLE=1 asks for it", "unset", {"variable": "NCCL_IB_DISABLE"}
    if needs_plugin(facts, log):
        missing = network_libraries(log)
        module = (facts.site or {}).get("plugin", {}).get("module")
        why = "the network plugin did not serve it"
        if missing:
            why = f"{missing[-1]} was not found in {facts.search.listed()}"
        return why, "module" if module else "folder", {"module": module}
    why = "no InfiniBand port and no plugin served it"
    if log.ib_none:
        why = "it found no InfiniBand device that it may use (NET/IB: No device found)"
    return why, "infiniband" if serves_itself(facts) else "unknown", {}


def check_no_plugin(facts, log):
    """A plugin was not found, and no other line says over which network the job went."""
    known = (log.network, log.provider, log.plugin_loaded, log.ib_ports, log.socket_ports)
    missing = network_libraries(log)
    if not missing or any(known) or log.no_network or log.no_network_started:
        return
    if serves_itself(facts) and not needs_plugin(facts, log):
        return
    if (log.hosts and not many_hosts(log)) or {f.id for f in check_plugin(facts, log)}:
        return
    name, file = library_name(facts, log), missing[-1]
    yield finding("plugin-none", ccl=name, file=file, **plugin_remedy(facts, file))


def check_interface(facts, log):
    value = log.setting("NCCL_SOCKET_IFNAME") or facts.env.get("NCCL_SOCKET_IFNAME")
    why = None
    if log.no_interface and value:
        why = "leaves no interface of a node"
    elif "lo" in log.bootstrap and many_hosts(log):
        why, value = "names the loopback, which reaches no other node", value or "lo"
    if why:
        wanted = interface_wanted(facts)
        name = library_name(facts, log)
        yield finding("net-interface-wrong", value=value, why=why, ccl=name, wanted=wanted)


def check_driver(facts, log):
    name = library_name(facts, log)
    if log.driver_insufficient and not log.ccl_cuda:
        yield finding("driver-insufficient")
    if log.driver_call:
        yield finding("driver-call")
    for _, own, cuda in log.ccl_cuda[:1]:
        major = int(cuda.split(".")[0])
        seen = [int(number) for number in log.cuda_driver]
        if log.driver_insufficient or any(number // 1000 < major for number in seen):
            at = seen[0] if seen else 0
            driver = f"one for CUDA {at // 1000}.{at % 1000 // 10}" if at else "older"
            least = OLDEST_DRIVER.get(major, "a newer one")
            yield finding("driver-old", ccl=f"{name} {own}", cuda=cuda, least=least, driver=driver)


def check_preload(_facts, log):
    """What the loader says of LD_PRELOAD; old ones give no reason."""
    for told in log.preload_refused[:1]:
        file, reason = (told, None) if isinstance(told, str) else told
        if reason is None or reason.startswith("cannot open"):
            why = "which is not there on a node of the job"
        else:
            why = f"which cannot be loaded ({reason})"
        yield finding("preload-missing", file=file, why=why)


def check_launcher(facts, log):
    if len(log.alone) > 1:
        what = f"{len(log.alone)} processes each say that they are rank 0 of 1"
        library = next(filter(None, log.alone), None)
        yield finding("mpi-other-launcher", what=what + (f" ({library})" if library else ""))
    if log.no_pmi:
        yield finding("mpi-no-pmi", what="srun started the program without PMIx or PMI")
    if log.expect_xccl and log.bound and not log.xccl_speaks:
        what = "no line of xccl's is in the log of the job, though XCCL_LOG=info"
        yield finding("preload-lost", who="xccl-run started the ranks", what=what)


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
        if interface == "lo":  # of one node, or said by check_interface
            continue
        if (
            wanted
            and not wanted.startswith("^")
            and not any(interface.startswith(w) for w in wanted.lstrip("=").split(","))
        ):
            name = library_name(facts, log)
            yield finding("net-bootstrap", ccl=name, interface=interface, wanted=wanted)


def site_interface(facts):
    for variable in (facts.site or {}).get("variables", []):
        if variable["name"] == "NCCL_SOCKET_IFNAME":
            return variable["value"]
    return None


def shared_devices(log):
    return [place for place, processes in sorted(log.devices.items()) if len(processes) > 1]


def check_gpus(facts, log):
    shared = shared_devices(log)
    told = log.duplicate + log.multiple + [f"ranks {ranks}" for ranks in log.same_device]
    told += log.in_turns
    caused = {"gpu-shared", "ranks-over-gpus"} & {name for name, _ in log.run_notes}
    if (told or shared) and not caused:  # else check_run says why
        host, gpu = shared[0] if shared else ("a node", told[0])
        yield finding("gpu-duplicate", host=host, gpu=gpu)
    if told or shared:
        return
    for (first, second), via in log.indirect.items():
        host = log.hosts.get(first)
        if host and host == log.hosts.get(second):
            yield finding("gpu-peer-lost", host=host, via=via)
            return


def check_containers(_facts, log):
    for why in log.apart[:1]:
        yield finding("ranks-apart", why=why)


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
            yield finding("ran-by-mpi", why=why)


def check_limits(facts, log):
    """What the system gave too little of."""
    for line in log.shm_full[-1:]:  # the last one says why
        yield finding("shm-full", ccl=library_name(facts, log), line=line)
    for limit in log.memlock[:1]:
        yield finding("memlock", limit=int(limit) // 1024)


def check_failed(facts, log):
    """The library says that something failed, and no check knows it."""
    for line in log.ccl_failed[:1]:
        yield finding("ccl-said", ccl=library_name(facts, log), line=line.strip())


def check_ucc(facts, log):
    for route in log.ucc_not_loaded[:1]:
        yield finding("ucc-missing", route=route, why="the job did not load libucc")
    for line in log.ucc_not_selected[:1]:
        yield finding("ucc-not-selected", line=line)
    for collective, wanted, used in log.ucc_fallback[:1]:
        yield finding("ucc-fallback", collective=collective, wanted=wanted, used=used)
    if log.ucc_mlx5:
        yield finding("ucc-mlx5")
    wanted = "TL_{}".format((facts.ccl or "nccl").upper())
    used = log.ucc_trace or log.ucc_cuda
    if facts.route == "ucc-ccl" and used and wanted not in used and not log.ucc_fallback:
        yield finding("ucc-other-transport", used=", ".join(used), **transport_remedy(facts))
    elif log.speaks and facts.route in ("ucc", "ucc-ccl"):
        yield from check_ucc_speaks(facts, log, wanted)


def check_ucc_speaks(facts, log, transport):
    """Open MPI that finds no use for UCC does without, and says nothing."""
    if not log.ucc_speaks:
        yield finding("ucc-silent", route=facts.route, who="UCC")
    elif facts.route == "ucc-ccl" and transport not in log.ucc_over_ccl:
        who = f"{transport}, UCC's transport over {ccl_name(facts)}"
        yield finding("ucc-silent", route=facts.route, who=who)


def transport_remedy(facts):
    """What is set already is not advised again."""
    ccl = facts.ccl or "nccl"
    variable = f"UCC_TL_{ccl.upper()}_TUNE"
    for name in UCC_LISTS:
        value = ucc_setting(facts, name)
        if value and hides(value, ccl):
            return {"remedy": "hidden", "variable": name, "value": value, "lower": ccl}
    if "inf" not in ucc_setting(facts, variable):
        return {"remedy": "untuned", "variable": variable, "memory": memory(facts)}
    transport = f"TL_{ccl.upper()}"
    return {"remedy": "tuned", "variable": variable, "transport": transport, "lower": ccl}


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
    nbc = bool(log.signal) and any("nbc" in name for name in log.crash)
    if log.nbc_error or (nbc and log.crash_in_xccl):
        if not log.mixed_memory:  # which names the ranks
            yield finding("mpi-calls-unlike", line=(log.nbc_error or log.signal)[0])
    elif nbc:
        yield finding("nonblocking-on-gpu")
    elif log.signal and log.crash:
        yield finding("crash-at-end")


def check_memory(_facts, log):
    for host, collective, device in log.mixed_memory[:1]:
        yield finding("memory-mixed", host=host, collective=collective, device=device)


def check_run(_facts, log):
    """What xccl-run said itself, in its own words; and ranks that it could not bind."""
    noted = {}
    # xccl-run knows one rank's list of GPUs; where each has its own, the library shows it.
    apart = len(log.devices) > 1 and not shared_devices(log)
    for name, text in log.run_notes:
        if name == "gpu-shared" and apart:
            continue
        if name in TABLE and name not in noted:
            cause, _, remedy = text.partition("; ")
            noted[name] = Finding(
                name, WARNING, cause, remedy or "; or: ".join(remedies(name)), anchor(name)
            )
    yield from noted.values()
    said = [f"[{name}] {text}" for name, text in log.run_notes if name not in TABLE]
    for line in (said + log.xccl_warned)[:1]:
        yield finding("xccl-said", line=line)
    # A simulated GPU has no place, so there is nothing to be bound to.
    ranks = {(host, local) for host, local, _ in log.not_bound}
    if len(ranks) > 1 and not noted and "XCCL_SIM" not in _facts.env:
        yield finding("not-bound", ranks=len(ranks), cores=log.not_bound[0][2])


def check_silent(_facts, log):
    """Nothing can be said of a log in which nothing speaks, unless it says that the job failed."""
    said = log.speaks or log.alone
    if not said and failure(log.text) is None:
        lines = "1 line" if log.lines == 1 else f"{log.lines} lines"
        yield finding("log-silent", lines=lines)


CHECKS = (
    check_silent,
    check_launcher,
    check_preload,
    check_plugin,
    check_no_plugin,
    check_driver,
    check_network,
    check_ports,
    check_gpus,
    check_containers,
    check_ccl,
    check_limits,
    check_ucc,
    check_mpich,
    check_crash,
    check_memory,
    check_run,
    check_failed,
)
