# SPDX-License-Identifier: BSD-3-Clause
"""xccl-compare from its first launch to its result: turns, resuming, failures, differences."""

import csv
import errno
import json
import os
import re
import signal
import subprocess
import sys
import time

import jsonschema
import pytest
from compare_world import SCHEMA, TOP, entry, program
from running_clock import communicate, now
from xccl_compare import against, peaks, published, stats, table


def routes_of(calls):
    return [
        "vendor" if "--vendor" in c else re.search(r"XCCL_ROUTE=(\S+)", c).group(1) for c in calls
    ]


def test_csv(world):
    """A row for each measurement, in the folder and from a result of before."""
    world.measure("--no-plot")
    text = (world.work / "xccl-compare/result.csv").read_text()
    assert world.run("--csv", "xccl-compare/result.json").out == text
    rows = list(csv.DictReader(text.splitlines()))
    assert [(r["variant"], r["bytes"]) for r in rows] == [
        (e["variant"], str(e["bytes"])) for e in world.result()["results"]
    ]
    (one,) = [r for r in rows if (r["variant"], r["bytes"]) == ("xccl", "8")]
    wanted = {"case": "job", "nodes": "1", "ranks": "4", "groups": "", "coll": "allreduce"}
    wanted.update(path="xccl", verified="yes", launches="6")
    assert {name: one[name] for name in wanted} == wanted
    numbers = entry(world.result(), "xccl")
    for name in ("us", "ratio"):
        assert float(one[name]) == numbers[name]["value"]
        assert float(one[f"{name}_low"]) == numbers[name]["low"]
        assert float(one[f"{name}_high"]) == numbers[name]["high"]
    assert float(one["busbw_gbs"]) == numbers["busbw_gbs"]
    (base,) = [r for r in rows if (r["variant"], r["bytes"]) == ("vendor", "8")]
    assert base["ratio"] == ""


def test_result(world):
    """All that was measured, by the schema, with where it comes from."""
    ended = world.measure("--no-plot")
    result = world.result()
    jsonschema.validate(result, SCHEMA)
    assert result["complete"] and result["base"] == "vendor" and not result["failures"]
    one = entry(result, "xccl")
    assert one["samples_us"] == {str(n): pytest.approx(5.00004) for n in range(1, 7)}
    assert one["ratio"]["value"] == pytest.approx(0.5) and one["verified"]
    assert one["bus"] == 1.5 and one["busbw_gbs"] == pytest.approx(8 * 1.5 / 5.00004 / 1e3)
    assert result["measured_with"]["devices"] == ["Made up"] and result["commit"] == "abc123"
    assert result["cases"] == [{"name": "job", "nodes": 1, "ranks": 4, "groups": None}]
    assert (
        result["environment"]["XCCL_SITE"] == "juwels-booster"
        and "HOME" not in result["environment"]
    )
    assert result["commands"]["job, xccl, sizes"][0].startswith("mpirun -n 4 env ")
    bounds = [p["gbytes_per_s"] for p in peaks.of_case(result["peaks"], result["cases"][0])]
    assert bounds == [300]
    assert (world.work / "xccl-compare/table.txt").read_text() in ended.out
    assert "allreduce, 4 ranks on 1 node" in ended.out and "\r" not in ended.err
    assert "  ucc, ucc-ccl: Open MPI has no coll/ucc component" in ended.out
    assert re.search(
        r"^ +8 B +100\.0 +5\.00 +10\.00 +10\.00 +0\.50 +0\.0024 +xccl$", ended.out, re.M
    )


def test_turns(world):
    """Every round has every route once, and none is always first or last."""
    world.measure("--no-plot")
    routes = routes_of(world.launched())
    rounds = [routes[i : i + 3] for i in range(0, 18, 3)]
    assert all(sorted(one) == ["mpi", "vendor", "xccl"] for one in rounds)
    assert {one[0] for one in rounds} == {one[-1] for one in rounds} == {"mpi", "vendor", "xccl"}


