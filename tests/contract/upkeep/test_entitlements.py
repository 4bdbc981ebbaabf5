"""What a plan means to whoever uses the database: refusals, quotas, warnings."""

import asyncio
import inspect
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

import wellkept
from tests.support.refusals import error_of, refusal
from tests.support.stand_ins import CountingEmbedder, HandClock, Opener, Switched, one_store, sequence
from wellkept import AgentMemory, View
from wellkept.entitlements import Feature, FeatureName, Plan
from wellkept.errors import PlanRestriction, QuotaExceeded
from wellkept.events import Event, QuotaWarning
from wellkept.stores.ram import RamStore
from wellkept.testing import FaultyStore
from wellkept.window import ContextWindow

LIMIT = 1_000


def small(limit_bytes: int | None = LIMIT, *features: FeatureName) -> Plan:
    return Plan(name="Small", features=["long_term_memory", *features], limit_bytes=limit_bytes)


def text(view: View, bytes_left: int) -> str:
    """A content that, added as it is, leaves so many bytes of the limit."""
    with wellkept.open("ram:", embedder=None) as other:
        bare = other.view(user="ada")
        bare.add("x")
        overhead = bare.stats().bytes_used - 1
    stats = view.stats()
    assert stats.bytes_limit is not None
    return "x" * (stats.bytes_limit - stats.bytes_used - overhead - bytes_left)


# -- core: no long-term memory --------------------------------------------------------------------

USES: dict[str, Callable[[View], object]] = {
    "add": lambda view: view.add("x"),
    "add_many": lambda view: view.add_many(["x"]),
    "get": lambda view: view.get("id"),
    "get_many": lambda view: view.get_many(["id"]),
    "list": lambda view: view.list(),
    "count": lambda view: view.count(),
    "stats": lambda view: view.stats(),
    "history": lambda view: view.history("id"),
    "changes": lambda view: view.changes(),
    "position": lambda view: view.position(),
    "search": lambda view: view.search("x"),
    "update": lambda view: view.update("id", content="y"),
    "forget": lambda view: view.forget("id"),
    "forget_many": lambda view: view.forget_many(filter={}),
    "restore": lambda view: view.restore("id"),
    "put": lambda view: view.put("key", "x"),
    "lineage": lambda view: view.lineage("id"),
    "move": lambda view: view.move("id", layer="user"),
    "add_messages": lambda view: view.add_messages([{"role": "user", "content": "x"}]),
    "quarantine": lambda view: view.quarantine(ids=["id"]),
    "plan_quarantine": lambda view: view.plan_quarantine(ids=["id"]),
    "release": lambda view: view.release(),
    "erase_quarantined": lambda view: view.erase_quarantined(),
    "undo": lambda view: view.undo("id"),
    "undoable": lambda view: view.undoable(),
    "point_to": lambda view: view.point_to("spec.md"),
    "refresh": lambda view: view.refresh("spec.md"),
}


def test_every_verb_of_a_view_is_in_the_list() -> None:
    verbs = {name for name, _ in inspect.getmembers(View, inspect.isfunction) if not name.startswith("_")}
    assert verbs == set(USES)


@pytest.mark.req("L12")
def test_core_has_no_long_term_memory() -> None:
    store = FaultyStore(RamStore())
    with wellkept.open(store=store, plan="core") as memories:
        view = memories.view(user="ada")
        before = dict(store.calls)
        wrong: dict[str, object] = {}
        for verb, use in USES.items():
            error = error_of(use, view)
            answer = error and (type(error), error.operation, error.details.get("plan"), error.hint)
            if answer != (PlanRestriction, verb, "Core", "upgrade to WriterPro"):
                wrong[verb] = answer
            if dict(store.calls) != before:
                wrong[f"{verb} asked the store"] = before = dict(store.calls)
    assert wrong == {}


@pytest.mark.req("L12", "W1", "W9")
@one_store
def test_core_has_all_of_working_memory_and_a_context(opener: Opener, clock: HandClock) -> None:
    me = opener(plan="Core", clock=clock).agent("debugger")
    me.working.set("step", 3)
    me.context.add("user", "Hello")
    assert "Hello" in me.context.compose().text
    saved = me.snapshot()
    me.clear()
    me.restore(saved)
    assert me.working.get("step") == 3
    stats = me.stats()
    assert (stats.working_entries, stats.long_term, stats.long_term_bytes, stats.bytes_limit) == (1, 0, 0, 0)
    with pytest.raises(PlanRestriction):
        me.context.compose("what was it?")
    with pytest.raises(PlanRestriction):
        me.clear(long_term=True)
    assert me.working.get("step") == 3, "a refused clear cleared something"


