"""Recognises sensitive content: secrets, card and account numbers, national ids, addresses, health. Pure.

A detector says which kinds a text has, never what it found. Numbers with check digits are checked, so that an order
number is no card. What is recognised by mistake is encrypted, and that is all that happens to it.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from types import MappingProxyType

Detector = Callable[[str], Collection[str]]
"""Takes a text and gives the kinds of sensitive content that it has."""

_SECRETS = r"""
    -----BEGIN\ [A-Z ]*PRIVATE\ KEY-----
  | \b(?:AKIA|ASIA)[0-9A-Z]{16}\b
  | \bgh[pousr]_[A-Za-z0-9]{30,}\b | \bgithub_pat_[A-Za-z0-9_]{40,}\b | \bglpat-[A-Za-z0-9_-]{20,}\b
  | \bsk-[A-Za-z0-9_-]{20,} | \b[sr]k_(?:live|test)_[A-Za-z0-9]{16,}\b
  | \bxox[abeoprs]-[A-Za-z0-9-]{10,} | \bAIza[0-9A-Za-z_-]{35}\b
  | \beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+
  | (?i:\b(?:password|passwd|passphrase|passcode|pwd|passwort|mot\ de\ passe|contraseña|api[_ -]?key|access[_ -]?token
      |auth[_ -]?token|secret[_ -]?key|client[_ -]?secret|private[_ -]?key|bearer|pin\ (?:code|number))\b
      (?:\s+(?:is|ist|was|for\ \S+\ is|est|es))?\s*[:=]?\s*["']?(?=\S*[0-9!@#$%^&*_])\S{4,})
  | \b[a-z][a-z0-9+.-]*://[^\s/:@]+:[^\s/@]+@
"""
_EMAIL = r"\b[\w.%+-]+@(?:[\w-]+\.)+[^\W\d_]{2,}\b"
_PHONE = r"""
    (?<![\w.])\+\d[\d\ ().-]{6,18}\d\b
  | (?<![\w.-])\(?\d{3}\)?[\ .-]\d{3}[\ .-]\d{4}(?![\w-])
  | (?i:\b(?:phone|tel|telephone|mobile|cell|fax|whatsapp|handy|telefon|téléphone|teléfono|numero|nummer)\b
      [^\d\n]{0,20}\d[\d\ ()./-]{5,18}\d)
"""
_CARD = r"(?<![\w.-])(?:\d[ -]?){12,18}\d(?![\w-])"
_IBAN = r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]){11,30}\b"
_NATIONAL = r"""
    (?P<ssn>(?<![\d-])(?!000|666|9\d\d)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\d-]))
  | (?P<nino>\b(?!BG|GB|KN|NK|NT|TN|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z]\ ?\d{2}\ ?\d{2}\ ?\d{2}\ ?[A-D]\b)
  | (?P<fiscale>\b[A-Z]{6}\d{2}[A-EHLMPRST]\d{2}[A-Z]\d{3}[A-Z]\b)
  | (?P<dni>\b\d{8}-?[A-Z]\b)
  | (?P<nir>(?<!\d)[12]\ ?\d{2}\ ?(?:0[1-9]|1[0-2])\ ?\d{2}\ ?\d{3}\ ?\d{3}\ ?\d{2}(?!\d))
  | (?P<steuer>(?<![\d-])[1-9]\d\ ?\d{3}\ ?\d{3}\ ?\d{3}(?![\d-]))