def test_resumes(world):
    """What is there stays; more rounds are added; a broken file is kept aside and measured again."""
    world.measure("--no-plot", "--rounds", "2")
    assert len(world.launched()) == 6
    runs = world.work / "xccl-compare/runs"
    before = (runs / "job.sizes.mpi.1.json").stat().st_mtime_ns
    (runs / "job.sizes.xccl.2.json").write_text('{"schema": "xccl-pe')
    ended = world.measure("--no-plot", "--rounds", "3")
    assert sorted(routes_of(world.launched())) == ["mpi", "vendor", "xccl", "xccl"]
    assert (runs / "job.sizes.mpi.1.json").stat().st_mtime_ns == before
    assert "job.sizes.xccl.2.json: no result of xccl-perf" in ended.err
    assert (runs / "job.sizes.xccl.2.json.broken1").read_text() == '{"schema": "xccl-pe'
    assert len(entry(world.result(), "xccl")["samples_us"]) == 3


def test_another_plan_is_refused(world):
    world.measure("--no-plot", "--rounds", "1")
    ended = world.measure("--no-plot", "--coll", "bcast", status=2)
    assert "was asked for differently (--coll)" in ended.err and not world.launched()
    (world.work / "xccl-compare/plan.json").write_text("{")
    assert "plan.json: cannot be read" in world.measure("--no-plot", status=2).err


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({"NCCL_ALGO": "Ring"}, "(NCCL_ALGO: was none, is Ring)"),
        (
            {"NCCL_ALGO": "Ring,Tree", "XCCL_TUNE": "x"},
            "(NCCL_ALGO: was none, is Ring,Tree; XCCL_TUNE: was none, is x)",
        ),
        ({"XCCL_SITE": "jureca-dc"}, "(the site"),
        ({"XCCL_SIM": "cuda:2"}, "the simulated accelerators"),
    ],
)
def test_another_environment_is_refused(world, env, said):
    """Times of before would pass for what was measured with it."""
    world.measure("--no-plot", "--rounds", "1", UCX_TLS="rc")
    before = world.result()
    ended = world.measure("--no-plot", "--rounds", "1", status=2, **{"UCX_TLS": "rc", **env})
    assert said in ended.err and "name another folder with --output" in ended.err
    assert "UCX_TLS" not in ended.err and not world.launched() and world.result() == before


def test_what_differs_from_job_to_job(world):
    """It keeps nobody from going on: the next job, with or without the site's module, and what is written where."""
    shell = json.loads((TOP / "site-configs/juwels-booster/site.json").read_text())
    shell = shell["resolved"]["shell"]
    assert shell
    world.measure("--no-plot", "--rounds", "1", SLURM_JOB_ID="7", CUDA_VISIBLE_DEVICES="0")
    job = {"SLURM_JOB_ID": "8", "CUDA_VISIBLE_DEVICES": "1", "NCCL_DEBUG_FILE": "x", **shell}
    world.measure("--no-plot", "--rounds", "2", **job)
    assert len(world.launched()) == 3


def test_nothing_left_to_do(world):
    """That is said, and the result keeps the date of what was measured."""
    ended = world.measure("--no-plot", "--rounds", "1")
    assert "nothing was started" not in ended.out
    for run in (world.work / "xccl-compare/runs").glob("*.json"):
        os.utime(run, (1e9, 1e9))
    ended = world.measure("--no-plot", "--rounds", "1")
    said = "all 3 launches were done before (2001-09-09T01:46:40Z); nothing was started"
    assert said in ended.out and not world.launched()
    assert world.result()["date"] == "2001-09-09T01:46:40Z"


def test_launches_on_other_hosts(world):
    """As where another job goes on in the folder."""
    world.measure("--no-plot", "--rounds", "1")
    assert not [note for note in world.result()["notes"] if "hosts" in note]
    world.measure("--no-plot", "--rounds", "2", FAKE_HOST="other")
    (note,) = [note for note in world.result()["notes"] if "hosts" in note]
    assert note.startswith("the launches of job were not all on the same hosts (node0; other0)")


