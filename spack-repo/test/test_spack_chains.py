# SPDX-License-Identifier: BSD-3-Clause
"""Each chain concretizes once, to what its site demands; asserted on the lock file. Nothing here is built."""

import shutil
from pathlib import Path

import pytest

SITES = Path(__file__).resolve().parents[2] / "site-configs"
# Stands for the GCC of Stages/2023: CUDA 11.7 goes with nothing newer, and only its number is used.
OLD_GCC = """packages:
  gcc:
    externals:
    - spec: gcc@11.3.0 languages:='c,c++,fortran'
      prefix: /usr
      extra_attributes:
        compilers: {c: /usr/bin/gcc, cxx: /usr/bin/g++, fortran: /usr/bin/gfortran}
"""


def version(nodes, name):
    return nodes[name]["version"]


def parameters(nodes, name):
    return nodes[name]["parameters"]


@pytest.fixture(scope="module")
def juwels_2023(spack):
    scope = spack.folder() / "old-gcc"
    scope.mkdir()
    (scope / "packages.yaml").write_text(OLD_GCC, encoding="utf-8")
    source = SITES / "juwels-booster" / "spack" / "stages-2023"
    return spack.concretize("juwels-2023", source, scope=scope)


@pytest.fixture(scope="module")
def frontier(spack):
    return spack.concretize("frontier", SITES / "frontier" / "spack")


@pytest.fixture(scope="module")
def rocm_ucx(spack):
    stack = "xccl-stack route=xccl,ucc fabrics=ucx +rocm amdgpu_target=gfx90a"
    return spack.concretize("rocm-ucx", specs=[stack])


@pytest.fixture(scope="module")
def cuda_ofi(spack):
    stack = "xccl-stack fabrics=ofi provider=efa +benchmarks +cuda cuda_arch=90 ^openmpi"
    return spack.concretize("cuda-ofi", specs=[stack])


def test_stages_2023(juwels_2023):
    """The software of the published experiment, number by number, with UCC, UCX and NCCL for the same GPU."""
    for name, wanted in {
        "openmpi": "4.1.4",
        "ucc": "1.1.0",
        "ucx": "1.13.1",
        "nccl": "2.15.1-1",
    }.items():
        assert version(juwels_2023, name) == wanted
    assert version(juwels_2023, "cuda").startswith("11.7")
    assert sorted(parameters(juwels_2023, "openmpi")["fabrics"]) == ["ucc", "ucx"]
    assert parameters(juwels_2023, "openmpi")["cuda"] is True
    assert parameters(juwels_2023, "ucc")["nccl"] is True
    for name in ("openmpi", "ucc", "nccl", "xccl"):
        assert parameters(juwels_2023, name)["cuda"] is True
        assert parameters(juwels_2023, name).get("cuda_arch", ["80"]) == ["80"], name
    ucx = parameters(juwels_2023, "ucx")
    assert all(ucx[name] is True for name in ("cuda", "verbs", "rc", "dc", "mlx5_dv", "cma")), ucx
    assert parameters(juwels_2023, "xccl")["site"] == "juwels-booster"
    assert parameters(juwels_2023, "xccl")["nccl"] is True


def test_frontier(frontier):
    """Cray MPICH, libfabric and ROCm of the machine; only the plugin and xccl are built."""
    for name in ("cray-mpich", "libfabric", "hip", "hsa-rocr-dev", "llvm-amdgpu", "rccl"):
        assert frontier[name].get("external"), f"{name} would be built"
    assert "openmpi" not in frontier and "ucc" not in frontier
    assert version(frontier, "cray-mpich") == "9.1.0"
    assert frontier["cray-mpich"]["external"]["module"][0].startswith("PrgEnv-gnu/")
    assert frontier["rccl"]["external"]["path"] == "/opt/rocm-7.1.1"
    assert parameters(frontier, "rccl")["amdgpu_target"] == ["gfx90a"]
    assert parameters(frontier, "libfabric")["fabrics"] == ["cxi"]
    assert parameters(frontier, "libfabric")["rocm"] is True
    plugin = parameters(frontier, "aws-ofi-nccl")
    assert version(frontier, "aws-ofi-nccl") == "1.19.2"
    assert (plugin["rocm"], plugin["cuda"]) == (True, False)
    assert parameters(frontier, "xccl")["rccl"] is True
    assert parameters(frontier, "xccl")["site"] == "frontier"


def test_rocm_over_ucx(rocm_ucx):
    """Builtin has no such chain: Open MPI, UCC and UCX with ROCm, RCCL for the same GPU."""
    assert parameters(rocm_ucx, "openmpi")["rocm"] is True
    assert sorted(parameters(rocm_ucx, "openmpi")["fabrics"]) == ["ucc", "ucx"]
    assert parameters(rocm_ucx, "ucc")["rccl"] is True
    assert parameters(rocm_ucx, "ucx")["rocm"] is True
    for name in ("openmpi", "ucc", "rccl", "xccl"):
        assert parameters(rocm_ucx, name)["amdgpu_target"] == ["gfx90a"], name


def test_cuda_over_libfabric(cuda_ofi):
    """The plugin and every benchmark on one NCCL, for the GPU that was named."""
    assert parameters(cuda_ofi, "nccl")["cuda_arch"] == ["90"]
    assert parameters(cuda_ofi, "nccl")["fabrics"] == ["auto"]
    for name in ("aws-ofi-nccl", "nccl-tests", "osu-micro-benchmarks", "xccl"):
        assert parameters(cuda_ofi, name)["cuda_arch"] == ["90"], name
    assert parameters(cuda_ofi, "osu-micro-benchmarks")["xccl"] is True
    virtuals = [v for d in cuda_ofi["xccl"]["dependencies"] for v in d["parameters"]["virtuals"]]
    assert {"c", "cxx"} <= set(virtuals), "nvcc compiles host code with a C++ compiler"
    assert "ucc" not in cuda_ofi
    assert "efa" in parameters(cuda_ofi, "libfabric")["fabrics"]
    assert parameters(cuda_ofi, "libfabric")["cuda"] is True
    assert "ofi" in parameters(cuda_ofi, "openmpi")["fabrics"]
    assert parameters(cuda_ofi, "openmpi")["cuda"] is True


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("xccl+cuda", "say for which GPUs"),
        ("xccl-stack +cuda", "say the architecture"),
        ("xccl-stack route=ucc fabrics=ofi +cuda cuda_arch=90", "UCC needs UCX"),
        ("ucc@1.4.4 ^ucx@1.13.1", "1.14"),
        ("aws-ofi-nccl cuda_arch=90 ^libfabric~cuda", r"depends on libfabric\+cuda"),
    ],
)
def test_refused(spack, spec, reason):
    """What cannot work is refused before anything is built, with the reason."""
    with pytest.raises(AssertionError, match=reason):
        spack.here("spec", *spec.split())


def test_every_site_has_a_valid_scope(spack, tmp_path):
    """Spack accepts each rendered file; it refuses a key that it does not know."""
    for folder in sorted({path.parent for path in SITES.glob("*/spack/**/packages.yaml")}):
        for section in ("packages", "toolchains", "modules"):
            spack.here("-C", folder, "config", "get", section)
    bad = tmp_path / "bad"
    shutil.copytree(SITES / "juwels-booster" / "spack", bad)
    text = (
        (bad / "packages.yaml")
        .read_text()
        .replace("packages:\n", "packages:\n  ucx: {requires: [x]}\n")
    )
    (bad / "packages.yaml").write_text(text)
    with pytest.raises(AssertionError, match=r"requires"):
        spack.here("-C", bad, "config", "get", "packages")
