"""The verb that copies one database into another: convert."""

from dataclasses import dataclass

from wellkept.errors import NotACopy
from wellkept.operations.verb import Caller, Example, Verb, argument
from wellkept.types import ConversionReport, Need
from wellkept.types.bounds import Bounds

_URL = Bounds(max_length=4_096)


@dataclass(frozen=True, slots=True, kw_only=True)
class Convert:
    """What to copy, and where to."""

    source: str = argument("The database to copy, a path or a URL; it is only read, and may be in use.", bounds=_URL)
    target: str = argument("A new database, or an earlier copy of the source to bring up to date.", bounds=_URL)


def _convert(caller: Caller, given: Convert) -> ConversionReport:
    import wellkept  # lazy: the engine

    return wellkept.convert(given.source, given.target, progress=caller.progress)


CONVERT = Verb(
    name="convert",
    input=Convert,
    output=ConversionReport,
    run=_convert,
    method=Need.ADMIN,
    errors=(NotACopy,),
    standalone=True,
    interrupted="what was copied stays; run it again to continue",
    description="Copies memories with their history, and sessions, and compares source and target in the end. It can"
    " be stopped and continued.",
    examples=(
        Example(line="wellkept convert memory.db jsonl:notes", says="into a folder that people can read"),
        Example(line="wellkept convert memory.db backup.db", says="a copy; run again, it adds what is new"),
    ),
)
