"""The contest designed again: fair starts, right answers, prose that is new, exact statistics."""

import itertools
import json
import math
from concurrent.futures import Future

import numpy as np
import pytest
import torch

from experiments import __main__ as command
from experiments import run as running
from experiments import summary, tables
from experiments.encodings import AIDS, ENCODINGS, RAMPS, aided
from experiments.model import attention_by_distance, pair_usage, t5_bucket
from experiments.run import BINS, Job, build, score, train
from experiments.tasks import (
    APART,
    IGNORE,
    LAG,
    QUERIES,
    QUERY,
    RARE,
    SYMBOLS,
    TASKS,
    prose,
)
from rope_minimal import RotarySelfAttention, inverse_frequencies, rescaled_frequencies

COPY = TASKS["copy"]


def tokens(models, length, seed=1, size=2):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(16, (models, size, length), generator=generator)


# ---- the models ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ENCODINGS)
def test_a_seed_gives_every_encoding_the_same_weights_whoever_stands_beside_it(name):
    """Refuted if two encodings of one seed start from different weights, alone or side by side."""
    alone, beside = build(COPY, name, (5,)).weights, build(COPY, "rope", (3, 5)).weights
    assert set(alone) - set(beside) <= {"learned", "t5"}
    for key in beside:
        assert torch.equal(alone[key][0], beside[key][1])
    assert not torch.equal(beside["embed"][0], beside["embed"][1])


def test_attention_with_rope_is_the_attention_of_the_package():
    models = build(COPY, "rope", (0, 1))
    x = torch.randn(2, 3, 40, 32, generator=torch.Generator().manual_seed(0))
    ours = models._attention(x.flatten(1, 2), 0, 3, None)
    parent = RotarySelfAttention(32, 1, max_seq_len=40, interleaved=True)
    for s in (0, 1):
        for name in "qkvo":
            getattr(parent, f"{name}_proj").weight.data = models.weights[f"0_{name}"][s].T
        expected = parent(x[s])
        found = (ours @ models.weights["0_o"])[s].unflatten(0, (3, 40))
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)


def test_models_side_by_side_learn_what_each_learns_alone():
    both = train(COPY, "rope", (0, 1), 1e-2, 4)
    alone = train(COPY, "rope", (1,), 1e-2, 4)
    for key in both.weights:
        assert torch.allclose(both.weights[key][1], alone.weights[key][0], atol=1e-5)


@pytest.mark.parametrize("name", [name for name in ENCODINGS if name != "rope"])
def test_every_encoding_computes_something_of_its_own(name):
    ours, rope = (build(COPY, one, (3,)) for one in (name, "rope"))
    if name == "t5":  # its biases begin at zero: then it is no encoding
        ours.weights["t5"].data.normal_(generator=torch.Generator().manual_seed(0))
    assert (ours(tokens(1, 48)) - rope(tokens(1, 48))).abs().max() > 1e-3


@pytest.mark.parametrize("name", [name for name, how in ENCODINGS.items() if how.causal])
def test_a_causal_model_does_not_see_what_comes_later(name):
    first = tokens(1, 30)
    second = first.clone()
    second[..., 20:] = (second[..., 20:] + 1) % 16
    own = build(COPY, name, (3,))
    before, after = own(first), own(second)
    torch.testing.assert_close(before[..., :20, :], after[..., :20, :], rtol=0, atol=1e-6)
    assert (before[..., 20:, :] - after[..., 20:, :]).abs().max() > 1e-3


@pytest.mark.parametrize(
    "name", ["rope", "nope", "monotone_a", "one_hand", "layers", "alibi", "t5"]
)
def test_relative_encodings_do_not_know_where_the_text_begins(name):
    def of_last(length):  # only the last eight positions of one layer's attention see each other
        models = build(COPY, name, (3,))
        x = torch.randn(1, 8, 32, generator=torch.Generator().manual_seed(2))
        padded = torch.cat((torch.zeros(1, length - 8, 32), x), dim=1)
        watch = []
        models._attention(padded, 0, 1, watch)
        q, k = (v[0, 0, 0, -8:] for v in watch[0][:2])
        later = models._bias(torch.arange(8)[:, None] - torch.arange(8), 0, q.dtype)
        return (q @ k.T + later).tril()

    torch.testing.assert_close(of_last(20), of_last(50), rtol=0, atol=1e-4)


