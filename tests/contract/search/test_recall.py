"""Recall with the built-in embedder: meaning, conversations, dates, long texts, phrases, and what is not known."""

import itertools
import math
from collections.abc import Iterator
from datetime import timedelta

import pytest

from tests.support.stand_ins import HandClock, Opener, somebody
from wellkept import Filter, Hit, Layer, Memories, NewMemory, View
from wellkept.testing.builders import START
from wellkept.testing.cases import Cases

SUBJECTS = ("The gardener", "A sailor", "Our neighbour", "The baker", "My cousin", "The pilot", "A teacher")
VERBS = ("repaired", "painted", "sold", "borrowed", "described", "photographed", "washed", "measured")
THINGS = ("an old fence", "the kitchen table", "two bicycles", "the church clock", "some apple trees", "a woollen coat")
EVERYDAY = [" ".join(words) for words in itertools.product(SUBJECTS, VERBS, THINGS)]
THEME = "The user prefers dark mode"
HOME = "The user lives in Rome"


@pytest.fixture
def memories(opener: Opener, clock: HandClock) -> Memories:
    """An empty database with the built-in embedder."""
    return opener(clock=clock, embedder="default")


def contents(hits: Iterator[Hit] | tuple[Hit, ...]) -> list[str]:
    return [hit.memory.content for hit in hits]


def odds(score: float) -> float:
    return math.log(score / (1 - score))


# --- meaning --------------------------------------------------------------------------------------


@pytest.mark.req("L4")
def test_a_question_finds_what_answers_it_in_other_words(memories: Memories) -> None:
    with Cases() as cases:
        for others in (0, 5, 300):
            with cases.case(others):
                view = somebody(memories)
                view.add_many([THEME, HOME, *EVERYDAY[:others]])
                results = view.search("What theme does the user prefer?")
                assert results.semantic
                assert results.hits[0].memory.content == THEME
                assert results.hits[0].score > 0.5
                assert all(hit.score < 0.3 for hit in results.hits[1:])


@pytest.mark.req("L4")
def test_meaning_is_found_without_a_common_word(view: View) -> None:
    view.add_many(["The cat sleeps on the sofa", "Our server crashed at night", "He plays the piano every day"])
    for question, answer in (
        ("Where is my kitten?", "The cat sleeps on the sofa"),
        ("computer failure", "Our server crashed at night"),
        ("musical instruments", "He plays the piano every day"),
    ):
        assert view.search(question, min_score=0).hits[0].memory.content == answer


def test_words_alone_do_not_know_what_words_mean(opener: Opener) -> None:
    view = opener(name="words").view(user="ada")
    view.add("The cat sleeps on the sofa")
    results = view.search("Where is my kitten?", min_score=0)
    assert (results.hits, results.semantic) == ((), False)


# --- what is not known ----------------------------------------------------------------------------


@pytest.mark.req("L4")
@pytest.mark.parametrize("embedder", ["default", None])
def test_an_unknown_question_gets_nothing_or_low_scores(opener: Opener, embedder: str | None) -> None:
    view = opener(embedder=embedder, name="unknown").view(user="ada")
    view.add_many(EVERYDAY[:150])
    with Cases() as cases:
        for question in ("Who won the chess championship?", "quantum chromodynamics", "zxqv wrgl"):
            with cases.case(question):
                results = view.search(question)
                if embedder is None:
                    assert (results.hits, results.total) == ((), 0)
                else:  # in doubt, hits are shown, with a score that says how little they are worth
                    assert results.known < 0.3
                    assert all(hit.score < 0.1 for hit in results)


@pytest.mark.req("L4")
def test_whoever_asks_for_the_nearest_gets_it(view: View) -> None:
    view.add_many(EVERYDAY[:150])
    results = view.search("Who won the chess championship?", min_score=0, limit=3)
    assert len(results) == 3
    assert all(0 <= hit.score < 0.2 for hit in results)
    assert len(view.search("Who won the chess championship?", ranking="similarity", limit=3)) == 3


@pytest.mark.req("L4")
def test_a_faint_match_is_shown_however_many_memories_there_are(memories: Memories) -> None:
    with Cases() as cases:
        for others in (0, 97, 98, 300):
            with cases.case(others):
                view = somebody(memories)
                view.add_many([THEME, HOME, *EVERYDAY[:others]])
                for question in ("Which city is home to the user?", "Where does the user live?"):
                    assert contents(view.search(question).hits)[0] == HOME


