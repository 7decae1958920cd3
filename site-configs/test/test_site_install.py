# SPDX-License-Identifier: BSD-3-Clause
"""ci/install-tree: what it installs, and what it refuses."""

import os
import re
import shutil
import stat
import subprocess
import sys
import tarfile

import pytest
from site_tree import TOP, install


def install_tree(*arguments, cwd=None, **env):
    return subprocess.run(
        [TOP / "ci/install-tree", *arguments],
        env={**os.environ, **env},
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def put_xccl(prefix):
    """What says that the library is installed in a prefix."""
    (prefix / "bin").mkdir(parents=True)
    (prefix / "bin/xccl-run").write_text("#!/bin/sh\n", encoding="utf-8")


def test_nothing_is_left_to_fill_in(prefix):
    files = [file for file in (prefix / "share/xccl").rglob("*") if file.is_file()]
    assert len(files) > 100
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert not [p for p in ("@prefix@", "@site@", "@lib@") if p in text], file


def test_every_site_is_there_with_its_files(prefix, sites):
    for name in sites:
        folder = prefix / "share/xccl/sites" / name
        for file in ("site.json", "ranks.map", "launch.env"):
            assert (folder / file).is_file()
        jobs = list((folder / "jobs").glob("*.sbatch"))
        assert jobs
        for job in jobs:
            text = job.read_text(encoding="utf-8")
            assert f"module use '{prefix}/share/xccl/modulefiles'" in text


def test_a_staged_install_names_the_final_place(tmp_path):
    put_xccl(tmp_path / "opt/xccl")
    done = install_tree("/opt/xccl", DESTDIR=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    module = next((tmp_path / "opt/xccl/share/xccl/modulefiles/xccl").glob("*.lua"))
    assert 'local root = "/opt/xccl"' in module.read_text(encoding="utf-8")


def test_a_staging_folder_may_be_relative(tmp_path):
    done = install_tree(
        "--without-library", "--quiet", "/opt/xccl", cwd=tmp_path, DESTDIR="staged"
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "staged/opt/xccl/share/xccl/env/xccl.sh").exists()


@pytest.mark.parametrize("end", ["/", "//"])
def test_a_slash_behind_the_prefix_is_none_within_paths(end, tmp_path):
    """Completion writes it; dash and modules would have paths that other shells have not."""
    put_xccl(tmp_path / "tree")
    done = install_tree("--quiet", f"{tmp_path}/tree{end}")
    assert (done.returncode, done.stderr) == (0, "")
    script = (tmp_path / "tree/share/xccl/env/xccl.sh").read_text(encoding="utf-8")
    assert f"_xccl_prefix='{tmp_path}/tree'" in script


@pytest.mark.parametrize("given", ["../tree", "./../here/.././tree", "../tree/."])
def test_a_prefix_beside_the_checkout_outlives_it(given, tmp_path):
    """Modules hold the prefix itself, not the way to it, which ends where the checkout is deleted."""
    put_xccl(tmp_path / "tree")
    (tmp_path / "here").mkdir()
    done = install_tree("--quiet", given, cwd=tmp_path / "here")
    assert (done.returncode, done.stderr) == (0, "")
    module = next((tmp_path / "tree/share/xccl/modulefiles/xccl").glob("*.lua"))
    assert f'local root = "{tmp_path}/tree"' in module.read_text(encoding="utf-8")


def test_installing_twice_is_installing_once(tmp_path):
    prefix = install(tmp_path / "tree", "--site", "sim")

    def contents():
        return {f: f.read_bytes() for f in (prefix / "share").rglob("*") if f.is_file()}

    first = contents()
    assert install_tree("--site", "sim", prefix).returncode == 0
    assert contents() == first


@pytest.mark.parametrize(
    ("site", "command"),
    [
        ("jupiter", "srun -N 2 -n 8 --cpus-per-task=72 --gres=gpu:4 --gpu-bind=none xccl-run"),
        (
            "dgx-h100",
            "srun -N 2 -n 16 --cpus-per-task=14 --gpus-per-node=8 --gpu-bind=none --cpu-bind=none xccl-run",
        ),
        (
            "generic-amd",
            "srun -N 2 -n 8 --gpus-per-node=4 --cpus-per-task=8 --gpu-bind=none xccl-run",
        ),
        ("", "srun -N 2 -n 8 --gpus-per-node=4 --cpus-per-task=8 --gpu-bind=none xccl-run"),
    ],
)
def test_what_to_do_next_is_of_the_site(site, command, tmp_path):
    put_xccl(tmp_path / "tree")
    done = install_tree("--site", site, tmp_path / "tree")
    assert done.returncode == 0
    assert f"check it in a job          {command} xccl-perf" in done.stdout


def test_the_site_of_an_installation_is_noted_for_the_tools(tmp_path):
    prefix = install(tmp_path / "tree", "--site", "sim")
    default = prefix / "share/xccl/sites/default"
    assert default.read_text(encoding="utf-8") == "sim\n"
    assert install_tree(prefix).returncode == 0
    assert not default.exists()


def test_what_an_older_installation_left_is_removed(tmp_path):
    """And nothing else: a prefix may be shared, and a site may have files of its own in it."""
    prefix = install(tmp_path / "tree", "--site", "sim")
    share = prefix / "share/xccl"
    old = ["modulefiles/xccl/0.0.1.lua", "sites/closed/site.json", "sites/closed/tables/a.table"]
    own = ["modulefiles/xccl/.version", "sites/closed/notes"]
    for name in old + own:
        (share / name).parent.mkdir(parents=True, exist_ok=True)
        (share / name).write_text("text\n", encoding="utf-8")
    with (share / "manifest/tree").open("a", encoding="utf-8") as record:
        record.writelines(f"share/xccl/{name}\n" for name in old)
    assert install_tree(prefix).returncode == 0
    assert [name for name in old if (share / name).exists()] == []
    assert not (share / "sites/closed/tables").exists()
    assert [name for name in own if not (share / name).exists()] == []
    # Without a site no module is hidden any longer.
    assert not (share / "modulefiles/xccl-site/frontier/.modulerc.lua").exists()


def uninstall(prefix, **options):
    script = TOP / "libxccl/cmake/manifest.sh"
    return subprocess.run(
        [script, "--remove", prefix],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        **options,
    )


@pytest.mark.parametrize("name", ["shared", "xccl"])
def test_nothing_is_left_of_an_installation(name, tmp_path):
    """Nor empty folders, but those of a prefix that others use, and files of others."""
    prefix = tmp_path / name
    assert install_tree("--without-library", "--quiet", prefix).returncode == 0
    (prefix / "share/man/man1").mkdir(parents=True)
    (prefix / "share/man/man1/xccl-run.1").write_text("text\n", encoding="utf-8")
    (prefix / "share/xccl/manifest/library").write_text("share/man/man1/xccl-run.1\n")
    done = uninstall(prefix)
    assert (done.returncode, done.stderr) == (0, "")
    left = {str(path.relative_to(prefix)) for path in prefix.rglob("*")}
    assert left == ({"share", "share/man"} if name == "shared" else set())
    assert prefix.exists() == (name == "shared")


def test_an_interrupted_uninstallation_is_run_again(tmp_path):
    prefix = tmp_path / "xccl"
    assert install_tree("--without-library", "--quiet", prefix).returncode == 0
    rm = tmp_path / "bin/rm"
    rm.parent.mkdir()
    # The records can be removed, and nothing else.
    rm.write_text(
        f'#!/bin/sh\ncase $* in *manifest*) ;; *) [ ! -e "{prefix}/README" ] || exit 1 ;; esac\n'
        'exec /bin/rm "$@"\n',
        encoding="utf-8",
    )
    rm.chmod(0o755)
    (prefix / "README").write_text("text\n", encoding="utf-8")
    done = uninstall(prefix, env={**os.environ, "PATH": f"{rm.parent}:{os.environ['PATH']}"})
    assert done.returncode != 0
    (prefix / "README").unlink()
    done = uninstall(prefix)
    assert (done.returncode, done.stderr) == (0, "")
    assert not prefix.exists()


@pytest.mark.parametrize("records", ["share/xccl/manifest", "share/xccl"])
def test_an_uninstallation_without_a_list(records, tmp_path):
    """An installation that was interrupted has no list yet."""
    (tmp_path / records).mkdir(parents=True)
    done = uninstall(tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "an installation was interrupted, run it again (make install" in done.stderr


def test_an_uninstallation_leaves_what_it_does_not_know(tmp_path):
    prefix = tmp_path / "xccl"
    assert install_tree("--without-library", "--quiet", prefix).returncode == 0
    (prefix / "share/xccl/sites/sim/notes").write_text("text\n", encoding="utf-8")
    assert uninstall(prefix).returncode == 0
    left = [str(path.relative_to(prefix)) for path in prefix.rglob("*") if path.is_file()]
    assert left == ["share/xccl/sites/sim/notes"]
    done = uninstall(prefix)
    assert done.returncode == 2 and "xccl is not installed there" in done.stderr


def test_the_record_names_every_file(tmp_path):
    prefix = tmp_path / "prefix"
    assert install_tree("--without-library", "--quiet", prefix).returncode == 0
    there = {
        str(f.relative_to(prefix)) for f in prefix.rglob("*") if f.is_symlink() or f.is_file()
    }
    record = prefix / "share/xccl/manifest/tree"
    assert set(record.read_text(encoding="utf-8").split()) == there - {
        str(record.relative_to(prefix))
    }


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "one PREFIX is needed, 0 are given\nusage: ci/install-tree"),
        (("--sit", "sim", "/tmp/x"), "unknown option '--sit'\nusage: ci/install-tree"),
        (("--site",), "--site needs a value\nusage: ci/install-tree"),
        (("--site", "atlantis", "/tmp/x"), "unknown site 'atlantis'; sites: alps dgx-a100"),
        (("--site", "atlantis", "/tmp/x"), " perlmutter sim\n"),
        (("--site", "juwles", "/tmp/x"), " sim; did you mean 'juwels-booster'?\n"),
        (("--site", "FRONTIRE", "/tmp/x"), " sim; did you mean 'frontier'?\n"),
        (("--site", "lumi", "/tmp/x"), " sim; did you mean 'lumi-g'?\n"),
        (("--site", "l", "/tmp/x"), " perlmutter sim\n"),  # too short to guess by
        (("--site", "foo", "/tmp/x"), " perlmutter sim\n"),
        (("--site", "frog", "/tmp/x"), " perlmutter sim\n"),
        (("/tmp/it's here",), "allowed: letters, digits"),
        (("/tmp/a|b",), "allowed: letters, digits"),
        (("",), "PREFIX is empty"),
        (("~/xccl",), "PREFIX '~/xccl' begins with a ~ that no shell has replaced; write $HOME"),
        (("--check", "/proc/version/x"), "nothing can be written to '/proc/version'"),
        (("--libdir", "/usr/lib64", "/tmp/x"), "LIB '/usr/lib64' is no folder below PREFIX"),
        (("--libdir", "../lib64", "/tmp/x"), "LIB '../lib64' is no folder below PREFIX"),
        (("--libdir", "lib|64", "/tmp/x"), "LIB 'lib|64' is no folder below PREFIX"),
    ],
)
def test_what_it_refuses(arguments, told):
    done = install_tree(*arguments)
    assert done.returncode == 2
    assert told in done.stderr
    assert done.stdout == ""


