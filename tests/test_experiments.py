"""The experiments: fair contests, right answers, honest intervals, complete records."""

import json
import math
from concurrent.futures import ThreadPoolExecutor

import mpmath
import numpy as np
import pytest
import torch

from experiments import __main__ as command
from experiments import summary
from experiments.encodings import ENCODINGS, STRETCHES, stretched
from experiments.model import Attention, Transformer, attention_by_distance, pair_usage
from experiments.run import LEARNING_RATES, SIZES, TIMES, score, train
from experiments.tasks import IGNORE, LAG, MARKER, QUERIES, QUERY, SYMBOLS, TASKS, text
from rope_minimal import RotarySelfAttention, inverse_frequencies, rescaled_frequencies, rope_table

ROPE = ENCODINGS["rope"]


def model(how, task=TASKS["copy"]):
    torch.manual_seed(3)
    return Transformer(how, task.vocabulary, task.window, longest=8 * task.window, **SIZES)


# ---- the models ---------------------------------------------------------------------------------


def test_attention_with_rope_is_the_attention_of_the_package():
    torch.manual_seed(0)
    own = Attention(64, 2, max_seq_len=1)
    parent = RotarySelfAttention(64, 2, max_seq_len=40, interleaved=True)
    parent.load_state_dict(own.state_dict())
    x = torch.randn(3, 40, 64)
    tables = rope_table(torch.arange(40), 32)
    torch.testing.assert_close(own(x, tables, ROPE), parent(x), rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ENCODINGS)
def test_a_seed_gives_every_encoding_the_same_weights(name):
    ours, rope = (model(ENCODINGS[one]).state_dict() for one in (name, "rope"))
    assert set(ours) - set(rope) <= {"positions"}
    for key in rope:
        assert torch.equal(ours[key], rope[key])


@pytest.mark.parametrize("name", [name for name in ENCODINGS if name != "rope"])
def test_every_encoding_computes_something_of_its_own(name):
    tokens = torch.randint(16, (2, 48), generator=torch.Generator().manual_seed(1))
    ours, rope = (model(ENCODINGS[one])(tokens) for one in (name, "rope"))
    assert (ours - rope).abs().max() > 1e-3


@pytest.mark.parametrize("name", [name for name, how in ENCODINGS.items() if how.causal])
def test_a_causal_model_does_not_see_what_comes_later(name):
    tokens = torch.randint(16, (1, 30), generator=torch.Generator().manual_seed(2))
    other = tokens.clone()
    other[0, 20:] = (other[0, 20:] + 1) % 16
    own = model(ENCODINGS[name])
    before, after = own(tokens)[0], own(other)[0]
    torch.testing.assert_close(before[:20], after[:20], rtol=0, atol=1e-6)
    assert (before[20:] - after[20:]).abs().max() > 1e-3


def test_the_frequencies_of_the_encodings():
    theta = inverse_frequencies(32)
    bank = {n: e.inv_freq(32, 64) for n, e in ENCODINGS.items() if e.inv_freq is not None}
    assert bank["rope"] == pytest.approx(theta)
    assert bank["monotone_a"] == pytest.approx(math.pi / 64 * theta)
    assert bank["monotone_b"] == pytest.approx(2 * math.pi / 64 * theta)
    assert bank["literal"] == pytest.approx(0.4096 * theta)
    assert bank["one_plane"].tolist() == [1.0] * 16
    assert bank["fast_half"].tolist() == [*theta[:8], *[0.0] * 8]
    assert bank["slow_half"].tolist() == [*[0.0] * 8, *theta[8:]]


@pytest.mark.parametrize("kind", STRETCHES)
def test_a_stretch_is_that_of_the_package_and_none_at_the_training_length(kind):
    theta = inverse_frequencies(32)
    assert stretched(kind, 32, 64, 1)[0].tolist() == theta.tolist()
    got, attention = stretched(kind, 32, 64, 4)
    if kind == "none":
        assert got.tolist() == theta.tolist()
    elif kind == "yarn":
        own = {"factor": 4, "original_max_position_embeddings": 64}
        assert got.tolist() == rescaled_frequencies("yarn", 32, **own)[0].tolist()
    else:
        assert got[-1] == pytest.approx(theta[-1] / 4)
    assert attention == pytest.approx(1 + 0.1 * math.log(4) if kind == "yarn" else 1)


