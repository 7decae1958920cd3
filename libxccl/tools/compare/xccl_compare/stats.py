# SPDX-License-Identifier: BSD-3-Clause
"""Statistics of a few samples of times. Nothing is assumed of their distribution."""

import math
from collections import namedtuple
from functools import lru_cache
from itertools import accumulate

LEVEL = 0.95
Interval = namedtuple("Interval", "value low high level")
Difference = namedtuple("Difference", "ratio low high p least_p")


def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def choose(n, k):
    return math.factorial(n) // (math.factorial(k) * math.factorial(n - k))


def coverage(n, k):
    """How likely the true median lies between the k-th least and the k-th largest of n samples."""
    below = sum(choose(n, i) for i in range(k))
    return 1 - 2 * below / 2**n


def median_interval(values, level=LEVEL):
    """The median and its interval by order statistics (the sign test turned round).

    With fewer than six samples no interval has 95 %: the whole range is given, with what it has.
    """
    ordered, n = sorted(values), len(values)
    if n < 2:
        return Interval(ordered[0], None, None, None)
    k = 1
    while k + 1 <= n // 2 and coverage(n, k + 1) >= level:
        k += 1
    return Interval(median(ordered), ordered[k - 1], ordered[n - k], coverage(n, k))


@lru_cache(maxsize=None)
def cumulated(n, m):
    """[orders of n and m values in which at most u pairs have the first's value above the other's].

    For exactly u they are the coefficients of the Gaussian binomial: the product of
    (1 - q^(m + i)) / (1 - q^i) over i from 1 to n.
    """
    counts = [1] + [0] * (n * m)
    for i in range(1, n + 1):
        for u in range(n * m, m + i - 1, -1):
            counts[u] -= counts[u - m - i]
        for u in range(i, n * m + 1):
            counts[u] += counts[u - i]
    return list(accumulate(counts))


def tail(n, m, u):
    """P(U <= u) where the two samples come from one distribution."""
    return cumulated(n, m)[min(math.floor(u), n * m)] / choose(n + m, n)


def least_p(n, m):
    """The least that the test may say of n and m values: of two samples that do not overlap."""
    return min(1.0, 2 / choose(n + m, n))


def rounds_for(measurements, share):
    """How many values of each tell a single difference among so many measurements."""
    return next(n for n in range(1, 100) if least_p(n, n) * measurements <= share)


def compare(first, second, level=LEVEL):
    """How second differs from first: Mann-Whitney's U test, two-sided and exact.

    The ratio is Hodges and Lehmann's: the median of all quotients of a value of second and one of
    first. Its interval leaves out 1 exactly where the test rejects at this level. Equal values count
    half, and are rounded against a difference.
    """
    n, m = len(first), len(second)
    above = sum((b > a) + 0.5 * (b == a) for a in first for b in second)
    u = min(above, n * m - above)
    p = min(1.0, 2 * tail(n, m, math.ceil(u)))
    least = least_p(n, m)
    quotients = sorted(b / a for a in first for b in second)
    k = 0
    while tail(n, m, k) <= (1 - level) / 2:
        k += 1
    if k == 0:  # so few that no interval has the level
        return Difference(median(quotients), quotients[0], quotients[-1], p, least)
    return Difference(median(quotients), quotients[k - 1], quotients[n * m - k], p, least)


def adjust(p_values):
    """Benjamini and Hochberg's q: of all that have q <= 0.05, at most 5 % are expected to be chance."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i], reverse=True)
    out, least = [0.0] * len(p_values), 1.0
    for place, i in enumerate(order):
        least = min(least, p_values[i] * len(p_values) / (len(p_values) - place))
        out[i] = least
    return out