def test_the_offline_installer_checks_before_it_builds(tmp_path):
    tarball = tmp_path / "sources/x/xccl/xccl-0.tar.gz"
    tarball.parent.mkdir(parents=True)
    with tarfile.open(tarball, "w:gz") as tar:
        for name in ("ci", "libxccl/VERSION", "site-configs"):
            tar.add(TOP / name, f"xccl-0/{name}")
    shutil.copy(TOP / "ci/offline-install", tmp_path / "install")
    sums = subprocess.run(
        ["sha256sum", "install"], cwd=tmp_path, capture_output=True, check=True, timeout=60
    )
    (tmp_path / "SHA256SUMS").write_bytes(sums.stdout)
    cmake = tmp_path / "bin/cmake"
    cmake.parent.mkdir()
    cmake.write_text(f"#!/bin/sh\necho built >>{tmp_path}/built\n", encoding="utf-8")
    cmake.chmod(0o755)
    done = subprocess.run(
        [tmp_path / "install", "plain", tmp_path / "prefix", "--site", "atlantis"],
        env={**os.environ, "PATH": f"{cmake.parent}:{os.environ['PATH']}"},
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode != 0
    assert "unknown site 'atlantis'; sites: alps" in done.stderr
    assert not (tmp_path / "built").exists()


def write_own(folder, name):
    """A site that lies outside of the repository."""
    text = (TOP / "site-configs/generic-amd/site.yaml").read_text(encoding="utf-8")
    text = text.replace("name: generic-amd", f"name: {name}")
    text = text.replace("title: Any machine with AMD GPUs", f"title: {name}")
    text = text.replace("exists: [/dev/kfd]", 'hostnames: ["atl*"]')
    (folder / name / "tables").mkdir(parents=True)
    (folder / name / "site.yaml").write_text(text, encoding="utf-8")
    table = "measured = nobody\nreduce:6m-inf:*:3:ccl\n"
    (folder / name / "tables/one.table").write_text(table, encoding="utf-8")
    return folder / name


def render(out, *folders):
    command = [sys.executable, TOP / "site-configs/tools/render", "--output", out]
    for folder in folders:
        command += ["--site", folder]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def render_own(folder, name="atlantis"):
    """Render a site of one's own; (ended process, folder of what was made)."""
    return render(folder / "out", write_own(folder, name)), folder / "out"


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    done, out = render_own(tmp_path_factory.mktemp("own"))
    assert done.returncode == 0, done.stderr
    return out


@pytest.mark.parametrize("way", ["option", "variable"])
def test_a_site_installs_its_own_site(own, tmp_path, way):
    """Without a change to the release: rendered beside it, installed, detected, and the only one shown."""
    given = ("--sites", own) if way == "option" else ()
    env = {} if way == "option" else {"XCCL_SITES": str(own)}
    prefix = tmp_path / "prefix"
    done = install_tree("--without-library", "--site", "atlantis", *given, prefix, **env)
    assert done.returncode == 0, done.stderr
    share = prefix / "share/xccl"
    for file in ("site.json", "ranks.map", "launch.env", "tables/one.table"):
        assert (share / "sites/atlantis" / file).is_file(), file
    assert not (share / "modulefiles/xccl-site/atlantis/.modulerc.lua").exists()
    assert (share / "modulefiles/xccl-site/frontier/.modulerc.lua").is_file()
    assert "atl*" in (share / "env/sites/detect.sh").read_text(encoding="utf-8")
    (prefix / "lib").mkdir()
    script = f'. {share}/env/xccl.sh && echo "$XCCL_SITE $XCCL_ROOT"'
    shown = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, timeout=60, check=False,
        env={"PATH": os.environ["PATH"]},
    )  # fmt: skip
    assert shown.stdout.split() == ["atlantis", str(prefix)], shown.stderr


