"""How updates are told: the products behind them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from wellkept.recall import updates


@given(st.integers(1, 40), st.sampled_from([0, 1, 127, 128, 129, 300]), st.integers(0, 2**32 - 1))
def test_products_in_parts_are_the_products(rows: int, columns: int, seed: int) -> None:
    left, right = np.random.default_rng(seed).random((2, rows, columns), np.float32)
    assert np.allclose(updates._products(left, right), left @ right.T, atol=1e-4)
