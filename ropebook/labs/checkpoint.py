"""Lab 6: convert a checkpoint."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from rope_minimal.layout import permute_qk, to_half, to_interleaved

from .lab import Draw, Lab, Slip, agree, call, name_slip, read
from .turns import LAYOUT, Turn, series

__all__ = ["ConvertACheckpoint"]

Weights = dict[str, np.ndarray]

MOVES = ("q_proj.weight", "q_proj.bias", "k_proj.weight", "k_proj.bias",
         "q_norm.weight", "k_norm.weight")  # fmt: skip
"""The tensors that count channels of queries or keys."""


class ConvertACheckpoint(Lab):
    """Lab 6: which rows move, which stay, and a test that a wrong conversion does not pass."""

    number = 6
    title = "convert a checkpoint"
    parts = ("order", "row", "convert", "runs", "alike")

    def _draw(self, draw: Draw) -> None:
        self.kv_heads = draw.one_of((2, 3))
        self.heads = 2 * self.kv_heads
        self.head_dim = draw.one_of((12, 16, 20, 24, 28))
        self.base = 100 * (1 + draw.below(50))
        self.was_interleaved = bool(draw.below(2))
        self.row = self.head_dim + draw.below((self.heads - 1) * self.head_dim)
        while self._row(False) in (self._row(True), self._row(False, 1), self.row):
            self.row = self.head_dim + draw.below((self.heads - 1) * self.head_dim)
        self.width = 20
        self.weights = self._make()

    def _make(self) -> Weights:
        """Return a layer's weights, drawn at random."""
        rows = {"q": self.heads * self.head_dim, "k": self.kv_heads * self.head_dim}
        rows["v"] = rows["k"]
        draw = self.random.standard_normal
        made: Weights = {}
        for name, count in rows.items():
            made[f"{name}_proj.weight"] = draw((count, self.width)) / np.sqrt(self.width)
            made[f"{name}_proj.bias"] = 0.5 * draw(count)
        made["o_proj.weight"] = draw((self.width, rows["q"])) / np.sqrt(rows["q"])
        made["q_norm.weight"], made["k_norm.weight"] = np.exp(0.5 * draw((2, self.head_dim)))
        return made

    def _task(self) -> list[str]:
        before, after = LAYOUT[self.was_interleaved], LAYOUT[not self.was_interleaved]
        return [
            f"`lab.weights`: a layer as a dict of arrays, by name; weights have shape (rows, "
            f"{self.width}), and $q = W_q x + b_q$",
            f"{self.heads} query heads (`lab.heads`) and {self.kv_heads} heads of keys and values "
            f"(`lab.kv_heads`), {self.head_dim} channels each (`lab.head_dim`), base {self.base} "
            "(`lab.base`)",
            "`q_norm.weight` and `k_norm.weight`: every head of q, and of k, is divided by its "
            "root mean square, without an epsilon, and multiplied by these gains before it is "
            "rotated",
            f"your row is number {self.row} of `q_proj.weight` (`lab.row`)",
            f"made for {before} pairs; it shall run in code that rotates {after} pairs "
            f"(`lab.was_interleaved` is {self.was_interleaved})",
        ]

    def _move(self, rows: np.ndarray, heads: int, back: bool = False) -> np.ndarray:
        """Move rows from the layout they were made for to the other, or back."""
        return permute_qk(rows, heads, inverse=self.was_interleaved == back)

    def _heads_of(self, name: str) -> int:
        return {"q_norm": 1, "k_norm": 1, "q_proj": self.heads}.get(name[:6], self.kv_heads)

    def _converted(self, weights: Weights) -> Weights:
        return {
            name: self._move(rows, self._heads_of(name)) if name in MOVES else rows
            for name, rows in weights.items()
        }

    def _check_order(self, answer: Any) -> None:
        channels = np.arange(self.head_dim)
        there, back = self._move(channels, 1), self._move(channels, 1, back=True)
        name_slip(
            read(answer, there.shape, "order"), there,
            [
                ("direction reversed: this leads from "
                 f"{LAYOUT[not self.was_interleaved]} to {LAYOUT[self.was_interleaved]}", back),
                ("nothing has moved", channels),
                ("you count from 1: the first channel is 0", there + 1),
                ("the second member of each pair comes first",
                 self._move(channels.reshape(-1, 2)[:, ::-1].ravel(), 1) if self.was_interleaved
                 else np.roll(channels, len(channels) // 2).reshape(2, -1).T.ravel()),
                ("the order is reversed", there[::-1]),
            ],
            "not so: which two channels were a pair, and where do the two have to stand?",
        )  # fmt: skip

    def _row(self, back: bool, heads: int | None = None) -> int:
        """Return where the reader's row goes to; with ``back``, where on the way back."""
        rows = np.arange(self.heads * self.head_dim)
        return int(np.argmax(self._move(rows, heads or self.heads, back) == self.row))

    def _check_row(self, answer: Any) -> None:
        true, D = self._row(False), self.head_dim
        name_slip(
            read(answer, (), "row"), true,
            [
                ("it does move: at what place in its head does it stand?", self.row),
                ("direction reversed: this is the row that comes to stand there", self._row(True)),
                ("counted within its head: the heads before it have rows, too", true % D),
                ("counted from 1: the first row is 0", true + 1),
                ("all rows in one long head: the order is within each head", self._row(False, 1)),
            ],
            f"not so: row {self.row} is channel {self.row % D} of head {self.row // D}", tol=1e-12,
        )  # fmt: skip

    def _check_convert(self, answer: Any) -> None:
        old = self._make()
        new = call(answer, old)
        if not isinstance(new, Mapping):
            raise Slip(f"convert should return a dict of arrays, got {type(new).__name__}")
        if lost := [name for name in old if name not in new]:
            what = "it has to move" if lost[0] in MOVES else "what stays belongs to it as well"
            raise Slip(f"{lost[0]} is missing: a checkpoint keeps its names, and {what}")
        if more := [name for name in new if name not in old]:
            raise Slip(f"{more[0]!r} is new: a conversion keeps the names")
        told = [words for name in old if (words := self._wrong(name, old[name], new[name]))]
        if told:
            raise Slip("; ".join(told[:3]) + f"; and {len(told) - 3} more" * (len(told) > 3))

    def _wrong(self, name: str, old: np.ndarray, given: Any) -> str:
        """Return what is wrong with one tensor, "" where it is right."""
        new, heads = read(given, old.shape, name), self._heads_of(name)
        if agree(new, self._move(old, heads) if name in MOVES else old):
            return ""
        if name not in MOVES:
            whose = "its columns count channels of values, which" if name[0] == "o" else "values"
            return f"{name}: changed, and has to stay: {whose} are not rotated"
        slips: list[tuple[str, Callable[[], np.ndarray]]] = [
            ("not moved: its rows count channels of q or k, too", lambda: old),
            ("direction reversed", lambda: self._move(old, heads, back=True)),
            ("permuted as one long head: the order is within a head", lambda: self._move(old, 1)),
            (f"cut into {self.heads} heads, it has {heads}", lambda: self._move(old, self.heads)),
            (f"cut into {self.kv_heads} heads, it has {heads}",
             lambda: self._move(old, self.kv_heads)),
            ("converted twice", lambda: self._move(self._move(old, heads), heads)),
        ]  # fmt: skip
        if old.ndim == 2:
            slips.append(("its columns have moved, not its rows: the channels of q and k are rows",
                          lambda: self._columns(old)))  # fmt: skip
        for words, make in slips:
            try:
                if agree(new, make()):
                    return f"{name}: {words}"
            except ValueError:
                continue
        if not agree(np.sort(new, axis=None), np.sort(old, axis=None)):
            return f"{name}: other numbers than before; a conversion moves rows and changes none"
        return f"{name}: the same numbers, but not where this layout wants them"

    def _columns(self, old: np.ndarray) -> np.ndarray:
        move = to_half if self.was_interleaved else to_interleaved
        return move(old)

    def _check_runs(self, answer: Any) -> None:
        def until_back(inverse: bool, count: int) -> int:
            first = now = np.arange(count)
            for runs in range(1, 1000):
                now = permute_qk(now, 1, inverse=inverse)
                if np.array_equal(now, first):
                    return runs
            return 0

        D, wide = self.head_dim, self.heads * self.head_dim
        true = until_back(False, D)
        slips = [
            ("two runs are back only where a run undoes itself; follow one channel", 2),
            ("that is one run short: count until all stand where they stood", true - 1),
            ("that is one run more than needed", true + 1),
            ("this is the number of channels", D), ("this is the number of pairs", D // 2),
            ("this holds for all rows as one long head", until_back(False, wide)),
        ]  # fmt: skip
        name_slip(
            read(answer, (), "runs"), true, slips, "not so: follow channel 1 through the runs"
        )

    # ---- the reader's own test ------------------------------------------------------------------

    def _scores(self, weights: Weights, x: np.ndarray, interleaved: bool) -> np.ndarray:
        """Return the scores of tokens of shape (T, width), by head: (heads, T, T)."""
        turn = Turn(*(self.head_dim,) * 2, series(self.head_dim, self.base), interleaved)
        turned = {}
        for name, heads in (("q", self.heads), ("k", self.kv_heads)):
            z = x @ weights[f"{name}_proj.weight"].T + weights[f"{name}_proj.bias"]
            z = z.reshape(len(x), heads, self.head_dim).swapaxes(0, 1)
            z = z / np.sqrt(np.mean(z**2, axis=-1, keepdims=True)) * weights[f"{name}_norm.weight"]
            turned[name] = np.repeat(turn(z, np.arange(len(x))), self.heads // heads, axis=0)
        return turned["q"] @ turned["k"].swapaxes(1, 2)

    def _same(self, good: Weights) -> list[tuple[str, Weights]]:
        """Return layers with the same scores, the right conversion first."""
        gains = {"q_norm.weight": 2 * good["q_norm.weight"],
                 "k_norm.weight": good["k_norm.weight"] / 2}  # fmt: skip
        q = {name: good[name] for name in ("q_proj.weight", "q_proj.bias")}
        group = {name: rows.copy() for name, rows in good.items()}
        for name, heads in (("q", self.heads // self.kv_heads), ("k", 1)):
            for part in ("weight", "bias"):
                group[f"{name}_proj.{part}"][: heads * self.head_dim] *= -1
        return [
            ("", good),
            ("with the gains of q doubled and those of k halved they stay; compare scores, and let "
             "both gains count", good | gains),
            ("with W_q and b_q doubled they stay, because each head is divided by its root mean "
             "square, without an epsilon", good | {name: 2 * rows for name, rows in q.items()}),
            ("with the signs of query heads 0 and 1, and of key head 0, which they read, reversed "
             "they stay", group),
        ]  # fmt: skip

    def _spoilt(self, old: Weights, good: Weights) -> list[tuple[str, Weights]]:
        """Return conversions that are wrong, each in one way."""
        spoilt = [(f"{name} was not moved", good | {name: old[name]}) for name in MOVES]
        for name, heads in (("q_proj.weight", self.heads), ("k_proj.weight", self.kv_heads)):
            for head in range(heads):
                rows = good[name].copy()
                own = slice(head * self.head_dim, (head + 1) * self.head_dim)
                rows[own] = old[name][own]
                spoilt.append((f"head {head} of {name} was not moved", good | {name: rows}))
            long = self._move(old[name], 1)
            spoilt.append((f"{name} was moved as one long head", good | {name: long}))
        scaled = good["q_proj.weight"].copy()
        scaled[-1] *= 1.01
        swap = np.arange(self.heads * self.head_dim)
        swap[: 2 * self.head_dim] = np.roll(swap[: 2 * self.head_dim], self.head_dim)
        q = {name: good[name][swap] for name in ("q_proj.weight", "q_proj.bias")}
        back = {name: self._move(old[name], self._heads_of(name), back=True) for name in MOVES}
        return [
            ("nothing was moved: does yours look beyond the first token, at distances over 0?",
             old),
            *spoilt,
            ("everything was moved in the wrong direction", good | back),
            ("query heads 0 and 1, which read the same keys, have changed places", good | q),
            ("a row of the last query head was changed by 1%", good | {"q_proj.weight": scaled}),
        ]  # fmt: skip

    def _check_alike(self, answer: Any) -> None:
        old = self._make()
        good = self._converted(old)
        same = self._same(good)
        x = self.random.standard_normal((5, self.width))
        before = self._scores(old, x, self.was_interleaved)
        for _, new in same:
            if not agree(before, self._scores(new, x, not self.was_interleaved)):
                raise RuntimeError("a right conversion has changed a score")
        asked = [*same, *self._spoilt(old, good), ("again", good)]
        order = self.random.permutation(len(asked))  # so that no test counts its turns
        said = {i: self._verdict(answer, old, asked[i][1]) for i in order}
        if not said[0]:
            raise Slip(
                "a right conversion is refused: old weights are rotated in the old layout, new "
                "ones in the new layout, and then scores agree up to rounding"
            )
        for i in range(1, len(same)):
            if not said[i]:
                raise Slip(f"a layer with the same scores is refused: {same[i][0]}")
        if not said[len(asked) - 1]:
            raise Slip("a right conversion is accepted once and refused when it is asked again")
        passed = [asked[i][0] for i in range(len(same), len(asked) - 1) if said[i]]
        if passed:
            more = f" (and {len(passed) - 1} more)" if len(passed) > 1 else ""
            raise Slip(f"your test lets pass a checkpoint in which {passed[0]}{more}")

    @staticmethod
    def _verdict(answer: Any, old: Weights, new: Weights) -> bool:
        found = call(answer, old, new)
        if not isinstance(found, (bool, np.bool_)):
            raise Slip(f"alike should return True or False, got {type(found).__name__}")
        return bool(found)
