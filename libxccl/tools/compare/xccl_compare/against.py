# SPDX-License-Identifier: BSD-3-Clause
"""Where two results differ, and where the difference is noise."""

from collections import namedtuple

from xccl_common.tool import FAILED, OK

from . import result as results
from . import stats, table, words

Verdict = namedtuple("Verdict", "case variant coll bytes difference q word")
FALSE_SHARE = 0.05
# Variables that are compared otherwise, or not at all: hosts have a line of their own.
APART = ("LOADEDMODULES", "SLURM_JOB_ID", "SLURM_JOB_NODELIST", "XCCL_SITE")
WORDS = ("slower", "faster", "unsure", "noise", "few")
SLOWER, UNSURE = 3, 4  # exit statuses
MUCH_SLOWER = 1.1  # a ratio that is worth another look though it may be chance


def values(entry):
    return list(entry["samples_us"].values())


def key_of(entry):
    return entry["case"], entry["variant"], entry["coll"], entry["bytes"]


def word_for(difference, q):
    """faster, slower, noise; few: so few samples that no difference could be told from noise.

    unsure: a difference by itself, but one that chance makes among so many measurements.
    """
    if difference.least_p > FALSE_SHARE:
        return "few"
    if difference.low <= 1 <= difference.high:
        return "noise"
    if q > FALSE_SHARE:
        return "unsure"
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
        ("rounds", old["rounds"], new["rounds"]),
        ("type", old["measured_with"].get("type"), new["measured_with"].get("type")),
    )
    for what, before, after in pairs:
        if before != after:
            yield f"{what}: was {before or 'none'}, is {after or 'none'}"
    yield from environment_changes(old.get("environment", {}), new.get("environment", {}))


def environment_changes(old, new):
    """Variables with other values; of the job's own ones none, which differ always."""
    before, after = ({k: v for k, v in one.items() if k not in APART} for one in (old, new))
    yield from words.changed(before, after)
    was, now = (one.get("LOADEDMODULES", "").split(":") for one in (old, new))
    alone = (
        f"{name} alone has {' '.join(m for m in own if m not in other)}"
        for name, own, other in (("OLD", was, now), ("NEW", now, was))
        if set(own) - set(other) - {""}
    )
    text = "; ".join(alone)
    if text:
        yield f"LOADEDMODULES: {text}"


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


def summary(found, count):
    """How many of each word, in one sentence."""
    text = (
        f"{words.count(len(found), 'measurement')} in both: {count['slower']} slower, "
        f"{count['faster']} faster, {count['noise']} inside the noise"
    )
    if count["unsure"]:
        text += (
            f", {count['unsure']} unsure (a difference alone, but not among so many measurements)"
        )
    if count["few"]:
        text += f", {count['few']} with too few rounds to tell (four launches or more of each)"
    return text


def too_few_rounds(old, new, found):
    """That a single difference cannot be told among so many measurements, where it is so."""
    told = [one.difference.least_p for one in found if one.word != "few"]
    if told and max(told) * len(found) > FALSE_SHARE:
        rounds = stats.rounds_for(len(found), FALSE_SHARE)
        yield (
            f"With {words.count(min(old['rounds'], new['rounds']), 'round')} a single difference among "
            f"{len(found)} cannot be told: --rounds {rounds} for both results."
        )


def report(old, new, found):
    """(lines, exit status)."""
    out = [f"# {line}" for line in changes(old, new)]
    lost = list(missing(old, new))
    if not found:
        return [*out, *lost, "The two results have no measurement in common."], FAILED
    out += list(table.lay_out(list(rows(new, found))))
    count = {word: sum(one.word == word for one in found) for word in WORDS}
    out += ["", summary(found, count), *too_few_rounds(old, new, found)]
    out.append(
        "Test: Mann-Whitney U, exact, two-sided, on the launches' times; ratio by Hodges and Lehmann, with its "
        "95 % interval. q: Benjamini and Hochberg over all measurements; q <= 0.05 counts."
    )
    out.append(
        "Only noise between the launches of one run is known: nodes and days differ by more."
    )
    if lost:
        return [*out, "", *lost], FAILED
    return out, status_of(found, count)


def status_of(found, count):
    if count["slower"]:
        return SLOWER
    much = any(one.word == "unsure" and one.difference.ratio > MUCH_SLOWER for one in found)
    return UNSURE if much else OK
