"""diffusers: the rotations of Flux, CogVideoX, HunyuanVideo, LTX and Wan."""

from types import SimpleNamespace
from typing import Any

import torch
from diffusers.models.embeddings import apply_rotary_emb, get_3d_rotary_pos_embed
from diffusers.models.transformers import transformer_wan
from diffusers.models.transformers.transformer_flux import FluxPosEmbed
from diffusers.models.transformers.transformer_hunyuan_video import HunyuanVideoRotaryPosEmbed
from diffusers.models.transformers.transformer_ltx import (
    LTXVideoRotaryPosEmbed,
)
from diffusers.models.transformers.transformer_ltx import (
    apply_rotary_emb as apply_ltx,
)
from torch import Tensor

from engines.asking import HEAD_DIM, Case

NAME, PACKAGES, LICENCE = "diffusers", ["diffusers"], "Apache-2.0"

SIZE = 16
"""Positions of each axis of a video."""


def flux(x: Tensor, at: Tensor) -> Tensor:
    """Return x (N, T, D) at positions (T, 3)."""
    table = FluxPosEmbed(theta=10000, axes_dim=[16, 56, 56])(at)
    return apply_rotary_emb(x[:, :, None], table, sequence_dim=1)[:, :, 0]


def flat(at: Tensor) -> Tensor:
    """Return the places in a flattened video of positions (T, 3): frame, row, column."""
    return (at[:, 0] * SIZE + at[:, 1]) * SIZE + at[:, 2]


def in_video(table: tuple[Tensor, Tensor]) -> Any:
    """Return a function of x and positions of a video whose table is flattened."""

    def rotate(x: Tensor, at: Tensor) -> Tensor:
        rows = tuple(t[flat(at)] for t in table)
        return apply_rotary_emb(x[:, None], rows)[:, 0]

    return rotate


def ltx(x: Tensor, at: Tensor) -> Tensor:
    """Return x at positions of a video of 20 frames, 2,048 by 2,048 pixels."""
    cos, sin = LTXVideoRotaryPosEmbed(x.shape[-1])(x[:1], video_coords=at.T[None].float())
    return apply_ltx(x, (cos, sin))


def wan(x: Tensor, at: Tensor) -> Tensor:
    """Return x at positions of a video: the query that Wan's processor hands to attention."""
    same = torch.nn.Identity()
    parts = dict.fromkeys(("to_q", "to_k", "to_v", "norm_q", "norm_k"), same)
    attention = SimpleNamespace(
        **parts, add_k_proj=None, fused_projections=False, heads=1, to_out=[same, same]
    )
    video = torch.empty(1, 4, SIZE, SIZE, SIZE)
    tables = transformer_wan.WanRotaryPosEmbed(x.shape[-1], (1, 1, 1), 1024)(video)
    transformer_wan.dispatch_attention_fn = lambda query, *_, **__: query
    processor = transformer_wan.WanAttnProcessor()
    return processor(attention, x, rotary_emb=tuple(table[:, flat(at)] for table in tables))


def cases() -> list[Case]:
    """Return what is asked of diffusers."""
    video = torch.empty(1, 4, SIZE, SIZE, SIZE)
    kind, sizes = torch.float32, (SIZE, SIZE, SIZE)
    cogvideo = get_3d_rotary_pos_embed(HEAD_DIM, ((0, 0), (SIZE, SIZE)), (SIZE, SIZE), SIZE)
    hunyuan = HunyuanVideoRotaryPosEmbed(1, 1, [16, 56, 56])(video)
    return [
        Case("FluxPosEmbed, apply_rotary_emb", "axes_dim=[16, 56, 56]", flux, 128,
             (128, 128, 128), kind),
        Case("get_3d_rotary_pos_embed, apply_rotary_emb", "CogVideoX, 16 by 16 by 16",
             in_video(cogvideo), HEAD_DIM, sizes, kind),
        Case("HunyuanVideoRotaryPosEmbed, apply_rotary_emb", "rope_dim=[16, 56, 56]",
             in_video(hunyuan), 128, sizes, kind),
        Case("LTXVideoRotaryPosEmbed, apply_rotary_emb", "20 frames, 2,048 by 2,048", ltx, 96,
             (16, 16, 16), kind, "coordinates are fractions of the video, from -1 to 1"),
        Case("WanRotaryPosEmbed, WanAttnProcessor", "attention_head_dim=128, max_seq_len=1024",
             wan, 128, sizes, kind),
    ]  # fmt: skip
