"""Quarantine: which memories came from a place, and which were made from those."""

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass
from datetime import datetime

from wellkept import codec, validation
from wellkept.errors import InvalidInput
from wellkept.types import Memory, Owner, SourceType, State, Stored, UpkeepAction, UpkeepStep

_IDS = 10_000
_STANDING = frozenset({State.ACTIVE, State.ARCHIVED})
_LEFT_ALONE = frozenset({State.QUARANTINED, State.MOVED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where memories came from: all that is given must hold. ``since`` and ``until`` are times of recording."""

    source: SourceType | str | None = None
    reference: str | None = None
    author: str | None = None
    session: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    ids: Iterable[str] | None = None


def checked(given: Origin) -> Origin:
    """An origin whose fields are valid; one that names nothing is refused, since everything would come from it."""
    if all(getattr(given, name) is None for name in Origin.__dataclass_fields__):
        raise InvalidInput(
            "nothing says what to quarantine",
            details={"field": "source"},
            hint="give a source, a reference, an author, a session, times or ids",
        )
    checked = Origin(
        source=None if given.source is None else validation.choice("source", SourceType, given.source),
        reference=validation.optional_line("reference", given.reference),
        author=validation.optional_line("author", given.author),
        session=validation.optional_line("session", given.session),
        since=validation.optional_moment("since", given.since),
        until=validation.optional_moment("until", given.until),
        ids=None if given.ids is None else validation.lines("ids", given.ids, _IDS),
    )
    if checked.since is not None and checked.until is not None and checked.until <= checked.since:
        raise InvalidInput(
            "until is not later than since", details={"field": "until"}, hint="swap the two, or leave one out"
        )
    return checked


def came_from(origin: Origin) -> Callable[[Memory], bool]:
    """Whether a memory came from there. One that was added from several sources came from there if all of them did."""
    ids = None if origin.ids is None else frozenset(origin.ids)

    def fits(memory: Memory) -> bool:
        if ids is not None and memory.id not in ids:
            return False
        if origin.author is not None and memory.author != origin.author:
            return False
        if origin.session is not None and memory.session != origin.session:
            return False
        if origin.since is not None and memory.created_at < origin.since:
            return False
        if origin.until is not None and memory.created_at >= origin.until:
            return False
        if origin.source is None and origin.reference is None:
            return True
        every = (memory.source, *memory.sources)
        return all(
            one is not None
            and (origin.source is None or one.type == origin.source)
            and (origin.reference is None or one.reference == origin.reference)
            for one in every
        )

    return fits


def steps(found: Iterable[Stored], is_direct: Callable[[Stored], bool]) -> list[UpkeepStep]:
    """What is put into quarantine: what came from there, and everything that was made from it, however indirectly. What
    only they had replaced comes back.
    """
    every = list(found)
    made_from: dict[str, list[Stored]] = {}
    reasons: dict[tuple[Owner, str], tuple[Stored, str]] = {}
    for stored in every:
        for source in stored.facets.get("derived_from", ()):
            made_from.setdefault(source, []).append(stored)
        if is_direct(stored):
            reasons[stored.owner, stored.id] = stored, "came from there"
    frontier = [stored.id for stored, _ in reasons.values()]
    while frontier:
        following = []
        for source in frontier:
            for stored in made_from.get(source, ()):
                if (stored.owner, stored.id) not in reasons:
                    reasons[stored.owner, stored.id] = stored, f"derived from {source}"
                    following.append(stored.id)
        frontier = following
    going = [(stored, why) for stored, why in reasons.values() if _is_at_large(stored)]
    steps = [step(stored, why, UpkeepAction.QUARANTINE) for stored, why in going]
    back = _coming_back(every, {stored.id for stored, _ in going})
    return steps + [step(stored, f"replaced by {by}", UpkeepAction.RESTORE) for stored, by in back]


def _coming_back(every: Sequence[Stored], going: Set[str]) -> Iterable[tuple[Stored, str]]:
    """The memories that stood until something replaced them that goes now, each with what replaced it. If what stands
    in their place today stays, so do they.
    """
    by_id = {stored.id: stored for stored in every if stored.facets["state"] != State.MOVED}
    for stored in every if going else ():
        first = stored.facets.get("superseded_by")
        if first is None or stored.facets["state"] != State.SUPERSEDED or stored.id in going:
            continue
        seen, by = {stored.id}, by_id.get(first)
        while by is not None and by.id not in seen and (by.id in going or not _is_at_large(by)):
            seen.add(by.id)
            following = by.facets.get("superseded_by")
            if following is None:
                if by.id in going and by.facets["state"] in _STANDING:
                    yield stored, first
                break
            by = by_id.get(following)


def _is_at_large(stored: Stored) -> bool:
    return stored.facets["state"] not in _LEFT_ALONE


def step(stored: Stored, reason: str, action: UpkeepAction) -> UpkeepStep:
    """A step of a plan."""
    return UpkeepStep(
        memory_id=stored.id,
        owner=stored.owner,
        version=stored.version,
        state=State(stored.facets["state"]),
        action=action,
        reason=reason,
        bytes_used=int(stored.facets["bytes"]),
    )


def may_come_from(stored: Stored, origin: Origin) -> bool:
    """Whether the facets of a memory leave it possible that it came from there: cheaper than reading all of it."""
    facets = stored.facets
    if origin.author is not None and facets.get("author") != origin.author:
        return False
    if origin.source is not None and facets.get("source_type") != origin.source:
        return False
    return origin.since is None or facets["created_at"] >= codec.to_micros(origin.since)