def test_what_a_downgrade_hides_is_there_again_after_an_upgrade(file_opener: Opener) -> None:
    memory = file_opener().view(user="ada").add("Likes tea")
    with pytest.raises(PlanRestriction):
        file_opener(plan="core").view(user="ada").get(memory.id)
    found = file_opener(plan="writerpro").view(user="ada").get(memory.id)
    assert found is not None
    assert found.content == "Likes tea"


# -- search by meaning ----------------------------------------------------------------------------


@pytest.mark.req("L12")
def test_search_by_meaning_begins_with_teams(opener: Opener) -> None:
    answers = {}
    for plan in ("writerpro", "teams", "enterprise", None):
        embedder = CountingEmbedder()
        view = opener(plan=plan, embedder=embedder, name=f"plan {plan}").view(user="ada")
        view.add("The user likes green tea")
        embedder.batches.clear()
        results = view.search("green tea")
        answers[plan] = [hit.memory.content for hit in results], results.semantic, bool(embedder.batches)
    # Words find it on every plan, and a question is embedded where that is of use.
    with_meaning = (["The user likes green tea"], True, True)
    assert answers == {
        "writerpro": (["The user likes green tea"], False, False),
        **dict.fromkeys(("teams", "enterprise", None), with_meaning),
    }


@pytest.mark.req("L12")
def test_who_asks_for_similarity_alone_is_told_that_the_plan_has_none(opener: Opener) -> None:
    view = opener(plan="writerpro", embedder=CountingEmbedder()).view(user="ada")
    view.add("The user likes green tea")
    with pytest.raises(PlanRestriction) as raised:
        view.search("green tea", ranking="similarity")
    assert raised.value.details == {"plan": "WriterPro", "feature": "semantic_search", "upgrade": "Teams"}
    assert raised.value.operation == "search"


def test_memories_have_vectors_on_every_plan_so_that_an_upgrade_works_at_once(file_opener: Opener) -> None:
    file_opener(plan="writerpro", embedder=CountingEmbedder()).view(user="ada").add("green tea")
    assert file_opener(plan="teams", embedder=CountingEmbedder()).view(user="ada").search("green tea").semantic


# -- compaction -----------------------------------------------------------------------------------


def filled(me: AgentMemory) -> ContextWindow:
    for number in range(6):
        me.context.add("user", f"Turn {number} is about tea. It was long.")
    return me.context


SUMMING: dict[str, Callable[[ContextWindow], Any]] = {
    "extractive": lambda window: window.compact(40, strategy="extractive"),
    "summariser": lambda window: window.compact(40, strategy="summariser", summariser=lambda *_: "Tea."),
    "awaited": lambda window: asyncio.run(window.acompact(40, summariser=_awaited)),
}


async def _awaited(*_: object) -> str:
    return "Tea."


@pytest.mark.req("C3", "L12")
def test_compaction_by_summary_is_refused_below_teams() -> None:
    wrong: dict[str, object] = {}
    for plan, (how, compact) in product(("core", "writerpro"), SUMMING.items()):
        with wellkept.open("ram:", embedder=None, plan=plan) as memories:
            window = filled(memories.agent("debugger"))
            before = window.items
            error = error_of(compact, window)
            answer = error and (type(error), error.details.get("feature"), error.hint)
            if answer != (PlanRestriction, "advanced_compaction", "upgrade to Teams"):
                wrong[f"{how} on {plan}"] = answer
            if window.items != before:
                wrong[f"{how} on {plan}, changed"] = window.items
            for simple in ("oldest", "least_important"):
                window.compact(window.tokens_used - 1, strategy=simple)
            if len(window) != 4:
                wrong[f"{how} on {plan}, left"] = window.items
    assert wrong == {}


@pytest.mark.req("C3", "L12")
def test_compaction_by_summary_works_from_teams_up() -> None:
    summarised = {}
    for plan, (how, compact) in product(("teams", "enterprise", None), SUMMING.items()):
        with wellkept.open("ram:", embedder=None, plan=plan) as memories:
            summarised[plan, how] = bool(compact(filled(memories.agent("debugger"))).receipt.summarised)
    assert summarised == dict.fromkeys(summarised, True)


# -- quota ----------------------------------------------------------------------------------------


@pytest.mark.req("L12", "L8")
def test_the_limit_is_reached_to_the_byte(opener: Opener) -> None:
    view = opener(plan=small()).view(user="ada")
    view.add("a beginning")
    view.add(text(view, 0))
    stats = view.stats()
    assert (stats.bytes_used, stats.bytes_limit, stats.percent_used) == (LIMIT, LIMIT, 100.0)
    with pytest.raises(QuotaExceeded):
        view.add("x")


