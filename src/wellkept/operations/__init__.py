"""The verbs: each exists once in a table, is called by one dispatcher, and every surface derives from both.

To add a verb: write its input (a frozen dataclass whose fields are made by ``option`` and ``argument``), its answer
(a value of the engine, or one of its own), a function that runs it, and its ``Verb``, a constant of its name, which
names the method that it calls, in one of the modules here; enter it in ``table``, and the fields of its answer in
``properties``. The command line, its help, completion, schemas and documentation follow from these.
"""

from wellkept.operations.dispatcher import Request, call, find, request, schema
from wellkept.operations.failures import EXIT_CODES, FAILURES, Failure, Report, failure_of, report
from wellkept.operations.table import LISTED, VERBS, family
from wellkept.operations.verb import (
    EVERYWHERE,
    Caller,
    Example,
    Listed,
    Parameter,
    Progress,
    Section,
    Takes,
    Verb,
    parameter_of,
)

__all__ = [
    "EVERYWHERE",
    "EXIT_CODES",
    "FAILURES",
    "LISTED",
    "VERBS",
    "Caller",
    "Example",
    "Failure",
    "Listed",
    "Parameter",
    "Progress",
    "Report",
    "Request",
    "Section",
    "Takes",
    "Verb",
    "call",
    "failure_of",
    "family",
    "find",
    "parameter_of",
    "report",
    "request",
    "schema",
]
