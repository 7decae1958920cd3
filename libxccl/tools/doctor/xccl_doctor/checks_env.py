# SPDX-License-Identifier: BSD-3-Clause
"""Findings that the environment and the job's shape show. Every check: facts to findings."""

import re

from xccl_common import ucc
from xccl_common.launchers import NAMES as NAMES_OF_MPI
from xccl_common.launchers import in_slurm_step

from .checks_launch import in_rank
from .registry import finding

ACCELERATOR_PRIORITY = 78


def on(facts, name, default=""):
    return facts.env.get(name, default) in ("1", "y", "yes", "true", "on")


def to_int(text, default=None):
    found = re.match(r"^\d+$", text or "")
    return int(text) if found else default


def uses_ccl(facts):
    return facts.route in ("xccl", "ucc-ccl") and facts.ccl in ("nccl", "rccl")


NAMES = {
    "nccl": "NCCL",
    "rccl": "RCCL",
    "msccl": "MSCCL",
    "mscclpp": "MSCCL++",
    "oneccl": "oneCCL",
    "hccl": "HCCL",
}


def ccl_name(facts):
    return NAMES.get(facts.ccl, "the vendor's library")


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
    family = facts.app_family or ucc.mpi_family(facts)
    if family == "mpich":
        yield finding("ucc-other-mpi", route=facts.route, mpi=NAMES_OF_MPI[family])
        return
    if facts.lister_without_ucc is not None:
        why = f"{facts.lister_without_ucc} lists no ucc"
        yield finding("ucc-missing", route=facts.route, why=why)
        return
    if not enabled:
        yield finding("ucc-disabled", route=facts.route)
        return
    priority = to_int(env.get("OMPI_MCA_coll_ucc_priority"), 10)
    if priority <= ACCELERATOR_PRIORITY:
        yield finding("ucc-priority", priority=priority)
    if facts.route == "ucc-ccl" and facts.ccl in ("nccl", "rccl"):
        variable = f"UCC_TL_{facts.ccl.upper()}_TUNE"
        if "inf" not in ucc_setting(facts, variable):
            yield finding(
                "ucc-not-tuned", variable=variable, ccl=ccl_name(facts), memory=memory(facts)
            )
        yield from check_ucc_transports(facts)


UCC_LISTS = ("UCC_CL_BASIC_TLS", "UCC_TLS")


def ucc_setting(facts, name):
    """The environment beats the file that UCC reads."""
    settings = facts.ucc.settings if facts.ucc else {}
    return facts.env.get(name, settings.get(name, ""))


def check_ucc_transports(facts):
    for variable in UCC_LISTS:
        value = facts.env.get(variable)
        if value and hides(value, facts.ccl):
            yield finding(
                "ucc-tls-without-ccl",
                variable=variable,
                value=value,
                ccl=ccl_name(facts),
                lower=facts.ccl,
            )


def hides(setting, ccl):
    """ "^a,b" leaves a and b out, "a,b" takes nothing else."""
    listed = setting.lstrip("^").split(",")
    return (ccl in listed) if setting.startswith("^") else not {ccl, "all"} & set(listed)


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


SET_BY_SLURM = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
VISIBILITY = {
    "amd": ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"),
    "nvidia": ("CUDA_VISIBLE_DEVICES",),
}


def check_invisible(facts):
    """Such a list ends at what is no GPU: one that begins with that names none."""
    for name in VISIBILITY.get(facts.vendor, ()):
        value = facts.env.get(name)
        first = (value or "").split(",")[0]
        place = to_int(first, -1)
        known = first.startswith(("GPU-", "MIG-")) or 0 <= place < len(facts.gpus)
        if value is not None and facts.gpus and not known:
            yield finding("gpu-invisible", variable=name, value=value, gpus=len(facts.gpus))
            return


def visible_gpus(facts):
    """(the variable that leaves fewest, how many it leaves); None and all without any."""
    counts = [(len(facts.gpus), None)]
    for name in VISIBILITY.get(facts.vendor, ()):
        listed = [x for x in facts.env.get(name, "").split(",") if x]
        if listed and len(listed) < counts[0][0]:
            counts.insert(0, (len(listed), name))
    return counts[0][1], counts[0][0]


def gpus_of(facts, env):
    """The GPUs that a rank with this environment sees: numbers on the node, or names as written."""
    seen = list(range(len(facts.gpus)))
    for name in VISIBILITY.get(facts.vendor, ()):
        listed = [x for x in env.get(name, "").split(",") if x]
        places = [(seen[int(x)] if to_int(x, len(seen)) < len(seen) else x) for x in listed]
        seen = places or seen
    return seen


def gpus_of_ranks(facts):
    """How many GPUs this process and the other ranks see together, of so many ranks."""
    ranks = [facts.env, *facts.neighbours.values()]
    return len({gpu for env in ranks for gpu in gpus_of(facts, env)}), len(ranks)


def check_sharing(facts):
    env, ranks, gpus = facts.env, facts.ranks_per_node, len(facts.gpus)
    variable, visible = visible_gpus(facts)
    job = to_int(env.get("SLURM_GPUS_ON_NODE"), 0)
    binding = env.get("SLURM_GPU_BIND", "") + env.get("SLURM_GPUS_PER_TASK", "")
    if not ranks or not gpus or ranks < 2:
        return
    # Seen from a job script: what srun is going to do with the tasks.
    narrowed = ("none" not in binding) and bool(binding)
    if narrowed or visible < job:
        seen = to_int(env.get("SLURM_GPUS_PER_TASK"), visible if visible < job else 1)
        by_slurm = variable is None or variable in SET_BY_SLURM
        if seen < (job or gpus) and by_slurm:
            yield finding("gpu-hidden", visible=seen, job=job or gpus)
            return
    if ranks > gpus:
        mps = ""
        if "CUDA_MPS_PIPE_DIRECTORY" in env:
            mps = ", shared under MPS by kernels of xccl's own (up to 8 ranks of a node)"
        yield finding("ranks-over-gpus", ranks=ranks, gpus=gpus, mps=mps)
    elif ranks > visible:
        if in_rank(facts):
            # Each rank may have a list of its own, in which device 0 is another GPU.
            visible, ranks = gpus_of_ranks(facts)
            if ranks <= visible:
                return
        yield finding(
            "gpu-shared",
            remedy="ask" if variable is None else "unset",
            ranks=ranks,
            visible=visible,
            variable=variable,
            value=env.get(variable),
        )


def check_slurm(facts):
    env = facts.env
    wanted = to_int(env.get("SLURM_CPUS_PER_TASK"))
    in_step = in_slurm_step(env)
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
        and in_slurm_step(env)
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


# What makes each launch wait for its end, and the values that do not.
LAUNCH_BLOCKING = {
    "nvidia": ("CUDA_LAUNCH_BLOCKING",),
    "amd": ("HIP_LAUNCH_BLOCKING", "AMD_SERIALIZE_KERNEL"),
}


def check_blocking(facts):
    for name in LAUNCH_BLOCKING.get(facts.vendor, ()):
        value = facts.env.get(name, "")
        if value not in ("", "0"):
            yield finding("launch-blocking", variable=name, value=value)


def check_start(facts):
    env = facts.env
    if env.get("CUDA_MODULE_LOADING") == "EAGER" and uses_ccl(facts) and facts.vendor == "nvidia":
        yield finding("cuda-eager")


CHECKS = (
    check_ucc,
    check_visibility,
    check_invisible,
    check_sharing,
    check_slurm,
    check_mpich,
    check_blocking,
    check_start,
)
