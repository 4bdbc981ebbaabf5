"""What recall makes of who said something, when, and beside what."""

from datetime import UTC, datetime, timedelta

import pytest

from recollect.ports import Store
from recollect.testing.builders import (
    START,
    by_words,
    erased,
    forgotten,
    memory,
    owner,
    probe,
    put,
    query,
    restored,
    updated,
)
from recollect.testing.recall import EXACT, contents, signal
from recollect.testing.subject import Subject
from recollect.text.dates import DateRange

ADA = owner("ada")


@pytest.mark.req("L4")
class Conversations(Subject):
    """Neighbours, speakers and dates in ``candidates``."""

    def test_neighbours_in_a_conversation_lend_their_words(self, store: Store) -> None:
        said = ["shall we go to paris", "yes, in may", "and then home"]
        put(store, *(memory(one, session="trip") for one in said), memory("aside", session="other"))
        found = by_words(store, query(ADA), "paris", 9)
        assert contents(found) == said[:2]
        assert found[1].score == pytest.approx(found[0].score / 2, abs=EXACT)
        said_by = signal(store, query(ADA), probe("paris"), "words")
        assert list(said_by.values()) == pytest.approx([1, 0.6], abs=EXACT)
        # All three count, also the one that is no candidate.
        mean = (found[0].score + found[1].score) / 3
        in_all = signal(store, query(ADA), probe("paris"), "conversation_keyword")
        assert list(in_all.values()) == pytest.approx([mean] * 2, abs=EXACT)

    @pytest.mark.parametrize(("minutes", "together"), [(0, True), (30, True), (31, False), (-30, True), (-31, False)])
    def test_what_is_said_within_half_an_hour_is_one_conversation(
        self, store: Store, minutes: int, together: bool
    ) -> None:
        first = memory("dark mode", author="ada")
        put(store, first)
        put(store, memory("nobody said this", occurred_at=START))
        put(store, memory("said elsewhere", author="bob", session="other"))
        put(store, memory("second", author="bob", occurred_at=START + timedelta(minutes=minutes)))
        expected = ["dark mode", "second"] if together else ["dark mode"]
        assert contents(by_words(store, query(ADA), "dark", 9)) == expected
        gone = forgotten(first)
        store.apply([gone])
        assert by_words(store, query(ADA), "dark", 9) == []
        store.apply([restored(gone.memory)])
        assert contents(by_words(store, query(ADA), "dark", 9)) == expected

    def test_conversations_follow_every_change(self, store: Store) -> None:
        """Who stands beside whom is what it would be if everything had been written at once."""
        said = [memory(f"number{n}", session="talk") for n in range(4)]
        put(store, *said)

        def beside(n: int) -> list[str]:
            return sorted(contents(by_words(store, query(ADA), f"number{n}", 9)))

        assert beside(1) == ["number0", "number1", "number2"]
        gone = forgotten(said[1])
        store.apply([gone])
        assert beside(2) == ["number0", "number2", "number3"]
        back = restored(gone.memory)
        store.apply([back])
        assert beside(1) == ["number0", "number1", "number2"]
        assert beside(3) == ["number2", "number3"]
        away = updated(back.memory, session="elsewhere")
        store.apply([away])
        assert beside(1) == ["number1"]
        assert beside(2) == ["number0", "number2", "number3"]
        store.apply([erased(said[2])])
        assert beside(3) == ["number0", "number3"]
        store.apply([updated(away.memory, session="talk")])
        assert beside(1) == ["number0", "number1", "number3"]

    def test_who_is_named_and_who_speaks(self, store: Store) -> None:
        bob = memory("dark", author="bob", role="assistant", session="a")
        put(store, memory("dark", author="Ada Lovelace", role="user", session="b"), bob, memory("dark?"))

        def signals(name: str, text: str) -> list[float]:
            return list(signal(store, query(ADA), probe(text), name).values())

        assert signals("author", "dark, said Ada Lovelace") == [0.5, -0.5, -0.5]
        assert signals("author", "dark, said Ada") == [0, 0, 0]
        assert signals("role", "dark") == [0.5, -0.5, 0]
        assert signals("opening", "dark") == [1, 0, 0]
        assert signals("question", "dark") == [0, 0, 1]
        assert signals("author", "dark, said Bob") == [-0.5, 0.5, -0.5]
        store.apply([erased(bob)])
        assert signals("author", "dark, said Bob") == [0, 0]  # nobody of that name is known here any more

    def test_dates_that_a_question_names_bring_what_happened_then(self, store: Store) -> None:
        moments = [START - timedelta(days=day) for day in (400, 10, 3, 0)]
        memories = [memory(f"day {n}", occurred_at=moment) for n, moment in enumerate(moments)]
        outside = memory("gone", occurred_at=START - timedelta(days=4000))
        numbers = put(store, *memories, outside)
        store.apply([erased(outside)])
        asked: list[tuple[datetime, datetime]] = []

        def dates(first: datetime, last: datetime) -> list[DateRange]:
            asked.append((first, last))
            at = memories[1].occurred_at.timestamp()
            return [DateRange(at, at + 86_400, 1.0)]

        near = signal(store, query(ADA), probe("nothing", dates=dates), "date")
        assert set(asked) == {(moments[0], moments[-1])}  # erased ones say nothing any more
        assert near == {numbers[1]: 1}

    @pytest.mark.req("L11")
    def test_dates_are_not_used_up_by_what_may_not_be_seen(self, store: Store) -> None:
        mine = [memory(f"day {n}", tags=("mine",)) for n in range(3)]
        gone = [memory("forgotten") for _ in range(60)]
        numbers = put(store, *gone[:30], *(memory("expired", expires_at=START) for _ in range(30)), *mine, *gone[30:])
        store.apply([forgotten(one) for one in gone])
        put(store, *(memory("not mine") for _ in range(60)), *(memory("theirs", owner("bob")) for _ in range(60)))
        at = START.timestamp()
        asked = probe("nothing", pool=6, dates=lambda *_: [DateRange(at, at + 86_400, 1.0)])
        near = signal(store, query(ADA, tags=("mine",)), asked, "date")
        assert near == dict.fromkeys(numbers[60:63], 1)

    @pytest.mark.parametrize("moment", [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)])
    def test_any_time_can_be_searched_for_dates(self, store: Store, moment: datetime) -> None:
        put(store, memory("dark", occurred_at=moment))
        found = store.candidates(query(ADA), probe("dark", dates=lambda *_: [DateRange(0, 1, 1.0)]))
        assert len(found) == 1
