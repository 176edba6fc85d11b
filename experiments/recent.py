"""Encodings of 2024 to 2026 under the protocol of the contest, and two tasks more.

``python -m experiments.recent`` trains what is missing and writes ``results/recent/<task>.json``.

The models, the optimisation, the rates, the seeds and the statistics are those of the contest of
chapter 8. What was read of each encoding, and where its form here differs, is in ``README.md``.
"""

import argparse
import math
import time
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize, pad, sigmoid, silu, softplus

from rope_minimal import apply_rope, inverse_frequencies

from . import __main__ as contest
from . import summary
from .encodings import ENCODINGS, Encoding
from .model import Transformers, Watched
from .run import SIZES, TIMES, Job, fit, score
from .run import build as build_known
from .summary import RESULTS
from .tasks import IGNORE, MARKS, QUERIES, QUERY, SYMBOLS, WINDOW, Batch, Task
from .tasks import TASKS as KNOWN

FOLDER = RESULTS / "recent"
PREDICTIONS = RESULTS.parent / "predictions-recent.json"

LOCAL = 16
"""Keys that a local layer sees, its own among them: a quarter of the training window."""
RECALIBRATION = 0.25
"""Steps after dropping the rotation, as a share of those before."""
TAPS = 4
"""Width of the convolution of Selective RoPE."""
SCALE = 16.0
"""Divisor of the gate of contextual GRAPE."""
EXPONENT = 0.1
"""Exponent of the distance in token-aware phase attention, the authors' own."""
GAIN = 0.3
"""Of the random coefficients of a Fourier series, as in the released configuration of FoPE."""


# ---- the encodings ------------------------------------------------------------------------------


def rotated(q: Tensor, k: Tensor, angle: Tensor) -> tuple[Tensor, Tensor]:
    """Rotate the pairs of q and k, (S, B, H, T, D), by angles that broadcast to (..., T, D/2)."""
    cos, sin = angle.to(q.dtype).cos(), angle.to(q.dtype).sin()
    return apply_rope(q, cos, sin, interleaved=True), apply_rope(k, cos, sin, interleaved=True)


class Recent(Transformers):
    """The models of `model.py`, with the scores of attention left to the encoding.

    Models of one seed start from the weights of the contest. What an encoding adds is drawn from a
    generator of its own.
    """

    name: ClassVar[str]
    words: ClassVar[str]
    local: ClassVar[tuple[int | None, ...]] = (None, None)
    """Number of keys that each layer sees; None for all."""

    def __init__(self, vocabulary: int, window: int, seeds: tuple[int, ...]) -> None:
        how = Encoding(self.name, self.words)
        super().__init__(how, vocabulary, window, seeds, longest=TIMES[-1] * window, **SIZES)
        each = [
            self.own(torch.Generator().manual_seed(zlib.crc32(f"{self.name} {seed}".encode())))
            for seed in seeds
        ]
        for key in each[0]:
            self.weights[key] = nn.Parameter(torch.stack([one[key] for one in each]))

    def own(self, generator: torch.Generator) -> dict[str, Tensor]:
        """Return the initial weights that one model has beside those of the contest."""
        return {}

    def frequencies(self, layer: int) -> Tensor:
        """Return inverse frequencies in radians per position, (D/2,) or (S, 1, 1, 1, D/2)."""
        return torch.tensor(inverse_frequencies(self.head_dim))

    def angles(self, x: Tensor, layer: int) -> Tensor:
        """Return the angle of each pair at each token of x, (S, B, T, width)."""
        return torch.arange(x.shape[2])[:, None] * self.frequencies(layer)

    def scores(self, q: Tensor, k: Tensor, x: Tensor, layer: int) -> Tensor:
        """Return the scores of q and k, (S, B, H, T, D), before the mask: RoPE's."""
        q, k = rotated(q, k, self.angles(x, layer))
        return q @ k.mT / self.head_dim**0.5

    def _attention(self, x: Tensor, layer: int, size: int, watch: list[Watched] | None) -> Tensor:
        x = x.unflatten(1, (size, -1))
        q, k, v = (
            (x @ self.weights[f"{layer}_{name}"][:, None])
            .unflatten(-1, (self.heads, self.head_dim))
            .transpose(2, 3)
            for name in "qkv"
        )
        place = torch.arange(x.shape[2])
        distance = place[:, None] - place
        scores = self.scores(q, k, x, layer) + self._bias(distance, layer, x.dtype)
        if (seen := self.local[layer]) is not None:
            scores = scores.masked_fill(distance >= seen, float("-inf"))
        weights = scores.softmax(dim=-1)
        if watch is not None:
            watch.append((q, k, weights))
        return (weights @ v).transpose(2, 3).flatten(3).flatten(1, 2)


