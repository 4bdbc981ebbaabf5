"""Errors in the words of the command line: where a hint names methods and arguments of Python, commands and options."""

import re

from wellkept.cli.constants import PROGRAM, variable_of

_WORDINGS: tuple[tuple[str, str], ...] = (
    (r"pass (\w+)= as well", r"pass --\1 as well"),
    (r"pass page\.next_cursor unchanged, or none", "pass the cursor as it was printed, or leave it out"),
    (r"such as changes\(\)\.next or view\.position\(\)", "as watch --json prints it"),
    (r"\bsessions\.(\w+)\(id\)", rf"{PROGRAM} sessions \1 ID"),
    (r"; pass an embedder of your own, or None to go by words alone", ""),
    (r"\b(?:run )?doctor with repair=True", f"run {PROGRAM} doctor --repair"),
    (r"\bforget with permanent=True", f"{PROGRAM} forget --permanent"),
    (r"\bmemories that this view can get\b", f"memories that {PROGRAM} show finds"),
    (r"\bdangling=True", "--dangling"),
    (r"\bwith permanent=True", "with --permanent"),
    (r"\bmemories\.configure\(durability=\.\.\.\)", f"{PROGRAM} config --durability"),
    (r"\bmemories\.reembed\('(\w+)'\)", rf"{PROGRAM} reembed --embedder \1"),
    (r"\bmemories\.reembed\(\)", f"{PROGRAM} reembed"),
    (r"\bkeys\.list\(\) has", f"{PROGRAM} keys lists"),
    (r"\benabled=False", "--no-decay"),
    (r"\bkeyring='([^']+)'", r"--keyring \1"),
    (r"\bopen it with keyring=, or (?=set WELLKEPT_KEYRING)", ""),
    (r"\b(?:pass|open (?:it again|the database) with) keyring=", "set WELLKEPT_KEYRING"),
    (r"\beverything=true\b", "--everything"),
    (r"\buse a timedelta or a text such as", "write it such as"),
    (r"\bmemories\.upkeep\.holds\(\) lists", f"{PROGRAM} hold list shows"),
    (r"\bview\.history\(id\)", f"{PROGRAM} history ID"),
    (r"\bview\.plan_quarantine\(\)", f"{PROGRAM} quarantine plan"),
    (r"\bsession\.compact\(dry_run=True\)", f"{PROGRAM} compact ID --dry-run"),
    (r"\bsession\.configure\(\{'limit_bytes': \.\.\.\}\)", f"{PROGRAM} sessions configure ID --limit-bytes"),
    (r"\(permanent=True\)", "(--permanent)"),
    (r"(--[a-z-]+)=True\b", r"\1"),
    (r"\bthe run that quarantine\(\) returned", f"the run that {PROGRAM} quarantine made"),
)


def in_commands(text: str) -> str:
    """A message or a hint with commands and options instead of Python.

    >>> in_commands("make it with sessions.create(id)")
    'make it with wellkept sessions create ID'
    >>> in_commands("open the view with project=...")
    'pass --project ID or set WELLKEPT_PROJECT'
    """
    text = re.sub(r"open the view with (\w+)=\.\.\.", lambda found: _id_option(found[1]), text)
    for pattern, replacement in _WORDINGS:
        text = re.sub(pattern, replacement, text)
    return text


def _id_option(name: str) -> str:
    return f"pass --{name} ID or set {variable_of(name)}"
