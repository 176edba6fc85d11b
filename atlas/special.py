"""Families of transformers that need a few lines of their own: what gives them a position, and how.

`ALONE` has a function for each of these families, which returns records. `REASONS` says why others
cannot be recorded, and `NOTHING` which files rotate no head.
"""

import importlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any
from unittest import mock

import torch
from torch import Tensor

from . import BY_COUNT, BY_HEAD, FIRST_HEAD, INNER_WIDTH, TABLE_ALONE
from .recording import AttentionRecord, parts_of, record_cell, record_model

__all__ = [
    "ALONE", "ASKED", "CHOSEN", "CONVOLUTIONS", "ENOUGH", "NOTES", "NOTHING", "REASONS", "SMALL",
    "TABLES", "WHY", "complete",
]  # fmt: skip

REASONS = {
    "musicflamingo": (
        "it rotates the audio that enters its language model, no query and no key, by an angle "
        "that is the product of a time in seconds and of the index of a window or frame"
    ),
}
"""Families that rotate something that is not recorded, and why."""

NOTHING = {
    "cosmos3_omni": "it numbers the tokens of images; the heads are those of qwen3_vl",
    "glm46v": "it numbers the tokens of images; the heads are those of glm4v",
    "minicpmv4_7": "it numbers the tokens of images; the heads are those of qwen3_5",
    "pp_doclayout_v2": (
        "its frequencies make sines of the distances between boxes, which are added to scores"
    ),
}
"""Families whose files name a rotation and rotate no head."""

NOTES = {
    "openai_privacy_filter": (
        "queries and keys are multiplied by 64^-0.25 each after the rotation, which is in the "
        "factor; others divide scores by 8"
    ),
    "deepseek_v4": (
        f"where keys are summaries of several tokens, these {BY_COUNT}; which of them a query sees "
        "follows the positions"
    ),
    "hy_v3": "its configuration has base 11,158,840 and no rescaling: the same frequencies",
    "glm4_moe": (
        "its configuration has base 10,000, and half of a head of 42: that base over 21 channels, "
        "which 11 pairs take"
    ),
    "dbrx": "queries and keys are clipped before the rotation; the rotation itself is linear",
    "MiniMaxM3VLTextModel": "its indexer, which rotates too, stands in no layer by default",
    "Qwen2_5OmniDiTRotaryEmbedding + DiTAttention": f"it generates speech; {FIRST_HEAD}",
}
"""What has to be known besides of a family, or of a class, that is recorded as all are."""

CHOSEN: dict[str, dict[str, Any]] = {
    "EsmConfig": {"position_embedding_type": "rotary", "vocab_size": 33, "pad_token_id": 1},
    "Dots1Config": {"n_routed_experts": 8},
    "GraniteMoeHybridConfig": {"position_embedding_type": "rope"},
    "Glm4vTextConfig": {"partial_rotary_factor": 0.5},
    "Glm4vMoeTextConfig": {"head_dim": 128},
    "GlmImageTextConfig": {"partial_rotary_factor": 0.5},
    "CohereCompassTextConfig": {
        "rope_parameters": {
            kind: {"rope_type": "default", "rope_theta": 10_000.0}
            for kind in ("sliding_attention", "full_attention")
        }
    },
    "DbrxAttentionConfig": {"rope_theta": 10_000.0, "clip_qkv": 8.0},
    "DiffusionGemmaTextConfig": {
        "num_experts": 8, "top_k_experts": 2, "moe_intermediate_size": 64,
    },
    "HunYuanVLTextConfig": {"mrope_section": [16, 16, 16, 16]},
    "Qwen3OmniMoeTextConfig": {"head_dim": 128},
    "Qwen3OmniMoeTalkerTextConfig": {"shared_expert_intermediate_size": 768},
    "Step3p7TextConfig": {"sliding_window": 512},
    "T5Gemma2TextConfig": {"dropout_rate": 0.0},
    "T5Gemma2DecoderConfig": {"dropout_rate": 0.0},
}  # fmt: skip
"""What is set against the defaults, where these choose no rotation or fit no class."""


