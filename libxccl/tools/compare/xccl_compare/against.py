# SPDX-License-Identifier: BSD-3-Clause
"""Where two results differ, and where the difference is noise."""

from collections import namedtuple

from . import result as results
from . import stats, table, words

Verdict = namedtuple("Verdict", "case variant coll bytes difference q word")
FALSE_SHARE = 0.05


def values(entry):
    return list(entry["samples_us"].values())


def key_of(entry):
    return entry["case"], entry["variant"], entry["coll"], entry["bytes"]


def word_for(difference, q):
    """faster, slower, noise; few: so few samples that no difference could be told from noise."""
    if difference.least_p > FALSE_SHARE:
        return "few"
    if q > FALSE_SHARE or difference.low <= 1 <= difference.high:
        return "noise"
    return "slower" if difference.ratio > 1 else "faster"


def verdicts(old, new):
    """One for each measurement that both have. The q values are over all of them."""
    before = {key_of(entry): entry for entry in old["results"]}
    both = [entry for entry in new["results"] if key_of(entry) in before]
    found = [stats.compare(values(before[key_of(e)]), values(e)) for e in both]
    qs = stats.adjust([difference.p for difference in found])
    return [
        Verdict(*key_of(entry), difference, q, word_for(difference, q))
        for entry, difference, q in zip(both, found, qs)
    ]


def changes(old, new):
    """What was not the same, in sentences: a difference may come from it."""
    pairs = (
        ("software", results.software(old), results.software(new)),
        ("devices", results.devices(old), results.devices(new)),
        ("site", old["site"], new["site"]),
        ("program", old["program"], new["program"]),
        ("hosts", old["measured_with"].get("hosts"), new["measured_with"].get("hosts")),
        ("launcher", " ".join(old["launcher"]), " ".join(new["launcher"])),
    )
    for what, before, after in pairs:
        if before != after:
            yield f"{what}: was {before or 'none'}, is {after or 'none'}"


def missing(old, new):
    """What OLD has and NEW has not, and launches of NEW that failed, in sentences."""
    there = {key_of(entry) for entry in new["results"]}
    lost = {}
    for entry in old["results"]:
        if key_of(entry) not in there:
            lost.setdefault(key_of(entry)[:3], []).append(entry["bytes"])
    for (case, variant, coll), sizes in lost.items():
        texts = ", ".join(words.human(size) for size in sorted(sizes))
        yield f"missing in NEW: {case}, {results.label(old, variant)}, {coll}: {texts}"
    for failure in new.get("failures") or ():
        route = results.label(new, failure["variant"])
        yield "failed in NEW: {case}, {0}, round {round}: {cause}".format(route, **failure)


def rows(new, found):
    yield ["case", "route", "collective", "size", "NEW / OLD", "95 % interval", "q", ""]
    for one in found:
        difference = one.difference
        span = "none" if one.word == "few" else f"{difference.low:.3f} to {difference.high:.3f}"
        yield [
            one.case,
            results.label(new, one.variant),
            one.coll,
            words.human(one.bytes),
            f"{difference.ratio:.3f}",
            span,
            f"{one.q:.4f}",
            "too few rounds" if one.word == "few" else one.word,
        ]


def report(old, new, found):
    """(lines, exit status)."""
    out = [f"# {line}" for line in changes(old, new)]
    lost = list(missing(old, new))
    if not found:
        return [*out, *lost, "The two results have no measurement in common."], 1
    out += list(table.lay_out(list(rows(new, found))))
    count = {
        word: sum(one.word == word for one in found)
        for word in ("faster", "slower", "noise", "few")
    }
    out.append("")
    out.append(
        f"{words.count(len(found), 'measurement')} in both: {count['slower']} slower, "
        f"{count['faster']} faster, {count['noise']} inside the noise"
        + (
            f", {count['few']} with too few rounds to tell (four launches or more of each)"
            if count["few"]
            else ""
        )
    )
    out.append(
        "Test: Mann-Whitney U, exact, two-sided, on the launches' times; ratio by Hodges and Lehmann, with its "
        "95 % interval. q: Benjamini and Hochberg over all measurements; q <= 0.05 counts."
    )
    out.append(
        "Only noise between the launches of one run is known: nodes and days differ by more."
    )
    if lost:
        return [*out, "", *lost], 1
    return out, 3 if count["slower"] else 0
