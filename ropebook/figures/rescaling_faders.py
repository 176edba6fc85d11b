"""The 64 frequency multipliers of a rescaling as faders, with meters for what they do."""

import math
from typing import Any

import numpy as np
import traitlets

from rope_minimal.frequencies import inverse_frequencies
from rope_minimal.rescaling import rescaled_frequencies

from .figure import Choice, Figure
from .own_model import OwnModel, read_model

__all__ = ["PRESETS", "RescalingFaders", "rescaling_faders"]

PRESETS = [
    "as trained",
    "PI",
    "NTK",
    "dynamic NTK (κ = 2)",
    "by parts",
    "YaRN, paper",
    "YaRN, code",
    "Llama 3",
    "LongRoPE (illustration)",
    "p-RoPE (46 of 64)",
    "monotone (reconstruction A)",
]
"""The rescalings by name; ``rescaling_faders.js`` holds their parameters."""


PUBLISHED = {
    "plain series": "default",
    "PI": "linear",
    "NTK": "ntk",
    "by parts": "by_parts",
    "YaRN, paper": "yarn_paper",
    "YaRN, code": "yarn",
    "Llama 3": "llama3",
}
"""What stands beside the reader's own model, and the kind of each."""


class RescalingFaders(Figure):
    """Sixty-four faders between training and use (``rescaling_faders.js``)."""

    question = "Trained on 4,096 tokens, asked for 65,536: which pairs must turn more slowly?"

    preset = Choice(PRESETS, default="YaRN, code", label="Rescaling")
    compare = Choice(["nothing", *PRESETS], label="Compare with", fold=True)
    faders: traitlets.List[float] = traitlets.List(
        help="64 multipliers once the reader has moved one"
    ).tag(sync=True)
    pair = traitlets.Int(46, help="the fader that the keyboard moves").tag(sync=True)

    @traitlets.validate("faders")
    def _check_faders(self, given: Any) -> list[float]:
        values = given["value"]
        pairs, top = len(self.data.get("plain", range(64))), self.data.get("top", 2)
        if len(values) not in (0, pairs) or not all(0 <= float(v) <= top for v in values):
            raise ValueError(f"faders must be {pairs} multipliers in 0 .. {top}, got {values!r}")
        return [float(v) for v in values]

    @traitlets.validate("pair")
    def _check_pair(self, given: Any) -> int:
        pairs = len(self.data.get("plain", range(64)))
        if not 0 <= given["value"] < pairs:
            raise ValueError(f"pair must be in 0 .. {pairs - 1}, got {given['value']}")
        return given["value"]


ModelFaders: type[RescalingFaders] = type(
    "RescalingFaders",  # its JavaScript is the same
    (RescalingFaders,),
    {
        "__module__": __name__,
        "__doc__": "The faders of the reader's own model.",
        "preset": Choice(["your model", *PUBLISHED], label="Rescaling"),
        "compare": Choice(["nothing", "your model", *PUBLISHED], label="Compare with", fold=True),
    },
)


def rescaling_faders(
    preset: str | None = None, compare: str = "nothing", model: Any = None
) -> RescalingFaders:
    """Return the faders of a 128-channel head trained on 4,096 tokens, with its controls.

    Parameters
    ----------
    preset
        The rescaling that the faders start from, one of ``PRESETS`` of this module; ``"YaRN,
        code"`` where not given. With a model ``"your model"`` or one of ``PUBLISHED``.
    compare
        ``"nothing"`` or a second rescaling to draw over the first.
    model
        Your own model instead of that head, beside the plain series of its base and the published
        rescalings of it: a `Report` of `identify`; a model or configuration of transformers, or the
        dict of one; or inverse frequencies in radians per token, shape (pairs,). Its rescaling
        says from how many tokens it was stretched, and how far; where it does not, these are
        4,096 and 65,536.

    Returns
    -------
    RescalingFaders
        A pointer draws where it took a handle, as do arrow keys.

    Raises
    ------
    TypeError, ValueError
        If a value is of the wrong kind or unknown; the message names it. If the model makes no
        rotation, several, one of positions with several axes, or one whose frequencies follow no
        formula over two pairs or more.
    """
    if model is None:
        return RescalingFaders(preset=preset or "YaRN, code", compare=compare)
    own = read_model(model)
    data = _beside(own)
    figure = ModelFaders(preset=preset or "your model", compare=compare)
    figure.data = data
    figure.pair = len(data["plain"]) - 1
    figure.start_here()
    longest = round(data["trained"] * data["factor"])
    known = "From" if data["known"] else "If it is to go from"
    change = f"{known} {data['trained']:,} tokens to {longest:,}"
    figure._question = f"{change}: which pairs must turn more slowly?"
    figure._own_model = own.words
    return figure


def _beside(own: OwnModel) -> dict[str, Any]:
    """Return the model, the plain series of its base and published rescalings as multipliers."""
    formula = own.formula
    if formula is None or formula.dim < 4 or formula.base <= 1:
        raise ValueError(
            "model must follow a known formula over two pairs or more, to be drawn beside the "
            f"plain series of its base, got {own.words}"
        )
    # by the formula: a float32 that is rounded up meets an angle that is new by a rounding
    turning = formula.inv_freq()
    copies = np.count_nonzero(own.inv_freq) // len(turning)  # one series for each block
    plain = np.repeat(inverse_frequencies(formula.dim, formula.base), copies)
    if len(plain) != len(own.inv_freq):
        raise ValueError(f"model must have its unrotated pairs in the series, got {own.words}")
    turning = np.repeat(turning, copies)
    rotating = np.pad(turning, (0, len(plain) - len(turning)))
    given = formula.parameters
    known = given.get("factor", 0) > 1 and "original_max_position_embeddings" in given
    factor = float(given["factor"]) if known else 16.0
    trained = int(given["original_max_position_embeddings"]) if known else 4096
    stretch: dict[str, float] = {"factor": factor, "original_max_position_embeddings": trained}
    needed: dict[str, dict[str, float]] = {
        "default": {},
        "linear": {"factor": factor},
        "ntk": {"factor": factor},
        "llama3": {**stretch, "low_freq_factor": 1.0, "high_freq_factor": 4.0},
    }

    def setting(inv_freq: np.ndarray, attention: float) -> dict[str, Any]:
        return {"multipliers": (inv_freq / plain).tolist(), "attention": attention}

    settings = {"your model": setting(rotating, own.attention_factor)}
    for name, kind in PUBLISHED.items():
        inv_freq, attention = rescaled_frequencies(
            kind, formula.dim, formula.base, **needed.get(kind, stretch)
        )
        settings[name] = setting(np.repeat(inv_freq, copies), attention)
    drawn = [1 / factor, *(m for m in settings["your model"]["multipliers"] if m > 0)]
    return {
        "inv_freq": rotating.tolist(),
        "plain": plain.tolist(),
        "settings": settings,
        "trained": trained,
        "factor": factor,
        "known": known,
        # the ends of the scale, powers of two
        "bottom": 2.0 ** max(min(-5, math.floor(math.log2(min(drawn))) - 1), -12),
        "top": 2.0 ** max(1, math.ceil(math.log2(max(drawn)) - 1e-9)),
    }
