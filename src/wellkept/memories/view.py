"""The memories that one identity may see, and everything it can do with them."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Unpack

from wellkept import open_files, types, validation
from wellkept.engine import drafts, quotas, reading, upserts, writing
from wellkept.engine.core import Audited, long_term
from wellkept.engine.reading import Moment
from wellkept.engine.scope import Policies
from wellkept.entitlements import Feature
from wellkept.memories.facts import Facts
from wellkept.memories.provenance import Provenance
from wellkept.ports import Query
from wellkept.types import (
    Changes,
    Layer,
    LayerName,
    Layers,
    Memory,
    MemoryType,
    MemoryTypeName,
    Need,
    Position,
    Ranking,
    RankingName,
    Sort,
    SortName,
)
from wellkept.types.memory import DEFAULT_IMPORTANCE

if TYPE_CHECKING:
    from wellkept.memories.sessions import Sessions

_CHANGES = 10_000
_NOT_PUT = {"fact", "supersedes"}


class View(Provenance):
    """The memories seen by one identity; ``Memories.view`` makes it.

    Every operation goes through the owners of the identity. An id that belongs to somebody else gets the same answer
    as one that does not exist.

    >>> import wellkept
    >>> with wellkept.open("ram:") as memories:
    ...     ada, bob = memories.view(user="ada"), memories.view(user="bob")
    ...     memory = ada.add("Prefers tea")
    ...     ada.get(memory.id).content, bob.get(memory.id)
    ('Prefers tea', None)
    """

    _audited_as = ""  # its methods are the verbs

    def __repr__(self) -> str:
        return f"<View {self.identity}>"

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The layers that can be seen, the most specific first: those that the identity has ids for."""
        return self._scope.layers

    @property
    def sessions(self) -> Sessions:
        """The sessions of the user; ``MissingIdentifier`` if the identity names none.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     with memories.view(user="ada").sessions.create("monday") as session:
        ...         session.view.add("Use OAuth", type="decision").layer.value
        'session'
        """
        with open_files.told():
            from wellkept.memories.sessions import Sessions  # lazy: sessions hand out views

        self._engine.require(Feature.LONG_TERM_MEMORY)
        return Sessions(self._engine, self.identity)

    @property
    def facts(self) -> Facts:
        """What the view knows as facts: subject, predicate and object.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     memories.view(user="ada").facts.add("Ada", "likes", "tea").content
        'Ada likes tea'
        """
        self._engine.require(Feature.LONG_TERM_MEMORY)
        return Facts(self)

    # -- adding -----------------------------------------------------------------------------------------------

    @long_term(Need.WRITE)
    def add(
        self,
        content: str | Mapping[str, Any],
        *,
        layer: Layer | LayerName | None = None,
        type: MemoryType | MemoryTypeName = MemoryType.FACT,
        importance: float = DEFAULT_IMPORTANCE,
        tags: Iterable[str] = (),
        metadata: Mapping[str, Any] | None = None,
        key: str | None = None,
        dangling: bool = False,
        duplicates: types.Duplicates | types.DuplicatesName = types.Duplicates.MERGE,
        **fields: Unpack[types.NewFields],
    ) -> Memory:
        """Remember something and return it as it was stored.

        ``content`` is a text, or a JSON object: that is kept as ``memory.data``, and found, shown and put into prompts
        by its text, ``memory.content``.
        ``fields`` are the other fields of :class:`NewMemory`: title, author, source, references, occurred_at and so
        on. A ``key`` makes a repeated request safe: adding the same again returns the memory stored first, something
        else under that key is a ``Conflict``. To change what a key stands for, use ``put``. References must name
        memories that this view can see, unless ``dangling=True``.

        What the owner has word for word already is one memory with both sources, and the answer's ``merged`` is true;
        ``duplicates`` can be ``"keep"`` or ``"refuse"`` instead. Turns of a conversation, and memories that differ in
        session, in the time they speak of or in other fields than tags and importance, are always kept.

        >>> import wellkept
        >>> with wellkept.open("ram:") as memories:
        ...     view = memories.view(user="ada", project="api")
        ...     memory = view.add("Use tabs", layer="project", type="decision", key="style-1")
        ...     memory.id == view.add("Use tabs", layer="project", type="decision", key="style-1").id
        True
        """
        drafts.check_known(fields, types.NewFields.__annotations__, "add")
        new = types.NewMemory(
            content=content,
            layer=layer,
            type=type,
            importance=importance,
            tags=tags,
            metadata={} if metadata is None else metadata,
            key=key,
            **fields,
        )
        how: dict[str, Any] = {"dangling": dangling, "duplicates": duplicates}
        return writing.add_all(self._engine, self._scope, [new], self.identity.session, **how)[0]

    @long_term(Need.WRITE)
    def add_many(
        self,
        items: Iterable[str | Mapping[str, Any] | types.NewMemory],
        *,
        dangling: bool = False,
        duplicates: types.Duplicates | types.DuplicatesName = types.Duplicates.MERGE,
    ) -> builtins.list[Memory]:
        """Remember many things: one batch of embeddings, one transaction, all or none.

        References must name memories that are stored already and that this view can see, unless ``dangling=True``.
        ``duplicates`` is that of ``add``; it holds within the batch as well.

        >>> import wellkept
        >>> with wellkept.open("ram:") as memories:
        ...     view = memories.view(user="ada")
        ...     [m.content for m in view.add_many(["Likes tea", wellkept.NewMemory(content="Lives in Rome")])]
        ['Likes tea', 'Lives in Rome']
        """
        given = validation.batch("items", items)
        news = [types.NewMemory(content=item) if isinstance(item, str | Mapping) else item for item in given]
        how: dict[str, Any] = {"dangling": dangling, "duplicates": duplicates}
        return writing.add_all(self._engine, self._scope, news, self.identity.session, **how)

    @long_term(Need.WRITE)
    def put(
        self,
        key: str,
        content: str | Mapping[str, Any],
        *,
        layer: Layer | LayerName | None = None,
        type: MemoryType | MemoryTypeName | None = None,
        importance: float | None = None,
        tags: Iterable[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        dangling: bool = False,
        **fields: Unpack[types.NewFields],
    ) -> Memory:
        """Make a key stand for a content: the memory that has the key gets a new version, or is added.

        The versions before stay in its history. Fields that are left out keep their values; ``metadata`` is merged, as
        ``update`` does it. What was forgotten or has expired lives again as a new version with the fields given now. A
        key belongs to one owner: without ``layer``, that of the most specific layer. The same again writes nothing.

        >>> import wellkept
        >>> with wellkept.open("ram:") as memories:
        ...     view = memories.view(user="ada")
        ...     _ = view.put("home", "Lives in Rome", tags=["personal"])
        ...     memory = view.put("home", "Lives in Berlin")
        ...     memory.version, view.get(key="home").content, [v.memory.content for v in view.history(memory.id)]
        (2, 'Lives in Berlin', ['Lives in Rome', 'Lives in Berlin'])
        """
        drafts.check_known(fields, types.NewFields.__annotations__.keys() - _NOT_PUT, "put")
        named = {"type": type, "importance": importance, "tags": tags, "metadata": metadata}
        given: dict[str, Any] = {
            "content": content,
            **{name: value for name, value in named.items() if value is not None},
            **fields,
        }
        new = types.NewMemory(key=key, layer=layer, **given)
        return upserts.put(self._engine, self._scope, new, given, self.identity.session, dangling=dangling)

    # -- reading ----------------------------------------------------------------------------------------------

    @long_term(Need.READ)
    def list(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        offset: int = 0,
        filter: types.Filter | Mapping[str, Any] | None = None,
        keys: Iterable[str] | None = None,
        layers: Layers | None = None,
        sort_by: Sort | SortName = Sort.NEWEST,
        as_of: Moment | None = None,
    ) -> types.Page:
        """One page of the memories that match a filter; ``keys`` is short for its condition ``keyed``.

        Going on with ``page.next_cursor`` shows every memory that was there from the start exactly once, whatever is
        written meanwhile: ``newest`` and ``oldest`` are orders of recording, which never change. In the other orders
        this holds for memories whose importance or accesses do not change while you read. ``relevance`` reads all
        that matches, judges every page by the time of the first one, and tells its factors in ``page.reasons``.

        Without a ``limit`` a page has 100 memories if there is a filter, 10 in the orders ``important`` and
        ``recently_accessed``, and otherwise 50; the setting ``lists.page_size`` replaces all three.

        >>> import wellkept
        >>> with wellkept.open("ram:") as memories:
        ...     view = memories.view(user="ada")
        ...     _ = view.add("Use OAuth", type="decision", tags=["security.authentication"])
        ...     [m.content for m in view.list(filter=wellkept.Filter(tags=["security"]))]
        ['Use OAuth']
        """
        if keys is not None:
            filter = replace(types.Filter() if filter is None else reading.to_filter(filter), keyed=keys)
        size = reading.usual_limit(self._engine, filter, sort_by) if limit is None else limit
        query = reading.page_of(self._query(filter, layers, as_of), sort=sort_by, limit=size, offset=offset)
        policies = self._policies() if query.sort is Sort.RELEVANCE else {}
        return reading.page(self._engine, query, cursor, policies)

    def _policies(self) -> Policies:
        """How memories fade: as the store says, unless their session says otherwise."""
        usual = self._engine.defaults.decay
        return {**dict.fromkeys(self._owners, usual), **self._scope.policies()}

    def _query(
        self,
        filter: types.Filter | Mapping[str, Any] | None,
        wanted: Layers | None,
        as_of: Moment | None,
    ) -> Query:
        """What a filter means to the journal: for these owners, at that moment."""
        owners = self._scope.owners_in(wanted)
        at, now = reading.moment(self._engine, owners, as_of)
        return Query(owners=owners, where=reading.resolve(self._engine, owners, filter, now, at), at=at)

    @long_term(Need.READ)
    def count(
        self,
        *,
        filter: types.Filter | Mapping[str, Any] | None = None,
        layers: Layers | None = None,
        as_of: Moment | None = None,
    ) -> int:
        """How many memories match a filter.

        >>> import wellkept
        >>> with wellkept.open("ram:") as memories:
        ...     view = memories.view(user="ada")
        ...     _ = view.add_many(["Likes tea", "Likes cake"])
        ...     view.count(filter=wellkept.Filter(content_contains="TEA"))
        1
        """
        query = self._query(filter, layers, as_of)
        return self._engine.journal.count(query.owners, query.where, at=query.at)

    @long_term(Need.READ)
    def stats(self, *, layers: Layers | None = None) -> types.Stats:
        """Counts, sizes, types and tags of the memories in view.

        >>> import wellkept
        >>> with wellkept.open("ram:") as memories:
        ...     view = memories.view(user="ada")
        ...     _ = view.add("Likes tea")
        ...     view.stats().active
        1
        """
        owners = self._scope.owners_in(layers)
        found = self._engine.journal.stats(owners, self._engine.clock())
        made, seconds = self._engine.embeddings.of(owners)
        average = 1000 * seconds / made if made else 0.0
        limit = self._engine.plan.limit_bytes if self._engine.plan else None
        counted = None if limit is None else quotas.fullest(self._engine, owners)[0]
        found = replace(found, bytes_limit=limit, bytes_counted=counted)
        return replace(found, embeddings_made=made, average_embedding_ms=average)

    @long_term(Need.READ)
    def changes(
        self,
        *,
        after: str | None = None,
        limit: int = 1_000,
        layers: Layers | None = None,
    ) -> Changes:
        """What was written behind a position, the oldest first: a feed that can be resumed at any time.

        Keep the ``position`` of the last version you handled, or the ``next`` of them all, and pass it as ``after``:
        nothing is told twice and nothing is left out.
        Each owner's versions come in their order. Erased memories appear as erased. ``PositionLost`` if the store was
        restored from an older copy since.

        >>> import wellkept
        >>> with wellkept.open("ram:") as memories:
        ...     view = memories.view(user="ada")
        ...     _ = view.add_many(["Likes tea", "Likes cake"])
        ...     first = view.changes(limit=1)
        ...     [v.memory.content for v in view.changes(after=first.next)]
        ['Likes cake']
        """
        validation.integer("limit", limit, 1, _CHANGES)
        return reading.changes(self._engine, self._scope.owners_in(layers), after, limit)

    @long_term(Need.READ, audited=Audited.NEVER)
    def position(self, *, at: datetime | None = None, layers: Layers | None = None) -> Position:
        """Where the journals of the view end now, or ended at a time: for ``as_of=`` and ``changes(after=)``.

        >>> import wellkept
        >>> with wellkept.open("ram:") as memories:
        ...     view = memories.view(user="ada")
        ...     before = view.position()
        ...     _ = view.add("Likes tea")
        ...     view.count(as_of=before), len(view.changes(after=before))
        (0, 1)
        """
        moment = validation.optional_moment("at", at)
        return self._engine.journal.position(self._scope.owners_in(layers), moment)

    @long_term(Need.READ)
    def search(
        self,
        query: str,
        *,
        limit: int = 10,
        limit_per_layer: int | None = None,
        min_score: float | None = None,
        min_trust: float | None = None,
        ranking: Ranking | RankingName = Ranking.BEST,
        layers: Layers | None = None,
        filter: types.Filter | Mapping[str, Any] | None = None,
        as_of: Moment | None = None,
        asked_at: datetime | None = None,
        precedence: Layers | None = None,
        overridden: bool = False,
        explain: bool = False,
    ) -> types.Results:
        """The memories that answer a query best, with scores from 0 to 1.

        Without ``min_score`` the answer is empty when nothing here seems to be about the question; ``min_score=0``
        gives whatever comes nearest. What has ``"quoted words"`` one behind the other comes first, ``secur*`` finds
        every word that begins so, ``gr?y`` any letter in that place. ``asked_at`` is when the question was asked, for
        dates such as "last week"; now, if it is left out.
        ``as_of`` searches the memories as they were; what was changed since is then found by its words alone. At most
        ``limit_per_layer`` hits are of one layer, so that a large layer leaves room for the others.
        What a more specific layer says overrides what a less specific one answers to the same question: a hit's
        ``overrides`` names what was left out, ``overridden=True`` shows it. ``precedence`` reorders the layers;
        without it, the setting `recall.precedence` does.
        ``min_trust`` is short for that condition of the filter.

        >>> import wellkept
        >>> with wellkept.open("ram:") as memories:
        ...     view = memories.view(user="ada")
        ...     _ = view.add_many(["The user prefers dark mode", "The user lives in Rome"])
        ...     [hit.memory.content for hit in view.search("What theme does the user prefer?", limit=1)]
        ['The user prefers dark mode']
        """
        from wellkept.engine import search, search_request  # lazy: numpy takes 100 ms, and many never search

        if min_trust is not None:
            filter = replace(types.Filter() if filter is None else reading.to_filter(filter), min_trust=min_trust)
        wanted = self._query(filter, layers, as_of)
        asked = search_request.checked(
            query,
            limit=limit,
            per_layer=limit_per_layer,
            min_score=min_score,
            mode=ranking,
            explain=explain,
            asked_at=asked_at,
            now=wanted.where.now,
            precedence=self._engine.settings.recall.layers if precedence is None else precedence,
            overridden=overridden,
        )
        if asked.ranking is Ranking.RELEVANCE:
            asked = replace(asked, policies=self._policies())
        return search.search(self._engine, wanted.owners, wanted.where, asked, at=wanted.at)

    # -- changing ---------------------------------------------------------------------------------------------

    @long_term(Need.WRITE)
    def update(
        self,
        id: str,
        *,
        if_version: int | None = None,
        vector: types.Vector | Iterable[float] | None = None,
        dangling: bool = False,
        **changes: Unpack[types.ChangedFields],
    ) -> Memory:
        """Change a memory and return its new version.

        ``metadata`` is merged into what is there, ``add_tags`` and ``remove_tags`` change the tags, new ``content`` is
        embedded anew. With ``if_version`` the change is made only if the memory is still at that version, otherwise
        it is a ``Conflict``. A change that changes nothing writes nothing. References that are new must name memories
        that this view can see, unless ``dangling=True``.

        >>> import wellkept
        >>> with wellkept.open("ram:") as memories:
        ...     view = memories.view(user="ada")
        ...     memory = view.add("Lives in Paris", metadata={"sure": True})
        ...     memory = view.update(memory.id, content="Lives in Rome", metadata={"since": 2026}, if_version=1)
        ...     memory.version, memory.content, dict(memory.metadata)
        (2, 'Lives in Rome', {'sure': True, 'since': 2026})
        """
        return writing.update(
            self._engine, self._owners, id, changes, if_version=if_version, vector=vector, dangling=dangling
        )

    @long_term(Need.WRITE, permanent=Need.ERASE)
    def forget(
        self, id: str, *, permanent: bool = False, reason: str | None = None, if_version: int | None = None
    ) -> bool:
        """Forget a memory; ``False`` if there is nothing to forget.

        A forgotten memory is left out of everything, but kept, and ``restore`` brings it back. ``permanent=True``
        erases it with all its versions, also after it was forgotten; that it was erased stays in the journal. With
        ``if_version`` this happens only if the memory is still at that version, otherwise it is a ``Conflict``.

        >>> import wellkept
        >>> with wellkept.open("ram:") as memories:
        ...     view = memories.view(user="ada")
        ...     memory = view.add("Likes tea")
        ...     view.forget(memory.id), view.get(memory.id), view.restore(memory.id), view.get(memory.id).content
        (True, None, True, 'Likes tea')
        """
        return writing.forget(self._engine, self._owners, id, permanent=permanent, reason=reason, if_version=if_version)

    @long_term(Need.WRITE, permanent=Need.ERASE, dry_run=Need.READ)
    def forget_many(
        self,
        ids: Iterable[str] | None = None,
        *,
        filter: types.Filter | Mapping[str, Any] | None = None,
        layers: Layers | None = None,
        reason: str | None = None,
        permanent: bool = False,
        dry_run: bool = False,
    ) -> types.Removal:
        """Forget memories by their ids, or all that match a filter, in one transaction.

        With ``ids``, those for which there is nothing to forget are told as ``failed`` and do not stop the rest.

        ``dry_run=True`` changes nothing and tells what would go. ``permanent=True`` erases, and then also takes what
        matches and was forgotten or has expired. An empty filter takes everything in view, so it must be given.

        >>> import wellkept
        >>> with wellkept.open("ram:") as memories:
        ...     view = memories.view(user="ada")
        ...     _ = view.add("Lives in Rome", tags=["personal.home"])
        ...     _ = view.add("Likes tea")
        ...     view.forget_many(filter={"tags": ["personal"]}, reason="asked to").count, view.count()
        (1, 1)
        """
        how: dict[str, Any] = {"permanent": permanent, "reason": reason, "dry_run": dry_run}
        if ids is not None:
            writing.check_alone(filter)
            given = (ids,) if isinstance(ids, str) else validation.batch("ids", ids)
            return writing.forget_ids(self._engine, self._scope.owners_in(layers), given, **how)
        return writing.forget_many(self._engine, self._query(writing.required(filter), layers, None), **how)

    @long_term(Need.WRITE)
    def restore(self, id: str, *, if_version: int | None = None) -> bool:
        """Bring a forgotten or archived memory back; ``False`` if none of that id is forgotten or archived.

        With ``if_version`` this happens only if the memory is still at that version, otherwise it is a ``Conflict``.

        >>> import wellkept
        >>> with wellkept.open("ram:") as memories:
        ...     memories.view(user="ada").restore("unknown")
        False
        """
        return writing.restore(self._engine, self._owners, id, if_version=if_version)
