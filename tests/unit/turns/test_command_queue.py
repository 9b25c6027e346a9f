"""Subscribers take turns, and commands that a gateway carried out before its death are not carried out again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from gateway.kafka import Place, Record
from gateway.state.commands_read import CommandsInHand, CommandsRead
from gateway.turns import topic_progress
from gateway.turns.account import BUDGET_RATE, BUDGET_SECONDS
from gateway.turns.command_queue import CommandQueue
from gateway.turns.command_trials import CommandTrials
from tests.unit.turns.command_records import Hand, carried_out, known, place, places, record


def test_one_does_not_wait_for_all_of_another() -> None:
    """A single command behind a thousand of another subscriber, in the same partition, is in the next unit."""
    queue = known("loud", "quiet", "third")
    queue.add([record(0, offset, "loud") for offset in range(1_000)])
    queue.add([record(0, 1_000, "quiet"), record(1, 7, "third")])
    assert {(0, 0), (0, 1_000), (1, 7)} <= set(places(queue.take(100).records))


def test_a_unit_is_filled_across_subscribers() -> None:
    """A hundred subscribers with cheap commands share the fixed costs of a unit of some thousand commands."""
    queue = known(*map(str, range(100)), seconds=50e-6)
    queue.add([record(0, number, str(number % 100)) for number in range(10_000)])
    units = [carried_out(queue, queue.take(5_000).records, 50e-6) for _ in range(5)]
    assert [2_000] * 5 == [len(unit) for unit in units], "a tenth of a second"
    assert {20} == set(Counter(each.key for each in units[0]).values())


def test_beside_one_who_keeps_within_the_budget_others_have_theirs() -> None:
    """A broken command costs its time like any other; the budget of a subscriber comes back with time."""
    clock = Hand()
    queue = known("quiet", "loud", clock=clock)
    queue.add([record(0, offset, "loud") for offset in range(100)])
    queue.add([record(1, 0, "quiet")])
    unit = queue.take(500).records
    assert BUDGET_SECONDS / 0.001 + 1 == len(unit)
    carried_out(queue, unit, 0.001)
    assert [] == queue.take(500).records
    assert queue.stalled
    queue.add([record(1, 1, "quiet")])
    assert [(1, 1)] == places(carried_out(queue, queue.take(500).records, 0.001))
    clock.now += 0.55 * BUDGET_SECONDS / BUDGET_RATE
    assert 3 == len(carried_out(queue, queue.take(500).records, 0.001))


def test_budgets_do_not_count_where_nobody_keeps_within_them() -> None:
    """Two bulk registrations side by side have all of the gateway's time, in turns, in long units."""
    clock = Hand()
    queue = known("a", "b", clock=clock, seconds=100e-6)
    clock.now += 9.0
    queue.add([record(0, offset, "ab"[offset % 2]) for offset in range(4_000)])
    clock.now += 2.0
    assert 1_000 == len(carried_out(queue, queue.take(5_000).records, 100e-6))
    assert 1_000 == len(carried_out(queue, queue.take(5_000).records, 100e-6))


def test_a_dear_command_is_paid_off() -> None:
    """A subscriber waits after a command of a second, as long as another one keeps within the budget."""
    clock = Hand()
    queue = known("quiet", "dear", clock=clock)
    queue.add([record(0, 0, "dear"), record(1, 0, "quiet")])
    carried_out(queue, queue.take(1).records, 1.0)
    carried_out(queue, queue.take(1).records, 0.0001)
    queue.add([record(0, 1, "dear")])
    for offset in range(1, 50):
        clock.now += 0.1
        queue.add([record(1, offset, "quiet")])
        assert [(1, offset)] == places(carried_out(queue, queue.take(9).records, 0.0001))
    clock.now += 0.2
    queue.add([record(1, 50, "quiet")])
    assert (0, 1) in places(queue.take(9).records)


def test_ever_new_names_share_one_budget() -> None:
    """Whoever had no command accepted is a newcomer; after the first one the subscriber has a budget of its own."""
    queue = known("quiet")
    queue.add([record(0, offset, f"name {offset}") for offset in range(5_000)])
    queue.add([record(1, 0, "quiet")])
    unit = queue.take(5_000).records
    assert [(0, 0), (0, 1), (0, 2), (0, 3), (0, 4), (1, 0)] == sorted(places(unit))
    carried_out(queue, unit, 0.001)
    assert [] == queue.take(5_000).records


def test_a_newcomers_commands_keep_their_order() -> None:
    """Waiting commands move along when the first is accepted."""
    queue = known("quiet", seconds=0.001)
    queue.add([record(0, offset, "new") for offset in range(4)] + [record(1, 0, "quiet")])
    unit = queue.take(3).records
    assert [(0, 0), (0, 1), (0, 2)] == [place(each) for each in unit if each.key == b"new"]
    queue.put_back(unit[2:])
    queue.charge({place(each): 1e-6 for each in unit[:2]})
    queue.finish(unit[:2], {b"new"})
    queue.add([record(0, 4, "new")])
    assert [2, 3, 4] == [each.offset for each in queue.take(9).records if each.key == b"new"]


