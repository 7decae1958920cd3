# SPDX-License-Identifier: BSD-3-Clause
"""Every site's environment concretizes to that site's network, with each release of spack-packages that the docs name;
asserted on the lock file."""

from pathlib import Path

import pytest
import spack_sandbox
import yaml

TOP = Path(__file__).resolve().parents[2]
SITES = {
    path.parent.name: yaml.safe_load(path.read_text(encoding="utf-8"))
    for path in sorted(TOP.glob("site-configs/*/site.yaml"))
}
SLINGSHOT = [name for name, site in SITES.items() if site["mpi"]["transport"] == "ofi"]
SIMULATED = [name for name, site in SITES.items() if site["hardware"]["gpu"]["vendor"] == "sim"]
UCX = sorted(set(SITES) - {*SLINGSHOT, *SIMULATED})
INFINIBAND = ("verbs", "rc", "ud", "dc", "mlx5_dv", "rdmacm", "cma")


@pytest.fixture(scope="module", params=spack_sandbox.TAGS)
def nodes(request, spack):
    """function(site): the packages of its lock file, by name."""
    folders = {name: TOP / "site-configs" / name / "spack" for name in SITES}
    concretized = spack.concretize_sites(request.param, folders)
    if concretized is None:
        pytest.skip(f"the checkout of spack-packages has no {request.param}: git fetch --tags")

    def of(site):
        assert isinstance(concretized[site], dict), concretized[site]
        return concretized[site]

    return of


def parameters(nodes, name):
    return nodes[name]["parameters"]


def arch(site):
    """(variant, value) that names the GPU of a site; None where the site does not."""
    given = SITES[site]["hardware"]["gpu"].get("arch", "")
    if given.startswith("sm_"):
        return "cuda_arch", given[3:]
    return ("amdgpu_target", given) if given.startswith("gfx") else None


@pytest.mark.parametrize("site", UCX)
def test_infiniband(nodes, site):
    """Open MPI over a UCX that has every transport of InfiniBand, and reaches device memory."""
    found = nodes(site)
    ucx, openmpi = parameters(found, "ucx"), parameters(found, "openmpi")
    assert [name for name in INFINIBAND if not ucx[name]] == []
    assert "rdma-core" in found
    assert "ucx" in openmpi["fabrics"]
    if arch(site) is None:
        return
    gpu = "cuda" if arch(site)[0] == "cuda_arch" else "rocm"
    assert ucx[gpu] and openmpi[gpu] and "ucc" in openmpi["fabrics"]
    assert ucx["gdrcopy"] == (gpu == "cuda")
    assert parameters(found, "ucc")["nccl" if gpu == "cuda" else "rccl"]
    pinned = SITES[site]["software"][0].get("packages", {})
    if "CUDA" in pinned:
        assert found["cuda"]["version"].startswith(pinned["CUDA"] + ".")


@pytest.mark.parametrize("site", SLINGSHOT)
def test_slingshot(nodes, site):
    """The site's Cray MPICH and libfabric with cxi, and the plugin on that libfabric; none of them is built."""
    found = nodes(site)
    assert "external" in found["cray-mpich"] and "external" in found["libfabric"]
    assert "openmpi" not in found and "ucx" not in found
    libfabric = parameters(found, "libfabric")
    assert "cxi" in libfabric["fabrics"]
    gpu = "cuda" if arch(site)[0] == "cuda_arch" else "rocm"
    plugin = found["aws-ofi-nccl"]
    assert libfabric[gpu] and plugin["parameters"][gpu]
    linked = {one["name"]: one["hash"] for one in plugin["dependencies"]}
    assert linked["libfabric"] == found["libfabric"]["hash"]


@pytest.mark.parametrize("site", SIMULATED)
def test_simulated(nodes, site):
    """Nothing of a network is built."""
    found = nodes(site)
    assert not {"ucx", "libfabric", "nccl", "rccl", "cuda"} & set(found)


@pytest.mark.parametrize("site", sorted(SITES))
def test_one_gpu(nodes, site):
    """xccl knows its site, and whatever is built for a GPU is built for that of the site."""
    found = nodes(site)
    assert parameters(found, "xccl")["site"] == site
    if arch(site) is None:
        return
    variant, value = arch(site)
    library = "nccl" if variant == "cuda_arch" else "rccl"
    assert library in found
    for name in ("xccl", library, "ucc", "aws-ofi-nccl"):
        if name in found:
            assert parameters(found, name)[variant] == [value], name
