"""List scheduling against DAGs whose makespan is known by hand."""

from pathlib import Path

import pytest

from manybody.pipeline.schedule import LOOKS, makespan, tails


def done(seconds, after="", nodes=((2,),), **needs) -> float:
    waits = {job: set() for job in seconds}
    for pair in after.split():
        waits[pair[0]].add(pair[1])
    return makespan(seconds, waits, lambda job: needs.get(job, (1,)), list(nodes))


def test_the_longest_chain_behind_each_job():
    after = {"a": set(), "b": {"a"}, "c": {"a"}, "d": {"b", "c"}}
    assert tails(dict(a=1, b=5, c=2, d=3), after) == dict(a=9, b=8, c=5, d=3)


FORK = dict(a=1, b=5, c=2, d=3)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (done({}), 0),
        (done(FORK, "ba ca db dc"), 9),  # the chain a, b, d
        (done(FORK, "ba ca db dc", nodes=[(1,)]), 11),  # the sum
        (done(FORK), 6),  # b beside d, c, a
        # the longest of what is ready goes first: 4 beside 2, 2, not 2 beside 2 and then 4
        (done(dict(a=2, b=2, c=4)), 4),
        # one of two cores of a node is free, but for a job of two only in the other node
        (done(dict(a=3, b=3, c=3), nodes=[(2,), (2,)], a=(2,)), 3),
        (done(dict(a=3, b=3, c=3), nodes=[(2,)], a=(2,)), 6),
        (done(dict(a=3, b=3), nodes=[(2,)], a=(8,)), 6),  # more than there are: all
        # a GPU on each node, cores enough
        (done(dict(a=3, b=3, c=3), nodes=[(9, 1)] * 2, a=(1, 1), b=(1, 1), c=(1, 1)), 6),
        (done(dict(a=3, b=3, c=3), nodes=[(9, 1)] * 3, a=(1, 1), b=(1, 1), c=(1, 1)), 3),
        # Graham's anomaly is no error: 3 cores, 9 jobs, 12 seconds
        (
            done(
                dict(a=3, b=2, c=2, d=2, e=4, f=4, g=4, h=4, i=9),
                "ed fd gd hd ia",
                nodes=[(3,)],
            ),
            12,
        ),
    ],
)
def test_jobs_wait_for_each_other_and_for_room(found, expected):
    assert found == expected


def test_what_runs_keeps_its_core():
    seconds, after = dict(a=5, b=1), dict(a=set(), b=set())
    assert makespan(seconds, after, lambda _: (1,), [(1,)], begun=["b"]) == 6
    after["c"], seconds["c"] = {"b"}, 9
    # b runs though a has the longest chain of those without it
    assert makespan(seconds, after, lambda _: (1,), [(1,)], begun=["a"]) == 15


@pytest.mark.parametrize(
    ("seconds", "after", "local", "expected"),
    [
        (dict(a=5, b=5), "ba", "", 40),  # each is seen after 20 s
        (dict(a=25, b=5), "ba", "", 70),  # at 20, then 30 s later; after that 20 s later again
        (dict(a=20), "", "", 20),
        (dict(a=5, b=3), "ba", "b", 23),  # the end of what runs here is seen at once
        (dict(a=5, b=3), "ab", "b", 20),
        (dict(a=5, b=14), "", "", 20),  # the queue begins a as soon as b has left the core
        (dict(a=5000), "", "", 1700 + 19 * 180),  # never more than 180 s apart
    ],
)
def test_the_end_of_a_queued_job_is_known_at_the_next_look(seconds, after, local, expected):
    waits = {job: {pair[1] for pair in after.split() if pair[0] == job} for job in seconds}
    nodes, queued = [(0, 1), (1, 0)], set(seconds) - set(local)
    found = makespan(
        seconds, waits, lambda job: (int(job in queued), int(job in local)), nodes, queued=queued
    )
    assert found == expected


def test_a_queue_starts_what_is_submitted_together_by_chance():
    seconds, after = dict(a=2, b=2, c=4), dict(a=set(), b=set(), c=set())
    made = [makespan(seconds, after, lambda _: (1,), [(2,)], seed=n) for n in range(3000)]
    assert set(made) == {4, 6}  # 6 where c is the last of the three
    assert abs(made.count(6) - 1000) < 4 * (3000 * 2 / 9) ** 0.5


def test_a_queue_starts_first_what_was_submitted_first():
    """b, which waits for a, comes behind c, though more waits for it, on another core."""
    seconds, after = dict(a=1, b=1, c=5, d=5), dict(a=set(), b={"a"}, c=set(), d={"b"})
    needs, nodes = (lambda job: (job != "d", job == "d")), [(1, 0), (0, 1)]
    assert makespan(seconds, after, needs, nodes) == 7
    assert {makespan(seconds, after, needs, nodes, seed=n) for n in range(20)} == {12}


def test_looks_are_those_of_the_profile():
    profile = Path("profiles/slurm/config.yaml").read_text()
    assert f"slurm-init-seconds-before-status-checks: {LOOKS[0]:.0f}\n" in profile
