"""The instrument asked about other packages as they are, and about this package's module.

transformers and rotary-embedding-torch are needed by these tests only: without them, they skip.
"""

import importlib

import numpy as np
import pytest
import torch

from atlas import of_transformers
from rope_minimal import RotaryEmbedding, rope_table
from ropescope import identify
from ropescope.adapters import of_module


def test_tables_with_a_function_that_applies_them() -> None:
    cos, sin = rope_table(range(300), 16)
    rotate = lambda x, at: _neighbours(x, cos[at], sin[at])  # noqa: E731
    report = identify(rotate, 24, positions=301, dtype=torch.float32)
    assert (report.layout, report.place, report.width) == ("interleaved", "last", 16)
    assert (report.base, report.table_end) == (1e4, 299)


def _neighbours(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    a, b = x[..., 8::2], x[..., 9::2]
    turned = torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)
    return torch.cat((x[..., :8], turned), dim=-1)


def test_v_jepa_2_is_singular() -> None:
    pytest.importorskip("transformers")
    module = importlib.import_module("transformers.models.vjepa2.modeling_vjepa2")

    def rotate(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        return module.rotate_queries_or_keys(x[:, None], at)[:, 0]

    report = identify(rotate, 20, positions=16, dtype=torch.float32)
    assert not report.is_rotation
    assert report.singular_values is not None
    low, high = report.singular_values
    values = np.linalg.svd(
        rotate(torch.eye(20)[:, None].repeat(1, 16, 1), torch.arange(16)).permute(1, 2, 0).numpy(),
        compute_uv=False,
    )
    assert 1.4 < high <= values.max() + 1e-6  # not every position is asked
    assert values.min() - 1e-6 <= low < 0.3
    assert report.relative_error is not None
    assert report.relative_error > 0.5
    assert "Not a rotation" in report.findings[0].message


def test_rotary_embedding_torch_pairs_neighbours() -> None:
    package = pytest.importorskip("rotary_embedding_torch")
    rope = package.RotaryEmbedding(dim=32)

    def rotate(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        return package.apply_rotary_emb(rope.forward(at), x)

    report = identify(rotate, 64, dtype=torch.float32)
    assert (report.layout, report.place, report.width) == ("interleaved", "first", 32)
    assert (report.base, report.direction) == (1e4, 1)


@pytest.mark.parametrize("interleaved", [False, True])
def test_this_packages_own_module(interleaved: bool) -> None:
    rope = RotaryEmbedding(32, 300, 5e5, interleaved=interleaved)
    report = of_module(rope, 48).identify()
    assert (report.layout, report.place) == (
        "interleaved" if interleaved else "half-split",
        "first",
    )
    assert (report.width, report.head_dim, report.base) == (32, 48, 5e5)
    assert report.findings == ()
    assert report.table_end == 299


def test_weights_are_not_converted_by_a_part_of_what_turns() -> None:
    """LongRoPE turns by the length of a call: no one answer is all of it."""
    transformers = pytest.importorskip("transformers")
    long = {"rope_type": "longrope", "rope_theta": 1e4, "long_factor": [4.0] * 8}
    sizes = {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 1}
    sizes |= {"max_position_embeddings": 16384, "pad_token_id": 0}
    sizes |= {"original_max_position_embeddings": 4096}
    one, two = (
        next(iter(of_transformers(config).values())).identify()
        for factor in (1.0, 2.0)
        for config in [
            transformers.Phi3Config(rope_parameters=long | {"short_factor": [factor] * 8}, **sizes)
        ]
    )
    assert one.differs_from(two).convert is None
    assert "as in dynamic NTK and LongRoPE" in str(one.differs_from(two))
