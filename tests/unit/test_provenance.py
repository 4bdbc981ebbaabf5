"""No source is trusted further by what is said about it."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from wellkept import NewMemory
from wellkept.engine import drafts
from wellkept.lifecycle import trust
from wellkept.testing.builders import START, owner
from wellkept.types import KnowledgePointer, Memory, PointerType, Source, SourceType

POINTER = KnowledgePointer(source_type=PointerType.SPEC, source_id="spec-1", content_hash="sha256:00", synced_at=START)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "source": st.none() | st.sampled_from(SourceType).map(lambda kind: Source(type=kind)),
            "role": st.none() | st.sampled_from(("user", "assistant", "tool", "narrator")),
            "pointer": st.none() | st.just(POINTER),
            "trust": st.none() | st.floats(0, 1),
        },
    ),
    st.fixed_dictionaries({}, optional={"trust": st.floats(0, 1), "title": st.just("Tea"), "tags": st.just([])}),
)
def test_neither_what_is_given_nor_a_change_raises_the_trust_of_a_source(
    fields: dict[str, Any], changes: dict[str, Any]
) -> None:
    memory: Memory = drafts.draft(NewMemory(content="x", **fields), owner("ada"), START, "m1")
    known = [fields[name] for name in ("source", "role", "pointer") if fields.get(name) is not None]
    extracted = [one for one in known if one == Source(type=SourceType.EXTRACTED)]
    if known != extracted:
        assert memory.trust <= trust.of({**fields, "trust": None})
    assert drafts.updated(memory, changes, START).trust <= memory.trust  # type: ignore[arg-type]