def complete(config: Any) -> Any:
    """Return a configuration with `CHOSEN` and sizes that its classes need set in all parts."""
    for part in parts_of(config):
        for name, value in CHOSEN.get(type(part).__name__, {}).items():
            if name in ("partial_rotary_factor", "mrope_section"):
                part.rope_parameters = {**part.rope_parameters, name: value}
            else:
                setattr(part, name, value)
        with suppress(Exception):  # heads that differ from layer to layer
            if part.head_dim is None:
                part.head_dim = part.hidden_size // part.num_attention_heads
        with suppress(Exception):
            if part.num_key_value_heads is None:
                part.num_key_value_heads = part.num_attention_heads
    return config


# ---- a table and an attention module, an image or a part of it -----------------------------------


def _file(family: str, kind: str = "modeling") -> Any:
    return importlib.import_module(f"transformers.models.{family}.{kind}_{family}")


def _config(family: str, given: Any, **more: Any) -> Any:
    """Return what is given, or the usual configuration of a family in `ALONE`."""
    return given or complete(getattr(_file(family, "configuration"), ASKED[family])(**more))


def _kept(one: AttentionRecord | None, **more: Any) -> list[AttentionRecord]:
    return [] if one is None else [replace(one, **more)]


def _of_function(
    name: str, width: int, axes: int, rotate: Any, note: str = "", **more: Any
) -> AttentionRecord:
    """Return the record of a function whose attention module is not run."""
    note = "; ".join(filter(None, (note, TABLE_ALONE)))
    return AttentionRecord(name, (), width, axes, True, rotate, note=note, **more)


IMAGES = {
    "dinov3_vit": ("DINOv3ViT", "RopePositionEmbedding"),
    "eomt_dinov3": ("EomtDinov3", "RotaryEmbedding"),
    "sapiens2": ("Sapiens2", "RopePositionEmbedding"),
}
"""Families whose angles follow from the size of an image: prefix, and the class of the table."""


def of_image(family: str, given: Any = None) -> list[AttentionRecord]:
    """A table for an image of 16 x 16 patches, or of the size in a configuration, row by row."""
    prefix, table = IMAGES[family]
    config = _config(family, given)
    side = given.image_size // given.patch_size if given else 16
    rope = getattr(_file(family), prefix + table)(config).eval()  # no random coordinates
    cos, sin = rope(torch.zeros(1, 3, side * config.patch_size, side * config.patch_size))

    def embed(at: Tensor) -> tuple[Tensor, Tensor]:
        place = at[:, 0] * side + at[:, 1]
        return cos[place], sin[place]

    note = f"an image of {side} x {side} patches: coordinates are fractions of its height and "
    note += "width, and the fastest pair makes two turns from edge to edge"
    found = record_cell(config, getattr(_file(family), f"{prefix}Attention"), embed, 2)
    return _kept(found, sizes=(side, side), note=note)


def llama4(given: Any = None) -> list[AttentionRecord]:
    """Complex numbers for an image of fixed size, row by row; the first axis is the row."""
    module, config = _file("llama4"), _config("llama4", given)
    table = module.Llama4VisionRotaryEmbedding(config).freqs_ci
    side = config.image_size // config.patch_size

    def embed(at: Tensor) -> Tensor:
        return table[at[:, 0] * side + at[:, 1]]

    found = record_cell(config, module.Llama4VisionAttention, embed, 2, ("freqs_ci",))
    return _kept(found, sizes=(side, side))


