"""Twelve published bugs of rotary position embedding, each as a one-line change of `rope_minimal`.

`BUGS` lists them for the chapter, its figure and the test suite, which applies each change to a
copy of the package and asserts that the named test fails. `mutant` builds such a copy, `examine`
measures its outputs.
"""

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from itertools import count
from types import ModuleType
from typing import Any
from unittest.mock import patch

__all__ = ["BUGS", "EXAMINATIONS", "Bug", "examine", "mutant"]

PARTS = (
    *("checks", "frequencies", "reference", "layout"),
    *("fast", "rotation", "cache", "attention"),
)
_serial = count()


@dataclass(frozen=True)
class Bug:
    """A published bug, as a change of one line of `rope_minimal`."""

    key: str
    name: str
    """What is wrong."""
    module: str
    """The module of `rope_minimal` that is changed."""
    old: str
    new: str
    thread: str
    """Address of the public report."""
    story: str
    """What happened there, in one or two sentences."""
    look: str
    """A hint: where the chart shows it."""
    why: str
    """Why the chart looks as it does."""
    caught_by: str
    """A test of this project that fails with the change."""
    family: str
    """Kind of the bug: "cache", "layout", "rounding" or "turn" (direction or axis)."""
    unlike: tuple[str, str, str]
    """Keys of three bugs offered as wrong answers: one of the same family, two of others."""

    @property
    def diff(self) -> str:
        """The change as a unified diff without context."""
        return f"# rope_minimal/{self.module}.py\n- {self.old}\n+ {self.new}"


ROTATE_Q_AND_K = (
    "q, k = self.rope(q, position_ids=position_ids), self.rope(k, position_ids=position_ids)"
)
START = "start = 0 if cache is None else cache.next_position"

