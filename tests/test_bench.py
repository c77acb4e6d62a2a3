"""The benchmarks' arithmetic; the figures themselves are for people to read."""

import subprocess
import sys

import pytest

from bench.measure import Case, Sample, Workload, cpu_of, figures, here, measure
from bench.table import number, table


def test_ratios_are_taken_within_a_round():
    """The machine was three times slower in the second round: each case's own median would say nothing of that."""
    samples = {
        "limit": [Sample(100, 1, 1), Sample(100, 3, 3), Sample(100, 1, 1)],
        "ours": [Sample(50, 1, 2), Sample(50, 3, 6), Sample(25, 1, 3)],
    }
    limit, ours = figures(samples)
    assert (limit.rate_ratio, limit.cost_ratio) == (1, 1)
    assert ours.rate_ratio == pytest.approx(0.5)
    assert ours.cost_ratio == pytest.approx(4)


def test_cases_take_turns_and_the_first_round_is_not_counted():
    asked = []

    def case(name):
        return Case(name, lambda: (asked.append(name), Sample(len(asked), 1, 1))[1])

    measured = measure(Workload("", "", [case("a"), case("b")], rounds=2))
    assert asked == ["a", "b", "b", "a", "a", "b"]
    assert [one.rate for one in measured] == [(4 + 5) / 2, (3 + 6) / 2]


def test_the_cpu_of_a_tree_is_that_of_its_grandchildren_too():
    burn = "import time\nwhile time.process_time() < 0.3: pass\nprint('done', flush=True)\ninput()"
    nested = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {burn!r}])"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", nested], **pipes) as process:
        assert process.stdout.readline() == b"done\n"
        alive = cpu_of([process.pid])
        process.stdin.close()
        process.stdout.read()
    assert alive >= 0.29  # ticks of 10 ms


def test_a_round_in_this_process_counts_what_it_says():
    assert here(lambda: 7).requests == 7


def test_the_table_shows_each_case_beside_the_first():
    limit, ours = figures({"nginx": [Sample(2000, 1, 0.1)], "magazin": [Sample(1000, 1, 0.25)]})
    shown = table(Workload("Title", "About.", [], 1), [limit, ours]).splitlines()
    assert shown[-2:] == ["| nginx | 2,000 | 1 | 0.05 | 1 |", "| magazin | 1,000 | 0.5 | 0.25 | 5 |"]


@pytest.mark.parametrize("value, text", [(12345.6, "12,346"), (99.96, "100"), (12.34, "12.3"), (0.01234, "0.0123")])
def test_numbers_keep_three_digits(value, text):
    assert number(value) == text