def vjepa2(given: Any = None) -> list[AttentionRecord]:
    """The index of a token gives frame, row and column."""
    module, config = _file("vjepa2"), _config("vjepa2", given)
    side = config.crop_size // config.patch_size

    def embed(at: Tensor) -> Tensor:
        return ((at[:, 0] * side + at[:, 1]) * side + at[:, 2])[None]

    found = record_cell(config, module.VJEPA2RopeAttention, embed, 3, ("position_mask",))
    return _kept(found, sizes=(config.frames_per_clip // config.tubelet_size, side, side))


def _of_grid(
    config: Any, table: Any, attention: Any, places: Tensor, side: int, **more: Any
) -> list[AttentionRecord]:
    """Attention to an image whose coordinates, row by row, are known to its table."""

    class Attention(attention):
        def forward(self, query: Tensor, position_embeddings: Any) -> Any:
            x = query.reshape(1, 1, -1, query.shape[-1])
            if "hidden_states" in attention.forward.__annotations__:
                return super().forward(x, position_embeddings)
            return super().forward(x, x, x, position_embeddings)

    def embed(at: Tensor) -> Any:
        return table(torch.zeros(1), places[at[:, 0] * side + at[:, 1]])

    found = record_cell(config, Attention, embed, 2)
    return _kept(found, model=attention.__name__, sizes=(side, side), **more)


MEMORIES = {
    "sam2_video": ("Sam2Video", "RoPEAttention", ""),
    "sam3_tracker_video": ("Sam3TrackerVideo", "RoPEAttention", ""),
    "edgetam_video": (
        "EdgeTamVideo", "RoPESelfAttention",
        "; attention to the memory itself, which rotates too, was not recorded",
    ),
}  # fmt: skip
"""Families with attention of an image to itself and to earlier ones; the first axis is the row."""


def of_memory(family: str, given: Any = None) -> list[AttentionRecord]:
    """Attention of an image to itself, or to itself and its memory."""
    prefix, attention, more = MEMORIES[family]
    module, config = _file(family), _config(family, given)
    places = getattr(module, f"{prefix}MemoryAttention").precompute_positions(config)
    table = getattr(module, f"{prefix}VisionRotaryEmbedding")(config)
    side = config.memory_attention_rope_feat_sizes[0]
    note = f"memory attention; its vision tower is another family's{more}"
    return _of_grid(config, table, getattr(module, prefix + attention), places, side, note=note)


def sam3(given: Any = None) -> list[AttentionRecord]:
    """Layers that see a window, and layers that see the image in steps of a third."""
    module, config = _file("sam3"), _config("sam3", given)
    table = module.Sam3ViTRotaryEmbedding(config)
    found = []
    for kind, window in (("window", config.window_size), ("whole_picture", 0)):
        places = module.Sam3ViTLayer.precompute_positions(config, window)
        side = round(len(places) ** 0.5)
        note = f"a {kind.replace('_', ' ')} of {side} x {side} patches"
        note += "" if window else ", whose coordinates go in steps of a third"
        more = {"kind": kind, "note": note}
        found += _of_grid(config, table, module.Sam3ViTRoPEAttention, places, side, **more)
    return found


def hunyuan_vl(given: Any = None) -> list[AttentionRecord]:
    """Four axes, for the tokens of images; the position of text stands in all four."""
    module, config = _file("hunyuan_vl"), _config("hunyuan_vl", given)
    table = module.HunYuanVLRotaryEmbedding(config)

    def embed(at: Tensor) -> Any:
        return table(torch.zeros(1), at.expand(-1, 4).T[:, None])

    text, image = (record_cell(config, module.HunYuanVLDenseV1Attention, embed, n) for n in (1, 4))
    axes = "the tokens of an image: a position, column, row and number of the image"
    return _kept(text, kind="text", note="text: its position stands in all four axes") + _kept(
        image, kind="picture", sizes=(64,) * 4, note=axes
    )


def idefics(given: Any = None) -> list[AttentionRecord]:
    """Attention that makes its own table, of as many tokens as there are."""
    module, config = _file("idefics"), _config("idefics", given)

    class Attention(module.IdeficsAttention):
        def __init__(self, config: Any) -> None:
            heads = config.num_attention_heads
            super().__init__(config.hidden_size, heads, config=config, layer_idx=0)

    found = record_cell(config, Attention, lambda at: None, 1, ())
    return _kept(found, model="IdeficsAttention", sizes=(512,))


# ---- learned parameters, as they start -----------------------------------------------------------


def timesfm2_5(given: Any = None) -> list[AttentionRecord]:
    """Queries are multiplied by parameters, one for each channel, which are set alike."""
    module, config = _file("timesfm2_5"), _config("timesfm2_5", given)
    table = module.TimesFm2_5RotaryEmbedding(config)

    class Attention(module.TimesFm2_5Attention):
        def __init__(self, config: Any, layer_idx: int) -> None:
            super().__init__(config, layer_idx)
            del self.scaling
            self.scaling = torch.zeros(self.head_dim)

    def embed(at: Tensor) -> Any:
        return table(torch.zeros(1), at[:, 0][None])

    found = record_cell(config, Attention, embed, 1)
    note = "queries are multiplied by parameters, one for each channel; these are set alike"
    return _kept(found, model="TimesFm2_5Attention", note=note)


def mistral_large4(given: Any = None) -> list[AttentionRecord]:
    """Queries are multiplied by parameters, which are given as they start."""
    module = _file("mistral_large4")

    class Scaling(module.MistralLarge4TextSoftmaxScaling):
        def __init__(self, num_heads: int) -> None:
            super().__init__(num_heads)
            del self.scale, self.bias
            self.scale, self.bias = torch.zeros(num_heads), torch.ones(num_heads)

    config = _config("mistral_large4", given)
    with mock.patch.object(module, "MistralLarge4TextSoftmaxScaling", Scaling):
        found = record_model(module.MistralLarge4TextModel, config)
    note = "queries scaled with the position and frequencies are learned; these are as they start"
    return [replace(one, note=note) for one in found]


def lightglue(given: Any = None) -> list[AttentionRecord]:
    """Frequencies are parameters, which are given as they start."""
    module, config = _file("lightglue"), _config("lightglue", given)
    encoder = module.LightGluePositionalEncoder(config).requires_grad_(False)

    def rotate(x: Tensor, at: Tensor) -> Tensor:
        cos, sin = encoder(at[None].float())[0]
        rows = x[:, None]
        return module.apply_rotary_pos_emb(rows, rows, cos, sin)[0][:, 0]

    width = 2 * encoder.projector.out_features
    note = "frequencies are learned; these are as they start, for the coordinates of a key point"
    return [_of_function("LightGluePositionalEncoder", width, 2, rotate, note, sizes=(64, 64))]


# ---- a table and the function that applies it, alone ---------------------------------------------


def efficientloftr(given: Any = None) -> list[AttentionRecord]:
    """Rotated over the full inner width, before it is split into heads."""
    module, config = _file("efficientloftr"), _config("efficientloftr", given)
    side = 15 * config.q_aggregation_stride + config.q_aggregation_kernel_size
    tables = module.EfficientLoFTRRotaryEmbedding(config)(torch.zeros(1, 1, side, side))
    cos, sin = (t.reshape(256, -1) for t in tables)

    def rotate(x: Tensor, at: Tensor) -> Tensor:
        place, rows = at[:, 0] * 16 + at[:, 1], x.unsqueeze(-2)
        q, _ = module.apply_rotary_pos_emb(rows, rows, cos[place], sin[place], unsqueeze_dim=1)
        return q.squeeze(-2)

    width = cos.shape[-1]
    return [_of_function("EfficientLoFTRAttention", width, 2, rotate, INNER_WIDTH, sizes=(16, 16))]


def esmfold2(given: Any = None) -> list[AttentionRecord]:
    """Atoms: three coordinates in space and the number of a residue."""
    module, config = _file("esmfold2"), _config("esmfold2", given)
    table = module.EsmFold2RotaryEmbedding(config)

    def rotate(x: Tensor, at: Tensor) -> Tensor:
        cos, sin = table(at[None, :, :3].float(), at[None, :, 3], torch.float32)
        return module.apply_rotary_pos_emb(x[:, None], x[:, None], cos, sin)[0][:, 0]

    note, name = "an atom's position: x, y, z and the number of its residue", type(table).__name__
    return [_of_function(name, config.head_dim, 4, rotate, note, sizes=(64,) * 4)]


TABLES = {
    "dia": ("DiaRotaryEmbedding", "DiaDecoderConfig", "the decoder"),
    "muse_spark": ("MuseSparkTextRotaryEmbedding", "MuseSparkTextConfig", ""),
    "voxtral_realtime": ("VoxtralRealtimeRotaryEmbedding", "VoxtralRealtimeTextConfig", ""),
    "hy_v4": ("HYV4RotaryEmbedding", "HYV4Config", ""),
    "jetmoe": ("JetMoeRotaryEmbedding", "JetMoeConfig", "experts that are chosen project queries"),
    "moonshine_streaming": (
        "MoonshineStreamingRotaryEmbedding", "MoonshineStreamingConfig", "the decoder",
    ),
    "moshi": ("MoshiRotaryEmbedding", "MoshiConfig", ""),
    "muse_glimmer_assistant": (
        "MuseGlimmerAssistantRotaryEmbedding", "MuseGlimmerAssistantConfig", "",
    ),
    "neucodec": ("NeuCodecRotaryEmbedding", "NeuCodecConfig", BY_HEAD),
    "qwen4_exp": ("Qwen4ExpTextRotaryEmbedding", "Qwen4ExpTextConfig", ""),
    "xcodec2": ("Xcodec2RotaryEmbedding", "Xcodec2Config", BY_HEAD),
    "zamba2": ("Zamba2RotaryEmbedding", "Zamba2Config", "use_mem_rope, False by default, is on"),
    "zaya": ("ZayaRotaryEmbedding", "ZayaConfig", ""),
}  # fmt: skip
"""Families whose attention modules are not reached: class of the table, configuration, note."""


def of_table(family: str, given: Any = None) -> list[AttentionRecord]:
    """A table and the function that applies it, for each kind of layer of a configuration."""
    table, _, note = TABLES[family]
    module, config = _file(family), _config(family, given)
    made = getattr(module, table)(config)
    functions = ("apply_rotary_pos_emb_interleave", "apply_rotary_pos_emb")
    apply = next(getattr(module, name) for name in functions if hasattr(module, name))
    axes = 3 if getattr(made, "mrope_section", None) else 1
    found = []
    for kind in getattr(made, "layer_types", [None]):
        which = (kind,) if kind else ()

        def rotate(x: Tensor, at: Tensor, which: tuple[str, ...] = which) -> Tensor:
            rows, ids = x[:, None], at[None] if axes == 1 else at.T[:, None]
            return apply(rows, rows, *made(x, ids, *which))[0][:, 0]

        first = torch.zeros((1,) if axes == 1 else (1, axes), dtype=torch.long)
        width = getattr(config, "head_dim", 0)
        try:
            rotate(torch.zeros(1, 1, width), first)
        except RuntimeError:  # the function takes the channels that rotate, and no more
            width = made(first.float(), first[None], *which)[0].shape[-1]
        found.append(_of_function(table, width, axes, rotate, note, kind=kind))
    return found


def hy_v4(given: Any = None) -> list[AttentionRecord]:
    """A head is a part without positions and one with them, which comes last."""
    (part,) = of_table("hy_v4", given)
    head_dim = _config("hy_v4", given).qk_head_dim

    def rotate(x: Tensor, at: Tensor) -> Tensor:
        plain, rotary = x.split((head_dim - part.head_dim, part.head_dim), dim=-1)
        return torch.cat((plain, part.rotate(rotary, at)), dim=-1)

    return [replace(part, head_dim=head_dim, rotate=rotate)]


CONFORMERS = {
    "seamless_m4t": ("SeamlessM4T", "Conformer"),
    "wav2vec2_bert": ("Wav2Vec2Bert", ""),
    "wav2vec2_conformer": ("Wav2Vec2Conformer", ""),
}
"""Families that rotate what enters the projections of queries and keys: prefixes of classes."""


def before_projection(family: str, given: Any = None) -> list[AttentionRecord]:
    """Rotate what enters the projections of queries and keys, not what leaves them."""
    prefix, more = CONFORMERS[family]
    config = _config(family, given, position_embeddings_type="rotary")
    attention = f"{prefix}{more}SelfAttention"
    layer = getattr(_file(family), attention)(config)
    embed = getattr(_file(family), f"{prefix}{more}RotaryPositionalEmbedding")(config)

    def rotate(x: Tensor, at: Tensor) -> Tensor:
        rows = x.new_zeros(len(x), int(at.max()) + 1, x.shape[-1])
        rows[:, at] = x
        rows = rows.repeat(1, 1, layer.num_heads)
        rotated = layer._apply_rotary_embedding(rows, embed(rows))
        return rotated[:, at, : x.shape[-1]]

    note = "position_embeddings_type is set to rotary; W R x instead of R W x: scores do not "
    note += "depend on the distance alone"
    where = "before the projection"
    return [_of_function(attention, layer.head_size, 1, rotate, note, sizes=(512,), where=where)]


ALONE: dict[str, Callable[..., list[AttentionRecord]]] = {
    **{family: partial(of_table, family) for family in TABLES},
    **{family: partial(of_image, family) for family in IMAGES},
    **{family: partial(of_memory, family) for family in MEMORIES},
    **{family: partial(before_projection, family) for family in CONFORMERS},
    **{
        made.__name__: made
        for made in (
            efficientloftr, esmfold2, hunyuan_vl, hy_v4, idefics, lightglue, llama4,
            mistral_large4, sam3, timesfm2_5, vjepa2,
        )
    },
}  # fmt: skip

ASKED = {
    **{family: name for family, (_, name, _) in TABLES.items()},
    **{family: f"{prefix}Config" for family, (prefix, _) in IMAGES.items()},
    **{family: f"{prefix}Config" for family, (prefix, *_) in MEMORIES.items()},
    **{family: f"{prefix}Config" for family, (prefix, _) in CONFORMERS.items()},
    "efficientloftr": "EfficientLoFTRConfig", "esmfold2": "EsmFold2AtomEncoderConfig",
    "hunyuan_vl": "HunYuanVLTextConfig", "hy_v4": "HYV4Config", "idefics": "IdeficsConfig",
    "lightglue": "LightGlueConfig", "llama4": "Llama4VisionConfig",
    "mistral_large4": "MistralLarge4TextConfig", "sam3": "Sam3ViTConfig",
    "timesfm2_5": "TimesFm2_5Config", "vjepa2": "VJEPA2Config",
}  # fmt: skip
"""Classes of configurations that the functions of `ALONE` take."""

SMALL: dict[str, dict[str, Any]] = {
    "DbrxConfig": {"attn_config.rope_theta": 10_000.0, "attn_config.clip_qkv": 8.0},
    "DeepseekV4Config": {
        "num_hidden_layers": 6,
        "layer_types": [
            "sliding_attention", "sliding_attention", "compressed_sparse_attention",
            "heavily_compressed_attention", "compressed_sparse_attention",
            "heavily_compressed_attention",
        ],
    },
    "Dots1Config": {"n_shared_experts": 1, "num_experts_per_tok": 2},
    "Gemma3nTextConfig": {
        "vocab_size": 64, "vocab_size_per_layer_input": 64, "hidden_size_per_layer_input": 8,
        "num_kv_shared_layers": 0,
    },
    "LongcatFlashConfig": {"head_dim": 12, "qk_rope_head_dim": 12},
    "Qwen4ExpTextConfig": {  # with its indexer, as released; attention is not reached without
        "vocab_size": 64, "moe_intermediate_size": 16, "shared_expert_intermediate_size": 16,
        "num_experts": 4, "num_experts_per_tok": 2, "linear_num_key_heads": 2,
        "linear_num_value_heads": 2, "linear_key_head_dim": 16, "linear_value_head_dim": 16,
        "ple_layer_ids": [], "indexer_n_heads": 2, "indexer_kv_heads": 1, "indexer_head_dim": 64,
        "indexer_budget": 8, "indexer_compress_ratio": 2, "hc_lowrank": 16,
    },
    "Sam3ViTConfig": {"global_attn_indexes": [1, 3]},
    "ZayaConfig": {"sliding_window": 4, "layer_types": ["hybrid", "hybrid_sliding"] * 3},
    "Zamba2Config": {"head_dim": "leave out"},  # which its own name does not set
}  # fmt: skip
"""Fields to ask with, where the defaults leave a kind of layer out or are big."""

WHY = {
    "hunyuan_vl_text": (
        "the tokens of an image are not rotated but mixed (four coordinates, each section twice); "
        "text alone is rotated"
    ),
    "evolla": "the configuration of its tower for proteins, which rotates, too, has no model_type",
    "lightglue": "its frequencies are learned: they stand in the weights, not in the configuration",
    "mistral_large4_text": (
        "factors on its frequencies and queries are learned: they stand in the weights, not in the "
        "configuration"
    ),
    "vjepa2": (
        "it rotates nothing: cosines and sines of neighbours are exchanged, and lengths change"
    ),
    "esmfold2": (
        "its atoms turn by coordinates in space, with frequencies of their own; its language model "
        "is an esmc"
    ),
}
"""Types of model without a rule, and why."""

CONVOLUTIONS = {"gemma3n_vision"}
"""Types of model that rotate nothing and are made by a package that is not installed, timm."""

ENOUGH = {
    *MEMORIES, *CONFORMERS, "hunyuan_vl", "idefics", "jetmoe", "lightglue", "mistral_large4",
    "sam3", "timesfm2_5", "vjepa2",
}  # fmt: skip
"""Families of which nothing else rotates: their models are not run."""
