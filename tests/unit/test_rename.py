"""The codemod renames what is meant, leaves alone what only has the same name, and writes nothing when unsure."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tools.rename import Refused, Renames, planned, rename

WORDS = '''"""Words."""

import re

__all__ = ["named", "Words"]
LIMIT = 3


def named(text):
    found = re.findall(r"\\w+", text)
    return [found for found in found][:LIMIT]


class Words:
    named = 1

    def of(self, found):
        return named(found), self.named
'''
USER = '''"""Uses it."""

from wellkept.text import words, words as w
from wellkept.text.words import LIMIT, named


def use(text, found=None):
    """As `wellkept.text.words:named` says, see text/words.py."""
    from wellkept.text.words import Words  # lazy: a reason

    named_alike = {"named": named(text)}
    return words.named(text), w.Words().named, Words.of, words.LIMIT, LIMIT, named_alike, found
'''
PROJECT = {
    "src/wellkept/__init__.py": "",
    "src/wellkept/text/__init__.py": 'if True:\n    on_demand(__name__, {"words": "named Words"})\n',
    "src/wellkept/text/words.py": WORDS,
    "src/wellkept/use.py": USER,
    "src/wellkept/again.py": "from wellkept.text.words import named\n\n__all__ = ['x', \"named\"]\n",
    "tests/test_use.py": 'from wellkept import again\n\nPLACE = "wellkept.text.words"\nassert again.named\n',
    "docs/page.md": "`wellkept.text.words.named` stands in `text/words.py`; other.text.words does not.\n",
}


def changed(*renames: str, **files: str) -> dict[str, str]:
    """What differs afterwards, by path."""
    project = PROJECT | files
    return {
        path: text
        for path, text in planned(project, Renames.parsed(list(renames))).items()
        if project.get(path) != text
    }


def test_a_module_moves_and_everything_that_names_it_follows() -> None:
    after = changed("wellkept.text.words=wellkept.recall.terms")
    assert after == {
        "src/wellkept/recall/terms.py": WORDS,
        "src/wellkept/use.py": USER.replace("import words, words as w", "import terms, terms as w")
        .replace("wellkept.text.words", "wellkept.recall.terms")
        .replace("from wellkept.text", "from wellkept.recall")
        .replace("text/words.py", "recall/terms.py")
        .replace("(words.", "(terms.")
        .replace(" words.", " terms."),
        "src/wellkept/again.py": PROJECT["src/wellkept/again.py"].replace("text.words", "recall.terms"),
        "tests/test_use.py": PROJECT["tests/test_use.py"].replace("text.words", "recall.terms"),
        "docs/page.md": "`wellkept.recall.terms.named` stands in `recall/terms.py`; other.text.words does not.\n",
    }


def test_a_name_changes_where_it_is_meant_and_where_it_is_offered_again() -> None:
    after = changed("wellkept.text.words:named=terms_of")
    assert after["src/wellkept/text/words.py"] == WORDS.replace("def named", "def terms_of").replace(
        "return named", "return terms_of"
    ).replace('["named"', '["terms_of"'), "neither the attribute of the class nor another string"
    assert after["src/wellkept/use.py"] == USER.replace("LIMIT, named\n", "LIMIT, terms_of\n").replace(
        "named(text)", "terms_of(text)"
    ).replace("words:named", "words:terms_of")
    assert after["src/wellkept/again.py"] == PROJECT["src/wellkept/again.py"].replace("named", "terms_of")
    assert after["tests/test_use.py"] == PROJECT["tests/test_use.py"].replace("named", "terms_of")
    assert '{"words": "terms_of Words"}' in after["src/wellkept/text/__init__.py"]
    assert "`wellkept.text.words.terms_of` stands" in after["docs/page.md"]


def test_a_local_variable_changes_in_its_function_alone() -> None:
    after = changed("wellkept.text.words:named.found=terms")
    inner = '    terms = re.findall(r"\\w+", text)\n    return [found for found in terms][:LIMIT]\n'
    assert list(after) == ["src/wellkept/text/words.py"]
    assert inner in after["src/wellkept/text/words.py"]
    assert "def of(self, found):\n        return named(found)" in after["src/wellkept/text/words.py"]


def test_two_modules_become_one() -> None:
    after = changed("wellkept.text.words=wellkept.use")
    assert "src/wellkept/text/words.py" not in after
    text = after["src/wellkept/use.py"]
    assert text.index("def named") < text.index("def use"), "what was imported is defined before it is used"
    assert "return named(text), Words().named, Words.of, LIMIT, LIMIT, named_alike, found" in text
    assert "from wellkept" not in text
    compile(text, "use.py", "exec")
    assert "from wellkept.use import named" in after["src/wellkept/again.py"]


def test_what_is_unsafe_is_refused_by_place_and_nothing_is_planned() -> None:
    refused = {
        "wellkept.text.words:Words.of.found=terms": "src/wellkept/text/words.py:17: found is no variable",
        "wellkept.text.words:named=Words": "src/wellkept/text/words.py:9: Words is taken there",
        "wellkept.text.words:LIMIT=text": "src/wellkept/use.py:12: text is taken there",
        "wellkept.use=wellkept.text": "of a package and a module no merger is made",
        "wellkept.nothing=wellkept.text": "wellkept.nothing: there is no such module",
        "wellkept.use:nothing=something": "wellkept.use.nothing: its module defines no such thing",
        "wellkept.use:nothing": "write old.module=new.module",
    }
    words = {}
    for argument in refused:
        try:
            changed(argument)
        except Refused as error:
            words[argument] = str(error)
    assert {argument: text for argument, text in refused.items() if text not in words.get(argument, "")} == {}, words


def test_it_writes_into_a_repository(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    git("init", "--quiet")
    for path, text in PROJECT.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    (tmp_path / "src/wellkept/text/table.bin").write_bytes(b"\0\1")
    git("add", "--all")
    lines = list(rename(tmp_path, Renames.parsed(["wellkept.text=wellkept.language"])))
    assert "src/wellkept/text/table.bin -> src/wellkept/language/table.bin" in lines
    assert not (tmp_path / "src/wellkept/text").exists()
    assert "from wellkept.language.words import LIMIT, named" in (tmp_path / "src/wellkept/use.py").read_text()
    assert (tmp_path / "src/wellkept/language/table.bin").read_bytes() == b"\0\1"


def test_prose_is_changed_by_whole_names() -> None:
    renames = Renames.parsed(["wellkept.text.words=wellkept.text.terms"])
    changes = (
        "wellkept.text.words",
        "wellkept/text/words.py",
        "src/wellkept/text/words.py",
        "text/words",
        "text.words:x",
    )
    assert [renames.in_text(text) for text in changes] == [text.replace("words", "terms") for text in changes]
    others = ("wellkept.text.words_of", "my.wellkept.text.words", "other/text/words", "words", "text.wordsworth")
    assert [renames.in_text(text) for text in others] == list(others)
