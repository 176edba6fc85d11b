"""The reader's own model in the heatmap, the clock and the faders: its numbers and its words."""

import numpy as np
import pytest

from rope_minimal import inverse_frequencies, reference, rescaled_frequencies
from ropebook import aliasing, figures
from ropebook.figures.rescaling_faders import PUBLISHED
from ropescope import Report, identify
from tests.tools.pictures import shown

FIGURES = [figures.angle_heatmap, figures.clock, figures.rescaling_faders]
LLAMA_3_1 = {"rope_theta": 5e5, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
LLAMA_3_1 |= {"rope_type": "llama3", "original_max_position_embeddings": 8192}
STRETCH = {"factor": 4.0, "original_max_position_embeddings": 32768}
YARN = {"rope_type": "yarn", "rope_theta": 1e6, **STRETCH}
P_ROPE = rescaled_frequencies("proportional", 32, 1e4, partial_rotary_factor=0.5)[0]
REPEATED = np.repeat(inverse_frequencies(16), 2)


def asked(inv_freq, head_dim=None, sign=1):
    """Return the report on a rotation of the first channels by these frequencies."""
    width = 2 * len(inv_freq)

    def rotate(x, at):
        turned = reference.rotate_complex(x[..., :width], sign * np.asarray(at), inv_freq=inv_freq)
        return np.concatenate((turned, x[..., width:]), axis=-1)

    return identify(rotate, head_dim or width, dtype=np.float64)


def drawn(make, model):
    return np.array(make(model=model).data["inv_freq"])


def line(made):
    """Return what a figure says of the model that it draws."""
    return made._own_model


# ---- what is drawn ------------------------------------------------------------------------------


@pytest.mark.parametrize("make", FIGURES)
def test_the_frequencies_are_those_that_the_library_computes(make):
    from transformers import GPTNeoXConfig, LlamaConfig
    from transformers.models.gpt_neox.modeling_gpt_neox import GPTNeoXRotaryEmbedding
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

    small = {"num_attention_heads": 2, "num_key_value_heads": 2, "hidden_size": 256}
    small["max_position_embeddings"] = 131_072
    llama, yarn = (LlamaConfig(rope_parameters=p, **small) for p in (LLAMA_3_1, YARN))
    neox = GPTNeoXConfig(hidden_size=96, num_attention_heads=2)
    for config, rope, said in (
        (
            llama,
            LlamaRotaryEmbedding,
            "64 pairs, 128 of 128 channels turn; base 500,000, rescaled by",
        ),
        (yarn.to_dict(), LlamaRotaryEmbedding, "base 1,000,000, rescaled by yarn: factor 4"),
        (
            neox,
            GPTNeoXRotaryEmbedding,
            "6 pairs, 12 of 48 channels turn; base 10,000, not rescaled.",
        ),
    ):
        made = make(model=config)
        own = rope(yarn if isinstance(config, dict) else config).inv_freq.numpy()
        assert made.data["inv_freq"] == pytest.approx(own.tolist(), rel=1e-6)
        assert said in line(made)


@pytest.mark.parametrize("make", FIGURES)
@pytest.mark.parametrize("inv_freq", [P_ROPE, REPEATED, inverse_frequencies(8, 1e12)])
def test_numbers_are_drawn_as_they_are(make, inv_freq):
    assert (drawn(make, inv_freq) == inv_freq).all()
    assert (drawn(make, -inv_freq[::-1]) == inv_freq).all(), "speeds, fastest first"


@pytest.mark.parametrize("make", FIGURES)
def test_a_report_is_drawn_as_it_was_heard(make):
    turning = P_ROPE[P_ROPE > 0]
    report = asked(turning, head_dim=32)
    assert report.rescaling is None, "the same as the plain series of a smaller base"
    assert drawn(make, Report.from_json(report.to_json())) == pytest.approx(turning, rel=1e-9)
    clockwise = make(model=asked(inverse_frequencies(16), sign=-1))
    assert line(clockwise) == (
        "Your model: 8 pairs, 16 of 16 channels turn, clockwise; base 10,000, not rescaled."
    )
    whole = asked(rescaled_frequencies("proportional", 128, 1e6, partial_rotary_factor=0.25)[0])
    assert whole.rescaling[0] == "proportional"
    standing = drawn(make, whole)
    assert (len(standing), np.count_nonzero(standing)) == (64, 16)
    assert "32 of 128 channels turn; base 1,000,000, rescaled by proportional" in line(
        make(model=whole)
    )


def test_what_follows_no_formula_is_said():
    free = [1.0, 0.5, 0.013, 0.0004, 0.0]
    for make in FIGURES[:2]:
        assert line(make(model=free)) == (
            "Your model: 5 pairs, 1 of them still; no formula known here gives these frequencies."
        )
    with pytest.raises(ValueError, match=r"model must follow a known formula .* got Your model: 5"):
        figures.rescaling_faders(model=free)
    assert line(figures.clock(model=[0.01, 1.0, 0.3])).startswith(
        "Your model: 3 pairs, drawn from fast to slow; "
    )
    assert line(figures.clock(model=[0.3])) == "Your model: 1 pair; 0.3 rad per token."
    with pytest.raises(ValueError, match="model must follow a known formula over two pairs"):
        figures.rescaling_faders(model=[0.3])


def test_controls_that_mean_nothing_go_away():
    def labels(made):
        return [control["label"] for control in made._controls]

    own = asked(inverse_frequencies(16))
    assert labels(figures.clock(model=own)) == []
    assert labels(figures.angle_heatmap(model=own)) == [
        *("Beside the true angle", "First position", "Number of positions")
    ]
    assert "Base" in labels(figures.angle_heatmap())
    faders = figures.rescaling_faders(model=own)
    assert labels(faders) == ["Rescaling", "Compare with"]
    assert faders._options["preset"] == ["your model", *PUBLISHED]
    assert faders._options["compare"] == ["nothing", "your model", *PUBLISHED]


@pytest.mark.parametrize("make", FIGURES)
def test_nothing_is_sent_where_no_model_is_given(make):
    made = make()
    assert made.data == {}
    assert line(made) == ""


# ---- what it shows ------------------------------------------------------------------------------


def test_the_first_turn_stands_where_the_plain_formula_has_it(node):
    theta = inverse_frequencies(64, 500.0)
    waves = (2 * np.pi / theta).tolist()
    for position in (6.3, 50.0, 800.0):
        row = node.call("hands.js", "firstTurnRow", waves, position)
        assert row == pytest.approx(32 * np.log(position / (2 * np.pi)) / np.log(500.0))
    none = [node.call("hands.js", "firstTurnRow", waves, at) for at in (0, 6, 1e6)]
    assert none == ["#NaN"] * 3
    assert node.call("hands.js", "firstTurnRow", [10.0, "#Infinity"], 12) == 0


def test_the_heatmap_of_a_standing_pair(node):
    made = figures.angle_heatmap(model=P_ROPE, pair=12)
    seen = shown(node, made)
    assert seen.says.startswith("No: pair 12 stands still, and none turns back.")
    pixels, _ = seen.plots[0].image(0)
    assert (pixels[8:] == pixels[0, 0]).all(), "the standing pairs stay at angle 0"
    assert (pixels[7, -1] != pixels[0, 0]).any()


@pytest.mark.parametrize("inv_freq", [P_ROPE, REPEATED, 1e-9 * inverse_frequencies(8)])
def test_the_clock_surveys_the_model(node, inv_freq):
    ours = node.call("clock.js", "survey", inv_freq.tolist(), 60)
    D = aliasing.code_distance(np.arange(1, 131_073), inv_freq)
    assert ours["neighbour"] == pytest.approx(D[0])
    assert ours["count"] == (D[1:] <= D[0] * (1 - 1e-12)).sum()
    assert ours["nearest"] == D.argmin() + 1
    seen = shown(node, figures.clock(model=inv_freq))
    hands = f"{len(inv_freq)} hands"
    still = np.count_nonzero(inv_freq == 0)
    assert f"With {hands}{f' ({still} stand still)' if still else ''}, " in seen.says
    assert seen.values["now"] == pytest.approx(D[709])


def test_the_clock_knows_the_turns_of_a_slower_hand(node):
    survey = {"neighbour": 0.1, "count": 0, "nearest": 1}
    said = node.call("clock.js", "words", 63, [0.1, 0.01], survey)
    assert "The fastest hand is **0.017** rad from its start, past 1 turn." in said
    assert "With **2 hands**, no" in said
    below = [node.call("clock.js", "noticeOf", {"count": count}) for count in (0, 3)]
    assert below[0].startswith("Nothing lies below the line")
    assert below[1].startswith("Below the line lie")


def test_the_faders_stand_beside_the_series_of_the_base(node):
    llama = rescaled_frequencies("llama3", 128, 5e5, **_numbers(LLAMA_3_1))[0]
    plain = inverse_frequencies(128, 5e5)
    made = figures.rescaling_faders(model=llama, compare="plain series")
    assert "From 8,192 tokens to 65,536: which pairs must" in made._question
    turns = 8192 * plain / (2 * np.pi)
    assert (llama < plain * (1 - 1e-9)).tolist() == (turns < 4).tolist(), "as chapter 15 says"
    data = made.data
    assert data["plain"] == plain.tolist()
    seen = shown(node, made)
    arc = np.flatnonzero(aliasing.unseen_pairs(plain, 65536, plain, 8192))
    assert f"The {len(arc)} slowest, {arc[0]} to {arc[-1]}. Your model: no pair meets" in seen.says
    assert "angles that 8,192 tokens of the plain series never show" in seen.says
    assert seen.values["multipliers"] == pytest.approx((llama / plain).tolist())
    contrast = aliasing.neighbour_contrast(llama) / aliasing.neighbour_contrast(plain)
    assert seen.values["kept"] == pytest.approx(contrast)
    y = seen.plots[0].y_axis(log=True)
    caps = [one["rect"] for one in seen.plots[0].kind("fill") if one.get("rect")]
    y.agrees([top + 3.5 for _, top, _, _ in caps], llama / plain)


def test_pairs_at_rest_that_no_series_has_are_not_drawn_as_faders():
    with pytest.raises(ValueError, match="model must have its unrotated pairs in the series, got"):
        figures.rescaling_faders(model=[1, 0.5, 0])


def test_a_window_of_millions_is_said_in_whole_tokens():
    stretch = {"factor": 4.0, "original_max_position_embeddings": 2**20}
    own = rescaled_frequencies("yarn", 128, 1e6, **stretch)[0]
    assert "embeddings 1,048,576" in line(figures.rescaling_faders(model=own))


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_rescaling_of_the_models_series(name):
    own = rescaled_frequencies("yarn", 64, 1e6, **STRETCH)[0]
    figure = figures.rescaling_faders(model=own)
    plain, setting = np.array(figure.data["plain"]), figure.data["settings"][name]
    slower = np.array(setting["multipliers"])
    assert len(slower) == 32
    if name != "plain series":
        assert slower[-1] == pytest.approx(1 / 4)
        assert not aliasing.unseen_pairs(plain * slower, 131072, plain, 32768)[-1]
    assert (setting["attention"] > 1) == name.startswith("YaRN")


@pytest.mark.parametrize(
    ("inv_freq", "question", "answer"),
    [
        (
            inverse_frequencies(32),
            "If it is to go from 4,096 tokens to 65,536",
            "The 4 slowest, 12",
        ),
        (inverse_frequencies(8, 8.0), "If it", "None: within 4,096 tokens each pair of the plain"),
        (inverse_frequencies(4, 9e6), "If it", "The slowest, pair 1. Your model: it meets"),
        (REPEATED, "If it", "The 4 slowest, 12 to 15. Your model: 4 of them meet"),
        (P_ROPE, "If it", "The 4 slowest, 12 to 15. Your model: no pair meets"),
    ],
)
def test_faders_of_any_series(node, inv_freq, question, answer):
    made = figures.rescaling_faders(model=inv_freq)
    assert question in made._question
    for width in (680, 330):
        assert answer in shown(node, made, width=width).says


def test_faders_far_below_the_scale_of_the_book(node):
    own = rescaled_frequencies("yarn", 64, 1e4, factor=40.0, original_max_position_embeddings=4096)
    made = figures.rescaling_faders(model=own[0])
    assert shown(node, made).plots[0].y_axis(log=True).values.min() == 1 / 128
    with pytest.raises(ValueError, match="faders must be 32 multipliers"):
        made.faders = [1.0] * 64
    with pytest.raises(ValueError, match=r"pair must be in 0 .. 31, got 32"):
        made.pair = 32


def _numbers(parameters):
    return {k: v for k, v in parameters.items() if k not in ("rope_type", "rope_theta")}


# ---- what is refused ----------------------------------------------------------------------------


NO_ROTATION = identify(lambda x, at: np.asarray(x) * np.asarray(at)[:, None], 8)
TWO_AXES = Report(head_dim=8, axes=2, probed="", is_rotation=True, inv_freq=np.ones((4, 2)))
AT_REST = identify(lambda x, at: x, 8)


@pytest.mark.parametrize("make", FIGURES)
@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        ("llama", TypeError, "model must be a Report, a configuration .* got str"),
        (3, TypeError, "model must be a Report, .* got int"),
        ({"rope_theta": 1e4}, ValueError, "model must name its model_type, .* got {'rope_theta'"),
        ({"model_type": "lama"}, ValueError, "model must be of a type .* got 'lama'"),
        ({"model_type": "bert"}, ValueError, "model must rotate, and BertConfig was not seen to"),
        (
            {"model_type": "gemma3_text", "hidden_size": 64, "head_dim": 32},
            ValueError,
            r"model must make one rotation, got 2: Gemma3TextModel\[sliding_attention\], .*"
            r"of_transformers\(config\)\['Gemma3TextModel\[sliding_attention\]'\].identify",
        ),
        (NO_ROTATION, ValueError, "model must be a rotation, got a report of none: ERROR"),
        (TWO_AXES, ValueError, r"model must have positions of one axis, got 2.*inv_freq\[:, 0\]"),
        (AT_REST, ValueError, "model must "),
        ([0.0, 0.0], ValueError, "model must have a pair that turns"),
        ([], ValueError, "model must have a pair that turns"),
        ([1.0, np.nan], ValueError, r"model must be finite .*\(pairs,\), got \[1.0, nan\]"),
        ([[1.0], [0.5]], ValueError, r"model must be finite frequencies of shape \(pairs,\)"),
        (["1"], TypeError, "model must be real numbers"),
        (np.ones(513), ValueError, "model must have at most 512 pairs, got 513"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_model_that_cannot_be_drawn_is_refused_by_name(make, model, error, message):
    with pytest.raises(error, match=message):
        make(model=model)


def test_a_pair_beyond_the_model_is_refused():
    assert figures.angle_heatmap(model=[1.0, 0.1]).pair == 1
    with pytest.raises(ValueError, match="pair must be below the model's 2 pairs, got 2"):
        figures.angle_heatmap(model=[1.0, 0.1], pair=2)
    with pytest.raises(ValueError, match=r"preset must .* got 'monotone'"):
        figures.rescaling_faders("monotone", model=inverse_frequencies(8))
