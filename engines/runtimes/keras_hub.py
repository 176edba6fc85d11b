"""KerasHub on JAX: the layer `RotaryEmbedding`."""

from typing import Any

import numpy as np

from engines.alone import alone
from engines.asking import BASE, ORIGINAL, Case

NAME, PACKAGES, LICENCE = "KerasHub (on JAX)", ["keras-hub", "keras", "jax", "jaxlib"], "Apache-2.0"

Layer = alone("keras_hub.src.layers.modeling.rotary_embedding").RotaryEmbedding


def each(**more: Any) -> Any:
    """Return a function of x and positions."""
    layer = Layer(max_wavelength=BASE, **more)

    def rotate(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        y = layer(x, positions=at.astype(np.int32))
        return np.asarray(y).astype(x.dtype)

    return rotate


def cases() -> list[Case]:
    """Return what is asked of KerasHub."""
    name = "RotaryEmbedding"
    return [
        Case(name, "", each()),
        Case(name, "scaling_factor=4", each(scaling_factor=4.0)),
        Case(name, 'dtype="bfloat16"', each(dtype="bfloat16")),
        Case(name, 'dtype="float16"', each(dtype="float16")),
    ]


def rescaled(rule: dict[str, Any]) -> Case:
    """Return the case of a rule in Keras' words."""
    kind, more = rule["rope_type"], {key: v for key, v in rule.items() if key != "rope_type"}
    unknown = {"attention_factor", "mscale", "mscale_all_dim"} & more.keys()
    if kind not in ("linear", "dynamic", "yarn") or unknown:
        raise NotImplementedError(kind)
    more["scaling_factor"] = more.pop("factor")
    rotate = each(rope_type=kind, original_max_position_embeddings=ORIGINAL, **more)
    return Case("RotaryEmbedding", f"rope_type={kind!r}", rotate)
