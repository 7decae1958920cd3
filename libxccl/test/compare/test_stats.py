# SPDX-License-Identifier: BSD-3-Clause
"""The statistics of xccl-compare, against values by hand and by drawing lots."""

import itertools
import math
import random
import time

import pytest
from xccl_compare import stats


def test_median_interval():
    """Order statistics: of six samples the range has 1 - 2/64, of nine the second to the eighth 1 - 20/512."""
    found = stats.median_interval([5, 3, 1, 6, 2, 4])
    assert (found.value, found.low, found.high) == (3.5, 1, 6)
    assert found.level == pytest.approx(1 - 2 / 64)
    found = stats.median_interval(range(9))
    assert (found.low, found.high) == (1, 7) and found.level == pytest.approx(1 - 20 / 512)


def test_few_samples_have_no_interval_of_95_percent():
    assert stats.median_interval([1, 2, 3, 4, 5]).level == pytest.approx(1 - 2 / 32)
    assert stats.median_interval([3, 1]) == (2, 1, 3, 0.5)
    assert stats.median_interval([7]) == (7, None, None, None)


def brute_force(first, second):
    """P(U as far out or farther), over all ways to deal the values out."""
    values, n = [*first, *second], len(first)

    def u_of(chosen):
        mine = [values[i] for i in chosen]
        other = [v for i, v in enumerate(values) if i not in chosen]
        above = sum(b > a for a in mine for b in other)
        return min(above, n * len(second) - above)

    seen = u_of(range(n))
    every = [u_of(chosen) for chosen in itertools.combinations(range(len(values)), n)]
    return sum(u <= seen for u in every) / len(every)


def test_p_is_that_of_all_permutations():
    draw = random.Random(1)
    for n, m in ((3, 3), (4, 5), (6, 4)):
        first = [draw.random() for _ in range(n)]
        second = [draw.random() + 0.3 for _ in range(m)]
        assert stats.compare(first, second).p == pytest.approx(min(1, brute_force(first, second)))


def test_apart_and_equal():
    apart = stats.compare([1, 2, 3, 4, 5, 6], [11, 12, 13, 14, 15, 16])
    assert apart.p == pytest.approx(2 / 924) == apart.least_p
    assert apart.low > 1
    assert stats.compare([3.0] * 6, [3.0] * 6) == (1, 1, 1, 1, pytest.approx(2 / 924))


def test_rounds_that_tell_one_difference():
    """Two samples of four values that do not overlap have p = 2/70."""
    assert [stats.rounds_for(n, 0.05) for n in (1, 10)] == [4, 6]
    assert stats.rounds_for(1, 2 / 70) == 4


def test_interval_and_test_agree():
    """1 is outside of the interval exactly where p <= 0.05; and by chance that is seldom."""
    draw, rejected, runs = random.Random(2), 0, 600
    for number in range(runs):
        shift = 1 if number % 2 else 1.3
        first = [draw.gauss(1, 0.1) for _ in range(6)]
        second = [shift * draw.gauss(1, 0.1) for _ in range(6)]
        found = stats.compare(first, second)
        assert (found.p <= 0.05) == (not found.low <= 1 <= found.high)
        rejected += number % 2 and found.p <= 0.05
    assert rejected <= 0.06 * runs / 2


def test_many_rounds():
    """Of 100 launches each: as the normal distribution has it, and without a wait for it."""
    draw, started = random.Random(3), time.monotonic()
    first = [draw.gauss(1, 0.1) for _ in range(100)]
    second = [draw.gauss(1.03, 0.1) for _ in range(100)]
    above = sum(b > a for a in first for b in second)
    z = (abs(above - 5000) - 0.5) / math.sqrt(100 * 100 * 201 / 12)
    assert stats.compare(first, second).p == pytest.approx(math.erfc(z / math.sqrt(2)), rel=0.05)
    assert time.monotonic() - started < 20


def test_three_rounds_tell_nothing():
    assert stats.compare([1, 2, 3], [10, 20, 30]).least_p == pytest.approx(0.1)


def test_adjusted():
    """Benjamini and Hochberg by hand: p * count / rank, made to rise."""
    assert stats.adjust([0.01, 0.04, 0.03, 0.5]) == pytest.approx(
        [0.04, 0.04 * 4 / 3, 0.04 * 4 / 3, 0.5]
    )
    assert stats.adjust([]) == []
