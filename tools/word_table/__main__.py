"""Make the table of the built-in embedder: ``python -m tools.word_table --cache /a/folder``.

Needs ``wellkept[local]`` for the teacher, and the Debian packages ``wordnet-base`` and ``wamerican`` or their files
elsewhere. The teacher's vectors are kept in the cache: what was embedded before is not embedded again.
"""

import argparse
import sys
from pathlib import Path

from tools.word_table import making
from wellkept.embedders import word_table


def main() -> None:
    """Read the arguments, and make the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, required=True, help="a folder for the teacher's vectors")
    parser.add_argument("--wordnet", type=Path, default=Path("/usr/share/wordnet"), help="WordNet's database files")
    parser.add_argument("--words", type=Path, default=Path("/usr/share/dict/american-english"), help="SCOWL's list")
    parser.add_argument("--out", type=Path, default=word_table.FOLDER, help="where the table is put")
    parser.add_argument("--threads", type=int, default=2, help="cores for the teacher")
    chosen = parser.parse_args()
    sources = making.Sources(wordnet=chosen.wordnet, words=chosen.words, cache=chosen.cache, threads=chosen.threads)
    making.make(sources, chosen.out, lambda line: print(line, file=sys.stderr, flush=True))


if __name__ == "__main__":
    main()