@pytest.mark.req("N8")
def test_results_say_how_sure_they_are_to_know_something(view: View) -> None:
    assert view.search("Where does the user live?").known == 0.0, "nothing is stored"
    view.add_many([THEME, HOME, *EVERYDAY[:150]])
    sure, faint = view.search("Where does the user live?"), view.search("Which city is home to the user?")
    foreign = view.search("quantum chromodynamics")
    assert 1 >= sure.known > 0.7
    assert sure.known > faint.known > 0.5
    assert 0.3 > foreign.known > 0
    assert view.search("quantum chromodynamics", min_score=0).known == foreign.known
    assert view.search('"lives in Rome"').known == 1.0


@pytest.mark.req("N8")
def test_a_fact_is_found_among_the_turns_of_conversations(view: View) -> None:
    """It is judged as a fact: it has none of the signals that turns have."""
    for number, text in enumerate(EVERYDAY[:300]):
        view.add(text, author="Ben", role=("user", "assistant")[number % 2], session=f"talk {number // 10}")
    view.add("Maya cannot stand coriander")
    assert contents(view.search("Which herb does Maya hate?").hits)[0] == "Maya cannot stand coriander"


@pytest.mark.req("L4")
def test_a_minimum_score_is_kept_to(view: View) -> None:
    view.add_many([THEME, HOME, "The user prefers tea", "Dark chocolate", *EVERYDAY[:20]])
    everything = view.search("What does the user prefer?", min_score=0, limit=50)
    assert len(everything) == everything.total == view.count()
    for least in (0.05, 0.3, 0.9, 1.0):
        some = view.search("What does the user prefer?", min_score=least, limit=50)
        assert some.hits == tuple(hit for hit in everything if hit.score >= least)
        assert some.total == len(some)
    by_default = view.search("What does the user prefer?", limit=50)
    assert by_default.hits == tuple(hit for hit in everything if hit.score >= 0.005)


@pytest.mark.req("H3")
def test_results_say_what_was_searched(memories: Memories) -> None:
    view = memories.view(user="ada", project="api", team="core")
    view.add_many([NewMemory(content="We drink tea", layer="team"), NewMemory(content="She drinks tea", layer="user")])
    results = view.search("Who drinks tea?", limit=1)
    assert (len(results), results.total, results.semantic) == (1, 2, True)
    assert results.layers == (Layer.USER, Layer.PROJECT, Layer.TEAM)
    narrowed = view.search("Who drinks tea?", layers=["team"])
    assert (contents(narrowed.hits), narrowed.layers) == (["We drink tea"], (Layer.TEAM,))


@pytest.mark.req("J6")
@pytest.mark.parametrize("embedder", ["default", None])
def test_the_parts_of_a_score_add_up_to_it(opener: Opener, clock: HandClock, embedder: str | None) -> None:
    view = opener(clock=clock, embedder=embedder, name="explained").view(user="ada")
    said = ("Shall we go hiking on Sunday?", "I went hiking last week", "Hiking is fun", "The boots for hiking are new")
    for number, text in enumerate(said):
        role = ("user", "assistant")[number % 2]
        view.add(text, author="Ada", role=role, session="s", importance=0.2 * number, occurred_at=START)
    expected = {"base", "words", "conversation_keyword", "author", "role", "opening", "question", "when", "date"}
    with Cases() as cases:
        for mode in ("best", "precedence"):
            with cases.case(mode):
                results = view.search(
                    "When did Ada go hiking in January 2026?", ranking=mode, explain=True, min_score=0
                )
                assert len(results) == len(said)
                for hit in results:
                    assert odds(hit.score) == pytest.approx(sum(hit.reasons.values()), abs=0.001)
                told = {name for hit in results for name in hit.reasons}
                assert told >= expected | {"importance"}
                assert ({"similarity", "conversation_similarity"} <= told) == (embedder is not None)


# --- conversations --------------------------------------------------------------------------------


@pytest.fixture(params=["default", None], ids=["meaning", "words"])
def talking(request: pytest.FixtureRequest, opener: Opener, clock: HandClock) -> View:
    """A database for conversations, with and without an embedder."""
    return opener(clock=clock, embedder=request.param, name="talking").view(user="ada")


def talk(view: View, session: str | None, *turns: str, **fields: object) -> list[str]:
    """Store turns of a user and an assistant; their ids."""
    said = [
        NewMemory(content=turn, role=("assistant", "user")[place % 2], session=session, type="conversation", **fields)  # type: ignore[arg-type]  # the fields of some tests
        for place, turn in enumerate(turns)
    ]
    return [memory.id for memory in view.add_many(said)]


