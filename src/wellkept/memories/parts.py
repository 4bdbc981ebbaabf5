"""The parts that a caller gives to ``open``: checked, and the embedder that fits the store."""

from dataclasses import replace
from pathlib import Path

from wellkept import plugins
from wellkept.engine.core import GIVEN, Audit, Engine
from wellkept.engine.memory_cipher import KEYRING
from wellkept.errors import ConfigurationError, EmbedderMismatch, KeyUnavailable
from wellkept.ports import Embedder, Index, Keyring, Reranker, Store, StoreSettings
from wellkept.settings import RetryPolicy
from wellkept.settings.schema import EncryptionSettings


def chosen_embedder(store: Store, wanted: Embedder | str | None) -> Embedder | None:
    """The embedder to work with: by default the one whose vectors the store holds."""
    stored = store.journal.settings().get("embedder")
    if wanted == plugins.AS_STORED:
        return None if stored == GIVEN else _stored_embedder(stored)
    chosen = plugins.open_embedder(wanted) if isinstance(wanted, str) else wanted
    if chosen is not None:
        _check_embedder(stored, chosen)
    return chosen


def _stored_embedder(stored: str | None) -> Embedder:
    if stored is None:
        return plugins.open_embedder(plugins.DEFAULT_EMBEDDER)
    try:
        chosen = plugins.open_embedder(stored)
    except ConfigurationError as error:
        raise EmbedderMismatch(
            f"the store holds vectors of {stored!r}, which is no embedder that is known here",
            details={"stored": stored},
            hint="pass embedder=, or embedder=None to go by words alone; memories.reembed() goes over to another one",
        ) from error
    _check_embedder(stored, chosen)
    return chosen


def check_parts(
    store: object = None,
    embedder: object = None,
    reranker: object = None,
    keyring: object = None,
    index: object = None,
) -> None:
    """Refuse what is no part of a database."""
    named = None if isinstance(embedder, str) else embedder
    ring = None if isinstance(keyring, str | Path) else keyring
    for field, value, kind in (
        ("store", store, Store),
        ("embedder", named, Embedder),
        ("reranker", reranker, Reranker),
        ("keyring", ring, Keyring),
        ("index", index, Index),
    ):
        if value is not None and (isinstance(value, type) or not isinstance(value, kind)):
            raise ConfigurationError(
                f"{field} is a {type(value).__name__}, which is not one",
                details={"field": field},
                hint=f"pass what wellkept.ports.{kind.__name__} describes",
            )


def encrypting(section: EncryptionSettings, encrypt: object) -> EncryptionSettings:
    """The settings with what a caller wants encrypted."""
    if encrypt in ("sensitive", "all"):
        return replace(section, encrypt=str(encrypt))
    raise ConfigurationError(
        "encrypt is neither 'sensitive' nor 'all'", details={"field": "encrypt"}, hint="pass one of the two"
    )


def chosen_keyring(store: Store, given: Keyring | str | Path | None, section: EncryptionSettings) -> Keyring | None:
    """The keyring to work with: the given one, the configured one, or the file beside the database if it is there."""
    place = section.keyring if given is None else given
    if place is None and store.path is not None and (beside := plugins.keyring_path(store.path)).exists():
        place = beside
    if place is None:
        if section.encrypt == "all":
            raise KeyUnavailable(
                "everything is to be encrypted, and there is no keyring",
                details={"field": "keyring"},
                hint="make one with 'wellkept keys init', or pass keyring=",
            )
        return None
    keyring = place if isinstance(place, Keyring) else plugins.open_keyring(place, section)
    settings = store.journal.settings()
    if isinstance(settings, StoreSettings) and KEYRING in settings.damaged and settings.fits(KEYRING, keyring.id):
        return keyring
    needed = settings.get(KEYRING)
    if needed and needed != keyring.id:
        raise KeyUnavailable(
            f"the database is encrypted by the keyring {needed!r}, not by {keyring.id!r}",
            details={"needed": needed, "given": keyring.id},
            hint="open it with the keyring that belongs to it",
        )
    return keyring


def audit(engine: Engine) -> Audit | None:
    """The audit of a database, if its settings ask for one."""
    if engine.settings.audit.file is None:
        return None
    from wellkept.privacy import audit as auditing  # lazy: few databases have one

    return auditing.opened(engine)


def checked_retry(retry: object) -> RetryPolicy:
    """The policy that a caller gave."""
    if isinstance(retry, RetryPolicy):
        return retry
    raise ConfigurationError(
        f"retry is a {type(retry).__name__}, which is no policy",
        details={"field": "retry"},
        hint="pass a wellkept.settings.RetryPolicy, such as RetryPolicy(attempts=1)",
    )


def _check_embedder(stored: str | None, embedder: Embedder) -> None:
    """The vectors of a store come from one embedder; another one's cannot be compared with them."""
    if stored not in (None, embedder.name):
        raise EmbedderMismatch(
            f"the store holds vectors of {stored!r}, not of {embedder.name!r}",
            operation="open",
            details={"stored": stored, "given": embedder.name},
            hint="to go over to it, open the store without embedder= (or with embedder=None) and run "
            "memories.reembed(embedder); otherwise open it with the embedder it holds",
        )
