"""Questions and stores that make no sense: a sensible answer or none, never an exception, in bounded time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wellkept
from tests.support.stand_ins import Opener
from wellkept import Memories, Results, View
from wellkept.stores.ram import RamStore
from wellkept.testing.builders import Writer, owner
from wellkept.testing.cases import Cases
from wellkept.testing.subject import GENERATED

LONG = 10_000
QUESTIONS = {
    "one letter": "x",
    "one mark": "?",
    "stop words": "what is it that you are",
    "foreign stop words": "was ist das und wo",
    "long words": "tea " * (LONG // 4),
    "long stop words": "the " * (LONG // 4),
    "one long word": "x" * LONG,
    "many words": " ".join(f"w{number}" for number in range(5_000)),
    "many numbers": " ".join(map(str, range(5_500))),
    "many names": "Ada " * (LONG // 4),
    "many dates": "in May 2020, last week, 3 days ago; " * 800,
    "many times": "yesterday " * (LONG // 10),
    "long Chinese": "深色模式" * (LONG // 4),
    "long Thai": "แมวกินปลา" * (LONG // 9),
    "many phrases": '"tea and" ' * (LONG // 10),
    "many prefixes": " ".join(f"pr{number}*" for number in range(300)),
    "mixed scripts": "tea чай 茶 शाय ชา चाय お茶 tè ☕ شاي",
    "control characters": "te\x00a \x1b[31m\x07 \u202e\u200b\ufeff \x85",
    "marks alone": "\u0301\u0323" * 1_000,
    "numbers": "1 2.5 10:30 1,500 007",
    "a sum": "2+2",
    "one digit": "7",
    "surrounded": '"*" "" ** *a* -',
    "joined digits": "1.2.3.4:5+6," * 2_000,
    "apostrophes": "'s 't n't ' ’ o'o'o'o",
}
STORES = {
    "nothing": [],
    "one memory": ["Likes green tea"],
    "no words": ["!!!", "…", "☕", "—", "\u200b.", "🙂🙂"],
    "stop words": ["It is what it is", "the", "und die"],
    "numbers": ["7", "2.5", "10:30", "1,500"],
    "mixed scripts": ["绿茶很好喝", "Он любит чай", "شاي أخضر", "ชาเขียว", "Maya's tea, 2.9 percent, on May 3"],
    "a long text": ["tea and " * 20_000],
}


def checked(view: View, question: str) -> Results:
    """Search, and check what holds of every answer."""
    answers = [view.search(question, min_score=least, explain=True) for least in (None, 0.0)]
    for results in answers:
        assert all(0 <= hit.score <= 1 for hit in results)
        assert 0 <= results.known <= 1
        assert [hit.rank for hit in results] == list(range(1, len(results.hits) + 1))
    return answers[0]


@pytest.mark.slow
@pytest.mark.req("H10", "L4", "N8")
@pytest.mark.parametrize("embedder", ["default", None], ids=["meaning", "words"])
@pytest.mark.parametrize("store", STORES)
def test_every_question_to_every_store(store: str, embedder: str | None) -> None:
    with wellkept.open("ram:", embedder=embedder) as memories:
        view = memories.view(user="ada")
        view.add_many(STORES[store])
        for question in QUESTIONS.values():
            results = checked(view, question)
            assert store != "nothing" or results.hits == ()


@pytest.mark.req("H10", "N8")
def test_one_memory_does_not_answer_everything(opener: Opener) -> None:
    view = opener(embedder=None, name="one").view(user="ada")
    view.add("Likes green tea")
    with Cases() as cases:
        for question in ("zebra", "x", "2+2", "quarterly revenue of the zoo"):
            with cases.case(question):
                assert view.search(question).hits == ()
                assert len(view.search("tea").hits) == 1


@pytest.fixture(scope="module")
def ada() -> View:
    memories: Memories = wellkept.open("ram:")
    view = memories.view(user="ada")
    view.add_many([text for texts in STORES.values() for text in texts[:6] if len(text) < 1_000])
    return view


@pytest.mark.req("H10", "L4")
@given(question=st.text(st.characters(codec="utf-8"), min_size=1, max_size=120).filter(str.strip))
@GENERATED
def test_any_text_is_a_question(ada: View, question: str) -> None:
    checked(ada, question)


@pytest.mark.req("H10", "L4")
@given(text=st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=80).filter(str.strip))
@GENERATED
def test_any_text_that_is_stored_can_be_asked_for(text: str) -> None:
    with wellkept.open("ram:", embedder=None) as memories:
        view = memories.view(user="ada")
        view.add_many([text, "The printer works over USB"])
        checked(view, text)


@pytest.mark.slow
@pytest.mark.req("H10", "N8")
def test_a_hundred_thousand_equal_memories() -> None:
    store, writer, ada = RamStore(), Writer(), owner("ada")
    store.journal.append([writer.add(ada, "Maya's tea costs 2.9 euros") for _ in range(100_000)])
    with wellkept.open(store=store, embedder=None) as memories:
        view = memories.view(user="ada")
        for question in ("tea", "zebra", "What happened today?", '"tea costs"', "2.9", "the"):
            checked(view, question)
        assert len(view.search("tea").hits) >= 1
        assert view.search("zebra").hits == ()