@pytest.mark.req("L12")
def test_a_refused_write_says_why_and_leaves_no_trace(opener: Opener) -> None:
    memories = opener(plan=small())
    view = memories.view(user="ada")
    memory = view.add("a beginning", key="first")
    heard: list[Event] = []
    memories.on(Event, heard.append)
    before, used = sequence(memories), view.stats().bytes_used
    attempts: list[tuple[str, Callable[[], object]]] = [
        ("add", lambda: view.add("x" * LIMIT, key="second")),
        ("add_many", lambda: view.add_many(["fits", "x" * LIMIT])),
        ("update", lambda: view.update(memory.id, content="x" * LIMIT)),
    ]
    for verb, attempt in attempts:
        with pytest.raises(QuotaExceeded) as raised:
            attempt()
        error = raised.value
        assert error.operation == verb
        assert (error.details["usage"], error.details["limit"], error.details["plan"]) == (used, LIMIT, "Small")
        assert error.details["needed"] + used > LIMIT
        assert "Small" in error.hint
        assert "x" * 20 not in str(error)
    assert sequence(memories) == before
    assert heard == []
    assert view.add("now it fits", key="second").version == 1, "the key was not taken"


@pytest.mark.req("L12", "L7")
def test_at_the_limit_reading_forgetting_and_restoring_go_on(opener: Opener) -> None:
    view = opener(plan=small()).view(user="ada")
    keyed = view.add("a beginning", key="k")
    full = view.add(text(view, 0))
    assert view.add("a beginning", key="k").id == keyed.id, "what is stored already needs no room"
    assert view.get(full.id) is not None
    assert view.forget(full.id)
    assert view.restore(full.id)
    with pytest.raises(QuotaExceeded, match="old versions count too"):
        view.update(full.id, content="short")
    assert view.forget(full.id, permanent=True)
    view.add("and there is room again")


def test_forgotten_memories_count_until_they_are_erased(opener: Opener) -> None:
    view = opener(plan=small()).view(user="ada")
    memory = view.add("x" * 800)
    view.forget(memory.id)
    with pytest.raises(QuotaExceeded):
        view.add("y" * 800)
    view.forget(memory.id, permanent=True)
    view.add("y" * 800)


@pytest.mark.req("L12")
def test_the_limit_is_counted_the_same_from_every_view(opener: Opener) -> None:
    memories = opener(plan=small())
    views = [
        memories.view(user="ada"),
        memories.view(user="ada", project="api"),
        memories.view(user="ada", session="monday"),
        memories.view(agent="a", user="ada", session="tuesday"),
    ]
    views[0].add("x" * 400)
    views[2].add("x" * 400, layer="session")
    memories.view(user="bob").add("x" * 900)
    memories.view(user="adam", session="monday").add("x" * 900)
    usage = 0
    for view in views:
        for layer in view.layers[: -1 if "project" in view.layers else None]:
            with pytest.raises(QuotaExceeded) as raised:
                view.add("x" * 400, layer=layer.value, duplicates="keep")
            usage = raised.value.details["usage"]
            assert 800 < usage < 900
        assert view.stats().bytes_counted == usage
        assert 80 < view.stats().percent_used < 90
    memories.view(agent="a", user="ada").add("x" * 150, layer="agent")
    memories.view(agent="b", user="ada").add("x" * 150, layer="agent")  # ten agents have ten limits
    with pytest.raises(QuotaExceeded):
        views[0].add("x" * 100)  # it counts for each agent


@pytest.mark.req("L12")
def test_wider_layers_have_limits_of_their_own(opener: Opener) -> None:
    memories = opener(plan=small())
    ada = memories.view(user="ada", team="core", project="api")
    for layer in ("user", "team", "project"):
        ada.add("x" * 900, layer=layer)
        for view in (ada, memories.view(team="core", project="api", user="bob" if layer != "user" else "ada")):
            with pytest.raises(QuotaExceeded):
                view.add("x" * 900, layer=layer, duplicates="keep")
    assert ada.stats().bytes_used > 2 * LIMIT
    assert ada.stats().percent_used < 100
    assert ada.stats(layers=["team"]).bytes_counted == ada.stats(layers=["team"]).bytes_used


@pytest.mark.req("W9")
def test_the_statistics_of_an_agent_have_the_limit(opener: Opener) -> None:
    me = opener(plan="writerpro").agent("debugger")
    me.long_term.add("Likes tea")
    assert me.stats().bytes_limit == me.long_term.stats().bytes_limit == 100 * 1024**2
    assert me.stats().bytes_used == me.long_term.stats().bytes_used > 0


def test_without_a_limit_there_is_none(opener: Opener) -> None:
    plans: dict[str, Plan | str | None] = {"enterprise": "enterprise", "none": None, "own": small(None)}
    limits = {}
    for name, plan in plans.items():
        view = opener(plan=plan, name=name).view(user="ada")
        view.add("x" * 10_000)
        limits[name] = view.stats().bytes_limit, view.stats().percent_used
    assert limits == dict.fromkeys(plans, (None, 0.0))


