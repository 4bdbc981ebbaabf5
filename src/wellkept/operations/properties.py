"""The description and bounds of every field of an input and an answer.

The inputs and answers of verbs declare their own; those of a memory come from the table of fields; those of the other
public values are declared here.
"""

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType

from wellkept import fields, validation
from wellkept.fields import COUNT, COUNT_MAX, ID, LINE, UNIT
from wellkept.operations.verb import parameter_of
from wellkept.settings import Problem
from wellkept.types import (
    AuditEntry,
    CompactionReport,
    Component,
    Conversation,
    ConversionReport,
    DecayPolicy,
    Diagnosis,
    DroppedMemory,
    EncryptionReport,
    ErasureCounts,
    ErasureReceipt,
    Fact,
    Finding,
    Health,
    Hit,
    ImportReport,
    KeyCheck,
    KeyRotation,
    KeysMade,
    KnowledgePointer,
    Layer,
    Lineage,
    Memory,
    MemoryType,
    Merge,
    MigrationReport,
    Operation,
    Owner,
    OwnerCount,
    OwnerShare,
    Page,
    Refreshed,
    Removal,
    Replayed,
    Results,
    Scrubbed,
    SessionConfig,
    SessionStats,
    Source,
    Stats,
    SubjectExport,
    TagUsage,
    Undoable,
    Undone,
    UpkeepPlan,
    UpkeepRun,
    UpkeepStep,
    Vector,
    Verification,
    Version,
)
from wellkept.types.bounds import UNBOUNDED, Bounds, Property

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
        branch=("The branch of the memories; empty for the main one, the only one there is so far.", ID),
    ),
    Source: _table(
        type="The kind of source that the memory came from.",
        reference=("The message, call or file that the memory came in.", LINE),
    ),
    Fact: _table(
        subject=("What the fact is about.", LINE),
        predicate=("What it says of the subject, such as 'lives in'.", LINE),
        object=("The value, such as Rome.", LINE),
        kind=("The kind of fact, in your own words.", LINE),
        valid_from="Since when it holds; by default, since the memory occurred.",
        valid_until="Until when it holds; by default, until another object supersedes it.",
        multiple="Whether the subject can have several objects at a time.",
    ),
    Conversation: _table(
        turns=("The turns, in the order given.", _MANY),
        memories=("The memories that were made from them, now or before.", _MANY),
        added=("How many turns are new.", COUNT),
    ),
    Refreshed: _table(
        refreshed=("Ids of the memories that point to their file as it is now, or would.", _IDS),
        rewritten=("Ids of the memories that have the new text of their file, or would.", _IDS),
        missing=("Ids of the memories whose file is gone or cannot be read.", _IDS),
        current=("How many memories point to files that have not changed.", COUNT),
        dry_run="Whether nothing was changed.",
    ),
    Undoable: _table(
        id=("The id by which it is taken back.", LINE),
        at="When it was written.",
        operations=("What was done.", Bounds(max_length=len(Operation))),
        memory_ids=("Ids of the memories that were changed.", _IDS),
        reason=("The reason that the history tells.", LINE),
        run_id=("The id of the run, if it was one.", ID),
        blocked=("What stands in the way; null if it can be undone.", _TEXT),
    ),
    Lineage: _table(
        replaced=("The memories that it replaced, the oldest first.", _MANY),
        replaced_by=("The memories that replaced it since, the newest last.", _MANY),
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
        write_id=("The same for all versions that one call wrote.", LINE),
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
        failed=("Ids for which there was nothing to remove.", _IDS),
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
        stale="Whether the file that the memory points to has changed or is gone; null if it points to none.",
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
        superseded=("The number of memories that others replaced.", COUNT),
        quarantined=("The number of memories in quarantine.", COUNT),
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
        damaged=("The number of stored lines that cannot be read and are skipped.", COUNT),
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
        condensed=("The memories of which verbose metadata was archived, or would be in a dry run.", _MANY),
        bytes_before=("The bytes of all memories before, archived ones left out.", COUNT),
        bytes_after=("The bytes of all memories after, archived ones left out.", COUNT),
        bytes_limit=("The largest number of bytes allowed; null without a limit.", COUNT),
        dry_run="Whether nothing was changed.",
        run_id=("The id of the run, by which upkeep.undo takes it back; null if nothing went.", ID),
    ),
    DroppedMemory: _table(
        id=("The id of the memory.", ID),
        reason=("Why it went: irrelevant, expired, verbose, forgotten or archived before.", ID),
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
    ImportReport: _table(
        session_id=("The id of the session that was imported into.", ID),
        form=("The form of the export: json, jsonl or entries.", LINE),
        created="Whether the session is new.",
        added=("How many memories were added.", COUNT),
        known=("How many were here already, and were left as they are.", COUNT),
        erased=("How many were erased here before, and stay so.", COUNT),
        omitted=("How many had been moved out of the session before it was exported.", COUNT),
        dry_run="Whether nothing was changed.",
    ),
    ConversionReport: _table(
        copied=("How many versions this call copied.", COUNT),
        versions=("How many versions source and target have.", COUNT),
        memories=("How many memories source and target have.", COUNT),
        owners=("How many owners source and target have.", COUNT),
        checksum=("A checksum of all versions; the same for every copy of the same history.", LINE),
        damaged=("How many lines or rows of the source were left behind, as they are damaged; see its doctor.", COUNT),
    ),
    MigrationReport: _table(
        before=("The schema that the database had.", COUNT),
        after=("The schema that the database has now, or would have.", COUNT),
        losses=("What the older schema cannot hold.", _LINES),
        copy=("The name of the copy beside the database.", LINE),
        dry_run="Whether nothing was changed.",
    ),
    Scrubbed: _table(remains=("Where bytes of erased memories may still be.", _LINES)),
}

