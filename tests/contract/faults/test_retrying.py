"""Repeating what failed and is safe to repeat, and leaving an embedder alone that does not answer."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wellkept
from tests.support.refusals import refusal
from tests.support.stand_ins import HandClock, Opener, Switched, embedders, sequence, set_sleep
from wellkept.errors import (
    ConfigurationError,
    EmbeddingFailed,
    RateLimited,
    StoreBusy,
    StoreError,
    StoreFull,
    WellkeptError,
)
from wellkept.settings import RetryPolicy
from wellkept.stores.ram import RamStore
from wellkept.testing import FaultyStore

FIRST_PAUSE_S = 5
"""How long an embedder is left alone after its first failure."""


class Sleeper(list[float]):
    """Notes each pause, and lets the time pass."""

    def __init__(self, clock: HandClock) -> None:
        super().__init__()
        self._clock = clock

    def __call__(self, seconds: float) -> None:
        self.append(seconds)
        self._clock.forward(seconds=seconds)


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def store() -> FaultyStore:
    return FaultyStore(RamStore())


@pytest.fixture
def pauses(clock: HandClock) -> Sleeper:
    return Sleeper(clock)


@pytest.fixture
def faulty(store: FaultyStore, clock: HandClock, pauses: Sleeper) -> wellkept.Memories:
    memories = wellkept.open(store=store, clock=clock, embedder=None)
    set_sleep(memories, pauses)
    return memories


# --- the policy -----------------------------------------------------------------------------------


@pytest.mark.req("H10")
def test_the_policy_is_that_of_the_source() -> None:
    policy = RetryPolicy()
    assert (policy.attempts, policy.initial_delay_s, policy.max_delay_s, policy.multiplier) == (3, 1.0, 30.0, 2.0)
    assert policy.codes == ("EMBEDDING_FAILED", "PROVIDER_ERROR", "RATE_LIMITED")


@pytest.mark.req("H10")
@given(
    st.builds(
        RetryPolicy,
        attempts=st.integers(1, 20),
        initial_delay_s=st.floats(0, 100),
        max_delay_s=st.floats(0, 100),
        multiplier=st.floats(1, 10),
    ),
    st.integers(0, 200_000),
)
def test_pauses_grow_up_to_the_longest_and_keep_what_the_server_asks_for(policy: RetryPolicy, asked_ms: int) -> None:
    error = RateLimited("wait", details={"retry_after_ms": asked_ms})
    pauses = [policy.pause_s(error, failures) for failures in range(1, policy.attempts + 1)]
    assert pauses[-1] is None
    if asked_ms / 1000 > policy.max_delay_s:
        assert set(pauses) == {None}
        return
    known = [pause for pause in pauses if pause is not None]
    assert len(known) == policy.attempts - 1
    assert known == sorted(known)
    assert all(asked_ms / 1000 <= pause <= policy.max_delay_s for pause in known)


@pytest.mark.req("H10")
def test_a_wish_that_is_no_number_is_not_heeded() -> None:
    wishes: tuple[object, ...] = ("soon", None, -5, [1])
    pauses = {
        str(asked): RetryPolicy().pause_s(RateLimited("wait", details={"retry_after_ms": asked}), 1) for asked in wishes
    }
    assert pauses == dict.fromkeys(pauses, 1.0)


@pytest.mark.req("H10")
def test_a_policy_that_makes_no_sense_is_refused() -> None:
    policies: list[dict[str, Any]] = [
        {"attempts": 0},
        {"attempts": 1.5},
        {"multiplier": 0.5},
        {"codes": ["CONFLICT"]},
        {"max_delay_s": -1},
    ]
    for_whom: dict[str, Callable[[dict[str, Any]], object]] = {
        "in the settings": lambda wrong: wellkept.open("ram:", settings={"retry": wrong}),
        "by itself": lambda wrong: RetryPolicy(**wrong),
        "as it is": lambda wrong: wellkept.open("ram:", retry=wrong),  # type: ignore[arg-type]  # that is the point
    }
    refusals = {f"{how} {wrong}": refusal(call, wrong) for wrong in policies for how, call in for_whom.items()}
    wrongly = {asked: answer for asked, answer in refusals.items() if ": ConfigurationError of " not in answer}
    assert wrongly == {}
    as_it_is = {asked: answer for asked, answer in refusals.items() if asked.startswith("as it is")}
    assert as_it_is == dict.fromkeys(as_it_is, "open: ConfigurationError of retry")


@pytest.mark.req("H10")
def test_it_is_read_from_file_and_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: FaultyStore, clock: HandClock, pauses: Sleeper
) -> None:
    file = tmp_path / "wellkept.toml"
    file.write_text('[retry]\nattempts = 5\nmultiplier = 3\ncodes = ["RATE_LIMITED"]\n')
    monkeypatch.setenv("WELLKEPT_RETRY_ATTEMPTS", "4")
    monkeypatch.setenv("WELLKEPT_RETRY_CODES", "STORE_BUSY, RATE_LIMITED")
    with wellkept.open(store=store, clock=clock, embedder=None, config=file) as memories:
        set_sleep(memories, pauses)
        view = memories.view(user="ada")
        for error, expected in (
            (StoreBusy("locked"), [1.0, 3.0, 9.0]),
            (RateLimited("wait"), [1.0, 3.0, 9.0]),
            (StoreError("reset"), []),
        ):
            for call in (1, 2, 3, 4):
                store.fail("get", error, call=call)
            pauses.clear()
            with pytest.raises(type(error)):
                view.get("nothing")
            assert pauses == expected, error


# --- the store ------------------------------------------------------------------------------------


@pytest.mark.req("H10", "L1")
@pytest.mark.parametrize("after", [False, True])
def test_an_append_is_repeated_and_stored_once(
    store: FaultyStore, faulty: wellkept.Memories, pauses: Sleeper, after: bool
) -> None:
    """``after``: the write was made, and only the answer was lost."""
    view = faulty.view(user="ada")
    store.fail("append", StoreError("the connection was lost"), after=after)
    memory = view.add("Likes tea")
    store.fail("append", StoreError("the connection was lost"), after=after)
    view.update(memory.id, content="Likes cake")
    store.fail("append", StoreError("the connection was lost"), after=after)
    assert view.forget(memory.id)
    assert pauses == [1.0, 1.0, 1.0]
    assert [version.operation.value for version in view.history(memory.id)] == ["added", "updated", "forgotten"]
    store.fail("append", StoreError("the connection was lost"), after=after)
    assert view.forget(memory.id, permanent=True)
    assert sequence(faulty) == 4


@pytest.mark.req("H10")
def test_a_read_is_repeated_until_the_attempts_are_used_up(
    store: FaultyStore, faulty: wellkept.Memories, pauses: Sleeper
) -> None:
    view = faulty.view(user="ada")
    memory = view.add("Likes tea")
    for call in (1, 2):
        store.fail("get", StoreError("reset"), call=call)
    assert view.get(memory.id) is not None
    assert pauses == [1.0, 2.0]
    for call in (1, 2, 3):
        store.fail("get", StoreError("reset"), call=call)
    with pytest.raises(StoreError) as caught:
        view.get(memory.id)
    assert caught.value.operation == "get"
    assert pauses == [1.0, 2.0, 1.0, 2.0]


@pytest.mark.req("H10")
@pytest.mark.parametrize("error", [StoreFull("full"), StoreBusy("locked for 30 s"), ConfigurationError("wrong")])
def test_other_errors_are_not_repeated(
    store: FaultyStore, faulty: wellkept.Memories, pauses: Sleeper, error: WellkeptError
) -> None:
    store.fail("append", error)
    with pytest.raises(type(error)):
        faulty.view(user="ada").add("Likes tea")
    assert (pauses, store.calls["append"]) == ([], 1)


@pytest.mark.req("H10")
def test_what_would_count_twice_is_not_repeated(store: FaultyStore, faulty: wellkept.Memories, pauses: Sleeper) -> None:
    view = faulty.view(user="ada")
    memory = view.add("Likes tea")
    view.get(memory.id)
    store.fail("count_accesses", StoreError("lost", details={"outcome": "unknown"}), after=True)
    assert [one.access_count for one in view.list(sort_by="most_accessed")] == [1]
    assert [one.access_count for one in view.list(sort_by="most_accessed")] == [1]
    assert (pauses, store.calls["count_accesses"]) == ([], 1)


# --- the embedder ---------------------------------------------------------------------------------


@pytest.mark.req("H10", "L1")
def test_an_embedder_is_asked_again_before_a_memory_is_stored_without_a_vector(opener: Opener) -> None:
    cases: list[tuple[Exception, list[float]]] = [
        (ConnectionError("refused"), [1.0, 2.0]),
        (EmbeddingFailed("no"), [1.0, 2.0]),
        (RateLimited("wait", details={"retry_after_ms": 1_500}), [1.5, 2.0]),
        (RateLimited("wait", details={"retry_after_ms": 60_000}), []),
    ]
    answers = []
    for number, (error, _) in enumerate(cases):
        embedder, clock = Switched(), HandClock()
        pauses = Sleeper(clock)
        memories = opener(embedder=embedder, clock=clock, retry=None, name=f"memory {number}")
        set_sleep(memories, pauses)
        view = memories.view(user="ada")
        embedder.error = error
        view.add("Likes tea")
        answers.append((error, pauses, embedder.calls, embedders(view)))
    assert answers == [(error, pauses, len(pauses) + 1, {"Likes tea": None}) for error, pauses in cases]


@pytest.mark.req("H10", "L1")
def test_a_failure_that_passes_leaves_no_gap(opener: Opener, clock: HandClock, pauses: Sleeper) -> None:
    class Once(Switched):
        def embed(self, texts: Sequence[str]) -> list[Any]:
            if self.calls == 1:
                self.error = None
            return super().embed(texts)

    embedder = Once()
    embedder.error = ConnectionError("reset")
    memories = opener(embedder=embedder, clock=clock, retry=None)
    set_sleep(memories, pauses)
    view = memories.view(user="ada")
    view.add("Likes tea")
    assert (pauses, embedders(view)) == ([1.0], {"Likes tea": embedder.name})
    assert "behind" not in memories.settings()


@pytest.mark.req("H10", "L1")
def test_a_dead_embedder_is_not_asked_at_every_call(opener: Opener, clock: HandClock, pauses: Sleeper) -> None:
    embedder = Switched()
    memories = opener(embedder=embedder, clock=clock, retry=None)
    set_sleep(memories, pauses)
    view = memories.view(user="ada")
    embedder.error = ConnectionError("refused")
    view.add("Likes tea")
    assert embedder.calls == 3
    for number in range(20):
        view.add(f"memory {number}")
        assert not view.search("tea").semantic
    assert (embedder.calls, len(pauses)) == (3, 2)
    clock.forward(seconds=FIRST_PAUSE_S)
    view.add("one more")
    view.add("another")
    assert (embedder.calls, len(pauses)) == (4, 2), "after the pause it is asked once, and no call is repeated"
    clock.forward(seconds=FIRST_PAUSE_S)
    view.add("too early")
    assert embedder.calls == 4
    embedder.error = None
    clock.forward(seconds=2 * FIRST_PAUSE_S)
    assert view.search("tea").semantic
    view.add("all is well")
    assert set(embedders(view).values()) == {embedder.name}
    assert "behind" not in memories.settings()


@pytest.mark.req("H10", "L1")
def test_a_longer_pause_is_kept_if_the_server_asks_for_it(opener: Opener, clock: HandClock) -> None:
    embedder = Switched()
    view = opener(embedder=embedder, clock=clock).view(user="ada")
    embedder.error = RateLimited("wait", details={"retry_after_ms": 600_000})
    view.add("Likes tea")
    clock.forward(seconds=599)
    view.add("Likes cake")
    assert embedder.calls == 1
    clock.forward(seconds=1)
    view.add("Likes bread")
    assert embedder.calls == 2


@pytest.mark.req("H10")
def test_a_refusal_is_told_to_every_caller(opener: Opener, clock: HandClock) -> None:
    """It was down, and now it answers that the key is wrong: that is no reason to leave it alone."""
    embedder = Switched()
    memories = opener(embedder=embedder, clock=clock)
    view = memories.view(user="ada")
    embedder.error = ConnectionError("refused")
    view.add("Likes tea")
    embedder.error = ConfigurationError("wrong key")
    clock.forward(seconds=FIRST_PAUSE_S)
    for _ in range(2):
        with pytest.raises(ConfigurationError):
            view.add("Likes cake")
        assert memories.health().components["embedder"].message == "CONFIGURATION_ERROR"


@pytest.mark.req("L1")
def test_reembedding_asks_at_once(opener: Opener, clock: HandClock) -> None:
    embedder = Switched()
    memories = opener(embedder=embedder, clock=clock)
    view = memories.view(user="ada")
    embedder.error = ConnectionError("refused")
    view.add("Likes tea")
    embedder.error = None
    assert memories.reembed() == 1
    assert view.search("tea").semantic


@pytest.mark.req("H10", "L1")
def test_a_process_that_finds_vectors_missing_asks_once(file_opener: Opener, clock: HandClock, pauses: Sleeper) -> None:
    embedder = Switched()
    embedder.error = ConnectionError("refused")
    file_opener(embedder=embedder, clock=clock).view(user="ada").add("Likes tea")
    file_opener.close()
    later = file_opener(embedder=embedder, clock=clock, retry=None)
    set_sleep(later, pauses)
    later.view(user="ada").add("Likes cake")
    assert (embedder.calls, pauses) == (2, [])