def _each_layer(make: Callable[[], Tensor], name: str) -> dict[str, Tensor]:
    return {f"{layer}_{name}": make() for layer in range(SIZES["layers"])}


def _uniform(generator: torch.Generator, rows: int, *columns: int) -> Tensor:
    return (2 * torch.rand(rows, *columns, generator=generator) - 1) / rows**0.5


WIDTH = SIZES["width"]
PAIRS = WIDTH // SIZES["heads"] // 2


class PoPE(Recent):
    """Magnitudes from content, phases from positions: a frequency for each channel.

    q_c' = softplus(q_c) e^(i m theta_c), k_c' = softplus(k_c) e^(i (n theta_c + delta_c)).
    """

    name, words = "pope", "PoPE"

    def own(self, generator: torch.Generator) -> dict[str, Tensor]:
        return _each_layer(lambda: torch.zeros(2 * PAIRS), "delta")

    def scores(self, q: Tensor, k: Tensor, x: Tensor, layer: int) -> Tensor:
        theta = torch.tensor(inverse_frequencies(2 * self.head_dim))
        angle = (torch.arange(q.shape[3])[:, None] * theta).to(q.dtype)
        delta = self.weights[f"{layer}_delta"].clamp(-2 * math.pi, 0)
        late = angle + delta[:, None, None, None]
        q, k = softplus(q), softplus(k)
        real = (q * angle.cos()) @ (k * late.cos()).mT + (q * angle.sin()) @ (k * late.sin()).mT
        return real / self.head_dim**0.5


class AdditiveGrape(Recent):
    """A bias that falls with the distance, at a rate that query and key set; no rotation.

    -(m - n) omega (softplus(v . q / sqrt D) + softplus(u . k / sqrt D)) with unit vectors v and u.
    """

    name, words = "grape_a", "GRAPE, additive"

    def own(self, generator: torch.Generator) -> dict[str, Tensor]:
        own = _each_layer(lambda: torch.tensor([math.log(math.expm1(1.0))]), "omega")
        for name in ("fall_q", "fall_k"):
            own |= _each_layer(lambda: torch.randn(2 * PAIRS, generator=generator), name)
        return own

    def scores(self, q: Tensor, k: Tensor, x: Tensor, layer: int) -> Tensor:
        place, root = torch.arange(q.shape[3]), self.head_dim**0.5
        gate_q, gate_k = (
            softplus(
                (z * normalize(self.weights[f"{layer}_{n}"], dim=-1)[:, None, None, None]).sum(-1)
                / root
            )
            for z, n in ((q, "fall_q"), (k, "fall_k"))
        )
        omega = self.how.slopes[layer] * softplus(self.weights[f"{layer}_omega"])
        rate = omega.view(-1, 1, 1, 1, 1) * (gate_q[..., None] + gate_k[..., None, :])
        return q @ k.mT / root - (place[:, None] - place).clamp(min=0) * rate


class LearnedFrequencies(Recent):
    """RoPE whose frequencies are trained, as logarithms, for each layer."""

    name, words = "learned_bank", "learned frequencies"

    def own(self, generator: torch.Generator) -> dict[str, Tensor]:
        first = torch.tensor(inverse_frequencies(2 * PAIRS), dtype=torch.float32)
        return _each_layer(first.log, "log_theta")

    def frequencies(self, layer: int) -> Tensor:
        return self.weights[f"{layer}_log_theta"].exp()[:, None, None, None]


class ContextualGrape(LearnedFrequencies):
    """Learned frequencies; the position of a token is the sum of the gates before it.

    Phi_t = sum over s < t of sigmoid((w . x_s + b) / 16).
    """

    name, words = "grape_m", "GRAPE, multiplicative"

    def own(self, generator: torch.Generator) -> dict[str, Tensor]:
        gate = _each_layer(lambda: torch.zeros(WIDTH, 1), "gate")
        bias = _each_layer(lambda: torch.tensor([math.log(math.expm1(1e-3))]), "gate_bias")
        return super().own(generator) | gate | bias

    def angles(self, x: Tensor, layer: int) -> Tensor:
        bias = self.weights[f"{layer}_gate_bias"].view(-1, 1, 1, 1)
        step = sigmoid((x @ self.weights[f"{layer}_gate"][:, None] + bias) / SCALE)
        phase = step.cumsum(dim=2) - step
        return phase[:, :, None] * self.frequencies(layer)


