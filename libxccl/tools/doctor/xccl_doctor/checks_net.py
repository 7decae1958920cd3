# SPDX-License-Identifier: BSD-3-Clause
"""Findings of the network's variables: NCCL's, libfabric's, and the names of ports and interfaces."""

import fnmatch
import os

from xccl_common.launchers import in_slurm_step
from xccl_common.libraries import holds
from xccl_common.machine import is_loaded

from .checks_env import ccl_name, over_cxi, to_int, uses_ccl
from .registry import finding

LIBFABRIC_NAMES = ("AWS Libfabric", "Libfabric", "OFI")
BUILT_IN_NAMES = ("IB", "Socket")
# Of HPC-X (IBext_v10, UCX-RDMA), and Google's.
OTHER_NAMES = ("ibext*", "ucx*", "gib", "fastrak", "gpudirecttcpx*")


def is_named(value, names):
    """NCCL compares the names of networks without regard to case."""
    return value.lower() in (name.lower() for name in names)


# What is set to try something, and the values that take something away (None: any).
LEFTOVERS = {
    "NCCL_IB_DISABLE": ("1",),
    "NCCL_SHM_DISABLE": ("1",),
    "NCCL_P2P_DISABLE": ("1",),
    "NCCL_P2P_LEVEL": ("LOC", "0"),
    "NCCL_NVLS_ENABLE": ("0",),
    "NCCL_NET_GDR_LEVEL": ("LOC", "0"),
    "NCCL_NET_GDR_READ": ("0",),
    "NCCL_ALGO": None,
    "NCCL_PROTO": None,
    "NCCL_MAX_NCHANNELS": None,
}


def check_net_name(facts):
    """NCCL_NET and NCCL_NET_PLUGIN."""
    env = facts.env
    net, plugin = env.get("NCCL_NET"), env.get("NCCL_NET_PLUGIN", "")
    if not net or not uses_ccl(facts):
        return
    if facts.nodes == 1 and facts.nics["cxi"] and is_named(net, LIBFABRIC_NAMES):
        # xccl-run replaces it where the site says so.
        if facts.route != "xccl" or not site_decides_net(facts):
            yield finding("net-on-one-node", value=net)
    elif renames(plugin, net):
        why = f"with NCCL_NET_PLUGIN={plugin} the plugin goes by another name"
        yield finding("net-name-unknown", value=net, why=why)
    elif not is_named(net, LIBFABRIC_NAMES + BUILT_IN_NAMES) and not plugin:
        yield from check_other_name(facts, net)


def check_other_name(facts, net):
    """Of a plugin that is neither built in nor aws-ofi-nccl; any plugin may have one of its own."""
    if facts.plugin is None:
        why = "it is neither built in (IB, Socket) nor a name of aws-ofi-nccl, and no other plugin was found"
        yield finding("net-name-unknown", value=net, why=why)
        return
    known = any(fnmatch.fnmatch(net.lower(), name) for name in OTHER_NAMES)
    if not known and not holds(facts.plugin.path, net):
        file = facts.plugin.path[len(facts.root) :]
        yield finding("net-name-unsure", value=net, file=file, ccl=ccl_name(facts))


def renames(plugin, net):
    """The plugin goes by another name than net where it is asked for by its new name, even in a path."""
    word = os.path.basename(plugin)
    if word in ("ofi", "libfabric"):
        return is_named(net, LIBFABRIC_NAMES)
    return is_named(net, LIBFABRIC_NAMES[:1]) and word.endswith(
        ("-net-ofi.so", "-net-libfabric.so")
    )


def site_decides_net(facts):
    variables = (facts.site or {}).get("variables", [])
    return any(v["name"] == "NCCL_NET" and v.get("nodes") == "one" for v in variables)


def given(facts, name, default):
    """A variable's value; where it is not set, default, unless the site is known to do without."""
    site = facts.site
    if name in facts.env:
        return facts.env[name]
    module = (site or {}).get("plugin", {}).get("module")
    if module and is_loaded(facts.env, module):
        return None  # the module decides, and a job that loads it has what it sets
    applied = [v["name"] for v in site["variables"] if v.get("apply") != "never"] if site else []
    if site and not site["name"].startswith("generic") and name not in applied:
        return None
    return default


def check_cxi(facts):
    """What libfabric's cxi provider needs under NCCL and RCCL."""
    if not over_cxi(facts):
        return
    env = facts.env
    if given(facts, "FI_MR_CACHE_MONITOR", "memhooks") == "memhooks":
        value = env.get("FI_MR_CACHE_MONITOR", "(not set)")
        wanted = site_value(
            facts, "FI_MR_CACHE_MONITOR", "userfaultfd (kdreg2 where it is loaded)"
        )
        yield finding("mr-cache", value=value, ccl=ccl_name(facts), wanted=wanted)
    if given(facts, "FI_CXI_DISABLE_HOST_REGISTER", "0") == "0":
        yield finding("cxi-host-register")
    yield from check_cxi_queues(facts)
    zero = ("FI_CXI_RDZV_EAGER_SIZE", "FI_CXI_RDZV_THRESHOLD", "FI_CXI_RDZV_GET_MIN")
    wrong = [n for n in zero if n in env and env[n] != "0"]
    if wrong:
        yield finding("cxi-eager", names=", ".join(wrong))
    if (
        env.get("FI_CXI_RDZV_PROTO") == "alt_read"
        and env.get("FI_CXI_RX_MATCH_MODE") != "software"
        and "SLURM_JOB_ID" in env
        and not in_slurm_step(env)  # of srun's own option no variable tells
        and "disable_rdzv_get" not in env.get("SLURM_NETWORK", "")
    ):
        yield finding("cxi-rendezvous")