def test_a_route_that_fails(world):
    """The others go on; it is said which, why, and where its log is; the next call tries it again."""
    world.fake["fail"] = "vendor"
    ended = world.measure("--no-plot", "--rounds", "2", status=1)
    assert routes_of(world.launched()).count("vendor") == 1
    cause = "xccl-perf: WRONG RESULT: allreduce, 8 bytes, rank 1 (status 1)"
    assert f"vendor, job, round 1: {cause}; log: " in ended.err
    result = world.result()
    jsonschema.validate(result, SCHEMA)
    assert not result["complete"] and result["base"] == "mpi"
    assert {e["variant"] for e in result["results"]} == {"mpi", "xccl"}
    assert f"vendor: failed: {cause}" in ended.out
    assert os.path.exists(world.work / result["failures"][0]["log"])


def test_a_route_that_fails_once(world):
    """What failed without a wrong result is forgotten when it is measured."""
    world.fake.update(fail="vendor", error="cuMemAlloc failed")
    world.measure("--no-plot", "--rounds", "2", status=1)
    del world.fake["fail"]
    world.measure("--no-plot", "--rounds", "2")
    assert routes_of(world.launched()) == ["vendor", "vendor"] and world.result()["complete"]


def test_a_result_that_is_wrong_once(world):
    """It may be right at the next try: that is said, and fails, in this call and in all that follow."""
    world.fake["fail"] = "xccl"
    world.measure("--no-plot", "--rounds", "2", status=1)
    del world.fake["fail"]
    for _ in range(2):
        ended = world.measure("--no-plot", "--rounds", "2", status=1)
        result = world.result()
        jsonschema.validate(result, SCHEMA)
        (failure,) = result["failures"]
        assert (failure["variant"], failure["round"]) == ("xccl", 1) and not result["complete"]
        assert "WRONG RESULT: " in (world.work / failure["log"]).read_text()
        assert f"xccl, job, round 1: {failure['cause']}; log: {failure['log']}" in ended.err
        assert "Note: xccl, job, round 1 computed something wrong before it was right" in ended.out
        assert len(entry(result, "xccl")["samples_us"]) == 2
    (world.work / "xccl-compare/wrong.json").write_text("{")
    assert "wrong.json: cannot be read" in world.measure("--no-plot", status=2).err


@pytest.mark.parametrize("said", ["", "xccl error: cuMemcpy failed"])
def test_wrong_after_it_was_right(world, said):
    """Times of the rounds before are not shown as those of a route that computes rightly."""
    world.measure("--no-plot", "--rounds", "2")
    world.fake.update(fail="xccl", said=said)
    ended = world.measure("--no-plot", "--rounds", "3", status=1)
    assert {e["variant"] for e in world.result()["results"]} == {"mpi", "vendor"}
    assert "xccl: failed: " in ended.out and "Every result was verified." in ended.out
    del world.fake["fail"]
    world.measure("--no-plot", "--rounds", "3", status=1)
    assert len(entry(world.result(), "xccl")["samples_us"]) == 3


def test_what_a_failed_launch_left(world):
    """A launcher that ends well without having started anything is no second chance for it."""
    perf = world.prefix / "bin/xccl-perf"
    perf.write_text(perf.read_text() + "sys.exit(1)\n")
    world.measure("--no-plot", "--rounds", "1", "--routes", "mpi", status=1)
    program(world.bin / "mpirun", "#!/bin/sh\n# orterun\n")
    ended = world.measure("--no-plot", "--rounds", "1", "--routes", "mpi", status=1)
    assert "no result of xccl-perf: it was not written; does the launcher start" in ended.err
    assert not world.result()["results"]


def test_a_launcher_that_fails(world):
    ended = world.measure("--no-plot", "--rounds", "1", status=1, FAKE_REFUSE="yes")
    assert "mpirun: no slots left (status 1)" in ended.err and "Nothing was measured." in ended.out
    jsonschema.validate(world.result(), SCHEMA)
    ended = world.run("--no-plot", "--output", "other", "--", "/no/mpirun", status=2)
    assert "'/no/mpirun' was not found" in ended.err and not (world.work / "other").exists()


def test_a_launcher_without_room(world):
    """Its sentence is quoted whole, and it is asked once: the other routes need as much room."""
    text = "There are not enough slots available in the system to satisfy the 7\\nslots that were"
    script = (
        f"#!/bin/sh\n# orterun\necho x >>asked\nprintf '{text} requested:\\n\\n  env\\n'\nexit 1\n"
    )
    program(world.bin / "mpirun", script)
    ended = world.measure("--no-plot", "--rounds", "1", status=1)
    assert "to satisfy the 7 slots that were requested (status 1)" in ended.err
    assert (world.work / "asked").read_text().count("x") == 1
    assert "not started: There are not enough slots" in ended.out


