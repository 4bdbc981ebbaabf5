"""Health: each component has a status of its own, and an embedder that is down is told of."""

import pytest

import wellkept
from tests.support.stand_ins import HandClock, Opener, Switched
from wellkept.errors import ConfigurationError, EmbeddingFailed, StoreError
from wellkept.settings import RetryPolicy
from wellkept.stores.ram import RamStore
from wellkept.testing import FaultyStore
from wellkept.types import Status

LONGEST_PAUSE_S = 300.0  # after so long, an embedder that was down is asked again


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.mark.req("H10")
def test_every_component_has_a_status(opener: Opener) -> None:
    memories = opener(embedder=Switched())
    memories.view(user="ada").search("tea")
    health = memories.health()
    assert (health.status, health.latency_ms >= 0) == (Status.HEALTHY, True)
    assert {name: one.status for name, one in health.components.items()} == dict.fromkeys(
        ("store", "index", "embedder", "handlers"), Status.HEALTHY
    )
    assert "words alone" in opener(name="plain").health().components["embedder"].message


@pytest.mark.req("H10", "L6")
@pytest.mark.parametrize("seen", [True, False])
def test_it_is_degraded_while_the_embedder_is_down(opener: Opener, clock: HandClock, seen: bool) -> None:
    """``seen``: a write noticed it; otherwise the health check is the first to ask."""
    embedder = Switched()
    memories = opener(embedder=embedder, clock=clock)
    view = memories.view(user="ada")
    embedder.error = ConnectionError("refused")
    if seen:
        view.add("Likes tea")
    for _ in range(3):
        health = memories.health()
        assert (health.status, health.components["embedder"].status) == (Status.DEGRADED, Status.DEGRADED)
        assert health.components["store"].status is Status.HEALTHY
    assert embedder.calls == 1
    embedder.error = None
    clock.forward(seconds=LONGEST_PAUSE_S)
    assert memories.health().status is Status.HEALTHY
    assert view.stats().embeddings_made == 0, "a health check embeds no memory"


@pytest.mark.req("H10")
def test_an_embedder_that_answered_lately_is_not_asked(opener: Opener, clock: HandClock) -> None:
    embedder = Switched()
    memories = opener(embedder=embedder, clock=clock)
    memories.view(user="ada").add("Likes tea")
    for _ in range(10):
        memories.health()
    assert embedder.calls == 1
    clock.forward(minutes=1)
    embedder.error = ConnectionError("refused")
    assert memories.health().status is Status.DEGRADED


@pytest.mark.req("H10")
def test_a_wrong_key_is_told_of(opener: Opener) -> None:
    embedder = Switched()
    embedder.error = ConfigurationError("the key was refused")
    health = opener(embedder=embedder).health()
    assert (health.status, health.components["embedder"].status) == (Status.DEGRADED, Status.UNHEALTHY)
    assert health.components["embedder"].message == "CONFIGURATION_ERROR"


@pytest.mark.req("H10")
def test_a_store_that_fails_is_unhealthy() -> None:
    store = FaultyStore(RamStore())
    with wellkept.open(store=store, embedder=Switched(), retry=RetryPolicy(attempts=1)) as memories:
        store.store.journal.settings = _fail  # type: ignore[method-assign]  # the store does not answer any more
        health = memories.health()
    assert (health.status, health.components["store"].message) == (Status.UNHEALTHY, "PROVIDER_ERROR")


def _fail() -> dict[str, str]:
    raise StoreError("gone")


@pytest.mark.req("L4", "H10")
def test_similarity_is_refused_while_the_embedder_is_down(opener: Opener, clock: HandClock) -> None:
    embedder = Switched()
    view = opener(embedder=embedder, clock=clock).view(user="ada")
    view.add("Likes tea")
    embedder.error = ConnectionError("refused")
    for _ in range(2):
        with pytest.raises(EmbeddingFailed) as caught:
            view.search("tea", ranking="similarity")
        assert (caught.value.retryable, caught.value.operation) == (True, "search")
        assert caught.value.details == {"embedder": embedder.name, "retry_after_ms": 5_000}
        assert caught.value.hint
    assert [hit.memory.content for hit in view.search("tea")] == ["Likes tea"]
    embedder.error = None
    clock.forward(seconds=5)
    assert view.search("tea", ranking="similarity").semantic
