"""Families of transformers that want a few lines of their own: what tells them a position, and how.

Each function returns what is heard; `ALONE` names them by family. `REASONS` says why others cannot
be asked, and `NOTHING` of which files nothing turns a head.
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

from atlas.recording import Heard, hear, hear_cell, parts_of

from . import BY_COUNT, BY_HEAD, FIRST_HEAD, INNER_WIDTH, UNHEARD

__all__ = ["ALONE", "CHOSEN", "ENOUGH", "NOTES", "NOTHING", "REASONS", "complete"]

REASONS = {
    "musicflamingo": (
        "it turns the sound that enters its language model, no query and no key, by an angle that "
        "is the product of a time in seconds and of the index of a window or frame"
    ),
}
"""Families that rotate something that cannot be asked, and why."""

NOTHING = {
    "cosmos3_omni": "it numbers the tokens of pictures; the heads are those of qwen3_vl",
    "glm46v": "it numbers the tokens of pictures; the heads are those of glm4v",
    "minicpmv4_7": "it numbers the tokens of pictures; the heads are those of qwen3_5",
    "pp_doclayout_v2": (
        "its frequencies make sines of the distances between boxes, which are added to scores"
    ),
}
"""Families whose files speak of it and turn no head."""

NOTES = {
    "openai_privacy_filter": (
        "queries and keys are multiplied by 64^-0.25 each after the turn, which stands in the "
        "factor; others divide scores by 8"
    ),
    "deepseek_v4": (
        f"where keys are summaries of several tokens, these {BY_COUNT}; which of them a query sees "
        "follows the positions"
    ),
    "hy_v3": "its configuration has base 11,158,840 and no rescaling: the same numbers",
    "glm4_moe": (
        "its configuration has base 10,000, and half of a head of 42: that base over 21 channels, "
        "which 11 pairs take"
    ),
    "dbrx": "queries and keys are clipped before the turn; the turn itself is linear",
    "MiniMaxM3VLTextModel": "its indexer, which turns too, stands in no layer by default",
    "Qwen2_5OmniDiTRotaryEmbedding + DiTAttention": f"it makes speech; {FIRST_HEAD}",
}
"""What has to be known besides of a family, or of a class, that is asked as all are."""

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
    """Return a configuration, and its parts, with what their own classes cannot do without."""
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


def _of(family: str, kind: str = "modeling") -> Any:
    return importlib.import_module(f"transformers.models.{family}.{kind}_{family}")


def _kept(heard: Heard | None, **more: Any) -> list[Heard]:
    return [] if heard is None else [replace(heard, **more)]


def _of_function(
    part: str, width: int, axes: int, rotate: Any, note: str = "", **more: Any
) -> Heard:
    """What is heard where the module around a rotation is not run."""
    said = "; ".join(filter(None, (note, UNHEARD)))
    return Heard(part, (), width, axes, True, rotate, note=said, **more)


def _of_pixels(family: str, name: str, table: str, attention: str, patch: int) -> list[Heard]:
    """A table for a picture of 16 x 16 patches, row by row."""
    config = getattr(_of(family, "configuration"), name)()
    rope = getattr(_of(family), table)(config).eval()  # in training it stretches places at random
    cos, sin = rope(torch.zeros(1, 3, 16 * patch, 16 * patch))

    def embed(at: Tensor) -> tuple[Tensor, Tensor]:
        place = at[:, 0] * 16 + at[:, 1]
        return cos[place], sin[place]

    note = "a picture of 16 x 16 patches: places are parts of its height and width, and the "
    note += "fastest pair makes two turns from edge to edge"
    heard = hear_cell(config, getattr(_of(family), attention), embed, 2)
    return _kept(heard, ends=(16, 16), note=note)


def dinov3_vit() -> list[Heard]:
    """Angles from the picture's size."""
    names = ("DINOv3ViTConfig", "DINOv3ViTRopePositionEmbedding", "DINOv3ViTAttention")
    return _of_pixels("dinov3_vit", *names, 16)


def eomt_dinov3() -> list[Heard]:
    """Angles from the picture's size."""
    names = ("EomtDinov3Config", "EomtDinov3RotaryEmbedding", "EomtDinov3Attention")
    return _of_pixels("eomt_dinov3", *names, 16)


def sapiens2() -> list[Heard]:
    """Angles from the picture's size."""
    names = ("Sapiens2Config", "Sapiens2RopePositionEmbedding", "Sapiens2Attention")
    return _of_pixels("sapiens2", *names, 16)