BUGS: tuple[Bug, ...] = (
    Bug(
        key="offset",
        name="Decoding forgets how many tokens came before",
        module="attention",
        old=START,
        new="start = 0",
        thread="https://github.com/Blaizzy/mlx-vlm/issues/1983",
        story="Qwen3-Omni in mlx-vlm: while decoding, every new token was given position 0; "
        "reading the prompt was right.",
        look="The row of decoding, right after the prompt.",
        why="Each new token is rotated as if it were the first one, so every distance to the "
        "prompt is wrong from the first new token on. One pass over all tokens never sees it.",
        caught_by="tests/package/test_attention.py::test_decoding_token_by_token_is_the_full_pass",
        family="cache",
        unlike=("cache_key", "positions", "layouts"),
    ),
    Bug(
        key="inv_freq",
        name="Inverse frequencies rounded to bfloat16",
        module="rotation",
        old="theta = _frequencies(dim, base, inv_freq)",
        new="theta = _frequencies(dim, base, inv_freq).to(torch.bfloat16)",
        thread="https://github.com/sgl-project/sglang-jax/issues/1472",
        story="sglang-jax converted the inverse frequencies to the model's type before "
        "multiplying by the position; at position 4,095 outputs were off by 0.83.",
        look="The curve from 0 and from 3,000: is it one curve or two? Is it the grey one?",
        why="Every pair has a slightly wrong frequency, the same one everywhere. "
        "So scores still depend on the distance alone, and lengths are kept; only a comparison "
        "with somebody else's numbers shows the error, and it grows with the distance.",
        caught_by="tests/package/test_parity.py::test_llama",
        family="rounding",
        unlike=("positions", "sign", "permute"),
    ),
    Bug(
        key="sign",
        name="Keys are rotated the other way",
        module="attention",
        old=ROTATE_Q_AND_K,
        new="q, k = self.rope(q, position_ids=position_ids), rotation.apply_rope(k, "
        "self.rope.cos[position_ids].unsqueeze(1), -self.rope.sin[position_ids].unsqueeze(1), "
        "interleaved=self.rope.interleaved)",
        thread="https://github.com/huggingface/transformers/issues/30900",
        story="A reader of transformers proposed to rotate keys by minus the angle, so that the "
        "difference of the positions appears. It appears by itself: the product takes the "
        "conjugate. The maintainer's advice was to try it and look.",
        look="The two curves: the same distances, from two starting points.",
        why="With the sign of one side turned, the score depends on the sum of the two positions. "
        "From position 0 the sum is the distance, and the curve looks right; from anywhere else "
        "it does not. Lengths are kept.",
        caught_by="tests/package/test_attention.py::test_a_common_shift_of_a_row_changes_nothing",
        family="turn",
        unlike=("heads", "halves", "inv_freq"),
    ),
    Bug(
        key="permute",
        name="Weights converted without permuting W_q and W_k",
        module="layout",
        old="return weight.reshape(num_heads, *pairs, *columns).swapaxes(1, 2).reshape(shape)",
        new="return weight",
        thread="https://github.com/karpathy/llama2.c/pull/286",
        story="Hugging Face checkpoints of Llama 2 were exported to llama2.c's adjacent pairs "
        "without moving the rows of W_q and W_k back. Reported there: it starts to print "
        "gibberish after some twenty tokens. The same in torchtitan, issue 335.",
        look="Which rows are clean? Which one row is not?",
        why="Both layouts of the layer are right. The conversion between them is not: the rows are "
        "where they were, so the rotation pairs channels that were not trained as a pair. The "
        "first token sees only itself, at distance 0, and is right.",
        caught_by="tests/package/test_layout.py"
        "::test_scores_stay_when_weights_and_rotation_change_together",
        family="layout",
        unlike=("layouts", "table", "heads"),
    ),
    Bug(
        key="cache_key",
        name="A remembered table ignores the offset",
        module="rotation",
        old='return self.gather("position_ids", '
        "ids.reshape(len(ids), *(1,) * (x.ndim - 3), length))",
        new='return self.__dict__.setdefault(f"for {length}", self.gather("position_ids", '
        "ids.reshape(len(ids), *(1,) * (x.ndim - 3), length)))",
        thread="https://github.com/lucidrains/rotary-embedding-torch/issues/11",
        story="rotary-embedding-torch remembered its angles under the length of the sequence "
        "alone, so a second call of the same length with another offset got the first one's.",
        look="The row of decoding: the first new token against the second.",
        why="The first call with one token makes the entry, and it is right. Every later token is "
        "served that same entry, so it stands where the first new token stood.",
        caught_by="tests/package/test_attention.py::test_any_cut_into_pieces_is_the_full_pass",
        family="cache",
        unlike=("offset", "positions", "permute"),
    ),
    Bug(
        key="halves",
        name="rotate_half with cos and sin from repeat_interleave",
        module="fast",
        old="y = x * torch.cat((cos, cos), dim=-1)",
        new="return x * cos.repeat_interleave(2, -1) + torch.cat((-b, a), -1) * "
        "sin.repeat_interleave(2, -1)",
        thread="https://github.com/raiyanyahya/how-to-train-your-gpt/issues/6",
        story="A course built the angles for adjacent pairs and rotated the two halves. "
        "The same change was requested of transformers (issue 40462).",
        look="The lengths.",
        why="The two channels of a pair are turned by two different angles. That is not a "
        "rotation: lengths change with the position, and the score no longer depends on the "
        "distance alone.",
        caught_by="tests/package/test_properties.py::test_every_pair_keeps_its_length",
        family="layout",
        unlike=("layouts", "sign", "inv_freq"),
    ),
    Bug(
        key="padding",
        name="Left padding is counted as tokens while decoding",
        module="attention",
        old=START,
        new="start = 0 if cache is None else cache.length",
        thread="https://github.com/unslothai/unsloth/pull/3803",
        story="Left-padded batches of unsloth answered the longest prompt well and shorter ones "
        "not (issue 3699). The thread blamed the column of the cache, which its code used in the "
        "prompt as well; what does harm is one count in the prompt and another while decoding.",
        look="The left-padded row against plain decoding.",
        why="In the prompt each row counts its own tokens; while decoding, the row's position is "
        "the column. The new tokens of a padded row jump ahead by its padding. Were both counted "
        "in columns, the row would only be shifted, and a common shift changes nothing.",
        caught_by="tests/package/test_attention.py::test_a_left_padded_batch_is_its_sequences_alone",
        family="cache",
        unlike=("offset", "table", "layouts"),
    ),
    Bug(
        key="layouts",
        name="The layout switch does not reach the rotation",
        module="attention",
        old="self.rope = rotation.RotaryEmbedding(rotary_dim, max_seq_len, base, "
        "interleaved=interleaved)",
        new="self.rope = rotation.RotaryEmbedding(rotary_dim, max_seq_len, base)",
        thread="https://github.com/vllm-project/vllm/issues/49290",
        story="A kernel of vLLM always paired the halves and never read the flag: models trained "
        "on adjacent pairs (GLM) wrote garbage, all others were fine. GPT-J had met the "
        "same in 2023 (issue 747).",
        look="Which rows are clean? Which one row is not?",
        why="A layer trained on halves is right, also one converted to halves. A layer trained on "
        "adjacent pairs is rotated in halves: its first token sees only itself, at distance 0, and "
        "is right; the others are off.",
        caught_by="tests/package/test_attention.py"
        "::test_a_gpt_j_layer_interleaved_and_partly_rotated_gives_the_same_numbers",
        family="layout",
        unlike=("permute", "sign", "offset"),
    ),
    Bug(
        key="heads",
        name="Rotated along the heads instead of the sequence",
        module="attention",
        old=ROTATE_Q_AND_K,
        new="q, k = (self.rope(z.transpose(1, 2)).transpose(1, 2) for z in (q, k))",
        thread="https://github.com/facebookresearch/xformers/issues/841",
        story="xformers rotated axis -2 of a tensor whose axes were batch, sequence, heads, "
        "channels: the number of the head served as the position.",
        look="How much does the score depend on the distance at all?",
        why="Query and key of one head are turned by the same angle at every position, and the "
        "turn cancels: the layer knows no order but that of the causal mask. Nothing crashes, "
        "lengths are kept, and decoding agrees with one pass.",
        caught_by="tests/package/test_attention.py"
        "::test_the_order_of_the_tokens_matters_and_the_future_does_not",
        family="turn",
        unlike=("sign", "base", "positions"),
    ),
    Bug(
        key="table",
        name="The table is cast along with the model",
        module="rotation",
        old="self.cos, self.sin = self._table(self.cos)",
        new="self.cos, self.sin = self.cos.float(), self.sin.float()",
        thread="https://github.com/huggingface/transformers/issues/25681",
        story="What a module keeps as a buffer is cast with it. In transformers 4.31 a Llama cast "
        "to 16 bits computed with what was left of its rotary buffers; gpt-neox had found the "
        "same a month before (issue 1003).",
        look="Everything is right but one row. What was done there?",
        why="Rounded cosines and sines stay rounded when the model returns to float32. The error "
        "is small, about 0.002 of a value, the same at every position, and a test that stays in "
        "float32 does not see it.",
        caught_by="tests/package/test_rotation.py::test_no_cast_degrades_the_table",
        family="rounding",
        unlike=("inv_freq", "permute", "padding"),
    ),
    Bug(
        key="positions",
        name="Positions made in bfloat16",
        module="rotation",
        old="by_axis = positions.to(place, torch.float64).unsqueeze(-1) * theta.to(place)",
        new="by_axis = positions.to(place, torch.bfloat16).unsqueeze(-1) * theta.to(place)",
        thread="https://github.com/NVIDIA/Megatron-LM/issues/535",
        story="Megatron-LM made the positions in the type of the frequencies, 16 bits: far out, "
        "neighbouring tokens share one position.",
        look="The curve from far out: is it smooth?",
        why="bfloat16 counts to 256 without a gap. From 2,048 on it knows every sixteenth integer "
        "only, so sixteen positions in a row share one angle: the score is a staircase, although "
        "the same distances near 0 are right.",
        caught_by="tests/package/test_rotation.py::test_the_table_is_right_in_its_last_bit_far_out",
        family="rounding",
        unlike=("table", "sign", "base"),
    ),
    Bug(
        key="base",
        name="The base changes after keys were cached",
        module="attention",
        old=ROTATE_Q_AND_K,
        new="q, k = (rotation.RotaryEmbedding(self.rope.dim, self.rope.max_seq_len, self.rope.base "
        "* (8 if cache is not None and cache.length >= 24 else 1), "
        "interleaved=self.rope.interleaved)(z, position_ids=position_ids) for z in (q, k))",
        thread="https://github.com/huggingface/transformers/issues/25104",
        story="Dynamic NTK scaling raises the base while the text grows; the cached keys stay "
        "rotated with the old one. The thread proposes to cache keys before they are rotated; the "
        "author of exllama declined the scheme for this reason (issue 178).",
        look="The row of decoding: where does it begin to be wrong?",
        why="As long as the base stays, all is well. After the change a new query has other "
        "frequencies than the keys it meets, so their angle depends on both positions and not on "
        "the distance alone.",
        caught_by="tests/package/test_attention.py::test_decoding_token_by_token_is_the_full_pass",
        family="cache",
        unlike=("cache_key", "inv_freq", "halves"),
    ),
)