_UPKEEP: Mapping[type, Mapping[str, Property]] = {
    OwnerCount: _table(
        owner="Whose it is.",
        memories=("How many memories, in every state but erased.", COUNT),
        bytes_used=("The bytes that they take.", COUNT),
        records=("How many records there are beside them, such as sessions.", COUNT),
    ),
    ErasureCounts: _table(
        owners=("How many owners are concerned.", COUNT),
        memories=("How many memories.", COUNT),
        versions=("How many versions they had.", COUNT),
        derived=("How many of them were made from others, and are of other owners.", COUNT),
        records=("How many records, such as sessions.", COUNT),
        reasons=("How many earlier tombstones lost the reason that they kept.", COUNT),
        keys=("How many owners had a data key, which is destroyed.", COUNT),
    ),
    ErasureReceipt: _table(
        id=("The id of the erasure.", ID),
        scope="What the erasure is about.",
        erased_at="Up to when what was recorded is erased.",
        counts="How much of what was erased.",
        ledger_seq=("The number of the entry in the ledger.", COUNT),
        ledger_hash=("The hash of that entry.", LINE),
        remains=("Where bytes may still stand.", _LINES),
        signed_by=("By which keyring it is signed, or why it is not.", LINE),
        public_key=("The public key of the signature (Ed25519), in hex; null without one.", LINE),
        signature=("The signature over everything else, in hex; null without one.", LINE),
    ),
    Verification: _table(
        valid="Whether everything fits.",
        checked=("How many entries were checked.", COUNT),
        anchor=("The last entry: keep it elsewhere, to find out later whether the end was cut off.", LINE),
        signed="Whether there is a signature, and it fits.",
        missing=("How many entries could not be written, as the log itself tells.", COUNT),
        problems=("What does not fit.", _LINES),
    ),
    Replayed: _table(
        entries=("How many entries of the ledger were new here.", COUNT),
        counts="What had to be erased again.",
    ),
    SubjectExport: _table(
        path=("The archive.", LINE),
        owners=("How many owners of the person there are.", COUNT),
        memories=("How many memories are in it.", COUNT),
        versions=("How many versions of them.", COUNT),
        records=("How many records, such as sessions.", COUNT),
    ),
    AuditEntry: _table(
        seq=("The number of the entry.", COUNT),
        at="When the operation ended.",
        verb=("What was done.", LINE),
        ids=("The ids that it was done to, at most 100.", _IDS),
        count=("How many there were, if there were several.", COUNT),
        owner=("Whose they are, if one owner's.", LINE),
        user=("As which user.", ID),
        agent=("As which agent.", ID),
        session=("In which session.", ID),
        grant=("Under which API key, or whose grant.", LINE),
        error=("The code of the error, if it failed; the class's name if it is not one of ours.", LINE),
        announced=("The number of the entry that announced it, if one did.", COUNT),
        unfinished="Whether it was announced, and the log does not say how it ended.",
        since="When the first of the missing entries would have been made.",
        until="When the last of them would have been made.",
        previous=("The hash of the entry before.", LINE),
        hash=("The hash of this entry.", LINE),
    ),
    UpkeepPlan: _table(
        id=("The id of the plan.", ID),
        job="The job that the plan is for.",
        made_at="When the plan was made.",
        steps=("What would be done to each memory.", _MANY),
        owners=("How much would be taken of each owner.", _MANY),
        errors=("A line for each owner that could not be read.", _LINES),
        clock_doubt=("Why the clock is doubtful; null if it is not.", LINE),
        merges=("The memories that a consolidation would make.", _MANY),
        sessions=("How many sessions of each user would go, counted as memories are.", _MANY),
        notes=("What a summariser did wrong, so that its text is not used.", _LINES),
    ),
    Merge: _table(
        id=("The id of the memory that is made.", ID),
        owner="Whom the memories belong to.",
        content=("The text of the memory that is made.", _TEXT),
        sources=("Ids of the memories that it replaces.", _IDS),
        differing=("The words that not all of the sources have.", _LINES),
        proposed="Whether a summariser wrote the text.",
    ),
    UpkeepStep: _table(
        memory_id=("The id of the memory.", ID),
        owner="Whom the memory belongs to.",
        version=("The version of the memory.", _POSITIVE),
        state="The state of the memory before.",
        action="What is done to the memory; erase cannot be undone.",
        reason=("Why it is done.", LINE),
        bytes_used=("The bytes of the memory, without its vector.", COUNT),
        into=("The id of the memory that a merge or a promotion makes.", ID),
    ),
    OwnerShare: _table(
        owner="The owner.",
        memories=("How many memories the owner has, forgotten and archived ones included.", COUNT),
        taken=("How many would be taken.", COUNT),
        erased=("How many of these would be erased.", COUNT),
        bytes_freed=("The bytes that would no longer count.", COUNT),
    ),
    UpkeepRun: _table(
        id=("The id of the run, which is that of its plan.", ID),
        job="The job that was run.",
        started_at="When the run began.",
        completed_at="When the run ended; null if it was interrupted.",
        working_removed=("How many entries of working memory were removed.", COUNT),
        forgotten=("How many memories were forgotten.", COUNT),
        erased=("How many forgotten memories were erased.", COUNT),
        archived=("How many memories were archived.", COUNT),
        restored=("How many archived memories became active again.", COUNT),
        quarantined=("How many memories were put into quarantine.", COUNT),
        merged=("How many memories were replaced by one that says the same.", COUNT),
        promoted=("How many memories of sessions were copied to their users.", COUNT),
        snapshots_removed=("How many snapshots were removed.", COUNT),
        bytes_freed=("The bytes that no longer count, without vectors.", COUNT),
        owners_processed=("How many owners were processed.", COUNT),
        errors=("A line for each owner that failed or was left out.", _LINES),
        automatic="Whether the run was made by a schedule.",
        undone_at="When the run was undone.",
        notes=("What a summariser did wrong, so that its text is not used.", _LINES),
    ),
    Undone: _table(
        run_id=("The id of the run.", ID),
        ids=("Ids of the memories that are as they were before.", _IDS),
        erased=("Ids of the memories that stay erased.", _IDS),
        removed=("Ids of the memories that the run had made, and that are gone.", _IDS),
    ),
}

