"""What a view knows as facts: subject, predicate, object, and when each held."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from wellkept import validation
from wellkept.engine import facts, reading, writing
from wellkept.engine.core import operation
from wellkept.engine.reading import Moment
from wellkept.types import Fact, Layer, LayerName, Layers, Memory, Need, NewMemory
from wellkept.types.memory import DEFAULT_IMPORTANCE

if TYPE_CHECKING:
    from wellkept.memories.view import View

_FOUND = 1_000


class Facts:
    """The facts of a view; ``view.facts`` gives them.

    >>> import wellkept
    >>> with wellkept.open("ram:") as memories:
    ...     ada = memories.view(user="ada")
    ...     _ = ada.facts.add("Ada", "lives in", "Rome")
    ...     berlin = ada.facts.add("Ada", "lives in", "Berlin")
    ...     [one.fact.object for one in ada.facts.find(subject="ada")], [m.content for m in ada.list()]
    (['Berlin'], ['Ada lives in Berlin'])
    """

    def __init__(self, view: View) -> None:
        self._view = view
        self._engine = view._engine
        self.identity = view.identity

    @operation(Need.WRITE)
    def add(
        self,
        subject: str,
        predicate: str,
        object: str,
        *,
        kind: str | None = None,
        confidence: float | None = None,
        valid_from: datetime | None = None,
        valid_until: datetime | None = None,
        multiple: bool = False,
        content: str | Mapping[str, Any] | None = None,
        layer: Layer | LayerName | None = None,
        importance: float = DEFAULT_IMPORTANCE,
        tags: Iterable[str] = (),
        metadata: Mapping[str, Any] | None = None,
    ) -> Memory:
        """Remember a fact. It supersedes the one that its owner has for the same subject and predicate.

        With ``multiple`` the subject may have several objects at a time. A fact whose ``valid_until`` has passed
        supersedes nothing. The same fact again is returned as it is stored. The superseded fact held until the new one
        began: at ``valid_from``, otherwise at ``occurred_at``. Without ``content``, the memory reads "subject predicate
        object". ``view.add(fact=)`` takes all other fields of a memory.

        >>> import wellkept
        >>> with wellkept.open("ram:") as memories:
        ...     ada = memories.view(user="ada")
        ...     rome = ada.facts.add("Ada", "lives in", "Rome", confidence=0.9)
        ...     berlin = ada.facts.add("Ada", "lives in", "Berlin")
        ...     berlin.supersedes == (rome.id,), ada.get(rome.id).state.value
        (True, 'superseded')
        """
        fact = validation.fact(
            Fact(
                subject=subject,
                predicate=predicate,
                object=object,
                kind=kind,
                valid_from=valid_from,
                valid_until=valid_until,
                multiple=multiple,
            )
        )
        new = NewMemory(
            content=f"{subject} {predicate} {object}" if content is None else content,
            layer=layer,
            confidence=confidence,
            importance=importance,
            tags=tags,
            metadata={} if metadata is None else metadata,
            fact=fact,
        )
        return writing.add_all(self._engine, self._view._scope, [new], self.identity.session)[0]

    @operation(Need.READ)
    def find(
        self,
        *,
        subject: str | None = None,
        predicate: str | None = None,
        object: str | None = None,
        kind: str | None = None,
        valid_at: datetime | None = None,
        as_of: Moment | None = None,
        include_superseded: bool = False,
        layers: Layers | None = None,
        limit: int = 100,
    ) -> list[Memory]:
        """Facts by any of their parts, the most certain first, of equally certain ones the newest.

        Found is what holds now, or held ``valid_at``. With ``as_of`` (a time, or a position), as it was known then.
        With ``include_superseded``, whenever it held. Parts are compared without regard to case.

        >>> import wellkept
        >>> from datetime import UTC, datetime
        >>> with wellkept.open("ram:") as memories:
        ...     ada = memories.view(user="ada")
        ...     _ = ada.facts.add("Ada", "lives in", "Rome", valid_from=datetime(2015, 1, 1, tzinfo=UTC))
        ...     _ = ada.facts.add("Ada", "lives in", "Berlin", valid_from=datetime(2024, 1, 1, tzinfo=UTC))
        ...     [one.fact.object for one in ada.facts.find(valid_at=datetime(2020, 1, 1, tzinfo=UTC))]
        ['Rome']
        """
        parts = {"subject": subject, "predicate": predicate, "object": object, "kind": kind}
        for name, part in parts.items():
            validation.optional_line(name, part)
        validation.flag("include_superseded", include_superseded)
        validation.integer("limit", limit, 1, _FOUND)
        moment = validation.optional_moment("valid_at", valid_at)
        engine = self._engine
        owners = self._view._scope.owners_in(layers)
        at, now = reading.moment(engine, owners, as_of)
        found = facts.find(engine, owners, parts, valid_at=moment, at=at, now=now, history=include_superseded)
        return found[:limit]