def check_cxi_queues(facts):
    low = []
    for name, least in (("FI_CXI_DEFAULT_CQ_SIZE", 131072), ("FI_CXI_DEFAULT_TX_SIZE", 2048)):
        value = to_int(given(facts, name, "0"))
        if value is not None and value < least:
            low.append((name, site_value(facts, name, least)))
    if given(facts, "FI_CXI_RX_MATCH_MODE", "hardware") == "hardware":
        wanted = site_value(facts, "FI_CXI_RX_MATCH_MODE", "hybrid")
        low.append(("FI_CXI_RX_MATCH_MODE", wanted))
    if low:
        values = " ".join("{}={}".format(*pair) for pair in low)
        yield finding("cxi-queues", names=", ".join(n for n, _ in low), values=values)


def site_value(facts, name, default):
    for variable in (facts.site or {}).get("variables", []):
        if variable["name"] == name:
            return variable["value"]
    return default


def selects(value, names, prefixes):
    """The names that a value of NCCL's lists leaves: "^a" all but a, "=a" whole names only.

    prefixes: without "=" an entry also stands for names that begin with it.
    """
    but, exact = value.startswith("^"), "=" in value[:2]
    entries = [entry.split(":")[0] for entry in value.lstrip("^=").split(",") if entry]

    def listed(name):
        return any(
            name == entry or (prefixes and not exact and name.startswith(entry))
            for entry in entries
        )

    return [name for name in names if listed(name) != but]


def check_hca(facts):
    value, ports = facts.env.get("NCCL_IB_HCA"), facts.ports
    if value and ports and uses_ccl(facts) and not selects(value, ports, prefixes=True):
        yield hca_unknown(facts, value, ", ".join(ports), ccl_name(facts))


def hca_unknown(facts, value, ports, ccl):
    wanted = site_value(facts, "NCCL_IB_HCA", None)
    key = "site" if wanted else "unset"
    return finding("net-hca-unknown", key, value=value, ports=ports, ccl=ccl, wanted=wanted)


def interface_wanted(facts):
    """The interface to be named instead: the site's, else one of the fast network."""
    for start in ("hsn", "ib"):
        fast = [name for name in facts.interfaces if name.startswith(start)]
        if fast:
            return site_value(facts, "NCCL_SOCKET_IFNAME", ",".join(fast))
    return site_value(facts, "NCCL_SOCKET_IFNAME", "an interface that reaches the other nodes")


def check_interface(facts):
    value = facts.env.get("NCCL_SOCKET_IFNAME")
    if not value or not facts.interfaces or not uses_ccl(facts):
        return
    left = selects(value, facts.interfaces, prefixes=True)
    why = None
    if not left:
        why = "leaves no interface of this machine ({})".format(", ".join(facts.interfaces))
    elif left == ["lo"] and (facts.nodes or 1) > 1:
        why = "names the loopback, which reaches no other node"
    if why:
        wanted = interface_wanted(facts)
        yield finding(
            "net-interface-wrong", value=value, why=why, ccl=ccl_name(facts), wanted=wanted
        )


def check_leftovers(facts):
    if not uses_ccl(facts):
        return
    found = []
    for name, values in LEFTOVERS.items():
        value = facts.env.get(name)
        if not value or (values is not None and value not in values):
            continue
        # The site's own, and what is advised over Slingshot.
        if value == site_value(facts, name, None) or value == "^LL128":
            continue
        found.append((name, value))
    fast = facts.ports or facts.efa or facts.nics["cxi"]
    if is_named(facts.env.get("NCCL_NET", ""), ("Socket",)) and fast and (facts.nodes or 1) > 1:
        found.append(("NCCL_NET", facts.env["NCCL_NET"]))
    if found:
        yield finding(
            "net-leftover",
            settings=" ".join("{}={}".format(*pair) for pair in found),
            names=" ".join(name for name, _ in found),
            ccl=ccl_name(facts),
        )


def check_bootstrap(facts):
    """Slingshot's machines have a management network beside it."""
    if over_cxi(facts) and given(facts, "NCCL_SOCKET_IFNAME", "") == "":
        value = ",".join(n for n in facts.nics["cxi"] if n.startswith("hsn")) or "hsn0"
        yield finding("net-interface", ccl=ccl_name(facts), value=value)


CHECKS = (
    check_net_name,
    check_cxi,
    check_hca,
    check_interface,
    check_leftovers,
    check_bootstrap,
)
