"""The 64 frequency multipliers of a rescaling as faders, with meters for what they do."""

from typing import Any

import ipywidgets
import traitlets

from . import controls
from .figure import Choice, Figure

__all__ = ["PRESETS", "RescalingFaders", "rescaling_faders"]

PRESETS = [
    "as trained",
    "PI",
    "NTK",
    "dynamic NTK (α = 2)",
    "by parts",
    "YaRN, paper",
    "YaRN, code",
    "Llama 3",
    "LongRoPE (illustration)",
    "p-RoPE (46 of 64)",
    "monotone (reconstruction A)",
]
"""The rescalings by name; ``rescaling_faders.js`` holds their parameters."""


class RescalingFaders(Figure):
    """Sixty-four faders between training and use (``rescaling_faders.js``)."""

    preset = Choice(PRESETS, default="YaRN, code", help="the rescaling that the faders start from")
    compare = Choice(["nothing", *PRESETS], help="a second rescaling, drawn as a line")
    faders: traitlets.List[float] = traitlets.List(
        help="64 multipliers once the reader has moved one"
    ).tag(sync=True)
    pair = traitlets.Int(46, help="the fader that the keyboard moves").tag(sync=True)

    @traitlets.validate("faders")
    def _check_faders(self, proposal: Any) -> list[float]:
        values = proposal["value"]
        if len(values) not in (0, 64) or not all(0 <= float(v) <= 2 for v in values):
            raise ValueError(f"faders must be 64 multipliers in 0 .. 2, got {values!r}")
        return [float(v) for v in values]

    @traitlets.validate("pair")
    def _check_pair(self, proposal: Any) -> int:
        if not 0 <= proposal["value"] < 64:
            raise ValueError(f"pair must be in 0 .. 63, got {proposal['value']}")
        return proposal["value"]


def rescaling_faders(preset: str = "YaRN, code", compare: str = "nothing") -> ipywidgets.VBox:
    """Return the faders of a 128-channel head trained on 4,096 tokens, with its controls.

    Parameters
    ----------
    preset
        The rescaling that the faders start from, one of ``PRESETS`` of this module.
    compare
        ``"nothing"`` or a second rescaling to draw over the first.

    Returns
    -------
    VBox
        Question, figure and controls. A pointer draws where it took a handle, as do arrow keys.

    Raises
    ------
    TypeError, ValueError
        If a value is of the wrong kind or unknown; the message names it.
    """
    figure = RescalingFaders(preset=preset, compare=compare)
    return controls.box(
        figure,
        [controls.choice(figure, "preset", "Rescaling")],
        more=[controls.choice(figure, "compare", "Compare with")],
        question="Trained on 4,096 tokens, asked for 65,536: which pairs must turn more slowly?",
    )
