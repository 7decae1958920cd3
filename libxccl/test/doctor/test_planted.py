# SPDX-License-Identifier: BSD-3-Clause
"""Faults that are planted are named with the right advice; what only looks like them is not."""

import struct
from types import SimpleNamespace

import pytest
from planted import FAULTS, env, mpirun
from xccl_common.tool import Tool
from xccl_doctor.main import main

NAMES = [f"{i}-{fault.id}" for i, fault in enumerate(FAULTS)]


def ids(found):
    return [finding["id"] for finding in found["findings"]]


def made_for(world, fault):
    made = world(fault.site)
    if fault.site.startswith("generic"):
        vendor = {"generic-nvidia": "0x10de", "generic-amd": "0x1002"}[fault.site]
        made.file(made.gpu(0) + "/vendor", f"{vendor}\n")
        made.file(made.gpu(0) + "/class", "0x030200\n")
    return made


@pytest.mark.parametrize("fault", FAULTS, ids=NAMES)
def test_a_planted_fault_is_named(doctor, world, fault):
    made = made_for(world, fault)
    fault.broken(made)
    status, found = doctor(made)
    assert ids(found) == [fault.id], found["findings"]
    (finding,) = found["findings"]
    assert status == {"warning": 3, "error": 1}[finding["severity"]]
    assert fault.remedy in finding["remedy"]
    assert "{" not in finding["cause"] + finding["remedy"]


@pytest.mark.parametrize("fault", FAULTS, ids=NAMES)
def test_what_looks_like_it_is_in_order(doctor, world, fault):
    made = made_for(world, fault)
    fault.healthy(made)
    status, found = doctor(made)
    assert (status, ids(found)) == (0, []), found["findings"]


@pytest.mark.parametrize(
    ("needed", "launcher", "wrong"),
    [
        ("libmpi.so.40", "HYDRA build", True),
        ("libmpi.so.12", "HYDRA build", False),
        ("libmpi.so.40", "libopen-rte.so", False),
        ("libmpi.so.12", "libopen-rte.so", True),
    ],
)
def test_a_program_and_the_mpirun_on_path(  # noqa: PLR0917
    doctor, world, compile_library, needed, launcher, wrong
):
    made = world("dgx-a100")
    program = made.root / "app"
    compile_library(program, [needed])
    made.library("libmpi.so.12")
    mpirun(launcher)(made)
    found = doctor(made, "--app", str(program))[1]
    assert ids(found) == (["mpirun-other"] if wrong else [])
    assert f"{program} is built with" in " ".join(found["facts"])


@pytest.mark.parametrize(("size", "started"), [("4", "4 ranks"), ("1", "this rank")])
def test_a_program_inside_the_wrong_launcher(doctor, world, compile_library, size, started):
    made = world("dgx-a100")
    program = made.root / "app"
    compile_library(program, ["libmpi.so.40"])
    env(PMI_SIZE=size, MPI_LOCALNRANKS=size)(made)
    (finding,) = doctor(made, "--app", str(program))[1]["findings"]
    assert finding["id"] == "mpi-other-launcher"
    assert (
        f"mpirun of MPICH started {started}, and {program} is built with Open MPI"
        in finding["cause"]
    )


@pytest.mark.parametrize(
    ("folder", "full", "name", "why"),
    [
        ("tmp", {"f_bfree": 10, "f_bavail": 10}, "tmp-unusable", "/tmp is full (0 MiB are free)"),
        ("tmp", {"f_favail": 0}, "tmp-unusable", "/tmp is full (no more files can be made)"),
        ("dev/shm", {"f_bfree": 999, "f_bavail": 999}, "shm-unusable", "full (4 MiB are free)"),
        ("dev/shm", {"f_files": 0, "f_favail": 0}, None, None),
    ],
)
def test_full_folders(doctor, world, monkeypatch, folder, full, name, why):  # noqa: PLR0917
    """What a file system says that is full, and one that has no limit for files."""
    made = world("dgx-a100")
    for one in ("tmp", "dev/shm"):
        made.file(f"{one}/x")
    much = {"f_frsize": 4096, "f_files": 1 << 20, "f_favail": 1 << 19}
    much.update(f_bfree=1 << 20, f_bavail=1 << 20)
    little = str(made.root / folder)
    monkeypatch.setattr(
        "os.statvfs",
        lambda path: SimpleNamespace(**(dict(much, **full) if path == little else much)),
    )
    found = doctor(made)[1]["findings"]
    assert [finding["id"] for finding in found] == ([name] if name else [])
    assert name is None or why in found[0]["cause"]