class ImaginaryRoPE(Recent):
    """RoPE beside a second head with the same q, k and v, whose queries stand a right angle back.

    Its scores are minus the imaginary part of the sum of which RoPE takes the real part.
    """

    name, words = "rope_pp", "RoPE++, real and imaginary"

    def __init__(self, vocabulary: int, window: int, seeds: tuple[int, ...]) -> None:
        super().__init__(vocabulary, window, seeds)
        for layer in range(self.layers):
            both = (self.weights[f"{layer}_o"], self.weights.pop(f"{layer}_o_imaginary"))
            self.weights[f"{layer}_o"] = nn.Parameter(torch.cat(both, dim=1).detach())

    def own(self, generator: torch.Generator) -> dict[str, Tensor]:
        return _each_layer(lambda: _uniform(generator, WIDTH, WIDTH), "o_imaginary")

    def scores(self, q: Tensor, k: Tensor, x: Tensor, layer: int) -> Tensor:
        q, k = rotated(q, k, self.angles(x, layer))
        a, b = q.unflatten(-1, (-1, 2)).unbind(-1)
        both = torch.cat((q, torch.stack((b, -a), dim=-1).flatten(-2)), dim=2)
        return both @ k.mT / self.head_dim**0.5


class SelectiveRoPE(Recent):
    """Angles that are sums of steps, and a step that is a function of the last four tokens.

    phi = conv(W x / |x|), angle_t = theta * sum over s <= t of phi_s.
    """

    name, words = "selective", "Selective RoPE"

    def own(self, generator: torch.Generator) -> dict[str, Tensor]:
        steps = _each_layer(lambda: _uniform(generator, WIDTH, PAIRS), "phi")
        return steps | _each_layer(lambda: _uniform(generator, TAPS, PAIRS), "taps")

    def angles(self, x: Tensor, layer: int) -> Tensor:
        phi = pad(normalize(x, dim=-1) @ self.weights[f"{layer}_phi"][:, None], (0, 0, TAPS - 1, 0))
        taps = self.weights[f"{layer}_taps"][:, None, :, None]  # (S, 1, TAPS, 1, pairs)
        step = sum(taps[:, :, j] * phi[:, :, j : j + x.shape[2]] for j in range(TAPS))
        return (step.cumsum(dim=2) * self.frequencies(layer))[:, :, None]


class RePo(Recent):
    """RoPE in layer 1; in layer 2 a small network gives each token a real position.

    z = W (silu(U x) * V x); the angles are z theta.
    """

    name, words = "repo", "RePo, learned positions in layer 2"

    def own(self, generator: torch.Generator) -> dict[str, Tensor]:
        middle = WIDTH // 8
        shapes = {"gate": (WIDTH, middle), "content": (WIDTH, middle), "place": (middle, 1)}
        return {f"1_{name}": _uniform(generator, *shape) for name, shape in shapes.items()}

    def angles(self, x: Tensor, layer: int) -> Tensor:
        if layer == 0:
            return super().angles(x, layer)
        gate, content, place = (
            self.weights[f"1_{name}"][:, None] for name in ("gate", "content", "place")
        )
        position = (silu(x @ gate) * (x @ content)) @ place
        return (position * self.frequencies(layer))[:, :, None]


class ClippedRoPE(Recent):
    """RoPE whose pairs with periods longer than the training window fade out, by a cosine."""

    name, words = "clipped", "CoPE, clipped frequencies"

    def frequencies(self, layer: int) -> Tensor:
        theta = inverse_frequencies(self.head_dim)
        slow = 2 * np.pi / theta > self.window
        theta[slow] *= 0.5 * (1 + np.cos(np.linspace(0, np.pi, slow.sum())))
        return torch.tensor(theta)


