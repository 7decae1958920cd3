# SPDX-License-Identifier: BSD-3-Clause
"""Check site.yaml and routes.yaml: by the JSON Schema, then what a schema cannot say."""

import datetime
import difflib
import json
from pathlib import Path

import jsonschema

from . import model
from .load import Fault, read_yaml, where_text
from .tables import site_table_faults

MAX_AGE = 365  # days after which a site's facts want a look
SCHEMAS = Path(__file__).resolve().parents[2] / "schema"


def cpu_list(text):
    """'0-3,8' as {0, 1, 2, 3, 8}; 'auto' as the empty set. Raises ValueError for a range that runs backwards."""
    cpus = set()
    if text != "auto":
        for part in text.split(","):
            low, _, high = part.partition("-")
            if int(high or low) < int(low):
                raise ValueError(f"the range {part} runs backwards")
            cpus.update(range(int(low), int(high or low) + 1))
    return cpus


def control_faults(file, value, lines, path=()):
    """Faults of text with a line break or another control character, which no rendered file can hold."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from control_faults(file, str(key), lines, path)
            yield from control_faults(file, inner, lines, (*path, key))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from control_faults(file, inner, lines, (*path, i))
    elif isinstance(value, str) and any(ord(char) < 32 or ord(char) == 127 for char in value):
        text = (
            f"{value!r} holds a line break or another control character; allowed: one line of text"
        )
        yield Fault(file, lines.get(path, 0), where_text(path), text)


def age_warnings(sites, today):
    """Sentences on sites whose facts nobody has compared with their sources for a year."""
    for site in sites:
        days = (today - datetime.date.fromisoformat(site["checked"])).days
        if days > MAX_AGE:
            yield (
                f"{site['name']}: its facts were last checked on {site['checked']}, {days} days ago; "
                f"maintainer: {site['maintainer']}"
            )


def _detected_by(site):
    """{what a site is recognised by}: (kind, variable or file, glob)."""
    found = set()
    for kind, value in site["detect"].items():
        if isinstance(value, dict):
            found |= {(kind, name, glob) for name, globs in value.items() for glob in globs}
        elif isinstance(value, list):
            found |= {(kind, "", glob) for glob in value}
    return found


def detection_warnings(sites, known):
    """Sentences on @p sites that are recognised by the same as another one of @p known."""
    for site in sites:
        for other in known:
            if site["name"] == other["name"]:
                continue
            for kind, name, glob in sorted(_detected_by(site) & _detected_by(other)):
                what = ": ".join(filter(None, (f"detect.{kind}", name, glob)))
                yield (
                    f"{site['name']}: {what} stands in {other['name']}, too, and only the site that is tried first is "
                    f"recognised; name what this machine alone has, or choose the site by name (XCCL_SITE)"
                )


def title_warnings(sites, known):
    """Sentences on @p sites that have the title of another one of @p known."""
    for site in sites:
        for other in known:
            if site["name"] != other["name"] and site["title"] == other["title"]:
                yield (
                    f"{site['name']}: its title '{site['title']}' is that of {other['name']}, too; lists and "
                    "messages show the title"
                )


def _allowed(error):
    """What would have been right, from the schema at the place of the error."""
    schema = error.schema
    if error.validator == "enum":
        return "allowed: " + ", ".join(str(value) for value in schema["enum"])
    if error.validator == "const":
        return f"allowed: {schema['const']}"
    if error.validator in ("minimum", "exclusiveMinimum"):
        return f"allowed: numbers from {schema[error.validator]}"
    if error.validator == "type":
        wanted = f"a value of type {schema['type']}"
        text = schema.get("description", wanted)
        quoted = schema["type"] == "string" and not isinstance(error.instance, (dict, list))
        return f"allowed: {text}" + (" (put it in quotes)" if quoted else "")
    return f"allowed: {schema['description']}" if "description" in schema else error.message


def _unknown_keys(error):
    """Sentences for keys the schema does not know."""
    known = sorted(error.schema.get("properties", {}))
    for key in sorted(set(map(str, error.instance)) - set(known)):
        near = difflib.get_close_matches(key, known, 1)
        hint = f" (did you mean '{near[0]}'?)" if near else ""
        yield f"unknown key '{key}'{hint}; allowed: {', '.join(known)}"


def _sentences(error):
    if error.validator == "additionalProperties" and isinstance(
        error.schema["additionalProperties"], bool
    ):
        yield from _unknown_keys(error)
    elif error.validator == "required":
        missing = [f"'{key}'" for key in error.validator_value if key not in error.instance]
        what = "key {} is" if len(missing) == 1 else "keys {} are"
        needed = ", ".join(error.validator_value)
        hint = "; with SMT 1 write siblings: auto" if "'siblings'" in missing else ""
        yield f"{what.format(', '.join(missing))} missing; needed: {needed}{hint}"
    elif error.validator == "oneOf":
        yield "exactly one of 'value' and 'tune' is needed"
    else:
        shown = (
            error.instance
            if not isinstance(error.instance, (dict, list))
            else where_text(error.absolute_path)
        )
        yield f"'{shown}' is not allowed; {_allowed(error)}"


def schema_faults(file, value, lines, schema_name):
    """Faults of @p value against a schema, each with the line it is on."""
    schema = json.loads((SCHEMAS / schema_name).read_text(encoding="utf-8"))
    validator = jsonschema.Draft202012Validator(schema)
    errors = validator.iter_errors(value)
    said = set()
    for found in sorted(errors, key=lambda e: list(map(str, e.absolute_path))):
        error = found
        if found.validator == "anyOf" and found.context:
            error = jsonschema.exceptions.best_match(found.context) or found
        path = tuple(error.absolute_path)
        # There is an error for each missing key, and the first names them all.
        for sentence in _sentences(error):
            if (path, sentence) in said:
                continue
            said.add((path, sentence))
            yield Fault(file, lines.get(path, 0), where_text(path), sentence)


class _Site:
    """The checks a schema cannot express, over one site file that passed its schema."""

    def __init__(self, file, site, lines, routes):
        self.file, self.site, self.lines, self.routes = file, site, lines, routes
        self.faults = []

    def fault(self, path, text):
        self.faults.append(
            Fault(self.file, self.lines.get(tuple(path), 0), where_text(path), text)
        )

    def run(self):
        for step in (
            self.identity,
            self.detection,
            self.sources,
            self.adapters,
            self.ranks,
            self.launch,
            self.variables,
            self.route_rules,
            self.requires,
        ):
            step()
        return self.faults

    def identity(self):
        folder = Path(self.file).parent.name
        if self.site["name"] != folder:
            self.fault(
                ["name"],
                f"is '{self.site['name']}', but the folder is '{folder}'; make them equal",
            )
        try:
            day = datetime.date.fromisoformat(self.site["checked"])
        except ValueError:
            self.fault(
                ["checked"],
                f"'{self.site['checked']}' is no day of the calendar; allowed: YYYY-MM-DD",
            )
            return
        if day > datetime.date.today() + datetime.timedelta(days=1):
            self.fault(["checked"], f"'{day}' lies in the future")

    def detection(self):
        for kind in ("environment", "files", "hostnames", "products"):
            value = self.site["detect"].get(kind, {})
            by_name = value.items() if isinstance(value, dict) else [(None, value)]
            for name, globs in by_name:
                for i, glob in enumerate(globs):
                    # A job of Slurm has these with some value wherever it is.
                    anything = glob.strip("*?" if (name or "SLURM_").startswith("SLURM_") else "*")
                    if not anything or (kind == "files" and not glob.strip("*?")):
                        path = ["detect", kind, *([name] if name else []), i]
                        self.fault(
                            path, f"'{glob}' fits every machine; allowed: what this one has"
                        )

    def adapters(self):
        nic = self.site["hardware"]["nic"]
        names, count = nic.get("names"), nic.get("count")
        if names and count is not None and count != len(names):
            self.fault(
                ["hardware", "nic", "count"], f"is {count}, but names has {len(names)} of them"
            )

    def launch(self):
        launch, hardware = self.site["launch"], self.site["hardware"]
        cpus, node = launch.get("cpus_per_task"), hardware["node"]
        for kind in ("srun", "sbatch"):
            for i, option in enumerate(launch[kind]):
                name, _, value = option.partition("=")
                if name == "--cpus-per-task" and cpus is not None and value != str(cpus):
                    self.fault(
                        ["launch", kind, i],
                        f"is '{option}', but launch.cpus_per_task is {cpus}; make them equal",
                    )
        gpus, threads = hardware["gpu"].get("count"), node.get("cores", 0) * node.get("smt", 1)
        if cpus is not None and gpus and 0 < threads < cpus * gpus:
            self.fault(
                ["launch", "cpus_per_task"],
                f"is {cpus}: {gpus} ranks of it need {cpus * gpus} CPUs, and a node has {threads}; "
                f"allowed: 1 to {threads // gpus}",
            )

    def sources(self):
        known, used = self.site["sources"], set()

        def walk(value, path):
            if isinstance(value, dict):
                for key, inner in value.items():
                    if key == "source":
                        used.add(inner)
                        if inner not in known:
                            allowed = ", ".join(sorted(known))
                            self.fault(
                                [*path, key], f"'{inner}' is no key of sources; allowed: {allowed}"
                            )
                    else:
                        walk(inner, [*path, key])
            elif isinstance(value, list):
                for i, inner in enumerate(value):
                    walk(inner, [*path, i])

        walk({key: value for key, value in self.site.items() if key != "sources"}, [])
        for name in sorted(set(known) - used):
            self.fault(["sources", name], "is named by no fact; remove it or name it")

    def ranks(self):
        hardware = self.site["hardware"]
        node, gpu = hardware["node"], hardware["gpu"]
        ranks = hardware["binding"]["ranks"]
        taken, gpus = {}, {}
        if ranks and len(ranks) != gpu.get("count"):
            self.fault(
                ["hardware", "binding", "ranks"],
                f"has {len(ranks)} entries, hardware.gpu.count is {gpu.get('count')}",
            )
        for i, rank in enumerate(ranks):
            path = ["hardware", "binding", "ranks", i]
            if rank["gpu"] in gpus:
                self.fault(
                    [*path, "gpu"],
                    f"GPU {rank['gpu']} belongs to rank {gpus[rank['gpu']]} already",
                )
            gpus[rank["gpu"]] = i
            if rank["gpu"] >= gpu.get("count", 0):
                self.fault(
                    [*path, "gpu"], f"is {rank['gpu']}; allowed: 0 to {gpu.get('count', 0) - 1}"
                )
            if rank["numa"] != "auto" and rank["numa"] >= node.get("numa", 0):
                self.fault(
                    [*path, "numa"], f"is {rank['numa']}; allowed: 0 to {node.get('numa', 0) - 1}"
                )
            names = hardware["nic"].get("names")
            if rank["nic"] != "auto" and rank["nic"] not in (names or []):
                self.fault(
                    [*path, "nic"], f"is '{rank['nic']}'; allowed: auto, {', '.join(names or [])}"
                )
            self.rank_cpus(path, i, rank, taken)

    def rank_cpus(self, path, i, rank, taken):
        node = self.site["hardware"]["node"]
        count, threads = node.get("cores", 0), node.get("cores", 0) * node.get("smt", 1)
        try:
            cores, siblings = cpu_list(rank["cores"]), cpu_list(rank["siblings"])
        except ValueError as error:
            self.fault(path, f"{error}; allowed: low-high")
            return
        for cpu in sorted(cores | siblings):
            if cpu in taken:
                self.fault(path, f"CPU {cpu} belongs to rank {taken[cpu]} already")
                return
            taken[cpu] = i
        if cores and max(cores) >= count:
            self.fault([*path, "cores"], f"names core {max(cores)}; allowed: 0 to {count - 1}")
        if siblings and threads <= count:
            self.fault(
                [*path, "siblings"], f"is {rank['siblings']}; allowed with SMT 1: siblings: auto"
            )
            return
        if siblings and not (min(siblings) >= count and max(siblings) < threads):
            self.fault(
                [*path, "siblings"], f"is {rank['siblings']}; allowed: {count} to {threads - 1}"
            )
        if siblings and len(siblings) != len(cores) * (node.get("smt", 1) - 1):
            self.fault(
                [*path, "siblings"],
                f"has {len(siblings)} CPUs for {len(cores)} cores with SMT {node.get('smt', 1)}",
            )

    def variables(self):
        seen = {}
        of_routes = {v["name"] for route in self.routes["routes"] for v in route["variables"]}
        for i, variable in enumerate(self.site["variables"]):
            path, name = ["variables", i], variable["name"]
            scope, nodes = variable.get("scope", "shell"), variable.get("nodes")
            if "nodes" in variable and scope != "launch":
                self.fault(
                    [*path, "nodes"],
                    "only a variable of scope launch can depend on the number of nodes",
                )
            if name in of_routes:
                self.fault(
                    [*path, "name"], f"'{name}' belongs to the routes (site-configs/routes.yaml)"
                )
            if scope == "shell" and model.switches_gpus_off(variable):
                self.fault(
                    path,
                    f"'{name}={variable['value']}' switches GPU awareness off for every program of the "
                    "shell, also for those that xccl does not serve; allowed: scope: launch",
                )
            if name.startswith("XCCL_"):
                self.fault(
                    [*path, "name"],
                    f"'{name}': a site sets no XCCL_ variable; XCCL_SITE comes from its name",
                )
            clash = [
                i2
                for other, i2 in seen.items()
                if other[0] == name and (None in (other[1], nodes) or other[1] == nodes)
            ]
            if clash:
                self.fault([*path, "name"], f"'{name}' is set by variables[{clash[0]}] already")
            seen[(name, nodes)] = i
            module = variable.get("unless_module")
            if module and module != self.site.get("plugin", {}).get("module"):
                self.fault(
                    [*path, "unless_module"], f"'{module}' is not plugin.module; name that one"
                )

    def route_rules(self):
        mpi, routes = self.site["mpi"], self.site.get("routes", {})
        refused = {entry["route"] for entry in routes.get("refused", [])}
        if "xccl" in refused:
            self.fault(["routes", "refused"], "route 'xccl' is the default of every site")
        for route in self.routes["routes"]:
            family = route.get("needs", {}).get("mpi")
            wrong = family and (mpi["transport"] == "ofi" or mpi["family"] not in (family, "any"))
            if wrong and route["name"] not in refused:
                self.fault(
                    ["routes", "refused"],
                    f"route '{route['name']}' cannot work with mpi family {mpi['family']} over "
                    f"{mpi['transport']}; list it with a reason",
                )

    def requires(self):
        known, family = self.routes["mpi_modules"], self.site["mpi"]["family"]
        for i, need in enumerate(self.site.get("requires", [])):
            if need["what"] != "MPI":
                continue
            for module in need["any_of"]:
                if module not in known:
                    self.fault(
                        ["requires", i, "any_of"],
                        f"'{module}' has no family; add it to mpi_modules in routes.yaml",
                    )
            if family != "any" and family not in (known.get(module) for module in need["any_of"]):
                self.fault(
                    ["requires", i, "any_of"],
                    f"no module of the family '{family}', which mpi.family names",
                )


def check_routes(file):
    """Return (routes, faults) of routes.yaml."""
    try:
        routes, lines = read_yaml(file)
    except Fault as fault:
        return None, [fault]
    faults = list(schema_faults(file, routes, lines, "routes.schema.json"))
    if not faults:
        for kind in ("routes", "settings"):
            for i, entry in enumerate(routes[kind]):
                for j, variable in enumerate(entry["variables"]):
                    if variable["source"] not in routes["sources"]:
                        path = (kind, i, "variables", j, "source")
                        allowed = ", ".join(sorted(routes["sources"]))
                        text = f"'{variable['source']}' is no key of sources; allowed: {allowed}"
                        faults.append(Fault(file, lines[path], where_text(path), text))
    return routes, faults


def check_site(file, routes):
    """Return (site, faults) of one site.yaml and the tables beside it; faults name place, cause and what is allowed."""
    try:
        site, lines = read_yaml(file)
    except Fault as fault:
        return None, [fault]
    faults = list(schema_faults(file, site, lines, "site.schema.json"))
    faults += control_faults(file, site, lines)
    faults = faults or _Site(file, site, lines, routes).run()
    return site, faults + site_table_faults(Path(file).parent)


def check_all(top):
    """Return (routes, [site], faults) of the site-configs folder @p top."""
    routes, faults = check_routes(top / "routes.yaml")
    if faults:
        return routes, [], faults
    sites = []
    for file in sorted(top.glob("*/site.yaml")):
        site, wrong = check_site(file, routes)
        sites.append(site)
        faults += wrong
    return routes, sites, faults
