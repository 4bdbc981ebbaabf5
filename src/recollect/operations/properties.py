"""The description and bounds of every field of an input and an answer.

The inputs and answers of verbs declare their own; those of a memory come from the table of fields; those of the other
public values are declared here.
"""

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType

from recollect import fields, validation
from recollect.fields import COUNT, COUNT_MAX, ID, LINE, UNIT
from recollect.operations.verb import parameter_of
from recollect.settings import Problem
from recollect.types import (
    CompactionReport,
    Component,
    ConversionReport,
    DecayPolicy,
    Diagnosis,
    DroppedMemory,
    Finding,
    Health,
    Hit,
    KnowledgePointer,
    Layer,
    Memory,
    MemoryType,
    MigrationReport,
    Owner,
    Page,
    Removal,
    Results,
    SessionConfig,
    SessionStats,
    Source,
    Stats,
    TagUsage,
    Vector,
    Version,
)
from recollect.types.bounds import UNBOUNDED, Bounds, Property

_LIST = 1_000_000
_SESSION_ID = Bounds(max_length=64)
_IDS = Bounds(max_length=_LIST, each=ID)
_LINES = Bounds(max_length=10_000, each=LINE)
_MANY = Bounds(max_length=_LIST)
_TEXT = Bounds(max_length=2**31)
_HOURS = Bounds(minimum=0, maximum=1e9)
_MILLISECONDS = Bounds(minimum=0, maximum=1e12)
_SIGNAL = Bounds(minimum=-1e9, maximum=1e9)
_SIGNALS = Bounds(max_length=100, each=_SIGNAL)
_VECTOR = Bounds(max_length=8 * validation.DIMENSIONS * 10_000)
_SPANS = Bounds(max_length=_LIST, each=Bounds(each=COUNT))
_BY_TYPE = Bounds(max_length=len(MemoryType), each=COUNT)
_TEXTS_BY_NAME = Bounds(max_length=1_000, each=_TEXT)
_POSITIVE = Bounds(minimum=1, maximum=COUNT_MAX)


def _table(**described: tuple[str, Bounds] | str) -> Mapping[str, Property]:
    pairs = {name: (one, UNBOUNDED) if isinstance(one, str) else one for name, one in described.items()}
    return MappingProxyType({name: Property(description=text, bounds=bounds) for name, (text, bounds) in pairs.items()})


_MEMORY: Mapping[type, Mapping[str, Property]] = {
    Memory: MappingProxyType({name: one.described for name, one in fields.MEMORY.items()}),
    Owner: _table(
        layer="The layer of the owner.",
        ids=("The ids that the layer needs, the user first.", Bounds(max_length=len(Layer), each=ID)),
    ),
    Source: _table(
        type="The kind of source that the memory came from.",
        reference=("The message, call or file that the memory came in.", LINE),
    ),
    KnowledgePointer: _table(
        source_type="The kind of document.",
        source_id=("The id of the document.", LINE),
        content_hash=("The hash of the document when it was read.", LINE),
        synced_at="When the document was read.",
    ),
    Vector: _table(
        embedder=("The name of the embedder that made the vector.", LINE),
        data=("The numbers, as little-endian 32-bit floats.", _VECTOR),
        spans=("For each passage of a long content, its first character and the one after its last.", _SPANS),
        pieces=("For each word of the content, two bytes that name a piece of the built-in vocabulary.", _VECTOR),
    ),
    Version: _table(
        memory_id=("The id of the memory.", ID),
        owner="Whom the memory belongs to.",
        version=("The version of the memory.", _POSITIVE),
        operation="What the version did to the memory.",
        recorded_at="When the version was recorded.",
        reason=("The reason that was given.", LINE),
        memory="The memory as the version left it; null once it was erased.",
        stamp=("When and where the version was made; unique everywhere.", LINE),
        replaced=("The stamp of the version before it.", LINE),
        position=("The position right behind the version; only in a feed of changes.", Bounds(max_length=100_000)),
    ),
    Problem: _table(
        key=("The dotted key, empty if the whole file is meant.", LINE),
        message=("What is wrong.", _TEXT),
        hint=("What to do about it.", _TEXT),
        line=("The line of the file, where it was found.", _POSITIVE),
    ),
}

_ANSWERS: Mapping[type, Mapping[str, Property]] = {
    Removal: _table(
        ids=("Ids of the memories that were removed, or would be in a dry run.", _IDS),
        permanent="Whether the memories were erased.",
        dry_run="Whether nothing was changed.",
    ),
    Results: _table(
        hits=("The memories that were found, the best first.", _MANY),
        total=("How many memories passed the threshold, before the limit was applied.", COUNT),
        layers=("The layers that were searched, the most specific first.", Bounds(max_length=len(Layer))),
        semantic="Whether meaning took part, or words alone.",
        known=("How likely it is that the memories hold an answer at all, from 0 to 1.", UNIT),
    ),
    Hit: _table(
        memory="The memory that was found.",
        score=("How well the memory answers the query, from 0 to 1.", UNIT),
        rank=("The rank of the memory; the best has 1.", _POSITIVE),
        reasons=("What each signal added to the score, if that was asked for.", _SIGNALS),
        passage=(
            "The passage of a long content that was found: its first character and the one after its last.",
            Bounds(each=COUNT),
        ),
        overrides=("Ids of memories of less specific layers that this one takes precedence over.", _IDS),
        duplicates=("Ids of memories that say the same and were left out.", _IDS),
    ),
    Page: _table(
        memories=("The memories of the page.", _MANY),
        next_cursor=("The cursor of the next page; null on the last one.", Bounds(max_length=4_096)),
        total=("How many memories the listing has on all pages.", COUNT),
        reasons=(
            "In the order relevance, the factors of the relevance of each memory.",
            Bounds(max_length=_LIST, each=_SIGNALS),
        ),
    ),
    Stats: _table(
        active=("The number of active memories.", COUNT),
        forgotten=("The number of forgotten memories.", COUNT),
        archived=("The number of archived memories.", COUNT),
        bytes_used=("The bytes of content, custom fields and vectors.", COUNT),
        bytes_limit=("The largest number of bytes allowed; null without a limit.", COUNT),
        bytes_counted=("The bytes that count towards the limit; null without a limit.", COUNT),
        by_type=("The number of active memories of each type.", _BY_TYPE),
        top_tags=("The most used tags.", _MANY),
        oldest="When the oldest memory was recorded.",
        newest="When the newest memory was recorded.",
        embeddings_made=("How many embeddings were made since the database was opened.", COUNT),
        average_embedding_ms=("The average time of an embedding in milliseconds.", _MILLISECONDS),
    ),
    TagUsage: _table(tag=("The tag.", ID), count=("The number of active memories that have the tag.", COUNT)),
}