def test_the_frequencies_of_the_encodings():
    theta = inverse_frequencies(32)
    bank = {n: e.inv_freq(32, 64) for n, e in ENCODINGS.items() if e.inv_freq is not None}
    assert bank["rope"] == pytest.approx(theta)
    assert bank["monotone_a"] == pytest.approx(math.pi / 64 * theta)
    assert bank["monotone_b"] == pytest.approx(2 * math.pi / 64 * theta)
    assert bank["literal"] == pytest.approx(0.4096 * theta)
    assert bank["one_plane"].tolist() == [1.0] * 16
    assert bank["one_hand"].tolist() == [1.0] + [0.0] * 15
    assert bank["fast_half"].tolist() == [*theta[:8], *[0.0] * 8]
    assert bank["slow_half"].tolist() == [*[0.0] * 8, *theta[8:]]


def test_t5s_buckets_are_those_of_transformers():
    from transformers.models.t5.modeling_t5 import T5Attention

    distance = torch.arange(600)
    wanted = T5Attention._relative_position_bucket(-distance, bidirectional=False)
    assert torch.equal(t5_bucket(distance), wanted)


@pytest.mark.parametrize("kind", [*AIDS, *RAMPS])
@pytest.mark.parametrize("factor", [2, 4])
def test_an_aid_of_ropes_bank_is_that_of_the_package(kind, factor):
    theta = inverse_frequencies(32)
    bank, heat = aided(kind, theta, 64, factor)
    heated = kind == "temperature" or kind.endswith("+t")
    assert heat == pytest.approx(1 + 0.1 * math.log(factor) if heated else 1)
    own = {"factor": factor, "original_max_position_embeddings": 64}
    name, more = {
        "temperature": ("default", {}),
        "pi": ("linear", {"factor": factor}),
        "ntk": ("ntk", {"factor": factor}),
        "parts": ("yarn_paper", own | {"beta_fast": 4}),
        "printed": ("yarn_paper", own),
        "released": ("yarn", own),
    }[kind.removesuffix("+t")]
    assert bank == pytest.approx(rescaled_frequencies(name, 32, **more)[0])


