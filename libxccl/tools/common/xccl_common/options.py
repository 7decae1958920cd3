# SPDX-License-Identifier: BSD-3-Clause
"""A command line: its options by name, and what is wrong with them."""

import difflib

SHORT = {"-h": "--help", "-V": "--version"}


class Wrong(Exception):
    """What is wrong with the options."""


def near(word, known, dashes=""):
    """ "; did you mean 'that'?", or nothing. Dashes that all begin with make none alike."""
    length = len(dashes)
    found = difflib.get_close_matches(word[length:], [name[length:] for name in known], 1)
    return f"; did you mean '{dashes}{found[0]}'?" if found else ""


def parse(words, with_value, flags):
    """Options by name, and the words behind "--"."""
    given, rest = {}, list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            break
        word = SHORT.get(word, word)
        name, equals, value = word.partition("=")
        if name in with_value:
            if not equals:
                if not rest:
                    raise Wrong(f"{name} needs a value")
                value = rest.pop(0)
            given[name] = value
        elif word in flags:
            given[word] = True
        elif word.startswith("--"):
            hint = near(name, sorted(flags + with_value), dashes="--") or "; see --help"
            raise Wrong(f"unknown option '{word}'{hint}")
        elif word.startswith("-") and word != "-":
            raise Wrong(f"unknown option '{word}'; see --help")
        else:
            raise Wrong(f"unexpected argument '{word}'; a launcher goes behind '--', see --help")
    return given, rest


def check_choice(option, value, known):
    if not known:
        raise Wrong(f"{option} '{value}': no {option}s are installed; make install adds them")
    if value not in known:
        hint = near(value, known) or "; known: " + ", ".join(known)
        raise Wrong(f"unknown {option} '{value}'{hint}")