def llama4() -> list[Heard]:
    """Complex numbers for a picture of fixed size, row by row; the first axis is the row."""
    module = _of("llama4")
    config = _of("llama4", "configuration").Llama4VisionConfig()
    table = module.Llama4VisionRotaryEmbedding(config).freqs_ci
    side = config.image_size // config.patch_size

    def embed(at: Tensor) -> Tensor:
        return table[at[:, 0] * side + at[:, 1]]

    heard = hear_cell(config, module.Llama4VisionAttention, embed, 2, ("freqs_ci",))
    return _kept(heard, ends=(side, side))


def vjepa2() -> list[Heard]:
    """A token's number says frame, row and column."""
    module = _of("vjepa2")
    config = _of("vjepa2", "configuration").VJEPA2Config()
    side = config.crop_size // config.patch_size

    def embed(at: Tensor) -> Tensor:
        return ((at[:, 0] * side + at[:, 1]) * side + at[:, 2])[None]

    heard = hear_cell(config, module.VJEPA2RopeAttention, embed, 3, ("position_mask",))
    return _kept(heard, ends=(config.frames_per_clip // config.tubelet_size, side, side))


def _of_grid(
    config: Any, table: Any, attention: Any, places: Tensor, side: int, **more: Any
) -> list[Heard]:
    """Attention to a picture whose places, row by row, are known to its table."""
    name = attention.__name__

    class Attention(attention):
        def forward(self, query: Tensor, position_embeddings: Any) -> Any:
            x = query.reshape(1, 1, -1, query.shape[-1])
            if "hidden_states" in attention.forward.__annotations__:
                return super().forward(x, position_embeddings)
            return super().forward(x, x, x, position_embeddings)

    def embed(at: Tensor) -> Any:
        return table(torch.zeros(1), places[at[:, 0] * side + at[:, 1]])

    heard = hear_cell(config, Attention, embed, 2)
    return _kept(heard, part=name, ends=(side, side), **more)


def _memory(family: str, prefix: str, attention: str) -> list[Heard]:
    """Attention of a picture to itself and to those before it; the first axis is the row."""
    module = _of(family)
    config = getattr(_of(family, "configuration"), f"{prefix}Config")()
    places = getattr(module, f"{prefix}MemoryAttention").precompute_positions(config)
    table = getattr(module, f"{prefix}VisionRotaryEmbedding")(config)
    side = config.memory_attention_rope_feat_sizes[0]
    note = "memory attention; its tower of pictures is another family's"
    return _of_grid(config, table, getattr(module, attention), places, side, note=note)


def sam2_video() -> list[Heard]:
    """Memory attention."""
    return _memory("sam2_video", "Sam2Video", "Sam2VideoRoPEAttention")


def sam3_tracker_video() -> list[Heard]:
    """Memory attention."""
    return _memory("sam3_tracker_video", "Sam3TrackerVideo", "Sam3TrackerVideoRoPEAttention")


def edgetam_video() -> list[Heard]:
    """Memory attention, that of a picture to itself."""
    (heard,) = _memory("edgetam_video", "EdgeTamVideo", "EdgeTamVideoRoPESelfAttention")
    note = f"{heard.note}; attention to the memory itself, which turns too, was not asked"
    return [replace(heard, note=note)]


def sam3() -> list[Heard]:
    """Layers that see a window, and layers that see the picture in steps of a third."""
    module = _of("sam3")
    config = _of("sam3", "configuration").Sam3ViTConfig()
    table = module.Sam3ViTRotaryEmbedding(config)
    heard = []
    for kind, window in (("window", config.window_size), ("whole_picture", 0)):
        places = module.Sam3ViTLayer.precompute_positions(config, window)
        side = round(len(places) ** 0.5)
        attention = module.Sam3ViTRoPEAttention
        note = f"a {kind.replace('_', ' ')} of {side} x {side} patches"
        note += "" if window else ", whose places go in steps of a third"
        heard += _of_grid(config, table, attention, places, side, kind=kind, note=note)
    return heard


def hunyuan_vl() -> list[Heard]:
    """Four axes, for the tokens of pictures; text has its place in all four."""
    module = _of("hunyuan_vl")
    config = complete(_of("hunyuan_vl", "configuration").HunYuanVLTextConfig())
    table = module.HunYuanVLRotaryEmbedding(config)

    def embed(at: Tensor) -> Any:
        return table(torch.zeros(1), at.T[:, None])

    def embed_text(at: Tensor) -> Any:
        return embed(at.expand(-1, 4))

    attention = module.HunYuanVLDenseV1Attention
    text = hear_cell(config, attention, embed_text, 1)
    picture = hear_cell(config, attention, embed, 4)
    named = "the tokens of a picture: a position, column, row and number of the picture"
    return _kept(text, kind="text", note="text: its place stands in all four axes") + _kept(
        picture, kind="picture", ends=(64,) * 4, note=named
    )


def timesfm2_5() -> list[Heard]:
    """Queries are multiplied by weights, one for each channel, which are set alike."""
    module = _of("timesfm2_5")
    config = _of("timesfm2_5", "configuration").TimesFm2_5Config()
    table = module.TimesFm2_5RotaryEmbedding(config)

    class Attention(module.TimesFm2_5Attention):
        def __init__(self, config: Any, layer_idx: int) -> None:
            super().__init__(config, layer_idx)
            del self.scaling
            self.scaling = torch.zeros(self.head_dim)

    def embed(at: Tensor) -> Any:
        return table(torch.zeros(1), at[:, 0][None])

    heard = hear_cell(config, Attention, embed, 1)
    note = "queries are multiplied by weights, one for each channel; these are set alike"
    return _kept(heard, part="TimesFm2_5Attention", note=note)


def mistral_large4() -> list[Heard]:
    """Queries are multiplied by weights, which are given as they start."""
    module = _of("mistral_large4")

    class Scaling(module.MistralLarge4TextSoftmaxScaling):
        def __init__(self, num_heads: int) -> None:
            super().__init__(num_heads)
            del self.scale, self.bias
            self.scale, self.bias = torch.zeros(num_heads), torch.ones(num_heads)

    config = complete(_of("mistral_large4", "configuration").MistralLarge4TextConfig())
    with mock.patch.object(module, "MistralLarge4TextSoftmaxScaling", Scaling):
        heard = hear(module.MistralLarge4TextModel, config)
    note = "queries scaled with the position and frequencies are learned; these are as they start"
    return [replace(one, note=note) for one in heard]


def lightglue() -> list[Heard]:
    """Frequencies are weights, which are given as they start."""
    module = _of("lightglue")
    config = _of("lightglue", "configuration").LightGlueConfig()
    encoder = module.LightGluePositionalEncoder(config).requires_grad_(False)

    def rotate(x: Tensor, at: Tensor) -> Tensor:
        cos, sin = encoder(at[None].float())[0]
        rows = x[:, None]
        return module.apply_rotary_pos_emb(rows, rows, cos, sin)[0][:, 0]

    width = 2 * encoder.projector.out_features
    note = "frequencies are weights; these are as they start, for the coordinates of a key point"
    return [_of_function("LightGluePositionalEncoder", width, 2, rotate, note, ends=(64, 64))]


def efficientloftr() -> list[Heard]:
    """Turned over the whole inner width, and then cut into heads."""
    module = _of("efficientloftr")
    config = _of("efficientloftr", "configuration").EfficientLoFTRConfig()
    size, stride = config.q_aggregation_kernel_size, config.q_aggregation_stride
    side = 15 * stride + size
    tables = module.EfficientLoFTRRotaryEmbedding(config)(torch.zeros(1, 1, side, side))
    cos, sin = (t.reshape(256, -1) for t in tables)

    def rotate(x: Tensor, at: Tensor) -> Tensor:
        place = at[:, 0] * 16 + at[:, 1]
        rows = x.unsqueeze(-2)
        turned = module.apply_rotary_pos_emb(rows, rows, cos[place], sin[place], unsqueeze_dim=1)
        return turned[0].squeeze(-2)

    width = cos.shape[-1]
    return [_of_function("EfficientLoFTRAttention", width, 2, rotate, INNER_WIDTH, ends=(16, 16))]


def esmfold2() -> list[Heard]:
    """Atoms: three coordinates in space and the number of a residue."""
    module = _of("esmfold2")
    configs = _of("esmfold2", "configuration")
    config = configs.EsmFold2AtomEncoderConfig()
    table = module.EsmFold2RotaryEmbedding(config)

    def rotate(x: Tensor, at: Tensor) -> Tensor:
        cos, sin = table(at[None, :, :3].float(), at[None, :, 3], torch.float32)
        return module.apply_rotary_pos_emb(x[:, None], x[:, None], cos, sin)[0][:, 0]

    note = "an atom's position: x, y, z and the number of its residue"
    name = "EsmFold2RotaryEmbedding"
    return [_of_function(name, config.head_dim, 4, rotate, note, ends=(64,) * 4)]


def idefics() -> list[Heard]:
    """Attention that makes its own table, of as many tokens as there are."""
    module = _of("idefics")
    config = _of("idefics", "configuration").IdeficsConfig()

    class Attention(module.IdeficsAttention):
        def __init__(self, config: Any) -> None:
            super().__init__(config.hidden_size, config.num_attention_heads, config=config,
                             layer_idx=0)  # fmt: skip

    heard = hear_cell(config, Attention, lambda at: None, 1, ())
    return _kept(heard, part="IdeficsAttention", ends=(512,))


def _by_function(family: str, config: str, table: str, function: str, note: str) -> list[Heard]:
    """A table and the function that applies it, where the module around them cannot be heard."""
    module = _of(family)
    configuration = complete(getattr(_of(family, "configuration"), config)())
    made = getattr(module, table)(configuration)
    apply = getattr(module, function)
    axes = 3 if getattr(made, "mrope_section", None) else 1
    heard = []
    for kind in getattr(made, "layer_types", [None]):
        which = (kind,) if kind else ()

        def rotate(x: Tensor, at: Tensor, which: tuple[str, ...] = which) -> Tensor:
            rows, ids = x[:, None], at[None] if axes == 1 else at.T[:, None]
            return apply(rows, rows, *made(x, ids, *which))[0][:, 0]

        first = torch.zeros((1,) if axes == 1 else (1, axes), dtype=torch.long)
        width = getattr(configuration, "head_dim", 0)
        try:
            rotate(torch.zeros(1, 1, width), first)
        except RuntimeError:  # the function takes the part that turns, and no more
            width = made(first.float(), first[None], *which)[0].shape[-1]
        heard.append(_of_function(table, width, axes, rotate, note, kind=kind))
    return heard


FUNCTIONS = {
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
"""Families whose attention is not reached, by table and configuration."""


def by_function(family: str) -> list[Heard]:
    """Return what a family's function does with its table, where nothing else can be heard."""
    table, config, note = FUNCTIONS[family]
    functions = ("apply_rotary_pos_emb_interleave", "apply_rotary_pos_emb")
    name = next(name for name in functions if hasattr(_of(family), name))
    return _by_function(family, config, table, name, note)


def hy_v4() -> list[Heard]:
    """A head is a part without positions and one with them, which comes last."""
    (part,) = by_function("hy_v4")
    head_dim = _of("hy_v4", "configuration").HYV4Config().qk_head_dim

    def rotate(x: Tensor, at: Tensor) -> Tensor:
        still, turning = x.split((head_dim - part.head_dim, part.head_dim), dim=-1)
        return torch.cat((still, part.rotate(turning, at)), dim=-1)

    return [replace(part, head_dim=head_dim, rotate=rotate)]


def _before_projection(family: str, name: str, table: str, attention: str) -> list[Heard]:
    """Turn what enters the projections of queries and keys, not what leaves them."""
    config = getattr(_of(family, "configuration"), name)(position_embeddings_type="rotary")
    layer = getattr(_of(family), attention)(config)
    embed = getattr(_of(family), table)(config)
    heads = layer.num_heads

    def rotate(x: Tensor, at: Tensor) -> Tensor:
        rows = x.new_zeros(len(x), int(at.max()) + 1, x.shape[-1])
        rows[:, at] = x
        rows = rows.repeat(1, 1, heads)
        turned = layer._apply_rotary_embedding(rows, embed(rows))
        return turned[:, at, : x.shape[-1]]

    note = "position_embeddings_type is set to rotary; W R x instead of R W x: scores do not "
    note += "depend on the distance alone"
    where = "before the projection"
    return [_of_function(attention, layer.head_size, 1, rotate, note, ends=(512,), where=where)]


def wav2vec2_conformer() -> list[Heard]:
    """Before the projection."""
    kind = "Wav2Vec2Conformer"
    names = ("Config", "RotaryPositionalEmbedding", "SelfAttention")
    return _before_projection("wav2vec2_conformer", *(kind + n for n in names))


def wav2vec2_bert() -> list[Heard]:
    """Before the projection."""
    kind = "Wav2Vec2Bert"
    names = ("Config", "RotaryPositionalEmbedding", "SelfAttention")
    return _before_projection("wav2vec2_bert", *(kind + n for n in names))


def seamless_m4t() -> list[Heard]:
    """Before the projection."""
    names = ("ConformerRotaryPositionalEmbedding", "ConformerSelfAttention")
    return _before_projection(
        "seamless_m4t", "SeamlessM4TConfig", *("SeamlessM4T" + n for n in names)
    )


ALONE: dict[str, Callable[[], list[Heard]]] = {
    made.__name__: made
    for made in (
        dinov3_vit, edgetam_video, efficientloftr, eomt_dinov3, esmfold2, hunyuan_vl, hy_v4,
        idefics, lightglue, llama4, mistral_large4, sam2_video, sam3,
        sam3_tracker_video, sapiens2, seamless_m4t, timesfm2_5, vjepa2, wav2vec2_bert,
        wav2vec2_conformer,
    )
}  # fmt: skip

ALONE = {family: partial(by_function, family) for family in FUNCTIONS} | ALONE

ENOUGH = {
    "edgetam_video", "hunyuan_vl", "idefics", "lightglue", "mistral_large4", "sam2_video", "sam3",
    "sam3_tracker_video", "seamless_m4t", "timesfm2_5", "vjepa2", "wav2vec2_bert",
    "wav2vec2_conformer",
}  # fmt: skip
"""Families of which nothing else rotates: their models are not run."""
