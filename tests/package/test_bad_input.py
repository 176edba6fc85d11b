"""A bad argument is named, with what came, before any number is computed from it.

One table for the package. What a bad call must leave as it was is tested where that is, and the
fused kernel's checks where it can run.
"""

import json
import re
from collections.abc import Callable
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from atlas import examine, of_transformers
from rope_minimal import (
    KVCache,
    LatentAttention,
    RotaryEmbedding,
    apply_rope,
    document_mask,
    inverse_frequencies,
    move_keys,
    mrope_positions,
    permute_qk,
    rope_table,
    rotate_by_matrix,
    rotate_complex,
    rotation_matrix,
    to_half,
    to_interleaved,
    wave_vectors,
    wavelengths,
    zigzag_indices,
)
from rope_minimal import RotarySelfAttention as Attention
from rope_minimal import rescaled_frequencies as rescaled
from ropebook.aliasing import (
    angle_horizon,
    circle_gaps,
    code_distance,
    cosine_horizon,
    mean_cosine,
    near_repeats,
    nearest_code,
    nearest_offset,
    neighbour_contrast,
    neighbour_snr,
    rounding_noise,
    unseen_pairs,
    wrapped_angle,
)
from ropebook.timing import compare, moved_bytes, peak_extra_bytes
from ropescope import Report, identify
from ropescope.adapters import of_module, of_tables

X = torch.ones(2, 3, 4, 8)  # (B, H, T, D)
COS, SIN = rope_table(range(4), 8)
IDS = torch.arange(4).expand(2, 4)
NAN, INF = float("nan"), float("inf")
MASKED = np.ma.array([1.0, 2.0], mask=[False, True])
HUGE = 10**400  # no float holds it
SPARSE = torch.ones(4, 8).to_sparse()
BLANK = Report(8, 1, "nothing")
AXES = np.ones((2, 4))  # wave vectors on two axes
PLAIN = identify(rotate_complex, 8)
NO_REPORT = "ValueError: text must be what Report.to_json wrote, got ... head_dim"
PARTS = {"factor": 2, "original_max_position_embeddings": 1024}


def rope(**arguments):
    return RotaryEmbedding(8, 16)(X, **arguments)


def moved(delta, keys=X):
    return move_keys(keys, delta, RotaryEmbedding(8, 16))


def filled(number):
    layer = Attention(32, 4)
    torch.nn.init.constant_(layer.o_proj.weight, number)
    return layer


def frozen():
    with torch.inference_mode():
        return Attention(32, 4)


def latent(**changed):
    widths = {"kv_lora_rank": 8, "qk_nope_head_dim": 4, "qk_rope_head_dim": 4, "v_head_dim": 4}
    return LatentAttention(16, 2, **widths | changed)


def nested():
    return torch.nested.nested_tensor([X[0, 0], X[0, 0, :2]])


def yarn(**changed):
    return rescaled("yarn", 8, **PARTS | changed)


def longrope(**changed):
    factors = {"short_factor": [1] * 4, "long_factor": [1] * 4}
    return rescaled("longrope", 8, **PARTS | factors | changed)


def mrope(section, **changed):
    return wave_vectors("mrope", 64, mrope_section=section, **changed)


# what is done, and what it raises: the argument and what came; any words for " ... "
def written(**wrong: object) -> Report:
    """Return a report that is read from JSON with other values."""
    return Report.from_json(json.dumps(json.loads(PLAIN.to_json()) | wrong))


class Another(torch.nn.Module):
    """A module of another library that has a width, a base and an end."""

    dim, max_seq_len, base = 8, 16, 1e4