def test_forged_commands_count_against_nobody_named() -> None:
    """A record without the subscriber's token waits in a queue of its own, at its own cost."""
    clock = Hand()
    queue = known("alice", clock=clock, is_genuine=lambda each: each.offset >= 600)
    queue.add([record(0, offset, "alice") for offset in range(603)] + [record(1, 600, "alice")])
    assert [(0, 600), (0, 601), (0, 602), (1, 600)] == places(carried_out(queue, queue.take(9).records, 0.0001))
    assert [(0, 0), (0, 1), (0, 2), (0, 3), (0, 4)] == places(carried_out(queue, queue.take(9).records, 0.01))
    queue.add([record(1, 601, "alice")])
    assert [(1, 601)] == places(queue.take(9).records)


def test_memory_is_shared() -> None:
    """Beyond a share of memory places alone are kept, and the records are read again at their turn, in their order."""
    large = [record(0, offset, "large", b"x" * 450_000) for offset in range(300)]
    asked: list[Place] = []

    def read_again(wanted: Sequence[Place]) -> Iterator[tuple[Place, Record | None]]:
        asked.extend(wanted)
        return ((each, None if each[1] == 299 else large[each[1]]) for each in wanted)

    queue = known("large", "quiet", read_again=read_again)
    queue.add(large)
    queue.add([record(0, 300, "quiet")])
    assert not queue.full
    done = carried_out(queue, queue.take(99).records, 1e-6)
    assert (0, 300) in places(done)
    while queue:
        done += carried_out(queue, queue.take(99).records, 1e-6)
    assert [(0, offset) for offset in range(299)] == [each for each in places(done) if each != (0, 300)]
    assert [(0, offset) for offset in range(asked[0][1], 300)] == asked
    assert CommandsRead({0: 302}, {}) == queue.finish([_taken(queue, record(0, 301, "quiet"))]), "299 is gone"


def _taken(queue: CommandQueue, one: Record) -> Record:
    queue.add([one])
    [taken] = queue.take(9).records
    return taken


def test_positions_have_two_halves() -> None:
    """A commit has the place of the first waiting command, and the finished commands behind it."""
    queue = known("loud", "quiet")
    queue.add([record(0, offset, "loud") for offset in range(10, 13)])
    queue.add([record(0, 13, "quiet")])
    unit = queue.take(4).records
    queue.put_back([each for each in unit if each.offset in (11, 12)])
    assert CommandsRead({0: 11}, {0: [13]}) == queue.finish([each for each in unit if each.offset in (10, 13)])
    assert CommandsRead({0: 14}, {}) == queue.finish(queue.take(4).records)
    assert not queue


def test_what_found_no_time_comes_first() -> None:
    """Records of a unit that its time did not suffice for are the first of the next one, in their order."""
    queue = known("a", "b", "c")
    queue.add([record(0, offset, name) for offset, name in enumerate("aabbcc")])
    taken = queue.take(4).records
    assert [0, 1, 2, 3] == [each.offset for each in taken]
    queue.put_back(taken[1:])
    assert [1, 2, 3] == [each.offset for each in queue.take(3).records]
    assert [4, 5] == [each.offset for each in queue.take(9).records]


def test_what_is_ahead_is_bounded() -> None:
    """A partition of which too much is ahead goes on in its order; its first command needs no budget."""
    clock = Hand()
    queue = known("first", "passing", clock=clock)
    ahead = range(1, topic_progress.MOST_AHEAD + 1)
    queue.begin({0: list(ahead)})
    queue.add([record(0, 0, "first")])
    queue.add([record(0, offset, "passing") for offset in range(ahead.stop, ahead.stop + 3)])
    assert [(0, 0)] == places(queue.take(9).records)
    assert [] == queue.take(1).records, "the first one is under way"
    queue.begin({0: list(ahead)})
    queue.add([record(1, 0, "first"), record(1, 1, "passing"), record(1, 2, "passing")])
    carried_out(queue, queue.take(2).records, 1.0)
    carried_out(queue, queue.take(1).records, 0.0001)
    queue.add([record(0, 0, "first"), record(0, ahead.stop, "passing")])
    assert [(0, 0)] == places(queue.take(9).records)