_SESSIONS: Mapping[type, Mapping[str, Property]] = {
    SessionStats: _table(
        id=("The id of the session.", _SESSION_ID),
        created_at="When the session was created.",
        last_accessed="When the session was last used.",
        closed_at="When the session was closed.",
        deleted_at="When the session was deleted.",
        entries=("The number of active memories.", COUNT),
        forgotten=("The number of forgotten memories.", COUNT),
        archived=("The number of archived memories.", COUNT),
        by_type=("The number of active memories of each type.", _BY_TYPE),
        bytes_used=("The bytes of all memories: forgotten ones count, archived ones do not.", COUNT),
        bytes_limit=("The largest number of bytes allowed; null without a limit.", COUNT),
        oldest="When the oldest memory was recorded.",
        newest="When the newest memory was recorded.",
    ),
    SessionConfig: _table(
        decay="How the memories of the session fade.",
        limit_bytes=("The largest number of bytes allowed; null without a limit.", COUNT),
        auto_compact="Whether a write to a nearly full session compacts it first.",
        compaction_threshold=("How full a session must be for that, from 0 to 1.", UNIT),
    ),
    DecayPolicy: _table(
        enabled="Whether memories fade.",
        half_life_hours=("The hours in which any memory fades by half; null if each type has its own.", _HOURS),
        min_decay_factor=("How much of a faded memory remains at least, from 0 to 1.", UNIT),
        by_type_hours=(
            "The half-life of memories of a type in hours; null if the type never fades.",
            Bounds(max_length=len(MemoryType), each=_HOURS),
        ),
    ),
    CompactionReport: _table(
        session_id=("The id of the session.", _SESSION_ID),
        archived=("The memories that were archived, or would be in a dry run.", _MANY),
        erased=("The memories that were erased, or would be in a dry run.", _MANY),
        bytes_before=("The bytes of all memories before, archived ones left out.", COUNT),
        bytes_after=("The bytes of all memories after, archived ones left out.", COUNT),
        bytes_limit=("The largest number of bytes allowed; null without a limit.", COUNT),
        dry_run="Whether nothing was changed.",
    ),
    DroppedMemory: _table(
        id=("The id of the memory.", ID),
        reason=("Why it went: irrelevant, expired, forgotten or archived before.", ID),
        relevance=("The relevance of the memory, from 0 to 1.", UNIT),
        bytes_used=("The bytes of the memory.", COUNT),
    ),
}

_MAINTENANCE: Mapping[type, Mapping[str, Property]] = {
    Health: _table(
        status="How well the database works.",
        latency_ms=("How long the check took in milliseconds.", _MILLISECONDS),
        components=("The state of each component by its name.", Bounds(max_length=1_000)),
    ),
    Component: _table(status="How well the component works.", message=("A few words about it.", _TEXT)),
    Diagnosis: _table(
        checks=("The names of the checks that were made.", _LINES),
        findings=("What is wrong.", _MANY),
        facts=("Facts about the database by their names.", _TEXTS_BY_NAME),
    ),
    Finding: _table(
        check=("The name of the check.", LINE),
        message=("What is wrong.", _TEXT),
        repair=("What repairs it.", _TEXT),
        repaired="Whether it was repaired.",
    ),
    ConversionReport: _table(
        copied=("How many versions this call copied.", COUNT),
        versions=("How many versions source and target have.", COUNT),
        memories=("How many memories source and target have.", COUNT),
        owners=("How many owners source and target have.", COUNT),
        checksum=("A checksum of all versions; the same for every copy of the same history.", LINE),
    ),
    MigrationReport: _table(
        before=("The schema that the database had.", COUNT),
        after=("The schema that the database has now, or would have.", COUNT),
        losses=("What the older schema cannot hold.", _LINES),
        copy=("The name of the copy beside the database.", LINE),
        dry_run="Whether nothing was changed.",
    ),
}

PROPERTIES: Mapping[type, Mapping[str, Property]] = MappingProxyType(
    {**_MEMORY, **_ANSWERS, **_SESSIONS, **_MAINTENANCE}
)
"""The fields of values by class and name."""


def describe(kind: type, name: str) -> Property:
    """How a field of an input or of an answer is described and bounded.

    >>> describe(Hit, "score").bounds.maximum
    1
    """
    if kind in PROPERTIES:
        return PROPERTIES[kind][name]
    parameter = parameter_of(next(one for one in dataclasses.fields(kind) if one.name == name))
    return Property(description=parameter.description, bounds=parameter.bounds)