CASES: list[tuple[Callable[[], object], str]] = [
    # dim
    (lambda: inverse_frequencies(7), "ValueError: dim ... got 7"),
    (lambda: inverse_frequencies(0), "ValueError: dim ... got 0"),
    (lambda: inverse_frequencies(-8), "ValueError: dim ... got -8"),
    (lambda: inverse_frequencies(8.0), "TypeError: dim ... got 8.0"),
    (lambda: inverse_frequencies("8"), "TypeError: dim ... got '8'"),
    (lambda: inverse_frequencies(True), "TypeError: dim ... got True"),
    (lambda: rope_table([0], 7), "ValueError: dim ... got 7"),
    (lambda: RotaryEmbedding(8, 4).at([0, 4]), "ValueError: positions ... 0..3, got 4"),
    (lambda: RotaryEmbedding(8, 4).at([-1]), "ValueError: positions ... 0..3, got -1"),
    (lambda: RotaryEmbedding(8, 4).at([0.5]), "TypeError: positions ... integers, got"),
    (lambda: RotaryEmbedding(7), "ValueError: dim ... got 7"),
    (lambda: RotaryEmbedding(None), "TypeError: dim ... got None"),
    (lambda: rotation_matrix(1, 7), "ValueError: dim ... got 7"),
    (lambda: rotation_matrix(1, 7, inv_freq=[1, 1, 1]), "ValueError: dim ... got 7"),
    # base
    (lambda: inverse_frequencies(8, 0), "ValueError: base ... got 0"),
    (lambda: inverse_frequencies(8, -1e4), "ValueError: base ... got -10000.0"),
    (lambda: inverse_frequencies(8, INF), "ValueError: base ... got inf"),
    (lambda: inverse_frequencies(8, NAN), "ValueError: base ... got nan"),
    (lambda: inverse_frequencies(8, 1j), "TypeError: base ... got 1j"),
    (lambda: RotaryEmbedding(8, 16, "1e4"), "TypeError: base ... got '1e4'"),
    (lambda: rope_table([0], 8, 0.0), "ValueError: base ... got 0.0"),
    (lambda: RotaryEmbedding(8, 16, NAN), "ValueError: base ... got nan"),
    (lambda: inverse_frequencies(8, HUGE), "ValueError: base ... got 1000"),
    (lambda: rope_table([1], 8, Fraction(1, HUGE)), "ValueError: base ... got 1/"),
    (
        lambda: rope_table([1], 64, 1e-320),
        "ValueError: base must give finite frequencies ... got 1e-320",
    ),
    # the table
    (
        lambda: rope_table(np.array([2**63], dtype=np.uint64), 8),
        "ValueError: positions must be < 2**63 ... got [9223372036854775808]",
    ),
    (lambda: rope_table(torch.arange(4.0), 8), "TypeError: positions ... got torch.float32"),
    (
        lambda: rope_table(torch.arange(4).bfloat16(), 8),
        "TypeError: positions ... got torch.bfloat16",
    ),
    (lambda: rope_table([0.5, 1.0], 8), "TypeError: positions ... got torch.float64"),
    (lambda: rope_table([True, False], 8), "TypeError: positions must be integers, got True"),
    (lambda: rope_table("0123", 8), "TypeError: positions ... got '0123'"),
    (lambda: rope_table(None, 8), "TypeError: positions ... got None"),
    (lambda: rope_table(5, 8), "ValueError: positions ... got shape ()"),
    (lambda: rope_table([0], 8, dtype=torch.int64), "TypeError: dtype ... got torch.int64"),
    (
        lambda: rope_table([0], 8, dtype=np.float32),
        "TypeError: dtype ... got <class 'numpy.float32'>",
    ),
    (
        lambda: rope_table([0], 8, inv_freq=torch.ones(3)),
        "ValueError: inv_freq ... (4,) ... got (3,)",
    ),
    (
        lambda: rope_table([0], 8, inv_freq=torch.ones(4, dtype=torch.long)),
        "TypeError: inv_freq ... got torch.int64",
    ),
    (
        lambda: rope_table([0], 8, inv_freq=torch.ones(4) * 1j),
        "TypeError: inv_freq ... got torch.complex64",
    ),
    (lambda: rope_table([0], 4, inv_freq=[1.0, INF]), "ValueError: inv_freq ... got [1.0, inf]"),
    (lambda: rope_table([[0], [1, 2]], 8), "TypeError: positions ... got [[0], [1, 2]]"),
    (lambda: rope_table([0], 8, inv_freq="fast"), "TypeError: inv_freq ... got 'fast'"),
    # what NumPy would read as a number that it is not, in lists
    (lambda: rope_table([True, 2], 8), "TypeError: positions must be integers, got True"),
    (
        lambda: rope_table([[True, 2]], 8, inv_freq=AXES),
        "TypeError: positions must be integers, float32 or float64, got True",
    ),
    (lambda: rope_table([[True, 2.5]], 8, inv_freq=AXES), "TypeError: positions ... got True"),
    (lambda: rope_table(torch.tensor([True, True]).unbind(), 8), "TypeError: positions ... (True)"),
    (lambda: rope_table([np.array([True])], 8), "TypeError: positions ... got array([ True])"),
    (
        lambda: rope_table([1], 8, inv_freq=[True, 0.5, 0.5, 0.1]),
        "TypeError: inv_freq ... got True",
    ),
    (lambda: rope_table([MASKED.astype(int)], 8), "TypeError: positions ... got masked_array"),
    (lambda: rope_table([MASKED], 8, inv_freq=AXES), "TypeError: positions ... got masked_array"),
    (
        lambda: rope_table([[0, 1]], 4, inv_freq=[MASKED, MASKED]),
        "TypeError: inv_freq ... masked_a",
    ),
    (
        lambda: RotaryEmbedding(8, 16)(X[:1, :, :2], position_ids=[MASKED.astype(int)]),
        "TypeError: position_ids must be integers, got masked_array",
    ),
    (lambda: wavelengths([True, 2.0]), "TypeError: inv_freq must be real numbers, got True"),
    (lambda: wavelengths([MASKED]), "TypeError: inv_freq must be real numbers, got masked_array"),
    (lambda: wavelengths(MASKED), "TypeError: inv_freq must be real numbers, got masked_array"),
    (
        lambda: wavelengths(np.array([True, 2.0], object)),
        "TypeError: inv_freq must be real numbers, got True",
    ),
    (lambda: mean_cosine([True, 2], [1.0]), "TypeError: distance must be real numbers, got True"),
    (lambda: rotate_complex([[True, 2.0]], [0]), "TypeError: x must be real numbers, got True"),
    # what is not dense
    (lambda: apply_rope(SPARSE, COS, SIN), "TypeError: x must be dense, got torch.sparse_coo"),
    (
        lambda: apply_rope(X, COS.to_sparse_csr(), SIN),
        "TypeError: cos must be dense, got torch.sparse_csr",
    ),
    (lambda: RotaryEmbedding(8, 16)(nested()), "TypeError: x must be dense, got a nested tensor"),
    (lambda: moved(1, SPARSE), "TypeError: keys must be dense, got torch.sparse_coo"),
    (
        lambda: rope_table(IDS.to_sparse(), 8),
        "TypeError: positions must be dense, got torch.sparse",
    ),
    (lambda: rope_table([1], 8, inv_freq=COS[0].to_sparse()), "TypeError: inv_freq must be dense"),
    (lambda: to_half(SPARSE), "TypeError: x must be dense, got torch.sparse_coo"),
    (lambda: permute_qk(nested(), 2), "TypeError: weight must be dense, got a nested tensor"),
    (lambda: document_mask(IDS.to_sparse()), "TypeError: document_ids must be dense, got torch.sp"),
    (lambda: zigzag_indices(IDS[0].to_sparse(), 2, 0), "TypeError: cu_seqlens must be dense, got"),
    (
        lambda: KVCache(1, 1, 4, 8).append(SPARSE, SPARSE, IDS[:1]),
        "TypeError: keys must be dense, got torch.sparse_coo",
    ),
    (lambda: Attention(8, 1)(X[0].to_sparse()), "TypeError: x must be dense, got torch.sparse_coo"),
    (
        lambda: Attention(8, 1)(X[0], key_padding_mask=(X[0, ..., 0] == 0).to_sparse()),
        "TypeError: key_padding_mask must be dense, got torch.sparse_coo",
    ),
    # angles of which float64 knows nothing
    (
        lambda: rope_table([2**53 + 1], 2, dtype=torch.float64),
        "ValueError: positions * inv_freq must be < 2**53, got 9007199254740992.0",
    ),
    (
        lambda: rope_table(np.array([[-(2**53) - 1, 0]]), 8, inv_freq=AXES),
        "ValueError: positions * inv_freq must be < 2**53, got 90071992",
    ),
    (
        lambda: rotation_matrix(2**53 + 1, 2),
        "ValueError: positions * inv_freq must be < 2**53, got [9.00719925e+15]",
    ),
    # several axes
    (
        lambda: rope_table(torch.ones(1, 2).to(torch.float8_e4m3fn), 8, inv_freq=AXES),
        "TypeError: positions must be integers, float32 or float64, got torch.float8_e4m3fn",
    ),
    (
        lambda: rope_table([0], 8, inv_freq=torch.ones(2, 3)),
        "ValueError: inv_freq must have shape (dim/2,) = (4,) or (A, dim/2), got (2, 3)",
    ),
    (lambda: rope_table([0], 8, inv_freq=np.ones((0, 4))), "ValueError: inv_freq ... got (0, 4)"),
    (lambda: rope_table([0], 8, inv_freq=np.ones((1, 2, 4))), "ValueError: inv_freq ... (1, 2, 4)"),
    (lambda: rope_table([0], 8, inv_freq=1.0), "ValueError: inv_freq ... got ()"),
    (
        lambda: rope_table([0, 1], 8, inv_freq=AXES),
        "ValueError: positions must have shape (..., T, 2), as inv_freq has 2 axes, got (2,)",
    ),
    (lambda: rope_table([[0, 1, 2]], 8, inv_freq=AXES), "ValueError: positions ... got (1, 3)"),
    (lambda: rope_table(IDS.half(), 8, inv_freq=AXES), "TypeError: positions ... torch.float16"),
    (
        lambda: rope_table(torch.ones(1, 2).bfloat16(), 8, inv_freq=AXES),
        "TypeError: positions must be integers, float32 or float64, got torch.bfloat16",
    ),
    (lambda: rope_table(IDS.bool(), 8, inv_freq=AXES), "TypeError: positions ... got torch.bool"),
    (lambda: rope_table(IDS + 0j, 8, inv_freq=AXES), "TypeError: positions ... torch.complex64"),
    (lambda: rope_table("01", 8, inv_freq=AXES), "TypeError: positions ... float64, got '01'"),
    (
        lambda: rope_table([[0, NAN]], 8, inv_freq=AXES),
        "ValueError: positions * inv_freq must be < 2**53, got nan",
    ),
    (lambda: rope_table([[0.5, 1.5]], 8), "TypeError: positions ... integers, got torch.float64"),
    # plans
    (
        lambda: wave_vectors("spiral", 8),
        "ValueError: kind must be one of axial, dinov3, kimi, mixed, mrope, pixtral; got 'spiral'",
    ),
    (lambda: wave_vectors(None, 8), "ValueError: kind ... got None"),
    (lambda: wave_vectors("axial", 7), "ValueError: dim ... got 7"),
    (lambda: wave_vectors("axial", 8.0), "TypeError: dim ... got 8.0"),
    (lambda: wave_vectors("axial", 6), "ValueError: dim must be a multiple of 4 ... got 6"),
    (lambda: wave_vectors("axial", 8, axes=3), "ValueError: dim must be a multiple of 6 ... got 8"),
    (lambda: wave_vectors("axial", 8, axes=0), "ValueError: axes must be >= 1, got 0"),
    (lambda: wave_vectors("axial", 8, axes=2.0), "TypeError: axes must be an integer, got 2.0"),
    (lambda: wave_vectors("dinov3", 6), "ValueError: dim must be a multiple of 4 ... got 6"),
    (lambda: wave_vectors("kimi", 6), "ValueError: dim must be a multiple of 4 ... got 6"),
    (lambda: wave_vectors("mixed", 6), "ValueError: dim must be a multiple of 4 ... got 6"),
    (lambda: wave_vectors("pixtral", 6), "ValueError: dim must be a multiple of 4 ... got 6"),
    (lambda: wave_vectors("axial", 8, 0), "ValueError: base must be finite and > 0, got 0"),
    (lambda: wave_vectors("axial", 8, "1e4"), "TypeError: base ... got '1e4'"),
    (lambda: wave_vectors("mixed", 8, seed=-1), "ValueError: seed must be >= 0, got -1"),
    (lambda: wave_vectors("mixed", 8, seed=None), "TypeError: seed must be an integer, got None"),
    (
        lambda: wave_vectors("mixed", 8, angle=1),
        "TypeError: kind 'mixed' takes no angle; it knows: seed",
    ),
    (
        lambda: wave_vectors("kimi", 8, axes=2),
        "TypeError: kind 'kimi' takes no axes; it knows: none",
    ),
    (
        lambda: wave_vectors("mrope", 8),
        "TypeError: kind 'mrope' misses mrope_section; it knows: mrope_section (required), mrope",
    ),
    (
        lambda: mrope([16, 24, 24]),
        "ValueError: mrope_section must add up to dim/2 = 32, got [16, 24, 24]",
    ),
    (lambda: mrope([8, 12, 11]), "ValueError: mrope_section must add up to ... [8, 12, 11]"),
    (lambda: mrope([16, 16]), "ValueError: mrope_section must hold three integers, got 2"),
    (lambda: mrope(32), "TypeError: mrope_section must hold three integers, got 32"),
    (lambda: mrope([16, 17, -1]), "ValueError: mrope_section must be >= 0, got -1"),
    (lambda: mrope([8.0, 12, 12]), "TypeError: mrope_section must be an integer, got 8.0"),
    (
        lambda: mrope([8, 12, 12], mrope_interleaved=True),
        "ValueError: mrope_section dealt out by turns gives [11, 11, 10], got [8, 12, 12]",
    ),
    (
        lambda: mrope([8, 12, 12], mrope_interleaved=1),
        "TypeError: mrope_interleaved must be True or False, got 1",
    ),
    (lambda: mrope({8, 12, 13}), "TypeError: mrope_section must hold three integers, got {"),
    (
        lambda: wave_vectors("dinov3", 2000, base=1.45e-308),
        "ValueError: base must give finite wave vectors, got 1.45e-308",
    ),
    # places of a text with images
    (lambda: mrope_positions([{4, 2, 1}]), "TypeError: parts must hold three integers, got {1"),
    (lambda: mrope_positions([np.array(4)]), "TypeError: parts must hold three integers, got arr"),
    (
        lambda: mrope_positions([(2, 2, 2)], time_interval=1e30),
        "ValueError: time_interval must give times < 2**62, got 1e+30",
    ),
    (
        lambda: mrope_positions([(1, 2, 2), (3, 2, 2)], time_interval=[1e39, 1]),
        "ValueError: time_interval must give times < 2**62, got 1e+39",
    ),
    (
        lambda: mrope_positions([3, (3, 2, 2), 1], time_interval=9e18),
        "ValueError: time_interval must give times < 2**62, got 9e+18",
    ),
    (lambda: mrope_positions([]), "ValueError: parts must hold at least one part, got none"),
    (lambda: mrope_positions(5), "TypeError: parts must be a list of numbers and grids, got 5"),
    (lambda: mrope_positions("text"), "TypeError: parts must be a list ... got 'text'"),
    (lambda: mrope_positions([0]), "ValueError: parts must be >= 1, got 0"),
    (lambda: mrope_positions([True]), "TypeError: parts must be an integer, got True"),
    (lambda: mrope_positions([1.0]), "TypeError: parts must hold three integers, got 1.0"),
    (lambda: mrope_positions(["ab"]), "TypeError: parts must hold three integers, got 'ab'"),
    (lambda: mrope_positions([(4, 4)]), "ValueError: parts must hold three integers, got 2"),
    (lambda: mrope_positions([(1, 4, 0)]), "ValueError: parts must be >= 1, got 0"),
    (lambda: mrope_positions([(1, 4.0, 4)]), "TypeError: parts must be an integer, got 4.0"),
    (
        lambda: mrope_positions([(1, 4, 5)]),
        "ValueError: parts must have h and w divisible by 2, got (1, 4, 5)",
    ),
    (lambda: mrope_positions([(1, 3, 4)]), "ValueError: parts ... divisible by 2, got (1, 3, 4)"),
    (
        lambda: mrope_positions([1], spatial_merge_size=0),
        "ValueError: spatial_merge_size must be >= 1, got 0",
    ),
    (
        lambda: mrope_positions([(1, 2, 2)], time_interval=-1),
        "ValueError: time_interval must be finite and >= 0, got -1",
    ),
    (
        lambda: mrope_positions([1, (1, 2, 2)], time_interval=[1, 2]),
        "ValueError: time_interval must be one number, or one for each of 1 grids, got (2,)",
    ),
    # distances on several axes
    (
        lambda: mean_cosine([1, 2, 3], AXES),
        "ValueError: distance must have shape (..., 2), as inv_freq has 2 axes, got (3,)",
    ),
    (lambda: code_distance(1, AXES), "ValueError: distance must have shape (..., 2) ... got ()"),
    (lambda: code_distance([1, 1], INF * AXES), "ValueError: inv_freq must be finite, got"),
    (lambda: code_distance([1, 1], np.ones((2, 0))), "ValueError: inv_freq ... (A, pairs) ... (2,"),
    (
        lambda: mean_cosine(1.0, [[1.0, 2.0], [3.0]]),
        "TypeError: inv_freq must be real numbers, got",
    ),
    (lambda: neighbour_contrast(AXES), "ValueError: inv_freq must have shape (pairs,) ... (2, 4)"),
    (
        lambda: nearest_offset(AXES * 1e308, (5, 5)),
        "ValueError: shape * wave_vectors must be finite, got shape = (5, 5)",
    ),
    (lambda: code_distance([1, INF], AXES), "ValueError: distance * inv_freq must be finite, got"),
    (
        lambda: nearest_offset(np.ones(4), [4]),
        "ValueError: wave_vectors must have shape (A, pairs), both >= 1, got (4,)",
    ),
    (lambda: nearest_offset(NAN * AXES, (4, 4)), "ValueError: wave_vectors must be finite, got"),
    (lambda: nearest_offset([["1"]], [4]), "TypeError: wave_vectors must be real numbers, got"),
    (lambda: nearest_offset(AXES, 4), "TypeError: shape must hold 2 integers, got 4"),
    (lambda: nearest_offset(AXES, "44"), "TypeError: shape must hold 2 integers, got '44'"),
    (lambda: nearest_offset(AXES, (4,)), "ValueError: shape must hold 2 integers, got (4,)"),
    (lambda: nearest_offset(AXES, (4, 0)), "ValueError: shape must be >= 1, got 0"),
    (lambda: nearest_offset(AXES, (4, 4.0)), "TypeError: shape must be an integer, got 4.0"),
    (lambda: nearest_offset(AXES, (1, 1)), "ValueError: min_distance must be < 1, got 1"),
    (lambda: nearest_offset(AXES, (4, 3), 4), "ValueError: min_distance must be < 4, got 4"),
    (lambda: nearest_offset(AXES, (4, 3), 0), "ValueError: min_distance must be >= 1, got 0"),
    # what is masked is no number, though NumPy gives what stands below
    (lambda: rope_table(MASKED.astype(int), 8), "TypeError: positions must be integers, got"),
    (lambda: rope_table([0], 4, inv_freq=MASKED), "TypeError: inv_freq must be floating ... got"),
    # x
    (lambda: apply_rope(X.long(), COS, SIN), "TypeError: x ... got torch.int64"),
    (lambda: apply_rope(X + 0j, COS, SIN), "TypeError: x ... got torch.complex64"),
    (lambda: apply_rope(X.numpy(), COS, SIN), "TypeError: x ... got ndarray"),
    (lambda: apply_rope(X[0, 0, 0], COS, SIN), "ValueError: x ... got shape (8,)"),
    (lambda: RotaryEmbedding(8)(X[0, 0, 0]), "ValueError: x ... got shape (8,)"),
    (lambda: RotaryEmbedding(8)(X.int()), "TypeError: x ... got torch.int32"),
    (lambda: RotaryEmbedding(8)(None), "TypeError: x ... got NoneType"),
    # flags
    (
        lambda: apply_rope(X, COS, SIN, interleaved="half"),
        "TypeError: interleaved must be True or False ... got 'half'",
    ),
    (lambda: RotaryEmbedding(8, interleaved="half"), "TypeError: interleaved ... got 'half'"),
    (
        lambda: rotate_complex(np.ones((1, 8)), [0], interleaved="half"),
        "TypeError: interleaved ... got 'half'",
    ),
    (lambda: permute_qk(torch.ones(8), 2, inverse="no"), "TypeError: inverse ... got 'no'"),
    # cos and sin
    (
        lambda: apply_rope(X[..., :6], COS, SIN),
        "ValueError: rotated width ... cos ... = 2..6 ... got 8",
    ),
    (lambda: RotaryEmbedding(16)(X), "ValueError: x must have at least dim = 16 channels, got"),
    (lambda: apply_rope(X, COS[:, :0], SIN[:, :0]), "ValueError: rotated width ... cos ... got 0"),
    (lambda: apply_rope(X, COS, SIN[:, :2]), "ValueError: cos ... sin ... (4, 4) ... (4, 2)"),
    (lambda: apply_rope(X, COS.long(), SIN), "TypeError: cos ... got torch.int64"),
    (lambda: apply_rope(X, COS, SIN + 0j), "TypeError: sin ... got torch.complex64"),
    (lambda: apply_rope(X, [[1.0]], SIN), "TypeError: cos ... got list"),
    (lambda: apply_rope(X, COS[:3], SIN[:3]), "ValueError: cos has 3 positions ... x has 4"),
    # broadcasting would accept it
    (lambda: apply_rope(X, COS[:1], SIN[:1]), "ValueError: cos has 1 positions ... x has 4"),
    # broadcasting would return four
    (lambda: apply_rope(X[:, :, :1], COS, SIN), "ValueError: cos has 4 positions ... x has 1"),
    (
        lambda: apply_rope(X.transpose(1, 2), COS, SIN),
        "ValueError: cos has 4 positions ... x has 3 ... (..., T, D)",
    ),
    (lambda: apply_rope(X, COS[0], SIN[0]), "ValueError: cos ... (4,)"),
    # right only where B = H, and wrong there
    (
        lambda: apply_rope(X, COS.expand(2, 4, 4), SIN.expand(2, 4, 4)),
        "ValueError: cos ... (2, 4, 4) ... (2, 3, 4, 8)",
    ),
    (
        lambda: apply_rope(X, COS.expand(5, 1, 4, 4), SIN.expand(5, 1, 4, 4)),
        "ValueError: cos ... (5, 1, 4, 4) ... (2, 3, 4, 8)",
    ),
    (
        lambda: apply_rope(X[:1], COS.expand(2, 1, 4, 4), SIN.expand(2, 1, 4, 4)),
        "ValueError: cos ... (2, 1, 4, 4) ... (1, 3, 4, 8)",
    ),
    (
        lambda: apply_rope(X, COS.to("meta"), SIN.to("meta")),
        "ValueError: x, cos and sin ... cpu ... meta",
    ),
    # the module's positions
    (lambda: RotaryEmbedding(8, 0), "ValueError: max_seq_len ... got 0"),
    (lambda: RotaryEmbedding(8, 16.0), "TypeError: max_seq_len ... 16.0"),
    (lambda: RotaryEmbedding(8, 16)(X.to("meta")), "ValueError: x must be on cpu ... got meta"),
    (lambda: rope(offset=-1), "ValueError: offset ... got -1"),
    (lambda: rope(offset=1.0), "TypeError: offset ... got 1.0"),
    (lambda: rope(offset=IDS[0]), "TypeError: offset ... got tensor([0, 1, 2, 3])"),
    (
        lambda: rope(offset=13),
        "ValueError: positions offset..offset+T = 13..17 ... max_seq_len = 16",
    ),
    (lambda: RotaryEmbedding(8, 3)(X), "ValueError: ... 0..4 ... max_seq_len = 3"),
    (lambda: rope(position_ids=IDS.bfloat16()), "TypeError: position_ids ... got torch.bfloat16"),
    (lambda: rope(position_ids=IDS.bool()), "TypeError: position_ids ... got torch.bool"),
    (lambda: rope(position_ids=IDS[0]), "ValueError: position_ids ... (2, 4) ... got (4,)"),
    (lambda: rope(position_ids=IDS[:, :3]), "ValueError: position_ids ... (2, 4) ... got (2, 3)"),
    (lambda: rope(position_ids=IDS.T), "ValueError: position_ids ... (2, 4) ... got (4, 2)"),
    (
        lambda: rope(position_ids=IDS[:1].expand(3, 4)),
        "ValueError: position_ids ... (2, 4) ... got (3, 4)",
    ),
    (
        lambda: RotaryEmbedding(8)(X[0, 0], position_ids=IDS),
        "ValueError: position_ids ... (B, ..., T, D) ... got (4, 8)",
    ),
    # indexing would take the end of the table
    (lambda: rope(position_ids=IDS - 1), "ValueError: position_ids ... 0..15 ... got -1"),
    (lambda: rope(position_ids=IDS + 13), "ValueError: position_ids ... 0..15 ... got 16"),
    (
        lambda: rope(offset=1, position_ids=IDS),
        "ValueError: give offset or position_ids, not both, got offset = 1",
    ),
    (lambda: rope(offset=None, position_ids=IDS), "TypeError: offset ... got None"),
    # layouts
    (lambda: to_half(X[..., :7]), "ValueError: x.shape[-1] ... got 7"),
    (lambda: to_interleaved(np.ones(7)), "ValueError: x.shape[-1] ... got 7"),
    (lambda: to_half(np.array(1.0)), "ValueError: x ... got shape ()"),
    (lambda: to_half([1, 2]), "TypeError: x ... got list"),
    (lambda: to_half(np.matrix([[1, 2]])), "TypeError: x must be a NumPy array ... got matrix"),
    (lambda: permute_qk(np.matrix([[1], [2]]), 1), "TypeError: weight ... got matrix"),
    (lambda: permute_qk(torch.ones(100, 4), 8), "ValueError: weight ... num_heads = 8 ... got 100"),
    (lambda: permute_qk(torch.ones(24, 4), 8), "ValueError: weight ... num_heads = 8 ... got 24"),
    (lambda: permute_qk(np.ones((0, 4)), 8), "ValueError: weight ... got 0 rows"),
    (lambda: permute_qk(torch.ones(4, 2, 2), 1), "ValueError: weight ... got shape (4, 2, 2)"),
    (lambda: permute_qk(torch.ones(()), 1), "ValueError: weight ... got shape ()"),
    (lambda: permute_qk([1, 2], 1), "TypeError: weight ... got list"),
    (lambda: permute_qk(torch.ones(8), 0), "ValueError: num_heads ... got 0"),
    (lambda: permute_qk(torch.ones(8), -2), "ValueError: num_heads ... got -2"),
    (lambda: permute_qk(torch.ones(8), 2.0), "TypeError: num_heads ... got 2.0"),
    # the reference
    (lambda: rotation_matrix("1", 8), "TypeError: position ... got '1'"),
    (lambda: rotation_matrix(True, 8), "TypeError: position ... got True"),
    (lambda: rotation_matrix(INF, 8), "ValueError: position ... got inf"),
    (lambda: rotation_matrix(HUGE, 8), "ValueError: position ... got 1000"),
    (
        lambda: rotation_matrix(1e308, 2, inv_freq=[1e308]),
        "ValueError: positions * inv_freq must be < 2**53 ... got [inf]",
    ),
    (
        lambda: rotation_matrix(1e300, 64, 1e-100),
        "ValueError: positions * inv_freq must be < 2**53",
    ),
    (
        lambda: rotate_complex(np.ones((1, 64)), [1e12], 1e-308),
        "ValueError: positions * inv_freq must be < 2**53",
    ),
    (
        lambda: rotation_matrix(1, 2, inv_freq=np.array([1 + 1j])),
        "TypeError: inv_freq ... got dtype complex128",
    ),
    (lambda: rotation_matrix(1, 2, inv_freq=["1.0"]), "TypeError: inv_freq ... got dtype <U3"),
    (lambda: rotate_complex(X.bfloat16(), [0]), "TypeError: x must be real numbers ... bfloat16"),
    (lambda: rotate_complex(np.ones(8), [0]), "ValueError: x ... got shape (8,)"),
    (lambda: rotate_by_matrix(np.ones((1, 7)), [0]), "ValueError: x.shape[-1] ... got 7"),
    (lambda: rotate_complex(np.ones((1, 8)) * 1j, [0]), "TypeError: x ... got dtype complex128"),
    (
        lambda: rotate_by_matrix(np.ones((1, 8)), [1j]),
        "TypeError: positions ... got dtype complex128",
    ),
    (lambda: rotate_complex(np.ones((1, 8)), [NAN]), "ValueError: positions ... got [nan]"),
    (lambda: rotate_by_matrix([[1, NAN]], [1]), "ValueError: x must be finite, got [nan]"),
    (lambda: rotate_complex([[INF, 0]], [1]), "ValueError: x must be finite, got [inf]"),
    (
        lambda: rotate_by_matrix(np.ones((2, 3, 8)), [0, 1]),
        "ValueError: positions ... (3,) ... got (2,)",
    ),
    (
        lambda: rotate_complex(np.ones((1, 8)), [0], inv_freq=[1.0]),
        "ValueError: inv_freq ... (4,) ... got (1,)",
    ),
    (lambda: rotation_matrix(0, 2, inv_freq=[INF]), "ValueError: inv_freq ... got [inf]"),
    (lambda: to_half(SimpleNamespace(shape=(8,))), "TypeError: x must be a NumPy array or"),
    (
        lambda: permute_qk(SimpleNamespace(shape=(8,)), 1),
        "TypeError: weight must be a NumPy array or",
    ),
    # speeds and distances
    (lambda: wavelengths([-1.0]), "ValueError: inv_freq must be finite and >= 0, got"),
    (lambda: wavelengths([NAN]), "ValueError: inv_freq must be finite and >= 0, got"),
    (lambda: wavelengths([INF]), "ValueError: inv_freq must be finite and >= 0, got"),
    (lambda: wavelengths(["1.0"]), "TypeError: inv_freq must be real numbers, got"),
    (lambda: wavelengths([1j]), "TypeError: inv_freq must be real numbers, got"),
    (lambda: wavelengths([True]), "TypeError: inv_freq must be real numbers, got"),
    (lambda: wavelengths([None]), "TypeError: inv_freq must be real numbers, got"),
    (lambda: wavelengths(X.bfloat16()), "TypeError: inv_freq must be real numbers, got"),
    (lambda: near_repeats(0, 10), "ValueError: theta must be finite and > 0, got 0"),
    (lambda: near_repeats("1", 10), "TypeError: theta must be a real number"),
    (lambda: near_repeats(1.0, 0), "ValueError: max_distance must be >= 1, got 0"),
    (lambda: near_repeats(1.0, 1e3), "TypeError: max_distance must be an integer"),
    (lambda: angle_horizon(-1.0), "ValueError: theta must be finite and >= 0"),
    (lambda: angle_horizon("x"), "TypeError: theta must be real numbers"),
    (lambda: circle_gaps(1.0, 0), "ValueError: positions must be >= 1, got 0"),
    (
        lambda: circle_gaps(1e308, 10),
        "ValueError: theta * positions must be finite, got 1e+308 * 10",
    ),
    (
        lambda: cosine_horizon([1e308, 0.1], 50),
        "ValueError: max_distance * inv_freq must be finite",
    ),
    (lambda: cosine_horizon(1e308), "ValueError: max_distance * inv_freq must be finite, got 64 *"),
    (lambda: code_distance(1, []), "ValueError: inv_freq must have shape (pairs,)"),
    (lambda: code_distance(1, np.ones((1, 2, 2))), "ValueError: inv_freq ... got (1, 2, 2)"),
    (lambda: nearest_code(np.ones((2, 2)), 9), "ValueError: inv_freq ... got (2, 2)"),
    (lambda: mean_cosine(1, [NAN]), "ValueError: inv_freq must be finite"),
    (lambda: cosine_horizon(1.0, 0), "ValueError: max_distance must be >= 1"),
    (lambda: nearest_code(1.0, 0), "ValueError: max_distance must be >= 1"),
    (lambda: nearest_code(1.0, 5, 6), "ValueError: min_distance must be <= max_distance"),
    (lambda: nearest_code(1.0, True), "TypeError: max_distance must be an integer"),
    (lambda: rounding_noise("int8"), "ValueError: dtype must be one of float64, float32"),
    (
        lambda: unseen_pairs([1.0], 2, [1.0, 2.0], 2),
        "ValueError: inv_freq and trained_inv_freq must have one shape",
    ),
    (lambda: unseen_pairs([1.0], 0, [1.0], 2), "ValueError: positions must be >= 1"),
    (lambda: unseen_pairs([1.0], HUGE, [1.0], 2), "ValueError: positions must be finite"),
    (lambda: near_repeats(Fraction(1, HUGE), 100), "ValueError: theta must be finite and >"),
    (lambda: near_repeats(np.float32(INF), 100), "ValueError: theta must be finite and >"),
    (lambda: code_distance(1, np.array([1 + 1j])), "TypeError: inv_freq must be real numbers"),
    (lambda: code_distance(1, torch.ones(2).bfloat16()), "TypeError: inv_freq must be real"),
    (lambda: code_distance(1, [True, True]), "TypeError: inv_freq must be real numbers, got True"),
    (lambda: wrapped_angle(1j), "TypeError: angle must be real numbers"),
    (lambda: wrapped_angle([0, INF]), "ValueError: angle must be finite, got [ 0. inf]"),
    (lambda: mean_cosine(NAN, [1.0]), "ValueError: distance * inv_freq must be finite ... nan"),
    (lambda: code_distance(1e308, [1e10]), "ValueError: distance * inv_freq must be finite, got"),
    (
        lambda: nearest_code(1.0, 2**53 + 3, 2**53 + 1),
        "ValueError: max_distance must be <= 2**53, got 9007199254740995",
    ),
    (lambda: neighbour_snr([1.0], ["float32"]), "ValueError: dtype must be one of"),
    (lambda: unseen_pairs([1.0], 2, [1.0], 2.0), "TypeError: trained_positions must be an integer"),
    # rescalings
    (
        lambda: rescaled("linear", 7, factor=2),
        "ValueError: dim must be a positive even integer, got 7",
    ),
    (lambda: rescaled("linear", 8.0, factor=2), "TypeError: dim must be an integer"),
    (lambda: rescaled("linear", 8, 0, factor=2), "ValueError: base must be finite and > 0, got 0"),
    (lambda: rescaled("linear", 8, factor=0), "ValueError: factor must be finite and > 0, got 0"),
    (lambda: rescaled("linear", 8, factor=NAN), "ValueError: factor must be finite"),
    (lambda: rescaled("linear", 8, factor="2"), "TypeError: factor must be a real number"),
    (lambda: rescaled("linear", 8, factor=True), "TypeError: factor must be a real number"),
    (lambda: rescaled("linear", 8, factor=HUGE), "ValueError: factor must be finite"),
    (
        lambda: rescaled("linear", 8, factor=1e-320),
        "ValueError: ... must give finite frequencies, got ... 1e-320",
    ),
    (lambda: rescaled("linear", 8, factor=Fraction(HUGE)), "ValueError: ... must give finite freq"),
    (
        lambda: rescaled("monotone", 8, max_positions=5e-324),
        "ValueError: ... must give finite freq",
    ),
    (
        lambda: rescaled("monotone", 8, max_positions=9, turns=1.7e308),
        "ValueError: ... finite freq",
    ),
    (lambda: yarn(beta_slow=5e-324), "ValueError: ... must give finite freq"),
    (lambda: rescaled(["linear"], 8, factor=2), "ValueError: kind must be one ... got ['linear']"),
    (lambda: longrope(short_factor=["1"] * 4), "TypeError: short_factor must be"),
    (lambda: rescaled("ntk", 2, factor=2), "ValueError: dim must be at least 4"),
    (lambda: rescaled("yarn", 8, 1.0, **PARTS), "ValueError: base must be > 1"),
    (lambda: yarn(beta_fast=0.5), "ValueError: beta_slow must be <= beta_fast"),
    (lambda: rescaled("by_parts", 8, **PARTS, beta_slow=0), "ValueError: beta_slow must be finite"),
    (
        lambda: rescaled("yarn_paper", 8, **PARTS, attention_factor=0),
        "ValueError: attention_factor",
    ),
    (
        lambda: rescaled("llama3", 8, **PARTS, low_freq_factor=5, high_freq_factor=4),
        "ValueError: low_freq_factor must be <= high_freq_factor",
    ),
    (lambda: longrope(short_factor=[1]), "ValueError: short_factor ... got (1,)"),
    (lambda: longrope(long_factor=[1, 1, 0, 1]), "ValueError: long_factor must"),
    (lambda: longrope(short_factor="abcd"), "TypeError: short_factor must be real"),
    (
        lambda: longrope(factor=None),
        "TypeError: kind 'longrope' needs factor or max_position_embeddings",
    ),
    (lambda: longrope(seq_len=-5), "ValueError: seq_len must be finite and > 0"),
    (lambda: longrope(seq_len="5"), "TypeError: seq_len must be a real number"),
    (lambda: yarn(truncate="False"), "TypeError: truncate must be True or"),
    (lambda: yarn(mscale=NAN, mscale_all_dim=1), "ValueError: mscale must be finite"),
    (lambda: yarn(mscale="1"), "TypeError: mscale must be a real number, got '1'"),
    (lambda: yarn(mscale=False), "TypeError: mscale must be a real number, got False"),
    (lambda: yarn(mscale_all_dim=""), "TypeError: mscale_all_dim must be a real number, got ''"),
    (lambda: yarn(mscale=np.ma.masked), "TypeError: mscale must be a real number, got masked"),
    (lambda: yarn(mscale_all_dim=-1), "ValueError: mscale_all_dim must be ... got -1"),
    (lambda: yarn(mscale=1, mscale_all_dim=-1), "ValueError: mscale_all_dim must be"),
    (
        lambda: rescaled("proportional", 8, partial_rotary_factor=1.5),
        "ValueError: partial_rotary_factor ... in (0, 1]",
    ),
    (
        lambda: rescaled("proportional", 8, partial_rotary_factor=0.1),
        "ValueError: partial_rotary_factor ... one pair that turns",
    ),
    (
        lambda: rescaled("default", 6, partial_rotary_factor=0.5),
        "ValueError: partial_rotary_factor ... positive even rotated",
    ),
    (
        lambda: rescaled("default", 8, partial_rotary_factor=0.1),
        "ValueError: partial_rotary_factor ... positive even rotated",
    ),
    (
        lambda: rescaled("monotone", 8, max_positions=8, turns=-1),
        "ValueError: turns must be finite",
    ),
    (lambda: rescaled("monotone", 8, max_positions=0), "ValueError: max_positions must be finite"),
    (
        lambda: rescaled("dynamic", 8, factor=2, max_position_embeddings=10, seq_len=0),
        "ValueError: seq_len must be finite and > 0, got 0",
    ),
    (
        lambda: rescaled("yran", 64),
        "ValueError: kind must be one of by_parts, default ... got 'yran'",
    ),
    (
        lambda: rescaled("linear", 64, scale=2, factor=2),
        "TypeError: kind 'linear' takes no scale; it knows: factor (required)",
    ),
    # attention
    (lambda: Attention(0, 4), "ValueError: embed_dim must be >= 1, got 0"),
    (lambda: Attention(32.0, 4), "TypeError: embed_dim must be an integer, got 32.0"),
    (lambda: Attention(32, 0), "ValueError: num_heads must be >= 1, got 0"),
    (lambda: Attention(32, True), "TypeError: num_heads must be an integer, got True"),
    (lambda: Attention(32, 5), "ValueError: num_heads must divide embed_dim = 32, got 5"),
    (lambda: Attention(32, 4, 3), "ValueError: num_kv_heads must divide num_heads = 4, got 3"),
    (lambda: Attention(32, 4, 8), "ValueError: num_kv_heads must divide num_heads = 4, got 8"),
    (lambda: Attention(32, 4, 0), "ValueError: num_kv_heads must be >= 1, got 0"),
    (lambda: Attention(28, 4), "ValueError: head_dim must be a positive even integer, got 7"),
    (lambda: Attention(32, 4, head_dim=0), "ValueError: head_dim must be >= 1, got 0"),
    (lambda: Attention(32, 4, head_dim=2.0), "TypeError: head_dim must be an integer, got 2.0"),
    (
        lambda: Attention(32, 4, rotary_dim=3),
        "ValueError: rotary_dim must be a positive even integer, got 3",
    ),
    (
        lambda: Attention(32, 4, rotary_dim=10),
        "ValueError: rotary_dim must be <= head_dim = 8, got 10",
    ),
    (lambda: Attention(32, 4, max_seq_len=0), "ValueError: max_seq_len must be >= 1, got 0"),
    (lambda: Attention(32, 4, base=-1.0), "ValueError: base must be finite and > 0, got -1.0"),
    (lambda: KVCache(0, 4, 8, 8), "ValueError: batch_size must be >= 1, got 0"),
    (lambda: KVCache(2, 4.0, 8, 8), "TypeError: num_kv_heads must be an integer, got 4.0"),
    (lambda: KVCache(2, 4, -1, 8), "ValueError: max_seq_len must be >= 1, got -1"),
    (lambda: KVCache(2, 4, 8, 0), "ValueError: head_dim must be >= 1, got 0"),
    (lambda: KVCache(2, 4, 8, 8, dtype=torch.int8), "TypeError: dtype must be a floating-point"),
    (lambda: Attention(32, 4, bias="no"), "TypeError: bias must be True or False, got 'no'"),
    (
        lambda: Attention(8, 1)(X[0, :1], cache=KVCache(1, 1, 8, 8, device="meta")),
        "ValueError: cache must be on cpu as x is, got meta",
    ),
    (
        lambda: Attention(8, 1)(X[0].to("meta")),
        "ValueError: x must be on cpu as the table is, got meta",
    ),
    (
        lambda: Attention(8, 1).to("meta")(X[0].to("meta").double()),
        "TypeError: x must have the layer's type torch.float32, got torch.float64",
    ),
    # keys that are moved, and what is served
    (lambda: moved(0.5), "TypeError: delta must be integers, got torch.float64"),
    (lambda: moved(True), "TypeError: delta must be integers, got True"),
    (lambda: moved(None), "TypeError: delta must be integers, got None"),
    (lambda: moved(10**30), "ValueError: delta must be >= -2**63 and < 2**63, got 1000000"),
    (lambda: moved([[-(10**30), 1]]), "ValueError: delta must be >= -2**63 ... got -1000000"),
    (
        lambda: move_keys(X, 1, RotaryEmbedding(8, 1)),
        "ValueError: delta must be in 0..0, for max_seq_len = 1, got 1",
    ),
    (lambda: moved(16), "ValueError: delta must be in -15..15, for max_seq_len = 16, got 16"),
    (lambda: moved(-16), "ValueError: delta must be in -15..15, for max_seq_len = 16, got -16"),
    (lambda: moved(IDS[0]), "ValueError: delta must be an integer, or ... got shape (4,)"),
    (lambda: moved(IDS.to("meta")), "ValueError: delta must be on cpu, got meta"),
    (lambda: moved(IDS[:, :3]), "ValueError: delta must be an integer, or ... got shape (2, 3)"),
    (lambda: moved(IDS[:1].expand(3, 4)), "ValueError: delta must be ... got shape (3, 4)"),
    (lambda: moved(IDS[:1], X[0, 0]), "ValueError: delta must be ... (4, 8), got shape (1, 4)"),
    (lambda: moved(1, X.long()), "TypeError: keys must be floating point, got torch.int64"),
    (lambda: moved(1, X[0, 0, 0]), "ValueError: keys must have at least 2 ... got shape (8,)"),
    (lambda: moved(1, X[..., :6]), "ValueError: keys must have >= 8 channels ... got 6"),
    (lambda: moved(1, X.to("meta")), "ValueError: keys must be on cpu as rope is, got meta"),
    (lambda: move_keys(X, 1, COS), "TypeError: rope must be a RotaryEmbedding, got Tensor"),
    (lambda: KVCache(2, 4, 8, 8, v_head_dim=0), "ValueError: v_head_dim must be >= 1, got 0"),
    (lambda: KVCache(2, 4, 8, 8, raw="no"), "TypeError: raw must be True or False, got 'no'"),
    (lambda: KVCache(2, 4, 8, 8, raw=True), "TypeError: rope must be a RotaryEmbedding, got None"),
    (lambda: KVCache(2, 4, 8, 8, rope=1e4), "TypeError: rope must be a RotaryEmbedding, got float"),
    (lambda: KVCache(2, 4, 8, 6, rope=RotaryEmbedding(8)), "ValueError: head_dim must be >= 8"),
    (
        lambda: KVCache(2, 4, 8, 8, rope=RotaryEmbedding(8).to("meta")),
        "ValueError: rope must be on cpu as the cache is, got meta",
    ),
    (lambda: latent(kv_lora_rank=0), "ValueError: kv_lora_rank must be >= 1, got 0"),
    (lambda: latent(q_lora_rank=0), "ValueError: q_lora_rank must be >= 1, got 0"),
    (lambda: latent(qk_nope_head_dim=0), "ValueError: qk_nope_head_dim must be >= 1, got 0"),
    (lambda: latent(qk_rope_head_dim=3), "ValueError: qk_rope_head_dim must be a positive even"),
    (lambda: latent(v_head_dim=4.0), "TypeError: v_head_dim must be an integer, got 4.0"),
    (lambda: latent(absorb="no"), "TypeError: absorb must be True or False, got 'no'"),
    (lambda: document_mask(IDS[0]), "ValueError: document_ids ... (B or 1, T), got (4,)"),
    (lambda: document_mask([[True, 2]]), "TypeError: document_ids must be integers, got True"),
    (lambda: document_mask(COS), "TypeError: document_ids must be integers, got torch.float32"),
    (lambda: zigzag_indices([0, 4], 0, 0), "ValueError: cp_size must be >= 1, got 0"),
    (lambda: zigzag_indices([0, 4], 2, 2), "ValueError: cp_rank must be < cp_size = 2, got 2"),
    (lambda: zigzag_indices([0, 4], 2, -1), "ValueError: cp_rank must be >= 0, got -1"),
    (
        lambda: zigzag_indices([0, 6], 2, 0),
        "ValueError: cu_seqlens ... 2 * cp_size = 4, got [0, 6]",
    ),
    (lambda: zigzag_indices([0, 8], 10**30, 0), "ValueError: cu_seqlens must grow by ... = 2000"),
    (lambda: zigzag_indices(IDS.to("meta"), 2, 0), "ValueError: cu_seqlens must be on cpu, got"),
    (lambda: zigzag_indices([0, 8, 4], 2, 0), "ValueError: cu_seqlens ... got [0, 8, 4]"),
    (lambda: zigzag_indices([4, 8], 2, 0), "ValueError: cu_seqlens ... from 0, got [4, 8]"),
    (lambda: zigzag_indices([], 2, 0), "ValueError: cu_seqlens ... from 0, got []"),
    (lambda: zigzag_indices([[0, 4]], 2, 0), "ValueError: cu_seqlens ... from 0, got [[0, 4]]"),
    (lambda: zigzag_indices([0.0, 4.0], 2, 0), "TypeError: cu_seqlens must be integers, got"),
    # the instrument
    (lambda: identify("rope", 8), "TypeError: rotate must be callable, got str"),
    (lambda: identify(rotate_complex, 8.0), "TypeError: head_dim must be an integer, got 8.0"),
    (lambda: identify(rotate_complex, 1), "ValueError: head_dim must be >= 2, got 1"),
    (
        lambda: identify(rotate_complex, 8, positions=1),
        "ValueError: positions must be >= 2, got 1",
    ),
    (
        lambda: identify(rotate_complex, 8, positions=1e3),
        "TypeError: positions must be an integer, got 1000.0",
    ),
    (
        lambda: identify(rotate_complex, 8, positions=(8, 1)),
        "ValueError: positions[1] must be >= 2, got 1",
    ),
    (
        lambda: identify(rotate_complex, 8, positions=()),
        "ValueError: positions must name at least one axis, got ()",
    ),
    (
        lambda: identify(rotate_complex, 8, dtype=torch.int64),
        "TypeError: dtype must be a floating-point type of NumPy or torch, got torch.int64",
    ),
    (
        lambda: identify(rotate_complex, 8, dtype=np.int32),
        "TypeError: dtype must be a floating-point ... got <class 'numpy.int32'>",
    ),
    (lambda: identify(rotate_complex, 8, dtype="quick"), "TypeError: dtype must ... got 'quick'"),
    (lambda: BLANK.differs_from("llama"), "TypeError: other must be a Report, got str"),
    (lambda: Report.from_json(3), "TypeError: text must be a str, got int"),
    (lambda: Report.from_json("{}"), "ValueError: text must be what Report.to_json ... got '{}'"),
    (lambda: Report.from_json("no"), "ValueError: text must be what Report.to_json ... got 'no'"),
    (
        lambda: PLAIN.differs_from(PLAIN).convert(np.ones((9, 2)), 1),
        "ValueError: weight must have num_heads * head_dim = 1 * 8 rows, got shape (9, 2)",
    ),
    (
        lambda: PLAIN.differs_from(PLAIN).convert(np.ones((8, 2)), 0),
        "ValueError: num_heads must be >= 1, got 0",
    ),
    (
        lambda: PLAIN.differs_from(PLAIN).convert(np.ones((8, 2), int), 1),
        "TypeError: weight must hold floating-point numbers, got int64",
    ),
    (
        lambda: PLAIN.differs_from(PLAIN).convert(torch.ones(8, 2, dtype=torch.bool), 1),
        "TypeError: weight must hold floating-point numbers, got torch.bool",
    ),
    (
        lambda: identify(rotate_complex, 8, positions=2**70),
        "ValueError: positions must be <= 2**53, got 1180591620717411303424",
    ),
    (
        lambda: Report.from_json('{"head_dim": 8, "probed": "x"}'),
        "ValueError: text must be what Report.to_json wrote, got ... head_dim",
    ),
    (
        lambda: PLAIN.differs_from(PLAIN).convert([1.0], 1),
        "TypeError: weight must be a NumPy array or a torch tensor, got list",
    ),
    (lambda: written(head_dim="8"), NO_REPORT),
    (lambda: written(pairs=[[0, 99]], written=[[0, 99]]), NO_REPORT),
    (lambda: written(inv_freq=[1.0]), NO_REPORT),
    (lambda: written(numbers="float8"), NO_REPORT),
    (lambda: written(deviation="little"), NO_REPORT),
    (lambda: written(table_end="soon"), NO_REPORT),
    (lambda: written(findings=[{"gravity": "3", "words": "", "chapter": ""}]), NO_REPORT),
    (lambda: written(findings=[{"gravity": 4, "words": "", "chapter": ""}]), NO_REPORT),
    (lambda: of_module(3), "TypeError: rope must be a RotaryEmbedding, got int"),
    (lambda: of_module(Another()), "TypeError: rope must be a RotaryEmbedding, got Another"),
    (
        lambda: of_module(RotaryEmbedding(8), 6),
        "ValueError: head_dim must be >= 8, got 6",
    ),
    (
        lambda: of_tables(COS[0], SIN, apply_rope, 8),
        "ValueError: cos must have shape (positions, width), got (4,)",
    ),
    (lambda: of_tables(COS, 3, apply_rope, 8), "TypeError: sin must be a torch.Tensor, got int"),
    (
        lambda: of_tables(COS, SIN[:, :2], apply_rope, 8),
        "ValueError: cos and sin must have the same shape, got (4, 4) and (4, 2)",
    ),
    (lambda: of_tables(COS, SIN, None, 8), "TypeError: apply must be callable, got NoneType"),
    (
        lambda: of_transformers("llama"),
        "TypeError: model must be a model or configuration of transformers, got str",
    ),
    (lambda: examine(print), "TypeError: model must be a torch.nn.Module, got builtin"),
    (lambda: examine(Attention(32, 4), shift=0), "ValueError: shift must be >= 1, got 0"),
    (
        lambda: examine(filled(0.0)),
        "ValueError: model must return finite numbers, not all 0, ... 0",
    ),
    (lambda: examine(filled(NAN)), "ValueError: model must return finite numbers, ... of nan"),
    (lambda: examine(frozen()), "ValueError: model must not be made under torch.inference_mode"),
    # speed
    (lambda: compare({}, "a"), "ValueError: floor must be one of the calls ... got 'a'"),
    (lambda: compare({"a": print}, "b"), "ValueError: floor ... calls ['a'], got 'b'"),
    (lambda: compare({"a": 3}, "a"), "TypeError: calls['a'] must be callable, got 3"),
    (lambda: compare({"a": int}, "a", rounds=0), "ValueError: rounds must be >= 1, got 0"),
    (lambda: compare({"a": int}, "a", rounds=1.0), "TypeError: rounds must be ... got 1.0"),
    (lambda: compare({"a": int}, "a", sample_us=INF), "ValueError: sample_us ... finite ... inf"),
    (lambda: compare({"a": int}, "a", sample_us="1"), "TypeError: sample_us ... got '1'"),
    (lambda: compare({"a": int}, "a", sample_us=0), "ValueError: sample_us ... got 0"),
    (lambda: compare([print], "a"), "TypeError: calls must be a mapping, got list"),
    (lambda: moved_bytes(3), "TypeError: call must be callable, got 3"),
    (lambda: peak_extra_bytes(None), "TypeError: call must be callable, got None"),
]


