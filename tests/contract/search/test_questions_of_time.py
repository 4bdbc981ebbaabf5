"""Questions of time alone, and the dates that memories tell of."""

import math
from datetime import UTC, datetime, timedelta

import pytest

import wellkept
from tests.support.stand_ins import Opener
from wellkept import NewMemory, View
from wellkept.testing.cases import Cases

NOW = datetime(2026, 3, 20, 12, tzinfo=UTC)  # a Friday


@pytest.fixture(params=["default", None], ids=["meaning", "words"])
def diary(request: pytest.FixtureRequest, ram_opener: Opener) -> View:
    view = ram_opener(embedder=request.param, name="diary").view(user="ada")
    said = {
        "Painted the fence": 1,
        "Repaired the tap": 2,
        "Met Bob about yesterday's match": 30,
        "Bought two chairs": 9,
        "Went to Rome by train": 250,
        "The dentist is on April 2 at 9:30": 5,
        "The flight to Berlin leaves on March 27": 4,
        "The offsite is from June 8 to June 11": 9,
        "Likes tea": 600,
    }
    view.add_many([NewMemory(content=one, occurred_at=NOW - timedelta(days=ago)) for one, ago in said.items()])
    return view


DATED: tuple[tuple[str, list[str]], ...] = (
    ("What did I do yesterday?", ["Painted the fence"]),
    ("What happened last week?", ["Bought two chairs"]),
    ("What is on next week?", ["The flight to Berlin leaves on March 27"]),
    (
        "What is upcoming?",
        ["The flight to Berlin leaves on March 27", "The dentist is on April 2 at 9:30"],
    ),
    ("What happens in June?", ["The offsite is from June 8 to June 11"]),
    ("What happened in July?", ["Went to Rome by train"]),
    ("What did I do last year?", ["Went to Rome by train"]),
    ("And two days ago?", ["Repaired the tap"]),
)


@pytest.mark.req("L4", "L15", "J6")
def test_what_is_dated_there_is_found_and_nothing_else_first(diary: View) -> None:
    with Cases() as cases:
        for question, found in DATED:
            with cases.case(question):
                hits = diary.search(question, asked_at=NOW, explain=True).hits
                assert [hit.memory.content for hit in hits][: len(found)] == found
                assert all(set(hit.reasons) == {"date"} for hit in hits)
                for hit in hits:
                    assert 1 / (1 + math.exp(-hit.reasons["date"])) == pytest.approx(hit.score, abs=0.001)


@pytest.mark.req("L4")
def test_where_nothing_is_dated_there_words_decide(diary: View) -> None:
    hits = diary.search("What was said yesterday?", asked_at=NOW + timedelta(days=4000), explain=True).hits
    assert all("words" in hit.reasons for hit in hits[:1])
    assert not any(set(hit.reasons) == {"date"} for hit in hits)


@pytest.mark.req("L4")
def test_a_time_beside_other_words_prefers_and_does_not_filter(diary: View) -> None:
    diary.add("Bought two lamps", occurred_at=NOW - timedelta(days=100))
    found = [hit.memory.content for hit in diary.search("Which two things were bought last week?", asked_at=NOW)]
    assert found[0] == "Bought two chairs"
    assert "Bought two lamps" in found


@pytest.mark.req("L4", "H10")
def test_filters_hold_for_questions_of_time(diary: View) -> None:
    diary.add("Tagged", occurred_at=NOW - timedelta(days=1), tags=["kept"])
    question = "What did I do yesterday?"
    assert [hit.memory.content for hit in diary.search(question, asked_at=NOW, filter={"tags": ["kept"]})] == ["Tagged"]
    forgotten = diary.search(question, asked_at=NOW).hits[0].memory
    diary.forget(forgotten.id)
    assert forgotten.id not in [hit.memory.id for hit in diary.search(question, asked_at=NOW)]


@pytest.mark.req("L4")
def test_what_is_upcoming_is_not_what_was_stored_a_moment_ago() -> None:
    with wellkept.open("ram:") as database:
        view = database.view(user="ada")
        view.add_many(["The project uses PostgreSQL", "Tom plays the cello", "The dentist sees me tomorrow"])
        assert [hit.memory.content for hit in view.search("What is upcoming?")][:1] == ["The dentist sees me tomorrow"]
        assert len(view.search("What is upcoming?")) == 1


WITHIN: tuple[tuple[str, list[str]], ...] = (
    ("What did I do yesterday?", ["Borrowed the drill until April 5", "Painted the fence"]),
    (
        "What happened yesterday?",
        ["The dentist is on April 2", "Borrowed the drill until April 5", "Painted the fence"],
    ),
    (
        "What was said yesterday?",
        ["The dentist is on April 2", "Borrowed the drill until April 5", "Painted the fence"],
    ),
    ("What happened in 2025?", ["Went to Rome by train"]),
    ("What happened in February?", ["Sold the piano"]),
)


@pytest.mark.req("L4", "L15")
@pytest.mark.parametrize("embedder", ["default", None], ids=["meaning", "words"])
def test_what_is_only_near_a_time_is_left_out_beside_what_is_within_it(
    ram_opener: Opener, embedder: str | None
) -> None:
    view = ram_opener(embedder=embedder, name="days").view(user="ada")
    said = {
        "Painted the fence": NOW - timedelta(days=1),
        "The dentist is on April 2": NOW - timedelta(days=1),
        "Borrowed the drill until April 5": NOW - timedelta(days=1),
        "Watered the beans": NOW - timedelta(hours=9),
        "Went to Rome by train": datetime(2025, 12, 29, tzinfo=UTC),
        "Shovelled snow": datetime(2026, 1, 3, tzinfo=UTC),
        "Sold the piano": datetime(2026, 2, 20, tzinfo=UTC),
        "Oiled the bike": datetime(2026, 3, 2, tzinfo=UTC),
    }
    view.add_many([NewMemory(content=one, occurred_at=at) for one, at in said.items()])
    with Cases() as cases:
        for question, found in WITHIN:
            with cases.case(question):
                hits = view.search(question, asked_at=NOW)
                assert {hit.memory.content for hit in hits} == {*found}


@pytest.mark.req("L4")
def test_an_announcement_is_found_where_nothing_else_is_dated_then() -> None:
    with wellkept.open("ram:") as database:
        view = database.view(user="ada")
        view.add("The dentist is on April 2", occurred_at=NOW - timedelta(days=1))
        assert len(view.search("What did I do yesterday?", asked_at=NOW)) == 1


@pytest.mark.req("L4")
def test_verbs_of_other_languages_are_given_the_benefit_of_the_doubt() -> None:
    with wellkept.open("ram:") as database:
        view = database.view(user="ada")
        for said in ("Ich habe das Buch bis zum 2. April ausgeliehen", "Ich habe den Zaun gestrichen"):
            view.add(said, occurred_at=NOW - timedelta(days=1))
        assert len(view.search("Was habe ich gestern gemacht?", asked_at=NOW)) == 2


@pytest.mark.req("L4")
def test_the_number_of_a_ticket_is_no_year() -> None:
    with wellkept.open("ram:") as database:
        view = database.view(user="ada")
        view.add("The review of INC-2031 is on Tuesday", occurred_at=NOW)
        view.add("Painted the fence", occurred_at=NOW)
        found = view.search("What is on next week?", asked_at=NOW).hits
        assert [hit.memory.content for hit in found] == ["The review of INC-2031 is on Tuesday"]
