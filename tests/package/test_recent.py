"""The encodings of 2024 to 2026 written a second time, and two tasks solved by hand."""

import json
import math

import numpy as np
import pytest
import torch

from experiments import __main__ as command
from experiments import recent, summary
from experiments.recent import GAP, RECENT, START, TASKS, TRIED, build, train
from experiments.run import BINS, fit
from experiments.tasks import IGNORE, MARKS, QUERIES, QUERY, SYMBOLS, WINDOW
from rope_minimal import inverse_frequencies

from .test_experiments import Pool, Stub

COPY = TASKS["copy"]
THETA = inverse_frequencies(32)


def tokens(models, length, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(16, (models, 2, length), generator=generator)


def shaken(name, seeds=(3,), seed=5):
    """Untrained models in double precision, with what is their own moved from where it begins."""
    models = build(COPY, name, seeds).double()
    known, generator = build(COPY, "rope", seeds).weights, torch.Generator().manual_seed(seed)
    for key, value in models.weights.items():
        if key not in known:
            noise = torch.randn(value.shape, generator=generator, dtype=value.dtype)
            value.data += 0.3 * noise
    return models


def scored(models, layer, length=40, seed=2):
    """Return a layer's scores, and q, k and the weights that made them, as arrays."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(1, length, 32, generator=generator, dtype=torch.float64)
    watch = []
    models._attention(x, layer, 1, watch)
    q, k = (z[:, :, :1] for z in watch[0][:2])
    with torch.no_grad():
        scores = models.scores(q, k, x[:, None], layer)[0, 0]
    own = {key: value.detach()[0].numpy() for key, value in models.weights.items()}
    return (
        scores.numpy(),
        q[0, 0, 0].detach().numpy(),
        k[0, 0, 0].detach().numpy(),
        x[0].numpy(),
        own,
    )


def complex_pairs(z):
    return z[..., ::2] + 1j * z[..., 1::2]


def by_angles(q, k, angle, part=np.real):
    """The score of every query and key from complex numbers, one pair of tokens at a time."""
    q, k = complex_pairs(q), complex_pairs(k).conj()

    def score(t, s):
        return part((q[t] * k[s] * np.exp(1j * (angle[t] - angle[s]))).sum()) / math.sqrt(32)

    return np.array([[score(t, s) for s in range(len(k))] for t in range(len(q))])


def softplus(z):
    return np.log1p(np.exp(z))


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


# ---- every encoding -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", RECENT)
def test_a_seed_starts_from_the_weights_of_the_contest(name):
    """Refuted if a weight in common with RoPE's begins elsewhere, or too many come with it."""
    ours, rope = build(COPY, name, (3, 5)).weights, build(COPY, "rope", (3, 5)).weights
    alone = build(COPY, name, (5,)).weights
    for key, value in rope.items():
        assert torch.equal(ours[key][:, : value.shape[1]], value)
    for key, value in alone.items():
        assert torch.equal(value[0], ours[key][1])
    count, size = (sum(w.numel() for w in weights.values()) for weights in (ours, rope))
    assert count < 1.125 * size


@pytest.mark.parametrize("name", RECENT)
def test_a_model_does_not_see_what_comes_later(name):
    first = tokens(1, 30)
    second = first.clone()
    second[..., 20:] = (second[..., 20:] + 1) % 16
    models = shaken(name)
    before, after = models(first), models(second)
    torch.testing.assert_close(before[..., :20, :], after[..., :20, :], rtol=0, atol=1e-12)
    assert (before[..., 20:, :] - after[..., 20:, :]).abs().max() > 1e-3


@pytest.mark.parametrize("name", [name for name in RECENT if name != "drope"])
def test_every_encoding_computes_something_of_its_own(name):
    rope = build(COPY, "rope", (3,)).double()(tokens(1, 48))
    assert (shaken(name)(tokens(1, 48)) - rope).abs().max() > 1e-3


@pytest.mark.parametrize("name", RECENT)
def test_models_side_by_side_learn_what_each_learns_alone(name):
    both, alone = train(COPY, name, (0, 1), 1e-2, 3), train(COPY, name, (1,), 1e-2, 3)
    for key, value in alone.weights.items():
        assert torch.allclose(both.weights[key][1], value[0], atol=1e-5)


@pytest.mark.parametrize("name", RECENT)
def test_training_moves_every_weight_that_an_encoding_adds_but_random_coefficients(name):
    before = {key: value.clone() for key, value in build(COPY, name, (0,)).weights.items()}
    after = train(COPY, name, (0,), 1e-2, 5).weights
    still = {key for key in before if torch.equal(before[key], after[key])}
    coefficients = {f"{layer}_{part}" for layer in (0, 1) for part in ("cos", "sin")}
    assert still == (coefficients if name == "fourier" else set())


@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize(
    ("name", "relative"),
    [
        ("pope", True),
        ("grape_a", True),
        ("learned_bank", True),
        ("clipped", True),
        ("rope_pp", True),
        ("tapa", True),
        ("bases", True),
        ("fourier", False),
    ],
)
def test_which_scores_depend_on_positions_through_the_distance_alone(name, relative, layer):
    """The same q and k, seven positions later: only a Fourier series tells."""
    models = shaken(name)
    q, k = torch.randn(2, 1, 1, 1, 30, 32, dtype=torch.float64)
    later = [torch.cat((torch.zeros_like(z[..., :7, :]), z), dim=3) for z in (q, k)]
    x = torch.zeros(1, 1, 37, 32, dtype=torch.float64)
    here = models.scores(q, k, x[:, :, :30], layer).tril()
    there = models.scores(*later, x, layer)[..., 7:, 7:].tril()
    assert ((here - there).abs().max() < 1e-9) == relative


# ---- each written a second time -----------------------------------------------------------------


@pytest.mark.parametrize("layer", [0, 1])
def test_pope_is_that_of_x_transformers(layer):
    from x_transformers.x_transformers import PolarEmbedding, apply_polar_pos_emb

    models = shaken("pope")
    found, q, k, _, own = scored(models, layer)
    peer = PolarEmbedding(32, 1)
    peer.learned_bias.data = torch.tensor(own[f"{layer}_delta"])[None, None].float()
    angle, bias = peer(torch.arange(40))
    late = apply_polar_pos_emb(torch.tensor(k)[None], angle + bias[0])
    wanted = apply_polar_pos_emb(torch.tensor(q)[None], angle) @ late.mT / math.sqrt(32)
    assert own[f"{layer}_delta"].max() > 0  # clamped there
    assert found[0] == pytest.approx(wanted[0].detach().numpy(), abs=1e-4)


@pytest.mark.parametrize("layer", [0, 1])
def test_additive_grape_is_a_group_of_unipotent_matrices(layer):
    """exp(n A) with A A = 0, on queries and keys that are longer by what the bias needs."""
    found, q, k, _, own = scored(shaken("grape_a"), layer)
    v, u = (own[f"{layer}_fall_{n}"] / np.linalg.norm(own[f"{layer}_fall_{n}"]) for n in "qk")
    rate = (1 / 16, 1 / 256)[layer] * softplus(own[f"{layer}_omega"].item())
    generator = torch.zeros(36, 36, dtype=torch.float64)
    generator[32, 34] = generator[33, 35] = rate * math.sqrt(32)
    for t, s in ((39, 0), (39, 39), (20, 13), (1, 0)):
        long_q = [*q[t], softplus(v @ q[t] / math.sqrt(32)), 1, 0, 0]
        long_k = [*k[s], 0, 0, 1, softplus(u @ k[s] / math.sqrt(32))]
        group = torch.matrix_exp((s - t) * generator).numpy()
        assert found[0, t, s] == pytest.approx(long_q @ group @ long_k / math.sqrt(32), abs=1e-9)


@pytest.mark.parametrize("layer", [0, 1])
def test_multiplicative_grape_is_a_group_of_rotations(layer):
    found, q, k, x, own = scored(shaken("grape_m"), layer)
    generator = torch.zeros(32, 32, dtype=torch.float64)
    for i, theta in enumerate(np.exp(own[f"{layer}_log_theta"])):
        generator[2 * i + 1, 2 * i], generator[2 * i, 2 * i + 1] = theta, -theta
    gate = sigmoid((x @ own[f"{layer}_gate"][:, 0] + own[f"{layer}_gate_bias"].item()) / 16)
    for t, s in ((39, 0), (39, 39), (20, 13), (1, 0)):
        group = torch.matrix_exp(gate[s:t].sum() * generator).numpy()
        assert found[0, t, s] == pytest.approx(k[s] @ group @ q[t] / math.sqrt(32), abs=1e-7)


@pytest.mark.parametrize("layer", [0, 1])
def test_learned_frequencies_begin_as_ropes_and_are_each_layers_own(layer):
    found, q, k, _, own = scored(shaken("learned_bank"), layer)
    angle = np.outer(np.arange(40), np.exp(own[f"{layer}_log_theta"]))
    assert found[0] == pytest.approx(by_angles(q, k, angle), abs=1e-9)
    first = build(COPY, "learned_bank", (3,))
    assert first.frequencies(layer).flatten().tolist() == pytest.approx(THETA, rel=1e-6)


def test_clipped_frequencies_are_ropes_under_half_a_hann_window():
    theta = build(COPY, "clipped", (3,)).frequencies(0).numpy()
    slow = sum(2 * math.pi / f > 64 for f in THETA)
    assert slow == 11
    assert theta == pytest.approx(THETA * np.r_[np.ones(5), np.hanning(2 * slow - 1)[slow - 1 :]])
    found, q, k, _, _ = scored(shaken("clipped"), 1)
    assert found[0] == pytest.approx(by_angles(q, k, np.outer(np.arange(40), theta)), abs=1e-9)


@pytest.mark.parametrize("layer", [0, 1])
def test_a_fourier_series_is_a_sum_of_all_kept_waves(layer):
    found, q, k, _, own = scored(shaken("fourier"), layer)

    def turned(z, t):
        out = []
        for i in range(16):
            c = s = 1.0
            if i < 5:
                c = sum(own[f"{layer}_cos"][j, i] * math.cos(t * THETA[j]) for j in range(5))
                s = sum(own[f"{layer}_sin"][j, i] * math.sin(t * THETA[j]) for j in range(5))
            a, b = z[2 * i], z[2 * i + 1]
            out += [a * c - b * s, b * c + a * s]
        return np.array(out)

    for t, s in ((39, 0), (39, 39), (20, 13)):
        wanted = turned(q[t], t) @ turned(k[s], s) / math.sqrt(32)
        assert found[0, t, s] == pytest.approx(wanted, abs=1e-6)


def test_a_fourier_series_with_the_identity_is_rope_beside_pairs_that_count_twice():
    models = shaken("fourier")
    for part in ("cos", "sin"):
        models.weights[f"0_{part}"].data[0] = torch.eye(5)
    found, q, k, _, _ = scored(models, 0)
    angle = np.outer(np.arange(40), np.r_[THETA[:5], np.zeros(11)])
    twice = np.repeat(np.r_[np.ones(5), np.full(11, math.sqrt(2))], 2)
    assert found[0] == pytest.approx(by_angles(q * twice, k * twice, angle), abs=1e-6)


@pytest.mark.parametrize("layer", [0, 1])
def test_rope_pp_has_the_real_and_the_negative_imaginary_part(layer):
    found, q, k, _, _ = scored(shaken("rope_pp"), layer)
    angle = np.outer(np.arange(40), THETA)
    assert found.shape == (2, 40, 40)
    assert found[0] == pytest.approx(by_angles(q, k, angle), abs=1e-9)
    # with the angle of the key minus that of the query, as the paper writes it
    assert found[1] == pytest.approx(by_angles(q, k, angle, np.imag), abs=1e-9)


@pytest.mark.parametrize("layer", [0, 1])
def test_selective_rope_is_a_recurrence_of_small_rotations(layer):
    found, q, k, x, own = scored(shaken("selective"), layer)
    units = x / np.linalg.norm(x, axis=1, keepdims=True)
    steps = np.vstack((np.zeros((3, 16)), units @ own[f"{layer}_phi"]))
    q, k, memory = complex_pairs(q), complex_pairs(k).conj(), np.empty((0, 16))
    for t in range(40):  # what has been seen is turned at every step; no position is ever used
        phi = (own[f"{layer}_taps"] * steps[t : t + 4]).sum(axis=0)
        memory = np.vstack((memory * np.exp(1j * THETA * phi), k[t]))
        wanted = (q[t] * memory).sum(axis=-1).real / math.sqrt(32)
        assert found[0, t, : t + 1] == pytest.approx(wanted, abs=1e-9)


def test_repo_rotates_by_positions_that_a_token_gives_itself():
    models = shaken("repo")
    found, q, k, x, own = scored(models, 1)
    gate, content = x @ own["1_gate"], x @ own["1_content"]
    z = (gate * sigmoid(gate) * content @ own["1_place"])[:, 0]
    assert found[0] == pytest.approx(by_angles(q, k, np.outer(z, THETA)), abs=1e-9)
    found, q, k, _, _ = scored(models, 0)
    assert found[0] == pytest.approx(by_angles(q, k, np.outer(np.arange(40), THETA)), abs=1e-9)


@pytest.mark.parametrize("layer", [0, 1])
def test_token_aware_phases_are_their_formula(layer):
    found, q, k, _, _ = scored(shaken("tapa"), layer)
    for t, s in ((39, 0), (39, 39), (20, 13), (1, 0)):
        amplitude, phase = q[t, :16] @ k[s, :16] / 4, q[t, 16:] @ k[s, 16:] / 4
        wanted = amplitude * math.cos(2 * math.pi * (t - s) ** 0.1 * phase)
        assert found[0, t, s] == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize(("name", "second"), [("bases", 1e6), ("local_nope", None)])
def test_a_local_layer_sees_sixteen_keys_and_a_global_one_all(name, second):
    models = shaken(name)
    still = np.zeros(16) if second is None else inverse_frequencies(32, second)
    for layer, theta in ((0, THETA), (1, still)):
        found, q, k, _, _ = scored(models, layer)
        assert found[0] == pytest.approx(by_angles(q, k, np.outer(np.arange(40), theta)), abs=1e-9)
        watch, x = [], torch.randn(1, 40, 32, dtype=torch.float64)
        models._attention(x, layer, 1, watch)
        assert (watch[0][2][0, 0, 0, 39] > 0).sum() == (16, 40)[layer]


def test_dropped_rope_is_rope_and_then_the_same_weights_without_a_rotation():
    rope, nope = build(COPY, "rope", (3,)), build(COPY, "nope", (3,))
    ours = fit(build(COPY, "drope", (3,)), COPY, (3,), 1e-2, 4)
    fit(rope, COPY, (3,), 1e-2, 4)
    torch.testing.assert_close(ours(tokens(1, 48)), rope(tokens(1, 48)), rtol=0, atol=1e-5)
    nope.load_state_dict(ours.state_dict())
    fit(nope, COPY, (3,), 1e-2, 1)
    whole = train(COPY, "drope", (3,), 1e-2, 4)
    torch.testing.assert_close(whole(tokens(1, 48)), nope(tokens(1, 48)), rtol=0, atol=1e-5)


# ---- the tasks ----------------------------------------------------------------------------------


@pytest.mark.parametrize("times", [1, 8])
def test_parity_says_whether_the_ones_so_far_are_odd(times):
    drawn = TASKS["parity"].batches("test", 5, 20, times * 64)()
    for row, target, distance in zip(*(part.tolist() for part in drawn), strict=True):
        assert row[0] == START
        assert target[0] == IGNORE
        assert target[1:] == [row[1 : t + 1].count(1) % 2 for t in range(1, len(row))]
        assert distance == list(range(len(row)))


@pytest.mark.parametrize(("split", "times"), [("train", 1), ("valid", 1), ("test", 1), ("test", 8)])
def test_recall_asks_at_distances_that_training_has_not(split, times):
    drawn = TASKS["recall"].batches(split, 5, 60, times * 64)()
    seen = []
    for row, target, distance in zip(*(part.tolist() for part in drawn), strict=True):
        marks = {token // SYMBOLS: s for s, token in enumerate(row) if SYMBOLS <= token < QUERY}
        assert sorted(marks) == [1, 2]
        asked = [t for t, token in enumerate(row) if token >= QUERY]
        assert asked == [t for t, wanted in enumerate(target) if wanted != IGNORE]
        assert len(asked) <= QUERIES
        for t in asked:
            answer = marks[row[t] - QUERY + 1]
            assert (target[t], distance[t]) == (row[answer] % SYMBOLS, t - answer)
            seen.append(distance[t])
    untrained = {d for d in range(1, times * 64) if GAP[0] <= d < GAP[1] or d >= WINDOW}
    assert (set(seen) <= untrained) if split == "test" else not (set(seen) & untrained)
    assert set(GAP) <= set(BINS)
    if times == 1:
        assert len(seen) > 300
        assert len(set(seen)) > (14 if split == "test" else 35)


@pytest.mark.parametrize("name", ["parity", "recall"])
def test_who_knows_nothing_scores_what_is_said(name):
    task = TASKS[name]
    targets = torch.cat([task.batches("test", s, 4000, 64)()[1].flatten() for s in range(2)])
    share = np.bincount(targets[targets != IGNORE]) / (targets != IGNORE).sum().item()
    assert len(share) == 1 / recent.GUESS[name]
    assert share.max() < recent.GUESS[name] + 0.01


def test_who_looks_at_the_last_tokens_alone_knows_nothing_of_parity():
    rows, targets, _ = TASKS["parity"].batches("test", 0, 400, 64)()
    last = rows[:, 24:32] @ 2 ** torch.arange(8)
    odd = torch.zeros(256).scatter_reduce(
        0, last, targets[:, 31].float(), "mean", include_self=False
    )
    counts = torch.bincount(last, minlength=256)
    assert abs(float((odd * counts).sum() / counts.sum()) - 0.5) < 0.08


def test_selective_rope_can_follow_parity_with_one_pair_of_one_head():
    """Weights by hand: a one is half a turn of the pair, and all keys but the first are zero."""
    models = build(TASKS["parity"], "selective", (0,)).double()
    for key in ("phi", "taps", "q", "k", "v"):
        models.weights[f"0_{key}"].data.zero_()
    own = {key: models.weights[f"0_{key}"].data[0] for key in ("phi", "taps", "q", "k", "v")}
    own["taps"][-1] = 1.0  # this token's step, and not the ones before
    own["phi"][1, 0] = math.pi
    own["q"][:3, 0] = 30.0
    own["k"][START, 0], own["v"][START, 0] = 30.0, 1.0
    rows, targets, _ = TASKS["parity"].batches("test", 3, 8, 512)()
    x = torch.nn.functional.one_hot(rows, 32).double().flatten(0, 1)[None]
    out = models._attention(x, 0, 8, None)[0, :, 0].unflatten(0, (8, 512))
    assert torch.equal((out < 0.5).long()[:, 1:], targets[:, 1:])


def test_content_alone_solves_recall_at_every_distance():
    """Scores by hand: a query names a mark and meets the one key that has it."""
    rows, targets, _ = TASKS["recall"].batches("test", 3, 8, 512)()
    asks = torch.nn.functional.one_hot((rows - QUERY).clamp(min=-1) + 1, MARKS + 1)[..., 1:].float()
    has = torch.nn.functional.one_hot(torch.where(rows < QUERY, rows // SYMBOLS, 0), MARKS + 1)
    values = torch.nn.functional.one_hot(rows % SYMBOLS, SYMBOLS).float()
    found = ((100 * asks @ has[..., 1:].float().mT).softmax(-1) @ values).argmax(-1)
    asked = targets != IGNORE
    assert torch.equal(found[asked], targets[asked])


# ---- the record ---------------------------------------------------------------------------------


def test_an_interrupted_run_goes_on_where_it_was_cut(monkeypatch, tmp_path):
    stub = Stub(limit=7)
    monkeypatch.setattr(recent, "run", stub)
    monkeypatch.setattr(recent, "FOLDER", tmp_path)
    monkeypatch.setattr(command, "ProcessPoolExecutor", Pool)
    monkeypatch.setattr("sys.argv", ["recent", "parity", "--workers", "1"])
    with pytest.raises(KeyboardInterrupt):
        recent.main()
    stub.limit = math.inf
    recent.main()
    assert len(stub.done) == len(set(stub.done)) == len(TRIED["parity"]) * (4 + 2)
    record = recent.records()["parity"]
    assert {summary.measured(record, name)["learning_rate"] for name in TRIED["parity"]} == {0.03}


def test_a_job_is_scored_at_every_length(monkeypatch):
    monkeypatch.setattr("experiments.run.TEXTS", dict.fromkeys((1, 2, 4, 8), 4))
    job = recent.Job("measure", "recall", "pope", 1e-2, 2, (0, 1))
    found = recent.run(job)
    assert list(found["test"]["none"]) == ["1", "2", "4", "8"]
    assert np.shape(found["test"]["none"]["8"]["accuracy"]) == (2,)
    assert len(recent.run(job._replace(purpose="choose"))["valid_bits"]) == 2


def test_what_is_recorded_was_made_with_these_settings():
    for path in recent.FOLDER.glob("*.json"):
        record = json.loads(path.read_text("utf8"))
        assert record["settings"] == recent.settings(TASKS[path.stem])
        for name in TRIED[path.stem]:
            best = command.chosen(record, name)
            for purpose, seeds in (("measure", command.SEEDS), ("twice", command.CHOOSING_SEEDS)):
                (found,) = summary.runs(record, name, purpose)
                assert (found["learning_rate"], tuple(found["seeds"])) == (best, seeds)


def test_predictions_are_few_enough_for_eight_seeds_and_name_what_is_tried():
    records, compared = recent.records(), 0
    predicted = summary.predictions(recent.PREDICTIONS)
    for one in predicted:
        for side in (one["of"], one.get("over", one["of"])):
            assert side["encoding"] in records[one["task"]]["settings"]["encodings"]
        assert ("over" in one) + ("least" in one) + ("most" in one) == 1
        assert one["why"]
        compared += "over" in one
    assert compared / 2 ** len(command.SEEDS) < summary.SIGNIFICANT
    assert {one["of"]["encoding"] for one in predicted} >= set(RECENT)
    assert len(summary.judge(records, recent.PREDICTIONS)) == len(predicted)
