"""More specific layers override less specific ones that answer the same question differently."""

import pytest

from tests.support.stand_ins import Opener
from tests.support.terminal import Terminal
from wellkept import Memories
from wellkept.errors import InvalidInput, InvalidLayer


@pytest.mark.req("H4", "N4")
def test_searches_and_prompts_override_by_default(memories: Memories) -> None:
    ada = memories.view(agent="helper", user="ada", project="api", company="acme")
    company = ada.add("Use spaces for indentation", layer="company")
    project = ada.add("Indent with tabs", layer="project")
    asked = "indent indentation tabs spaces"
    [hit] = ada.search(asked, min_score=0)
    assert (hit.memory.id, hit.overrides) == (project.id, (company.id,))
    both = {one.memory.id: one.overrides for one in ada.search(asked, min_score=0, overridden=True)}
    assert both == {project.id: (company.id,), company.id: ()}
    [other] = ada.search(asked, min_score=0, precedence=["company"])
    assert other.memory.id == company.id
    assert [one.memory.id for one in ada.search(asked, min_score=0, layers=["company"])] == [company.id]
    with memories.agent("helper", user="ada", project="api", company="acme") as me:
        text = me.context.compose(asked, budget_tokens=500).text
    assert "spaces" not in text


@pytest.mark.req("H4", "N4")
def test_the_order_of_layers_is_a_setting_for_searches_and_prompts(opener: Opener) -> None:
    memories = opener(settings={"recall": {"precedence": ["company"]}})
    ada = memories.view(agent="helper", user="ada", project="api", company="acme")
    company = ada.add("Use spaces for indentation", layer="company")
    project = ada.add("Indent with tabs", layer="project")
    asked = "indent indentation tabs spaces"
    [hit] = ada.search(asked, min_score=0)
    assert (hit.memory.id, hit.overrides) == (company.id, (project.id,))
    [other] = ada.search(asked, min_score=0, precedence=["project"])
    assert other.memory.id == project.id
    with memories.agent("helper", user="ada", project="api", company="acme") as me:
        text = me.context.compose(asked, budget_tokens=500).text
    assert ("spaces" in text, "tabs" in text) == (True, False)


@pytest.mark.req("H4", "N4")
def test_facts_of_one_slot_override(memories: Memories) -> None:
    ada = memories.view(user="ada", team="core")
    team = ada.facts.add("api", "is written in", "Go", layer="team", content="Our api speaks Go")
    user = ada.facts.add("api", "is written in", "Rust", layer="user", content="The api was moved to Rust")
    [hit] = ada.search("api", min_score=0)
    assert (hit.memory.id, hit.overrides) == (user.id, (team.id,))


@pytest.mark.req("H4")
def test_who_is_meant_matters(memories: Memories) -> None:
    ada = memories.view(user="ada", project="api")
    ids = {ada.add("Ann works in Berlin", layer="user").id, ada.add("Bob works in Berlin", layer="project").id}
    assert {hit.memory.id for hit in ada.search("works in Berlin", min_score=0)} == ids


def test_bad_input_is_refused(memories: Memories) -> None:
    view = memories.view(user="ada")
    with pytest.raises(InvalidLayer):
        view.search("tea", precedence=["galaxy"])  # type: ignore[list-item]
    with pytest.raises(InvalidInput):
        view.search("tea", precedence=7)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        view.search("tea", overridden="yes")  # type: ignore[arg-type]


def test_the_command_line_shows_the_losers_on_demand(terminal: Terminal) -> None:
    who = ("--user", "ada", "--company", "acme")
    terminal.json("add", "Indent with tabs", "--layer", "user", *who)
    terminal.json("add", "Indent with spaces", "--layer", "company", *who)
    asked = ("search", "indent", "--min-score", "0", *who)
    assert len(terminal.json(*asked)["hits"]) == 1
    assert len(terminal.json(*asked, "--overridden")["hits"]) == 2
    [hit] = terminal.json(*asked, "--precedence", "company")["hits"]
    assert hit["memory"]["content"] == "Indent with spaces"
    prompts = [terminal.json("context", "indent", *who, *more)["text"] for more in ((), ("--precedence", "company"))]
    assert [("tabs" in text, "spaces" in text) for text in prompts] == [(True, False), (False, True)]