@pytest.mark.parametrize("name", ["result.json", "table.txt"])
def test_an_output_that_cannot_be_written(world, name):
    """That is found out before anything is measured."""
    (world.work / "other" / name).mkdir(parents=True)
    words = ["--no-plot", "--rounds", "1", "--output", "other", "--", "mpirun", "-n", "2"]
    ended = world.run(*words, status=2)
    assert f"--output: cannot use 'other': {name} is a folder" in ended.err
    assert not world.launched() and ended.out == ""


def test_a_launch_that_does_not_end(world):
    program(world.bin / "mpirun", "#!/bin/sh\n# orterun\nsleep 60\n")
    started = now()
    ended = world.measure(
        "--no-plot", "--rounds", "1", "--routes", "mpi", "--timeout", "1", status=1
    )
    assert "no end after 1 s (--timeout)" in ended.err and now() - started < 20


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_stopped(world, heeds_hangups, number):
    """At the end of a job's time, or of a terminal: what is there is written, and the launch ended."""
    slow = "#!/bin/sh\n# orterun\necho $$ >>pids\n[ $(wc -l <pids) -lt 2 ] || exec sleep 60\n"
    program(world.bin / "mpirun", slow + 'while [ "$1" != env ]; do shift; done\nexec "$@"\n')
    process = subprocess.Popen(
        [
            sys.executable,
            world.prefix / "bin/xccl-compare",
            "--no-plot",
            "--max",
            "8",
            "--",
            "mpirun",
        ],
        env={**world.env, "FAKE": json.dumps(world.fake)},
        cwd=world.work,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    pids = world.work / "pids"
    deadline = now() + 30
    while not pids.exists() or len(pids.read_text().split()) < 2:
        assert now() < deadline
        time.sleep(0.05)
    process.send_signal(number)
    _, err = communicate(process, 30)
    assert process.returncode == 130 and "the same command goes on from here" in err
    assert not os.path.exists("/proc/" + pids.read_text().split()[1])
    assert len(world.result()["results"]) == 1 and not world.result()["complete"]


def test_two_at_once(world):
    import fcntl

    world.measure("--no-plot", "--rounds", "1")
    with open(world.work / "xccl-compare/lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "another xccl-compare works" in world.measure("--no-plot", status=2).err


def test_file_system_without_locks(world, monkeypatch):
    """Lustre, where it is mounted without flock."""
    import fcntl

    def refuse(*_):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(fcntl, "flock", refuse)
    world.measure("--no-plot", "--rounds", "1")
    assert world.result()["complete"]


def test_groups(world):
    """Communicators of two: the bandwidth is that of two ranks."""
    world.run(
        "--no-plot",
        "--suite",
        "splits",
        "--ranks-per-node",
        "4",
        "--max",
        "8",
        "--rounds",
        "1",
        "--",
        "mpirun",
    )
    found = {e["case"]: e["bus"] for e in world.result("xccl-compare-splits")["results"]}
    assert found["pairs"] == 1 and found["all"] == found["all-permuted"] == 1.5


@pytest.fixture
def two(world):
    """Two results of twelve measurements each, with noise of a percent; in NEW one route is slower."""

    def make(factor, rounds=6):
        world.measure("--no-plot", "--rounds", str(rounds))
        old = world.result()
        for number, one in enumerate(old["results"]):
            noise = [1 + 0.01 * ((number + 3 * n) % 7 - 3) / 3 for n in range(rounds)]
            for (key, us), by in zip(list(one["samples_us"].items()), noise):
                one["samples_us"][key] = us * by
        new = json.loads(json.dumps(old))
        for number, one in enumerate(new["results"]):
            for n, key in enumerate(one["samples_us"]):
                one["samples_us"][key] *= (factor if one["variant"] == "xccl" else 1) * (
                    1 + 0.001 * (n - number % 5)
                )
        for name, value in (("old", old), ("new", new)):
            (world.work / f"{name}.json").write_text(json.dumps(value))
        return world

    return make


def verdict(text, route):
    return set(re.findall(rf"^ *job +{route} .*\d +(\w[\w ]*)$", text, re.M))


def test_slower(two):
    ended = two(1.1).run("--against", "old.json", "new.json", status=3)
    assert verdict(ended.out, "xccl") == {"slower"}
    assert verdict(ended.out, "mpi") == verdict(ended.out, "NCCL") == {"noise"}
    assert "6 measurements in both: 2 slower, 0 faster, 4 inside the noise" in ended.out
    assert "Mann-Whitney" in ended.out and "Benjamini" in ended.out


def test_faster_and_noise(two):
    world = two(0.9)
    assert verdict(world.run("--against", "old.json", "new.json").out, "xccl") == {"faster"}
    assert "0 slower, 0 faster, 6 inside" in world.run("--against", "old.json", "old.json").out


def test_many_measurements_want_more():
    """What a test alone calls a difference may be chance where so many tests were made; it is not noise."""
    alone = stats.Difference(1.2, 1.1, 1.3, p=0.03, least_p=0.002)
    assert against.word_for(alone, 0.03) == "slower" and against.word_for(alone, 0.2) == "unsure"
    assert against.word_for(alone._replace(low=0.9), 0.2) == "noise"


@pytest.mark.parametrize(("factor", "status"), [(10, 4), (1.05, 0), (0.1, 0)])
def test_one_difference_among_many(world, factor, status):
    """With the default rounds no single one of sixty has a q that counts, however large it is."""
    noise = [1 + 0.01 * ((3 * n) % 7 - 3) / 3 for n in range(6)]
    entries = [
        {"case": "job", "variant": "xccl", "coll": "allreduce", "bytes": 8 << n, "samples_us": {}}
        for n in range(60)
    ]
    old = {"rounds": 6, "results": entries, "cases": [], "variants": [], "measured_with": {}}
    old.update(version="0.1.0", site=None, program="xccl-perf", launcher=["mpirun"], peaks=[])
    for one in entries:
        one["samples_us"] = {str(n): noise[n] for n in range(6)}
    new = json.loads(json.dumps(old))
    new["results"][7]["samples_us"] = {str(n): noise[n] * factor for n in range(6)}
    for name, value in (("old", old), ("new", new)):
        text = json.dumps({"schema": "xccl-compare-1", **value})
        (world.work / f"{name}.json").write_text(text)
    ended = world.run("--against", "old.json", "new.json", status=status)
    assert (
        "60 measurements in both: 0 slower, 0 faster, 59 inside the noise, 1 unsure (" in ended.out
    )
    said = (
        "With 6 rounds a single difference among 60 cannot be told: --rounds 7 for both results."
    )
    assert said in ended.out


def test_too_few_rounds(two):
    ended = two(2.0, rounds=3).run("--against", "old.json", "new.json")
    assert verdict(ended.out, "xccl") == {"too few rounds"}


def test_other_software_is_said(two):
    world = two(1.0)
    new = json.loads((world.work / "new.json").read_text())
    new["measured_with"]["ccl"]["version"] = 22809
    new["site"] = None
    (world.work / "new.json").write_text(json.dumps(new))
    ended = world.run("--against", "old.json", "new.json")
    assert (
        "# software: was " in ended.out
        and "NCCL 2.28.3, is " in ended.out
        and "2.28.9" in ended.out
        and "# site: was juwels-booster, is none" in ended.out
    )


def test_another_environment_is_said(two):
    """A difference may come from it; that the job is another one is no news."""
    world = two(1.0)
    for name, job, more in (
        ("old", "7", {"LOADEDMODULES": "a/1:b/1:c/1", "UCX_TLS": "rc"}),
        ("new", "8", {"LOADEDMODULES": "a/1:b/2:c/1", "NCCL_ALGO": "Ring", "UCX_TLS": ""}),
    ):
        result = json.loads((world.work / f"{name}.json").read_text())
        result["environment"] = {"SLURM_JOB_ID": job, "XCCL_TUNE": "a", **more}
        (world.work / f"{name}.json").write_text(json.dumps(result))
    result["measured_with"]["type"], result["rounds"] = "double", 7
    (world.work / "new.json").write_text(json.dumps(result))
    lines = world.run("--against", "old.json", "new.json").out.splitlines()
    assert [line for line in lines if line.startswith("# ")] == [
        "# rounds: was 6, is 7",
        "# type: was float, is double",
        "# NCCL_ALGO: was none, is Ring",
        "# UCX_TLS: was rc, is empty",
        "# LOADEDMODULES: OLD alone has b/1; NEW alone has b/2",
    ]
    assert "# " not in world.run("--against", "new.json", "new.json").out


def test_missing_measurements(two):
    """A route that no longer works is no good news, whatever the others do."""
    world = two(1.1)
    new = json.loads((world.work / "new.json").read_text())
    new["results"] = [one for one in new["results"] if one["variant"] != "vendor"]
    new["failures"] = [
        {"variant": "vendor", "case": "job", "round": 2, "cause": "it hung", "log": "x.log"}
    ]
    (world.work / "new.json").write_text(json.dumps(new))
    ended = world.run("--against", "old.json", "new.json", status=1)
    assert "4 measurements in both: 2 slower" in ended.out
    assert re.search(r"^missing in NEW: job, NCCL, allreduce: \S+ B, \S+ \S+$", ended.out, re.M)
    assert ended.out.endswith("failed in NEW: job, NCCL, round 2: it hung\n")
    assert "missing" not in world.run("--against", "new.json", "old.json").out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no JSON"),
        ('{"schema": "xccl-compare-1", "results": []', "is it cut off?"),
        ('{"schema": "xccl-perf-1"}', "no result of xccl-compare (schema xccl-perf-1"),
        ("[1]", "no result of xccl-compare"),
        ("[" * 100000, "no result of xccl-compare (nested too deeply)"),
        ('{"schema": "xccl-compare-1"}', "'results' is missing"),
    ],
)
def test_broken_results(world, text, message):
    (world.work / "a.json").write_text(text)
    for words in (["--against", "a.json", "a.json"], ["--plot", "a.json"]):
        assert message in world.run(*words, status=2).err


