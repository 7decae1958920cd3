# SPDX-License-Identifier: BSD-3-Clause
"""Findings that the environment and the job's shape show. Every check: facts to findings."""

import re

from .registry import finding

LIBFABRIC_NAMES = ("AWS Libfabric", "Libfabric", "OFI")
BUILT_IN_NAMES = ("IB", "Socket")
ACCELERATOR_PRIORITY = 78


def on(facts, name, default=""):
    return facts.env.get(name, default) in ("1", "y", "yes", "true", "on")


def to_int(text, default=None):
    found = re.match(r"^\d+$", text or "")
    return int(text) if found else default


def uses_ccl(facts):
    return facts.route in ("xccl", "ucc-ccl") and facts.ccl in ("nccl", "rccl")


def ccl_name(facts):
    return (facts.ccl or "the vendor's library").upper()


def refusal(facts):
    """Why the route cannot work on this site, or None."""
    for refused in (facts.site or {}).get("routes", {}).get("refused", []):
        if refused["route"] == facts.route:
            return refused["reason"]
    if facts.route in ("ucc", "ucc-ccl") and facts.nics["cxi"] and not facts.nics["ib"]:
        return "UCC needs UCX, and Slingshot has libfabric only"
    return None


def over_cxi(facts):
    """Collectives of GPUs go over Slingshot: more than one node, and the ports are there."""
    return (
        bool(facts.nics["cxi"]) and uses_ccl(facts) and facts.nodes != 1 and refusal(facts) is None
    )


def check_ucc(facts):
    env, enabled = facts.env, on(facts, "OMPI_MCA_coll_ucc_enable")
    if facts.route == "xccl" and enabled:
        yield finding("ucc-beside-xccl")
    if facts.route not in ("ucc", "ucc-ccl"):
        return
    reason = refusal(facts)
    if reason is not None:
        yield finding("ucc-on-libfabric", route=facts.route, reason=reason)
        return
    if not enabled:
        yield finding("ucc-disabled", route=facts.route)
        return
    priority = to_int(env.get("OMPI_MCA_coll_ucc_priority"), 10)
    if priority <= ACCELERATOR_PRIORITY:
        yield finding("ucc-priority", priority=priority)
    if facts.route == "ucc-ccl" and facts.ccl in ("nccl", "rccl"):
        variable = f"UCC_TL_{facts.ccl.upper()}_TUNE"
        if "inf" not in env.get(variable, ""):
            yield finding(
                "ucc-not-tuned", variable=variable, ccl=ccl_name(facts), memory=memory(facts)
            )


def memory(facts):
    return "rocm" if facts.ccl == "rccl" else "cuda"


def check_visibility(facts):
    """ROCm only: NVIDIA reads one of them."""
    env = facts.env
    first = env.get("ROCR_VISIBLE_DEVICES")
    if facts.vendor != "amd" or first is None:
        return
    listed = first.split(",")
    for second in ("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"):
        value = env.get(second)
        if value is not None and value.split(",") != [str(i) for i in range(len(listed))]:
            yield finding(
                "visible-double",
                first="ROCR_VISIBLE_DEVICES",
                first_value=first,
                second=second,
                second_value=value,
            )
            return


def check_sharing(facts):
    env, ranks, gpus = facts.env, facts.ranks_per_node, len(facts.gpus)
    variable = "ROCR_VISIBLE_DEVICES" if facts.vendor == "amd" else "CUDA_VISIBLE_DEVICES"
    visible = len([x for x in env.get(variable, "").split(",") if x]) or gpus
    job = to_int(env.get("SLURM_GPUS_ON_NODE"), 0)
    binding = env.get("SLURM_GPU_BIND", "") + env.get("SLURM_GPUS_PER_TASK", "")
    if not ranks or not gpus or ranks < 2:
        return
    # Seen from a job script: what srun is going to do with the tasks.
    narrowed = ("none" not in binding) and bool(binding)
    if narrowed or visible < job:
        seen = to_int(env.get("SLURM_GPUS_PER_TASK"), visible if visible < job else 1)
        if seen < (job or gpus):
            yield finding("gpu-hidden", visible=seen, job=job or gpus)
            return
    if ranks > gpus:
        mps = ", and MPS lets MPI share them" if "CUDA_MPS_PIPE_DIRECTORY" in env else ""
        yield finding("ranks-over-gpus", ranks=ranks, gpus=gpus, mps=mps)
    elif ranks > visible:
        yield finding("gpu-shared", ranks=ranks, visible=visible)


