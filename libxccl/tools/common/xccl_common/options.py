# SPDX-License-Identifier: BSD-3-Clause
"""A command line: its options by name, and what is wrong with them."""

import difflib

ALIKE, BEGUN_ALIKE = 0.6, 0.8  # of 1; of what a name only begins with more is asked
LEAST_START = 4  # letters
SHORT = {"-h": "--help", "-V": "--version"}


class Wrong(Exception):
    """What is wrong with the options."""


def likeness(word, name):
    """0 to 1, whatever the case; who types only how a long name begins means it, too."""
    word, name = word.lower(), name.lower()
    whole, begun = (
        difflib.SequenceMatcher(None, text, word).ratio() for text in (name, name[: len(word)])
    )
    begins = len(word) >= LEAST_START and begun >= BEGUN_ALIKE
    return max(whole if whole >= ALIKE else 0, begun if begins else 0)


def nearest(word, known):
    """The name that was most likely meant, or None."""
    best = max(known, key=lambda name: likeness(word, name), default=None)
    return best if best is not None and likeness(word, best) > 0 else None


def near(word, known, dashes=""):
    """ "; did you mean 'that'?", or nothing. Dashes that all begin with make none alike."""
    length = len(dashes)
    found = nearest(word[length:], [name[length:] for name in known])
    return f"; did you mean '{dashes}{found}'?" if found else ""


def refuse_option(word, known, elsewhere):
    """An option that is not known. elsewhere: {option of other tools: what there is here instead}."""
    name = word.partition("=")[0]
    hint = near(name, sorted(known), dashes="--")
    if not hint:
        other = nearest(name[2:], [option[2:] for option in elsewhere])
        hint = (
            f"; there is no --{other} here: {elsewhere['--' + other]}" if other else "; see --help"
        )
    raise Wrong(f"unknown option '{word}'{hint}")


def parse(words, with_value, flags, elsewhere=()):
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
            refuse_option(word, flags + with_value, elsewhere)
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