class FourierSeries(Recent):
    """In place of cos and sin of an angle, sums of cosines and of sines of all angles.

    Only frequencies that turn once within the training window are kept. The coefficients are the
    identity plus random numbers, different for cos and sin, and stay as drawn. All other pairs get
    cos = sin = 1 at every position.
    """

    name, words = "fourier", "FoPE, Fourier series"

    def __init__(self, vocabulary: int, window: int, seeds: tuple[int, ...]) -> None:
        theta = inverse_frequencies(2 * PAIRS)
        self.kept = theta[theta >= 2 * np.pi / window]
        super().__init__(vocabulary, window, seeds)
        for layer in range(self.layers):
            for name in ("cos", "sin"):
                self.weights[f"{layer}_{name}"].requires_grad = False

    def own(self, generator: torch.Generator) -> dict[str, Tensor]:
        count = len(self.kept)

        def coefficients() -> Tensor:
            noise = torch.empty(1, count, count)  # one head: the shape decides the deviation
            return torch.eye(count) + nn.init.xavier_normal_(noise, GAIN, generator)[0]

        return _each_layer(coefficients, "cos") | _each_layer(coefficients, "sin")

    def scores(self, q: Tensor, k: Tensor, x: Tensor, layer: int) -> Tensor:
        angle = (torch.arange(q.shape[3])[:, None] * torch.tensor(self.kept)).to(q.dtype)
        cos, sin = (
            pad(waves @ self.weights[f"{layer}_{name}"], (0, PAIRS - len(self.kept)), value=1.0)
            for name, waves in (("cos", angle.cos()), ("sin", angle.sin()))
        )
        q, k = (
            apply_rope(z, *(t[:, None, None] for t in (cos, sin)), interleaved=True) for z in (q, k)
        )
        return q @ k.mT / self.head_dim**0.5


class TokenAwarePhases(Recent):
    """Half of the channels set an amplitude, the other half how it swings with the distance.

    q_A . k_A / sqrt(D/2) * cos(2 pi |m - n|^0.1 q_P . k_P / sqrt(D/2)).
    """

    name, words = "tapa", "TAPA, token-aware phases"

    def scores(self, q: Tensor, k: Tensor, x: Tensor, layer: int) -> Tensor:
        place = torch.arange(q.shape[3])
        (q_a, q_p), (k_a, k_p) = (z.chunk(2, dim=-1) for z in (q, k))
        amplitude, phase = (a @ b.mT / PAIRS**0.5 for a, b in ((q_a, k_a), (q_p, k_p)))
        far = (place[:, None] - place).abs().to(q.dtype) ** EXPONENT
        return amplitude * torch.cos(2 * math.pi * far * phase)


class TwoBases(Recent):
    """A local layer with base 10,000, then a global one with base 1,000,000."""

    name, words = "bases", "two bases, local and global"
    local = (LOCAL, None)

    def frequencies(self, layer: int) -> Tensor:
        return torch.tensor(inverse_frequencies(self.head_dim, (1e4, 1e6)[layer]))


class LocalThenNone(Recent):
    """A local layer with RoPE, then a global one without positions."""

    name, words = "local_nope", "local RoPE, then no encoding"
    local = (LOCAL, None)

    def frequencies(self, layer: int) -> Tensor:
        return super().frequencies(layer) * (layer == 0)


class DroppedRoPE(Recent):
    """RoPE that is dropped after training; some steps without it follow."""

    name, words = "drope", "DroPE, RoPE dropped after training"
    dropped = False

    def frequencies(self, layer: int) -> Tensor:
        return super().frequencies(layer) * (not self.dropped)


RECENT: dict[str, type[Recent]] = {
    one.name: one
    for one in (
        PoPE,
        AdditiveGrape,
        ContextualGrape,
        LearnedFrequencies,
        ClippedRoPE,
        FourierSeries,
        ImaginaryRoPE,
        SelectiveRoPE,
        RePo,
        TokenAwarePhases,
        TwoBases,
        LocalThenNone,
        DroppedRoPE,
    )
}
"""All new encodings by name, in training order."""


def build(task: Task, encoding: str, seeds: tuple[int, ...]) -> Transformers:
    """Return untrained models, one per seed, of a new encoding or one of the contest."""
    if encoding in ENCODINGS:
        return build_known(task, encoding, seeds)
    return RECENT[encoding](task.vocabulary, task.window, seeds)


def train(
    task: Task, encoding: str, seeds: tuple[int, ...], learning_rate: float, steps: int
) -> Transformers:
    """Train one model per seed; initial weights and batches are the same for every encoding."""
    models = fit(build(task, encoding, seeds), task, seeds, learning_rate, steps)
    if isinstance(models, DroppedRoPE):
        models.dropped = True
        fit(models, task, seeds, learning_rate, int(steps * RECALIBRATION))
    return models


# ---- the tasks ----------------------------------------------------------------------------------


START = 2
"""The first token of a text of the parity task; the others are 0 and 1."""

GAP = (16, 32)
"""Distances from .. to below that no target of the recall task has in training."""


def parity(split: str, generator: torch.Generator, size: int, length: int) -> Batch:
    """Predict whether the number of ones so far is odd; the distance is the number of tokens."""
    tokens = torch.randint(2, (size, length), generator=generator)
    tokens[:, 0] = 0
    targets = tokens.cumsum(dim=1) % 2
    tokens[:, 0], targets[:, 0] = START, IGNORE
    return tokens, targets, torch.arange(length).expand(size, length)


