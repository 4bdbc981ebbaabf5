"""What a search text asks for."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wellkept.testing.cases import Cases
from wellkept.text import query_text, words
from wellkept.text.query_text import Asked

TEXTS = st.text(max_size=60)
PARTS = st.sampled_from(
    [
        *("Ada", "tea", "teas", "the", "secur*", '"', '"dark mode"', "*", "a*", ". ", "\n", " ", "e\u0301", "\x00"),
        *("AND", "NEAR(", ")", "-", "^", ":", "\\", "😀", "İ", "ß", "½", "\u0345", "\u201c", "_", "'", "\ud800"),
    ]
)
PUT_TOGETHER = st.lists(PARTS, max_size=15).map("".join) | st.lists(PARTS, max_size=15).map(" ".join)
SEARCHES = TEXTS | PUT_TOGETHER


def terms(text: str) -> tuple[int, ...]:
    return tuple(words.terms(text))


@given(SEARCHES)
def test_every_text_is_a_good_one(text: str) -> None:
    asked = query_text.parse(text)
    assert asked.terms == tuple(map(words.term, asked.words))
    assert len(set(asked.terms)) == len(asked.terms)
    assert set(asked.names) <= set(asked.terms)
    assert all(len(phrase) > 1 for phrase in asked.phrases)
    assert all(set("*?") & set(one) and len(one.strip("*?")) > 1 for one in asked.patterns)
    for parts in (asked.names, asked.phrases, asked.patterns):
        assert len(set(parts)) == len(parts)
    telling = {word for word in asked.words if not words.is_stop(word)}
    assert not telling or len(telling) == len(asked.words)
    assert all(place < len(asked.terms) for place, _ in asked.others)


@given(SEARCHES)
def test_without_wildcards_the_terms_are_those_of_all_the_words(text: str) -> None:
    text = text.replace("*", "").replace("?", "")
    asked = query_text.parse(text)
    assert set(asked.terms) <= set(words.terms(text))
    assert asked.patterns == ()
    assert asked.phrases == () or sum(text.count(mark) for mark in '"\u201c\u201d') > 1


@given(PUT_TOGETHER)
@example("\u0345ab*")
def test_every_word_is_asked_for_as_a_term_or_in_a_pattern(text: str) -> None:
    asked = query_text.parse(text)
    said = words.tokens(text)
    telling = {word for word in said if not words.is_stop(word, words.languages_of(said))}
    assert telling <= {word for word in telling if words.term(word) in asked.terms} | set(
        re.split(r"[*?]", " ".join(asked.patterns).replace(" ", "*"))
    )


WORDS_AND_PATTERNS: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("secur*", (), ("secur*",)),
    ("what is secur*", (), ("secur*",)),
    ("the Secur* of teas and TEA", ("teas",), ("secur*",)),
    ("(secur*), secur* e-mail*", ("e",), ("secur*", "mail*")),
    ("Straß* cafe\u0301* Café*", (), ("strass*", "cafe*")),
    ("user_pref* v2*", ("user",), ("pref*", "v2*")),
    ("the gr?y one, Gr?Y?", ("one", "gr", "y"), ("gr?y",)),
    ("what about auth?", ("auth",), ()),
    ("is it cold?Tea or cold?tea", ("cold", "tea"), ("cold?tea",)),
    ("page?id=3 see a?b", ("page", "id", "3", "see"), ("a?b",)),
    ("2*3 v2*3", ("2", "3"), ("v2*3",)),
    ("a* *", ("a",), ()),
    ("*", (), ()),
    ("secur*ity *secur secur **", ("secur",), ("secur*ity", "*secur")),
    ("*a*b *a ?b", ("b",), ("*a*b",)),
    ("**bold** *leaning*", ("bold", "leaning"), ()),
    ("½½*", ("1", "21", "2"), ()),
    ('"dark mod*"', ("dark", "mod"), ()),
    ("the", ("the",), ()),
    ("what is it", ("what", "is", "it"), ()),
    ("tea AND (coffee OR NOT milk) -sugar ^a:b\\c\x00d 😀", tuple("tea coffee not milk sugar b c d".split()), ()),
    ("", (), ()),
)


def test_words_and_patterns() -> None:
    with Cases() as cases:
        for text, found, patterns in WORDS_AND_PATTERNS:
            with cases.case(text):
                asked = query_text.parse(text)
                assert (asked.words, asked.patterns) == (found, patterns)
                assert asked.terms == tuple(map(words.term, found))


PHRASES: tuple[tuple[str, list[str]], ...] = (
    ('about "dark mode"', ["dark mode"]),
    ('"The Who" or "dark-mode", "the who"', ["the who", "dark mode"]),
    ("\u201cdark mode\u201d", ["dark mode"]),
    ('"tea"', []),
    ('""', []),
    ('"dark mode', []),
    ('"dark mode" and "light mode', ["dark mode"]),
    ('a 5" nail and a 6" nail', []),
    ('{"theme": "dark mode"}', ["dark mode"]),
    ("'dark mode'", []),
    ('"cafe\u0301 noir"', ["cafe noir"]),
)


def test_phrases() -> None:
    with Cases() as cases:
        for text, phrases in PHRASES:
            with cases.case(text):
                assert list(query_text.parse(text).phrases) == [terms(phrase) for phrase in phrases]


NAMES: tuple[tuple[str, str], ...] = (
    ("Did Ada meet Émile in New York?", "ada emile new york"),
    ("Ada", ""),
    ("Hello. Grace met Ada! Tom did not\nMary", "ada"),
    ('He said "go." Then Ada went', "ada"),
    ("node.js by Ryan", "ryan"),
    ("What do I think THE end is", ""),
    ("who am I", ""),
    ("the API of iPhones", "api"),
    ("from Ada to Ada's", "ada"),
    ("secur* Ada Graph*", "ada"),
    ("for E\u0301mile", "emile"),
    ("tea: \u5929 x", ""),
)


def test_names() -> None:
    with Cases() as cases:
        for text, names in NAMES:
            with cases.case(text):
                assert query_text.parse(text).names == terms(names)


@given(TEXTS | st.lists(st.sampled_from("aéαı\u0301\u0323\u0345\u0f73\u0f75\uff9e ½"), max_size=20).map("".join))
@example("\u0345\u0f73")
def test_a_text_without_marks_has_the_same_words(text: str) -> None:
    assert words.words(words.unmarked(text)) == words.words(text)
    assert words.unmarked(words.unmarked(text)) == words.unmarked(text)


def test_nothing_asks_for_nothing() -> None:
    assert query_text.parse("?!") == Asked(terms=(), words=(), phrases=(), patterns=(), names=())


HOSTILE: tuple[str, ...] = (
    *("a" * 32_000, '"' * 32_000, '"a ' * 10_000, '"' + "a " * 16_000, "*" * 32_000, "a*" * 16_000, "ab* " * 8_000),
    *("Ab " * 10_000, '."' * 16_000, "." + '"' * 32_000, "e" + "\u0301\u0323" * 16_000, "a" + "\u0f73" * 32_000),
    " ".join(f'"a{number} b"' for number in range(3_500)),
    " ".join(f"w{number}*" for number in range(5_000)),
)


def test_hostile_texts_come_to_an_end() -> None:
    """Were the time to grow with the square of the length, this would take minutes."""
    with Cases() as cases:
        for text in HOSTILE:
            with cases.case(text):
                asked = query_text.parse(text * 20)
                assert asked.terms == tuple(map(words.term, asked.words))
                assert len(asked.terms) <= len(words.words(text)) + 1


CONTRACTIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("What's Maya's bag like?", ("maya", "bag", "like")),
    ("What\u2019s Maya\u2019s bag like?", ("maya", "bag", "like")),
    ("which herb can't she stand", ("herb", "stand")),
    ("it's", ("it",)),
    ("don't", ("dont",)),
    ("O'Brien", ("o", "brien")),
)


@pytest.mark.req("L4")
def test_the_endings_of_contractions_are_no_words() -> None:
    with Cases() as cases:
        for query, said in CONTRACTIONS:
            with cases.case(query):
                assert query_text.parse(query).words == said


def test_a_quoted_contraction_is_looked_for_as_it_was_written() -> None:
    [phrase] = query_text.parse('"I don\'t know"').phrases
    assert phrase == tuple(words.terms("I don't know"))


TOKENS: tuple[tuple[str, str], ...] = (
    ("Maya's", "maya"),
    ("the teachers\u2019 rooms", "the teachers rooms"),
    ("she can't, they won\u2019t", "she cant they wont"),
    ("I'm sure we've said it'd rain", "i sure we said it rain"),
    ("O'Brien", "o brien"),
    ("2.9 percent", "2.9 percent"),
    ("v1.2.3 and 1.2.3", "1.2.3 and 1.2.3"),
    ("at 10:30, not 10.45", "at 10:30 not 10.45"),
    ("#451", "451"),
    ("$1,500,000 or 12,34", "1500000 or 12 34"),
    ("2+2", "2+2"),
    ("on 2026-03-04.", "on 2026 03 04"),
    ("192.168.0.1: up", "192.168.0.1 up"),
    ("It has 3. Then 4", "it has 3 then 4"),
    ("snake_case's", "snake case"),
)


@pytest.mark.req("L4")
def test_tokens() -> None:
    with Cases() as cases:
        for text, tokens in TOKENS:
            with cases.case(text):
                assert words.tokens(text) == tokens.split()


@given(st.text(st.characters(codec="utf-8"), max_size=60))
def test_a_question_that_is_a_stored_text_has_none_but_its_terms(text: str) -> None:
    assert set(query_text.parse(text.replace("*", "")).terms) <= set(words.terms(text.replace("*", "")))
