# SPDX-License-Identifier: BSD-3-Clause
"""xccl-compare in a made-up installation: a launcher, xccl-run and xccl-perf that only write files."""

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

TOP = Path(__file__).resolve().parents[3]
TOOLS = TOP / "libxccl/tools"
sys.path[:0] = [str(TOOLS / "compare"), str(TOOLS / "common")]

from xccl_common import process  # noqa: E402
from xccl_common.tool import Tool  # noqa: E402
from xccl_compare.main import main  # noqa: E402

# "orterun": what tells the doctor that it is Open MPI's.
MPIRUN = """#!/bin/sh
# orterun
echo "$*" >>"$FAKE_CALLS"
[ -z "$FAKE_REFUSE" ] || { echo "mpirun: no slots left" >&2; exit 1; }
while [ "$1" != env ]; do shift; done
exec "$@"
"""
XCCL_RUN = """#!/bin/sh
while [ "${1#--}" != "$1" ]; do shift 2; done
exec "$@"
"""
XCCL_PERF = """#!{python} -SE
import json, os, sys, time
words = sys.argv[1:]
time.sleep(float(os.environ.get("FAKE_SECONDS", "0")))
value = lambda name: words[words.index(name) + 1] if name in words else None
route = "vendor" if "--vendor" in words else os.environ["XCCL_ROUTE"]
fake = json.loads(os.environ["FAKE"])
if fake.get("fail") == route:
    print(fake.get("said", ""))
    sys.exit("xccl-perf: " + fake.get("error", "WRONG RESULT: allreduce, 8 bytes, rank 1"))
size, rows = int(value("--min")), []
while size <= int(value("--max")):
    us = fake["us"].get(route, 10.0) * (1 + size / 1e6)
    rows.append({{"coll": "allreduce", "bytes": size, "count": size // 4, "verified": True, "avg_us": us,
                 "path": fake.get("paths", {{}}).get(route, route)}})
    by = fake.get("transports", {{}}).get(route, [])[len(rows) - 1 :][:1]
    if os.environ.get("UCC_COLL_TRACE") == "INFO" and by != [None]:
        for name in by:
            print(f"[1.5] [vm:1 :0] ucc_coll.c:305  UCC_COLL INFO  coll_init: Allreduce sum: src={{{{0x7f, "
                  f"{{size // 4}}, float32, Cuda}}}}, dst={{{{0x7e, {{size // 4}}, float32, Cuda}}}}; CL_BASIC "
                  f"{{{{{{name}}}}}}, team_id 32768")
    size = int(size * float(value("--factor")))
groups = value("--groups")
host = os.environ.get("FAKE_HOST", "node")
run = {{
    "schema": "xccl-perf-1", "mpi": "Open MPI v4.1.6, made up", "mpi_family": "openmpi", "passed": not fake.get("bad"),
    "machine": {{"cpu": "made up", "cores": 1, "kernel": "Linux"}}, "simulated": None,
    "options": {{"type": "float", **({{"groups": groups}} if groups else {{}})}}, "results": rows,
    "ranks": [{{"rank": i, "host": f"{{host}}{{i // 4}}", "device_name": "Made up"}} for i in range(fake["ranks"])],
    "ccl": {{"name": "nccl", "version": 22803, "path": "/lib/libnccl.so.2"}} if route == "vendor" else None,
}}
with open(value("--json"), "w") as f:
    json.dump(run, f)
"""
# What CMake fills in.
SCRIPT = {
    "XCCL_TOOL": "xccl-compare",
    "XCCL_PACKAGE": "xccl_compare",
    "PROJECT_VERSION": "0.1.0",
    "XCCL_COMMIT": "abc123",
}
SCHEMA = json.loads((TOOLS / "compare/xccl-compare.schema.json").read_text())
NO_UCC = "#!/bin/sh\necho mca:coll:tuned:version:mca:2.1.0\n"
WITH_UCC = NO_UCC + "echo mca:coll:ucc:version:mca:2.1.0\n"


