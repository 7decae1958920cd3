# SPDX-License-Identifier: BSD-3-Clause
from spack_repo.builtin.build_systems.bundle import BundlePackage
from spack_repo.builtin.build_systems.cuda import CudaPackage
from spack_repo.builtin.build_systems.rocm import ROCmPackage

from spack.package import *


class XcclStack(BundlePackage, CudaPackage, ROCmPackage):
    """xccl and the chain around it, for one kind of GPU and one network: the MPI, UCC where the
    routes ucc and ucc-ccl are wanted, the vendor's library and its network plugin."""

    homepage = "https://xccl.example.org"

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
        description="Network layer: UCX (InfiniBand, Ethernet) or libfabric (Slingshot, EFA)",
    )
    variant("benchmarks", default=False, description="OSU and the tests of the vendor's library")

    with when("route=xccl"):
        depends_on("xccl+mpi", type="run")
        for _arch in CudaPackage.cuda_arch_values:
            depends_on(
                f"xccl+cuda vendor=nccl cuda_arch={_arch}",
                when=f"+cuda cuda_arch={_arch}",
                type="run",
            )
        for _arch in ROCmPackage.amdgpu_targets:
            depends_on(
                f"xccl+rocm vendor=rccl amdgpu_target={_arch}",
                when=f"+rocm amdgpu_target={_arch}",
                type="run",
            )

    depends_on("mpi", type="run")

    with when("fabrics=ucx"):
        depends_on("openmpi fabrics=ucx", when="~cuda~rocm route=xccl", type="run")
        for _arch in CudaPackage.cuda_arch_values:
            _gpu = f"+cuda cuda_arch={_arch}"
            depends_on(f"openmpi fabrics=ucx {_gpu}", when=_gpu, type="run")
            depends_on(f"ucc+nccl {_gpu}", when=f"route=ucc {_gpu}", type="run")
        for _arch in ROCmPackage.amdgpu_targets:
            _gpu = f"+rocm amdgpu_target={_arch}"
            depends_on(f"openmpi fabrics=ucx {_gpu}", when=_gpu, type="run")
            depends_on(f"ucc+rccl {_gpu}", when=f"route=ucc {_gpu}", type="run")
        depends_on("openmpi fabrics=ucx,ucc", when="route=ucc", type="run")

    with when("fabrics=ofi"):
        for _arch in CudaPackage.cuda_arch_values:
            _gpu = f"+cuda cuda_arch={_arch}"
            depends_on(f"aws-ofi-nccl {_gpu}", when=_gpu, type="run")
        for _arch in ROCmPackage.amdgpu_targets:
            _gpu = f"+rocm amdgpu_target={_arch}"
            depends_on(f"aws-ofi-nccl@1.18: ~cuda {_gpu}", when=_gpu, type="run")
        depends_on("libfabric", type="run")

    with when("+benchmarks"):
        for _arch in CudaPackage.cuda_arch_values:
            _gpu = f"+cuda cuda_arch={_arch}"
            depends_on(f"osu-micro-benchmarks {_gpu}", when=_gpu, type="run")
            depends_on(f"nccl-tests {_gpu}", when=_gpu, type="run")
        for _arch in ROCmPackage.amdgpu_targets:
            _gpu = f"+rocm amdgpu_target={_arch}"
            depends_on(f"osu-micro-benchmarks {_gpu}", when=_gpu, type="run")
            depends_on(f"rccl-tests amdgpu_target={_arch}", when=_gpu, type="run")

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
