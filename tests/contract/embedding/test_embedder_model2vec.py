"""Static models of a folder: read as they stand there, told from each other, and refused if they are damaged."""

import json
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wellkept import open
from wellkept.embedders.model2vec import Model2VecEmbedder
from wellkept.errors import ConfigurationError, EmbedderMismatch
from wellkept.testing.cases import Cases

pytest.importorskip("tokenizers")

WORDS = ["[UNK]", "tee", "kaffee", "kuchen", "auto", "wagen"]
ROWS = [[9, 9, 9], [1, 0.2, 0], [1, 0, 0], [0.6, 0.4, 0], [0, 0, 1], [0, 0.1, 1]]


def made(folder: Path, **tensors: Any) -> Path:
    """A folder with a model of a few words; ``tensors`` replace or join its table."""
    folder.mkdir(exist_ok=True)
    tokenizer: dict[str, Any] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": None,
        "decoder": None,
        "model": {
            "type": "WordLevel",
            "vocab": {word: number for number, word in enumerate(WORDS)},
            "unk_token": "[UNK]",
        },
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    arrays = {"embeddings": np.array(ROWS, "<f4"), **tensors}
    header, data = {}, b""
    names = {"<f4": "F32", "<f2": "F16", "|i1": "I8", "<i8": "I64", "<f8": "F64", "<i4": "I32"}
    for name, values in arrays.items():
        start, data = len(data), data + values.tobytes()
        kind = names[values.dtype.str]
        header[name] = {"dtype": kind, "shape": list(values.shape), "data_offsets": [start, len(data)]}
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    return folder


@pytest.mark.req("L4")
def test_a_text_is_the_mean_of_its_tokens(tmp_path: Path) -> None:
    embedder = Model2VecEmbedder(made(tmp_path / "model"))
    tea, coffee, car = embedder.embed(["Tee", "kaffee unbekannt", "Auto"])
    assert embedder.dimension == 3
    assert np.allclose(coffee, [1, 0, 0])
    assert tea @ coffee > tea @ car


@pytest.mark.req("L4")
def test_half_precision_and_bytes_give_nearly_the_same(tmp_path: Path) -> None:
    texts = ["tee und kuchen", "auto"]
    plain = Model2VecEmbedder(made(tmp_path / "plain")).embed(texts)
    half = Model2VecEmbedder(made(tmp_path / "half", embeddings=np.array(ROWS, "<f2"))).embed(texts)
    small = Model2VecEmbedder(made(tmp_path / "small", embeddings=np.rint(np.array(ROWS) * 10).astype("|i1")))
    assert np.allclose(plain, half, atol=1e-3)
    assert np.allclose(plain, small.embed(texts), atol=1e-2)


@pytest.mark.req("L4")
def test_weights_and_mapping_are_used(tmp_path: Path) -> None:
    weights = np.array([0, 1, 3, 1, 1, 1], "<f8")
    weighed = Model2VecEmbedder(made(tmp_path / "weights", weights=weights)).embed(["kaffee auto"])[0]
    assert np.allclose(weighed, np.array([3, 0, 1]) / np.sqrt(10))
    mapping = np.array([0, 1, 1, 2, 3, 3], "<i8")  # fewer rows than tokens
    rows = np.array([[9, 9, 9], [1, 0, 0], [0, 1, 0], [0, 0, 1]], "<f4")
    embedder = Model2VecEmbedder(made(tmp_path / "mapping", embeddings=rows, mapping=mapping))
    tea, coffee, wagon = embedder.embed(["tee", "kaffee", "wagen"])
    assert np.allclose(tea, coffee)
    assert np.allclose(wagon, [0, 0, 1])


@pytest.mark.req("L4")
def test_a_text_without_a_known_token_has_a_vector(tmp_path: Path) -> None:
    with Cases() as cases:
        for text in ("", " ", "xyzzy", "\0", "語"):
            with cases.case(text):
                assert np.isclose(np.linalg.norm(Model2VecEmbedder(made(tmp_path / "model")).embed([text])[0]), 1)


@pytest.mark.req("L4")
def test_a_database_is_searched_by_it(tmp_path: Path) -> None:
    folder = made(tmp_path / "model")
    with open(tmp_path / "memory.db", embedder=f"model2vec:{folder}") as memories:
        view = memories.view(user="ada")
        view.add_many(["kaffee", "auto", "kuchen"])
        hit = view.search("tee", min_score=0).hits[0]
        assert hit.memory.content in ("kaffee", "kuchen")
    with pytest.raises(EmbedderMismatch):
        open(tmp_path / "memory.db")  # it cannot know where the folder is
    other = made(tmp_path / "other", embeddings=np.array(ROWS, "<f4") * 2)
    with pytest.raises(EmbedderMismatch):
        open(tmp_path / "memory.db", embedder=f"model2vec:{other}")
    with open(tmp_path / "memory.db", embedder=f"model2vec:{folder}") as memories:
        assert memories.view(user="ada").search("tee", min_score=0).hits


DAMAGES: tuple[bytes, ...] = (
    b"",
    b"\xff" * 8,
    struct.pack("<Q", 2) + b"{}",
    struct.pack("<Q", 2) + b"[]",
    struct.pack("<Q", 4) + b"null",
    struct.pack("<Q", 19) + b'{"embeddings": 1.0}',
    struct.pack("<Q", 100) + b"{",
)


@pytest.mark.req("L4")
def test_a_damaged_table_is_refused(tmp_path: Path) -> None:
    folder = made(tmp_path / "model")
    with Cases() as cases:
        for damage in DAMAGES:
            with cases.case(damage):
                (folder / "model.safetensors").write_bytes(damage)
                with pytest.raises(ConfigurationError):
                    open("ram:", embedder=f"model2vec:{folder}")


@pytest.mark.req("L4")
def test_a_table_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    folder = made(tmp_path / "model")
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-4])
    with pytest.raises(ConfigurationError):
        Model2VecEmbedder(folder)


@pytest.mark.req("L4")
def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"model\.safetensors"):
        open("ram:", embedder=f"model2vec:{tmp_path}")
    folder = made(tmp_path / "model")
    (folder / "tokenizer.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"tokenizer\.json"):
        Model2VecEmbedder(folder).embed(["tee"])


@pytest.mark.req("H10")
def test_where_the_extra_is_missing_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = Model2VecEmbedder(made(tmp_path / "model"))
    monkeypatch.setitem(sys.modules, "tokenizers", None)  # importing it fails as if it were not installed
    with pytest.raises(ConfigurationError) as caught:
        embedder.embed(["tee"])
    assert caught.value.hint == "pip install 'wellkept[model2vec]'"
