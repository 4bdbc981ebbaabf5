"""The pages of the library's reference, and what each shows."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page: what it is about, and the modules (or single names in them) that it shows.

    A page whose modules are not there is left out.
    """

    file: str
    title: str
    intro: str
    shows: tuple[str, ...]


MIGRATE, UPKEEP = "recollect.transfer.migration:migrate", "recollect.memories:Upkeep"
API_KEYS = "recollect.memories:ApiKeys"
PRIVACY, AUDIT = "recollect.memories:Privacy", "recollect.memories:AuditTrail"
ENCRYPTION = "recollect.memories:Encryption"
PAGES = (
    Page(
        file="database.md",
        title="Database and views",
        intro="Opening a database, what is not one identity's, and everything that one identity can do."
        " Guides: [quickstart](../guides/quickstart.md), [remembering](../guides/remembering.md),"
        " [recall](../guides/recall.md), [time and history](../guides/time-and-history.md).",
        shows=(
            "recollect:Memories",
            "recollect:View",
            UPKEEP,
            API_KEYS,
            PRIVACY,
            AUDIT,
            ENCRYPTION,
            "recollect:convert",
            "recollect:open",
            MIGRATE,
        ),
    ),
    Page(
        file="agent.md",
        title="Agent handle",
        intro="What an agent needs during a run. Guide:"
        " [working memory and context](../guides/working-memory-and-context.md).",
        shows=("recollect:AgentMemory", "recollect.memories:AgentSnapshot", "recollect.memories:AgentStats"),
    ),
    Page(
        file="working.md",
        title="Working memory",
        intro="Keys and values of one agent while it runs. Both `WorkingMemory` and `WorkingScope` are a `Level`.",
        shows=("recollect.working", "recollect.working.scope_chain:Level"),
    ),
    Page(
        file="context.md",
        title="Context window",
        intro="What goes into the next call of a language model, under a budget, and how its tokens are counted.",
        shows=(
            "recollect.window",
            "recollect.text.tokens:TokenCounter",
            "recollect.text.tokens:by_characters",
            "recollect.text.tokens:bpe_counter",
        ),
    ),
    Page(
        file="sessions.md",
        title="Sessions",
        intro="Rooms of their own for conversations. What they are described by is among the [values](values.md).",
        shows=(
            "recollect.memories:Sessions",
            "recollect.memories:Session",
            "recollect.memories:SessionPreferences",
        ),
    ),
    Page(
        file="plans.md",
        title="Plans",
        intro="What a database allows, and how much it may keep.",
        shows=("recollect.entitlements",),
    ),
    Page(
        file="values.md",
        title="Values",
        intro="What goes in and comes out: immutable, and free of any third-party type.",
        shows=("recollect.types",),
    ),
    Page(
        file="events.md",
        title="Events",
        intro="What `memories.on` can be asked to tell. Guide: [running it](../guides/running.md#events).",
        shows=("recollect.events",),
    ),
    Page(
        file="telemetry.md",
        title="Metrics and logs",
        intro="What tells operators how it goes; silent until it is asked.",
        shows=("recollect.telemetry", "recollect.logs"),
    ),
    Page(
        file="errors.md",
        title="Errors",
        intro="Everything that is raised on purpose. When each is raised and what to do about it:"
        " [the table of errors](../errors.md).",
        shows=("recollect.errors",),
    ),
    Page(
        file="ports.md",
        title="Ports",
        intro="What a store, an embedder, a reranker and a clock must be. Guides:"
        " [writing a store](../guides/writing-a-store.md), [writing an embedder](../guides/writing-an-embedder.md).",
        shows=("recollect.ports",),
    ),
    Page(
        file="embedders.md",
        title="Embedders and rerankers",
        intro="Those that come with the package. Guide: [writing an embedder](../guides/writing-an-embedder.md).",
        shows=(
            "recollect.embedders.word_table:WordTableEmbedder",
            "recollect.embedders.wordllama:WordllamaEmbedder",
            "recollect.embedders.bge:BgeEmbedder",
            "recollect.embedders.model2vec:Model2VecEmbedder",
            "recollect.embedders.http:HttpEmbedder",
            "recollect.embedders.callable:CallableEmbedder",
            "recollect.embedders.hashing:HashingEmbedder",
            "recollect.recall.calibration:Calibration",
            "recollect.rerankers.cross_encoder:CrossEncoder",
        ),
    ),
    Page(
        file="aio.md",
        title="Async",
        intro="The same engine for async code. Guide: [async code](../guides/async.md).",
        shows=("recollect.aio",),
    ),
    Page(
        file="testing.md",
        title="Testing kit",
        intro="For authors of stores, and of what stands on them; needs `pip install 'recollect[testing]'`."
        " Guide: [writing a store](../guides/writing-a-store.md#test-it).",
        shows=("recollect.testing", "recollect.testing.subject:Subject", "recollect.testing.builders"),
    ),
)