def mutant(bug: Bug | None = None) -> ModuleType:
    """Return a copy of `rope_minimal` in which one line is changed.

    Parameters
    ----------
    bug
        The change; None for an unchanged copy.

    Returns
    -------
    module
        A package with the modules of the rotation and the attention, under another name; the
        original package is unchanged.

    Raises
    ------
    ValueError
        If the line does not occur exactly once.
    """
    name = f"_rope_minimal_{next(_serial)}"
    package = _execute(name, "__init__", name, None)
    package.__path__ = []
    for part in PARTS:
        changed = bug if bug is not None and bug.module == part else None
        setattr(package, part, _execute(f"{name}.{part}", part, name, changed))
    return package


def _execute(name: str, part: str, package: str, bug: Bug | None) -> ModuleType:
    """Execute one file of the package, changed or not, as the module ``name``."""
    source = files("rope_minimal").joinpath(f"{part}.py").read_text(encoding="utf-8")
    if bug is not None:
        lines = [line for line in source.splitlines() if line.strip() == bug.old]
        if len(lines) != 1:
            raise ValueError(f"{part}.py must have the line once, got {len(lines)}: {bug.old}")
        source = source.replace(lines[0], lines[0].replace(bug.old, bug.new))
    module = ModuleType(name)
    module.__package__ = package
    sys.modules[name] = module
    exec(compile(source, f"<{part}.py of {name}>", "exec"), module.__dict__)
    return module


