#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Make the completion of every tool for bash, zsh and fish from options.yaml: render.py [--check]

With --check nothing is written; exit status 1 if a file is not what options.yaml makes.
"""

import sys
from pathlib import Path

import yaml

HERE = Path(__file__).resolve().parent
HEAD = "# SPDX-License-Identifier: BSD-3-Clause\n# Rendered by render.py from options.yaml; do not edit.\n"
RESTS = ("command", "files", "nothing")
KINDS = ("one", "list", "files", "folders", "sites", "any")


def read():
    """{tool: (rest, {option: (kind or None for a flag, values, text)})}"""
    tools = {}
    for tool, given in yaml.safe_load((HERE / "options.yaml").read_text())["tools"].items():
        if given["rest"] not in RESTS:
            raise SystemExit(f"options.yaml: {tool}: rest is one of {', '.join(RESTS)}")
        options = {}
        for option, value in given["options"].items():
            if isinstance(value, str):
                options[option] = (None, [], value)
                continue
            kinds = [kind for kind in KINDS if kind in value]
            if len(kinds) != 1 or set(value) != {*kinds, "text"}:
                raise SystemExit(f"options.yaml: {tool} {option}: a text, and one of {KINDS}")
            named = value[kinds[0]] if kinds[0] in ("one", "list") else []
            options[option] = (kinds[0], [str(one) for one in named], value["text"])
        tools[tool] = (given["rest"], options)
    return tools


def quoted(text):
    """@p text in the quotes of bash, zsh and fish alike."""
    return "'" + text.replace("'", "") + "'"


# bash: the option before the word says what the word may be. bash splits words at colons and equals signs, so that
# "--sim cuda:4" is four of them, and an answer is what comes behind the colon.

BASH_WORDS = """\
    local at=$COMP_CWORD stem='' prev cur=${{COMP_WORDS[COMP_CWORD]}}{more}
    COMPREPLY=()
    if [[ $cur == : ]]; then
        at=$((at - 1))
        stem=${{COMP_WORDS[at]}}:
        cur=$stem
    elif [[ ${{COMP_WORDS[at - 1]}} == : ]]; then
        at=$((at - 2))
        stem=${{COMP_WORDS[at]}}:
        cur=$stem$cur
    elif [[ $cur == = ]]; then
        at=$((at + 1))
        cur=
    fi
    prev=${{COMP_WORDS[at - 1]}}
    [[ $prev != = ]] || prev=${{COMP_WORDS[at - 2]}}
    case $prev in"""
BASH_STEM = '\n            COMPREPLY=("${COMPREPLY[@]#"$stem"}")'

BASH_VALUE = {
    "one": "mapfile -t COMPREPLY < <(compgen -W {values} -- \"$cur\")",
    "list": "local head=''\n"
    "            [[ $cur == *,* ]] && head=${{cur%,*}},\n"
    "            mapfile -t COMPREPLY < <(compgen -P \"$head\" -W {values} -- \"${{cur##*,}}\")",
    "files": 'mapfile -t COMPREPLY < <(compgen -f -- "$cur")',
    "folders": 'mapfile -t COMPREPLY < <(compgen -d -- "$cur")',
    "sites": 'local bin\n'
    '            bin=$(dirname "$(type -P "${{COMP_WORDS[0]}}")")\n'
    "            mapfile -t COMPREPLY < <(CDPATH='' cd -- \"$bin/../share/xccl/sites\" 2>/dev/null && "
    'compgen -d -- "$cur")',
    "any": ":",
}  # fmt: skip
BASH_COMMAND = """\
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${{COMP_WORDS[i]}} in
            {takers})
                [[ ${{COMP_WORDS[i + 1]-}} != = ]] || i=$((i + 1))
                i=$((i + 1))
                while [[ ${{COMP_WORDS[i + 1]-}} == : ]]; do
                    i=$((i + 2))
                done ;;
            --)
                i=$((i + 1))
                break ;;
            -*) ;;
            *) break ;;
        esac
    done
    if ((i < COMP_CWORD)) && declare -F _command_offset >/dev/null; then
        _command_offset "$i"
        return
    elif [[ $cur != -* ]]; then
        mapfile -t COMPREPLY < <(compgen -c -- "$cur")
        return
    fi
"""
BASH_FILES = """\
    if [[ $cur != -* ]]; then
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        return
    fi
