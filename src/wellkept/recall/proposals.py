"""Whether a text that somebody proposes for several others may stand in their place."""

import re
from collections.abc import Sequence

from wellkept.text import words

_MARKED = re.compile(r"\S*\d\S*")
_DENYING = frozenset("no not never none nothing nobody neither nor without cannot t".split())
_LONG = 24  # letters without a space: no word of a language


def fault(proposal: object, sources: Sequence[str]) -> str | None:
    """What is wrong with a proposal, in words that repeat nothing of it; ``None`` if it may be used.

    It must be a text, no longer than its sources together, with every number and every negation that they have, and
    without a number, a name or a long string, such as a key, that none of them has.

    >>> fault("Likes 3 teas", ["Likes tea", "Likes the tea"])
    'has a number that no source has'
    >>> fault("Likes tea", ["Likes tea", "Likes the tea"]) is None
    True
    """
    if not isinstance(proposal, str):
        return f"is a {type(proposal).__name__}, not a text"
    if not proposal.strip() or len(proposal) > sum(map(len, sources)):
        return "is empty, or longer than its sources together"
    said = [words.plain(text) for text in sources]
    everywhere = " ".join(said)
    theirs, ours = _numbers(everywhere), _numbers(words.plain(proposal))
    if ours != theirs:
        return "has a number that no source has" if ours - theirs else "leaves out a number"
    spoken = set(words.words(everywhere))
    if bool(_DENYING & spoken) != bool(_DENYING & set(words.words(proposal))):
        return "denies what its sources say, or the other way round"
    for place, written in enumerate(proposal.split()):
        parts = words.words(written)
        if place and written[:1].isupper() and not set(parts) <= spoken:
            return "has a name that no source has"
        if len(written) >= _LONG and words.plain(written) not in everywhere:
            return "has a long string that no source has"
    return None


def _numbers(text: str) -> set[str]:
    return {word.strip(".,;:!?()[]\"'") for word in _MARKED.findall(text)}
