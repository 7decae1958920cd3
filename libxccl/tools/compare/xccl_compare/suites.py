# SPDX-License-Identifier: BSD-3-Clause
"""What is measured: cases (where), variants (how) and series (sizes)."""

from collections import namedtuple

from xccl_common.options import Wrong

from . import command

# nodes, per_node: None is the launcher's own choice. groups: communicators that run at once.
Case = namedtuple("Case", "name nodes per_node groups")
# launcher, run: words for the launcher and for xccl-run. one_node: only in cases of one node.
Variant = namedtuple("Variant", "name title route env launcher one_node")
Series = namedtuple("Series", "name least most factor")
Plan = namedtuple("Plan", "suite title cases variants series colls published")

TITLES = {
    "mpi": "MPI alone",
    "ucc": "MPI with UCC",
    "ucc-ccl": "MPI with UCC over the vendor's library",
    "xccl": "MPI with xccl",
    "vendor": "the vendor's library itself",
}
GB = 10**9
MIB = 1 << 20
SLIDES = [
    "allreduce",
    "bcast",
    "reduce",
    "reduce_scatter",
    "allgather",
    "alltoall",
    "gather",
    "scatter",
]


def variant(name, title=None, *, route=None, env=None, launcher=(), one_node=False):
    return Variant(name, title or TITLES[name], route or name, env or {}, list(launcher), one_node)


def shapes(*pairs):
    return [Case(f"{nodes}x{per}", nodes, per, None) for nodes, per in pairs]


def juwels(given, per_node):
    """JSC's blog of 2022: three variants, 2 to 16 GPUs, at 1 GB and over sizes."""
    return Plan(
        "juwels-2022",
        "MPI, UCC and NCCL on JUWELS Booster",
        shapes((1, 2), (1, 4), (2, 2), (2, 4), (3, 4), (4, 4)),
        [variant(name) for name in command.ROUTES],
        [Series("1gb", GB, GB, 2.0), Series("sizes", 8, 1 << 30, 8.0)],
        ["allreduce"],
        "juwels-2022",
    )


def crusher(given, per_node):
    """With and without the network plugin, with and without Slurm's binding, 1 to 32 nodes."""
    free, closest = ["--gpu-bind=none"], ["--gpu-bind=closest"]
    variants = [variant("mpi", launcher=free)]
    for name in ("vendor", "xccl"):
        unplugged, bound = f"{TITLES[name]}, without plugin", f"{TITLES[name]}, bound by Slurm"
        sockets = {"NCCL_NET": "Socket"}
        variants += [
            variant(name, launcher=free),
            variant(f"{name}-sockets", unplugged, route=name, env=sockets, launcher=free),
            variant(f"{name}-closest", bound, route=name, launcher=closest, one_node=True),
        ]
    return Plan(
        "crusher-2023",
        "RCCL allreduce on Crusher and Frontier",
        shapes(*((nodes, per_node) for nodes in (1, 2, 4, 8, 16, 32))),
        variants,
        [Series("32mib", 32 * MIB, 32 * MIB, 2.0)],
        ["allreduce"],
        "crusher-2023",
    )


def splits(given, per_node):
    """Communicators of pairs, alone and at once, of neighbours and of others."""
    n = per_node
    if n < 4 or n % 2:
        raise Wrong(
            f"suite splits needs an even number of ranks from 4, not {n}: --ranks-per-node"
        )
    half, last = n // 2, n - 1
    odd_last = "/".join(str(i) for i in [*range(0, n, 2), *range(1, n, 2)])
    groups = [
        ("pair", "0/1"),
        ("pairs", "0/1+2/3"),
        ("all", f"0-{last}"),
        ("pair-far", f"0/{half}"),
        ("pairs-far", f"0/{half}+1/{half + 1}"),
        ("all-permuted", odd_last),
    ]
    return Plan(
        "splits",
        "Splitting communicators",
        [Case(name, 1, n, text) for name, text in groups],
        [variant(name) for name in ("mpi", "xccl", "vendor")],
        [Series("sizes", 8, 64 * MIB, 8.0)],
        ["allreduce"],
        "splits",
    )


def hybrid(given, per_node):
    """MPI alone, the vendor's library for every size, both by size, and the table in force."""
    pure = {"XCCL_TUNE": "*:*:*:*:ccl"}
    slides = {"XCCL_TUNE": "*:0-1k:*:*:mpi#*:1k-inf:*:*:ccl"}  # where the slides found MPI faster
    return Plan(
        "hybrid",
        "MPI-xCCL: pure and hybrid",
        [Case("job", None, None, None)],
        [
            variant("mpi"),
            variant("pure", "xccl, the vendor's library for all", route="xccl", env=pure),
            variant("hybrid", "xccl, MPI below 1 KiB", route="xccl", env=slides),
            variant("xccl", "xccl, the table in force"),
            variant("vendor"),
        ],
        [Series("sizes", 4, 64 * MIB, 4.0)],
        SLIDES,
        "hybrid",
    )


SUITES = {"juwels-2022": juwels, "crusher-2023": crusher, "splits": splits, "hybrid": hybrid}


def plain(given):
    return Plan(
        None,
        "routes",
        [Case("job", None, None, None)],
        [variant(name) for name in command.ROUTES],
        [Series("sizes", 8, 64 * MIB, 4.0)],
        ["allreduce"],
        None,
    )


def series_of(given, planned):
    """The sizes that were asked for in place of the plan's."""
    if not {"--min", "--max", "--factor"} & set(given):
        return planned
    last = planned[-1]
    least, most = given.get("--min", last.least), given.get("--max", last.most)
    if "--max" in given and "--min" not in given:
        least = min(least, most)
    if "--min" in given and "--max" not in given:
        most = max(least, most)
    return [Series("sizes", least, most, given.get("--factor", last.factor))]


def make(given, per_node):
    """The plan that the options ask for."""
    name = given.get("--suite")
    plan = SUITES[name](given, per_node) if name else plain(given)
    routes = given.get("--routes")
    variants = [v for v in plan.variants if routes is None or v.route in routes]
    if not variants:
        raise Wrong(f"suite {name} has no variant on these routes: {', '.join(routes)}")
    if given.get("--with") == "osu" and any(case.groups for case in plan.cases):
        raise Wrong(
            f"suite {name} needs xccl-perf: OSU's programs know no communicators but the world's"
        )
    published = given.get("--published", plan.published)
    return plan._replace(
        variants=variants,
        series=series_of(given, plan.series),
        colls=given.get("--coll", plan.colls),
        published=None if published == "none" else published,
    )