def program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def program_of_mpi(folder):
    """of-mpi, which needs an MPI library; of a file's words nothing else tells that it is a program."""
    empty = ["cc", "-shared", "-nostdlib", "-x", "c", "/dev/null"]
    library = folder / "libmpi.so.40"
    subprocess.run([*empty, "-o", library, f"-Wl,-soname,{library.name}"], check=True)
    needs = ["-x", "none", "-Wl,--no-as-needed", library]
    subprocess.run([*empty, *needs, "-o", folder / "of-mpi"], check=True)


class World:
    """A prefix with the tool and what it starts, and a folder to work in."""

    def __init__(self, folder):
        self.folder, self.prefix, self.bin = folder, folder / "prefix", folder / "bin"
        self.work = folder / "work"
        self.work.mkdir()
        share = self.prefix / "share/xccl"
        share.mkdir(parents=True)
        (share / "sites").symlink_to(TOP / "site-configs")
        (share / "published").symlink_to(TOOLS / "compare/published")
        (share / "peaks.json").symlink_to(TOOLS / "compare/peaks.json")
        modules = self.prefix / "lib/xccl/python"
        modules.mkdir(parents=True)
        for name in ("compare", "common"):
            (modules / f"xccl_{name}").symlink_to(TOOLS / name / f"xccl_{name}")
        text = (TOOLS / "python-tool").read_text()
        for name, value in SCRIPT.items():
            text = text.replace(f"@{name}@", value)
        program(self.prefix / "bin/xccl-compare", text)
        program(self.prefix / "bin/xccl-run", XCCL_RUN)
        program(self.prefix / "bin/xccl-perf", XCCL_PERF.format(python=sys.executable))
        program(self.bin / "mpirun", MPIRUN)
        program(self.bin / "srun", MPIRUN.replace("orterun", "slurm"))
        program(self.bin / "ompi_info", NO_UCC)
        self.calls = folder / "calls"
        self.fake = {"us": {"mpi": 100.0, "xccl": 5.0, "vendor": 10.0}, "ranks": 4}
        self.env = {
            "PATH": f"{self.bin}:/usr/bin:/bin",
            "HOME": str(folder),
            "XCCL_SITE": "juwels-booster",
            "XCCL_CCL_LIBRARY": str(program(folder / "libnccl.so.2", "")),
            "FAKE_CALLS": str(self.calls),
        }

    def ucc(self):
        program(self.bin / "ompi_info", WITH_UCC)

    def run(self, *words, status=0, **env):
        """The tool, in this process."""
        self.calls.write_text("")
        prefix = str(self.prefix)
        tool = Tool("xccl-compare", "0.1.0", "abc123", prefix, f"{prefix}/lib")
        out, err, before = io.StringIO(), io.StringIO(), dict(os.environ)
        handlers = {one: signal.getsignal(one) for one in process.INTERRUPTS}
        os.environ.clear()
        os.environ.update({**self.env, "FAKE": json.dumps(self.fake), **env})
        here = os.getcwd()
        os.chdir(self.work)
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                ended = main([str(word) for word in words], tool)
        finally:
            os.chdir(here)
            os.environ.clear()
            os.environ.update(before)
            for one, handler in handlers.items():
                signal.signal(one, handler)
        assert ended == status, out.getvalue() + err.getvalue()
        return SimpleNamespace(out=out.getvalue(), err=err.getvalue())

    def script(self, *words, **env):
        """The tool as it is installed, in a process of its own."""
        self.calls.write_text("")
        return subprocess.run(
            [sys.executable, str(self.prefix / "bin/xccl-compare"), *map(str, words)],
            env={**self.env, "FAKE": json.dumps(self.fake), **env},
            cwd=self.work,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def measure(self, *words, status=0, **env):
        """Two sizes of an allreduce on four ranks."""
        sizes = ["--min", "8", "--max", "512", "--factor", "64"]
        return self.run(*sizes, *words, "--", "mpirun", "-n", "4", status=status, **env)

    def launched(self):
        return self.calls.read_text().splitlines()

    def result(self, folder="xccl-compare"):
        return json.loads((self.work / folder / "result.json").read_text())


def entry(result, variant, size=8):
    (found,) = [e for e in result["results"] if (e["variant"], e["bytes"]) == (variant, size)]
    return found