@pytest.mark.parametrize(
    ("key", "value"), [("cases", None), ("results", [{"case": "job"}]), ("results", {"us": 1})]
)
def test_damaged_results(world, key, value):
    """Changed by hand, or by another program: it is no traceback."""
    world.measure("--no-plot", "--rounds", "1")
    result = {**world.result(), key: value}
    (world.work / "a.json").write_text(json.dumps(result))
    for words in (["--csv", "a.json"], ["--against", "a.json", "a.json"]):
        ended = world.script(*words)
        assert ended.returncode in (0, 2) and "Traceback" not in ended.stderr
    said = world.run("--csv", "a.json", status=2).err
    assert "--csv: the file is damaged, or was changed by hand: " in said


def test_result_without_samples(two):
    world = two(1.0)
    old = json.loads((world.work / "old.json").read_text())
    old["results"][0]["samples_us"] = {}
    (world.work / "old.json").write_text(json.dumps(old))
    said = world.run("--against", "old.json", "new.json", status=2).err
    assert "--against: the file is damaged, or was changed by hand: " in said


def test_full_disk(world):
    """The file is named, and half of it is not left behind."""
    folder = world.work / "xccl-compare"
    folder.mkdir()
    (folder / "result.json.part").symlink_to("/dev/full")
    ended = world.script("--max", "8", "--rounds", "1", "--no-plot", "--", "mpirun")
    named = "xccl-compare/result.json: cannot be written: No space left on device"
    assert ended.returncode == 1 and ended.stderr.endswith(f"xccl-compare: {named}\n")
    assert not [name for name in os.listdir(folder) if name.startswith("result.json")]


