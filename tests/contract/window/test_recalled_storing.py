"""What was recalled into a text is not stored a second time, whichever way the text comes in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wellkept
from tests.support.stand_ins import CountingEmbedder, Opener
from tests.support.window_items import DAY, HOSTILE, block, entry, memory
from wellkept import Memories, NewMemory, View
from wellkept.errors import InvalidInput
from wellkept.window import ContextWindow

BLOCK = block(memory("Likes tea", "m1"), memory("Lives in\nRome", "m2"))
SPEAKS_OF_IT = 'The block begins with <recalled-memories as-of="..."> and ends with </recalled-memories>. \n'


def test_an_agent_that_stores_its_whole_prompt_stores_what_was_said(memories: Memories) -> None:
    me = memories.agent("debugger", user="ada")
    known = me.long_term.add("Indentation is done with tabs")
    me.context.add("user", "How is indentation done?")
    prompt = me.context.compose("indentation", budget_tokens=300)
    assert known.content in prompt.text
    stored = me.long_term.add(prompt.text)
    assert stored.content == "[user]\nHow is indentation done?"
    assert me.long_term.count(filter={"content_contains": "tabs"}) == 1


def test_every_way_to_store_leaves_it_out(view: View) -> None:
    text = f"{BLOCK}\nTea it is."
    assert view.add(text).content == "Tea it is."
    assert [one.content for one in view.add_many([text, NewMemory(content=text)])] == ["Tea it is."] * 2
    changed = view.update(view.add("Coffee").id, content=text)
    assert (changed.content, changed.version) == ("Tea it is.", 2)
    again = view.update(changed.id, content=text)
    assert again.version == 2, "the same words change nothing"


def test_a_key_stands_for_the_words_that_were_stored(view: View) -> None:
    first = view.add(f"{BLOCK}\nTea it is.", key="turn-1")
    assert view.add("Tea it is.", key="turn-1").id == first.id


def test_only_what_is_stored_is_embedded(opener: Opener) -> None:
    embedder = CountingEmbedder()
    view = opener(embedder=embedder).view(user="ada")
    view.add(f"{BLOCK}\nTea it is.")
    assert [text for batch in embedder.batches for text in batch] == ["Tea it is."]


def test_a_text_with_nothing_else_in_it_is_refused_and_nothing_is_changed(view: View) -> None:
    kept = view.add("Coffee")
    window = ContextWindow(1_000)
    for text in (BLOCK, f"\n {BLOCK}\n\n", entry(memory("secret tea"))):
        for store in (
            lambda text=text: view.add(text),
            lambda text=text: view.add_many(["Milk", text]),
            lambda text=text: view.update(kept.id, content=text),
            lambda text=text: window.add("user", text, created_at=DAY),
        ):
            with pytest.raises(InvalidInput, match="nothing but recalled memories") as caught:
                store()
            assert caught.value.details["field"] in ("content", "item.content")
            assert caught.value.hint
            assert "tea" not in str(caught.value)
    assert [one.content for one in view.list()] == ["Coffee"]
    assert (window.items, window.tokens_used) == ((), 0)


def test_a_text_that_speaks_of_the_marks_is_stored_to_the_last_character(view: View) -> None:
    assert view.add(SPEAKS_OF_IT).content == SPEAKS_OF_IT
    assert view.update(view.add("x").id, content=SPEAKS_OF_IT).content == SPEAKS_OF_IT
    assert ContextWindow(1_000).add("user", SPEAKS_OF_IT, created_at=DAY).content == SPEAKS_OF_IT


def test_the_context_holds_what_was_said_and_counts_that() -> None:
    window = ContextWindow(1_000, counter=len)
    item = window.add("assistant", f"Yes.\n{BLOCK}\nTea it is.", created_at=DAY)
    assert (item.content, item.tokens) == ("Yes.\nTea it is.", len("Yes.\nTea it is."))


@given(st.lists(st.sampled_from(HOSTILE) | st.text(max_size=30), min_size=1, max_size=4))
def test_no_memory_whatever_it_says_comes_back_as_something_new(contents: list[str]) -> None:
    recalled = block(*(memory(content, f"m{n}") for n, content in enumerate(contents)))
    with wellkept.open("ram:", embedder=None) as database:
        assert database.view(user="ada").add(f"Before.\n{recalled}\nAfter.").content == "Before.\nAfter."


def test_what_is_no_text_is_refused_as_ever(view: View) -> None:
    for wrong in (None, 3, b"recalled-memor"):
        with pytest.raises(InvalidInput, match="must be text"):
            view.add(wrong)  # type: ignore[arg-type]  # the point
