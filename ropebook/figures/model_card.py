"""A model's rotary embedding from its configuration, and what a longer context asks for."""

import json
import math
from typing import Any

import traitlets

from .figure import Figure, Whole

__all__ = ["ModelCard", "model_card"]

LENGTHS = 1024, 2**24


class ModelCard(Figure):
    """A card of a configuration that is pasted, dropped or chosen (``model_card.js``)."""

    question = "How does your model rotate, and how far does it carry?"

    wanted = Whole(
        131_072,
        low=LENGTHS[0],
        high=LENGTHS[1],
        label="Length wanted",
        unit="tokens",
        per_decade=1 / math.log10(2),
    )
    part = Whole(-1, low=-1, high=99, help="which of its rotations; -1: that of the text")
    text = traitlets.Unicode(help="a configuration as JSON").tag(sync=True)
    name = traitlets.Unicode(help="whose it is").tag(sync=True)
    rows = traitlets.Unicode(help="the layout of the query rows of its file").tag(sync=True)
    weights = traitlets.Unicode(help="what the headers of its weights say").tag(sync=True)
    notes: traitlets.List[str] = traitlets.List(help="what was taken for granted").tag(sync=True)

    @traitlets.validate("data")
    def _check_data(self, given: Any) -> dict[str, Any]:
        for name in ("rules", "rows", "engines"):
            if not isinstance(given["value"].get(name), str):
                raise ValueError(f"data must hold {name} as JSON, see ropebook.atlas.card_data")
        return given["value"]


def model_card(
    data: dict[str, Any], model: str = "Qwen/Qwen2.5-7B-Instruct", wanted: int = 131_072
) -> ModelCard:
    """Return a card of a model's rotary embedding, for any configuration that a reader brings.

    Parameters
    ----------
    data
        What ``ropebook.atlas.card_data()`` returns: the rules of all families, and public
        checkpoints.
    model
        Where it starts: the name of one of these.
    wanted
        The length of a text to ask about, 1,024 to 16,777,216 tokens.

    Returns
    -------
    ModelCard
        Takes a ``config.json``, Meta's ``params.json``, a GGUF or a folder with weights, whose
        headers alone are read.

    Raises
    ------
    TypeError, ValueError
        If a value is of the wrong kind, unknown or out of range; the message names it.
    """
    figure = ModelCard(wanted=wanted)
    figure.data = data
    known = {name: config for name, _, config, _ in json.loads(data["rows"])}
    if model not in known:
        raise ValueError(f"model must be one of {', '.join(sorted(known))}; got {model!r}")
    figure.name, figure.text = model, _as_written(known[model])
    figure.start_here()
    return figure


def _as_written(value: Any, indent: str = "") -> str:
    """Return JSON as ``written`` of published.js does: a field a line, a list on one."""
    if isinstance(value, list):
        return f"[{', '.join(map(_as_written, value))}]"
    if not isinstance(value, dict) or not value:
        return json.dumps(value, ensure_ascii=False)
    inner = f"{indent}  "
    fields = (f"{json.dumps(k)}: {_as_written(v, inner)}" for k, v in value.items())
    return f"{{\n{inner}" + f",\n{inner}".join(fields) + f"\n{indent}}}"