def test_hidden_and_clamped_keys_do_what_they_say():
    models = build(COPY, "rope", (0,))
    x = torch.randn(1, 100, 32, generator=torch.Generator().manual_seed(0))
    plain = models._attention(x, 0, 1, None)
    for sight in ("near", "clamp"):
        models.configure(sight=sight)
        changed = models._attention(x, 0, 1, None)
        assert torch.allclose(changed[:, :64], plain[:, :64], atol=1e-6)
        assert (changed[:, 64:] - plain[:, 64:]).abs().max() > 1e-3
    q, k = (x[0] @ models.weights[f"0_{n}"][0].detach() for n in "qk")

    def turned(v, angle):
        a, b = v.unflatten(-1, (16, 2)).unbind(-1)
        theta = torch.tensor(inverse_frequencies(32), dtype=torch.float32) * angle
        a, b = a * theta.cos() - b * theta.sin(), a * theta.sin() + b * theta.cos()
        return torch.stack((a, b), -1).flatten(-2)

    m = torch.arange(100)
    scores = torch.tensor(
        [
            [float(turned(q[t], min(t - s, 63)) @ k[s]) / 32**0.5 for s in m[: t + 1]]
            + [-math.inf] * (99 - t)
            for t in (0, 70, 99)
        ]
    )
    expected = scores.softmax(-1) @ (x[0] @ models.weights["0_v"][0])
    torch.testing.assert_close(changed[0, [0, 70, 99]], expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize("name", ENCODINGS)
def test_the_attention_shown_is_the_attention_used(name, layer):
    """Values that are unit vectors carry a layer's weights to its output."""
    models = build(COPY, name, (3,)).double()
    generator = torch.Generator().manual_seed(5)
    if name == "t5":  # its biases begin at zero
        models.weights["t5"].data.normal_(generator=generator)
    x = torch.randn(1, 32, 32, dtype=torch.float64, generator=generator)
    models.weights[f"{layer}_v"].data = x.inverse()
    watch = []
    used = models._attention(x, layer, 1, watch)
    torch.testing.assert_close(watch[0][2][:, 0, 0], used, rtol=0, atol=1e-9)
    by_distance = [used[0].diagonal(-m)[16 - m :].mean() for m in range(17)]
    found = attention_by_distance(watch[0][2])
    torch.testing.assert_close(found[0, 0], torch.stack(by_distance), rtol=0, atol=1e-9)


def test_usage_and_attention_by_distance_are_their_formulas():
    q, k = torch.randn(2, 3, 2, 6, 8, generator=torch.Generator().manual_seed(4))
    usage = pair_usage(q, k)
    for h, i in itertools.product(range(2), range(4)):
        lengths = [
            np.mean([math.hypot(*v) for v in x[:, h, :, 2 * i : 2 * i + 2].reshape(-1, 2)])
            for x in (q, k)
        ]
        assert float(usage[h, i]) == pytest.approx(lengths[0] * lengths[1], rel=1e-5)
    weights = torch.rand(3, 2, 6, 6, generator=torch.Generator().manual_seed(4))
    found = attention_by_distance(weights)
    assert found.shape == (2, 4)
    for h, m in itertools.product(range(2), range(4)):
        at = [float(weights[b, h, t, t - m]) for b in range(3) for t in range(3, 6)]
        assert float(found[h, m]) == pytest.approx(np.mean(at), rel=1e-5)


# ---- the tasks ----------------------------------------------------------------------------------


@pytest.mark.parametrize("times", [1, 2, 8])
@pytest.mark.parametrize("name", ["copy", "find", "induction"])
def test_the_answers_are_right_and_stand_as_far_back_as_is_said(name, times):
    drawn = TASKS[name].batches("test", 5, 20, times * 64)()
    for row, target, distance in zip(*(part.tolist() for part in drawn), strict=True):
        asked = [t for t, wanted in enumerate(target) if wanted != IGNORE]
        for t in asked:
            if name == "copy":
                answer = t - LAG
            elif name == "find":
                meant = row[t] - QUERY + 1  # the way of marking that the query names
                (answer,) = (s for s, token in enumerate(row) if token // SYMBOLS == meant)
            else:
                answer = max(s for s in range(t) if row[s] == row[t]) + 1
            assert target[t] == (row[answer] % SYMBOLS if name == "find" else row[answer])
            assert t - answer == distance[t] >= 0
        if name == "induction":
            assert asked == [t for t, token in enumerate(row) if token in row[:t]]
            assert sum(row[t] >= SYMBOLS for t in asked) == RARE
        else:
            assert len(asked) == {"copy": times * 64 - LAG, "find": QUERIES}[name]


@pytest.mark.parametrize("name", ["find", "induction"])
def test_distances_are_asked_over_the_whole_range(name):
    for times in (1, 8):
        _, targets, distance = TASKS[name].batches("test", 0, 400, times * 64)()
        edges = [edge for edge in BINS if edge <= times * 64]
        found = np.histogram(distance[targets != IGNORE], edges)[0]
        assert (found > 100).all()


@pytest.fixture(scope="module")
def words():
    return prose()


def test_no_stretch_of_the_test_text_occurs_in_the_training_text(words):
    alphabet, parts = words
    assert len(alphabet) == TASKS["language"].vocabulary
    train = b"\0".join(parts["train"])
    assert b"In the beginning God created the heavens and the earth." in train
    for split in ("valid", "test"):
        assert sum(map(len, parts[split])) > 250_000
        joined = b"\0".join(parts[split])
        assert all(len(piece) > 8 * 64 for piece in parts[split])
        for at in np.random.default_rng(0).integers(len(joined) - APART, size=1000):
            assert joined[at : at + APART] not in train
    tokens, targets, _ = TASKS["language"].batches("test", 0, 5, 128)()
    assert torch.equal(tokens[:, 1:], targets[:, :-1])
    for row in tokens:
        text = bytes(alphabet[i] for i in row.tolist())
        assert any(text in piece for piece in parts["test"])


# ---- scores and statistics ----------------------------------------------------------------------


def test_a_score_counts_far_answers_and_every_bin():
    task, models = TASKS["find"], build(TASKS["find"], "rope", (0, 1))

    def right(texts, watch=None):  # knows the answer only where it is 40 or more away
        logits = torch.zeros(*texts.shape, task.vocabulary)
        for s, b in itertools.product(range(texts.shape[0]), range(texts.shape[1])):
            row = texts[s, b]
            for t in (row >= QUERY).nonzero().flatten().tolist():
                at = int((row // SYMBOLS == row[t] - QUERY + 1).nonzero())
                answer = int(row[at]) % SYMBOLS if t - at >= 40 else task.vocabulary - 1
                logits[s, b, t, answer] = 1.0
        return logits

    models.forward = right
    found = score(models, task, "test", (0, 1), 4)
    assert found["accuracy"] == [1.0, 1.0]
    assert np.shape(found["bins"]) == (7, 2)
    assert found["bins"][0] == [0.0, 0.0]
    assert found["bins"][-1] == [1.0, 1.0]
    near = score(models, task, "test", (0, 1), 1)["accuracy"]
    assert all(0.0 < v < 0.5 for v in near)


def test_the_spread_stays_among_the_values_and_covers_what_it_says():
    values = [0.9, 1.0, 1.0, 0.2, 1.0, 1.0, 0.7, 0.95]
    assert summary.spread(values)[:3] == pytest.approx((0.975, 0.7, 1.0))
    assert summary.coverage(8) == pytest.approx(1 - 18 / 256)
    drawn = np.sort(np.random.default_rng(0).random((20_000, 8)), axis=1)
    held = ((drawn[:, 1] <= 0.5) & (drawn[:, -2] >= 0.5)).mean()
    assert held == pytest.approx(summary.coverage(8), abs=0.006)
    with pytest.raises(ValueError, match="at least six, one a seed, got 5"):
        summary.spread(values[:5])


def test_the_sign_flip_test_is_exact():
    assert summary.sign_flip([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]) == 1 / 256
    assert summary.sign_flip([-0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]) == 2 / 256
    assert summary.sign_flip([0.0] * 8) == 1.0
    noise = np.random.default_rng(1).standard_normal((2000, 8))
    p = np.array([summary.sign_flip(row) for row in noise])
    assert (p <= 0.05).mean() == pytest.approx(12 / 256, abs=0.015)


def test_holms_correction_is_his():
    assert summary.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert summary.holm([0.5, 0.9]) == pytest.approx([1.0, 1.0])
    assert summary.holm([1 / 256] * 12) == pytest.approx([12 / 256] * 12)


def test_the_nearest_trained_code_of_a_selection():
    def far(bank, weights):
        return summary.nearest_trained(np.array(bank), np.array(weights), 64, [63, 107, 500])

    alone = far([1.0], [1.0])
    assert alone == pytest.approx([0, abs(np.exp(1j * 107) - np.exp(1j * 63)), 0], abs=0.13)
    assert alone[1] == pytest.approx(0.0177, abs=1e-4)  # 44 is seven turns to within 0.018
    both = far([1.0, 0.5623], [0.5, 0.5])
    assert both[0] == 0.0
    assert both[2] > 3 * alone[2]
    assert far([1.0, 0.5623], [1.0, 0.0]) == pytest.approx(alone)


def test_predictions_are_few_enough_for_eight_seeds_and_name_what_is_tried():
    compared = 0
    for one in summary.predictions():
        for side in (one["of"], one.get("over", one["of"])):
            assert side["encoding"] in command.TRIED[one["task"]]
        assert ("over" in one) + ("least" in one) + ("most" in one) == 1
        compared += "over" in one
    assert compared / 2 ** len(command.SEEDS) < summary.SIGNIFICANT


def test_predictions_are_judged(monkeypatch):
    def record(name, values, bits):
        test = {"none": {"1": {"accuracy": values, "bits": bits}}}
        return {"purpose": "measure", "encoding": name, "test": test}

    runs = [record("a", [1.0] * 7 + [0.0], [1.0] * 8), record("b", [0.5] * 8, [2.0] * 8)]
    records = {
        name: {"task": name, "settings": {"encodings": ["a", "b", "c"]}, "runs": runs}
        for name in ("copy", "language")
    }
    a, b, c = ({"encoding": name} for name in "abc")
    given = [
        {"task": "copy", "of": a, "least": 0.9},
        {"task": "copy", "of": b, "most": 0.4},
        {"task": "language", "of": a, "over": b},
        {"task": "copy", "of": b, "over": a},
        {"task": "copy", "of": c, "over": a},
    ]
    monkeypatch.setattr(summary, "predictions", lambda path: given)
    judged = summary.judge(records)
    assert [one["holds"] for one in judged] == [True, False, True, False, None]
    assert judged[2]["corrected"] == pytest.approx(3 / 256)


# ---- comparisons and tables ---------------------------------------------------------------------


def made(name, purpose, rate, values, steps=10):
    test = {"none": {"1": {"accuracy": values, "bits": [1 - v for v in values]}}}
    return {
        "purpose": purpose,
        "encoding": name,
        "learning_rate": rate,
        "steps": steps,
        "test": test,
    }


def contested(**changed):
    """A record in which a beats b everywhere, but for what is changed."""
    runs = []
    for name, value in (("a", 0.8), ("b", 0.5)):
        runs += [made(name, "measure", 1e-2, [value] * 8), made(name, "twice", 1e-2, [value] * 2)]
        runs += [made(name, "choose", rate, [value] * 2) for rate in (3e-3, 1e-2, 3e-2, 1e-1)]
    for run in runs:
        if run["encoding"] == "a" and (run["purpose"], run["learning_rate"]) in changed.values():
            scores = run["test"]["none"]["1"]
            scores["accuracy"] = [0.4] * len(scores["accuracy"])
    return {"task": "copy", "settings": {"encodings": ["a", "b"]}, "runs": runs}


def test_a_comparison_stands_if_seeds_steps_and_rates_agree():
    found = summary.compare(contested(), "a", "b")
    assert found.stands
    assert (found.wins, found.p) == (8, 1 / 256)
    assert found.twice == found.lower == found.higher == pytest.approx((0.3, 0.3))
    assert not summary.compare(contested(), "b", "a").stands
    for changed in (("measure", 1e-2), ("twice", 1e-2), ("choose", 3e-3), ("choose", 3e-2)):
        assert not summary.compare(contested(one=changed), "a", "b").stands
    assert summary.compare(contested(one=("choose", 1e-1)), "a", "b").stands
    assert summary.compare(contested() | {"task": "language"}, "b", "a").wins == 0  # in bits
    lowest = contested()
    lowest["runs"] = [r for r in lowest["runs"] if r["learning_rate"] != 3e-3]
    found = summary.compare(lowest, "a", "b")
    assert found.lower is None
    assert found.stands


def rows(text):
    head, _, *lines = text.split("\n")
    width = head.count(" | ")
    assert all(line.count(" | ") == width for line in lines)
    return [line.strip("| ").split(" | ") for line in lines]


@pytest.mark.parametrize("name", TASKS)
def test_the_tables_hold_every_score_of_the_record(name):
    record = summary.load(name)
    what = "bits" if name == "language" else "accuracy"
    count = len(record["settings"]["encodings"])
    chosen = [run for run in record["runs"] if run["purpose"] != "measure"]
    assert len(rows(tables.scores(record, what))) == count
    assert len(rows(tables.rates(record, what))) == len(chosen)
    shown = tables.scores(record, what) + tables.aids(record, what)
    for run in record["runs"]:
        if run["purpose"] != "measure":
            continue
        for kind, tests in run["test"].items():
            for times, found in tests.items():
                assert tables.cell(found[what]) in shown, (run["encoding"], kind, times)
    if name in ("find", "induction"):
        tests = [t for r in record["runs"] if r["purpose"] == "measure" for t in r["test"].values()]
        assert len(rows(tables.by_distance(record))) == sum(map(len, tests))


# ---- the record ---------------------------------------------------------------------------------


class Pool:
    """Does at once what it is given, in this process."""

    def __init__(self, *_, **__):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def submit(self, work, job):
        future = Future()
        future.set_result(work(job))
        return future


class Stub:
    """Stands for the work of a job: it stops after some, and one rate is the best."""

    def __init__(self, limit=math.inf, best=0.03):
        self.done, self.limit, self.best = [], limit, best

    def __call__(self, job):
        if len(self.done) == self.limit:
            raise KeyboardInterrupt
        self.done.append(job)
        bits = abs(math.log(job.learning_rate / self.best))
        own = {**job._asdict(), "seeds": list(job.seeds)}
        return {**own, "valid_bits": [bits, bits], "test": {"none": {"1": {"accuracy": [1.0]}}}}


@pytest.fixture
def tried(monkeypatch, tmp_path):
    """Run the command with a stub for the work; return what runs it and the folder."""

    def run(*arguments, limit=math.inf, best=1e-2):
        stub = Stub(limit, best)
        monkeypatch.setattr(command, "run", stub)
        monkeypatch.setattr("sys.argv", ["experiments", *arguments, "--workers", "1"])
        command.main()
        return stub.done

    monkeypatch.setattr(command, "RESULTS", tmp_path)
    monkeypatch.setattr(command, "ProcessPoolExecutor", Pool)
    return run, tmp_path


def test_an_interrupted_run_goes_on_where_it_was_cut(tried):
    run, folder = tried
    names = command.TRIED["induction"]
    with pytest.raises(KeyboardInterrupt):
        run("induction", limit=20)
    first = json.loads((folder / "induction.json").read_text("utf8"))["runs"]
    rest = run("induction")
    assert len(first) + len(rest) == len(names) * (3 + 2)
    assert run("induction") == []


@pytest.mark.parametrize(("best", "rates"), [(1e-2, 3), (0.1, 5), (1e-3, 5), (3e-2, 4)])
def test_the_grid_grows_until_the_best_rate_lies_inside(tried, best, rates):
    run, folder = tried
    run("induction", best=best)
    record = json.loads((folder / "induction.json").read_text("utf8"))
    for encoding in command.TRIED["induction"]:
        losses = command.tried(record, encoding)
        assert len(losses) == rates
        assert min(losses) < command.chosen(record, encoding) == best < max(losses)
        for purpose, seeds, steps in (("measure", command.SEEDS, 1), ("twice", (1000, 1001), 2)):
            (found,) = summary.runs(record, encoding, purpose)
            assert found["learning_rate"] == best
            assert found["steps"] == steps * TASKS["induction"].steps
            assert tuple(found["seeds"]) == seeds


def test_other_settings_are_refused_and_fresh_begins_anew(tried):
    run, folder = tried
    everything = run("induction")
    path = folder / "induction.json"
    record = json.loads(path.read_text("utf8"))
    record["settings"]["steps"] += 1
    path.write_text(json.dumps(record), "utf8")
    with pytest.raises(SystemExit, match="other settings"):
        run("induction")
    assert sorted(run("induction", "--fresh")) == sorted(everything)


def test_no_seed_that_chose_a_rate_is_measured():
    assert not set(command.SEEDS) & set(command.CHOOSING_SEEDS)
    assert len(command.SEEDS) >= 8


def test_a_job_keeps_its_weights_and_measures_everything(monkeypatch, tmp_path):
    monkeypatch.setattr(running, "WEIGHTS", tmp_path)
    monkeypatch.setattr(running, "TEXTS", dict.fromkeys((1, 2, 4, 8), 4))
    seeds = (0, 1)
    job = Job("measure", "copy", "rope", 1e-2, 2, seeds)
    first = running.run(job)
    assert len(list(tmp_path.iterdir())) == 1
    monkeypatch.setattr(running, "train", None)
    again = running.run(job)
    assert first["test"] == again["test"]
    wanted = {"none", "stored", "bfloat16", *AIDS, *RAMPS, "near", "clamp"}
    assert set(first["test"]) == wanted
    assert list(first["test"]["none"]) == ["1", "2", "4", "8"]
    assert np.shape(first["attention"]) == (2, 2, 1, 33)
    assert np.shape(first["usage"]) == (2, 2, 1, 16)


@pytest.mark.parametrize("path", sorted(summary.RESULTS.glob("*.json")), ids=lambda path: path.stem)
def test_what_is_recorded_was_made_with_these_settings(path):
    record = json.loads(path.read_text("utf8"))
    assert record["settings"] == command.settings(TASKS[path.stem])
    for run in record["runs"]:
        seeds = command.SEEDS if run["purpose"] == "measure" else command.CHOOSING_SEEDS
        assert tuple(run["seeds"]) == seeds
        if run["purpose"] != "choose":
            assert run["learning_rate"] == command.chosen(record, run["encoding"])
