"""A bad argument is named, with what came, before any number is computed from it.

One table for the package. What a bad call must leave as it was is tested where that is, and the
fused kernel's checks where it can run.
"""

import json
import re
from collections.abc import Callable
from fractions import Fraction

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
from ropescope.adapters import of_module
from ropescope.convert import convert

X = torch.ones(2, 3, 4, 8)  # (B, H, T, D)
COS, SIN = rope_table(range(4), 8)
IDS = torch.arange(4).expand(2, 4)
NAN, INF = float("nan"), float("inf")
HUGE = 10**400  # no float holds it
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
    # widths, bases and flags
    (lambda: inverse_frequencies(7), "ValueError: dim must be a positive even integer, got 7"),
    (lambda: inverse_frequencies(0), "ValueError: dim ... got 0"),
    (lambda: inverse_frequencies(8.0), "TypeError: dim must be an integer, got 8.0"),
    (lambda: RotaryEmbedding(None), "TypeError: dim must be an integer, got None"),
    (lambda: rotation_matrix(1, 7, inv_freq=[1, 1, 1]), "ValueError: dim ... got 7"),
    (lambda: rope_table([1], 7, inv_freq=np.ones(3)), "ValueError: dim ... got 7"),
    (lambda: inverse_frequencies(8, 0), "ValueError: base must be finite and > 0, got 0"),
    (lambda: inverse_frequencies(8, INF), "ValueError: base ... got inf"),
    (lambda: RotaryEmbedding(8, 16, "1e4"), "TypeError: base must be a real number, got '1e4'"),
    (lambda: inverse_frequencies(64, 1e-320), "ValueError: base must give finite frequencies, got"),
    (lambda: RotaryEmbedding(8, 0), "ValueError: max_seq_len must be >= 1, got 0"),
    (lambda: RotaryEmbedding(8, 16.0), "TypeError: max_seq_len must be an integer, got 16.0"),
    (lambda: RotaryEmbedding(8, interleaved="half"), "TypeError: interleaved ... got 'half'"),
    (lambda: apply_rope(X, COS, SIN, interleaved="half"), "TypeError: interleaved ... got 'half'"),
    (
        lambda: rotate_complex(np.ones((1, 8)), [0], interleaved="half"),
        "TypeError: interleaved must be True or False, got 'half'",
    ),
    (lambda: wavelengths([-1.0]), "ValueError: inv_freq must be finite and >= 0, got [-1.0]"),
    (lambda: wavelengths([NAN]), "ValueError: inv_freq must be finite and >= 0, got [nan]"),
    (lambda: wavelengths([1j]), "TypeError: inv_freq must be real numbers, got dtype complex128"),
    (lambda: wavelengths(["1.0"]), "TypeError: inv_freq must be real numbers, got dtype <U3"),
    # the table
    (
        lambda: rope_table(torch.arange(4.0), 8),
        "TypeError: positions must be integers, got torch.fl",
    ),
    (lambda: rope_table([True, False], 8), "TypeError: positions must be integers, got torch.bool"),
    (lambda: rope_table(None, 8), "TypeError: positions must be integers, got None"),
    (lambda: rope_table("012", 8), "TypeError: positions must be integers, got '012'"),
    (lambda: rope_table(5, 8), "ValueError: positions must have at least 1 ... got shape ()"),
    (lambda: rope_table([0], 8, dtype=torch.int64), "TypeError: dtype ... got torch.int64"),
    (lambda: rope_table([0], 8, dtype=np.float32), "TypeError: dtype ... numpy.float32"),
    (lambda: rope_table([0], 8, inv_freq=np.ones(3)), "ValueError: inv_freq ... (4,) ... got (3,)"),
    (lambda: rope_table([0], 8, inv_freq=np.ones((0, 4))), "ValueError: inv_freq ... got (0, 4)"),
    (lambda: rope_table([0], 8, inv_freq=np.ones((1, 2, 4))), "ValueError: inv_freq ... (1, 2, 4)"),
    (
        lambda: rope_table([0, 1], 8, inv_freq=AXES),
        "ValueError: positions must have shape (..., T, 2), as inv_freq has 2 axes, got (2,)",
    ),
    (lambda: rope_table([[0, 1, 2]], 8, inv_freq=AXES), "ValueError: positions ... got (1, 3)"),
    (lambda: rope_table(IDS.half(), 8, inv_freq=AXES), "TypeError: positions ... torch.float16"),
    (lambda: rope_table(IDS.bfloat16(), 8, inv_freq=AXES), "TypeError: positions ... bfloat16"),
    # the rotation
    (lambda: apply_rope(X.long(), COS, SIN), "TypeError: x must be a floating ... of torch.int64"),
    (lambda: apply_rope(X.numpy(), COS, SIN), "TypeError: x ... got ndarray of float32"),
    (
        lambda: apply_rope(X[0, 0, 0], COS, SIN),
        "ValueError: x must have shape (..., T, D) ... (8,)",
    ),
    (lambda: apply_rope(X, [[1.0]], SIN), "TypeError: cos must be a floating ... got [[1.0]]"),
    (lambda: apply_rope(X, COS, SIN + 0j), "TypeError: sin ... got Tensor of torch.complex64"),
    (lambda: apply_rope(X, COS, SIN[:, :2]), "ValueError: cos and sin ... (4, 4) and (4, 2)"),
    (lambda: apply_rope(X, COS[0], SIN[0]), "ValueError: cos must have 2 dimensions ... (4,)"),
    (lambda: apply_rope(X[..., :6], COS, SIN), "ValueError: rotated width ... = 2..6, got 8"),
    (lambda: apply_rope(X, COS[:, :0], SIN[:, :0]), "ValueError: rotated width ... got 0"),
    (lambda: apply_rope(X, COS[:3], SIN[:3]), "ValueError: cos has 3 positions but x has 4"),
    # broadcasting would accept one row of the table, and return four rows of x
    (lambda: apply_rope(X, COS[:1], SIN[:1]), "ValueError: cos has 1 positions but x has 4"),
    (lambda: apply_rope(X[:, :, :1], COS, SIN), "ValueError: cos has 4 positions but x has 1"),
    (
        lambda: apply_rope(X.transpose(1, 2), COS, SIN),
        "ValueError: cos has 4 positions but x has 3 (axis -2); is x (..., T, D)?",
    ),
    # right only where B = H, and wrong there
    (
        lambda: apply_rope(X, COS.expand(2, 4, 4), SIN.expand(2, 4, 4)),
        "ValueError: cos must have 2 dimensions ... (2, 4, 4) ... (2, 3, 4, 8)",
    ),
    (
        lambda: apply_rope(X[[0] * 4], COS.expand(2, 1, 4, 4), SIN.expand(2, 1, 4, 4)),
        "ValueError: cos must broadcast to x ... (2, 1, 4, 4) ... (4, 3, 4, 8)",
    ),
    (
        lambda: apply_rope(X[:1], COS.expand(2, 1, 4, 4), SIN.expand(2, 1, 4, 4)),
        "ValueError: cos must broadcast to x ... (2, 1, 4, 4) ... (1, 3, 4, 8)",
    ),
    # the module
    (lambda: RotaryEmbedding(8)(None), "TypeError: x must be a floating-point ... got None"),
    (lambda: RotaryEmbedding(8)(X.int()), "TypeError: x ... got Tensor of torch.int32"),
    (lambda: RotaryEmbedding(8)(X[0, 0, 0]), "ValueError: x must have shape ... D >= 8, got (8,)"),
    (lambda: RotaryEmbedding(16)(X), "ValueError: x must have shape ... D >= 16, got (2, 3, 4, 8)"),
    (lambda: rope(offset=-1), "ValueError: offset .. offset + T must be in ... 0..16, got -1..3"),
    (lambda: rope(offset=13), "ValueError: offset .. offset + T must be in ... 0..16, got 13..17"),
    (lambda: rope(position_ids=IDS.bfloat16()), "TypeError: position_ids must be integers ... bfl"),
    (lambda: rope(position_ids=IDS[0]), "ValueError: position_ids ... got (4,) and (2, 3, 4, 8)"),
    (lambda: rope(position_ids=IDS[:, :3]), "ValueError: position_ids must have ... got (2, 3)"),
    (lambda: rope(position_ids=IDS.T), "ValueError: position_ids must have shape ... got (4, 2)"),
    (
        lambda: RotaryEmbedding(8)(X[0, 0], position_ids=IDS),
        "ValueError: position_ids ... (B, ..., T, D), got (2, 4) and (4, 8)",
    ),
    # indexing would take the end of the table
    (
        lambda: rope(position_ids=IDS - 1),
        "ValueError: position_ids must be in ... 0..15, got -1..2",
    ),
    (lambda: rope(position_ids=IDS + 13), "ValueError: position_ids ... 0..15, got 13..16"),
    (
        lambda: rope(offset=1, position_ids=IDS),
        "ValueError: give offset or position_ids, not both, got offset = 1",
    ),
    # layouts
    (lambda: to_half(X[..., :7]), "ValueError: x.shape[-1] must be a positive even ... got 7"),
    (lambda: to_interleaved(np.ones(7)), "ValueError: x.shape[-1] ... got 7"),
    (lambda: to_half(np.array(1.0)), "ValueError: x must have at least 1 dimension, got shape ()"),
    (lambda: to_half([1, 2]), "TypeError: x must be a NumPy array or a torch tensor, got list"),
    (lambda: permute_qk([1, 2], 1), "TypeError: weight must be a NumPy array or ... got list"),
    (lambda: permute_qk(torch.ones(100, 4), 8), "ValueError: weight ... num_heads = 8 ... got 100"),
    (lambda: permute_qk(torch.ones(24, 4), 8), "ValueError: weight ... num_heads = 8 ... got 24"),
    (lambda: permute_qk(np.ones((0, 4)), 8), "ValueError: weight must split into ... got 0 rows"),
    (lambda: permute_qk(torch.ones(4, 2, 2), 1), "ValueError: weight ... got shape (4, 2, 2)"),
    (lambda: permute_qk(torch.ones(8), 0), "ValueError: num_heads must be >= 1, got 0"),
    (lambda: permute_qk(torch.ones(8), 2, inverse="no"), "TypeError: inverse ... got 'no'"),
    # the reference
    (lambda: rotation_matrix("1", 8), "TypeError: position must be a real number, got '1'"),
    (lambda: rotation_matrix(INF, 8), "ValueError: position must be finite, got inf"),
    (lambda: rotate_complex(np.ones(8), [0]), "ValueError: x must have at least 2 ... shape (8,)"),
    (lambda: rotate_by_matrix(np.ones((1, 7)), [0]), "ValueError: x.shape[-1] ... got 7"),
    (lambda: rotate_complex(np.ones((1, 8)) * 1j, [0]), "TypeError: x ... got dtype complex128"),
    (lambda: rotate_by_matrix(np.ones((1, 8)), ["0"]), "TypeError: positions ... got dtype <U1"),
    (
        lambda: rotate_by_matrix(np.ones((2, 3, 8)), [0, 1]),
        "ValueError: positions must have shape (T,) = (3,), got (2,)",
    ),
    (lambda: rotate_complex(np.ones((1, 8)), [[0]]), "ValueError: positions ... (1,), got (1, 1)"),
    (
        lambda: rotate_complex(np.ones((1, 8)), [0], inv_freq=[1.0]),
        "ValueError: inv_freq must have shape (dim/2,) = (4,), got (1,)",
    ),
    # several axes
    (
        lambda: wave_vectors("spiral", 8),
        "ValueError: kind must be one of axial, dinov3, kimi, mixed, mrope, pixtral; got 'spiral'",
    ),
    (lambda: wave_vectors("axial", 7), "ValueError: dim ... got 7"),
    (lambda: wave_vectors("axial", 8, axes=3), "ValueError: dim must be a multiple of 6 ... got 8"),
    (lambda: wave_vectors("axial", 8, axes=0), "ValueError: axes must be >= 1, got 0"),
    (lambda: wave_vectors("kimi", 6), "ValueError: dim must be a multiple of 4 ... got 6"),
    (lambda: wave_vectors("mixed", 6), "ValueError: dim must be a multiple of 4 ... got 6"),
    (lambda: wave_vectors("pixtral", 6), "ValueError: dim must be a multiple of 4 ... got 6"),
    (lambda: wave_vectors("axial", 8, 0), "ValueError: base must be finite and > 0, got 0"),
    (lambda: wave_vectors("mixed", 8, seed=-1), "ValueError: seed must be >= 0, got -1"),
    (lambda: wave_vectors("kimi", 8, axes=2), "TypeError: _kimi() got an unexpected ... 'axes'"),
    (lambda: wave_vectors("mrope", 8), "TypeError: _mrope() missing 1 ... 'mrope_section'"),
    (lambda: mrope([8, 12, 11]), "ValueError: mrope_section must add up to ... [8, 12, 11]"),
    (lambda: mrope([16, 16]), "ValueError: mrope_section must hold three integers, got [16, 16]"),
    (lambda: mrope(32), "ValueError: mrope_section must hold three integers, got 32"),
    (lambda: mrope([16, 17, -1]), "ValueError: mrope_section must be >= 0, got -1"),
    (
        lambda: mrope([8, 12, 12], mrope_interleaved=True),
        "ValueError: mrope_section interleaved gives [11, 11, 10], got [8, 12, 12]",
    ),
    (lambda: mrope([8, 12, 12], mrope_interleaved=1), "TypeError: mrope_interleaved must be True"),
    (lambda: mrope_positions([0]), "ValueError: parts must be >= 1, got 0"),
    (lambda: mrope_positions([1.0]), "ValueError: parts must hold three integers, got 1.0"),
    (lambda: mrope_positions([(4, 4)]), "ValueError: parts must hold three integers, got (4, 4)"),
    (lambda: mrope_positions([(1, 4, 0)]), "ValueError: parts must be >= 1, got 0"),
    (lambda: mrope_positions([(1, 4, 5)]), "ValueError: parts must have h and w divisible by 2"),
    (lambda: mrope_positions([1], spatial_merge_size=0), "ValueError: spatial_merge_size must be"),
    (
        lambda: mrope_positions([(1, 2, 2)], time_interval=-1),
        "ValueError: time_interval must be finite and >= 0, got -1",
    ),
    (
        lambda: mrope_positions([1, (1, 2, 2)], time_interval=[1, 2]),
        "ValueError: time_interval must be one number, or one for each of 1 grids, got (2,)",
    ),
    # rescalings
    (lambda: rescaled("yran", 64), "ValueError: kind must be one of by_parts, ... got 'yran'"),
    (lambda: rescaled("linear", 7, factor=2), "ValueError: dim must be a positive even ... got 7"),
    (lambda: rescaled("linear", 8, 0, factor=2), "ValueError: base must be finite and > 0, got 0"),
    (lambda: rescaled("linear", 8, factor=0), "ValueError: factor must be finite and > 0, got 0"),
    (lambda: rescaled("proportional", 8, factor=-2), "ValueError: factor must be ... got -2"),
    (lambda: rescaled("linear", 8, factor="2"), "TypeError: factor must be a real number, got '2'"),
    (lambda: rescaled("linear", 64), "TypeError: _linear() missing 1 ... 'factor'"),
    (lambda: rescaled("linear", 64, scale=2, factor=2), "TypeError: _linear() got ... 'scale'"),
    (lambda: rescaled("linear", 8, factor=1e-320), "ValueError: ... must give finite frequencies"),
    (lambda: rescaled("ntk", 2, factor=2), "ValueError: dim must be >= 4 for kind 'ntk', got 2"),
    (
        lambda: rescaled("dynamic", 8, factor=2, max_position_embeddings=10, seq_len=0),
        "ValueError: seq_len must be finite and > 0, got 0",
    ),
    (lambda: rescaled("by_parts", 8, **PARTS, beta_slow=0), "ValueError: beta_slow must be finite"),
    (
        lambda: rescaled("yarn_paper", 8, **PARTS, attention_factor=0),
        "ValueError: attention_factor must be finite and > 0, got 0",
    ),
    (lambda: rescaled("yarn", 8, 1.0, **PARTS), "ValueError: base must be > 1 for kind 'yarn'"),
    (lambda: yarn(beta_fast=0.5), "ValueError: beta_slow must be <= beta_fast, got 1.0 and 0.5"),
    (lambda: yarn(truncate="False"), "TypeError: truncate must be True or False, got 'False'"),
    (lambda: yarn(mscale="1"), "TypeError: mscale must be a real number, got '1'"),
    (lambda: yarn(mscale_all_dim=-1), "ValueError: mscale_all_dim must be finite and > 0, got -1"),
    (
        lambda: rescaled("llama3", 8, **PARTS, low_freq_factor=5, high_freq_factor=4),
        "ValueError: low_freq_factor must be <= high_freq_factor, got 5 and 4",
    ),
    (lambda: longrope(short_factor=[1]), "ValueError: short_factor must have shape (4,), got (1,)"),
    (lambda: longrope(long_factor=[1, 1, 0, 1]), "ValueError: long_factor must be finite and > 0"),
    (
        lambda: longrope(factor=None),
        "TypeError: kind 'longrope' needs factor or max_position_embeddings",
    ),
    (lambda: longrope(factor=2, seq_len=-5), "ValueError: seq_len must be finite and > 0, got -5"),
    (
        lambda: rescaled("proportional", 8, partial_rotary_factor=1.5),
        "ValueError: partial_rotary_factor must be in (0, 1], got 1.5",
    ),
    (
        lambda: rescaled("proportional", 8, partial_rotary_factor=0.1),
        "ValueError: partial_rotary_factor must leave at least one rotated pair, got 0.1 x 8",
    ),
    (
        lambda: rescaled("default", 6, partial_rotary_factor=0.5),
        "ValueError: partial_rotary_factor must leave a positive even rotated width, got 0.5 x 6",
    ),
    (lambda: rescaled("monotone", 8, max_positions=0), "ValueError: max_positions must be finite"),
    (
        lambda: rescaled("monotone", 8, max_positions=8, turns=-1),
        "ValueError: turns must be finite",
    ),
    # attention and cache
    (lambda: Attention(0, 4), "ValueError: embed_dim must be >= 1, got 0"),
    (lambda: Attention(32, 0), "ValueError: num_heads must be >= 1, got 0"),
    (lambda: Attention(32, 5), "ValueError: num_heads must divide embed_dim = 32, got 5"),
    (lambda: Attention(32, 4, 3), "ValueError: num_kv_heads must divide num_heads = 4, got 3"),
    (lambda: Attention(32, 4, 8), "ValueError: num_kv_heads must divide num_heads = 4, got 8"),
    (lambda: Attention(28, 4), "ValueError: head_dim must be a positive even integer, got 7"),
    (lambda: Attention(32, 4, head_dim=0), "ValueError: head_dim must be >= 1, got 0"),
    (
        lambda: Attention(32, 4, rotary_dim=10),
        "ValueError: rotary_dim must be <= head_dim = 8, got",
    ),
    (lambda: Attention(32, 4, bias="no"), "TypeError: bias must be True or False, got 'no'"),
    (lambda: KVCache(0, 4, 8, 8), "ValueError: batch_size must be >= 1, got 0"),
    (lambda: KVCache(2, 4.0, 8, 8), "TypeError: num_kv_heads must be an integer, got 4.0"),
    (lambda: KVCache(2, 4, 8, 8, v_head_dim=0), "ValueError: v_head_dim must be >= 1, got 0"),
    (lambda: KVCache(2, 4, 8, 8, raw="no"), "TypeError: raw must be True or False, got 'no'"),
    (lambda: KVCache(2, 4, 8, 8, raw=True), "TypeError: rope must be a RotaryEmbedding, got None"),
    (lambda: KVCache(2, 4, 8, 6, rope=RotaryEmbedding(8)), "ValueError: head_dim must be >= 8"),
    (lambda: moved(0.5), "TypeError: delta must be integers, got torch.float32"),
    (lambda: moved(None), "TypeError: delta must be integers, got None"),
    (lambda: moved(16), "ValueError: abs(delta) must be in 0..max_seq_len-1 = 0..15, got 16..16"),
    (lambda: moved(-16), "ValueError: abs(delta) must be in 0..max_seq_len-1 = 0..15, got 16"),
    (
        lambda: moved(IDS[0]),
        "ValueError: delta must be an integer, or ... got shape (4,) and (2, 3",
    ),
    (lambda: moved(IDS[:, :3]), "ValueError: delta must be an integer, or ... got shape (2, 3)"),
    (lambda: moved(IDS[:1].expand(3, 4)), "ValueError: delta must be ... got shape (3, 4)"),
    (lambda: moved(IDS[:1], X[0, 0]), "ValueError: delta must be ... shape (1, 4) and (4, 8)"),
    (lambda: moved(1, X.long()), "TypeError: keys must be a floating-point ... torch.int64"),
    (lambda: moved(1, X[..., :6]), "ValueError: keys must have shape ... D >= 8, got (2, 3, 4, 6)"),
    (lambda: move_keys(X, 1, COS), "TypeError: rope must be a RotaryEmbedding, got Tensor"),
    # latent attention, packed documents, context parallel
    (lambda: latent(kv_lora_rank=0), "ValueError: kv_lora_rank must be >= 1, got 0"),
    (lambda: latent(q_lora_rank=0), "ValueError: q_lora_rank must be >= 1, got 0"),
    (lambda: latent(qk_rope_head_dim=3), "ValueError: qk_rope_head_dim must be a positive even"),
    (lambda: latent(v_head_dim=4.0), "TypeError: v_head_dim must be an integer, got 4.0"),
    (lambda: latent(absorb="no"), "TypeError: absorb must be True or False, got 'no'"),
    (lambda: document_mask(IDS[0]), "ValueError: document_ids ... (B or 1, T), got (4,)"),
    (lambda: document_mask(COS), "TypeError: document_ids must be integers, got torch.float32"),
    (lambda: zigzag_indices([0, 4], 0, 0), "ValueError: cp_size must be >= 1, got 0"),
    (lambda: zigzag_indices([0, 4], 2, 2), "ValueError: cp_rank must be < cp_size = 2, got 2"),
    (lambda: zigzag_indices([0, 4], 2, -1), "ValueError: cp_rank must be >= 0, got -1"),
    (lambda: zigzag_indices([0, 6], 2, 0), "ValueError: cu_seqlens ... cp_size = 4, got [0, 6]"),
    (lambda: zigzag_indices([0, 8, 4], 2, 0), "ValueError: cu_seqlens ... got [0, 8, 4]"),
    (lambda: zigzag_indices([4, 8], 2, 0), "ValueError: cu_seqlens ... from 0, got [4, 8]"),
    (lambda: zigzag_indices([], 2, 0), "ValueError: cu_seqlens ... from 0, got []"),
    (lambda: zigzag_indices([[0, 4]], 2, 0), "ValueError: cu_seqlens ... from 0, got [[0, 4]]"),
    # distances on several axes
    (
        lambda: mean_cosine([1, 2, 3], AXES),
        "ValueError: distance must have shape (..., 2), as inv_freq has 2 axes, got (3,)",
    ),
    (lambda: code_distance(1, AXES), "ValueError: distance must have shape (..., 2) ... got ()"),
    (lambda: code_distance([1, 1], INF * AXES), "ValueError: inv_freq must be finite, got"),
    (lambda: code_distance([1, 1], np.ones((2, 0))), "ValueError: inv_freq ... (A, pairs) ... (2,"),
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
    # speeds and distances
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
        lambda: identify(rotate_complex, 8, positions=2**53 + 1),
        "ValueError: positions must be <= 2**53, got 9007199254740993",
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
    # files
    (lambda: convert("a", "ggml", "b"), "ValueError: to must be one of hf, ... got 'ggml'"),
    (lambda: convert("a", "gguf", "b"), "ValueError: output must end with .gguf where to is gguf"),
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


def test_the_checks_refuse_no_more_than_they_say() -> None:
    rope(offset=12)
    rope(offset=np.int64(12))
    rope(offset=0, position_ids=IDS + 12)
    RotaryEmbedding(8)(X[:, :, :0], position_ids=[[], []])
    RotaryEmbedding(8, 4)(X)
    apply_rope(X, COS[..., :1], SIN[..., :1])
    apply_rope(X, COS.expand(2, 1, 4, 4), SIN.expand(2, 1, 4, 4))
    permute_qk(torch.ones(256, 4), np.int8(64), inverse=np.bool_(True))
    rope_table([-5], 2, 1e-3)
    wave_vectors("mrope", 8, mrope_section=np.array([0, 1, 3]))
    yarn(mscale=0, mscale_all_dim=np.float32(0))
    rotation_matrix(-2.5, 2)
