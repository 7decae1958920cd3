# SPDX-License-Identifier: BSD-3-Clause
"""Read YAML strictly, and remember the line of every value so that messages can name it."""

import os
from pathlib import Path

import yaml


class Fault(Exception):
    """One thing that is wrong with one file, as a sentence for the person who edits it."""

    def __init__(self, path, line, where, text):
        path = os.path.relpath(path)
        if path.startswith(".."):  # a long way up and down says nothing
            path = os.path.abspath(path)
        place = f"{path}:{line}" if line else path
        super().__init__(f"{place}: {where}: {text}" if where else f"{place}: {text}")


class _Loader(yaml.SafeLoader):
    """A date stays text: JSON, which the schema describes, has no dates. No aliases."""

    def compose_node(self, parent, index):
        """An alias may name what holds it, without end; a file of facts needs none."""
        if self.check_event(yaml.AliasEvent):
            event = self.peek_event()
            line = event.start_mark.line + 1
            raise Fault(
                self.name, line, "", f"alias '*{event.anchor}': write the value out instead"
            )
        return super().compose_node(parent, index)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, regexp) for tag, regexp in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def where_text(path):
    """('variables', 3, 'name') as variables[3].name."""
    text = ""
    for key in path:
        text += f"[{key}]" if isinstance(key, int) else f".{key}" if text else str(key)
    return text


def _lines(node, path, lines, faults, file):
    """Note the line of every node below @p node; a key that is there twice is a fault."""
    lines[path] = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            if key.value in seen:
                line = key.start_mark.line + 1
                faults.append(
                    Fault(file, line, where_text(path), f"key '{key.value}' is given twice")
                )
            seen.add(key.value)
            _lines(value, (*path, key.value), lines, faults, file)
    elif isinstance(node, yaml.SequenceNode):
        for i, value in enumerate(node.value):
            _lines(value, (*path, i), lines, faults, file)


def _parse(text, file):
    """(node, value): Python's parser is slow, and does it once."""
    loader = _Loader(text)
    loader.name = file
    try:
        node = loader.get_single_node()
        return node, loader.construct_document(node) if node else None
    finally:
        loader.dispose()


def read_yaml(file):
    """Return (value, {path: line}); raise Fault when @p file is no YAML or repeats a key."""
    try:
        text = Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise Fault(file, 0, "", f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise Fault(file, 0, "", f"is no text in UTF-8 (byte {error.start})") from error
    try:
        node, value = _parse(text, file)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = mark.line + 1 if mark else 0
        raise Fault(file, line, "", f"is not YAML: {error.problem}") from error
    except (yaml.YAMLError, ValueError, TypeError) as error:  # control characters, wrong tags
        reason = " ".join(str(error).split())
        line = text[: getattr(error, "position", 0)].count("\n") + 1
        raise Fault(file, line, "", f"is not YAML: {reason}") from error
    if not isinstance(value, dict):
        raise Fault(file, 1, "", "must be a mapping of keys to values")
    lines, faults = {}, []
    _lines(node, (), lines, faults, file)
    if faults:
        raise faults[0]
    return value, lines
