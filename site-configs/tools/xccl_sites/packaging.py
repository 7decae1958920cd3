# SPDX-License-Identifier: BSD-3-Clause
"""What of a site Spack and EasyBuild need: the stack's variants, requirements, externals, module settings."""

from . import model

# Name in a site's software -> package of Spack; what is missing here is not Spack's to choose.
REQUIRED = {
    "Open MPI": "openmpi",
    "UCC": "ucc",
    "UCX": "ucx",
    "NCCL": "nccl",
    "CUDA": "cuda",
    "aws-ofi-nccl": "aws-ofi-nccl",
}
ROCM_PARTS = ("hip", "hsa-rocr-dev", "llvm-amdgpu", "rocm-core")


def provider(site):
    """Spack's package of the site's MPI; None where the site does not fix one."""
    if site["mpi"]["family"] == "openmpi":
        return "openmpi"
    return "cray-mpich" if site["mpi"]["transport"] == "ofi" else None


def gpu_variants(site):
    """'+cuda cuda_arch=80' or '+rocm amdgpu_target=gfx90a'; '' where the site does not fix the GPU."""
    arch = site["hardware"]["gpu"].get("arch", "")
    if arch.startswith("sm_"):
        return f"+cuda cuda_arch={arch[3:]}"
    return f"+rocm amdgpu_target={arch}" if arch.startswith("gfx") else ""


def network(site):
    """'fabrics=ucx', or 'fabrics=ofi' with the provider of libfabric that the network adapters need."""
    if site["mpi"]["transport"] != "ofi":
        return "fabrics=ucx"
    slingshot = site["hardware"]["nic"].get("kind", "").startswith("Slingshot")
    return "fabrics=ofi provider=" + ("cxi" if slingshot else "efa")


def stack(site):
    """Spec of the bundle for @p site; xccl alone where everything around it is simulated."""
    if site["hardware"]["gpu"]["vendor"] == "sim":
        return f"xccl site={site['name']}"
    gpu, refused, fabrics = gpu_variants(site), model.refused(site), network(site)
    routes = "xccl,ucc" if gpu and "ucc" not in refused else "xccl"
    return f"xccl-stack route={routes} {fabrics} {gpu or '~cuda~rocm'} ^xccl site={site['name']}"


def requirements(site, software):
    """[(package, requirement)] that pin what the site runs."""
    versions = software.get("packages", {})
    pinned = [(REQUIRED[name], f"@{versions[name]}") for name in REQUIRED if name in versions]
    if site["mpi"]["family"] == "openmpi" and not any(name == "openmpi" for name, _ in pinned):
        pinned.append(("openmpi", "@4.1.4:"))
    newest = site["hardware"]["gpu"].get("cuda", {}).get("newest")
    if newest and not any(name == "cuda" for name, _ in pinned):
        pinned.append(("cuda", f"@:{newest}"))
    return pinned


def cuda_is_open(site, software):
    """Whether Spack may take a CUDA that is newer than the site's driver runs: neither is known."""
    pinned = [name for name, _ in requirements(site, software)]
    return site["hardware"]["gpu"]["vendor"] == "nvidia" and "cuda" not in pinned


def externals(site, software):
    """[(package, spec, prefix or None, [module])] that the site has and Spack must not build."""
    versions, prefixes, found = software.get("packages", {}), software.get("prefixes", {}), []
    gpu = gpu_variants(site)
    vendor = gpu.split()[0] if gpu else ""
    if "Cray MPICH" in versions:
        spec = f"cray-mpich@{versions['Cray MPICH']} +wrappers {vendor}".rstrip()
        found.append(("cray-mpich", spec, prefixes.get("Cray MPICH"), software["modules"]))
    if "libfabric" in versions:
        version = versions["libfabric"]
        spec = f"libfabric@{version} fabrics=cxi {gpu}".rstrip()
        found.append(("libfabric", spec, f"/opt/cray/libfabric/{version}", []))
    if "ROCm" in versions:
        version = versions["ROCm"]
        for name in ROCM_PARTS:
            variant = " +rocm" if name == "hip" else ""
            found.append((name, f"{name}@{version}{variant}", f"/opt/rocm-{version}", []))
        target = gpu.split()[-1]
        found.append(("rccl", f"rccl@{version} {target}", f"/opt/rocm-{version}", []))
    return found


def pieces(value, width=90):
    """A string of Lua, cut behind each # where it is long."""
    lines = [""]
    for part in value.replace("#", "#\n").split("\n") if len(value) > width else [value]:
        if len(lines[-1] + part) > width:
            lines.append("")
        lines[-1] += part
    quoted = [f'"{line}"' for line in lines if line] or ['""']
    return " ..\n        ".join(quoted)


def values(site, software):
    """Everything the Spack templates ask for."""
    return {
        "software": software,
        "stack": stack(site),
        "mpi": provider(site),
        "requirements": requirements(site, software),
        "externals": externals(site, software),
        "cuda_is_open": cuda_is_open(site, software),
    }


def add(out, routes, site):
    """Add the files of @p site to the renderer's output @p out."""
    for number, software in enumerate(site["software"]):
        folder = f"site-configs/{site['name']}/spack" + (f"/{software['name']}" if number else "")
        given = values(site, software)
        for name in ("packages", "toolchains", "modules", "spack"):
            out.add(f"{folder}/{name}.yaml", f"spack-{name}.yaml.j2", site=site, **given)
    for route in routes["routes"]:
        if route["name"] not in model.refused(site):
            out.add(
                f"easyconfigs/settings/{site['name']}/xccl-settings-{route['name']}.eb",
                "xccl-settings.eb.j2",
                site=site,
                route=route,
                variables=model.route_variables(routes, route, site["ccl"]["library"]),
                shell=model.shell_variables(site),
            )