def test_a_site_that_is_not_named_again_is_removed_with_a_warning(own, tmp_path):
    prefix = tmp_path / "tree"
    put_xccl(prefix)
    assert install_tree("--sites", own, prefix).returncode == 0
    done = install_tree(prefix)
    assert done.returncode == 0
    assert "warning: sites that were installed before are removed: atlantis" in done.stderr
    assert install_tree(prefix).stderr == ""


def test_a_site_of_another_release_is_refused(own, tmp_path):
    out = shutil.copytree(own, tmp_path / "out")
    file = next((out / "modulefiles/xccl-site/atlantis").glob("*.lua"))
    file.rename(file.with_name("0.0.1.lua"))
    done = install_tree("--sites", out, tmp_path / "prefix")
    assert done.returncode == 2
    assert "rendered for xccl 0.0.1" in done.stderr
    assert not (tmp_path / "prefix").exists()
    done = install_tree("--sites", tmp_path, tmp_path / "prefix")
    assert (done.returncode, "holds no rendered site" in done.stderr) == (2, True)


def test_a_centre_has_several_sites_of_its_own(tmp_path):
    """One rendering knows all of them; those that it no longer makes are gone from its folder."""
    folders = [write_own(tmp_path, name) for name in ("atlantis", "lyonesse")]
    out = tmp_path / "o ut"
    done = render(out, *folders)
    assert done.returncode == 0, done.stderr
    assert f"make install SITE=lyonesse SITES='{out}'" in done.stdout
    detect = (out / "env/sites/detect.sh").read_text(encoding="utf-8")
    assert "sim atlantis lyonesse'" in detect
    assert (out / "site-configs/lyonesse/tables/one.table").is_file()
    assert install_tree("--without-library", "--sites", out, tmp_path / "prefix").returncode == 0
    module = next((out / "modulefiles/xccl-site/atlantis").glob("*.lua"))
    module.rename(module.with_name("0.0.1.lua"))  # of an earlier release
    assert render(out, folders[0]).returncode == 0
    assert [file.name for file in module.parent.glob("*.lua")] == [module.name]
    assert [file.name for file in out.glob("*/sites/lyonesse*")] == []
    assert install_tree("--without-library", "--sites", out, tmp_path / "again").returncode == 0
    assert not (tmp_path / "again/share/xccl/sites/lyonesse").exists()


