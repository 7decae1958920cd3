# SPDX-License-Identifier: BSD-3-Clause
"""Running `module` under a real Lmod, and what is seen of it."""

import pytest
from site_shells import BY_NAME, LMOD_INIT, difference, read_env, without_lmod
from site_tree import TOP

needs_lmod = pytest.mark.skipif(
    not LMOD_INIT.is_dir(), reason=f"Lmod is not installed (no {LMOD_INIT}): apt install lmod"
)
LMOD = LMOD_INIT.parent / "libexec"
VERSION = (TOP / "libxccl/VERSION").read_text(encoding="utf-8").strip()
# modules that a site demands: name, what it sets
SITE_MODULES = {
    "OpenMPI/5.0.5": {"EBROOTOPENMPI": "/opt/openmpi"},
    "NCCL/2.22.3": {"EBROOTNCCL": "/opt/nccl"},
    "cray-mpich/9.1.0": {"CRAY_MPICH_DIR": "/opt/mpich"},
    "rocm/7.1.1": {"ROCM_PATH": "/opt/rocm"},
    "cudatoolkit/13.0": {"CUDA_HOME": "/opt/cuda"},
    "mpich/4.3": {"MPICH_DIR": "/opt/mpich4"},
    "openmpi/5.0.10": {"OMPI_DIR": "/opt/openmpi5"},
    "empty/1.0": {},
}
OWN = {  # what a user may have set before
    "XCCL_ROOT": "/opt/old",
    "NCCL_IB_HCA": "mlx5_9",
    "OMPI_MCA_coll_ucc_enable": "yes",
    "UCC_TLS": "ucp",
    "NCCL_CROSS_NIC": "2",
    "LD_LIBRARY_PATH": "/x:/y",
    "LD_PRELOAD": "libutil.so.1",
    "MANPATH": "/m",
    "PKG_CONFIG_PATH": "/p",
}


def write_modules(folder, modules):
    for name, variables in modules.items():
        file = folder / f"{name}.lua"
        file.parent.mkdir(parents=True, exist_ok=True)
        text = "".join(f'setenv("{n}", "{v}")\n' for n, v in variables.items())
        file.write_text(text or "-- sets nothing\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def stack(tmp_path_factory):
    """The software that a centre provides."""
    return write_modules(tmp_path_factory.mktemp("stack"), SITE_MODULES)


def needs(sites, site):
    """Modules of the stack that @p site wants loaded before."""
    names = {name.split("/")[0] for name in SITE_MODULES}
    wanted = sites[site].get("requires", [])
    found = [next((m for m in need["any_of"] if m in names), None) for need in wanted]
    return [module for module in found if module]


@pytest.fixture
def lmod(prefix, stack, tmp_path):
    """Run `module` commands: lmod("load xccl", ...) gives (environment after each, process)."""

    def run(*commands, shell="bash", env=None, fail=False, tree=None, extra=()):
        shell = BY_NAME[shell]
        shell.need()
        folders = [stack, *extra, (tree or prefix) / "share/xccl/modulefiles"]
        lines = [*shell.start_lmod(*folders), shell.dump(tmp_path / "0")]
        for i, command in enumerate(commands, 1):
            lines += [command if command.startswith("!") else f"module {command}"]
            lines[-1] = lines[-1].lstrip("!")
            lines += [] if fail is False else [shell.status()]
            lines.append(shell.dump(tmp_path / str(i)))
        done = shell.run(lines, tmp_path, {"XCCL_SITE": "sim", **(env or {})})
        seen = [read_env(tmp_path / str(i)) for i in range(len(commands) + 1)]
        return seen, done

    return run


def loaded(env):
    return [m for m in env.get("LOADEDMODULES", "").split(":") if m]


def left_over(before, after):
    return difference(without_lmod(before), without_lmod(after))


def short(env):
    """The site, route and settings that are loaded, without their release."""
    return sorted(m.rsplit("/", 1)[0] for m in loaded(env) if m.count("/") == 2)


def shown(text):
    """An error of Lmod as one line, to look for sentences that Lmod wraps."""
    return " ".join(text.split())