"""


def bash(tool, rest, options):
    function = "_" + tool.replace("-", "_")
    takers = [option for option, (kind, _, _) in options.items() if kind]
    lines = [f"# shellcheck shell=bash\n\n{function}() {{"]
    lines.append(BASH_WORDS.format(more=" i" if rest == "command" else ""))
    for option in takers:
        kind, values, _ = options[option]
        body = BASH_VALUE[kind].format(values=quoted(" ".join(values)))
        body += BASH_STEM if any(":" in value for value in values) else ""
        lines.append(f"        {option})\n            {body}\n            return ;;")
    lines.append("    esac")
    if rest == "command":
        lines.append(BASH_COMMAND.format(takers=" | ".join(takers)).rstrip("\n"))
    if rest == "files":
        lines.append(BASH_FILES.rstrip("\n"))
    words = quoted(" ".join([*options, *(["--"] if rest == "command" else [])]))
    lines.append(f'    mapfile -t COMPREPLY < <(compgen -W {words} -- "$cur")\n}}')
    return HEAD + "\n".join(lines) + f"\ncomplete -F {function} {tool}\n"


# zsh: the specifications of _arguments, in which colons and brackets have a meaning.


def zsh_text(text):
    for special in "\\:[]":
        text = text.replace(special, "\\" + special)
    return text.replace("'", "")


def zsh(tool, rest, options):
    lines = []
    for option, (kind, values, text) in options.items():
        listed = " ".join(zsh_text(value) for value in values)
        action = {
            None: "",
            "one": f":value:({listed})",
            "list": f":values:_sequence compadd - {listed}",
            "files": ":file:_files",
            "folders": ":folder:_files -/",
            "sites": f":site:{{compadd -- ${{commands[{tool}]\\:h}}/../share/xccl/sites/*(/N\\:t)}}",
            "any": ":value: ",
        }[kind]
        lines.append(f"'{option}[{zsh_text(text)}]{action}'")
    behind = {"command": "'*:::command:_normal'", "files": "'*:file:_files'"}.get(rest)
    lines += [behind] if behind else []
    arguments = " \\\n    ".join(["_arguments", *lines])
    return f"#compdef {tool}\n{HEAD}\n{arguments}\n"


# fish: a line for each option.


def fish(tool, rest, options):
    lines = []
    if rest == "command":
        takers = " ".join(option for option, (kind, _, _) in options.items() if kind)
        lines.append(f"-x -a '(__fish_complete_subcommand -- {takers})'")
    elif rest == "nothing":
        lines.append("-f")
    for option, (kind, values, text) in options.items():
        listed = " ".join(values)
        value = {
            None: "",
            "one": f" -x -a {quoted(listed)}",
            "list": f" -x -a '(__fish_append , {listed})'",
            "files": " -r -F",
            "folders": " -x -a '(__fish_complete_directories)'",
            "sites": f" -x -a '(for site in (dirname (command -s {tool}) 2>/dev/null)/../share/xccl/sites/*/; "
            "basename $site; end)'",
            "any": " -x",
        }[kind]
        lines.append(f"-l {option[2:]}{value} -d {quoted(text)}")
    return HEAD + "".join(f"complete -c {tool} {line}\n" for line in lines)


def render():
    """{path below this folder: text}"""
    files = {}
    for tool, (rest, options) in read().items():
        files[f"bash/{tool}"] = bash(tool, rest, options)
        files[f"zsh/_{tool}"] = zsh(tool, rest, options)
        files[f"fish/{tool}.fish"] = fish(tool, rest, options)
    return files


def main():
    stale, check = [], sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        raise SystemExit("usage: render.py [--check]")
    files = render()
    there = {
        p.relative_to(HERE).as_posix()
        for s in ("bash", "zsh", "fish")
        for p in HERE.glob(f"{s}/*")
    }
    for path, text in files.items():
        file = HERE / path
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            stale.append(path)
            if not check:
                file.parent.mkdir(exist_ok=True)
                file.write_text(text, encoding="utf-8")
    for path in sorted(there - set(files)):
        stale.append(path)
        if not check:
            (HERE / path).unlink()
    if check and stale:
        print(
            f"completion: not what options.yaml makes: {', '.join(stale)}; run {Path(__file__).name}"
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
