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


MIGRATE, UPKEEP = "wellkept.transfer.migration:migrate", "wellkept.memories:Upkeep"
API_KEYS = "wellkept.memories:ApiKeys"
PRIVACY, AUDIT = "wellkept.memories:Privacy", "wellkept.memories:AuditTrail"
ENCRYPTION = "wellkept.memories:Encryption"
PAGES = (
    Page(
        file="database.md",
        title="Database and views",
        intro="Opening a database, what is not one identity's, and everything that one identity can do."
        " Guides: [quickstart](../guides/quickstart.md), [remembering](../guides/remembering.md),"
        " [recall](../guides/recall.md), [time and history](../guides/time-and-history.md).",
        shows=(
            "wellkept:Memories",
            "wellkept:View",
            UPKEEP,
            API_KEYS,
            PRIVACY,
            AUDIT,
            ENCRYPTION,
            "wellkept:convert",
            "wellkept:open",
            MIGRATE,
        ),
    ),
    Page(
        file="agent.md",
        title="Agent handle",
        intro="What an agent needs during a run. Guide:"
        " [working memory and context](../guides/working-memory-and-context.md).",
        shows=("wellkept:AgentMemory", "wellkept.memories:AgentSnapshot", "wellkept.memories:AgentStats"),
    ),
    Page(
        file="working.md",
        title="Working memory",
        intro="Keys and values of one agent while it runs. Both `WorkingMemory` and `WorkingScope` are a `Level`.",
        shows=("wellkept.working", "wellkept.working.scope_chain:Level"),
    ),
    Page(
        file="context.md",
        title="Context window",
        intro="What goes into the next call of a language model, under a budget, and how its tokens are counted.",
        shows=(
            "wellkept.window",
            "wellkept.text.tokens:TokenCounter",
            "wellkept.text.tokens:by_characters",
            "wellkept.text.tokens:bpe_counter",
        ),
    ),
    Page(
        file="sessions.md",
        title="Sessions",
        intro="Rooms of their own for conversations. What they are described by is among the [values](values.md).",
        shows=(
            "wellkept.memories:Sessions",
            "wellkept.memories:Session",
            "wellkept.memories:SessionPreferences",
        ),
    ),
    Page(
        file="plans.md",
        title="Plans",
        intro="What a database allows, and how much it may keep.",
        shows=("wellkept.entitlements",),
    ),
    Page(
        file="values.md",
        title="Values",
        intro="What goes in and comes out: immutable, and free of any third-party type.",
        shows=("wellkept.types",),
    ),
    Page(
        file="events.md",
        title="Events",
        intro="What `memories.on` can be asked to tell. Guide: [running it](../guides/running.md#events).",
        shows=("wellkept.events",),
    ),
    Page(
        file="telemetry.md",
        title="Metrics and logs",
        intro="What tells operators how it goes; silent until it is asked.",
        shows=("wellkept.telemetry", "wellkept.logs"),
    ),
    Page(
        file="errors.md",
        title="Errors",
        intro="Everything that is raised on purpose. When each is raised and what to do about it:"
        " [the table of errors](../errors.md).",
        shows=("wellkept.errors",),
    ),
    Page(
        file="ports.md",
        title="Ports",
        intro="What a store, an embedder, a reranker and a clock must be. Guides:"
        " [writing a store](../guides/writing-a-store.md), [writing an embedder](../guides/writing-an-embedder.md).",
        shows=("wellkept.ports",),
    ),
    Page(
        file="embedders.md",
        title="Embedders and rerankers",
        intro="Those that come with the package. Guide: [writing an embedder](../guides/writing-an-embedder.md).",
        shows=(
            "wellkept.embedders.word_table:WordTableEmbedder",
            "wellkept.embedders.bge:BgeEmbedder",
            "wellkept.embedders.model2vec:Model2VecEmbedder",
            "wellkept.embedders.http:HttpEmbedder",
            "wellkept.embedders.callable:CallableEmbedder",
            "wellkept.embedders.hashing:HashingEmbedder",
            "wellkept.recall.calibration:Calibration",
            "wellkept.rerankers.cross_encoder:CrossEncoder",
        ),
    ),
    Page(
        file="aio.md",
        title="Async",
        intro="The same engine for async code. Guide: [async code](../guides/async.md).",
        shows=("wellkept.aio",),
    ),
    Page(
        file="testing.md",
        title="Testing kit",
        intro="For authors of stores, and of what stands on them; needs `pip install '.[testing]'`."
        " Guide: [writing a store](../guides/writing-a-store.md#test-it).",
        shows=("wellkept.testing", "wellkept.testing.subject:Subject", "wellkept.testing.builders"),
    ),
)
