"""The verb that searches."""

from dataclasses import dataclass
from datetime import datetime

from recollect.errors import EmbeddingFailed, InvalidLayer, QueryTooLong, RateLimited
from recollect.operations.conditions import Narrowed
from recollect.operations.verb import Caller, Example, Needs, Takes, Verb, argument, option
from recollect.types import Ranking, Results


@dataclass(frozen=True, slots=True, kw_only=True)
class Search(Narrowed):
    """What to look for."""

    query: str = argument("what to look for, in your own words", takes=Takes.WORDS)
    limit: int = option("at most so many", 10, short="n")
    min_score: float | None = option("only with this score or more; 0 gives whatever comes nearest")
    ranking: Ranking = option("what puts one hit before another", Ranking.BEST)
    asked_at: datetime | None = option("when it was asked, for words such as yesterday")
    explain: bool = option("say what each signal added to the score", False, short="x")


def _search(caller: Caller, given: Search) -> Results:
    return caller.view.search(
        given.query,
        limit=given.limit,
        min_score=given.min_score,
        ranking=given.ranking,
        asked_at=given.asked_at,
        explain=given.explain,
        **given.wanted(),
    )


SEARCH = Verb(
    name="search",
    input=Search,
    output=Results,
    run=_search,
    needs=Needs.READ,
    errors=(InvalidLayer, QueryTooLong, EmbeddingFailed, RateLimited),
    description="Scores go from 0 to 1. If nothing seems to be about the question, nothing is found.",
    examples=(
        Example(line="recollect search what theme does she like", says="by meaning and by words"),
        Example(line="recollect search theme --explain", says="why each memory was found, as bars"),
        Example(line="recollect search 'secur*' --type decision --within 30d", says="decisions of the last month"),
        Example(line="recollect search theme --json --limit 3", says="for a program"),
    ),
)
