"""The numbers of the questions: measured in the packages that they are said of, or computed."""

import json
import math
import re
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, MixtralConfig, Qwen2Config
from transformers.modeling_gguf_pytorch_utils import TENSOR_PROCESSORS, TensorProcessor
from transformers.models.deepseek_v3 import modeling_deepseek_v3
from transformers.models.llama4 import modeling_llama4
from transformers.models.qwen2.modeling_qwen2 import Qwen2RotaryEmbedding

from rope_minimal import apply_rope, inverse_frequencies, permute_qk
from ropebook.atlas import read_atlas

from .test_glossary_and_map import ASKED

TRAINED, WANTED, PAIRS = 32_768, 131_072, 64
TURN = 2 * math.pi


def says(number: int, *words: str) -> None:
    """Hold an answer to what was measured."""
    missing = [word for word in words if word not in ASKED[number]]
    assert missing == [], number


def qwen(longest: int = TRAINED, **parameters: object) -> Qwen2RotaryEmbedding:
    """Return the rotation of a Qwen2 with heads of width 128."""
    config = Qwen2Config(
        hidden_size=1024,
        num_attention_heads=8,
        max_position_embeddings=longest,
        rope_parameters=parameters,
    )
    return Qwen2RotaryEmbedding(config)


def speeds(rotation: Qwen2RotaryEmbedding) -> np.ndarray:
    return rotation.inv_freq.double().numpy()


PLAIN = speeds(qwen(rope_type="default", rope_theta=1e6))
FOUR = {
    "rope_type": "yarn",
    "rope_theta": 1e6,
    "factor": 4.0,
    "original_max_position_embeddings": TRAINED,
}


def without(*names: str) -> dict[str, object]:
    return {name: value for name, value in FOUR.items() if name not in names}


def new_angles(used: np.ndarray, trained: np.ndarray, before: int, after: int) -> np.ndarray:
    """Tell which pairs made less than a turn in training and go on farther than they did."""
    return (trained * before < TURN) & (used * after > trained * before * 1.0001)


def test_the_four_numbers_of_yarn_are_the_same_in_every_engine() -> None:
    (python,) = re.findall(r"```python\n(.*?)```", ASKED[4], re.DOTALL)
    scope = {"config": SimpleNamespace()}
    exec(python, scope)
    assert scope["config"].rope_parameters == FOUR
    (shell,) = re.findall(r"```sh\n(.*?)```", ASKED[4], re.DOTALL)
    overrides = json.loads(re.search(r"--hf-overrides '(.*?)'", shell, re.DOTALL)[1])
    assert overrides == {"max_position_embeddings": WANTED, "rope_parameters": FOUR}
    flags = dict(re.findall(r"(-c|--[\w-]+) (\d+)", shell))
    assert flags == {
        "--max-model-len": str(WANTED),
        "-c": str(WANTED),
        "--rope-scale": "4",
        "--yarn-orig-ctx": str(TRAINED),
    }


def test_the_longest_position_may_stay_and_no_angle_is_new() -> None:
    right = speeds(qwen(**FOUR))
    assert np.array_equal(right, speeds(qwen(WANTED, **FOUR)))
    assert not new_angles(right, PLAIN, TRAINED, WANTED).any()
    assert new_angles(PLAIN, PLAIN, TRAINED, WANTED).sum() == 24