def test_rendered_sites_need_names_and_a_folder_of_their_own(tmp_path):
    folder = write_own(tmp_path, "atlantis")
    done = render(tmp_path / "out", folder, folder)
    assert (done.returncode, "another folder has a site 'atlantis'" in done.stderr) == (1, True)
    done = render(TOP, folder)
    assert (done.returncode, "--output is the checkout itself" in done.stderr) == (2, True)


def test_a_site_may_not_take_a_name_of_the_release(tmp_path):
    done, out = render_own(tmp_path, "frontier")
    assert (done.returncode, "choose another name" in done.stderr) == (1, True)
    assert not out.exists()


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "out").write_text("a file is in the way", encoding="utf-8")
    done, _ = render_own(tmp_path)
    assert done.returncode == 1
    assert re.search(rf"^render: cannot write '{tmp_path}/out/.*': Not a directory$", done.stderr)


@pytest.mark.parametrize("destdir", [False, True])
@pytest.mark.parametrize("quiet", [(), ("--quiet",)])
def test_a_prefix_without_the_library(tmp_path, quiet, destdir):
    """Most likely mistyped: nothing is installed, unless that is asked for."""
    prefix, env = tmp_path / "prefix", {}
    if destdir:
        prefix, env = "/prefix", {"DESTDIR": str(tmp_path)}
    done = install_tree(*quiet, prefix, **env)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"'{tmp_path}/prefix/bin/xccl-run' is missing" in done.stderr
    assert f"cmake --install BUILD --prefix {prefix}" in done.stderr
    assert not (tmp_path / "prefix").exists()
    done = install_tree("--without-library", *quiet, prefix, **env)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (tmp_path / "prefix/share/xccl/env/xccl.sh").is_file()