def recall(split: str, generator: torch.Generator, size: int, length: int) -> Batch:
    """Retrieve one of two marked symbols, as in `find`, but at distances split by use.

    In training and validation no answer is 16 to 31 tokens away, and none a window or more. The
    test asks for these only: in texts of one window for 16 to 31.
    """
    tokens = torch.randint(SYMBOLS, (size, length), generator=generator)
    rows = torch.arange(size)[:, None]
    marked = torch.rand(size, length - QUERIES, generator=generator).argsort(dim=1)[:, :MARKS]
    which = torch.randint(MARKS, (size, length), generator=generator)
    distance = torch.arange(length) - marked.gather(1, which)
    unseen = ((distance >= GAP[0]) & (distance < GAP[1])) | (distance >= WINDOW)
    fits = (torch.arange(length) > marked.amax(dim=1, keepdim=True)) & (
        unseen if split == "test" else ~unseen
    )
    order = torch.rand(size, length, generator=generator).masked_fill(~fits, 2.0)
    at = order.argsort(dim=1)[:, :QUERIES]
    asked = torch.zeros_like(fits).scatter(1, at, value=True) & fits
    values = tokens.gather(1, marked)
    tokens[rows, marked] = values + SYMBOLS * torch.arange(1, MARKS + 1)
    targets = torch.where(asked, values.gather(1, which), IGNORE)
    tokens = torch.where(asked, QUERY + which, tokens)
    return tokens, targets, torch.where(asked, distance, 0)


TASKS = KNOWN | {
    "parity": Task("parity", "whether the ones so far are odd", parity, START + 1, 2000),
    "recall": Task("recall", "find at distances never trained", recall, QUERY + MARKS, 400),
}
GUESS = {"parity": 1 / 2, "recall": 1 / SYMBOLS}
"""Accuracy by chance."""

OLD = ["rope", "nope", "layers", "alibi", "t5"]
"""Encodings of the contest that the new tasks are asked of, too."""
TRIED = {name: list(RECENT) for name in KNOWN} | {
    "parity": list(RECENT) + OLD,
    "recall": list(RECENT) + OLD,
}
TRIED["language"] = [*RECENT, "layers"]
"""Encodings of each task. Those that the contest has trained on its tasks are not repeated."""


# ---- the record ---------------------------------------------------------------------------------


OURS = {
    "local": LOCAL,
    "recalibration": RECALIBRATION,
    "taps": TAPS,
    "gate_scale": SCALE,
    "exponent": EXPONENT,
    "gain": GAIN,
    "gap": list(GAP),
}


def settings(task: Task) -> dict[str, Any]:
    """Return the settings that determine the results of a task."""
    return contest.settings(task, {task.name: contest.OWN.get(task.name, {}) | OURS}, TRIED)


def run(job: Job) -> dict[str, Any]:
    """Run one job: select the rate (validation split), measure, or repeat with twice the steps."""
    torch.set_num_threads(1)
    task, cpu = TASKS[job.task], time.process_time()
    models = train(task, job.encoding, job.seeds, job.learning_rate, job.steps)
    found: dict[str, Any] = {**job._asdict(), "seeds": list(job.seeds)}
    if job.purpose != "measure":
        found["valid_bits"] = score(models, task, "valid", job.seeds, 1)["bits"]
    scores = {str(n): score(models, task, "test", job.seeds, n) for n in TIMES}
    return {
        **found,
        "test": {"none": scores},
        "cpu_seconds": round(time.process_time() - cpu, 1),
    }


def records() -> dict[str, Any]:
    """Return the record of each task, with the runs of the contest where it has the task."""
    found = {}
    for name, task in TASKS.items():
        record = contest.load(task, FOLDER, settings(task))
        if name in KNOWN:
            known = summary.load(name)
            names = known["settings"]["encodings"] + record["settings"]["encodings"]
            record["settings"] = {**record["settings"], "encodings": names}
            record["runs"] = known["runs"] + record["runs"]
        found[name] = record
    return found


def main() -> None:
    """Select learning rates, train eight seeds of each encoding, evaluate; record every job."""
    parser = argparse.ArgumentParser(prog="python -m experiments.recent", description=__doc__)
    remaining = partial(contest.left, tasks=TASKS, encodings=TRIED)
    contest.command(parser, TASKS, FOLDER, settings, run, remaining)


if __name__ == "__main__":
    main()
