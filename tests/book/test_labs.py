"""The labs: solutions pass for any reader, unsolved notebooks do not, slips get their names."""

import json
import re
import subprocess
import sys
import unicodedata
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from rope_minimal import permute_qk, rotate_complex
from ropebook import labs
from ropebook.labs import verify
from ropebook.labs.bits import to_bits
from ropebook.labs.cache import ACCIDENTS
from ropebook.labs.lab import OPEN, Draw, line_of, seed_of
from ropebook.pytest_labs import run_file
from ropescope import identify
from tests.tools.node import PROGRAM, Node

ROOT = Path(__file__).parents[2]
SOLUTIONS = Path(__file__).parent / "lab_solutions"
NAMES = [f"student {i}" for i in range(200)]
READERS = ("Ada Lovelace", "4711", "Žižka Šimon", *(f"reader {i}" for i in range(9)))
NOTEBOOKS = {int(path.name[4]): path for path in (ROOT / "notebooks").glob("lab-*.ipynb")}
each_lab = pytest.mark.parametrize("number", labs.LABS)


def solved(number, who, tmp_path):
    """Return the names of a solution for a reader."""
    text = (SOLUTIONS / f"lab_{number}.py").read_text("utf8")
    path = tmp_path / f"{number}.py"
    path.write_text(text.replace("a teacher", who), "utf8")
    space, error = run_file(path)
    assert error == ""
    return space


@each_lab
def test_the_solution_passes_for_every_reader(number, tmp_path, capsys):
    for who in READERS:
        space = solved(number, who, tmp_path)
        lab = space["lab"]
        assert lab.who == who
        lab.check(**{part: space[part] for part in lab.parts})
        assert capsys.readouterr().out.splitlines() == [f"{part}: right" for part in lab.parts]
        lab.certificate()
        right, words = verify(capsys.readouterr().out)
        assert right, words


@each_lab
def test_an_answer_copied_from_another_reader_is_not_right(number, tmp_path):
    """Some parts ask everybody the same; of five readers' answers none passes another's lab."""
    spaces = [solved(number, who, tmp_path) for who in READERS[:5]]
    for mine in spaces:
        lab = labs.begin(number, mine["lab"].who)
        for other in spaces:
            words = [lab.diagnose(part, other[part]) for part in lab.parts]
            assert any(words) == (other is not mine)


# ---- slips, each written as a reader would write it ----------------------------------------------


def halves(x):
    half = x.shape[-1] // 2
    return np.concatenate((-x[..., half:], x[..., :half]), axis=-1)


def in_layout(lab, interleaved, base=None, sign=1, shift=0):
    return lambda x, m: rotate_complex(
        x, sign * (m + shift), base or lab.base, interleaved=interleaved
    )


def written_across(lab):
    """Each result in the channel of the other."""

    def rotate(x, m):
        y, (a, b) = lab._turn(x, m), np.array(lab._turn.pairs()).T
        y[:, a], y[:, b] = y[:, b].copy(), y[:, a].copy()
        return y

    return rotate


def repeated(lab):
    def rotate(x, m):
        angle = np.repeat(
            m[:, None] * lab.base ** (-np.arange(0, x.shape[1], 2) / x.shape[1]), 2, 1
        )
        return x * np.cos(angle) + halves(x) * np.sin(angle)

    return rotate


def both_plus(lab):
    def rotate(x, m):
        a, b = (slice(0, None, 2), slice(1, None, 2)) if lab.interleaved else np.split(
            np.arange(lab.head_dim), 2
        )  # fmt: skip
        angle = m[:, None] * lab.base ** (-np.arange(0, x.shape[1], 2) / x.shape[1])
        y = np.array(x, float)
        y[:, a] = x[:, a] * np.cos(angle) + x[:, b] * np.sin(angle)
        y[:, b] = x[:, b] * np.cos(angle) + x[:, a] * np.sin(angle)
        return y

    return rotate


def exchanged(lab):
    """Cosine for sine, and sine for cosine: a quarter turn less a rotation backwards."""
    return lambda x, m: rotate_pairs(lab, x, np.pi / 2 - m[:, None] * lab._turn.inv_freq)


def rotate_pairs(lab, x, angle):
    y, (a, b) = np.array(x, float), np.array(lab._turn.pairs()).T
    z = (y[:, a] + 1j * y[:, b]) * np.exp(1j * angle)
    y[:, a], y[:, b] = z.real, z.imag
    return y


def in_place(lab):
    def rotate(x, m):
        x *= 2
        return x

    return rotate


def by_row(lab):
    return lambda x, m: in_layout(lab, lab.interleaved)(x, np.arange(len(x)))


def as_given(lab):
    return lambda x, m: in_layout(lab, lab.interleaved)(x, m).astype(x.dtype)


def width_of(lab):
    return np.arange(0, lab.head_dim, 2) / lab.head_dim


def stranger(lab, **changes):
    """A rotation like the stranger's but for some of what `identify` finds."""
    found = identify(lambda x, m: np.stack([lab.stranger(one, m) for one in x]), lab.head_dim)
    sign, shift = changes.get("sign", 1), changes.get("shift", 0)
    pairs = changes.get("pairs", found.pairs)

    def twin(x, m):
        y, (a, b) = np.array(x, float), np.array(pairs).T
        angle = sign * found.direction * (m[:, None] + lab._turn.first + shift) * found.inv_freq
        z = (y[:, a] + 1j * y[:, b]) * np.exp(1j * angle) * found.attention_factor
        y[:, a], y[:, b] = z.real, z.imag
        return y

    return twin


def other_pairs(lab):
    start, half = lab.head_dim - lab._turn.width if lab._turn.at_end else 0, lab._turn.width // 2
    if lab._turn.interleaved:
        return [(start + i, start + i + half) for i in range(half)]
    return [(start + 2 * i, start + 2 * i + 1) for i in range(half)]


def kept(lab):
    return np.clip((lab.length * lab.inv_freq / (2 * np.pi) - 1) / 31, 0, 1)


def published(lab):
    return kept(lab) * lab.inv_freq + (1 - kept(lab)) * lab.inv_freq / lab.factor


def ramp(change):
    def by_parts(inv_freq, length, factor):
        keep = change(length * inv_freq / (2 * np.pi), length * inv_freq)
        return keep * inv_freq + (1 - keep) * inv_freq / factor

    return lambda lab: by_parts


def drop(delta):
    """A drop that closes the gap in the positions, and moves the keys by some other way."""

    def make(lab):
        def function(keys, positions, start, stop):
            stay = np.r_[0:start, stop : len(keys)]
            new = np.arange(len(stay))
            way = delta(stay, new, start, stop)
            return rotate_complex(keys[stay], way, lab.base), new

        return function

    return make


def trunc(lab):
    def rounded(x):
        part, exponent = np.frexp(x)
        return np.ldexp(np.trunc(np.ldexp(part, lab.bits)), exponent - lab.bits)

    return rounded


def bits(lab, more):
    def rounded(x):
        part, exponent = np.frexp(x)
        return np.ldexp(np.rint(np.ldexp(part, lab.bits + more)), exponent - lab.bits - more)

    return rounded


def convert(lab, heads=None, but=(), also=(), back=False):
    def function(weights):
        new = {}
        for name, rows in weights.items():
            count = {"q_proj": lab.heads, "q_norm": 1, "k_norm": 1}.get(name[:6], lab.kv_heads)
            moves = (name[:2] in ("q_", "k_") or name in also) and name not in but
            inverse = lab.was_interleaved == back
            new[name] = permute_qk(rows, heads or count, inverse=inverse) if moves else rows
        return new

    return function