def test_the_help_says_what_it_does():
    done = install_tree("--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Installs what is made from the sites")
    for word in ("--site ", "--sites ", "--libdir ", "--without-library", "--check", "DESTDIR"):
        assert word in done.stdout, word
    assert "set -eu" not in done.stdout


def test_it_says_what_to_do_next(tmp_path):
    prefix = tmp_path / "prefix"
    put_xccl(prefix)
    done = install_tree("--site", "frontier", prefix)
    for named in (f"{prefix}/bin/xccl-info", f"module use {prefix}/share/xccl/modulefiles",
                  f". {prefix}/share/xccl/env/xccl.sh frontier", "xccl-doctor"):  # fmt: skip
        assert named in done.stdout, named
    assert list((prefix / "share/xccl/sites/frontier/jobs").glob("*.sbatch"))
    assert "neither nvcc nor hipcc was found" in done.stdout
    (prefix / "lib/xccl").mkdir(parents=True)
    (prefix / "lib/xccl/libxccl-direct-cuda.so").touch()
    assert "nvcc" not in install_tree(prefix).stdout
    again = install_tree("--quiet", prefix)
    assert (again.stdout, again.stderr) == ("", "")


def test_documentation_examples_and_licence(tmp_path):
    prefix = tmp_path / "prefix"
    below = os.path.relpath(tmp_path)
    assert install_tree("--without-library", "--quiet", "/prefix", DESTDIR=below).returncode == 0
    doc = prefix / "share/doc/xccl"
    pages = ("LICENSE", "README.md", "CHANGELOG.md", "docs/start.md", "docs/use/doctor.md",
             "docs/examples/allreduce_cuda.c", "docs/sites/frontier.svg")  # fmt: skip
    for page in pages:
        assert (doc / page).read_bytes(), page


