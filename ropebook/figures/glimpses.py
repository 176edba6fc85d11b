"""What a reader gets, three times small: a model's card, a real head, and a bug to find."""

import math
from typing import Any

from ropescope.card import specification

from .bug_bench import cases
from .figure import Figure

__all__ = ["Glimpses", "glimpses"]

MODELS = {
    "Llama 3.1": "meta-llama/Meta-Llama-3.1-8B",
    "Qwen2.5": "Qwen/Qwen2.5-7B-Instruct",
    "gpt-oss": "openai/gpt-oss-20b",
    "DeepSeek-V3": "deepseek-ai/DeepSeek-V3",
}
RESCALINGS = {None: "not rescaled", "llama3": "Llama 3's rescaling", "yarn": "YaRN"}
PATIENT = 11
"""Of the bug bench: its positions are made in bfloat16."""


class Glimpses(Figure):
    """Three small panels for the first page, each with one control (``glimpses.js``)."""


def glimpses(head: dict[str, Any]) -> Glimpses:
    """Return the panels.

    Parameters
    ----------
    head
        What ``experiments.real.heads.one_word()`` returns.
    """
    bench = cases()
    patient = bench["patients"][PATIENT - 1]
    bug = {
        "healthy": bench["healthy"],
        "far": [bench["patients"][place]["far"] for place in patient["options"]],
        "options": [bench["patients"][place]["name"] for place in patient["options"]],
        "right": patient["right"],
        "why": patient["why"],
    }
    figure = Glimpses()
    figure.data = {"models": [_model(*names) for names in MODELS.items()], "head": head, "bug": bug}
    return figure


def _model(short: str, name: str) -> dict[str, Any]:
    """Return of a public checkpoint what the first panel says."""
    part = specification(name)["parts"][0]
    return {
        "name": short,
        "length": part["max_length"],
        "waves": [round(2 * math.pi / theta, 1) for theta in part["inv_freq"]],
        "says": f"Layout: {part['layout']}; {part['width']} of {part['head_dim']} channels; "
        f"base {part['base']:,.0f}; {RESCALINGS[part['rescaling'] and part['rescaling'][0]]}",
    }