def test_an_answer_is_found_by_the_question_before_it(talking: View) -> None:
    talk(talking, "monday", "Which bread shall I bring?", "The round one, please.")
    _, answer = talk(talking, "tuesday", "Which theme shall the editor have?", "The dark one, please.")
    hits = talking.search("the theme of the editor", explain=True, min_score=0.2).hits
    assert answer in [hit.memory.id for hit in hits]
    assert "The round one, please." not in contents(hits)
    found = next(hit for hit in hits if hit.memory.id == answer)
    assert found.reasons["words"] > 1


def test_without_a_session_half_an_hour_parts_conversations(talking: View, clock: HandClock) -> None:
    talking.add("Which theme shall the editor have?", role="assistant")
    clock.forward(minutes=29)
    talking.add("The dark one, please.", role="user")
    clock.forward(hours=3)
    talking.add("Which bread shall I bring?", role="assistant")
    clock.forward(minutes=31)
    talking.add("The round one, please.", role="user")
    assert "The dark one, please." in contents(talking.search("theme of the editor", min_score=0.2).hits)
    hits = talking.search("Which bread to bring?", min_score=0.1).hits
    assert contents(hits) == ["Which bread shall I bring?"]


def test_who_is_asked_about_comes_first(talking: View) -> None:
    talking.add("I went climbing and loved it", author="Ada", session="s")
    talking.add("I went climbing and hated it", author="Bob", session="s")
    for name in ("Ada", "Bob"):
        hits = talking.search(f"How did {name} find climbing?", explain=True).hits
        assert hits[0].memory.author == name
        assert hits[0].reasons["author"] > 0 > hits[1].reasons["author"]


def test_what_people_say_of_themselves_counts_more_than_an_echo(talking: View) -> None:
    talking.add("The move to Lisbon is planned for spring", role="assistant", session="a")
    talking.add("The move to Lisbon is planned for autumn", role="user", session="b")
    hits = talking.search("When is the move to Lisbon planned?", explain=True).hits
    assert [hit.memory.role for hit in hits] == ["user", "assistant"]
    assert hits[0].reasons["role"] == -hits[1].reasons["role"] > 0


def test_dates_are_reckoned_from_when_the_question_was_asked(talking: View, clock: HandClock) -> None:
    for days in (60, 30, 7):
        talking.add(f"She talked about her plans, {days}", author="Ada", occurred_at=START - timedelta(days=days))
    question = "What did she say about her plans last week?"
    now = talking.search(question, explain=True).hits
    assert now[0].memory.content.endswith(" 7")
    assert now[0].reasons["date"] > 0.5
    then = talking.search(question, asked_at=START - timedelta(days=25), explain=True).hits
    assert then[0].memory.content.endswith(" 30")
    named = talking.search("What did she say about her plans in November 2025?").hits
    assert named[0].memory.content.endswith(" 60")
    clock.forward(days=365)
    later = talking.search(question, explain=True).hits
    assert [hit.reasons.get("date", 0) for hit in later] == pytest.approx([0, 0, 0], abs=0.01)


def test_when_asks_for_a_time(talking: View) -> None:
    talking.add("The workshop took place last Friday", session="a")
    talking.add("The workshop took place upstairs", session="b")
    hits = talking.search("When did the workshop take place?", explain=True).hits
    assert contents(hits) == ["The workshop took place last Friday", "The workshop took place upstairs"]
    assert hits[0].reasons["when"] > 0
    assert "when" not in hits[1].reasons


@pytest.mark.req("L1")
def test_the_session_of_an_identity_is_that_of_its_memories(memories: Memories) -> None:
    view = memories.view(user="ada", session="monday")
    assert view.add("Which theme?", layer="user", role="user").session == "monday"
    assert view.add("Which bread?", layer="user", session="tuesday").session == "tuesday"
    assert view.add("A chat about bread", type="conversation").session == "monday"
    assert view.add("The user prefers dark mode").session is None, "nobody said it: it has no neighbours"
    [one] = view.add_many([NewMemory(content="The dark one", author="Ada")])
    assert view.get(one.id) == one
    assert one.session == "monday"
    moved = view.update(one.id, session="friday")
    assert moved.session == "friday"
    assert memories.view(user="ada").add("No session", author="Ada").session is None


# --- long texts -----------------------------------------------------------------------------------

