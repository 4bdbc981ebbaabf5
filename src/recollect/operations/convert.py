"""The verb that copies one database into another: convert."""

from dataclasses import dataclass

from recollect.errors import NotACopy
from recollect.operations.verb import Caller, Example, Needs, Verb, argument
from recollect.types import ConversionReport


@dataclass(frozen=True, slots=True, kw_only=True)
class Convert:
    """From where, and into what."""

    source: str = argument("the database to copy: a path or a URL; it is only read, and can be in use")
    target: str = argument("a new one, or a copy of the source that gets what came since")


def _convert(caller: Caller, given: Convert) -> ConversionReport:
    import recollect  # lazy: the engine

    return recollect.convert(given.source, given.target, progress=caller.progress)


CONVERT = Verb(
    name="convert",
    input=Convert,
    output=ConversionReport,
    run=_convert,
    needs=Needs.ADMIN,
    errors=(NotACopy,),
    standalone=True,
    interrupted="what was copied stays; run it again to go on",
    description="Memories, their history and sessions go along; in the end source and target are compared. It can be"
    " stopped and taken up again.",
    examples=(
        Example(line="recollect convert memory.db jsonl:notes", says="into a folder that people can read"),
        Example(line="recollect convert memory.db backup.db", says="a copy; again, and it gets what came since"),
    ),
)