def test_run_without_room_for_the_output(world, monkeypatch, capsys):
    made = world("dgx-a100")
    mpirun("libopen-rte.so", "/opt/mpi/bin")(made)
    monkeypatch.setattr("os.environ", made.env)
    refused = FileNotFoundError(2, "No usable temporary directory found in ['/tmp']")
    monkeypatch.setattr("tempfile.mkstemp", lambda **_: (_ for _ in ()).throw(refused))
    words = ["--sysroot", str(made.root), "--run", "--", "/opt/mpi/bin/mpirun"]
    tool = Tool("xccl-doctor", "0", "", str(made.prefix), str(made.prefix / "lib"))
    assert main(words, tool) == 2
    assert (
        "(No usable temporary directory found in ['/tmp']); export TMPDIR="
        in capsys.readouterr().err
    )


def test_tmp_of_another_user(doctor, world, monkeypatch):
    """Only Open MPI makes files there."""
    made = world("dgx-a100")
    made.file("tmp/x")
    refused = str(made.root / "tmp")
    monkeypatch.setattr("os.access", lambda path, _mode: str(path) != refused)
    (finding,) = doctor(made)[1]["findings"]
    assert finding["cause"].startswith("/tmp cannot be written to by this user: ")
    made.library("libmpi.so.12")
    made.remove("opt/lib/libmpi.so.40")
    assert "tmp-unusable" not in ids(doctor(made)[1])


def test_all_that_cannot_be_written(doctor, world, monkeypatch):
    """In one finding; also where the file is there, and is another user's."""
    made = world("dgx-a100")
    made.file("opt/lib/ranks.log")
    env(XCCL_LOG_FILE="/opt/lib/ranks.log", XCCL_DUMP_DIR="/opt", XCCL_PROFILE="/no/p.json")(made)
    refused = [str(made.root / "opt"), str(made.root / "opt/lib/ranks.log")]
    monkeypatch.setattr("os.access", lambda path, _mode: str(path) not in refused)
    (finding,) = doctor(made)[1]["findings"]
    assert finding["id"] == "xccl-unwritable"
    assert finding["cause"].count("read-only, or this user may not write there") == 2
    assert "XCCL_PROFILE=/no/p.json (there is no folder /no), so" in finding["cause"]


def expect_unserved(doctor, made, program, finding, state):
    """Nothing of xccl's reaches its calls of MPI: an error, unless nobody asked for that."""
    status, found = doctor(made, "--app", str(program))
    (only,) = found["findings"]
    assert (status, only["id"]) == (1, finding)
    assert f"an MPI of {program} ({state})" in found["not_there"]
    made.env.update(XCCL_ROUTE="mpi")
    assert ids(doctor(made, "--app", str(program))[1]) == []
    return only["cause"]


@pytest.mark.parametrize("more", [[], ["-static-pie", "-fPIE"]])
def test_a_static_program(doctor, world, compile_static, more):
    made = world("dgx-a100")
    program = made.root / "app"
    compile_static(program, *more)
    cause = expect_unserved(doctor, made, program, "program-static", "it is linked statically")
    assert cause.startswith(f"{program} is linked statically")


