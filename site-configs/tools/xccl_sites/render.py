# SPDX-License-Identifier: BSD-3-Clause
"""Render every file made from the sites; render --check compares it with what is committed."""

import json
import textwrap
from pathlib import Path

import jinja2

from . import model, packaging, picture

MARK = "Rendered by site-configs/tools/render"
# Where rendered files lie; one there that carries the mark and is made from nothing is stale.
OWNED = (
    "env/sites/*",
    "modulefiles/*/*.lua",
    "modulefiles/*/*/*.lua",
    "docs/sites/*.md",
    "docs/sites/*.svg",
    "site-configs/*/jobs/*",
    "site-configs/*/*.json",
    "site-configs/*/*.map",
    "site-configs/*/*.env",
    "site-configs/*/spack/*.yaml",
    "site-configs/*/spack/*/*.yaml",
    "easyconfigs/settings/*/*.eb",
)


def _comment(text, prefix="# ", width=110):
    """Text as comment lines."""
    return "\n".join(
        prefix + line for line in textwrap.wrap(text, width - len(prefix), break_long_words=False)
    )


def _why(variable, prefix="# "):
    """Reason, source and end of a variable, as comment lines."""
    text = f"{variable['reason']} ({variable['from']})"
    if variable.get("verified") == "unverified":
        text += "; unverified"
    if "ends" in variable:
        text += f"; until {variable['ends']}"
    return _comment(text, prefix)


def _environment():
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(
        comment=_comment,
        why=_why,
        lua=model.lua_pattern,
        case=model.case_pattern,
        regex=model.regex_pattern,
        push=model.push_function,
        pieces=packaging.pieces,
        by_guard=_by_guard,
    )
    environment.globals.update(mark=MARK, model=model, dict=dict)
    return environment


def _by_guard(variables):
    """[(module or None, [variable])]: neighbours with the same unless_module together."""
    groups = []
    for variable in variables:
        guard = variable.get("unless_module")
        if not groups or groups[-1][0] != guard:
            groups.append((guard, []))
        groups[-1][1].append(variable)
    return groups


def _site_json(routes, site):
    """Everything a tool with nothing but Python's standard library needs to know of a site."""
    value = {
        "_comment": f"{MARK} from site-configs/{site['name']}/site.yaml; licence BSD-3-Clause"
    }
    value.update(site)
    value["resolved"] = {
        "mpi_modules": model.mpi_needs(routes, site),
        "routes": {
            route["name"]: {
                "refused": model.refused(site).get(route["name"]),
                "preload": route.get("preload", False),
                "variables": {
                    v["name"]: v["value"]
                    for v in model.route_variables(routes, route, site["ccl"]["library"])
                },
            }
            for route in routes["routes"]
        },
        "shell": {v["name"]: v["value"] for v in model.shell_variables(site)},
    }
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


class _Out:
    """Collects the rendered files: {path below the repository's root: text}."""

    def __init__(self, top, routes, sites, version, source_url):
        self.top = top
        self.common = {
            "routes": routes,
            "sites": sites,
            "version": version,
            "source_url": source_url,
        }
        self.environment = _environment()
        self.files = {}

    def add(self, path, template, **values):
        text = self.environment.get_template(template).render(**self.common, path=path, **values)
        self.files[path] = text

    def notes(self, name):
        """The hand-written part of a site's page, without the licence line; none is fine."""
        file = self.top / name / "notes.md"
        if not file.is_file():
            return ""
        lines = file.read_text(encoding="utf-8").splitlines()
        return "\n".join(line for line in lines if "SPDX-License-Identifier" not in line).strip()

    def site(self, routes, site):
        name = site["name"]
        values = {
            "site": site,
            "shell": model.shell_variables(site),
            "groups": _by_guard(model.shell_variables(site)),
            "launch": model.launch_variables(site),
            "launch_many": [
                v
                for v in model.launch_variables(site)
                if v.get("nodes") != "one" and not model.switches_gpus_off(v)
            ],
            "guard": next(
                (v["unless_module"] for v in model.launch_variables(site) if "unless_module" in v),
                "",
            ),
            "refused": model.refused(site),
            "notes": self.notes(name),
            "of_route": {
                r["name"]: model.route_variables(routes, r, site["ccl"]["library"])
                for r in routes["routes"]
            },
        }
        for shell in ("sh", "csh", "fish"):
            self.add(f"env/sites/{name}.{shell}", f"site.{shell}.j2", **values)
        self.add(
            f"modulefiles/xccl-site/{name}/{self.common['version']}.lua", "site.lua.j2", **values
        )
        if values["launch"]:
            self.add(
                f"modulefiles/xccl-settings/{name}/{self.common['version']}.lua",
                "settings-site.lua.j2",
                **values,
            )
        self.add(f"site-configs/{name}/ranks.map", "ranks.map.j2", **values)
        self.add(f"site-configs/{name}/launch.env", "launch.env.j2", **values)
        for software in site["software"]:
            self.add(
                f"site-configs/{name}/jobs/{software['name']}.sbatch",
                "job.sbatch.j2",
                software=software,
                **values,
            )
        packaging.add(self, routes, site)
        self.files[f"site-configs/{name}/site.json"] = _site_json(routes, site)
        values["picture"] = picture.has_picture(site)
        if values["picture"]:
            self.files[f"docs/sites/{name}.svg"] = picture.node(site, MARK)
        self.add(f"docs/sites/{name}.md", "site.md.j2", **values)


def render_all(root, routes, sites):
    """Return {path below @p root: text} of everything rendered."""
    version = (root / "libxccl" / "VERSION").read_text(encoding="utf-8").split()[0]
    source_url = (root / "ci" / "source-url").read_text(encoding="utf-8").strip()
    out = _Out(root / "site-configs", routes, sites, version, source_url)
    for shell in ("sh", "csh", "fish"):
        out.add(f"env/sites/detect.{shell}", f"detect.{shell}.j2")
    out.add(f"modulefiles/xccl/{version}.lua", "xccl.lua.j2")
    out.add(f"modulefiles/xccl-auto/{version}.lua", "auto.lua.j2")
    for route in routes["routes"]:
        file = f"modulefiles/xccl-route/{route['name']}/{version}.lua"
        out.add(file, "route.lua.j2", route=route)
    for settings in routes["settings"]:
        with_source = [
            {**v, "from": routes["sources"][v["source"]]["title"]} for v in settings["variables"]
        ]
        out.add(
            f"modulefiles/xccl-settings/{settings['name']}/{version}.lua",
            "settings.lua.j2",
            settings=settings,
            variables=with_source,
        )
    for site in sites:
        out.site(routes, site)
    out.add("docs/sites/index.md", "index.md.j2")
    out.add("docs/sites/routes.md", "routes.md.j2")
    return out.files


def stale(root, files):
    """Files of the owned folders with the mark of the renderer that nothing makes any more."""
    found = []
    for pattern in OWNED:
        for file in sorted(root.glob(pattern)):
            path = file.relative_to(root).as_posix()
            if (
                path not in files
                and file.is_file()
                and MARK in file.read_text(encoding="utf-8", errors="replace")[:600]
            ):
                found.append(path)
    return found
