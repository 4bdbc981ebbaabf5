"""The scope of a view: whose memories it sees, and whose a new memory becomes."""

from collections.abc import Callable, Iterable, Mapping

from wellkept import layers, validation
from wellkept.errors import InvalidInput, InvalidLayer
from wellkept.types import DecayPolicy, Identity, Layer, NewMemory, Owner

Policies = Mapping[Owner, DecayPolicy]
"""How the memories of some owners fade; those of all others as usual."""


class Scope:
    """The owners of an identity, or only some of them, each decaying as its policy says.

    >>> [owner.layer.value for owner in Scope(Identity(user="ada", team="core")).owners_in(["team"])]
    ['team']
    """

    def __init__(
        self,
        identity: Identity,
        only: Iterable[Owner] | None = None,
        policies: Callable[[], Policies] = dict,
    ) -> None:
        self._identity = identity
        self._narrowed = only is not None
        given = layers.owners_of(identity) if only is None else tuple(only)
        self.owners = frozenset(given)
        self.policies = policies
        self._in_layer: dict[str, Owner] = {owner.layer.value: owner for owner in given}

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The layers of the owners, the most specific first."""
        return tuple(map(Layer, self._in_layer))

    def owners_in(self, wanted: Iterable[Layer | str] | None) -> frozenset[Owner]:
        """The owners in some layers; an error for a layer that is out of scope."""
        if wanted is None:
            return self.owners
        if not self._narrowed:
            return frozenset(layers.owners_of(self._identity, wanted))
        given = (wanted,) if isinstance(wanted, str) else validation.batch("layers", wanted, 1_000)
        chosen = {self._checked(layer) for layer in given}
        return frozenset(owner for owner in self.owners if owner.layer in chosen)

    def owner_of(self, new: NewMemory) -> Owner:
        """Whose a new memory will be: in the layer it names, or in the most specific one."""
        if not isinstance(new, NewMemory):
            raise InvalidInput(
                f"add takes texts, JSON objects or NewMemory values, not {type(new).__name__}",
                details={"field": "content"},
                hint="pass a str or wellkept.NewMemory(content=...)",
            )
        layer: object = new.layer
        if layer is None:
            return next(iter(self._in_layer.values()))
        known = self._in_layer.get(layer) if isinstance(layer, str) else None
        if known is None and self._narrowed:
            self._checked(new.layer or "")
        return known or layers.owner_of(self._identity, new.layer or "")

    def _checked(self, name: Layer | str) -> Layer:
        layer = layers.parse_layer(name)
        if layer not in self._in_layer:
            raise InvalidLayer(
                f"this view does not see the {layer} layer",
                details={"field": "layer", "layer": layer.value},
                hint="use memories.view(...) with the ids of that layer",
            )
        return layer