def test_a_program_with_mpi_inside(doctor, world, compile_program):
    """It has a loader, and calls MPI's functions of its own all the same."""
    made = world("dgx-a100")
    program = made.root / "app"
    compile_program(program, ["MPI_Init", "PMPI_Init"])
    cause = expect_unserved(doctor, made, program, "program-own-mpi", "it is inside the program")
    assert cause.startswith(f"{program} has an MPI library inside")


@pytest.mark.parametrize(
    ("functions", "options", "inside"),
    [
        (["MPI_Init", "PMPI_Init"], ["-s", "-rdynamic"], True),
        (["PMPI_Init_thread"], [], True),
        (["MPI_Init", "PMPI_Init"], ["-s"], False),
        (["MPI_Init", "MPI_Init_thread"], [], False),  # of a tool: the others are MPI's
        (["MPI_Init", "xPMPI_Init", "PMPI_Initialized"], [], False),
        (["MPI_Init"], ["-DMORE=int PMPI_Init = 1;"], False),
        (["MPI_Init"], ["-no-pie", "-DMORE=int PMPI_Init(void); void *next = PMPI_Init;"], False),
    ],
)
def test_functions_inside(  # noqa: PLR0917
    doctor, world, compile_program, functions, options, inside
):
    made = world("dgx-a100")
    program = made.root / "app"
    compile_program(program, functions, *options)
    found = ids(doctor(made, "--app", str(program))[1])
    assert found == (["program-own-mpi"] if inside else [])


def test_a_program_with_damaged_sections(doctor, world, compile_program):
    """The kernel starts it whatever they say."""
    made = world("dgx-a100")
    program = made.root / "app"
    compile_program(program, ["PMPI_Init"])
    whole = program.read_bytes()
    (sections,) = struct.unpack_from("<Q", whole, 40)
    damaged = [whole[:sections], whole[:-1]]
    damaged += [
        whole[:at] + b"\xff" * 8 + whole[at + 8 :] for at in range(sections, len(whole), 24)
    ]
    for content in damaged:
        program.write_bytes(content)
        assert doctor(made, "--app", str(program))[0] in (0, 1)


@pytest.mark.parametrize(
    ("needed", "more", "wrong"),
    [
        (["libmpi_gnu_123.so.12"], {}, True),
        (["libmpi_gnu_123.so.12", "libmpi_gtl_hsa.so.0"], {}, False),
        (["libmpi_gnu_123.so.12"], {"MPICH_GPU_SUPPORT_ENABLED": "0"}, False),
    ],
)
def test_a_program_without_the_layer_for_gpus(  # noqa: PLR0917
    doctor, world, compile_library, needed, more, wrong
):
    """Cray MPICH ends it in MPI_Init, before there is a log to read."""
    made = world("frontier")
    program = made.root / "app"
    compile_library(program, needed)
    made.env.update(CRAY_MPICH_VERSION="9.1.0", MPICH_GPU_SUPPORT_ENABLED="1")
    made.env.update(more)
    found = doctor(made, "--app", str(program))[1]
    assert ("gtl-missing" in ids(found)) == wrong


@pytest.mark.parametrize("needed", ["libmpi.so.12", "libmpi_abi.so.1"])
def test_a_program_whose_mpi_is_not_found(doctor, world, compile_library, needed):
    made = world("dgx-a100")
    made.write(made.prefix / "lib/xccl/libxccl-mpi-mpiabi.so", "")
    program = made.root / "app"
    compile_library(program, [needed])
    (finding,) = doctor(made, "--app", str(program))[1]["findings"]
    assert finding["id"] == "library-broken"
    assert needed in finding["cause"]


@pytest.mark.parametrize("served", [True, False])
@pytest.mark.parametrize("launcher", ["HYDRA build", "libopen-rte.so"])
def test_a_program_of_the_standard_abi(doctor, world, compile_library, launcher, served):
    """Its library may be any MPI's, so each launcher may be right; xccl may have been built without it."""
    made = world("dgx-a100")
    if served:
        made.write(made.prefix / "lib/xccl/libxccl-mpi-mpiabi.so", "")
    program = made.root / "app"
    compile_library(program, ["libmpi_abi.so.1"])
    made.library("libmpi_abi.so.1")
    mpirun(launcher)(made)
    found = doctor(made, "--app", str(program))[1]
    assert ids(found) == ([] if served else ["interposer-missing"])
    assert f"{program} is built with MPI's standard ABI" in " ".join(found["facts"])