@pytest.mark.filterwarnings("ignore")  # about kinds of arrays that are refused
@pytest.mark.parametrize(("call", "raised"), CASES, ids=[raised for _, raised in CASES])
def test_bad_input_is_named(call: Callable[[], object], raised: str) -> None:
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    pattern = ".*".join(re.escape(part) for part in raised.split(" ... "))
    assert re.match(pattern, f"{caught.type.__name__}: {caught.value}", re.DOTALL)


def test_the_good_neighbours_of_the_bad_cases_are_accepted() -> None:
    """The checks refuse no more than they say."""
    rope(offset=12)
    rope(offset=np.int64(12))
    rope(offset=0, position_ids=IDS + 12)
    RotaryEmbedding(8)(X[:1, :, :0], position_ids=[[]])
    RotaryEmbedding(8)(X[:, :, :0], position_ids=[[], []])
    RotaryEmbedding(8, 4)(X)
    apply_rope(X, COS[..., :1], SIN[..., :1])
    apply_rope(X, COS.expand(2, 1, 4, 4), SIN.expand(2, 1, 4, 4))
    permute_qk(torch.ones(24, 4), 12)
    permute_qk(torch.ones(256, 4), np.int8(64), inverse=np.bool_(True))
    RotaryEmbedding(np.int8(8), 512)(torch.ones(10, 8), np.uint8(250))
    rope_table([-5], 2, 1e-3)
    rope_table([2**53 - 1, 1 - 2**53], 2)
    rope_table([2**62], 2, inv_freq=[1e-9])
    rope_table([np.ma.array([1, 2], mask=False)], 8)
    wavelengths([Fraction(1, 3), np.float32(2), 0.5])
    wavelengths([torch.tensor(1.0), np.array(2)])
    wave_vectors("mrope", 8, mrope_section=np.array([0, 1, 3]))
    yarn(mscale=0, mscale_all_dim=np.float32(0))
    rotation_matrix(-2.5, 2)
    rotation_matrix(np.uint64(3), np.uint64(8))