_ENCRYPTION = {
    EncryptionReport: _table(
        owners=("How many owners' memories were encrypted.", COUNT),
        memories=("How many memories were encrypted.", COUNT),
        versions=("How many versions they have.", COUNT),
        remains=("Where bytes of what was plain may still be.", _LINES),
    ),
    KeyCheck: _table(
        keyring=("The id of the keyring.", ID),
        keys=("How many keys it has.", COUNT),
        encrypted=("How many memories are encrypted.", COUNT),
        plain=("How many memories are not.", COUNT),
        failed=("Ids of the memories that do not open.", _IDS),
        recovery="Whether the recovery code is the right one; null if none was given.",
    ),
    KeyRotation: _table(
        wrapped=("How many keys the new master key wraps.", COUNT),
        encrypted="What was encrypted anew by new data keys.",
        retired=("How many former data keys were removed.", COUNT),
        recovery_code=(
            "The code that brings a new master key back; null if it is as before, or kept.",
            LINE,
        ),
    ),
    KeysMade: _table(
        keyring=("Where the keyring is.", LINE),
        master_key_file=("Where the master key is; null if it is in the environment.", LINE),
        recovery_code=("The code that brings the master key back: keep it apart.", LINE),
    ),
}

PROPERTIES: Mapping[type, Mapping[str, Property]] = MappingProxyType(
    {**_MEMORY, **_ANSWERS, **_SESSIONS, **_MAINTENANCE, **_UPKEEP, **_ENCRYPTION}
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
