"""The contest on a grid of patches: right answers, no way around positions, the theory's bound."""

import collections
import itertools
import json
import math

import numpy as np
import pytest
import torch

from experiments import __main__ as command
from experiments import patches, summary
from experiments.patches import ARROWS, BLANK, PLANS, TASKS, OnPatches, wave_vectors
from experiments.tasks import IGNORE, SYMBOLS
from rope_minimal import rotate_by_matrix

from .test_experiments import Stub

MARKS = ("row", "diagonal", "corner")


def drawn(name, size=60, seed=5):
    """Images as dictionaries from (x, y) to the token, and to the answers that are asked for."""
    tokens, targets, _ = TASKS[name].batches("test", seed, size, 64)()
    for image, wanted in zip(tokens.tolist(), targets.tolist(), strict=True):
        places = [divmod(i, 8)[::-1] for i in range(64)]
        asked = {p: t for p, t in zip(places, wanted, strict=True) if t != IGNORE}
        yield dict(zip(places, image, strict=True)), asked


# ---- the tasks ----------------------------------------------------------------------------------


def test_an_arrow_leads_to_its_symbol():
    seen = collections.Counter()
    for image, asked in drawn("arrow"):
        assert len(asked) > 12
        for (x, y), answer in asked.items():
            dx, dy = ARROWS[image[x, y] - SYMBOLS].tolist()
            assert image[x + dx, y + dy] == answer < SYMBOLS
            seen[dx, dy] += 1
    assert len(seen) == 8
    assert min(seen.values()) > 60
    assert all(max(abs(dx), abs(dy)) == 2 for dx, dy in seen)


@pytest.mark.parametrize(("name", "lines", "asks"), [("row", 8, 56), ("diagonal", 9, 43)])
def test_a_line_has_one_mark_and_all_others_ask_for_it(name, lines, asks):
    for image, asked in drawn(name):
        marks = {p: token for p, token in image.items() if token < SYMBOLS}
        assert len(marks) == len(set(marks.values())) == lines
        assert len(asked) == asks
        for (x, y), answer in asked.items():
            own = [
                value
                for (mx, my), value in marks.items()
                if (my == y if name == "row" else mx - my == x - y)
            ]
            assert own == [answer]
            assert image[x, y] == BLANK


def test_a_corner_has_a_mark_on_either_diagonal():
    cases = collections.Counter()
    for image, asked in drawn("corner", 400):
        marks = {p: token for p, token in image.items() if token < SYMBOLS}
        assert len(marks) == len(set(marks.values())) == 8
        assert len(asked) == 4
        for (x, y), answer in asked.items():
            beside = {(dx, dy): marks.get((x + dx, y + dy)) for dx in (-1, 1) for dy in (-1, 1)}
            (right,) = ((d, v) for d, v in beside.items() if d[0] == d[1] and v is not None)
            (wrong,) = ((d, v) for d, v in beside.items() if d[0] != d[1] and v is not None)
            assert right[1] == answer
            cases[right[0], wrong[0]] += 1
            near = [(mx - x, my - y) for mx, my in marks]
            assert sum(max(abs(dx), abs(dy)) < 2 for dx, dy in near) == 2  # all others are farther
    assert len(cases) == 4
    assert max(cases.values()) - min(cases.values()) < 0.25 * 400


@pytest.mark.parametrize("name", MARKS)
def test_nothing_but_the_direction_tells_which_mark_is_meant(name):
    """Not the symbols, not their order, not which mark is nearest; all who ask hold the same."""
    right, total = collections.Counter(), 0
    for image, asked in drawn(name, 300):
        marks = {p: token for p, token in image.items() if token < SYMBOLS}
        for p, answer in asked.items():
            assert image[p] == BLANK
            far = {v: max(abs(m[0] - p[0]), abs(m[1] - p[1])) for m, v in marks.items()}
            total += 1
            if name == "corner":
                far = {v: d for v, d in far.items() if d == 1}
            right["smallest"] += min(far) == answer
            nearest = [v for v, d in far.items() if d == min(far.values())]
            right["nearest"] += (answer in nearest) / len(nearest)
    chance = patches.GUESS[name]
    assert right["smallest"] / total == pytest.approx(chance, abs=0.04)
    assert right["nearest"] / total < max(2.5 * chance, 0.53)


