# SPDX-License-Identifier: BSD-3-Clause
from spack_repo.builtin.build_systems.bundle import BundlePackage
from spack_repo.builtin.build_systems.cuda import CudaPackage
from spack_repo.builtin.build_systems.rocm import ROCmPackage

from spack.package import *

NVIDIA = [f"+cuda cuda_arch={arch}" for arch in CudaPackage.cuda_arch_values]
AMD = [f"+rocm amdgpu_target={target}" for target in ROCmPackage.amdgpu_targets]


class XcclStack(BundlePackage, CudaPackage, ROCmPackage):
    """xccl and the chain around it, for one kind of GPU and one network: the MPI, UCC where the
    routes ucc and ucc-ccl are wanted, the vendor's library and its network plugin."""

    homepage = "https://xccl.example.org/xccl"

    maintainers("xccl-maintainers")

    version("1.0")

    variant(
        "route",
        default="xccl",
        values=("xccl", "ucc"),
        multi=True,
        description="Chains to install; ucc: Open MPI over UCC, with and without the library",
    )
    variant(
        "fabrics",
        default="ucx",
        values=("ucx", "ofi"),
        multi=False,
        description="Network layer: UCX (InfiniBand, RoCE) or libfabric (Slingshot, EFA)",
    )
    variant(
        "provider",
        default="cxi",
        values=("cxi", "efa", "opx", "psm3", "verbs"),
        multi=False,
        when="fabrics=ofi",
        description="Provider of libfabric: cxi is Slingshot, efa is AWS",
    )
    variant(
        "gdrcopy",
        default=True,
        when="+cuda fabrics=ucx",
        description="UCX with gdrcopy, whose kernel module the nodes need",
    )
    variant("benchmarks", default=False, description="OSU and the tests of the vendor's library")

    depends_on("mpi", type="run")
    with when("route=xccl"):
        depends_on("xccl+mpi", type="run")
        for _gpu in NVIDIA + AMD:
            depends_on(f"xccl {_gpu}", when=_gpu, type="run")

    # The builtin defaults of UCX leave InfiniBand out, and those of Open MPI every network.
    with when("fabrics=ucx"):
        depends_on("openmpi fabrics=ucx", type="run")
        depends_on("ucx+verbs+rc+ud+dc+mlx5_dv+rdmacm+cma+thread_multiple", type="run")
        depends_on("ucx+gdrcopy", when="+gdrcopy", type="run")
        for _gpu in NVIDIA + AMD:
            depends_on(f"openmpi {_gpu}", when=_gpu, type="run")
    with when("route=ucc"):
        depends_on("openmpi fabrics=ucx,ucc", type="run")
        for _gpu in NVIDIA:
            depends_on(f"ucc+nccl {_gpu}", when=_gpu, type="run")
        for _gpu in AMD:
            depends_on(f"ucc+rccl {_gpu}", when=_gpu, type="run")

    with when("fabrics=ofi"):
        depends_on("libfabric", type="run")
        for _provider in ("cxi", "efa", "opx", "psm3", "verbs"):
            depends_on(f"libfabric fabrics={_provider}", when=f"provider={_provider}", type="run")
        # For copies from and to device memory.
        depends_on("libfabric+cuda", when="+cuda", type="run")
        depends_on("libfabric+rocm", when="+rocm", type="run")
        with when("^[virtuals=mpi] openmpi"):
            depends_on("openmpi fabrics=ofi", type="run")
            for _gpu in NVIDIA + AMD:
                depends_on(f"openmpi {_gpu}", when=_gpu, type="run")
        for _gpu in NVIDIA:
            depends_on(f"aws-ofi-nccl {_gpu}", when=_gpu, type="run")
        for _gpu in AMD:
            depends_on(f"libfabric {_gpu}", when=_gpu, type="run")
            depends_on(f"aws-ofi-nccl~cuda {_gpu}", when=_gpu, type="run")

    with when("+benchmarks"):
        for _gpu in NVIDIA + AMD:
            depends_on(f"osu-micro-benchmarks+xccl {_gpu}", when=_gpu, type="run")
        for _gpu in NVIDIA:
            depends_on(f"nccl-tests {_gpu}", when=_gpu, type="run")
        for _target in ROCmPackage.amdgpu_targets:
            depends_on(
                f"rccl-tests amdgpu_target={_target}",
                when=f"+rocm amdgpu_target={_target}",
                type="run",
            )

    conflicts(
        "route=ucc",
        when="fabrics=ofi",
        msg="UCC needs UCX, and this network has libfabric only: use route=xccl",
    )
    conflicts("+cuda", when="+rocm", msg="one of +cuda and +rocm")
    conflicts(
        "cuda_arch=none",
        when="+cuda",
        msg="say the architecture of the GPUs, for example cuda_arch=80",
    )
    conflicts(
        "route=ucc",
        when="~cuda~rocm",
        msg="route=ucc is about GPUs: say +cuda cuda_arch=... or +rocm amdgpu_target=...",
    )
