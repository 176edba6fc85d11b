"""What a class does with values of other types is found by asking: a class whose answers are known.

It fails with a window that is no number, takes a pattern that is null as if it were not given,
reads a skip that changes its base, and has a name that it never looks at.
"""

from dataclasses import asdict, dataclass
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

pytest.importorskip("transformers")
pytest.importorskip("torch")

from atlas.asking import Family, Heard, RefusedError
from atlas.types import types_of
from ropescope.configuration import evaluate

RULE: dict[str, Any] = {
    "family": "made", "part": "text", "aliases": {}, "lengths": False, "alone": False, "on": {},
    "defaults": {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2,
                 "layer_pattern": 2},
    "rescalings": {"default": "default"},
    "layers": {"count": ["num_hidden_layers"]},
    "rope": {"dict": False, "nested": False, "fills": False, "kinds": {
        "": {"theta": ["rope_theta"], "default": 1e4, "scaling": False, "absent": None}}},
    "rotations": [{
        "kind": None, "layout": "half-split", "direction": 1, "place": "first", "power": 0.0,
        "head_dim": ["hidden_size // num_attention_heads"], "axes": None, "partial": None,
        "dim": ["hidden_size // num_attention_heads"]}],
    "read": ["hidden_size", "num_attention_heads", "num_hidden_layers", "rope_theta"],
}  # fmt: skip


@dataclass
class Made:
    """A class of configurations."""

    hidden_size: int = 64
    num_attention_heads: int = 4
    head_dim: int | None = None
    num_hidden_layers: int = 2
    rope_theta: float = 1e4
    window_size: int = 8
    layer_pattern: int | None = 2
    rope_skip: int = 0
    layer_name: str = "plain"

    model_type = "made"
    attribute_map: ClassVar[dict[str, str]] = {}

    @classmethod
    def from_dict(cls, raw: dict[str, Any]) -> "Made":
        made = cls(**raw)
        made.layer_pattern = made.layer_pattern or 2
        return made

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class Known(Family):
    """A family whose code is known."""

    def __init__(self) -> None:
        self.made, self.name, self.alone = Made, "made", False
        self.labels, self.small, self.default = {}, {}, Made()

    def hear(self, **more: Any) -> list[Heard]:
        config = self.loaded(self.raw(**more))
        if type(config.window_size) is not int:
            raise RefusedError("a window is a number")
        base = config.rope_theta * (2.0 if config.rope_skip else 1.0)
        (part,) = evaluate({"model_type": "made", "rope_theta": base}, {"made": RULE}).parts
        told = SimpleNamespace(**{name: getattr(part, name) for name in (
            "head_dim", "width", "layout", "place", "direction", "attention_factor")},
            inv_freq=np.array(part.inv_freq), unrotated_factor=None)  # fmt: skip
        return [Heard(None, tuple(range(config.num_hidden_layers)), told)]  # type: ignore[arg-type]


def test_what_a_known_class_does_with_other_types_is_found() -> None:
    """Of its names that may reach a rotation, two do something; a pattern and a name do not."""
    found = types_of(Known(), RULE)
    assert found.keys() == {"takes", "reaches"}
    assert found["takes"].keys() == {"window_size"}
    takes, fails = found["takes"]["window_size"]
    assert (takes, {*fails}) == ("i", {*"nbfsedNBIFS"})
    assert found["reaches"] == {"rope_skip": 0}