"""
_HEALTH = r"""(?i:\b(?:
    diagnos\w* | hiv | aids | cancers? | krebs | tumou?rs? | chemotherap\w* | leuk[ae]+mi\w* | diabet\w* | insulin
  | asthma\w* | epilep\w* | depress(?:ion|ed|ive)\w* | depression\w* | bipolar | schizophren\w* | adhd | autis\w* | ptsd
  | anxiety\ disorder | eating\ disorder | anorexi\w* | bulimi\w* | suicid\w* | self[- ]harm | dementia | alzheimer\w*
  | parkinson\w* | multiple\ sclerosis | hepatitis | tuberculosis | miscarriage | abortion | pregnan\w* | schwanger\w*
  | enceinte | embarazad\w* | incinta | prescri(?:bed|ption|ptions) | medications? | antidepressants? | psychiatr\w*
  | psychotherap\w* | therapist | rehab | addict\w* | alcoholi\w* | blood\ (?:type|pressure|test) | biops\w* | surgery
  | allerg(?:y|ies|ic) | disabilit\w* | krankheit\w* | erkrank\w* | maladies? | enfermedad\w* | malatti\w*
)\b)"""
_DNI_LETTERS = "TRWAGMYFPDXBNJZSQVHLCKE"


def recognised(text: str, detectors: Iterable[Detector]) -> frozenset[str]:
    """The kinds of sensitive content that some detectors see in a text.

    >>> sorted(recognised("Mail bob@example.org about card 4111 1111 1111 1111", chosen(["card", "email", "iban"])))
    ['card', 'email']
    """
    return frozenset(kind for detect in detectors for kind in detect(text))


def chosen(kinds: Iterable[str]) -> tuple[Detector, ...]:
    """The built-in detectors of some kinds."""
    return tuple(_detector(kind) for kind in kinds)


@cache
def _detector(kind: str) -> Detector:
    found, told = _BUILT_IN[kind], frozenset({kind})
    return lambda text: told if found(text) else frozenset()


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.VERBOSE)


def _has(pattern: str) -> Callable[[str], bool]:
    return lambda text: _compiled(pattern).search(text) is not None


def _has_email(text: str) -> bool:
    return "@" in text and re.search(_EMAIL, text) is not None


def _has_phone(text: str) -> bool:
    return any(8 <= len(_digits(match[0])) <= 15 or "+" not in match[0] for match in _compiled(_PHONE).finditer(text))


def _has_card(text: str) -> bool:
    return any(luhn(_digits(match[0])) for match in re.finditer(_CARD, text))


def _has_iban(text: str) -> bool:
    for match in re.finditer(_IBAN, text):
        groups = match[0].split(" ")
        for count in range(len(groups), 0, -1):  # a word in capitals may follow
            if iban("".join(groups[:count])):
                return True
    return False


def _has_national_id(text: str) -> bool:
    for match in _compiled(_NATIONAL).finditer(text):
        kind, found = match.lastgroup, match[0].replace(" ", "").replace("-", "")
        if kind in ("ssn", "nino", "fiscale"):
            return True
        if kind == "dni" and found[8] == _DNI_LETTERS[int(found[:8]) % 23]:
            return True
        if kind == "nir" and 97 - int(found[:13]) % 97 == int(found[13:]):
            return True
        if kind == "steuer" and _is_tax_number(found):
            return True
    return False


def _digits(text: str) -> str:
    return "".join(one for one in text if one.isdecimal())


def luhn(digits: str) -> bool:
    """Whether the last digit of a card number fits the others.

    >>> luhn("4111111111111111"), luhn("4111111111111112")
    (True, False)
    """
    if not 13 <= len(digits) <= 19 or digits[0] not in "23456" or len(set(digits)) == 1:
        return False
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (1 + place % 2)
        total += value - 9 * (value > 9)
    return total % 10 == 0


def iban(text: str) -> bool:
    """Whether the check digits of an account number fit.

    >>> iban("DE89370400440532013000"), iban("DE89370400440532013001")
    (True, False)
    """
    if not 15 <= len(text) <= 34:
        return False
    moved = text[4:] + text[:4]
    return int("".join(str(int(one, 36)) for one in moved)) % 97 == 1


def _is_tax_number(digits: str) -> bool:
    """Whether the check digit of a German tax number fits (ISO 7064), and its digits repeat as they may."""
    counts = [digits[:10].count(digit) for digit in set(digits[:10])]
    if max(counts) not in (2, 3) or len(counts) not in (8, 9):
        return False
    product = 10
    for digit in digits[:10]:
        total = (int(digit) + product) % 10 or 10
        product = total * 2 % 11
    return (11 - product) % 10 == int(digits[10])


_BUILT_IN: Mapping[str, Callable[[str], bool]] = MappingProxyType(
    {
        "secret": _has(_SECRETS),
        "card": _has_card,
        "iban": _has_iban,
        "national_id": _has_national_id,
        "email": _has_email,
        "phone": _has_phone,
        "health": _has(_HEALTH),
    }
)