def test_links_of_the_installed_documentation_lead_somewhere(prefix):
    doc = prefix / "share/doc/xccl"
    pages = list(doc.rglob("*.md"))
    links = [
        (page, link)
        for page in pages
        for link in re.findall(
            r"""(?:\]\(|src="|srcset="|href=")([^)"#\s]+)""", page.read_text(encoding="utf-8")
        )
        if not re.match(r"[a-z]+:", link)
    ]
    assert len(pages) > 60 and len(links) > 200
    dead = [f"{p.relative_to(doc)}: {link}" for p, link in links if not (p.parent / link).exists()]
    assert dead == []


def test_checking_writes_nothing(tmp_path):
    done = install_tree("--check", "--site", "sim", tmp_path / "a/b")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not list(tmp_path.iterdir())


def closed_to_others(prefix):
    """What lies in @p prefix, itself included, and is not open to all users."""
    modes = {path: path.stat().st_mode for path in [prefix, *prefix.rglob("*")]}
    return [
        p
        for p, mode in modes.items()
        if mode & 0o044 != 0o044 or (stat.S_ISDIR(mode) and not mode & 1)
    ]


@pytest.mark.parametrize("umask", [0o027, 0o077])
def test_all_users_can_use_what_root_installs(umask, tmp_path):
    """Also where neither root's umask nor that of the checkout lets others read."""
    top = tmp_path / "top"
    for name in (
        "ci",
        "docs",
        "env",
        "libxccl/VERSION",
        "libxccl/cmake",
        "modulefiles",
        "site-configs",
    ):
        source = TOP / name
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if source.is_dir() else shutil.copy
        copy(source, top / name, **({"symlinks": True} if source.is_dir() else {}))
    for page in TOP.glob("[A-Z]*"):
        if page.is_file():
            shutil.copy(page, top)
    subprocess.run(["chmod", "-R", "go=", top], check=True)
    prefix = tmp_path / "deep/prefix"
    subprocess.run(
        [top / "ci/install-packaged", "--without-library", "--site", "sim", prefix],
        umask=umask, capture_output=True, timeout=60, check=True,
    )  # fmt: skip
    assert (prefix / "share/xccl/packaged/xccl-auto").is_dir()
    assert closed_to_others(prefix) == []
    assert closed_to_others(prefix.parent) == []


def test_make_install_puts_the_libraries_into_lib(tmp_path):
    """Also where CMake's default is lib64: pages, modules and scripts name one place."""
    command = ["make", "--dry-run", "install", f"PREFIX={tmp_path}/x", f"BUILD={tmp_path}/build"]
    done = subprocess.run(command, cwd=TOP, capture_output=True, text=True, timeout=60, check=True)
    page = (TOP / "docs/install/plain.md").read_text(encoding="utf-8")
    for text in (done.stdout, page):
        assert re.search(
            r"DCMAKE_INSTALL_PREFIX=\S+ (\\\n\s+)?-DCMAKE_INSTALL_LIBDIR=lib *\n", text
        )


def test_make_install_passes_options_on(tmp_path):
    """A list in quotes stays one argument."""
    option = '-DXCCL_CUDA_ARCHS="80;90"'
    command = ["make", "--dry-run", "install", f"PREFIX={tmp_path}/x", f"OPTIONS={option}"]
    done = subprocess.run(command, cwd=TOP, capture_output=True, text=True, timeout=60, check=True)
    assert f"-DCMAKE_INSTALL_LIBDIR=lib {option}\n" in done.stdout


def test_make_install_takes_a_relative_prefix(tmp_path):
    command = ["make", "--dry-run", "install", "PREFIX=some/where", f"BUILD={tmp_path}/build"]
    done = subprocess.run(command, cwd=TOP, capture_output=True, text=True, timeout=60, check=True)
    assert f'--prefix "{TOP}/some/where"' in done.stdout
    assert f"-DCMAKE_INSTALL_PREFIX={TOP}/some/where" in done.stdout


def test_make_install_refuses_before_it_builds(tmp_path):
    command = [
        "make",
        "install",
        f"PREFIX={tmp_path}/x",
        "SITE=atlantis",
        f"BUILD={tmp_path}/build",
    ]
    done = subprocess.run(
        command, cwd=TOP, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2 and "unknown site 'atlantis'" in done.stderr
    assert not list(tmp_path.iterdir())