def test_two_slips_and_where_they_raise_no_error() -> None:
    right = speeds(qwen(**FOUR))
    lost = qwen(**without("rope_theta"))
    assigned = Qwen2Config(hidden_size=1024, num_attention_heads=8)
    assigned.rope_parameters = without("rope_theta")
    with pytest.raises(TypeError, match=r"NoneType.*Tensor"):
        Qwen2RotaryEmbedding(assigned)
    read = Qwen2Config.from_dict({"rope_parameters": without("rope_theta")})  # a config.json
    assert read.rope_parameters["rope_theta"] == 10_000
    assert lost.config.rope_parameters["rope_theta"] == 10_000
    assert f"{(speeds(lost) / right).max():.0f}" == "93"
    raised = qwen(WANTED, **without("original_max_position_embeddings"))
    assert raised.config.rope_parameters["original_max_position_embeddings"] == WANTED
    ratio = speeds(raised) / right
    assert (ratio > 1.001).sum() == 23
    assert f"{ratio.max():.1f}" == "2.2"
    assert new_angles(speeds(raised), PLAIN, TRAINED, WANTED).sum() == 7
    says(4, "Two slips raise no error", "93 times too fast", "raises a TypeError")
    says(4, "23 of 64 pairs", "2.2 times", "7 meet untrained angles")


def moved(distance: int, used: np.ndarray, seeds: int = 20_000) -> float:
    """Return by how much the scores of random vectors move, over their spread."""
    draw = np.random.default_rng(0).normal
    q, k = (draw(size=(seeds, PAIRS)) + 1j * draw(size=(seeds, PAIRS)) for _ in range(2))
    before, after = (
        (q * k.conj() * np.exp(1j * distance * theta)).real.sum(1) for theta in (PLAIN, used)
    )
    return float((after - before).std() / before.std())


def test_a_static_yarn_changes_short_texts() -> None:
    rotation = qwen(**FOUR)
    ratio = speeds(rotation) / PLAIN
    assert ((ratio > 0.999).sum(), (ratio < 0.2501).sum()) == (24, 24)
    near, far = moved(100, speeds(rotation)), moved(4_000, speeds(rotation))
    assert (f"{near:.0%}", f"{far:.0%}") == ("2%", "67%")
    assert f"{rotation.attention_scaling**2:.2f}" == "1.30"
    says(4, "24 pairs stay, 24 slow to a quarter", "by 2% of", "by 67% at 4,000", "by 1.30")


@pytest.mark.parametrize("kind", ["yarn", "longrope", "dynamic"])
def test_yarn_is_static_longrope_goes_by_the_call_and_dynamic_ntk_by_the_longest(kind) -> None:
    lists = {"short_factor": [1.0] * PAIRS, "long_factor": [4.0] * PAIRS}
    more = {"rope_type": kind, "original_max_position_embeddings": 64}
    rotation = qwen(64, **FOUR | more | (lists if kind == "longrope" else {}))
    x = torch.zeros(1, 1, 128)
    short, middle, long, after, at_end, anew, again = (
        rotation(x, torch.tensor([[5, largest]]))[0][0, 0]  # the cosines of position 5
        for largest in (6, 100, 200, 100, 63, 62, 100)
    )
    assert torch.equal(short, anew)
    assert torch.equal(middle, again)
    assert torch.equal(short, long) == (kind == "yarn")
    assert torch.equal(short, at_end) == (kind != "dynamic")  # 64 tokens are not shorter than 64
    assert torch.equal(middle, after) == (kind != "dynamic")
    assert torch.equal(long, after)
    says(7, "by the largest position of a call", "by the longest call since one that was shorter")


def test_a_rescaling_without_a_base_gets_that_of_the_class() -> None:
    given = {"rope_type": "linear", "factor": 2.0}
    made = [kind(rope_scaling=dict(given)) for kind in (LlamaConfig, MixtralConfig)]
    assert [config.rope_parameters["rope_theta"] for config in made] == [10_000, 1_000_000]
    says(2, "10,000 in Llama, 1,000,000 in Mixtral")


def test_18_pairs_meet_new_angles_and_with_a_larger_base_they_stay_on_their_arc() -> None:
    small, large = (inverse_frequencies(128, base=base) for base in (10_000, 500_000))
    unseen = new_angles(small, small, 4_096, 65_536)
    assert unseen.sum() == 18
    assert not new_angles(large, small, 4_096, 65_536)[unseen].any()
    says(16, "18 of the 64 pairs")
    says(17, "From 10,000 to 500,000 the 18 slow pairs")