def test_the_standard_abi_beside_another(doctor, world):
    """The MPI found is the other one; a library with the standard ABI alone is none of the site's MPIs."""
    made = world("dgx-a100")
    made.library("libmpi_abi.so.1")
    assert "MPI: openmpi," in " ".join(doctor(made)[1]["facts"])
    made.remove("opt/lib/libmpi.so.40")
    made.write(made.prefix / "lib/xccl/libxccl-mpi-mpiabi.so", "")
    found = doctor(made)[1]
    assert ids(found) == [] and "MPI: mpiabi," in " ".join(found["facts"])


def test_the_launcher_of_run_is_the_one_that_counts(world, monkeypatch, capsys):
    """--run names it; one on PATH is of no interest then."""
    made = world("dgx-a100")
    mpirun("HYDRA build details", "/opt/mpich/bin")(made)
    monkeypatch.setattr("os.environ", {**made.env, "PATH": "/opt/none"})
    words = ["--sysroot", str(made.root), "--timeout", "5", "--run", "--", "/opt/mpich/bin/mpirun"]
    tool = Tool("xccl-doctor", "0", "", str(made.prefix), str(made.prefix / "lib"))
    status = main(words, tool)
    assert status == 1
    assert "[mpirun-other] " in capsys.readouterr().out


def test_what_a_file_of_open_mpi_sets_is_stated(doctor, world):
    made = world("juwels-booster")
    made.route_ucc_ccl()
    del made.env["OMPI_MCA_coll_ucc_enable"]
    made.file("home/user/.openmpi/mca-params.conf", "coll_ucc_enable=1\n")
    _, found = doctor(made)
    assert ids(found) == []
    assert str(made.root / "home/user/.openmpi/mca-params.conf") in found["looked_at"]


@pytest.mark.parametrize(
    ("library", "read"),
    [
        ("opt/lib/libmpi.so.40", ["opt/etc/openmpi-mca-params.conf"]),
        ("usr/lib64/openmpi/lib/libmpi.so.40", ["etc/openmpi/openmpi-mca-params.conf"]),
    ],
)
def test_which_file_of_open_mpi_is_read(doctor, world, library, read):
    """That of the distribution is for the distribution's Open MPI only."""
    made = world("juwels-booster")
    made.remove("opt/lib/libmpi.so.40")
    made.file(library)
    made.env["LD_LIBRARY_PATH"] += ":/" + library.rpartition("/")[0]
    for folder in ("opt/etc", "etc/openmpi"):
        made.file(f"{folder}/openmpi-mca-params.conf", "coll_ucc_enable=0\n")
    looked_at = doctor(made)[1]["looked_at"]
    files = [path for path in looked_at if path.endswith("openmpi-mca-params.conf")]
    assert files == [str(made.root / path) for path in read]


@pytest.mark.parametrize("site", ["lumi-g", "frontier"])
def test_a_missing_plugin_and_what_follows(doctor, world, site):
    """Where the site insists on the plugin, nothing goes over TCP sockets."""
    made = world(site)
    made.remove("opt/lib/librccl-net.so")
    (finding,) = doctor(made)[1]["findings"]
    assert finding["id"] == "plugin-missing"
    assert "xccl leaves collectives to MPI" in finding["cause"]
    assert f"module load {made.site['plugin']['module']}" in finding["remedy"]
    made.env["NCCL_NET"] = "IB"
    (finding,) = [f for f in doctor(made)[1]["findings"] if f["id"] == "plugin-missing"]
    assert "fall back to TCP sockets" in finding["cause"]