def test_a_smaller_plan_keeps_what_is_there_until_it_is_erased(file_opener: Opener) -> None:
    memory = file_opener().view(user="ada").add("x" * 2_000)
    view = file_opener(plan=small()).view(user="ada")
    assert view.stats().percent_used > 200
    with pytest.raises(QuotaExceeded):
        view.update(memory.id, content="x" * 1_500)
    with pytest.raises(QuotaExceeded):
        view.add("x")
    assert view.get(memory.id) is not None
    view.forget(memory.id, permanent=True)
    view.add("x")


def test_vectors_that_come_later_count(opener: Opener) -> None:
    embedder = Switched()
    embedder.error = ConnectionError("down")
    clock = HandClock()
    view = opener(plan=small(LIMIT, "semantic_search"), embedder=embedder, clock=clock).view(user="ada")
    for number in range(5):
        view.add(f"memory {number}")
    without = view.stats().bytes_used
    embedder.error = None
    clock.forward(minutes=1)
    view.add("memory 5")
    assert view.stats().bytes_used > without + 6 * 4 * 16
    with pytest.raises(QuotaExceeded) as raised:
        view.add("x" * (LIMIT - view.stats().bytes_used))
    assert raised.value.details["usage"] == view.stats().bytes_used


# -- the warning ----------------------------------------------------------------------------------


@pytest.mark.req("L12", "L13")
def test_a_warning_follows_every_write_from_eighty_percent_on(opener: Opener, clock: HandClock) -> None:
    memories = opener(plan=small(), clock=clock)
    view = memories.view(user="ada", project="api")
    heard: list[Event] = []
    memories.on(Event, heard.append)
    warned: list[QuotaWarning] = []
    memories.on(QuotaWarning, warned.append)
    short = view.add("s")
    memory = view.add(text(view, 204))
    assert warned == []
    view.update(short.id, content="st")  # two bytes, and two for no fields
    [warning] = warned
    assert (warning.bytes_used, warning.bytes_limit, warning.percent_used) == (800, LIMIT, 80.0)
    assert (warning.plan, warning.at) == ("Small", clock())
    assert [owner.layer.value for owner in warning.owners] == ["user"]
    assert type(heard[-1]) is QuotaWarning, "it comes behind the event of the write"
    view.get(memory.id)
    view.search("x")
    view.stats()
    assert len(warned) == 1, "reading does not warn"
    view.add("y", layer="project")
    assert len(warned) == 1, "the project has a limit of its own"
    view.add("y")
    assert len(warned) == 2
    view.forget(memory.id, permanent=True)
    view.add("z")
    assert len(warned) == 2, "there is room again"


@pytest.mark.req("L13")
def test_a_process_that_opens_a_database_that_is_nearly_full_is_warned(file_opener: Opener) -> None:
    first = file_opener(plan=small()).view(user="ada")
    first.add(text(first, 100))
    memories = file_opener(plan=small())
    warned: list[QuotaWarning] = []
    memories.on(QuotaWarning, warned.append)
    memories.view(user="ada").add("y")
    assert len(warned) == 1


def test_what_was_stored_already_does_not_warn(opener: Opener) -> None:
    memories = opener(plan=small())
    view = memories.view(user="ada")
    view.add("x" * 900, key="k")
    warned: list[QuotaWarning] = []
    memories.on(QuotaWarning, warned.append)
    view.add("x" * 900, key="k")
    assert warned == []


# -- opening --------------------------------------------------------------------------------------


@one_store
def test_a_plan_can_be_given_by_name_or_as_a_value(opener: Opener) -> None:
    assert opener(plan="WriterPro").plan is Plan.WRITERPRO
    assert opener(plan=small()).plan == small()
    assert opener().plan is None


def test_a_bad_plan_opens_nothing(tmp_path: Any) -> None:
    path = tmp_path / "memory.db"
    plans: tuple[Any, ...] = ("gold", "", 7, Plan)
    refusals = {repr(plan): refusal(wellkept.open, path, plan=plan) for plan in plans}
    assert refusals == dict.fromkeys(refusals, "open: ConfigurationError of plan")
    assert not path.exists()


@one_store
def test_features_of_a_plan_of_ones_own(opener: Opener) -> None:
    plan = Plan(name="Odd", features=[Feature.LONG_TERM_MEMORY, Feature.ADVANCED_COMPACTION])
    me = opener(plan=plan, embedder=CountingEmbedder()).agent("debugger")
    me.long_term.add("green tea")
    assert not me.long_term.search("green tea").semantic
    assert SUMMING["extractive"](filled(me)).receipt.summarised