def test_the_recipes_span_what_their_table_adds_up_to() -> None:
    billions = []
    for row in re.findall(r"^\|(?! length| \||-).*\| (\d.*illion) \|$", ASKED[17], re.MULTILINE):
        counts = [float(count) for count in re.findall(r"[\d.]+", row)]
        of = counts if " and " in row else counts[:1]  # stages are added; of a range the least
        billions.append(sum(of) / (1000 if "million" in row else 1))
    assert len(billions) == 5
    says(17, f"from {min(billions):.2f} to {max(billions):.0f} billion tokens")


def deepseek(**more: object) -> modeling_deepseek_v3.DeepseekV3Attention:
    parameters = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 40.0, **more}
    parameters["original_max_position_embeddings"] = 4_096
    config = modeling_deepseek_v3.DeepseekV3Config(
        hidden_size=64, num_attention_heads=2, num_key_value_heads=2, rope_parameters=parameters
    )
    return modeling_deepseek_v3.DeepseekV3Attention(config, 0)


def test_what_yarn_and_mscale_multiply() -> None:
    factor = qwen(**FOUR).attention_scaling
    assert (f"{factor:.2f}", f"{factor**2:.2f}") == ("1.14", "1.30")
    alike = deepseek(mscale=1.0, mscale_all_dim=1.0)
    table = modeling_deepseek_v3.DeepseekV3RotaryEmbedding(alike.config)
    assert table.attention_scaling == 1
    assert f"{alike.scaling * alike.qk_head_dim**0.5:.2f}" == "1.87"
    says(18, "by 1.14 and 1.30", "which is 1 where `mscale` and `mscale_all_dim` are alike")
    says(18, "1.87 for $s = 40$ and weight 1")


def llama4_query(past: int, tuned: bool, monkeypatch: pytest.MonkeyPatch) -> torch.Tensor:
    """Return the query of the token after `past` others, as it goes into attention."""
    config = modeling_llama4.Llama4TextConfig(
        hidden_size=32,
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=16,
        num_hidden_layers=1,
        no_rope_layers=[0],
        attn_temperature_tuning=tuned,
    )
    config._attn_implementation = "eager"
    torch.manual_seed(0)
    layer = modeling_llama4.Llama4TextAttention(config, 0)
    seen = []

    def watch(module, query, key, value, *rest, **more):
        seen.append(query)
        return value.transpose(1, 2), None

    monkeypatch.setattr(modeling_llama4, "eager_attention_forward", watch)
    cache = SimpleNamespace(
        get_seq_length=lambda *_: past, update=lambda key, value, *_, **__: (key, value)
    )
    layer(torch.ones(1, 1, 32), (torch.ones(1), torch.ones(1)), None, cache)
    return seen[0]


def test_llama_4_scales_the_queries_of_layers_without_rotation(monkeypatch) -> None:
    scales = {}
    for past in (8_190, 8_191, 131_071):
        tuned, plain = (llama4_query(past, tune, monkeypatch) for tune in (True, False))
        scales[past] = (tuned / plain).median().item()
    assert scales[8_190] == 1
    assert scales[8_191] > 1.06
    assert f"{scales[131_071]:.2f}" == "1.28"
    assert math.log(65_536) / math.log(4_096) == pytest.approx(4 / 3)
    says(18, "by 1 up to position 8,190 and by 1.28 at 131,071", "by 4/3")