# Measurements of a changed package. torch is imported late: the figures do not need it.

WIDTH, HEADS = 64, 2
TOKENS, PROMPT, PADDING = 48, 16, 6
DISTANCES, FAR = 128, 3000

EXAMINATIONS = {
    "half": "one pass, pairs of halves",
    "interleaved": "one pass, adjacent pairs",
    "converted": "converted from adjacent pairs to halves",
    "decoding": f"prompt of {PROMPT}, then token by token",
    "padded": f"padded left by {PADDING}, then token by token",
    "cast": "cast to bfloat16 and back",
    "far": f"one pass, from position {FAR:,}",
}


def examine(package: ModuleType) -> dict[str, Any]:
    """Measure scores, norms and outputs of a copy of the package, against the original.

    The random numbers that torch draws next stay as they are.

    Parameters
    ----------
    package
        Result of `mutant`.

    Returns
    -------
    dict
        ``near`` and ``far``: scores of a vector with itself at distances 0 to 127, starting at
        position 0 and at position 3,000; 1 at distance 0 if correct. ``length``: norm of the
        rotated vector over its own norm, at positions 0 to 127. ``errors``: for each of
        `EXAMINATIONS`, the error of each token's output against one pass of the original package:
        maximum over channels, relative to the root mean square of the output.
    """
    import torch

    import rope_minimal

    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        near, length = _scores(package, 0)
        far, _ = _scores(package, FAR)
        errors = {}
        for name in EXAMINATIONS:
            got, want = _run(package, name), _truth(rope_minimal, name)
            error = (got - want).abs().amax(dim=-1) / want.square().mean().sqrt()
            errors[name] = error.tolist()
    return {"near": near, "far": far, "length": length, "errors": errors}


