"""From the ids of a caller to the owners it may read and write."""

from itertools import product

import pytest

from wellkept import Identity, Layer, layers
from wellkept.errors import InvalidInput, InvalidLayer, MissingIdentifier
from wellkept.testing.cases import Cases
from wellkept.types import Owner
from wellkept.types.owners import DEFAULT_USER

NAMES = ("agent", "user", "session", "project", "team", "org", "company")
# The matrix of the source: each layer and the ids that it needs, the most specific layer first.
MATRIX = {
    "agent": ("user", "agent"),
    "user": ("user",),
    "session": ("user", "session"),
    "project": ("project",),
    "team": ("team",),
    "org": ("org",),
    "company": ("company",),
}
IDENTITIES = [
    Identity(**{name: f"my {name}" for name, given in zip(NAMES, chosen, strict=True) if given})
    for chosen in product((False, True), repeat=7)
]
SOME = [identity for identity in IDENTITIES if identity != Identity()]


def named(identity: Identity) -> str:
    return "+".join(name for name in NAMES if getattr(identity, name)) or "nobody"


def expected(identity: Identity) -> list[Owner]:
    """Every owner whose ids are all given."""
    return [
        Owner(Layer(layer), tuple(f"my {name}" for name in needed))
        for layer, needed in MATRIX.items()
        if not [name for name in needed if getattr(identity, name) is None]
    ]


@pytest.mark.req("H1")
def test_accessible_layers_follow_from_the_ids() -> None:
    with Cases() as cases:
        for identity in IDENTITIES:
            with cases.case(named(identity)):
                owners = expected(identity)
                assert list(layers.accessible_layers(identity)) == [owner.layer for owner in owners]
                assert list(layers.owners_of(identity)) == owners
                for owner in owners:
                    assert layers.owner_of(identity, owner.layer) == owner
                    assert layers.owner_of(identity, owner.layer.value) == owner
                    assert layers.owners_of(identity, [owner.layer]) == (owner,)


@pytest.mark.req("H1")
def test_a_layer_without_its_ids_is_refused() -> None:
    with Cases() as cases:
        for identity in IDENTITIES:
            with cases.case(named(identity)):
                reachable = {owner.layer for owner in expected(identity)}
                for layer in set(Layer) - reachable:
                    with pytest.raises(MissingIdentifier) as caught:
                        layers.owner_of(identity, layer)
                    first = next(name for name in MATRIX[layer] if getattr(identity, name) is None)
                    assert caught.value.details == {"field": first, "layer": layer.value}
                    assert first in caught.value.hint
                    with pytest.raises(MissingIdentifier):
                        layers.owners_of(identity, [*reachable, layer])


@pytest.mark.req("H1")
def test_settling_fills_in_the_user_of_an_agent_only() -> None:
    with Cases() as cases:
        for identity in SOME:
            with cases.case(named(identity)):
                if identity.agent is None and identity.user is None and identity.session is not None:
                    with pytest.raises(MissingIdentifier) as caught:
                        layers.settle(identity)
                    assert caught.value.details["field"] == "user"
                    continue
                settled = layers.settle(identity)
                if identity.agent is not None and identity.user is None:
                    assert settled.user == DEFAULT_USER == "default"
                    assert Owner(Layer.AGENT, ("default", "my agent")) in layers.owners_of(settled)
                else:
                    assert settled == identity
                for name in set(NAMES) - {"user"}:
                    assert getattr(settled, name) == getattr(identity, name)


@pytest.mark.req("H1")
def test_somebody_must_be_named() -> None:
    with pytest.raises(MissingIdentifier) as caught:
        layers.settle(Identity())
    assert caught.value.details["field"] == "user"
    assert "project" in caught.value.hint


@pytest.mark.req("H1", "H4")
def test_precedence_goes_from_agent_to_company() -> None:
    assert [layers.PRECEDENCE[Layer(name)] for name in NAMES] == [1, 2, 3, 4, 5, 6, 7]
    everything = Identity(**dict.fromkeys(NAMES, "x"))
    found = layers.owners_of(everything, ["company", "session", "agent", "session"])
    assert [owner.layer for owner in found] == [Layer.AGENT, Layer.SESSION, Layer.COMPANY]


NO_LAYERS: tuple[object, ...] = (
    "planet",
    "",
    "USER",
    "user ",
    5,
    None,
    [],
    10**5000,
    ("user",),
)


@pytest.mark.req("H1")
def test_an_unknown_layer_is_refused() -> None:
    with Cases() as cases:
        for bad in NO_LAYERS:
            with cases.case(type(bad)):
                with pytest.raises(InvalidLayer) as caught:
                    layers.parse_layer(bad)  # type: ignore[arg-type]  # the point of the test
                assert caught.value.details == {"field": "layer"}
                assert all(name in caught.value.hint for name in NAMES)


def test_one_layer_may_stand_for_a_list_of_one() -> None:
    ada = Identity(user="ada", team="core")
    assert layers.owners_of(ada, "team") == layers.owners_of(ada, Layer.TEAM) == (Owner(Layer.TEAM, ("core",)),)
    assert layers.owners_of(ada, []) == ()
    with pytest.raises(InvalidInput) as caught:
        layers.owners_of(ada, 5)  # type: ignore[arg-type]  # the point of the test
    assert caught.value.details["field"] == "layers"