def test_usage_and_attention_by_distance_are_their_formulas():
    q, k = torch.randn(2, 3, 2, 6, 8, generator=torch.Generator().manual_seed(4))
    usage = pair_usage(q, k)
    for h in range(2):
        for i in range(4):
            lengths = [
                np.mean([math.hypot(*v) for v in x[:, h, :, 2 * i : 2 * i + 2].reshape(-1, 2)])
                for x in (q, k)
            ]
            assert float(usage[h, i]) == pytest.approx(lengths[0] * lengths[1], rel=1e-5)
    for causal in (True, False):
        found = attention_by_distance(q, k, causal)
        assert found.shape == (2, 4)
        for h in range(2):
            for m in range(4):
                weights = []
                for b in range(3):
                    for t in range(3, 6):
                        last = t + 1 if causal else 6
                        e = [math.exp(float(q[b, h, t] @ k[b, h, s]) / 8**0.5) for s in range(last)]
                        weights.append(e[t - m] / sum(e))
                assert float(found[h, m]) == pytest.approx(np.mean(weights), rel=1e-5)


# ---- the tasks ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TASKS)
def test_batches_are_the_same_at_every_time_and_differ_by_seed_and_split(name):
    task = TASKS[name]
    draw, again = (task.batches("train", 0, 4, task.window) for _ in range(2))
    first = [draw() for _ in range(2)]
    for (tokens, targets), (t, a) in zip(first, (again(), again()), strict=True):
        assert torch.equal(tokens, t)
        assert torch.equal(targets, a)
        assert tokens.shape == targets.shape == (4, task.window)
        assert 0 <= int(tokens.min()) <= int(tokens.max()) < task.vocabulary
    assert not torch.equal(first[0][0], first[1][0])
    for split, seed in (("train", 1), ("valid", 0), ("test", 0)):
        assert not torch.equal(task.batches(split, seed, 4, task.window)()[0], first[0][0])


def answers(name, tokens):
    """The right answers of one text, by brute force."""
    wanted = [IGNORE] * len(tokens)
    for t, token in enumerate(tokens):
        if name == "copy" and t >= LAG:
            wanted[t] = tokens[t - LAG]
        if name == "induction":
            earlier = [s for s in range(t) if tokens[s] == token]
            wanted[t] = tokens[earlier[-1] + 1] if earlier else IGNORE
        if name == "find" and token == QUERY:
            wanted[t] = tokens[tokens.index(MARKER) + 1]
    return wanted


@pytest.mark.parametrize("name", ["copy", "induction", "find"])
@pytest.mark.parametrize("times", [1, 2])
def test_the_answers_are_right(name, times):
    tokens, targets = TASKS[name].batches("test", 5, 20, times * TASKS[name].window)()
    for row, target in zip(tokens.tolist(), targets.tolist(), strict=True):
        assert target == answers(name, row)
        if name == "find":
            assert row.count(MARKER) == 1
            assert row.count(QUERY) == QUERIES
            assert row[row.index(MARKER) + 1] < SYMBOLS


def test_the_text_is_english_and_its_parts_have_no_byte_in_common_place():
    parts = {split: text(split) for split in ("train", "valid", "test")}
    sizes = {split: part.numel() for split, part in parts.items()}
    assert sizes["train"] > 6 * sizes["valid"]
    assert b" the " in bytes(parts["test"].flatten()[:4096].tolist())
    tokens, targets = TASKS["language"].batches("test", 0, 5, 128)()
    assert torch.equal(tokens[:, 1:], targets[:, :-1])
    corpus = bytes(parts["test"].flatten().tolist())
    for row, after in zip(tokens, targets[:, -1:], strict=True):
        assert bytes([*row.tolist(), int(after)]) in corpus


# ---- what is made of the numbers ----------------------------------------------------------------


def test_the_quantile_is_students():
    with mpmath.workdps(30):
        x = mpmath.mpf(summary.T_975)
        inside = 1 - mpmath.betainc(2, 0.5, 0, 4 / (4 + x**2), regularized=True)
    assert float(inside) == pytest.approx(0.95, abs=1e-12)


def test_an_interval_is_the_mean_and_its_error():
    values = [0.1, 0.4, 0.2, 0.5, 0.3]
    found = summary.interval(values)
    half = 2.7764451 * np.std(values, ddof=1) / math.sqrt(5)
    assert found[:3] == pytest.approx((0.3, 0.3 - half, 0.3 + half))
    assert found.values == tuple(values)
    assert not found.within_noise
    assert summary.interval([v - 0.25 for v in values]).within_noise
    assert summary.interval([0.0] * 5).within_noise
    with pytest.raises(ValueError, match="five, one a seed, got 4"):
        summary.interval(values[:4])


