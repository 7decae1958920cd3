# SPDX-License-Identifier: BSD-3-Clause
"""Pack what EasyBuild installed, to be unpacked at the same place of another machine.

pack.py PREFIX MODULES TARGET.tar.xz [MODULE ...]: the modules are loaded in this order; what they load comes along.

PREFIX/env-TARGET.sh sets what the modules set, for a machine without Lmod. Headers and programs stay; archives,
documentation and what the machine must have itself (CUDA, NCCL) do not. Libraries of this operating system that another
may lack lie in oslib, last on the library path.
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

LMOD = "/usr/share/lmod/lmod/init/bash"
# The other machine's own: its driver decides which NCCL it has, and nothing of CUDA is needed but the runtime.
LEFT_OUT = {"CUDA", "NCCL", "GCCcore", "GCC"}
RUNTIME = re.compile(r"libcudart\.so\.\d+$")
JUNK = shutil.ignore_patterns("*.a", "*.la", "man", "doc", "easybuild", "hwloc-dump*")
# Of the operating system's libraries those that a machine without InfiniBand may lack. The rest it has itself, and an
# older copy would be in the way of its own programs.
TAKEN = re.compile(r"lib(efa|ibverbs|mlx[45]|nl-3|nl-route-3|numa|rdmacm)\.so")
SET = re.compile(r"^declare -x (\w+)=\"(.*)\"$")
OWN = re.compile(
    r"^(LMOD|_LM|__LMOD|_ModuleTable|MODULE|LOADEDMODULES|SHLVL|PWD|OLDPWD|_$|BASH|EBDEVEL|MANPATH)"
)


def variables(modules, names):
    """{variable: value} in a clean shell that has loaded these modules."""
    script = f"set -e; . {LMOD}; module use {modules}; {' '.join(f'module load {n};' for n in names)} declare -x"
    clean = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}
    command = ["bash", "--noprofile", "--norc", "-c", script]
    text = subprocess.run(command, env=clean, capture_output=True, text=True, check=True).stdout
    found = dict(match.groups() for match in map(SET.match, text.splitlines()) if match)
    return {
        name: value
        for name, value in found.items()
        if not OWN.match(name) and clean.get(name) != value
    }


def software(prefix, values):
    """Folders below PREFIX/software that the variables name, without those that are left out."""
    found = set(re.findall(re.escape(str(prefix)) + r"/software/[^/:]+/[^/:]+", ":".join(values)))
    return sorted(Path(f) for f in found if Path(f).parent.name not in LEFT_OUT)


def render(found, prefix):
    """Lines for any POSIX shell: lists are put in front of what is there, the rest is set."""
    lines = ["# What the modules set; made by ci/gpu-chain. To be sourced."]
    for name, value in sorted(found.items()):
        parts = [p for p in value.split(":") if p not in ("/usr/bin", "/bin")]
        parts = [p for p in parts if not any(f"/software/{left}/" in p for left in LEFT_OUT)]
        if not parts or not ":".join(parts):
            continue
        text = ":".join(parts)
        is_list = name.endswith("PATH") and name != "EB_UCC_EXTRA_COMPONENT_PATH"
        lines.append(f"export {name}='{text}'" + (f'"${{{name}:+:${name}}}"' if is_list else ""))
    lines.append(f'export LD_LIBRARY_PATH="$LD_LIBRARY_PATH:{prefix}/oslib"')
    return "\n".join(lines) + "\n"


def is_elf(path):
    with open(path, "rb") as f:
        return f.read(4) == b"\x7fELF"


def elf_files(folder):
    return [p for p in folder.rglob("*") if p.is_file() and not p.is_symlink() and is_elf(p)]


def libraries(files):
    """{name: path} of the operating system's libraries that these files need, and of CUDA's runtime."""
    out = {}
    for path in files:
        text = subprocess.run(["ldd", path], capture_output=True, text=True, check=False).stdout
        for name, where in re.findall(r"(\S+) => (/\S+)", text):
            if RUNTIME.match(name) or TAKEN.match(name):
                out[name] = Path(where)
    return out


def needs(path, name):
    text = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=False)
    return f"Shared library: [{name}]" in text.stdout


def forward(stub, folder):
    """A libcuda.so that loads libcuda.so.1, which @p stub stands for: drivers are installed without the short name, and
    EasyBuild's Open MPI is linked to that."""
    options = ["-shared", "-nostdlib", "-Wl,--no-as-needed", "-Wl,-soname,libcuda.so"]
    subprocess.run(["gcc", *options, "-o", folder / "libcuda.so", stub], check=True)


def stage(prefix, folders, target):
    for folder in folders:
        shutil.copytree(folder, target / folder.relative_to("/"), symlinks=True, ignore=JUNK)
    files = elf_files(target)
    oslib = target / prefix.relative_to("/") / "oslib"
    oslib.mkdir(parents=True)
    installed = [f for folder in folders for f in elf_files(folder)]
    for name, path in sorted(libraries(installed).items()):
        shutil.copy(path.resolve(), oslib / name)
    if any(needs(path, "libcuda.so") for path in files):
        forward(next(prefix.glob("software/CUDA/*/lib/stubs/libcuda.so")), oslib)
    for path in files:
        mode = os.stat(path).st_mode
        path.chmod(mode | 0o200)
        subprocess.run(["strip", "--strip-unneeded", path], stderr=subprocess.DEVNULL, check=False)
        path.chmod(mode)


def main():
    prefix, modules, packed, *names = sys.argv[1:]
    prefix = Path(prefix)
    name = Path(packed).name.split(".")[0]
    found = variables(modules, names)
    folders = software(prefix, found.values())
    with tempfile.TemporaryDirectory() as scratch:
        target = Path(scratch)
        stage(prefix, folders, target)
        (target / prefix.relative_to("/") / f"env-{name}.sh").write_text(render(found, prefix))
        with tarfile.open(packed, "w:xz") as archive:
            archive.add(target / prefix.relative_to("/"), str(prefix.relative_to("/")))
    print(
        f". {prefix}/env-{name}.sh\n{packed}: {os.path.getsize(packed) / 1e6:.1f} MB, {len(folders)} packages"
    )


if __name__ == "__main__":
    main()
