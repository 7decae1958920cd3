# SPDX-License-Identifier: BSD-3-Clause
from spack_repo.builtin.packages.ucc.package import Ucc as BuiltinUcc

from spack.package import *


class Ucc(BuiltinUcc):
    """UCC as builtin builds it, and what builtin leaves open: the UCX that a version needs, GPU
    support in UCX and RCCL for the same architectures, and nothing guessed by configure."""

    # Stages/2023 of JSC; the digest is that of EasyBuild's UCC-1.1.0 easyconfig.
    version("1.1.0", sha256="74c8ba75037b5bd88cb703e8c8ae55639af3fecfd4428912a433c010c97b4df7")

    variant("verbs", default=False, description="Build TL/MLX5 on InfiniBand verbs")

    # UCP_MEM_MAP_PARAM_FIELD_EXPORTED_MEMH_BUFFER came with UCX 1.14.
    depends_on("ucx@1.11:")
    depends_on("ucx@1.14:", when="@1.4:")
    depends_on("ucx+cuda", when="+cuda")
    depends_on("ucx+rocm", when="+rocm")
    depends_on("rdma-core", when="+verbs")
    for _arch in BuiltinUcc.amdgpu_targets:
        depends_on(f"rccl amdgpu_target={_arch}", when=f"+rccl amdgpu_target={_arch}")

    conflicts(
        "cuda_arch=none",
        when="+nccl",
        msg="say the architecture of the GPUs that NCCL is built for, for example cuda_arch=80",
    )

    def configure_args(self):
        given = super().configure_args()
        # What is not a dependency of the spec is not looked for: an SHARP or verbs of the build
        # machine, or a UCX that HPCX_UCX_DIR points to, must not slip in.
        wanted = [
            f"--with-ucx={self.spec['ucx'].prefix}",
            "--without-sharp",
            "--without-mpi",
            "--without-valgrind",
        ]
        if self.spec.satisfies("+verbs"):
            wanted.append(f"--with-ibverbs={self.spec['rdma-core'].prefix}")
            wanted.append(f"--with-rdmacm={self.spec['rdma-core'].prefix}")
        else:
            wanted += ["--without-ibverbs", "--without-rdmacm"]
        if self.spec.satisfies("~rccl") or "rccl" not in self.spec.variants:
            wanted.append("--without-rccl")
        if "nccl" not in self.spec.variants:
            wanted.append("--without-nccl")
        if self.spec.satisfies("+rocm @1.3:"):
            archs = self.spec.variants["amdgpu_target"].value
            wanted.append("--with-rocm-arch=" + self._offload_arch(archs))
        return given + [argument for argument in wanted if argument not in given]

    @staticmethod
    def _offload_arch(archs):
        return " ".join(f"--offload-arch={arch}" for arch in archs)

    def setup_build_environment(self, env: EnvironmentModifications) -> None:
        super().setup_build_environment(env)
        env.unset("HPCX_UCX_DIR")