ABOUT = {
    "penguins": "Penguins breed on the ice and walk to the sea for fish. ",
    "parser": "The parser reads one token ahead and reports where it failed. ",
    "bread": "Rye bread needs sourdough, salt, warm water and a hot oven. ",
}


@pytest.mark.req("L4")
def test_a_hit_names_the_passage_that_came_nearest(view: View) -> None:
    content = "\n".join(f"Chapter {place}. {text * 11}" for place, text in enumerate(ABOUT.values()))
    view.add(content)
    view.add_many(EVERYDAY[:10])
    with Cases() as cases:
        for topic, sentence in ABOUT.items():
            with cases.case(topic):
                hit = view.search(sentence).hits[0]
                assert hit.memory.content == content
                assert hit.passage is not None
                start, end = hit.passage
                passage = content[start:end]
                assert 0 < len(passage) <= 800
                assert passage.count(sentence.strip()) == 11
                assert sum(text.strip() in passage for text in ABOUT.values()) == 1
                stored = view.get(hit.memory.id, include_vector=True)
                assert stored is not None
                assert stored.vector is not None
                assert len(stored.vector.rows) == len(stored.vector.spans) == len(ABOUT)
                assert hit.passage in stored.vector.spans


def test_a_short_text_has_no_passages(view: View) -> None:
    view.add(THEME)
    assert view.search("dark mode").hits[0].passage is None


# --- phrases and beginnings -----------------------------------------------------------------------


@pytest.fixture(params=["default", None], ids=["meaning", "words"])
def literal(request: pytest.FixtureRequest, opener: Opener) -> View:
    view = opener(embedder=request.param, name="literal").view(user="ada")
    view.add_many(
        [
            "She likes dark mode in editors",
            "A mode that is dark",
            "To be or not to be",
            "Security comes first",
            "We secured the door",
            "An insecure feeling",
            NewMemory(content="Nothing to see", title="Securities and bonds"),
        ]
    )
    return view


BEGINNINGS: tuple[tuple[str, set[str]], ...] = (
    ("secur*", {"Security comes first", "We secured the door", "Nothing to see"}),
    ("SECUR*", {"Security comes first", "We secured the door", "Nothing to see"}),
    ("securit*", {"Security comes first", "Nothing to see"}),
    ("zebr*", set()),
)


@pytest.mark.req("J5")
def test_beginnings(literal: View) -> None:
    with Cases() as cases:
        for query, found in BEGINNINGS:
            with cases.case(query):
                assert set(contents(literal.search(query).hits)) == found


PHRASES: tuple[tuple[str, str], ...] = (
    ('"dark mode"', "She likes dark mode in editors"),
    ('"Dark-Mode"', "She likes dark mode in editors"),
    ("\u201cdark mode\u201d", "She likes dark mode in editors"),
    ('editors "dark mode"', "She likes dark mode in editors"),
    ('mode "that is dark"', "A mode that is dark"),
    ('"or not to be"', "To be or not to be"),
)


@pytest.mark.req("J5")
def test_a_phrase_comes_first(literal: View) -> None:
    with Cases() as cases:
        for query, first in PHRASES:
            with cases.case(query):
                hits = literal.search(query, explain=True).hits
                assert hits[0].memory.content == first
                assert "phrase" in hits[0].reasons
                assert not any("phrase" in hit.reasons for hit in hits[1:])


@pytest.mark.req("J5")
def test_a_phrase_that_occurs_nowhere_empties_nothing(literal: View) -> None:
    with Cases() as cases:
        for query in ('"mode dark"', '"dark mode" "not to be"'):
            with cases.case(query):
                assert "She likes dark mode in editors" in contents(literal.search(query).hits)


@pytest.mark.req("J5")
def test_phrases_and_beginnings_are_found_among_many(view: View) -> None:
    """They are asked for on purpose: nobody guesses whether there is an answer."""
    view.add_many([*EVERYDAY[:150], "Some words about marzipan pigs"])
    assert contents(view.search("marz*").hits) == ["Some words about marzipan pigs"]
    for query in ('"marzipan pigs"', '"pigs marzipan"', "\u201cmarzipan pigs\u201d zxqv wrgl Zebulon"):
        assert contents(view.search(query).hits)[0] == "Some words about marzipan pigs"


def test_a_mark_that_quotes_nothing_changes_nothing(view: View) -> None:
    view.add_many([THEME, HOME, *EVERYDAY[:100]])
    question = "Which city is home to the user"
    plain = contents(view.search(f"{question}?", limit=3).hits)
    assert plain[0] == HOME
    for asked in (f'{question}"?', f"{question} *"):
        assert contents(view.search(asked, limit=3).hits) == plain
    assert contents(view.search(f'5" {question}?').hits)[0] == HOME


