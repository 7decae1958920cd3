# SPDX-License-Identifier: BSD-3-Clause
"""One environment: the Lmod module, the sourced script, EasyBuild's module and `spack load` set the same variables."""

import easybuild_sandbox as sandbox
import pytest

# Bookkeeping of shells, of Lmod and of the script.
BOOKKEEPING = (
    "_",
    "BASH_FUNC",
    "LMOD_",
    "LOADEDMODULES",
    "MODULEPATH",
    "MODULESHOME",
    "SHLVL",
    "PWD",
)
# What a packager adds to every package, whatever it is; nothing of xccl reads it.
PACKAGERS_OWN = {
    "lmod": set(),
    "script": set(),
    "easybuild": {"CPATH", "EBDEVELXCCL", "EBROOTXCCL", "EBVERSIONXCCL", "LIBRARY_PATH", "MANPATH",
                  "XDG_DATA_DIRS"},
    # `spack load` loads Open MPI too, whose recipe names its compiler wrappers.
    "spack": {"ACLOCAL_PATH", "MANPATH", "SPACK_LOADED_HASHES", "MPICC", "MPICXX", "MPIF77", "MPIF90",
              "MPIFC"},
}  # fmt: skip
PATHS = ("CMAKE_PREFIX_PATH", "LD_LIBRARY_PATH", "PATH", "PKG_CONFIG_PATH")
CHOICES = [
    ("sim", "xccl"),
    ("sim", "mpi"),
    ("sim", "ucc"),
    ("sim", "ucc-ccl"),
    ("juwels-booster", "ucc-ccl"),
    ("dgx-h100", "xccl"),
]


def stand_ins(*names):
    """A command that loads empty modules, for what the modules of a site ask to be loaded."""
    tree = sandbox.folder() / "stand-ins"
    for name in ("NCCL", "OpenMPI"):
        (tree / name).mkdir(parents=True, exist_ok=True)
        (tree / name / "1.lua").write_text("-- stands for the site's own\n")
    return f"module use {tree}; module load {' '.join(names)}"


def changes(before, script, prefix, **environment):
    """{variable: value} that @p script sets or changes; the installation's prefix is written @."""
    kept = [sandbox.folder() / name for name in ("before", "after")]
    script = f"{before}\nenv -0 >{kept[0]}\n{script}\nstatus=$?\nenv -0 >{kept[1]}\nexit $status"
    status, output = sandbox.shell(script, **environment)
    assert status == 0, output
    old, new = (
        dict(entry.split("=", 1) for entry in file.read_text().split("\0") if "=" in entry)
        for file in kept
    )
    assert "PATH" in old and "PATH" in new, output
    return {
        name: value.replace(str(prefix), "@")
        for name, value in new.items()
        if old.get(name) != value and not name.startswith(BOOKKEEPING)
    }


def of_lmod(request, environment):
    missing = f"Lmod is not installed (no {sandbox.LMOD_INIT}): apt install lmod"
    there = sandbox.LMOD_INIT.exists()
    request.getfixturevalue("need")("" if there else missing, "XCCL_REQUIRE_LMOD")
    prefix = request.getfixturevalue("plain")
    tree = prefix / "share" / "xccl" / "modulefiles"
    before = f"{stand_ins('OpenMPI', 'NCCL')}; module use {tree}"
    return changes(before, "module load xccl", prefix, **environment)


def of_script(request, environment):
    prefix = request.getfixturevalue("plain")
    return changes("", f". {prefix}/share/xccl/env/xccl.sh", prefix, **environment)


def of_easybuild(request, environment):
    core = request.getfixturevalue("easybuild").install()
    prefix = next(core.parents[2].glob("software/xccl/*"))
    before = f"{stand_ins('NCCL')}; module use {core}; module load gompi/system"
    return changes(before, "module load xccl", prefix, **environment)


def of_spack(request, environment):
    spack = request.getfixturevalue("spack")
    path = spack.install()
    prefix = spack.with_mpi("-e", path, "location", "-i", "xccl").split()[-1]
    script = spack.with_mpi("-e", path, "load", "--sh", "xccl", **environment)
    return changes("", script, prefix, **environment)


WAYS = {"script": of_script, "easybuild": of_easybuild, "spack": of_spack}


def entries(value):
    """Folders of the installation in a search path, each once."""
    return list(dict.fromkeys(entry for entry in value.split(":") if entry.startswith("@")))


@pytest.mark.parametrize("way", sorted(WAYS))
@pytest.mark.parametrize(("site", "route"), CHOICES)
def test_same_variables(request, way, site, route):
    environment = {"XCCL_SITE": site, "XCCL_ROUTE": route}
    wanted = of_lmod(request, {"XCCL_SITE": site, "XCCL_ROUTE": route})
    found = WAYS[way](request, environment)
    for name in PATHS:
        assert entries(found.pop(name)) == entries(wanted.pop(name)), name
    for own in PACKAGERS_OWN[way]:
        found.pop(own, None)
    assert found == wanted


def test_the_reference_says_something(request):
    """The comparison is of real content: site, route and the variables of the route are in it."""
    wanted = of_lmod(request, {})
    assert wanted["XCCL_ROOT"] == "@"
    assert (wanted["XCCL_SITE"], wanted["XCCL_ROUTE"]) == ("sim", "xccl")
    assert wanted["OMPI_MCA_coll_ucc_enable"] == "0"
    assert entries(wanted["PATH"]) == ["@/bin"]


def test_without_lmod(request, monkeypatch, tmp_path):
    """A stage that installed it does not skip all of the above."""
    monkeypatch.setattr(sandbox, "LMOD_INIT", tmp_path / "none")
    for value, end in (("0", pytest.skip.Exception), ("1", pytest.fail.Exception)):
        monkeypatch.setenv("XCCL_REQUIRE_LMOD", value)
        with pytest.raises((pytest.skip.Exception, pytest.fail.Exception)) as ended:
            of_lmod(request, {})
        assert ended.type is end and "Lmod is not installed" in str(ended.value)