def _layer(package: ModuleType, **options: Any) -> Any:
    """Return a layer with fixed weights, large enough for peaked attention."""
    import torch

    layer = package.RotarySelfAttention(WIDTH, HEADS, max_seq_len=4096, **options)
    random = torch.manual_seed(0)
    for weight in layer.parameters():
        weight.copy_(0.25 * torch.randn(weight.shape, generator=random))
    return layer


def _run(package: ModuleType, name: str) -> Any:
    """Return the output of one examination, (tokens, channels)."""
    import torch

    x = torch.randn(1, TOKENS, WIDTH, generator=torch.manual_seed(1))
    if name == "interleaved":
        return _layer(package, interleaved=True)(x)[0]
    layer = _layer(package)
    if name == "converted":
        for projection in (layer.q_proj, layer.k_proj):
            projection.weight.copy_(package.permute_qk(projection.weight, HEADS))
        return layer(x)[0]
    if name == "cast":
        return layer.bfloat16().float()(x)[0]
    if name == "far":
        return layer(x, position_ids=torch.arange(FAR, FAR + TOKENS)[None])[0]
    if name == "half":
        return layer(x)[0]
    padding = torch.zeros(1, PROMPT, dtype=torch.bool)
    if name == "padded":
        padding[:, :PADDING] = True
    cache = layer.new_cache(1)
    start = layer(x[:, :PROMPT], cache=cache, key_padding_mask=padding)[0]
    steps = [layer(token, cache=cache)[0] for token in x[:, PROMPT:].split(1, dim=1)]
    y = torch.cat((start, *steps))
    return y[PADDING:] if name == "padded" else y


def _truth(package: ModuleType, name: str) -> Any:
    """Return the correct output of an examination: one pass without a cache."""
    import torch

    x = torch.randn(1, TOKENS, WIDTH, generator=torch.manual_seed(1))
    layer = _layer(package, interleaved=name in ("interleaved", "converted"))
    if name == "cast":
        for weight in layer.parameters():
            weight.copy_(weight.bfloat16())
    return layer(x[:, PADDING:] if name == "padded" else x)[0]


def _scores(package: ModuleType, start: int) -> tuple[list[float], list[float]]:
    """Return the scores of a vector with itself by distance, and its norms after rotation."""
    import torch

    layer = package.RotarySelfAttention(WIDTH * HEADS, HEADS, max_seq_len=4096)
    vector = torch.linspace(1.4, 0.2, WIDTH).repeat(HEADS)
    for projection in (layer.q_proj, layer.k_proj):
        projection.weight.copy_(torch.eye(WIDTH * HEADS))
    x = vector.expand(1, DISTANCES, -1)
    with _seen_by_attention() as seen:
        layer(x, position_ids=torch.arange(start, start + DISTANCES)[None])
    q, k = (z[0, -1].double() for z in seen)
    size = vector[:WIDTH].double().square().sum()
    return (q @ k[0] / size).tolist(), (q.norm(dim=-1) / math.sqrt(size)).tolist()


@contextmanager
def _seen_by_attention() -> Iterator[list[Any]]:
    """Yield a list that receives the rotated queries and keys."""
    from torch.nn import functional

    seen: list[Any] = []
    attend: Callable[..., Any] = functional.scaled_dot_product_attention

    def spy(q: Any, k: Any, v: Any, **options: Any) -> Any:
        seen[:] = q, k
        return attend(q, k, v, **options)

    with patch.object(functional, "scaled_dot_product_attention", spy):
        yield seen