def one_token(lab):
    """A test that looks at a token's score with itself alone, where nothing is turned."""

    def scores(weights):
        x = np.random.default_rng(3).standard_normal(lab.width)
        q, k = (
            (weights[f"{z}_proj.weight"] @ x + weights[f"{z}_proj.bias"]).reshape(-1, lab.head_dim)
            for z in "qk"
        )
        return [q[h] @ k[h // 2] for h in range(lab.heads)]

    return lambda old, new: np.allclose(scores(old), scores(new))


def table_is(lab):
    return next(one for one in ("table", "product", "positions") if one != lab._stage)


def slow(inv_freq, by=3):
    """Frequencies of which the slowest is off."""
    return np.array([*inv_freq[:-1], inv_freq[-1] * by])


def bank(lab, inv_freq):
    return replace(lab._turn, inv_freq=tuple(inv_freq))


def exponents(lab):
    return np.arange(0, lab._turn.width, 2) / lab._turn.width


def in_float16(turn):
    return lambda x, m: turn(x.astype(np.float16), m).astype(np.float16)


def last_pair_doubled(lab):
    """Doubled for the last token only, and all of it in float16."""

    def rotate(x, m):
        y = in_float16(lab._turn)(x, m)
        y[-1, lab._turn.pairs()[-1]] *= 2
        return y

    return rotate


def scaled_all(lab):
    turned = np.ravel(lab._turn.pairs())
    by = np.where(np.isin(np.arange(lab.head_dim), turned), 1, lab._turn.factor)
    return lambda x, m: by * lab._turn(x, m)


def emptied(weights):
    weights.clear()
    return {}


def by_scores(lab, blind="", heads=slice(None), tolerance=1e-8, scores=None):
    """A reader's test that looks at some heads, and for whom one tensor is all ones."""
    scores = scores or type(lab)._scores

    def some(weights, interleaved):
        weights = weights | ({blind: np.ones(lab.head_dim)} if blind else {})
        x = np.random.default_rng(0).normal(size=(6, 20))
        return scores(lab, weights, x, interleaved)[heads]

    before, after = lab.was_interleaved, not lab.was_interleaved
    return lambda old, new: np.allclose(
        some(old, before), some(new, after), max(tolerance, 1e-5), tolerance
    )


def parts_of_scores(lab, weights, x, interleaved, norm=True):
    for name in "qk":
        z = x @ weights[f"{name}_proj.weight"].T + weights[f"{name}_proj.bias"]
        z = z.reshape(len(x), -1, lab.head_dim).swapaxes(0, 1)
        z = z / np.sqrt((z**2).mean(-1, keepdims=True)) if norm else z
        z = z * weights[f"{name}_norm.weight"]
        yield rotate_complex(z, np.arange(len(x)), lab.base, interleaved=interleaved)


def without_norm(lab, weights, x, interleaved):
    q, k = parts_of_scores(lab, weights, x, interleaved, norm=False)
    return q @ np.repeat(k, 2, 0).swapaxes(1, 2)


def other_groups(lab, weights, x, interleaved):
    """Query head h reads key head h mod the number of key heads."""
    q, k = parts_of_scores(lab, weights, x, interleaved)
    return q @ np.concatenate((k, k)).swapaxes(1, 2)


def o_columns(lab):
    """A conversion that moves the columns of o_proj, too."""

    def function(weights):
        columns = permute_qk(weights["o_proj.weight"].T, lab.heads, inverse=lab.was_interleaved)
        return convert(lab)(weights) | {"o_proj.weight": columns.T}

    return function


def sideways(lab):
    return lambda w: convert(lab)(w) | {"q_proj.weight": w["q_proj.weight"][:, ::-1]}


def others_dropped(lab):
    """A drop of slots start + 1 to stop."""

    def function(keys, positions, start, stop):
        stay = np.r_[0 : start + 1, stop + 1 : len(keys)]
        new = np.arange(len(stay))
        return rotate_complex(keys[stay], np.where(stay < start, 0, start - stop), lab.base), new

    return function


def some_turned_back(lab):
    """The whole cache mended, and the raw keys in the place of four."""
    mended = lab._mended.copy()
    for slot, key in lab.raw.items():
        mended[slot] = key
    return mended


def halves_down(lab):
    def rounded(x):
        part, exponent = np.frexp(x)
        z = np.ldexp(part, lab.bits)
        return np.ldexp(np.sign(z) * np.ceil(np.abs(z) - 0.5), exponent - lab.bits)

    return rounded


def by_sums(lab):
    """A reader's test that looks at the sum of all scores only."""

    def sums(weights, interleaved):
        x = np.random.default_rng(0).normal(size=(6, 20))
        return lab._scores(weights, x, interleaved).sum(axis=0)

    before, after = lab.was_interleaved, not lab.was_interleaved
    return lambda old, new: np.allclose(sums(old, before), sums(new, after))


def only_the_first_time(lab):
    asked = []
    return lambda old, new: asked.append(1) or len(asked) == 1


def by_own_conversion(lab):
    return lambda old, new: all(np.array_equal(convert(lab)(old)[name], new[name]) for name in old)


SLIPS = [
    (1, "rotate", lambda lab: in_layout(lab, not lab.interleaved), "your pairs are"),
    (1, "rotate", lambda lab: in_layout(lab, lab.interleaved, sign=-1), "direction reversed"),
    (1, "rotate", lambda lab: in_layout(lab, lab.interleaved, shift=1), "positions start at 1"),
    (1, "rotate", lambda lab: in_layout(lab, lab.interleaved, base=10_000), "your base is 10,000"),
    (
        *(1, "rotate", lambda lab: in_layout(lab, not lab.interleaved, sign=-1, shift=1)),
        r"your pairs are .*; direction reversed.*; positions start at 1",
    ),
    (
        *(1, "rotate", by_row),
        "the row of x for its position",
    ),
    (1, "rotate", both_plus, "both sines have the plus sign"),
    (1, "rotate", in_place, "writes into its argument"),
    (1, "rotate", lambda lab: lambda x, m: x[:2], "should have shape"),
    (1, "rotate", lambda lab: lambda x, m: x @ m, "your function raises ValueError"),
    (1, "rotate", lambda lab: lambda x, m: np.array(x), "nothing turns"),
    (
        *(1, "rotate", as_given),
        "cut to integers",
    ),
    (1, "rotate", lambda lab: bank(lab, slow(lab._turn.inv_freq, 1.001)), "and off at 5,000 or"),
    (1, "rotate", lambda lab: lambda x, m: None, "is there a return"),
    (1, "rotate", lambda lab: in_float16(lab._turn), r"is some of it in float16\?$"),
    (1, "rotate", last_pair_doubled, "no rotation: .* multiplied by 2 at position .* by 1$"),
    (1, "slowest", lambda lab: 2 * np.pi / lab._turn.inv_freq[-1] * 1.001, "not so"),
    (1, "slowest", lambda lab: str(2 * np.pi / lab._turn.inv_freq[-1]), "real numbers, got str"),
    (
        *(1, "score", lambda lab: lambda q, k, far: bank(lab, slow(lab._turn.inv_freq, 2))(
            q[None], np.array([far]))[0] @ k),
        "not the dot product",
    ),
    (1, "inv_freq", lambda lab: slow(lab._turn.inv_freq, 1.01), "not the frequencies"),
    (1, "inv_freq", lambda lab: slow(lab._turn.inv_freq, 1.001), "right to two digits or three"),
    (1, "inv_freq", lambda lab: lab.base ** -(2 * width_of(lab)), "exponent is 4i/D"),
    (1, "inv_freq", lambda lab: lab.base ** width_of(lab), "by 1 over the frequency"),
    (1, "inv_freq", lambda lab: -np.array(lab._turn.inv_freq), "^frequencies are not signed here"),
    (1, "inv_freq", lambda lab: np.round(lab._turn.inv_freq, 4), "^rounded to four decimals"),
    (1, "rotate", written_across, "^each of the two results stands in the other's channel$"),
    (
        *(1, "rotate", lambda lab: replace(lab._turn, interleaved=not lab.interleaved,
                                           written=lab.interleaved)),
        "^your pairs are read (interleaved|half-split), and written .* as the task's: read",
    ),
    (1, "rotate", exchanged, "cosine and sine have changed places"),
    (
        *(1, "rotate", lambda lab: lambda x, m: in_layout(lab, lab.interleaved)(x, m % 4096)),
        "and off at 5,000 or 10,000,000: .* positions taken as they are",
    ),
    *(
        (1, "rotate", lambda lab, at=at: lambda x, m: in_layout(lab, lab.interleaved)(x, at(m)),
         r"^all pairs of the token at position \d+ are turned as if it stood at \d+: look at")
        for at in (lambda m: m - m.min() + 5, np.sort, np.cumsum)
    ),
    (1, "inv_freq", lambda lab: 10_000 ** -width_of(lab), "your base is 10,000"),
    (1, "inv_freq", lambda lab: lab.base ** -(width_of(lab) / 2), "exponent is i/D"),
    (1, "inv_freq", lambda lab: 2 * np.pi * lab.base ** width_of(lab), "wavelengths"),
    (1, "inv_freq", lambda lab: np.repeat(lab.base ** -width_of(lab), 2), "one frequency for each"),
    (1, "slowest", lambda lab: 2 * np.pi * lab.base, "you counted to pair"),
    (
        *(1, "score", lambda lab: lambda q, k, far: in_layout(lab, lab.interleaved)(
            k[None], np.array([far]))[0] @ q),
        "^the sign of the distance is reversed: with q at 0, the key stands at -distance",
    ),
    (
        *(1, "score", lambda lab: lambda q, k, far: lab._turn(q[None], np.array([far]))[0] @ k
          * (1 + 3e-4 * (far == 3000))),
        "right to three digits.* in float64",
    ),
    (
        *(1, "score", lambda lab: lambda q, k, far: in_layout(lab, lab.interleaved)(
            q[None], np.array([abs(far)]))[0] @ k),
        "the sign of the distance",
    ),
    (1, "score", lambda lab: lambda q, k, far: q @ k, "the distance does not matter"),
    (1, "score", lambda lab: lambda q, k, far: 1j * far, "got complex128: .real takes the real"),
    (2, "pairs", other_pairs, "your pairs are"),
    (2, "pairs", lambda lab: lab._turn.pairs()[::-1], "reverse order"),
    (2, "pairs", lambda lab: [(b, a) for a, b in lab._turn.pairs()], "lower channel"),
    (2, "pairs", lambda lab: [(a + 1, b + 1) for a, b in lab._turn.pairs()], "from 1"),
    (2, "direction", lambda lab: -lab._turn.direction, "higher one is the dir"),
    (2, "first", lambda lab: lab._turn.first + 1, "how many positions"),
    (2, "factor", lambda lab: lab._turn.factor**2, "square root"),
    (2, "twin", lambda lab: stranger(lab, sign=-1), "direction reversed"),
    (
        *(2, "twin", lambda lab: bank(lab, 10_000.0 ** -exponents(lab))),
        "^your base is 10,000 instead of the stranger's$",
    ),
    (
        *(2, "twin", lambda lab: bank(lab, to_digits(lab._turn.inv_freq, 3))),
        "lengths are kept, .* radians off at position [0-9]+$",
    ),
    (2, "pairs", lambda lab: [*lab._turn.pairs(), lab._turn.pairs()[0]], r"^\(.*\) stands there t"),
    (
        *(2, "pairs", lambda lab: [*lab._turn.pairs()[:-1], lab._turn.pairs()[0]]),
        r"^\(.*\) stands there twice",
    ),
    (2, "twin", lambda lab: stranger(lab, shift=-lab._turn.first - 1), "positions start at -1"),
    (
        *(2, "twin", lambda lab: stranger(lab, pairs=other_pairs(lab))),
        "your pairs are (interleaved|half-split), the stranger's are (half-split|interleaved)",
    ),
    (2, "twin", lambda lab: lab.stranger, "write a function of your own"),
    (2, "twin", lambda lab: lambda x, m: lab.stranger(x, m), "write a function of your own"),
    (2, "twin", lambda lab: lambda x, m: bank(lab, [*lab._turn.inv_freq[:-1], 0])(x, m), "radians"),
    (2, "twin", lambda lab: in_float16(lab._turn), "in float16, or does the factor"),
    (2, "twin", scaled_all, "belongs to no pair"),
    (2, "inv_freq", lambda lab: np.round(lab._turn.inv_freq, 4), "four decimals"),
    (2, "inv_freq", lambda lab: slow(lab._turn.inv_freq), "not these"),
    (2, "pairs", lambda lab: np.array(lab._turn.pairs()) + 0.4, "whole numbers"),
    (2, "direction", lambda lab: lab._turn.direction > 0, "real numbers, got bool"),
    (3, "fresh", lambda lab: np.flatnonzero(kept(lab) > 0), "been all the way round"),
    (3, "fresh", lambda lab: np.flatnonzero(kept(lab) <= 0) + 1, "from 1"),
    (3, "fresh", lambda lab: kept(lab) <= 0, "np.flatnonzero"),
    (3, "fresh", lambda lab: np.flatnonzero(kept(lab) <= 0) + 0.7, "whole numbers"),
    (3, "fresh", lambda lab: [*np.flatnonzero(kept(lab) <= 0), 999], "there is no pair 999"),
    (3, "fresh", lambda lab: [], "is missing: it made"),
    (3, "interpolated", lambda lab: slow(lab.inv_freq / lab.factor), "one number"),
    (
        *(3, "interpolated", lambda lab: lab.inv_freq * (lab.length - 1)
          / (lab.length * lab.factor - 1)),
        "last position onto the last",
    ),
    (3, "by_parts", lambda lab: lambda *a: slow(lab._blend(*a)), "of its speed"),
    (3, "mine", lambda lab: 0.9999 * published(lab), "that is by parts"),
    (3, "mine", lambda lab: lab._released(), "that is by parts"),
    (3, "interpolated", lambda lab: lab.inv_freq * lab.factor, "speed the pairs up"),
    (3, "ntk_base", lambda lab: lab.base * lab.factor, r"\(D - 2\)/D"),
    (3, "by_parts", ramp(lambda r, _: 1 - np.clip((r - 1) / 31, 0, 1)), "ramp is reversed"),
    (3, "by_parts", ramp(lambda _, r: np.clip((r - 1) / 31, 0, 1)), "radians for turns"),
    (3, "by_parts", ramp(lambda r, _: 1.0 * (r >= 1)), "leave the ramp out"),
    (3, "mine", lambda lab: lab.inv_freq, "still meet new angles"),
    (3, "mine", lambda lab: lab.inv_freq / lab.factor, "the step to the next token"),
    (
        *(3, "mine", published),
        "that is by parts",
    ),
    (4, "move", lambda lab: lambda k, d: rotate_complex(k, -d, lab.base), "direction reversed"),
    (
        *(4, "move", lambda lab: lambda k, d: rotate_complex(k, d, lab.base, interleaved=True)),
        "your pairs are interleaved, the cache's are half-split",
    ),
    (4, "move", lambda lab: bank(lab, np.array(lab._turn.inv_freq) * (1 + 1e-7)), "not for 3000: .*"
     " float64"),
    (
        *(4, "move", lambda lab: lambda k, d: rotate_complex(k, d, lab.base).astype(np.float16)),
        "in float16",
    ),
    (
        *(4, "move", lambda lab: lambda k, d: lab._turn(k, np.arange(len(k)))),
        "^you move by the row, not by delta$",
    ),
    (4, "move", lambda lab: lambda k, d: lab._turn(k, d + 1), r"^each key is moved by delta \+ 1,"),
    (4, "move", lambda lab: lambda k, d: lab._turn(k, d - 1), "^each key is moved by delta - 1,"),
    (4, "drop", drop(lambda old, new, start, stop: new), "the cache was rotated twice"),
    (4, "drop", drop(lambda old, new, start, stop: 0 * new), "the keys have not moved"),
    (4, "drop", drop(lambda old, new, start, stop: old - new), "direction reversed"),
    (
        *(4, "drop", drop(lambda old, new, start, stop: 0 * new + start - stop)),
        "moved the keys before the gap",
    ),
    (4, "drop", drop(lambda old, new, start, stop: np.where(old < start, 0, -start)), "by start;"),
    (
        *(4, "drop", drop(lambda old, new, a, b: np.where(old < a, 0, a - b + 1))),
        "^one too few",
    ),
    (
        *(4, "drop", drop(lambda old, new, start, stop: np.where(old == stop, 0, new - old))),
        "^not where they should stand: 1 of 13 keys; .* slot 4, stands at 11 instead of 4$",
    ),
    (4, "drop", others_dropped, "is it the key of this slot"),
    (4, "drop", lambda lab: lambda k, m, start, stop: (k[:14], m[:14]), "one key too many stays"),
    (
        *(4, "accident", lambda lab: next(a for a in ACCIDENTS if a != lab._accident)),
        "^if it was '[a-z ]+', the key in slot",
    ),
    (4, "mended", lambda lab: lab._mended.astype(np.float16), "in float16"),
    (4, "mended", lambda lab: lab._mended[::-1], "is it the key of this slot"),
    (4, "mended", lambda lab: rotate_complex(lab._mended, lab.positions * 0 + 500, lab.base),
     "by any whole number of positions from -200 to 200: is it the right base"),
    (4, "mended", some_turned_back, "^not where they should stand: 4 of .*, stands at 0 instead"),
    (4, "next_position", lambda lab: lambda m, pad: np.full(len(m), 8), "counts slots"),
    (4, "next_position", lambda lab: lambda m, pad: (~pad).sum(1), "counts tokens"),
    (4, "next_position", lambda lab: lambda m, pad: m.max(1) + 1, "is no position"),
    (4, "next_position", lambda lab: lambda m, pad: [1, [2, 3]], "real numbers, got list"),
    (4, "drop", lambda lab: lambda *a: (1, 2), "positions should have shape"),
    (4, "drop", lambda lab: lambda *a: ([[1], [2, 3]], [0, 1]), "real numbers, got list"),
    (4, "move", lambda lab: lambda k, d: replace(lab._turn, inv_freq=tuple(
        slow(lab._turn.inv_freq, 1.001)))(k, d), "R_"),
    (
        *(4, "mended", lambda lab: rotate_complex(lab.broken, -lab.positions, lab.base)),
        "were healthy",
    ),
    (4, "mended", lambda lab: lab.broken, "nothing is mended"),
    (5, "rounded", trunc, "you cut off"),
    (5, "rounded", lambda lab: lambda x: to_bits(np.clip(x, -3e38, 3e38), lab.bits), r"e\+38;"),
    (5, "rounded", lambda lab: lambda x: np.where(abs(x) < 3e38, x, np.inf), "holds inf$"),
    (5, "rounded", lambda lab: lambda x: np.where(
        abs(x) < 3e38, x, np.inf).astype(np.float32), "ends at 3e38"),
    (5, "rounded", lambda lab: lambda x: np.full_like(x, np.nan, np.float32), "holds nan$"),
    (5, "rounded", lambda lab: lambda x: np.array([to_bits(float(one), lab.bits) for one in x]),
     r"^your function raises TypeError: .* \(called with shape \(7, 7\)\)$"),
    (5, "rounded", lambda lab: lambda x: np.ravel(to_bits(x, lab.bits)), r"shape \(7, 7\), got"),
    (5, "rounded", halves_down, r"becomes \S+; it lies half way, and should become the even neigh"),
    (5, "rounded", lambda lab: bits(lab, 1), "the leading one is among"),
    (5, "rounded", lambda lab: bits(lab, -1), "the leading one counts once"),
    (5, "rounded", lambda lab: lambda x: np.rint(x * 2**lab.bits) / 2**lab.bits, "a fixed grid"),
    (5, "last_exact", lambda lab: 2 ** (lab.bits - 1), "twice as far"),
    (5, "last_exact", lambda lab: 2**lab.bits + 1, "first that is missing"),
    (5, "crowd", lambda lab: 2 ** (int(lab.token).bit_length() - lab.bits), "even neighbour"),
    (5, "position_error", lambda lab: lab._errors(lab.bits, lab.pair)[1], "the other of the two"),
    (
        *(5, "position_error", lambda lab: 16 * lab.inv_freq[lab.pair]),
        "^twice as much .* the step is 16",
    ),
    (
        *(5, "position_error", lambda lab: np.abs(np.arange(lab.last) - to_bits(
            np.arange(lab.last), lab.bits)).max()),
        "^this is how far the position is off, not the angle$",
    ),
    (5, "frequency_error", lambda lab: 0.0, "for pair 0"),
    (5, "frequency_error", lambda lab: 2 * lab._errors(lab.bits, lab.pair)[1], "as it is$"),
    (5, "stage", table_is, "^then "),
    (6, "order", lambda lab: np.argsort(permute_qk(np.arange(lab.head_dim), 1,
                                                   inverse=not lab.was_interleaved)),
     "direction reversed"),
    (6, "row", lambda lab: lab.row % lab.head_dim, "not so: row|within its head|counted"),
    (6, "row", lambda lab: lab._row(True), "direction reversed"),
    (6, "convert", lambda lab: convert(lab, back=True), "q_proj.weight: direction reversed"),
    (6, "convert", lambda lab: convert(lab, but=("k_norm.weight",)), "k_norm.weight: not moved"),
    (6, "convert", lambda lab: convert(lab, also=("v_proj.weight",)), "values are not rotated"),
    (6, "convert", lambda lab: lambda w: convert(lab)(convert(lab)(w)), "converted twice"),
    (6, "convert", lambda lab: o_columns(lab), "^o_proj.weight: changed, .* its columns count ch"),
    (6, "convert", lambda lab: lambda w: w, ": not moved.*; and 3 more$"),
    (6, "convert", sideways, "q_proj.weight: the same numbers, but not where"),
    (6, "row", lambda lab: lab.row, "it does move"),
    (6, "alike", lambda lab: by_scores(lab, scores=without_norm), "root mean square"),
    (6, "alike", lambda lab: by_scores(lab, scores=other_groups), "signs of query heads 0 and 1"),
    (6, "convert", lambda lab: emptied, "writes into its argument"),
    (6, "convert", lambda lab: lambda w: convert(lab)(w) | {"new": 1}, "'new' is new"),
    (6, "runs", lambda lab: lab.head_dim, "number of channels"),
    (6, "alike", one_token, "with W_q and b_q doubled they stay"),
    (6, "alike", lambda lab: by_scores(lab, blind="k_norm.weight"), "let both gains count"),
    (6, "alike", lambda lab: by_scores(lab, heads=[0, -1]), "lets pass .* head 1 of q_proj"),
    (6, "alike", by_sums, "lets pass .* query heads 0 and 1, .* places$"),
    (6, "alike", only_the_first_time, "refused"),
    (6, "alike", by_own_conversion, "compare scores"),
    (6, "alike", lambda lab: lambda old, new: True, "lets pass a checkpoint in which nothing"),
    (6, "alike", lambda lab: lambda old, new: False, "a right conversion is refused"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("number", "part", "answer", "words"), SLIPS, ids=[f"{n}-{p}-{w}" for n, p, _, w in SLIPS]
)
def test_a_slip_is_named(number, part, answer, words):
    for who in READERS[:5]:
        lab = labs.begin(number, who)
        said = lab.diagnose(part, answer(lab))
        assert re.search(words, said), f"{who}: {said!r}"
        assert part not in lab.solved
        assert line_of(lab) not in said


def test_every_lab_names_at_least_four_slips():
    assert all(sum(n == number for n, *_ in SLIPS) >= 4 for number in labs.LABS)


def test_the_published_bug_of_halves_is_named():
    """In heads of the layout that it takes for halves."""
    found = [labs.begin(1, who) for who in READERS]
    split = [lab for lab in found if not lab.interleaved]
    assert split
    for lab in split:
        assert "cosines made for adjacent pairs" in lab.diagnose("rotate", repeated(lab))


# ---- right answers, and hands that slip ----------------------------------------------------------


def to_digits(x, digits):
    rounded = [float(f"{one:.{digits - 1}e}") for one in np.ravel(x)]
    return np.reshape(rounded, np.shape(x))


def test_an_answer_of_the_digits_that_are_asked_for_is_right_for_two_hundred_readers():
    for who in NAMES:
        one, two, five = (labs.begin(number, who) for number in (1, 2, 5))
        assert one.diagnose("slowest", to_digits(2 * np.pi / one._turn.inv_freq[-1], 4)) == ""
        assert two.diagnose("inv_freq", to_digits(two._turn.inv_freq, 4)) == ""
        assert two.diagnose("first", two._turn.first + 2e-9) == ""
        lab = labs.begin(3, who)
        assert lab.diagnose("ntk_base", to_digits(ntk_base(lab), 4)) == ""
        for which, part in enumerate(("position_error", "frequency_error")):
            true = five._errors(five.bits, five.pair)[which]
            assert five.diagnose(part, to_digits(true, 3)) == ""
            assert five.diagnose(part, to_digits(1.02 * true, 3))
            assert "the other of the two" in five.diagnose(
                part, five._errors(five.bits, five.pair)[1 - which]
            )
            said = five.diagnose(part, five._errors(8, five.pair)[which])
            halved_or_doubled = not which and five.bits in (7, 9)
            assert re.search("half of|twice as" if halved_or_doubled else "bfloat16", said)


def ntk_base(lab):
    return lab.base * lab.factor ** (lab.head_dim / (lab.head_dim - 2))


def test_what_is_told_of_a_stranger_names_its_own_width_and_positions():
    """Where half of the head turns, an exponent of i/w is one of 2i/D."""
    half = 0
    for who in NAMES:
        lab = labs.begin(2, who)
        base = lab._turn.inv_freq[-1] ** -(1 / exponents(lab)[-1])
        wide = base ** -(np.arange(0, lab._turn.width, 2) / lab.head_dim)
        assert "divides by the whole head" in lab.diagnose("twin", bank(lab, wide))
        said = lab.diagnose("twin", bank(lab, base ** -(exponents(lab) / 2)))
        if 2 * lab._turn.width == lab.head_dim:
            half += 1
            assert "divides by the whole head" in said
        else:
            assert "your exponent is i/w, it should be 2i/w, w the channels that turn" in said
        if lab._turn.first:
            said = lab.diagnose("twin", replace(lab._turn, first=-lab._turn.first))
            assert said.startswith(f"positions start at {-lab._turn.first} in yours")
    assert half


def test_by_parts_of_the_labs_own_length_is_not_right_and_numbers_are_told_apart():
    for who in NAMES:
        lab = labs.begin(3, who)
        own = lab.length
        said = lab.diagnose("by_parts", lambda inv, _, s, lab=lab, L=own: lab._blend(inv, L, s))
        assert "use the arguments, not lab" in said
        said = lab.diagnose("by_parts", lambda inv, L, s, lab=lab: lab._blend(inv, L - 1, s))
        mine, true = re.search(r"leaves it (\S+) of its speed, it should be (\S+)", said).groups()
        assert mine != true
        step = np.where(lab._turns < 1, 1 / lab.factor, 1) * lab.inv_freq
        assert lab.diagnose("mine", step.astype(np.float32)) == ""
        if said := lab.diagnose("mine", step * (1 + 2e-6)):
            pair = re.search(r"made (\S+) turns in training, and makes (\S+) in the", said).groups()
            assert pair[0] != pair[1]


def test_a_number_that_is_told_to_be_wrong_is_told_apart_from_the_right_one():
    """What a step or a length is, and what it should be, never look alike."""
    close = 0
    for who in (*NAMES, "kid 366"):
        lab = labs.begin(3, who)
        keep = np.where(lab._turns < 1, 1 / lab.factor, 1) * lab.inv_freq
        for slower in np.linspace(0.88, 0.91, 61):
            if not (said := lab.diagnose("mine", slower * keep)):
                break
            left, wanted = re.search(
                r"has (\S+)% of its size, and should keep (\S+)%:", said
            ).groups()
            assert (float(left) < 90, wanted) == (True, "90")
            close += float(left) > 89.5
        lab = labs.begin(1, who)
        said = lab.diagnose("rotate", lambda x, m, lab=lab: (1 + 3e-5) * lab._turn(x, m + 0.5))
        by, wanted = re.search(
            r"multiplied by (\S+) at position \d+, and .* by (\S+)$", said
        ).groups()
        assert (by, wanted) == ("1.00003", "1")
    assert close


def test_a_pair_that_missed_a_turn_by_little_is_not_said_to_have_made_one():
    short = 0
    for who in (*NAMES, "w450"):
        lab = labs.begin(3, who)
        fresh = np.flatnonzero(lab._turns < 1).tolist()
        told = re.search(r"it made (\S+) turns", lab.diagnose("fresh", fresh[1:]) or "")
        if told:
            assert float(told[1]) < 1
            short += float(told[1]) > 0.99
    assert short


def test_a_channel_that_a_stranger_does_not_have_is_said_not_to_be_there():
    told = [labs.begin(2, who) for who in NAMES]
    said = [
        lab.diagnose("pairs", [(a, a + lab._turn.head_dim // 2) for a, _ in lab._turn.pairs()])
        for lab in told if lab._turn.at_end and lab._turn.width < lab._turn.head_dim
    ]  # fmt: skip
    assert any("there is no channel" in one for one in said)
    assert not any("comes back as it was" in one for one in said if "there is no" in one)


def test_gains_that_are_left_out_of_a_checkpoint_have_to_move():
    lab = labs.begin(6, "y0")

    def left(old):
        return {name: rows for name, rows in old.items() if name != "q_norm.weight"}

    assert "it has to move" in lab.diagnose("convert", left)


def test_keys_that_were_mended_the_wrong_way_are_said_to_stand_where_they_stand():
    """One accident taken for another; rotated twice taken for the other way, as far as 4 m."""
    ways = {
        "rotated twice": lambda m, c: -m,
        "offset lost": lambda m, c: c + 0 * m,
        "rotated the other way": lambda m, c: 2 * m,
        "never rotated": lambda m, c: m,
    }
    farthest = 0
    for who in (*NAMES[:60], "kid 259"):
        lab = labs.begin(4, who)
        m, c = lab.positions, lab.before
        for name, way in ways.items():
            now = np.where(m < c, m, ACCIDENTS[lab._accident](m, c) + way(m, c))
            said = lab.diagnose("mended", lab._turn(lab._mended, now - m))
            if name == lab._accident:
                assert said == ""
                continue
            assert re.search(rf"in slot {m[-1]}, stands at {now[-1]} instead of {m[-1]}$", said)
            farthest = max(farthest, now[-1])
    assert farthest > 120


def test_the_words_in_italics_are_those_that_the_check_takes():
    cells = json.loads(NOTEBOOKS[4].read_text("utf8"))["cells"]
    (text,) = (said for cell in cells if "in italics here" in (said := "".join(cell["source"])))
    assert re.findall(r"\*([^*]+)\*", text) == list(ACCIDENTS)


def test_the_crowd_has_halves_on_both_sides_alike(node):
    """No token is drawn so near to a power of two that the gap is another on one side."""
    crowds = set()
    for who in (*NAMES, *(f"pupil {i}" for i in range(300))):
        lab = labs.begin(5, who)
        count = np.arange(4 * lab.token)
        same = np.flatnonzero(to_bits(count, lab.bits) == to_bits(lab.token, lab.bits))
        assert same[0] + same[-1] == 2 * to_bits(lab.token, lab.bits)
        crowds.add(len(same))
        assert "one crowd is larger and the next smaller" in lab.diagnose("crowd", 16)
    assert crowds == {15, 17}
    for who in ("pupil 68", "pupil 280"):
        assert node.call("page_lab.js", "format", who)["token"] == labs.begin(5, who).token


def test_a_tensor_that_is_no_array_yet_gets_a_sentence():
    said = labs.begin(1, "Ada").diagnose("inv_freq", torch.ones(4, requires_grad=True))
    assert said.startswith("inv_freq cannot be read as an array: Can't call numpy() on Tensor")


def test_float32_does_not_reach_the_far_position_of_any_of_two_hundred_readers():
    for who in NAMES:
        lab = labs.begin(1, who)

        def rotate(x, m, lab=lab):
            angle = m.astype(np.float32)[:, None] * np.float32(lab._turn.inv_freq)
            return rotate_pairs(lab, x.astype(np.float32), angle)

        assert lab.diagnose("rotate", lab._turn) == ""
        assert "all of it in float64" in lab.diagnose("rotate", rotate)


def test_what_is_new_does_not_hang_on_the_last_position_for_two_hundred_readers():
    for who in NAMES:
        lab = labs.begin(3, who)
        turns = (lab.length - 1) * lab.inv_freq / (2 * np.pi)
        assert lab.diagnose("fresh", np.flatnonzero(turns < 1)) == ""
        assert lab.diagnose("mine", np.where(turns < 1, 1 / lab.factor, 1) * lab.inv_freq) == ""


def test_wrong_choices_and_rows_fail_for_two_hundred_readers():
    for who in NAMES:
        six, five = labs.begin(6, who), labs.begin(5, who)
        assert "one long head" in six.diagnose("row", six._row(False, 1))
        assert "it does move" in six.diagnose("row", six.row)
        assert "o_proj.weight: changed" in six.diagnose("convert", o_columns(six))
        wrong = [s for s in ("positions", "inverse frequencies", "product", "table")
                 if five.diagnose("stage", s).startswith("then ")]  # fmt: skip
        assert len(wrong) == 3


def test_what_speaks_against_a_product_is_an_angle_that_was_not_wrapped():
    for who in NAMES:
        lab = labs.begin(5, who)
        said = lab.diagnose("stage", "product")
        if found := re.search(r"pair (\d+) at position (\d+) is (\S+),", said):
            pair, place = map(int, found.groups()[:2])
            assert place * lab.inv_freq[pair] < 1
            assert abs(float(found[3]) / (place * lab.inv_freq[pair]) - 1) < 2.0**-lab.bits
        else:
            assert lab._stage in ("product", "table")


def test_a_test_of_scores_and_a_list_of_two_are_right():
    for who in READERS:
        lab = labs.begin(6, who)
        assert lab.diagnose("alike", by_scores(lab)) == ""
        assert lab.diagnose("alike", by_scores(lab, tolerance=1e-3)) == ""
        lab = labs.begin(4, who)
        right = drop(lambda old, new, start, stop: new - old)(lab)
        assert lab.diagnose("drop", lambda *a, right=right: list(right(*a))) == ""


@each_lab
def test_what_a_reader_writes_over_changes_no_check(number, tmp_path):
    """Neither the lab's arrays, which are not for writing, nor any other thing of it."""
    space = solved(number, "Ada", tmp_path)
    lab, right = space["lab"], labs.begin(number, "Ada")
    for value in list(vars(lab).values()):
        for one in value.values() if isinstance(value, dict) else (value,):
            if isinstance(one, np.ndarray):
                with pytest.raises(ValueError, match="read-only"):
                    one += 1
    assert [lab.diagnose(part, space[part]) for part in lab.parts] == [""] * len(lab.parts)
    answers = {part: space[part] for part in lab.parts if not callable(space[part])}
    for name in vars(lab):
        if name not in ("who", "solved"):
            setattr(lab, name, None)
    assert {lab.diagnose(part, answer) for part, answer in answers.items()} == {""}
    assert right.seed == labs.begin(number, lab.who).seed


def test_a_name_is_one_however_its_letters_are_composed(node):
    whole, parts = (unicodedata.normalize(form, "Jörg Müller") for form in ("NFC", "NFD"))
    assert whole != parts
    assert labs.begin(2, whole).seed == labs.begin(2, parts).seed
    assert verify(unicodedata.normalize("NFD", line_of(labs.begin(2, whole))))[0]
    assert node.call("page_lab.js", "stranger", whole) == node.call(
        "page_lab.js", "stranger", parts
    )


# ---- the certificate and the number --------------------------------------------------------------


def test_a_reader_is_one_whatever_the_case_and_the_spaces():
    seeds = {labs.begin(2, who).seed for who in ("Ada Lovelace", " ada  LOVELACE ", "ADA lovelace")}
    assert len(seeds) == 1
    assert labs.begin(2, 4711).seed == labs.begin(2, "4711").seed
    assert labs.begin(2, "Ada").seed != labs.begin(3, "Ada").seed


def test_the_numbers_are_those_of_the_published_algorithms():
    """FNV-1a of its authors' test vectors; mulberry32 as its author's JavaScript computes it."""
    assert [seed_of(text) for text in ("", "a", "foobar")] == [0x811C9DC5, 0xE40C292C, 0xBF9CF968]
    script = """
      let a = 12345; const out = [];
      for (let i = 0; i < 6; i++) {
        let t = a += 0x6D2B79F5;
        t = Math.imul(t ^ t >>> 15, t | 1);
        t ^= t + Math.imul(t ^ t >>> 7, t | 61);
        out.push(Math.floor(((t ^ t >>> 14) >>> 0) / 4294967296 * 1000));
      }
      console.log(JSON.stringify(out));
    """
    wanted = json.loads(subprocess.run([PROGRAM, "-e", script], stdout=-1, check=True).stdout)
    draw = Draw(12345)
    assert [draw.below(1000) for _ in wanted] == wanted


@each_lab
def test_a_changed_certificate_is_refused(number):
    line = line_of(labs.begin(number, "Ada Lovelace"))
    assert verify(line) == (True, f"lab {number}, Ada Lovelace: solved")
    assert not verify(line.replace("Ada", "Eva"))[0]
    assert not verify(line.replace(f"lab {number}", f"lab {number % 6 + 1}"))[0]
    assert not verify(line[:-1] + ("0" if line[-1] != "0" else "1"))[0]
    assert verify("lab 1, done") == (False, "not a certificate: lab 1, done")


def test_a_teacher_verifies_with_one_command():
    lines = [line_of(labs.begin(2, who)) for who in READERS]
    command = [sys.executable, "-m", "ropebook.labs"]
    done = subprocess.run([*command, *lines], cwd=ROOT, stdout=-1, text=True)
    assert done.returncode == 0
    assert done.stdout.splitlines() == [f"lab 2, {who}: solved" for who in READERS]
    spoilt = "\n".join([*lines, lines[0].replace("Ada", "Eva")])
    done = subprocess.run(command, cwd=ROOT, input=spoilt, stdout=-1, text=True)
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "lab 2, Eva Lovelace: not this reader's number"


def test_the_certificate_on_the_page_of_the_labs_is_one():
    lines = re.findall(
        r"RoPE lab .*? · [0-9A-F]{8}\b", (ROOT / "book" / "labs.md").read_text("utf8")
    )
    assert [verify(line) for line in lines] == [(True, "lab 2, Ada Lovelace: solved")] * 2


def test_there_is_no_certificate_before_the_last_part_nor_for_nobody(tmp_path, capsys):
    space = solved(3, "your name", tmp_path)
    lab = labs.begin(3, "your name")
    lab.certificate()
    assert capsys.readouterr().out.startswith("no certificate yet: 5 of 5 parts to go: fresh, ")
    lab.check(**{part: space[part] for part in lab.parts})
    lab.check(mine=lab.inv_freq, fresh=None)
    capsys.readouterr()
    lab.certificate()
    assert capsys.readouterr().out == "no certificate yet: 2 of 5 parts to go: fresh, mine\n"
    lab.check(mine=space["mine"], fresh=space["fresh"])
    capsys.readouterr()
    lab.certificate()
    assert "write your own name into labs.begin" in capsys.readouterr().out


# ---- what a wrong kind of answer is told ---------------------------------------------------------


@each_lab
@pytest.mark.parametrize(
    "answer", ["x", [1, 2], {}, object(), -5, 1e9, np.eye(3), lambda: 1, [[1], [2, 3]], 10**400]
)
def test_any_answer_gets_a_sentence(number, answer):
    lab = labs.begin(number, "Ada")
    for part in lab.parts:
        words = lab.diagnose(part, answer)
        assert words, part
        assert "Traceback" not in words
    for part in lab.parts:
        assert lab.diagnose(part, None) == OPEN


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="number must be one of the labs 1 to 6, got 7"):
        labs.begin(7, "Ada")
    with pytest.raises(ValueError, match="who must be your name or your number, got ' '"):
        labs.begin(1, " ")
    with pytest.raises(TypeError, match="who must be your name or your number, got None"):
        labs.begin(1, None)
    with pytest.raises(ValueError, match="part must be one of inv_freq, slowest"):
        labs.begin(1, "Ada").check(turn=3)
    with pytest.raises(ValueError, match="answers must name a part: inv_freq"):
        labs.begin(1, "Ada").check()
    with pytest.raises(ValueError, match=r"x must have shape \(T, 24\) and positions"):
        next(lab for i in range(9) if (lab := labs.begin(2, i)).head_dim == 24).stranger(
            np.ones(24), np.arange(1)
        )


# ---- the two labs in the page --------------------------------------------------------------------


@pytest.fixture(scope="module")
def node():
    process = Node()
    yield process
    process.close()


def test_the_page_draws_the_variants_of_the_notebooks(node):
    for who in (*READERS, " ada  LOVELACE ", "İpek ß", "a · b"):
        one, lab = node.call("page_lab.js", "stranger", who), labs.begin(2, who)
        turn = lab._turn
        found = [one[k] for k in ("seed", "headDim", "width", "direction", "first", "factor")]
        assert found == [
            *(lab.seed, lab.head_dim, turn.width, turn.direction, turn.first, turn.factor)
        ]
        for channel, place in ((0, 0), (lab.head_dim - 1, 3), (one["asked"], 1), (7, 41)):
            x = np.eye(lab.head_dim)[[channel]]
            said = node.call("page_lab.js", "answerOf", one, channel, place)
            np.testing.assert_allclose(said, lab.stranger(x, np.array([place]))[0], atol=1e-12)
        one, lab = node.call("page_lab.js", "format", who), labs.begin(5, who)
        found = [one[name] for name in ("seed", "bits", "token", "last", "pair")]
        assert found == [lab.seed, lab.bits, lab.token, lab.last, lab.pair]
        assert lab.diagnose("crowd", one["crowd"]) == ""
        assert lab.diagnose("position_error", one["worst"] * one["theta"]) == ""


def test_the_page_rounds_as_the_notebook_does(node):
    x = [0, -5.5, 129, 130.5, 3.0, 2**20 - 1, 1e-7, 6.5, 7.5]
    found = [node.call("page_lab.js", "toBits", value, 7) for value in x]
    assert found == to_bits(x, 7).tolist()


PAGE_SLIPS = {
    2: lambda one: {
        "partner": (one["asked"], "no pair by itself"),
        "layout": (("half-split", "interleaved")[not one["interleaved"]], "the stranger's are"),
        "width": (one["headDim"], "come back as they were"),
        "direction": (("counter-clockwise", "clockwise")[one["direction"] > 0], "reversed"),
        "first": (one["first"] + 1, "how many steps"),
    },
    5: lambda one: {
        "last": (2 ** (one["bits"] + 1), "half as far"),
        "crowd": (one["gap"], "the even neighbour"),
        "error": (one["worst"], "not the angle"),
    },
}
PAGE_ANSWERS = {
    2: lambda one: {
        "partner": partner_of(one),
        "layout": ("half-split", "interleaved")[one["interleaved"]],
        "width": one["width"],
        "direction": ("clockwise", "counter-clockwise")[one["direction"] > 0],
        "first": one["first"],
    },
    5: lambda one: {
        "last": 2 ** one["bits"],
        "crowd": one["crowd"],
        "error": one["worst"] * one["theta"],
    },
}


def partner_of(one):
    place = one["asked"] - one["start"]
    half = one["width"] // 2
    return one["start"] + (place ^ 1 if one["interleaved"] else (place + half) % one["width"])


@pytest.mark.parametrize("number", PAGE_SLIPS)
def test_answers_in_the_page_are_told_what_is_wrong(node, number):
    for who in READERS:
        one = node.call("page_lab.js", {2: "stranger", 5: "format"}[number], who)
        slips, right = PAGE_SLIPS[number](one), PAGE_ANSWERS[number](one)
        assert slips.keys() == right.keys()
        for part, (answer, words) in slips.items():
            state, said = node.call("page_lab.js", "asked", number, one, part, str(answer))
            assert state == "wrong"
            assert re.search(words, said), (who, part, said)
            said = node.call("page_lab.js", "asked", number, one, part, str(right[part]))
            assert said == ["right", "**Right.**"], (who, part)
            assert node.call("page_lab.js", "asked", number, one, part, "")[0] == "missing"
        line = node.call("page_lab.js", "certificate", number, who, one["seed"])
        assert verify(line) == (True, f"lab {number} in the page, {who}: solved")
        assert not verify(line.replace(" in the page", ""))[0]


def test_numbers_in_the_page_are_told_what_they_are(node):
    starts = set()
    for who in READERS:
        one = node.call("page_lab.js", "stranger", who)
        last = one["start"] + one["width"] - 1
        said = node.call("page_lab.js", "asked", 2, one, "width", str(last))[1]
        assert ("counted from 0" if one["start"] == 0 else "do not begin at 0") in said
        starts.add(one["start"] == 0)
        one = node.call("page_lab.js", "format", who)
        said = node.call("page_lab.js", "asked", 5, one, "error", str(16 * one["theta"]))[1]
        assert f"Twice as much: below {one['last']:,} the step is 16" in said
    assert len(starts) == 2


# ---- pytest --lab --------------------------------------------------------------------------------


def ask(*arguments):
    """Run pytest on files of students, from a folder that knows nothing of this project."""
    command = [sys.executable, "-m", "pytest", "-p", "ropebook.pytest_labs", "-q", "--no-header"]
    return subprocess.run(
        [*command, "-p", "no:cacheprovider", *map(str, arguments)],
        cwd=folder if (folder := Path(arguments[-1]).parent).is_absolute() else None,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )


def test_a_class_is_checked_with_one_command(tmp_path):
    handed_in = tmp_path / "class"
    handed_in.mkdir()
    right = (SOLUTIONS / "lab_4.py").read_text("utf8")
    adas = right.replace("a teacher", "Ada").splitlines(keepends=True)
    cells = [("code", "%matplotlib inline\n1 / 0"), ("markdown", "my answer"), ("code", adas)]
    notebook = {"cells": [{"cell_type": kind, "source": source} for kind, source in cells]}
    (handed_in / "ada.ipynb").write_text(json.dumps(notebook))
    (handed_in / "bob.py").write_text(
        right.replace("a teacher", "Bob").replace("(keys, delta,", "(keys, -delta,")
    )
    (handed_in / "eva.py").write_text("from ropebook import labs\nlab = labs.begin(1, 'Eva')\n")
    done = ask("--lab", 4, handed_in)
    assert done.returncode == 1
    assert "ada.ipynb" not in done.stdout.partition("short test summary")[2]
    assert re.search(r"^_+ bob\.py: move _+\nBob: move: direction reversed", done.stdout, re.M)
    assert "labs.begin(4, name) was not reached outside of functions" in done.stdout
    assert "Traceback" not in done.stdout
    assert ask("--lab", 4, handed_in / "ada.ipynb").returncode == 0
    assert (
        ask("--lab", 9, handed_in / "ada.ipynb").stderr == "ERROR: --lab must be 1 to 6, got 9\n\n"
    )
    assert "--lab needs the files or folders" in ask("--lab=4").stderr


def right_for(who):
    return (SOLUTIONS / "lab_4.py").read_text("utf8").replace("a teacher", who)


def failures(done):
    """Return what pytest says of each part, without the summary."""
    return done.stdout.partition("short test summary")[0]


def test_files_of_one_name_and_of_two_readers_are_told(tmp_path):
    for name in ("ada", "copy"):
        (tmp_path / f"{name}.py").write_text(right_for("Ada"), "utf8")
    (tmp_path / "two.py").write_text(right_for("Bob") + "\nother = labs.begin(4, 'Eva')\n", "utf8")
    (tmp_path / "jörg.py").write_text(right_for("Jörg Müller"), "utf8")
    said = failures(done := ask("--lab", 4, tmp_path))
    for other in ("ada", "copy"):
        assert len(re.findall(rf"right, but another file has this name: \S*{other}\.py", said)) == 5
    assert said.count("more than one reader in this file: Bob, Eva") == 5
    assert "15 failed, 5 passed" in done.stdout


def test_files_beside_those_that_are_named_are_not_run(tmp_path):
    for name in ("ada.py", "a class/ada.py", "another class/ada.py", "script.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(right_for("Ada"), "utf8")
    (tmp_path / "script.py").write_text("open('was_run', 'w')")
    done = ask("--lab", 4, tmp_path / "another class", tmp_path / "ada.py")
    assert "10 failed" in done.stdout
    assert "a class/ada.py" not in done.stdout.replace("another class/ada.py", "")
    assert not list(tmp_path.rglob("was_run"))


def test_no_file_changes_the_checks_of_the_next(tmp_path):
    (tmp_path / "a.py").write_text(
        "import ropebook.labs.lab as it\nit.Lab.diagnose = lambda *a: ''\n" + right_for("Ada"),
        "utf8",
    )
    (tmp_path / "b.py").write_text(
        "from ropebook import labs\nlab = labs.begin(4, 'Bob')\n", "utf8"
    )
    said = failures(ask("--lab", 4, tmp_path))
    assert said.count(f": {OPEN}") == 5


def test_pytest_itself_runs_nothing_that_was_handed_in(tmp_path):
    cheat = """
import pytest
import ropebook.pytest_labs
ropebook.pytest_labs.LabFile.words = lambda self, part: ""
open(__file__ + ".was_run", "w")
"""
    for name in ("conftest.py", "eve/conftest.py", "eve/__init__.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(cheat)
    head = "from ropebook import labs\nlab = labs.begin(4, 'Eva')\n"
    (tmp_path / "eve" / "eve.py").write_text(head)
    for asked in (tmp_path, tmp_path / "eve", tmp_path / "eve" / "eve.py"):
        done = ask("--lab", 4, asked)
        assert failures(done).count(f": {OPEN}") == 5
        assert "passed" not in done.stdout


def test_broken_empty_and_endless_files_are_told_in_words(tmp_path):
    head = "from ropebook import labs\nlab = labs.begin(4, 'Eva')\n"
    (tmp_path / "broken.ipynb").write_text('{"cells": [')
    (tmp_path / "empty.ipynb").write_text("")
    (tmp_path / "empty.py").write_text("")
    (tmp_path / "latin.py").write_bytes(right_for("Jörg").encode("latin1"))
    (tmp_path / "leaves.py").write_text(right_for("Kim") + "\nraise SystemExit\n")
    (tmp_path / "gone.py").write_text(head + "import os\ndef move(k, d): os._exit(3)\n")
    done = ask("--lab", 4, tmp_path)
    said = failures(done)
    assert said.count("the file is no notebook: it cannot be read as one") == 10
    assert said.count("labs.begin(4, name) was not reached outside of functions") == 20
    assert "codec can't decode" in said
    assert "Eva: move: ended its process (code 3)" in said
    assert "Eva: mended: not asked, because move ended its process" in said
    assert "5 passed" in done.stdout
    assert "Traceback" not in said
    assert "pytest_labs.py" not in said
    (tmp_path / "endless.py").write_text(head + "while True: pass\n")
    said = failures(ask("--lab", 4, "--lab-limit", 2, tmp_path / "endless.py"))
    assert said.count("the file did not end in 2 seconds") == 5


def test_a_check_that_fails_leaves_the_other_parts_asked(tmp_path):
    text = right_for("Ada") + "\nclass It:\n    def __array__(self, *a, **k): raise KeyError('x')\n"
    text += "mended = It()\nlab.check(move=move)\n"
    (tmp_path / "ada.py").write_text(text.replace("lab.certificate()", ""), "utf8")
    done = ask("--lab", 4, tmp_path)
    assert "Ada: mended: the check fails with KeyError: 'x'" in failures(done)
    assert "1 failed, 4 passed" in done.stdout


def test_what_was_checked_is_asked_and_commands_of_ipython_are_passed_over(tmp_path):
    cells = [
        "%matplotlib inline\n" + right_for("Ada"),
        "!pip list\nlab.check(accident=accident, mended=mended)\nlab.drop?",
        "for accident in range(3):\n    mended = None",
        "rest = (7\n    % 4)\nassert rest == 3",
        "%%time\nrest = len('ab')  # is it two?\nassert rest == 2  # really??\nlen?\n?len\nlen??",
    ]
    notebook = {"cells": [{"cell_type": "code", "source": source} for source in cells]}
    path = tmp_path / "ada.ipynb"
    path.write_text(json.dumps(notebook), "utf8")
    space, error = run_file(path)
    assert (space["rest"], error) == (2, "")
    assert ask("--lab", 4, path).returncode == 0


@each_lab
def test_an_unsolved_notebook_runs_and_fails_as_it_should(number):
    space, error = run_file(NOTEBOOKS[number])
    assert error == ""
    lab = space["lab"]
    assert type(lab) is labs.LABS[number]
    assert lab.solved == set()
    assert {lab.diagnose(part, space[part]) for part in lab.parts} == {OPEN}
    done = ask("--lab", number, NOTEBOOKS[number])
    assert done.returncode == 1
    assert f"{len(lab.parts)} failed" in done.stdout
    assert done.stdout.count(f"your name: {lab.parts[-1]}: {OPEN}") >= 1


@each_lab
def test_a_notebook_with_the_solution_in_its_cells_passes(number, tmp_path):
    """The solution goes into the stubs' places: names and order are those of the notebook."""
    notebook = json.loads(NOTEBOOKS[number].read_text("utf8"))
    text = (SOLUTIONS / f"lab_{number}.py").read_text("utf8").replace("a teacher", "Ada")
    checks = [
        cell
        for cell in notebook["cells"]
        if cell["cell_type"] == "code" and "lab.check(" in "".join(cell["source"])
    ]
    asked = re.findall(r"lab\.check\((\w+)=\1\)", "".join("".join(c["source"]) for c in checks))
    assert tuple(asked) == labs.LABS[number].parts
    notebook["cells"].append({"cell_type": "code", "source": text})
    path = tmp_path / "solved.ipynb"
    path.write_text(json.dumps(notebook), "utf8")
    assert ask("--lab", number, path).returncode == 0