def converted(weight: np.ndarray, heads: int) -> np.ndarray:
    """Return the rows of a query projection as llama.cpp's `conversion/llama.py` orders them."""
    halves = weight.reshape(heads, 2, weight.shape[0] // heads // 2, *weight.shape[1:])
    return halves.swapaxes(1, 2).reshape(weight.shape)


def test_what_a_gguf_file_permutes_is_undone_by_permute_qk() -> None:
    weight = np.random.default_rng(1).normal(size=(24, 5))  # three heads of width 8
    stored = converted(weight, 3)
    assert not np.array_equal(stored, weight)
    assert np.array_equal(permute_qk(stored, 3), weight)


def test_transformers_reorders_rows_of_llama_and_of_no_other_architecture() -> None:
    weight = np.arange(24.0 * 5).reshape(24, 5)
    config = {"num_attention_heads": 3, "num_key_value_heads": 3}
    changed = set()
    for name, kind in {**TENSOR_PROCESSORS, "any other": TensorProcessor}.items():
        for row in ("q", "k"):
            made = kind(config=dict(config)).process(
                converted(weight, 3), name=f"blk.0.attn_{row}.weight"
            )
            if np.array_equal(made.weights, weight):
                changed.add(name)
            else:
                assert np.array_equal(made.weights, converted(weight, 3)), name
    assert changed == {"llama"}


def test_what_families_do_by_default() -> None:
    rows = [row for row in read_atlas() if row.found["part"] == "text"]
    bases: dict[tuple[str, str], set] = {}
    for row in rows:
        bases.setdefault((row.family, row.found["model"]), set()).add(row.base)
    two = {family for (family, _), some in bases.items() if len(some - {None}) > 1}
    families = {row.family for row in rows}
    counts = {
        f"{len(families)} families": families,
        "{} turn a part": {r.family for r in rows if r.width and r.width < r.head_dim},
        "{} have two bases in one model": two,
        "{} leave some layers": {row.family for row in rows if row.rests},
        "{} normalise queries": {row.family for row in rows if row.norm},
    }
    says(20, *(words.format(len(names)) for words, names in counts.items()))


def attended(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    scores = np.exp(q @ k.T / math.sqrt(q.shape[1]))
    return scores / scores.sum(1, keepdims=True) @ v


def turned(x: np.ndarray, places: np.ndarray) -> np.ndarray:
    angles = torch.tensor(np.multiply.outer(places, inverse_frequencies(x.shape[1])))
    return apply_rope(torch.tensor(x), angles.cos(), angles.sin()).numpy()


def test_to_turn_queries_alone_leaves_the_order_of_the_keys_unseen() -> None:
    draw = np.random.default_rng(2).normal
    q, k, v = draw(size=(5, 16)), draw(size=(7, 16)), draw(size=(7, 16))
    order = np.random.default_rng(3).permutation(7)
    at, beside = np.arange(5), np.arange(7)

    alone = attended(turned(q, at), k, v)
    assert np.allclose(alone, attended(turned(q, at), k[order], v[order]))
    assert not np.allclose(alone, attended(turned(q, at + 9), k, v))  # an absolute position

    both = attended(turned(q, at), turned(k, beside), v)
    assert not np.allclose(both, attended(turned(q, at), turned(k[order], beside), v[order]))
    assert np.allclose(both, attended(turned(q, at + 9), turned(k, beside + 9), v))


def test_times_that_are_no_integers_are_as_relative() -> None:
    draw = np.random.default_rng(4)
    q, k, v = (draw.normal(size=(6, 128)) for _ in range(3))
    times = np.sort(draw.uniform(0, 100, 6))
    scores = attended(turned(q, times), turned(k, times), v)
    assert np.allclose(scores, attended(turned(q, times + 0.377), turned(k, times + 0.377), v))
    assert not np.allclose(scores, attended(turned(q, times), turned(k, times + 0.377), v))
    longest, shortest = (TURN / inverse_frequencies(128)[i] for i in (-1, 0))
    assert (f"{shortest:.2f}", f"{longest:,.0f}") == ("6.28", "54,410")
    assert np.spacing(np.float32(1.7e9)) == 128
    says(22, "from 6.28 to 54,410", "1.7 billion has steps of 128 seconds in float32")