def test_the_command_at_which_gateways_end_is_found() -> None:
    """Among 5,000 in hand it is alone at the third death; commands that were carried out since are suspects no more.

    Copies of the guilty one are known, and need no further deaths.
    """
    noted = [CommandsInHand()]
    waiting = [record(offset % 4, offset // 4, "a") for offset in range(6_000)]
    guilty, died, refused = waiting[4_990], [], False
    while not refused:  # a gateway begins
        trials = CommandTrials(noted.append)
        trials.begin(noted[-1])
        while not refused:
            unit = waiting[: min(5_000, trials.fitting(waiting[:5_000]))]
            refused = bool(trials.take(unit, [b"%d" % each.offset for each in unit]))
            if guilty in unit and not refused:
                died.append(len(unit))
                break
            del waiting[: len(unit)]
    assert ([5_000, 156, 1], [guilty]) == (died, unit)
    assert 1_009 == trials.fitting(waiting)
    assert set() == trials.take(waiting, [b""] * len(waiting))
    assert 0 == noted[-1].deaths
    later = CommandTrials(noted.append)
    later.begin(noted[-1])
    assert {1} == later.take([record(0, 7_000, "b"), record(0, 7_001, "a")], [None, b"%d" % guilty.offset])


_SUBSCRIBERS = st.sampled_from("abc")
_TOPIC = st.lists(st.lists(_SUBSCRIBERS, max_size=12), min_size=1, max_size=3)
"""By partition, whose commands it holds."""
_STEPS = st.lists(
    st.tuples(
        st.integers(0, 4),
        st.integers(0, 6),
        st.integers(0, 3),
        st.booleans(),
        st.sets(_SUBSCRIBERS),
        st.sets(_SUBSCRIBERS),
        st.floats(0, 0.03),
    ),
    max_size=20,
)
"""How many records of each partition are read, how many carried out, how many put back, whether the gateway dies, the
subscribers held until the next step, the accepted subscribers, and the cost of each command and how many seconds go by.
"""


@given(_TOPIC, _STEPS)
def test_each_command_once_and_in_its_subscribers_order(
    topic: list[list[str]], steps: list[tuple[int, int, int, bool, set[str], set[str], float]]
) -> None:
    """However reading, turns, budgets and deaths fall: nothing is carried out twice, nothing is left out."""
    everything = [[record(p, n, name) for n, name in enumerate(names)] for p, names in enumerate(topic)]
    done: list[Record] = []
    noted = CommandsRead()
    clock, step_now = Hand(), [0]

    def read_again(wanted: Sequence[Place]) -> Iterator[tuple[Place, Record | None]]:
        return ((each, everything[each[0]][each[1]]) for each in wanted[:2])

    queue, read = CommandQueue(clock, read_again=read_again), [0] * len(topic)
    end = (99, 99, 0, False, set[str](), set[str](), 2.0)
    for step, (some, most, left, dies, held, accepted, seconds) in enumerate([*steps, *[end] * 36]):
        step_now[0] = step
        clock.now += seconds
        for number, records in enumerate(everything):
            queue.add(records[read[number] : read[number] + some])
            read[number] = min(read[number] + some, len(records))
        taken = queue.take(most + left).records
        names = {name.encode() for name in held}
        unit = [each for each in taken[:most] if each.key not in names]
        queue.put_back([each for each in taken[:most] if each.key in names] + taken[most:])
        queue.hold(dict.fromkeys(names, lambda held_at=step: step_now[0] > held_at))
        if dies:  # before the commit
            noted = CommandsRead.unpack(noted.pack())
            queue.begin(noted.ahead)
            read = [noted.offsets.get(number, 0) for number in range(len(topic))]
        elif unit:
            done += unit
            queue.charge({place(each): seconds for each in unit})
            noted = noted.then(queue.finish(unit, {name.encode() for name in accepted}))
    assert sorted(map(place, done)) == [place(each) for records in everything for each in records]
    for name in "abc":
        for number in range(len(topic)):
            own = [each.offset for each in done if (each.key, each.partition) == (name.encode(), number)]
            assert all(earlier < later for earlier, later in pairwise(own))
    assert noted.ahead == {}


def test_who_is_alone_is_told_by_time() -> None:
    """Subscribers are together from the first that follows another one, and for some seconds."""
    clock = Hand()
    queue = CommandQueue(clock)
    queue.add([record(0, 0, "a"), record(0, 1, "a")])
    assert not queue.together
    clock.now = 1.0
    queue.add([record(0, 2, "b")])
    clock.now = 10.0
    assert queue.together
    clock.now = 12.0
    assert not queue.together
    queue.add([record(0, 3, "c")])
    assert not queue.together, "the last command of another subscriber is eleven seconds old"
    queue.add([record(0, 4, "a")])
    assert queue.together


def test_a_held_command_holds_up_its_subscriber_alone() -> None:
    """His later commands wait with it, in any partition, and are carried out in their order once it is ready."""
    queue, ready = known("a", "b"), [False]
    queue.add([record(p, n, name) for p in range(2) for n, name in enumerate("aab")])
    taken = queue.take(9).records
    queue.put_back([each for each in taken if each.key == b"a"])
    queue.finish([each for each in taken if each.key == b"b"])
    queue.hold({b"a": lambda: ready[0]})
    queue.add([record(0, 3, "b")])
    assert [(0, 3)] == places(queue.take(9).records)
    assert [] == queue.take(9).records
    assert queue.stalled
    ready[0] = True
    assert [(0, 0), (0, 1), (1, 0), (1, 1)] == places(queue.take(9).records)
