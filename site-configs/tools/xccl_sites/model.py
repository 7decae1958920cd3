# SPDX-License-Identifier: BSD-3-Clause
"""What is set on which site and route, as plain values that every template shares."""


def tune_list(routes, variable):
    """UCC's TUNE text: every collective of the vendor's transport, for one kind of memory."""
    memory, score = variable["tune"]["memory"], variable["tune"]["score"]
    return "#".join(f"{coll}:{memory}:{score}" for coll in routes["ccl_collectives"])


def route_variables(routes, route, ccl):
    """Variables of @p route where the vendor library is @p ccl."""
    variables = []
    for variable in route["variables"]:
        if variable.get("only", ccl) == ccl:
            value = tune_list(routes, variable) if "tune" in variable else variable["value"]
            variables.append(
                {
                    **variable,
                    "value": value,
                    "from": routes["sources"][variable["source"]]["title"],
                }
            )
    return variables


def _applied(site, scope):
    for variable in site["variables"]:
        if variable.get("apply", "always") == "always" and variable.get("scope", "shell") == scope:
            yield {**variable, "from": site["sources"][variable["source"]]["title"]}


# NCCL takes a leading = in these, so that a user's own value may have one.
NAME_LISTS = ("NCCL_IB_HCA", "NCCL_SOCKET_IFNAME")


def push_function(variable):
    """The Lua function that pushes @p variable; zsh takes a leading = from Lmod only in disguise."""
    equals = variable["value"].startswith("=") or variable["name"] in NAME_LISTS
    return "push_equals" if equals else "pushenv"


def shell_variables(site):
    """Variables that modules and sourced scripts set on @p site, on every route."""
    return list(_applied(site, "shell"))


def launch_variables(site):
    """Variables that xccl-run sets for one launch, on route xccl."""
    return list(_applied(site, "launch"))


# Values that make an MPI blind to device memory.
GPUS_OFF = {
    "MPICH_GPU_SUPPORT_ENABLED": ("0",),
    "MPIR_CVAR_ENABLE_GPU": ("0",),
    "OMPI_MCA_opal_cuda_support": ("0", "false", "no"),
    "OMPI_MCA_accelerator": ("null",),
    "MV2_USE_CUDA": ("0",),
    "MVP_ENABLE_GPU": ("0",),
    "I_MPI_OFFLOAD": ("0",),
}


def switches_gpus_off(variable):
    """Only xccl-run may set it: xccl carries device memory for the programs that it serves, for no other."""
    never = variable.get("apply", "always") == "never"
    return not never and variable["value"] in GPUS_OFF.get(variable["name"], ())


def refused(site):
    """{route: reason} of the routes that cannot work on @p site."""
    return {entry["route"]: entry["reason"] for entry in site.get("routes", {}).get("refused", [])}


def mpi_needs(routes, site):
    """{module: family} of the MPI modules that serve @p site: those it names, else all known."""
    known, family = routes["mpi_modules"], site["mpi"]["family"]
    for need in site.get("requires", []):
        if need["what"] == "MPI":
            return {module: known[module] for module in need["any_of"]}
    return {module: of for module, of in known.items() if family in ("any", of)}


def doctor_command(site):
    """The command line that runs xccl-doctor where it sees the GPUs of a node."""
    if site["hardware"]["gpu"]["vendor"] == "sim":
        return "xccl-doctor"
    wanted = ("--gpus-per-node", "--gres", "--network")
    options = [o for o in site["launch"]["srun"] if o.split("=")[0] in wanted]
    if "count" not in site["hardware"]["gpu"]:
        options.insert(0, "--gpus-per-node=4")
    return " ".join(["srun -N 1 -n 1", *options, "xccl-doctor"])


def plugin_needs(site):
    """[module] of which one has to be loaded before the site's plugin: what is required beside MPI and itself."""
    plugin = site.get("plugin", {}).get("module")
    return [
        module
        for need in site.get("requires", [])
        if need["what"] != "MPI" and need["any_of"] != [plugin]
        for module in need["any_of"]
    ]


def others_settings(sites, site):
    """[other site] that has network settings of its own, which must not stay beside those of @p site."""
    return [s for s in sites if s["name"] != site["name"] and launch_variables(s)]


def detectors(sites, kind):
    """[(site name, value of detect.<kind>)] in the order in which sites are tried."""
    # AMD's driver also serves the graphics of an APU, so its file may stand beside that of an NVIDIA GPU.
    # The generic sites come last: their file is on every machine with such a GPU.
    order = sorted(
        sites,
        key=lambda site: (
            site["name"].startswith("generic-"),
            site["hardware"]["gpu"]["vendor"] == "amd",
        ),
    )
    return [
        (site["name"], site["detect"][kind])
        for site in (order if kind == "exists" else sites)
        if kind in site["detect"]
    ]


def environment_patterns(sites):
    """{variable: [(site name, [glob])]}: XCCL_SIM first, what is asked for beats the place."""
    table = {}
    for name, by_variable in detectors(sites, "environment"):
        for variable, globs in by_variable.items():
            table.setdefault(variable, []).append((name, globs))
    last = "SLURM_CLUSTER_NAME"  # several clusters of a centre may share one Slurm
    order = sorted(table, key=lambda v: (v != "XCCL_SIM", v == last, v))
    return {variable: table[variable] for variable in order}


def file_patterns(sites):
    """{file: [(site name, [glob])]}."""
    table = {}
    for name, by_file in detectors(sites, "files"):
        for file, globs in by_file.items():
            table.setdefault(file, []).append((name, globs))
    return table


def _translate(glob, escape):
    """A shell glob as an anchored pattern of a language that escapes with @p escape."""
    out, i = "^", 0
    while i < len(glob):
        char = glob[i]
        if char == "[":
            end = glob.index("]", i)
            out += glob[i : end + 1]
            i = end
        elif char in "*?":
            out += {"*": ".*", "?": "."}[char]
        else:
            out += char if char.isalnum() or char in "_ " else escape + char
        i += 1
    return out + "$"


def lua_pattern(glob):
    """A shell glob as an anchored Lua pattern."""
    return _translate(glob, "%")


def regex_pattern(glob):
    """A shell glob as an anchored regular expression, for fish's string match."""
    return _translate(glob, "\\")


def case_pattern(glob):
    """A shell glob as a pattern of a POSIX case: a space would end the word."""
    return glob.replace(" ", "\\ ")


def verified_of(site):
    """[(group, verified, source title)] for the documentation."""
    hardware = site["hardware"]
    groups = [
        ("detection", site["detect"]),
        ("node", hardware["node"]),
        ("GPUs", hardware["gpu"]),
        ("network adapters", hardware["nic"]),
    ]
    groups += [
        (f"binding: {what}", hardware["binding"][what]) for what in ("numa", "cores", "nic")
    ]
    groups += [("MPI", site["mpi"]), ("vendor library", site["ccl"]), ("launch", site["launch"])]
    if "plugin" in site:
        groups.append(("network plugin", site["plugin"]))
    return [(name, fact["verified"], site["sources"][fact["source"]]) for name, fact in groups]
