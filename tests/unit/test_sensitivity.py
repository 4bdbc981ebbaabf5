"""What is recognised as sensitive, and what is not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellkept import sensitivity
from wellkept.settings.schema import SENSITIVE_KINDS
from wellkept.testing.cases import Cases

EVERY = sensitivity.chosen(SENSITIVE_KINDS)


SENSITIVE: tuple[tuple[str, str], ...] = (
    ("My card is 4111 1111 1111 1111, thanks", "card"),
    ("pay with 5500-0000-0000-0004", "card"),
    ("378282246310005", "card"),
    ("IBAN DE89 3704 0044 0532 0130 00", "iban"),
    ("GB29NWBK60161331926819 is my account", "iban"),
    ("send it to FR1420041010050500013M02606 PLEASE", "iban"),
    ("SSN 536-22-8726", "national_id"),
    ("NINO: AB 12 34 56 C", "national_id"),
    ("DNI 12345678Z", "national_id"),
    ("Steuer-ID 86095742719", "national_id"),
    ("CF RSSMRA85T10A562S", "national_id"),
    ("NIR 2 69 05 49 588 157 80", "national_id"),
    ("Bob's mail is bob@example.org", "email"),
    ("märz@müller-straße.de wrote", "email"),
    ("call +49 30 901820", "phone"),
    ("(555) 123-4567 after six", "phone"),
    ("Telefon: 030 901820", "phone"),
    ("She was diagnosed with diabetes", "health"),
    ("He takes antidepressants", "health"),
    ("Elle est enceinte", "health"),
    ("AKIAIOSFODNN7EXAMPLE", "secret"),
    ("token ghp_0123456789abcdefghijABCDEFGHIJ012345", "secret"),
    ("the wifi password is hunter2!", "secret"),
    ("api_key = 'x8_77abZ'", "secret"),
    ("-----BEGIN RSA PRIVATE KEY-----", "secret"),
    ("postgres://bob:s3cret@db.example.org/app", "secret"),
    ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc-def", "secret"),
)


@pytest.mark.req("L10")
def test_sensitive_content_is_recognised() -> None:
    with Cases() as cases:
        for text, kind in SENSITIVE:
            with cases.case(text):
                assert kind in sensitivity.recognised(text, EVERY)


ORDINARY: tuple[str, ...] = (
    "Likes tea and lives in Rome",
    "Prefers dark mode; the deadline is 2026-11-17 at 14:30",
    "Order 4111 1111 1111 1112 was shipped",  # the check digit is wrong
    "GB28NWBK60161331926819",  # as above
    "version 1.2.3 build 20261117",
    "12345678A",
    "Commit 0123456789abcdef0123456789abcdef01234567",
    "The password policy changed last week",
    "Use tabs, not spaces, in api key names",
    "100 000 000 people",
    "Meeting in room 12-34",
    "0000 0000 0000 0000",
    "@mention somebody",
)


def test_ordinary_content_is_not() -> None:
    with Cases() as cases:
        for text in ORDINARY:
            with cases.case(text):
                assert sensitivity.recognised(text, EVERY) == frozenset()


@given(st.text(max_size=200))
def test_any_text_is_judged_and_nothing_of_it_told(text: str) -> None:
    assert sensitivity.recognised(text, EVERY) <= set(SENSITIVE_KINDS)


@given(st.integers(10**14, 10**15 - 1))
def test_one_of_ten_check_digits_fits(digits: int) -> None:
    begun = f"4{digits}"[:15]
    assert sum(sensitivity.luhn(f"{begun}{last}") for last in range(10)) == 1


def test_long_hostile_texts_take_no_time() -> None:
    with Cases() as cases:
        for text in ("a" * 200_000, "1 " * 100_000, "a@" * 100_000, "password " * 30_000, "+1" * 100_000):
            with cases.case(text):
                assert sensitivity.recognised(text, EVERY) <= set(
                    SENSITIVE_KINDS
                )  # the time limit of a test is the measure


def test_a_detector_can_be_anything_that_takes_a_text() -> None:
    def names(text: str) -> set[str]:
        return {"name"} if "Bob" in text else set()

    assert sensitivity.recognised("Bob likes tea", (*EVERY, names)) == {"name"}
