"""Resolves an identity to the layers and owners it may read and write; and which tier a memory has."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from wellkept import validation
from wellkept.errors import InvalidInput, InvalidLayer, MissingIdentifier
from wellkept.types import Identity, Layer, Memory, MemoryType, Owner, State, Tier
from wellkept.types.owners import DEFAULT_USER

REQUIRED_IDS: Mapping[Layer, tuple[str, ...]] = MappingProxyType(
    {
        Layer.AGENT: ("user", "agent"),
        Layer.USER: ("user",),
        Layer.SESSION: ("user", "session"),
        Layer.PROJECT: ("project",),
        Layer.TEAM: ("team",),
        Layer.ORG: ("org",),
        Layer.COMPANY: ("company",),
    }
)
"""The ids that each layer needs, in the order of ``Owner.ids``."""

_NAMED = 1_000

PRECEDENCE: Mapping[Layer, int] = MappingProxyType({layer: number for number, layer in enumerate(Layer, start=1)})
"""1 for the most specific layer, 7 for the least."""


def named(identity: Identity) -> Identity:
    """The identity as a caller named it: valid ids, and not the reserved user id.

    >>> named(Identity(user="default"))
    Traceback (most recent call last):
    ...
    wellkept.errors.InvalidInput: user 'default' is reserved (leave the user out, or choose another id)
    """
    validation.identity(identity)
    if identity.user is not None:
        validation.user("user", identity.user)
    return identity


def settle(identity: Identity) -> Identity:
    """The identity with defaults filled in; ``MissingIdentifier`` if its ids give access to no layer.

    >>> settle(Identity(agent="debugger")).user
    'default'
    """
    if identity.agent is not None and identity.user is None:
        identity = Identity(
            agent=identity.agent,
            user=DEFAULT_USER,
            session=identity.session,
            project=identity.project,
            team=identity.team,
            org=identity.org,
            company=identity.company,
        )
    if identity.session is not None and identity.user is None:
        raise MissingIdentifier(
            "a session id was given without a user id",
            details={"field": "user", "layer": Layer.SESSION.value},
            hint="pass user= as well: a session belongs to a user",
        )
    if not accessible_layers(identity):
        raise MissingIdentifier(
            "no id was given, so no layer is accessible",
            details={"field": "user"},
            hint="pass at least one of agent, user, project, team, org, company",
        )
    return identity


def accessible_layers(identity: Identity) -> tuple[Layer, ...]:
    """The layers whose ids are all given, most specific first.

    >>> [layer.value for layer in accessible_layers(Identity(user="ada", team="core"))]
    ['user', 'team']
    """
    return tuple(
        layer for layer, names in REQUIRED_IDS.items() if all(getattr(identity, name) is not None for name in names)
    )


def parse_layer(value: Layer | str) -> Layer:
    """The layer of that name.

    >>> parse_layer("team") is Layer.TEAM
    True
    """
    try:
        return Layer(value)
    except ValueError:
        raise InvalidLayer(
            f"no layer is named {validation.named(value)}",
            details={"field": "layer"},
            hint=f"use one of {', '.join(Layer)}",
        ) from None


def owner_of(identity: Identity, layer: Layer | str) -> Owner:
    """The owner of an identity in a layer; ``MissingIdentifier`` if an id is missing.

    >>> owner_of(Identity(user="ada", session="monday"), "session").ids
    ('ada', 'monday')
    """
    layer = parse_layer(layer)
    names = REQUIRED_IDS[layer]
    ids = tuple(getattr(identity, name) for name in names)
    for name, value in zip(names, ids, strict=True):
        if value is None:
            raise MissingIdentifier(
                f"the {layer} layer needs {'an' if name[0] in 'ao' else 'a'} {name} id",
                details={"field": name, "layer": layer.value},
                hint=f"open the view with {name}=...",
            )
    return Owner(layer, ids)


def owners_of(identity: Identity, layers: Iterable[Layer | str] | None = None) -> tuple[Owner, ...]:
    """The owners of an identity, most specific first, in the given layers or in all it has ids for.

    >>> [owner.layer.value for owner in owners_of(Identity(user="ada", team="core"), ["team"])]
    ['team']
    """
    if layers is None:
        wanted = set(accessible_layers(identity))
    else:
        given = (layers,) if isinstance(layers, str) else validation.batch("layers", layers, _NAMED)
        wanted = {parse_layer(name) for name in given}
    return tuple(owner_of(identity, layer) for layer in sorted(wanted, key=PRECEDENCE.__getitem__))


def checked(field: str, owner: object) -> Owner:
    """An owner that a caller named: one that exists or may come to exist.

    >>> checked("owner", Owner(Layer.USER, ("ada",), "draft"))
    Traceback (most recent call last):
    ...
    wellkept.errors.InvalidInput: owner names the branch 'draft' (there are no branches yet: leave it out)
    """
    hint = "pass Owner(layer, ids) with the ids of the layer"
    if not isinstance(owner, Owner) or not isinstance(owner.layer, Layer):
        raise InvalidInput(f"{field} is not an owner", details={"field": field}, hint=hint)
    if owner.branch:
        raise InvalidInput(
            f"{field} names the branch {validation.named(owner.branch)}",
            details={"field": field},
            hint="there are no branches yet: leave it out",
        )
    needed = len(REQUIRED_IDS[owner.layer])
    if len(owner.ids) != needed:
        raise InvalidInput(
            f"the {owner.layer} layer has {needed} ids, not {len(owner.ids)}", details={"field": field}, hint=hint
        )
    for id in owner.ids:
        validation.name(field, id)
    return owner


def ordered(owners: Iterable[Owner]) -> tuple[Owner, ...]:
    """Owners in a stable order, the most specific layer first.

    >>> ada, core = Owner(Layer.USER, ("ada",)), Owner(Layer.TEAM, ("core",))
    >>> [owner.layer.value for owner in ordered({core, ada})]
    ['user', 'team']
    """
    return tuple(sorted(owners, key=lambda owner: (PRECEDENCE[owner.layer], owner.ids)))


def belongs(owner: Owner, to: Owner) -> bool:
    """Whether an owner is another one, or a session or an agent of that user.

    >>> belongs(Owner(Layer.SESSION, ("ada", "monday")), Owner(Layer.USER, ("ada",)))
    True
    >>> belongs(Owner(Layer.USER, ("ada",)), Owner(Layer.SESSION, ("ada", "monday")))
    False
    """
    return owner == to or to == user_of(owner)


def user_of(owner: Owner) -> Owner | None:
    """The user whose session or agent an owner is.

    >>> user_of(Owner(Layer.AGENT, ("ada", "debugger"))).ids
    ('ada',)
    """
    return Owner(Layer.USER, owner.ids[:1]) if owner.layer in (Layer.SESSION, Layer.AGENT) else None


_OF_ONE = frozenset({Layer.USER, Layer.AGENT})
_LIKING = frozenset({MemoryType.PREFERENCE, MemoryType.CORRECTION})
_HAPPENING = frozenset({MemoryType.CONVERSATION, MemoryType.EVENT})


def tier_of(layer: Layer, type: MemoryType | str, state: State | str, *, is_fact: bool) -> Tier:
    """The tier of a memory that nobody set: it follows from its layer, type and state, and whether it has a
    :class:`wellkept.types.Fact`.

    >>> tier_of(Layer.USER, "preference", "active", is_fact=False).value
    'personal'
    >>> tier_of(Layer.TEAM, "preference", "active", is_fact=False).value
    'semantic'
    """
    if layer is Layer.SESSION:
        return Tier.SESSION
    if state == State.ARCHIVED:
        return Tier.ARCHIVAL
    if is_fact:
        return Tier.PROCEDURAL
    if layer in _OF_ONE and type in _LIKING:
        return Tier.PERSONAL
    return Tier.EPISODIC if type in _HAPPENING else Tier.SEMANTIC


def with_tier(memory: Memory) -> Memory:
    """A memory in the tier that it belongs to now, unless a caller set one."""
    if memory.tier_set:
        return memory
    tier = tier_of(memory.owner.layer, memory.type, memory.state, is_fact=memory.fact is not None)
    return memory if memory.tier is tier else replace(memory, tier=tier)