def check_slurm(facts):
    env = facts.env
    wanted = to_int(env.get("SLURM_CPUS_PER_TASK"))
    in_step = "SLURM_STEP_ID" in env
    if wanted and wanted > 1 and not in_step and "SRUN_CPUS_PER_TASK" not in env:
        yield finding("srun-cpus-per-task", value=wanted)
    # Inside of a task that xccl-run has not bound.
    if (
        in_step
        and (facts.ranks_per_node or 1) > 1
        and facts.cores_allowed == facts.cores_online
        and facts.cores_online >= 4
        and "XCCL_LOCAL_DEVICE" not in env
    ):
        yield finding("not-bound", ranks=facts.ranks_per_node, cores=facts.cores)


def check_mpich(facts):
    env = facts.env
    policy = env.get("MPICH_OFI_NIC_POLICY")
    aware = on(facts, "MPICH_GPU_SUPPORT_ENABLED")
    if policy == "GPU" and not aware:
        yield finding("nic-policy", policy=policy, why="MPICH_GPU_SUPPORT_ENABLED is not 1")
    if (
        policy == "NUMA"
        and "SLURM_STEP_ID" in env
        and facts.cores_allowed == facts.cores_online
        and (facts.site or {}).get("hardware", {}).get("node", {}).get("numa", 1) > 1
    ):
        why = f"this rank may run on all cores ({facts.cores}), not on one NUMA domain"
        yield finding("nic-policy", policy=policy, why=why)
    if env.get("MPICH_SMP_SINGLE_COPY_MODE") == "NONE":
        yield finding("single-copy-none")
    cray = env.get("CRAY_MPICH_VERSION")
    if cray and facts.gpus and "MPICH_GPU_SUPPORT_ENABLED" not in env:
        yield finding("mpich-not-gpu-aware")
    if cray and facts.driver and facts.driver >= 580 and version(cray) < (9, 2):
        yield finding("mpich-slow-pointers", mpich=cray, driver=facts.driver)


def version(text):
    return tuple(int(n) for n in re.findall(r"\d+", text or "")[:2])


def check_net_name(facts):
    """NCCL_NET and NCCL_NET_PLUGIN."""
    env = facts.env
    net, plugin = env.get("NCCL_NET"), env.get("NCCL_NET_PLUGIN", "")
    if not net or not uses_ccl(facts):
        return
    if facts.nodes == 1 and facts.nics["cxi"] and net in LIBFABRIC_NAMES:
        # xccl-run replaces it where the site says so.
        if facts.route != "xccl" or not site_decides_net(facts):
            yield finding("net-on-one-node", value=net)
    elif plugin in ("ofi", "libfabric") and net in LIBFABRIC_NAMES:
        why = f"with NCCL_NET_PLUGIN={plugin} the plugin goes by another name"
        yield finding("net-name-unknown", value=net, why=why)
    elif net not in LIBFABRIC_NAMES + BUILT_IN_NAMES and not plugin:
        why = "it is neither built in (IB, Socket) nor a name of aws-ofi-nccl"
        yield finding("net-name-unknown", value=net, why=why)


def site_decides_net(facts):
    variables = (facts.site or {}).get("variables", [])
    return any(v["name"] == "NCCL_NET" and v.get("nodes") == "one" for v in variables)


def given(facts, name, default):
    """A variable's value; where it is not set, default, unless the site is known to do without."""
    site = facts.site
    if name in facts.env:
        return facts.env[name]
    if site and not site["name"].startswith("generic") and site_value(facts, name, None) is None:
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


def check_start(facts):
    env = facts.env
    if env.get("CUDA_MODULE_LOADING") == "EAGER" and uses_ccl(facts) and facts.vendor == "nvidia":
        yield finding("cuda-eager")
    if over_cxi(facts) and "NCCL_SOCKET_IFNAME" not in env:
        value = ",".join(n for n in facts.nics["cxi"] if n.startswith("hsn")) or "hsn0"
        yield finding("net-interface", ccl=ccl_name(facts), value=value)
    cray = env.get("CRAY_LD_LIBRARY_PATH", "").split(":")
    listed = env.get("LD_LIBRARY_PATH", "").split(":")
    lost = [folder for folder in cray if folder and folder not in listed]
    if lost:
        yield finding("cray-old-libraries", folder=lost[0])


CHECKS = (
    check_ucc,
    check_visibility,
    check_sharing,
    check_slurm,
    check_mpich,
    check_net_name,
    check_cxi,
    check_start,
)
