"""Google's gemma for JAX: `apply_rope`."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from engines.alone import alone
from engines.asking import BASE, Case

NAME, PACKAGES, LICENCE = "gemma (JAX)", ["gemma", "jax", "jaxlib"], "Apache-2.0"

apply_rope = alone("gemma.gm.math._positional_embeddings").apply_rope


def each(kind: Any = jnp.float32, **more: Any) -> Any:
    """Return a function of x and positions."""

    def rotate(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        rows = jnp.asarray(x, kind)[:, :, None]
        where = jnp.broadcast_to(jnp.asarray(at, jnp.int32), (len(x), len(at)))
        y = apply_rope(rows, where, base_frequency=int(BASE), **more)
        return np.asarray(y.astype(jnp.float32))[:, :, 0]

    return rotate


def cases() -> list[Case]:
    """Return what is asked of gemma."""
    return [
        Case("apply_rope", "", each()),
        Case("apply_rope", "rope_proportion=0.5", each(rope_proportion=0.5)),
        Case("apply_rope", "scale_factor=4", each(scale_factor=4.0)),
        Case("apply_rope", "x in bfloat16", each(jnp.bfloat16)),
    ]


def rescaled(rule: dict[str, Any]) -> Case:
    """Return the case of the one rule that it has."""
    if rule["rope_type"] != "linear":
        raise NotImplementedError
    return Case("apply_rope", "scale_factor=4", each(scale_factor=rule["factor"]))
