"""Which language a text is in, and its times in English."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellkept.testing.cases import Cases
from wellkept.text import date_words, periods, query_text, words

LANGUAGES: tuple[tuple[str, str], ...] = (
    ("Die Katze ist krank und frisst nicht", "german"),
    ("Meine Katzen schlafen", "german"),
    ("Le chat est malade et ne mange pas", "french"),
    ("El gato no come porque tiene fiebre", "spanish"),
    ("Il gatto non mangia perche ha la febbre", "italian"),
    ("O gato nao come porque tem febre", "portuguese"),
    ("De kat is ziek en eet niet", "dutch"),
    ("She lives in the Rue de la Paix", "english"),
    ("Maya visits Rio de Janeiro", "english"),
    ("Neovim gruvbox", "english"),
    ("", "english"),
)


@pytest.mark.req("L4")
def test_the_language_of_a_text() -> None:
    with Cases() as cases:
        for text, language in LANGUAGES:
            with cases.case(text):
                assert words.language_of(words.folded(text)) == language


@given(st.text(max_size=80))
def test_no_text_is_a_mistake(text: str) -> None:
    assert set(query_text.parse(text).terms) <= set(query_text.parse(text).every)
    date_words.in_english(text)
    periods.of_time_alone(text)


def test_english_stays_as_it_is() -> None:
    for text in ("Julio met Marco on Mars", "An ode to May", "die hard, in a week", "Maya has a dentist appointment"):
        assert date_words.in_english(text) == text