def test_folder_whose_name_is_no_text(world):
    """The table names it, as part of a cause."""
    world.fake["bad"] = True
    words = ["--max", "8", "--rounds", "1", "--no-plot", "--output", "c\udcff", "--", "mpirun"]
    ended = world.script(*words)
    assert ended.returncode == 1 and "Traceback" not in ended.stderr, ended.stderr
    text = (world.work / "c\udcff/table.txt").read_text()
    assert r"c\udcff/runs/" in text and "no result of a run that passed" in text


def test_no_matplotlib(world):
    """Without it the tool says so; the rest is there."""
    ended = world.script("--max", "8", "--rounds", "1", "--", "mpirun")
    assert ended.returncode == 0
    assert "has no Matplotlib" in ended.stderr
    assert ended.stderr.rstrip().endswith("xccl-compare --plot xccl-compare/result.json")
    assert (world.work / "xccl-compare/table.txt").exists() and world.result()["complete"]


def test_no_matplotlib_in_a_folder_with_a_blank(world):
    """What to call then can be pasted into a shell."""
    ended = world.script("--max", "8", "--rounds", "1", "--output", "a b", "--", "mpirun")
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr.rstrip().endswith("xccl-compare --plot 'a b/result.json'")


class TestPublished:
    """Others' figures: each with the words that it is from, and nothing that contradicts itself."""

    @pytest.fixture(params=["juwels-2022", "crusher-2023", "splits", "hybrid"])
    def figures(self, request, world):
        return published.load(str(world.prefix))[request.param]

    def test_origin(self, figures):
        for key in ("title", "machine", "software", "method"):
            assert figures[key]
        assert figures["left_out"] and all(one["reason"] for one in figures["left_out"])

    def test_figures_are_in_their_words(self, figures):
        for point in figures["points"]:
            words = point["quote"] + " " + point.get("bandwidth_quote", "")
            numbers = {float(n) for n in re.findall(r"\d+(?:\.\d+)?", words)}
            for value in filter(None, (point.get("us"), point.get("busbw_gbs"))):
                assert value in numbers or value / 1e3 in numbers, point  # in µs or in ms
            assert point["coll"] == "allreduce" and point["ranks"] >= point["nodes"]

    def test_what_contradicts_itself_is_left_out(self, world):
        every = published.load(str(world.prefix))
        four = [
            p
            for p in every["crusher-2023"]["points"]
            if p["nodes"] == 4 and p["variant"] == "vendor"
        ]
        assert [p["busbw_gbs"] for p in four] == [25.8216]  # not 14.1
        assert not any("overhead" in json.dumps(p) for p in every["hybrid"]["points"])

    def test_below_the_table(self, world):
        """Of the shapes that were measured only, with the machine of the text."""
        every = published.load(str(world.prefix))
        case = {"name": "2x8", "ranks": 16, "nodes": 2, "groups": None}
        result = {"cases": [case], "results": [{"coll": "allreduce"}]}
        lines = list(table.beside(result, every["crusher-2023"]))
        assert lines[1:3] == [
            'Published: D. M. Rogers, "RCCL AllReduce Performance"',
            "on Crusher and Frontier, AMD MI250X, eight GCDs per node, Slingshot 11; "
            "ROCm 5.2.0 with its RCCL, aws-ofi-rccl, Cray MPICH 8.1.17, rccl-tests",
        ]
        what = "allreduce of 32 MiB, 16 ranks on 2 nodes"
        assert lines[3:] == [
            f"  Rogers, without plugin: {what}: 10,947 µs, 5.88 GB/s",
            f"  Rogers, with plugin: {what}: 1,472 µs, 42.7 GB/s",
        ]
        assert "23 µs" in list(table.beside(result, every["hybrid"]))[-1]
        title = every["splits"]["title"]
        nothing = f"Published: {title}: nothing to draw: figures only in pictures"
        assert list(table.beside(result, every["splits"])) == ["", nothing]

    def test_bandwidth_of_the_text(self):
        """1 GB in 18.23 ms on 8 ranks are 96 GB/s on the bus, near the peak of 100 that the text names."""
        point = {"coll": "allreduce", "bytes": 10**9, "us": 18230.13, "ranks": 8}
        assert published.busbw(point) == pytest.approx(96.0, abs=0.05)


@pytest.mark.parametrize(
    ("rounds", "said"), [(5, "Below six rounds"), (6, "so the difference is")]
)
def test_how_sure_the_numbers_are(rounds, said):
    result = {"results": [{"samples_us": dict.fromkeys(range(rounds), 1.0)}]}
    assert said in list(table.intervals(result))[-1]
