"""Subscribers take turns, and whatever the gateway carried out before it died is not carried out again."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from gateway.kafka import Record
from gateway.state.commands_read import CommandsInHand, CommandsRead
from gateway.turns import command_queue
from gateway.turns.command_queue import SHORT_UNIT_SECONDS, UNIT_SECONDS, CommandQueue, UnitSize
from gateway.turns.command_trials import CommandTrials
from tests.unit.turns.command_records import place, record


def test_one_does_not_wait_for_all_of_another() -> None:
    """Who sends one command behind a thousand of another subscriber, in the same partition, has it in the next unit."""
    queue = CommandQueue()
    queue.add([record(0, offset, "loud") for offset in range(1_000)], 0)
    queue.add([record(0, 1_000, "quiet"), record(1, 7, "third")], 0)
    assert [(0, 0), (0, 1000), (1, 7)] == [place(each) for each in queue.take(4)]


def test_beside_a_single_command_a_unit_is_one_round() -> None:
    """Its answer waits for the whole unit; those that have many have all turns of the next one, which is short."""
    queue = CommandQueue()
    assert UNIT_SECONDS == queue.unit_seconds
    queue.add([record(0, offset, name) for offset, name in enumerate(["loud", "many"] * 3)], 0)
    queue.add([record(1, 0, "single")], 0)
    assert [(0, 0), (0, 1), (1, 0)] == [place(each) for each in queue.take(9)]
    assert SHORT_UNIT_SECONDS == queue.unit_seconds
    assert [(0, offset) for offset in range(2, 6)] == [place(each) for each in queue.take(9)]
    queue.add([], 60)
    assert UNIT_SECONDS == queue.unit_seconds, "nobody sends single commands any more"


def test_positions_have_two_halves() -> None:
    """A commit says where the first waiting command is, and which behind it are done."""
    queue = CommandQueue()
    queue.add([record(0, offset, "loud") for offset in range(10, 13)], 0)
    queue.add([record(0, 13, "quiet")], 0)
    assert CommandsRead({0: 11}, {0: [13]}) == queue.finish(queue.take(2))
    assert CommandsRead({0: 14}, {}) == queue.finish(queue.take(2))
    assert not queue


def test_a_unit_made_in_halves_counts_what_it_has_done() -> None:
    """Records that were taken but are not finished stay before the position."""
    queue = CommandQueue()
    queue.add([record(0, offset, "a") for offset in range(4)], 0)
    taken = queue.take(4)
    assert CommandsRead({0: 2}, {}) == queue.finish(taken[:2])
    assert CommandsRead({0: 4}, {}) == queue.finish(taken[2:])


def test_records_that_never_waited() -> None:
    """Who carries out what was just read needs no turns."""
    assert CommandsRead({0: 6, 1: 3}, {}) == CommandQueue().finish([record(0, 5, "a"), record(1, 2, "b")])


def test_what_found_no_time_comes_first() -> None:
    """Records of a unit that its time did not suffice for are the first of the next one, in their order."""
    queue = CommandQueue()
    queue.add([record(0, offset, name) for offset, name in enumerate("aabbcc")], 0)
    taken = queue.take(4)
    queue.put_back(taken[1:])
    assert taken[1:] == queue.take(3)
    assert [(0, 3), (0, 5)] == [place(each) for each in queue.take(9)]


def test_what_is_ahead_is_bounded() -> None:
    """A partition of which too much is ahead goes on in its order until its first command is done."""
    queue = CommandQueue()
    ahead = range(1, command_queue.MOST_AHEAD + 1)
    queue.begin({0: list(ahead)})
    queue.add([record(0, 0, "first")], 0)
    queue.add([record(0, offset, "passing") for offset in range(ahead.stop, ahead.stop + 3)], 0)
    assert [(0, 0)] == [place(each) for each in queue.take(1)]
    queue.begin({0: list(ahead)})
    queue.add([record(0, 0, "first"), record(0, ahead.stop, "passing")], 0)
    queue.take(1)
    assert [] == queue.take(1), "the first one is under way"


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
        st.floats(0, 0.3),
    ),
    max_size=20,
)
"""How many records of each partition are read, how many carried out, how many put back, whether the gateway dies, whose
commands are held until the next step, whose are broken, and how many seconds go by."""


@given(_TOPIC, _STEPS)
def test_each_command_once_and_in_its_subscribers_order(
    topic: list[list[str]], steps: list[tuple[int, int, int, bool, set[str], set[str], float]]
) -> None:
    """However reading, turns, pauses and deaths fall: nothing is carried out twice, nothing is left out."""
    everything = [[record(p, n, name) for n, name in enumerate(names)] for p, names in enumerate(topic)]
    done: list[Record] = []
    noted = CommandsRead()
    now, step_now = [0.0], [0]
    queue, read = CommandQueue(lambda: now[0]), [0] * len(topic)
    end = (99, 99, 0, False, set[str](), set[str](), 2.0)
    for step, (some, most, left, dies, held, broken, seconds) in enumerate([*steps, *[end] * 36]):
        step_now[0] = step
        now[0] += seconds
        for number, records in enumerate(everything):
            queue.add(records[read[number] : read[number] + some], now[0])
            read[number] = min(read[number] + some, len(records))
        taken = queue.take(most + left)
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
            noted = noted.then(queue.finish(unit))
            queue.learn(unit, Counter(each.key for each in unit if (each.key or b"").decode() in broken), 0.005)
    assert sorted(map(place, done)) == [place(each) for records in everything for each in records]
    for name in "abc":
        for number in range(len(topic)):
            own = [each.offset for each in done if (each.key, each.partition) == (name.encode(), number)]
            assert all(earlier < later for earlier, later in pairwise(own))
    assert noted.ahead == {}


def test_who_is_alone_is_told_by_time() -> None:
    """Subscribers are together from the first that follows another one, and for some seconds."""
    queue = CommandQueue()
    queue.add([record(0, 0, "a"), record(0, 1, "a")], 100.0)
    assert not queue.together(100.0)
    queue.add([record(0, 2, "b")], 101.0)
    assert queue.together(110.0)
    queue.add([record(0, 3, "b")], 112.0)
    assert not queue.together(112.0)


def test_a_unit_takes_what_fits_its_time() -> None:
    """Dear commands make units short at once; they grow again by full units only."""
    size = UnitSize(5_000)
    size.note(200, 5 * UNIT_SECONDS)
    assert 40 == size.commands
    size.note(3, 0.001)
    assert 40 == size.commands
    for _ in range(10):
        size.note(size.commands, size.commands * UNIT_SECONDS / 10_000)
    assert 5_000 == size.commands


def test_a_held_command_holds_up_its_subscriber_alone() -> None:
    """His later commands wait with it, in any partition, and are carried out in their order once it is ready."""
    queue, ready = CommandQueue(), [False]
    queue.add([record(p, n, name) for p in range(2) for n, name in enumerate("aab")], 0)
    taken = queue.take(2)
    assert [b"a", b"b"] == [each.key for each in taken]
    queue.put_back(taken[:1])
    queue.hold({b"a": lambda: ready[0]})
    assert not queue.all_held
    assert [b"b"] == [each.key for each in queue.take(9)]
    assert queue.all_held
    assert [] == queue.take(9)
    ready[0] = True
    assert not queue.all_held
    assert [(0, 0), (0, 1), (1, 0), (1, 1)] == [place(each) for each in queue.take(9)]