def test_a_difference_is_taken_seed_by_seed():
    one = {"purpose": "measure"}
    runs = [
        one | {"encoding": name, "seed": s, "test": {"float32": {"none": {"1": {"accuracy": a}}}}}
        for name, shift in (("a", 0.01), ("b", 0.0))
        for s, a in ((s, shift + 0.1 * s) for s in (3, 1, 0, 2, 4))
    ]
    record = {"settings": {"encodings": ["a", "b"]}, "runs": runs}
    assert summary.values(record, "b") == pytest.approx([0.0, 0.1, 0.2, 0.3, 0.4])
    found = summary.difference(record, "a", "b")
    assert found[:3] == pytest.approx((0.01, 0.01, 0.01))
    assert summary.mean(record, "a").within_noise is False
    with pytest.raises(ValueError, match="one of a, b; got 'c'"):
        summary.runs(record, "c")


# ---- the record ---------------------------------------------------------------------------------


@pytest.fixture
def tried(monkeypatch, tmp_path):
    """Run the command with a stub for the work; return the folder and the jobs that were done."""
    done = []

    def stub(job):
        if len(done) == stub.limit:
            raise KeyboardInterrupt
        done.append(job)
        purpose, _, encoding, rate, seed = job
        named = {"purpose": purpose, "encoding": encoding, "learning_rate": rate, "seed": seed}
        return named | {"valid_bits": abs(math.log(rate / 3e-3))}

    stub.limit = math.inf

    def run(*arguments, limit=math.inf):
        done.clear()
        stub.limit = limit
        monkeypatch.setattr("sys.argv", ["experiments", *arguments, "--workers", "1"])
        command.main()
        return list(done)

    monkeypatch.setattr(command, "run", stub)
    monkeypatch.setattr(command, "RESULTS", tmp_path)
    monkeypatch.setattr(
        command, "ProcessPoolExecutor", lambda workers, mp_context: ThreadPoolExecutor(workers)
    )
    return run, tmp_path


def test_an_interrupted_run_goes_on_where_it_was_cut(tried):
    run, folder = tried
    names = command.encodings_of(TASKS["induction"])
    with pytest.raises(KeyboardInterrupt):
        run("induction", limit=50)
    first = json.loads((folder / "induction.json").read_text("utf8"))["runs"]
    rest = run("induction")
    assert len(first) + len(rest) == len(names) * (len(LEARNING_RATES) + len(command.SEEDS))
    assert run("induction") == []
    record = json.loads((folder / "induction.json").read_text("utf8"))
    assert len({command._key(r) for r in record["runs"]}) == len(record["runs"])
    assert {r["learning_rate"] for r in record["runs"] if r["purpose"] == "measure"} == {3e-3}
    assert {r["seed"] for r in record["runs"] if r["purpose"] == "choose"} == {1000}


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


@pytest.mark.parametrize("name", TASKS)
def test_the_record_is_complete_and_made_with_these_settings(name):
    task, record = TASKS[name], summary.load(name)
    assert record["settings"] == command.settings(task)
    assert record["versions"]["torch"].split("+")[0] == torch.__version__.split("+")[0]
    assert record["date"] >= "2026"
    names = command.encodings_of(task)
    assert len(record["runs"]) == len(names) * (len(LEARNING_RATES) + len(command.SEEDS))
    for encoding in names:
        runs = summary.runs(record, encoding)
        assert [r["seed"] for r in runs] == list(command.SEEDS)
        assert {r["learning_rate"] for r in runs} == {command.chosen(record, encoding)}
        kinds = STRETCHES if encoding == "rope" else ("none",)
        for r in runs:
            assert set(r["test"]) == {"float32", "bfloat16"}
            assert all(tuple(r["test"][t]) == kinds for t in r["test"])
            assert list(r["test"]["float32"]["none"]) == [str(times) for times in TIMES]
            assert np.shape(r["usage"]) == (2, 2, 16)
            assert np.shape(r["attention"]) == (2, 2, task.window // 2 + 1)


def test_a_small_cell_trained_again_gives_the_recorded_number():
    task, record = TASKS["copy"], summary.load("copy")
    torch.set_num_threads(1)
    trained = train(task, "one_plane", 0, command.chosen(record, "one_plane"), task.steps)
    for times, tolerance in ((1, 0.01), (4, 0.1)):  # another machine rounds another way
        recorded = summary.values(record, "one_plane", times=times)[0]
        found = score(trained, task, "test", 0, times)["accuracy"]
        assert found == pytest.approx(recorded, abs=tolerance)
    # and its heads see the doubles of 7 that chapter 12 draws
    for block in trained.blocks:
        block.attention.watched = True
    with torch.no_grad():
        trained(task.batches("test", 0, 16, 4 * task.window)()[0])
    heads = torch.cat([attention_by_distance(*b.attention.seen, True) for b in trained.blocks])
    sharp = heads[heads[:, LAG].argmax()]
    assert set(sharp.topk(3).indices.tolist()) == {7, 51, 95}
