"""Memories of a view by their ids and keys, and where they come from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from wellkept import validation
from wellkept.engine import moves, reading, supersession
from wellkept.engine.core import Engine, long_term
from wellkept.engine.reading import Moment
from wellkept.engine.scope import Scope
from wellkept.engine.sealing import version_of
from wellkept.errors import InvalidInput
from wellkept.types import Identity, Layer, LayerName, Lineage, Memory, Need, NewMemory, Operation, Version


class Lookup:
    """What a view answers about single memories."""

    def __init__(self, engine: Engine, identity: Identity, *, scope: Scope | None = None) -> None:
        self._engine = engine
        self.identity = identity
        self._scope = Scope(identity) if scope is None else scope
        self._owners = self._scope.owners

    @long_term(Need.READ)
    def get(
        self,
        id: str | None = None,
        *,
        key: str | None = None,
        as_of: Moment | None = None,
        include_forgotten: bool = False,
        include_vector: bool = False,
    ) -> Memory | None:
        """A memory by its id or by its key; ``None`` if it is missing, forgotten, expired or somebody else's.

        Several layers may each have a memory of one key: the most specific one's is returned.
        ``as_of`` (a time, or a position) gives the memory as it was then. Reading the present counts
        as an access.

        >>> import wellkept
        >>> with wellkept.open("ram:") as memories:
        ...     view = memories.view(user="ada")
        ...     memory = view.add("Lives in Paris")
        ...     before = view.position()
        ...     _ = view.update(memory.id, content="Lives in Rome")
        ...     view.get(memory.id).content, view.get(memory.id, as_of=before).content
        ('Lives in Rome', 'Lives in Paris')
        """
        how: dict[str, Any] = {
            "as_of": as_of,
            "include_forgotten": include_forgotten,
            "include_vector": include_vector,
        }
        if key is None:
            return reading.get(self._engine, self._owners, (validation.text_id(id),), **how).get(str(id))
        if id is not None:
            raise InvalidInput("both an id and a key were given", details={"field": "key"}, hint="pass one of the two")
        return reading.by_key(self._engine, self._owners, key, **how)

    @long_term(Need.READ)
    def get_many(
        self,
        ids: Iterable[str],
        *,
        as_of: Moment | None = None,
        include_forgotten: bool = False,
        include_vector: bool = False,
    ) -> dict[str, Memory]:
        """Memories by their ids; what is missing, forgotten or somebody else's is left out.

        >>> import wellkept
        >>> with wellkept.open("ram:") as memories:
        ...     view = memories.view(user="ada")
        ...     memory = view.add("Likes tea")
        ...     list(view.get_many([memory.id, "unknown"])) == [memory.id]
        True
        """
        given = (ids,) if isinstance(ids, str) else validation.batch("ids", ids)
        return reading.get(
            self._engine,
            self._owners,
            list(dict.fromkeys(map(validation.text_id, given))),
            as_of=as_of,
            include_forgotten=include_forgotten,
            include_vector=include_vector,
        )

    @long_term(Need.READ)
    def history(self, id: str) -> list[Version]:
        """Every version of a memory, the oldest first; of an erased one, only that it was erased.

        >>> import wellkept
        >>> with wellkept.open("ram:") as memories:
        ...     view = memories.view(user="ada")
        ...     memory = view.add("Likes tea")
        ...     _ = view.forget(memory.id, reason="changed her mind")
        ...     [(v.version, v.operation.value, v.reason) for v in view.history(memory.id)]
        [(1, 'added', None), (2, 'forgotten', 'changed her mind')]
        """
        validation.text_id(id)
        found = [versions for owner in self._owners if (versions := self._engine.journal.history(owner, id))]
        found.sort(key=lambda versions: versions[-1].operation is Operation.MOVED)  # it is where it was moved to
        return [version_of(one) for one in found[0]] if found else []

    @long_term(Need.WRITE)
    def move(self, id: str, *, layer: Layer | LayerName) -> Memory:
        """Give a memory to the owner of another layer of this view, and return it as it is there.

        Its id and its history go with it. The old owner keeps the versions up to then, and one that says where it went.
        Versions get the time of the move, since an owner's journal goes forward only. A memory that is held stays.

        >>> import wellkept
        >>> with wellkept.open("ram:") as memories:
        ...     view = memories.view(user="ada", project="api")
        ...     memory = view.add("Use tabs")
        ...     moved = view.move(memory.id, layer="project")
        ...     moved.layer.value, moved.id == memory.id, view.count(layers="user"), view.count(layers="project")
        ('project', True, 0, 1)
        """
        target = self._scope.owner_of(NewMemory(content="", layer=layer))
        return moves.move(self._engine, self._owners, validation.text_id(id), target)

    @long_term(Need.READ)
    def lineage(self, id: str) -> Lineage:
        """What a memory replaced, and what replaced it since; ``NotFound`` if it cannot be read.

        >>> import wellkept
        >>> with wellkept.open("ram:") as memories:
        ...     view = memories.view(user="ada")
        ...     rome = view.add("Lives in Rome")
        ...     _ = view.add("Lives in Berlin", supersedes=[rome.id])
        ...     [memory.content for memory in view.lineage(rome.id).replaced_by]
        ['Lives in Berlin']
        """
        return supersession.lineage(self._engine, self._owners, validation.text_id(id))
