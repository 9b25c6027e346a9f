"""Who sends broken commands pauses, and newcomers are doubted while what newcomers send is broken."""

from __future__ import annotations

from collections import Counter

from gateway.kafka import Record
from gateway.turns.command_queue import CommandQueue
from gateway.turns.standing import GOOD
from tests.unit.turns.command_records import place, record


def _broken(*records: Record) -> Counter[bytes | None]:
    return Counter(each.key for each in records)


def test_a_pause_leaves_the_time_to_the_others() -> None:
    """It ends by itself, and nobody pauses who is alone or has no further command."""
    now = [0.0]
    queue = CommandQueue(lambda: now[0])
    queue.add([record(0, offset, "loud") for offset in range(4)], 0)
    first = queue.take(1)
    assert [(0, 0)] == [place(each) for each in first]
    queue.learn(first, _broken(*first), 60)
    assert not queue.all_held, "nobody else sends"
    queue.add([record(1, 0, "quiet"), record(1, 1, "quiet"), record(1, 2, "nobody")], 0)
    unit = queue.take(4)
    assert [(0, 1), (1, 0), (1, 2)] == [place(each) for each in unit]
    queue.learn(unit, _broken(unit[0], unit[2]), 0.1)
    assert [(1, 1)] == [place(each) for each in queue.take(9)]
    now[0] = 0.89
    assert queue.all_held
    now[0] = 0.91
    assert [(0, 2), (0, 3)] == [place(each) for each in queue.take(9)]


def test_after_a_pause_commands_go_along_with_those_of_the_others() -> None:
    """One in a unit, ten a second, and none without others' until nobody else has had a turn for a while."""
    now = [0.0]
    queue = CommandQueue(lambda: now[0])
    queue.add([record(0, offset, "loud") for offset in range(6)], 0)
    queue.add([record(1, 0, "quiet")], 0)
    unit = queue.take(2)
    queue.learn(unit, _broken(unit[0]), 0.05)
    offsets = iter(range(1, 9))

    def taken(at: float, *, beside: bool = True) -> list[tuple[int, int]]:
        """Take a unit of work, of which the command that goes along is broken."""
        now[0] = at
        if beside:
            queue.add([record(1, next(offsets), "quiet")], at)
        records = queue.take(9)
        queue.learn(records, _broken(*records[1:]), 0.001)
        return [place(each) for each in records]

    assert [(1, 1)] == taken(0.4), "the pause lasts"
    assert [(1, 2), (0, 1)] == taken(0.5)
    assert [(1, 3)] == taken(0.55)
    assert [(1, 4), (0, 2)] == taken(0.61)
    assert [] == taken(0.7, beside=False)
    assert [(0, 3), (0, 4), (0, 5)] == taken(0.9, beside=False)


def test_one_command_goes_along_however_many_pause() -> None:
    """They take turns at it, whether their commands are broken or sound."""
    now = [0.0]
    queue = CommandQueue(lambda: now[0])
    for number, name in enumerate(("loud", "louder")):
        queue.add([record(number, offset, name) for offset in range(5)], 0)
    queue.add([record(2, offset, "quiet") for offset in range(6)], 0)
    unit = queue.take(3)
    queue.learn(unit, _broken(*unit[:2]), 0.01)
    taken = []
    for at in (0.05, 0.11, 0.22, 0.33, 0.44):
        now[0] = at
        unit = queue.take(1)
        queue.learn(unit, _broken(*unit[1:]) if at < 0.3 else Counter(), 0.001)
        taken.append([place(each) for each in unit])
    assert [(2, 1)] == taken[0]
    assert [[(2, 2), (0, 1)], [(2, 3), (1, 1)], [(2, 4), (0, 2)], [(2, 5), (1, 2)]] == taken[1:]


def test_who_is_in_good_standing_has_turns_again() -> None:
    """One broken command in a long registration slows the next few, and not the rest."""
    now = [0.0]
    queue = CommandQueue(lambda: now[0])
    queue.add([record(0, offset, "loud") for offset in range(GOOD + 5)], 0)
    queue.add([record(1, offset, "quiet") for offset in range(GOOD + 2)], 0)
    unit = queue.take(2)
    queue.learn(unit, _broken(unit[0]), 0.01)
    assert [(1, 1)] == [place(each) for each in queue.take(1)]
    for offset in range(1, GOOD + 1):
        now[0] += 0.11
        along = queue.take(1)
        assert [(1, offset + 1), (0, offset)] == [place(each) for each in along]
        queue.learn(along, Counter({b"loud": 0}), 0.01)
    assert [(0, offset) for offset in range(GOOD + 1, GOOD + 5)] == [place(each) for each in queue.take(9)]