def test_every_plan_is_given_the_same_images():
    one, other = (TASKS["row"].batches("train", 3, 4, 64)() for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))
    splits = [TASKS["row"].batches(s, 3, 4, 64)()[0] for s in ("train", "valid", "test")]
    assert not any(torch.equal(a, b) for a, b in itertools.combinations(splits, 2))


# ---- the models ---------------------------------------------------------------------------------


def weights_of(plan, seeds=(5,)):
    return dict(OnPatches(PLANS[plan], 17, seeds).weights.items())


@pytest.mark.parametrize("plan", PLANS)
def test_a_seed_gives_every_plan_the_same_weights_whoever_stands_beside_it(plan):
    alone, beside = weights_of(plan), weights_of("axial", (3, 5))
    shared = [key for key in beside if PLANS[plan].layers == 1 or key.startswith(("embed", "0_"))]
    assert len(shared) > 10
    for key in shared:
        assert torch.equal(alone[key][0], beside[key][1])


def test_the_wave_vectors_of_the_plans():
    pairs = 16
    length = 10.0 ** (-np.arange(pairs // 2) / (pairs // 2))
    for plan, turns in (("axial", [0]), ("turned", [45]), ("mixed", [0, 45])):
        waves = wave_vectors(PLANS[plan].turns, pairs)
        assert np.linalg.norm(waves, axis=1) == pytest.approx(np.tile(length, 2))
        angle = np.degrees(np.arctan2(waves[:, 1], waves[:, 0]))
        want = np.resize(turns, pairs // 2)
        assert angle == pytest.approx(np.concatenate((want, want + 90)))
    learned = [weights_of("learned", (s,))["waves"][0, 0].detach().numpy() for s in (0, 1)]
    assert abs(learned[0] - learned[1]).max() > 0.1
    for waves in learned:  # one cross, turned by any angle
        assert np.linalg.norm(waves, axis=1) == pytest.approx(np.tile(length, 2), rel=1e-6)
        angle = np.arctan2(waves[:, 1], waves[:, 0])
        assert np.exp(4j * angle) == pytest.approx(np.exp(4j * angle[0]), abs=1e-5)


def test_an_axial_head_turns_half_its_pairs_by_the_column_and_half_by_the_row():
    """Against the matrix of the book, an axis at a time."""
    models, watch = OnPatches(PLANS["axial"], 17, (0,)).double(), []
    x = torch.randn(1, 64, 32, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    models._attention(x, 0, 1, watch)
    q, k, found = (z[0, 0, 0].detach().numpy() for z in watch[0])
    theta = 10.0 ** (-np.arange(8) / 8)

    def turned(z):
        parts = (z[:, :16], np.arange(64) % 8), (z[:, 16:], np.arange(64) // 8)
        both = [rotate_by_matrix(v, m, inv_freq=theta, interleaved=True) for v, m in parts]
        return np.concatenate(both, axis=1)

    scores = turned(q) @ turned(k).T / math.sqrt(32)
    want = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    assert found == pytest.approx(want, abs=1e-7)


@pytest.mark.parametrize("plan", ["mixed", "learned", "two_heads"])
def test_a_score_knows_the_offset_alone(plan):
    models, watch = OnPatches(PLANS[plan], 17, (0, 1)).double(), []
    x = torch.randn(2, 1, 32, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    models._attention(x.expand(2, 64, 32), 0, 1, watch)
    log = watch[0][2][:, 0].log().unflatten(-1, (8, 8)).unflatten(2, (8, 8))
    one = log[:, :, 2, 3] - log[:, :, 2, 3, 2, 3, None, None]
    other = log[:, :, 4, 3] - log[:, :, 4, 3, 4, 3, None, None]
    torch.testing.assert_close(one[..., 1:6, :], other[..., 3:8, :], rtol=0, atol=1e-9)


def test_without_positions_a_patch_does_not_know_where_it_is():
    models = OnPatches(PLANS["none"], 17, (0,))
    tokens = TASKS["row"].batches("test", 0, 2, 64)()[0][None]
    order = torch.randperm(64, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(
        models(tokens)[:, :, order], models(tokens[:, :, order]), rtol=0, atol=1e-5
    )


def test_the_score_map_is_the_mean_over_all_who_ask_and_all_who_answer():
    name = "corner"
    models, watch = OnPatches(PLANS["mixed"], 17, (4,)), []
    found = patches.score_map(models, TASKS[name], (4,))[0, 0].numpy()
    tokens, _ = patches.images(TASKS[name], "test", (4,))
    with torch.no_grad():
        models(tokens, watch)
    q, k = (z[0, :, 0].double() for z in watch[0][:2])
    q, k = q[tokens[0] == BLANK], k[tokens[0] < SYMBOLS]
    waves = torch.tensor(wave_vectors(PLANS["mixed"].turns, 16))
    for dx, dy in ((0, 0), (1, 0), (-1, 2), (7, -3)):
        angle = waves @ torch.tensor([dx, dy], dtype=torch.float64)
        a, b = k.unflatten(-1, (16, 2)).unbind(-1)
        c, s = angle.cos(), angle.sin()
        turned = torch.stack((a * c - b * s, a * s + b * c), -1).flatten(-2)
        want = float((q @ turned.T).mean()) / math.sqrt(32)
        assert found[dy + 7, dx + 7] == pytest.approx(want, abs=1e-5)


# ---- the theory ---------------------------------------------------------------------------------


def test_only_sums_of_a_row_and_a_column_have_no_interaction():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 15))
    assert abs(patches.interaction(a[None, :] + b[:, None])).max() < 1e-12
    assert abs(patches.interaction(np.outer(a, b))).max() > 0.1
    for plan, none in (("axial", True), ("turned", False), ("mixed", False)):
        models = OnPatches(PLANS[plan], 17, (0, 1)).double()
        found = patches.interaction(patches.score_map(models, TASKS["row"], (0, 1)))
        assert (float(found.abs().max()) < 1e-6) == none


AXES, DIAGONALS, ANY = ((1, 0), (0, 1)), ((1, 1), (1, -1)), ((15, 1),)


def test_the_least_loss_of_a_head_whose_score_is_a_sum():
    assert patches.best_bits("corner", AXES) == pytest.approx(1.0, abs=0.02)
    for name, can, cannot in (("row", AXES, DIAGONALS), ("diagonal", DIAGONALS, AXES)):
        assert patches.best_bits(name, can) < 0.02
        assert patches.best_bits(name, ANY) < 0.02
        assert 2.2 < patches.best_bits(name, cannot) < -math.log2(patches.GUESS[name])
    assert patches.best_bits("corner", DIAGONALS) < 0.02


@pytest.mark.drawn(3, among="long")
@pytest.mark.parametrize(("name", "least"), [("diagonal", 2.6), ("corner", 0.95)])
def test_sums_fitted_to_other_images_by_newton_pay_as_much(name, least):
    """Refuted if a regression with 30 numbers on other images gets below the stated bits.

    A score A(dx) + B(dy) is linear in 30 numbers: a regression, whatever makes the score.
    """
    seen, right = [], []
    for image, asked in drawn(name, size=500):
        marks = [(at, token) for at, token in image.items() if token < SYMBOLS]
        for (x, y), answer in asked.items():
            table = np.zeros((len(marks), 30))
            for row, ((to_x, to_y), _) in zip(table, marks, strict=True):
                row[to_x - x + 7] = row[to_y - y + 22] = 1
            seen.append(table)
            right.append([token for _, token in marks].index(answer))
    seen, right = np.array(seen), np.array(right)  # (answers, marks, 30), (answers,)
    answers, free = np.arange(len(right)), np.zeros(30)
    for _ in range(30):
        chances = np.exp(seen @ free)
        chances /= chances.sum(1, keepdims=True)
        mean = (chances[..., None] * seen).sum(1)
        slope = (mean - seen[answers, right]).mean(0)
        bend = np.einsum("am,ami,amj->ij", chances, seen, seen) - mean.T @ mean
        free -= np.linalg.solve(bend / len(right) + 1e-4 * np.eye(30), slope)
    bits = -np.log2(chances[answers, right]).mean()
    assert bits == pytest.approx(patches.best_bits(name, AXES), abs=0.05)
    assert bits > least
    record = json.loads((summary.RESULTS / "patches" / f"{name}.json").read_text("utf8"))
    for run in (summary.measured(record, "axial"), patches.calm(record, "axial")):
        assert min(run["test"]["none"]["1"]["bits"]) > bits - 0.01


# ---- the record ---------------------------------------------------------------------------------


def test_an_interrupted_run_goes_on_where_it_was_cut(monkeypatch, tmp_path):
    stub = Stub(limit=7)
    monkeypatch.setattr(patches, "run", stub)
    monkeypatch.setattr(patches, "FOLDER", tmp_path)
    monkeypatch.setattr("sys.argv", ["patches", "row"])
    with pytest.raises(KeyboardInterrupt):
        patches.main()
    stub.limit = math.inf
    patches.main()
    assert len(stub.done) == len(set(stub.done)) == len(patches.TRIED["row"]) * (4 + 3)
    record = json.loads((tmp_path / "row.json").read_text("utf8"))
    assert {summary.measured(record, plan)["learning_rate"] for plan in patches.TRIED["row"]} == {
        0.03
    }


def test_a_job_is_scored_and_its_map_kept(monkeypatch):
    monkeypatch.setattr(patches, "IMAGES", 4)
    job = patches.Job("measure", "corner", "mixed", 1e-2, 2, (0, 1))
    found = patches.run(job)
    assert np.shape(found["map"]) == (2, 15, 15)
    assert np.shape(found["test"]["none"]["1"]["accuracy"]) == (2,)
    chosen = patches.run(job._replace(purpose="choose"))
    assert len(chosen["valid_bits"]) == 2
    assert "map" not in chosen


@pytest.mark.parametrize("name", TASKS)
def test_what_is_recorded_was_made_with_these_settings(name):
    record = json.loads((patches.FOLDER / f"{name}.json").read_text("utf8"))
    assert record["settings"] == patches.settings(name)
    for plan in patches.TRIED[name]:
        best = command.chosen(record, plan)
        for purpose, seeds in (("measure", command.SEEDS), ("twice", command.CHOOSING_SEEDS)):
            (found,) = summary.runs(record, plan, purpose)
            assert found["learning_rate"] == best
            assert tuple(found["seeds"]) == seeds
        calm = patches.calm(record, plan)
        assert (calm["learning_rate"], tuple(calm["seeds"])) == (patches.CALM, command.SEEDS)


def test_predictions_are_few_enough_for_eight_seeds_and_name_what_is_tried():
    compared = 0
    for one in summary.predictions(patches.PREDICTIONS):
        for side in (one["of"], one.get("over", one["of"])):
            assert side["encoding"] in patches.TRIED[one["task"]]
        assert ("over" in one) + ("least" in one) + ("most" in one) == 1
        compared += "over" in one
    assert compared / 2 ** len(command.SEEDS) < summary.SIGNIFICANT