@pytest.mark.req("J5")
def test_a_phrase_that_nobody_said_leaves_the_other_words(literal: View) -> None:
    found = contents(literal.search('Who likes "the mode dark" in editors?').hits)
    assert found[0] == "She likes dark mode in editors"


STRANGE_TEXTS: tuple[str, ...] = (
    '"',
    '""',
    '" "',
    "*",
    "**",
    "a*",
    '"tea',
    "tea*tea",
    "-tea",
    "NEAR(tea)",
    "\x00",
    "🙂",
    "%",
    "'; --",
    "…",
    "ﬁ*",
)


def test_no_text_is_a_mistake(view: View) -> None:
    view.add_many(["green tea", "!!!", "🙂", "the"])
    with Cases() as cases:
        for query in STRANGE_TEXTS:
            with cases.case(query):
                for mode in ("best", "similarity", "precedence", "relevance"):
                    for least in (None, 0.0):
                        for hit in view.search(query, ranking=mode, min_score=least, explain=True):
                            assert 0 <= hit.score <= 1


# --- what says the same ---------------------------------------------------------------------------


@pytest.mark.req("H4")
def test_what_says_the_same_is_found_once_and_named(talking: View) -> None:
    same = {talking.add(text).id for text in ("Use tabs, please", "Please use tabs!", "use tabs please")}
    other = talking.add("Use tabs for columns as well").id
    results = talking.search("Please use tabs")
    first, second = results.hits
    assert {first.memory.id, *first.duplicates} == same
    assert len(first.duplicates) == 2
    assert (second.memory.id, second.duplicates) == (other, ())
    assert [hit.rank for hit in results] == [1, 2]
    assert results.total == 4
    # Duplicates take no places: the limit counts what is left.
    assert talking.search("Please use tabs", limit=2).hits == results.hits


@pytest.mark.req("H4")
def test_the_same_words_of_two_people_are_two_things_said(talking: View) -> None:
    for author in ("Ada", "Bob"):
        talking.add("I will come to the party", author=author)
    results = talking.search("Who will come to the party?")
    assert {hit.memory.author for hit in results} == {"Ada", "Bob"}
    assert all(hit.duplicates == () for hit in results)


@pytest.mark.req("L5")
def test_filters_and_the_past_narrow_what_is_searched(view: View) -> None:
    first = view.add("The user prefers dark mode", tags=["ui"])
    before = view.position()
    view.update(first.id, content="The user prefers light mode")
    view.add("The user prefers dark bread", type="preference")
    question = "What does the user prefer?"
    assert contents(view.search(question, filter=Filter(tags=["ui"])).hits) == ["The user prefers light mode"]
    assert contents(view.search(question, filter={"types": ["preference"]}).hits) == ["The user prefers dark bread"]
    assert contents(view.search(question, as_of=before).hits) == ["The user prefers dark mode"]
    view.forget(first.id)
    assert contents(view.search(question).hits) == ["The user prefers dark bread"]
    forgotten = view.search(question, filter=Filter(include_forgotten=True))
    assert set(contents(forgotten.hits)) == {"The user prefers dark bread", "The user prefers light mode"}


# --- tags -----------------------------------------------------------------------------------------


@pytest.mark.req("L4")
def test_tags_and_titles_are_searched(literal: View) -> None:
    tagged = literal.add("We rotate the keys every quarter", tags=["compliance.audit"])
    titled = literal.add("Every Friday at noon", title="Timesheets")
    assert contents(literal.search("compliance").hits)[0] == tagged.content
    assert contents(literal.search("timesheets").hits)[0] == titled.content
    literal.update(tagged.id, remove_tags=["compliance.audit"], add_tags=["crypto"])
    assert contents(literal.search("crypto").hits)[0] == tagged.content
    assert not [hit for hit in literal.search("compliance audit", min_score=0.3) if hit.memory.id == tagged.id]


def test_tags_leave_the_meaning_of_the_content(view: View) -> None:
    """Pieces of words are stored beside the vector and belong to the content, in whose order they are."""
    view.add("The cat sleeps on the sofa", tags=["home", "pets.indoors"])
    view.add("Our server crashed at night", tags=["work"])
    hit = view.search("Where is my kitten?", min_score=0, explain=True).hits[0]
    assert hit.memory.content == "The cat sleeps on the sofa"
    assert hit.reasons["words"] > 1