def _doubtful(queue: CommandQueue) -> None:
    """Let newcomers be doubted: all commands but those of one subscriber were broken."""
    queue.add([record(3, offset, f"name {offset}") for offset in range(50)], 0)
    queue.add([record(4, 0, "quiet")], 0)
    unit = queue.take(99)
    queue.learn(unit, _broken(*unit[:50]), 0)


def test_the_next_name_of_one_who_sent_broken_commands_begins_as_the_last_one_ended() -> None:
    """Its commands go along with those of the others; nobody else's are slowed."""
    now = [0.0]
    queue = CommandQueue(lambda: now[0])
    _doubtful(queue)
    now[0] = 1.0
    queue.add([record(0, offset, "next name") for offset in range(5)], 1.0)
    assert queue.all_held, "a unit of others may come"
    now[0] = 1.01
    queue.add([record(4, 1, "quiet"), record(4, 2, "quiet")], 1.01)
    assert [(4, 1), (0, 0)] == [place(each) for each in queue.take(1)]
    now[0] = 1.12
    assert [(4, 2), (0, 1)] == [place(each) for each in queue.take(1)]
    now[0] = 1.36
    assert queue.all_held
    now[0] = 1.38
    assert [(0, 2), (0, 3), (0, 4)] == [place(each) for each in queue.take(9)], "the others say nothing"


def test_a_newcomer_is_doubted_until_a_command_was_sound() -> None:
    """And by no more than a moment where nobody else has commands."""
    now = [0.0]
    queue = CommandQueue(lambda: now[0])
    _doubtful(queue)
    now[0] = 1.0
    queue.add([record(0, offset, "newcomer") for offset in range(3)], 1.0)
    queue.add([record(4, 1, "quiet")], 1.0)
    along = queue.take(9)
    assert [(4, 1), (0, 0)] == [place(each) for each in along]
    queue.learn(along, Counter(), 0)
    assert [(0, 1), (0, 2)] == [place(each) for each in queue.take(9)]
    now[0] = 2.0
    queue.add([record(0, 3, "another")], 2.0)
    assert queue.all_held
    now[0] = 2.05
    assert [(0, 3)] == [place(each) for each in queue.take(9)]
    now[0] = 62.0
    queue.add([record(4, 2, "quiet"), record(0, 4, "late")], 62.0)
    assert [(4, 2), (0, 4)] == [place(each) for each in queue.take(9)], "nothing was broken for long"


def test_newcomers_are_trusted_where_most_of_their_commands_are_sound() -> None:
    """Some who write broken statements slow no other newcomer."""
    queue = CommandQueue(lambda: 0.0)
    names = [f"n{number}" for number in range(200)]
    queue.add([record(0, offset, name) for offset, name in enumerate(names)], 0)
    unit = queue.take(999)
    queue.learn(unit, _broken(*unit[::3]), 0)
    queue.add([record(1, offset, "newcomer") for offset in range(3)], 0)
    assert [(1, 0), (1, 1), (1, 2)] == [place(each) for each in queue.take(9)]


def test_a_command_that_was_held_goes_along_once_it_is_ready() -> None:
    """Others need not be quiet for it."""
    now, ready = [0.0], [False]
    queue = CommandQueue(lambda: now[0])
    _doubtful(queue)
    now[0] = 1.0
    queue.add(
        [record(4, offset, "quiet") for offset in range(1, 4)] + [record(0, offset, "newcomer") for offset in (0, 1)],
        1.0,
    )
    unit = queue.take(1)
    assert [(4, 1), (0, 0)] == [place(each) for each in unit]
    queue.hold({b"newcomer": lambda: ready[0]})
    queue.put_back(unit[1:])
    assert [(4, 2)] == [place(each) for each in queue.take(1)]
    now[0], ready[0] = 1.2, True
    assert [(4, 3), (0, 0)] == [place(each) for each in queue.take(1)]


def test_ever_new_names_cost_the_others_one_command_at_a_time() -> None:
    """Ten a second, however many wait, each with a single command; they go along in the order of coming."""
    now = [0.0]
    queue = CommandQueue(lambda: now[0])
    _doubtful(queue)
    now[0] = 1.0
    queue.add([record(0, offset, f"another {offset}") for offset in range(5_000)], 1.0)
    for offset in range(1, 9):
        queue.add([record(4, offset, "quiet")], now[0])
        unit = queue.take(99)
        assert [(4, offset), (0, offset - 1)] == [place(each) for each in unit]
        queue.learn(unit, _broken(*unit[1:]), 0.01)
        now[0] += 0.11
