"""A model that is trained in the page is the record's: weights, batches, losses, scores, bugs."""

import itertools

import numpy as np
import pytest
import torch

from experiments import model as models_of
from experiments import recent, run, summary
from experiments.figure import FIXED, how, train_it_data
from experiments.model import Transformers, t5_bucket
from experiments.tasks import IGNORE, TASKS
from rope_minimal import apply_rope
from ropebook import figures
from ropebook.figures.train_it import BUGS, ENCODINGS
from ropebook.figures.train_it import TASKS as OFFERED
from tests.tools.node import FOLDER, Node

NAMES = [*run.ENCODINGS, *FIXED]
SEEDS = (0, 3)
STEPS = 50
MORE = (FOLDER.parents[1] / "tests" / "tools" / "training.mjs").as_uri()


class EnoughError(Exception):
    """The losses that are wanted are there."""


def losses(monkeypatch, task, models, seeds, rate):
    """Return the losses of the first steps of `experiments.run.fit`, (seeds, steps)."""
    found = []

    def spy(logits, targets):
        size = (targets != IGNORE).flatten(1).sum(dim=1)
        each = torch.nn.functional.cross_entropy(
            logits.flatten(0, -2), targets.flatten(), ignore_index=IGNORE, reduction="none"
        )
        loss = each.view(targets.shape).flatten(1).sum(dim=1) / size
        found.append(loss.tolist())
        if len(found) == STEPS:
            raise EnoughError
        return loss

    monkeypatch.setattr(run, "cross_entropy", spy)
    with pytest.raises(EnoughError):
        run.fit(models, task, seeds, rate, task.steps)
    return np.array(found).T


def in_page(node, task, how, rate, seeds=SEEDS):
    wanted = {"task": task.name, "how": how, "rate": rate, "steps": task.steps}
    asked = [{**wanted, "seed": seed} for seed in seeds]
    return np.array([node.call("training.js", "run", one, STEPS)["losses"] for one in asked])


def as_in_page(node, task, how, models, seeds=SEEDS):
    """Give models the page's first weights, in 64 bits."""
    models.double()
    for i, seed in enumerate(seeds):
        first = node.call("training.js", "initialWeights", task.name, seed, how)["named"]
        assert {name.replace(".", "_") for name in first} == set(models.weights)
        for name, values in first.items():
            part = models.weights[name.replace(".", "_")].data[i]
            own = torch.tensor(values, dtype=torch.float64).view_as(part)
            torch.testing.assert_close(part, own, rtol=0, atol=5e-7)
            part.copy_(own)
    return models


# ---- what is drawn ------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1, 2**32 - 1])
def test_the_generator_is_that_of_torch(node, seed):
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.rand(700, generator=generator).tolist()
    drawn += torch.randn(4, 16, generator=generator).flatten().tolist()
    drawn += torch.randint(50, (9,), generator=generator).tolist()
    assert node.ask(MORE, "drawn", seed) == pytest.approx(drawn, abs=1e-6)


@pytest.mark.parametrize("length", [64, 512])
@pytest.mark.parametrize("split", ["train", "test"])
@pytest.mark.parametrize("task", OFFERED)
def test_batches_are_those_of_the_record(node, task, split, length):
    draw = TASKS[task].batches(split, 5, 4, length)
    batches = node.ask(MORE, "firstBatches", task, split, 5, 4, length, 3)
    for batch in batches:
        for name, wanted in zip(("tokens", "targets", "distance"), draw(), strict=True):
            found = torch.tensor([text[name] for text in batch])
            if name == "targets":
                found[found == -1] = IGNORE
            assert torch.equal(found, wanted), name


@pytest.mark.parametrize("farthest", [64, 128])
def test_buckets_are_those_of_t5(node, farthest):
    wanted = t5_bucket(torch.arange(512), farthest).tolist()
    assert [node.call("training.js", "bucket", m, farthest) for m in range(512)] == wanted


# ---- what is computed ---------------------------------------------------------------------------


@pytest.mark.drawn(6)
@pytest.mark.parametrize("task", OFFERED)
@pytest.mark.parametrize("name", NAMES)
def test_losses_are_those_of_the_record_step_by_step(node, monkeypatch, name, task):
    """In 64 bits to a millionth; as the record runs, in 32 bits, to 1e-4."""
    task = TASKS[task]
    models = as_in_page(node, task, how(name), recent.build(task, name, SEEDS))
    exact = losses(monkeypatch, task, models, SEEDS, 0.01)
    assert exact.max() - exact.min() > 0.1, "something is learned"
    np.testing.assert_allclose(in_page(node, task, how(name), 0.01), exact, rtol=0, atol=1e-6)
    recorded = losses(monkeypatch, task, recent.build(task, name, SEEDS), SEEDS, 0.001)
    np.testing.assert_allclose(in_page(node, task, how(name), 0.001), recorded, rtol=0, atol=1e-4)


class Restarting(Transformers):
    """Positions begin again every 16 tokens."""

    def _table(self, length):
        return tuple(part[torch.arange(length) % 16] for part in super()._table(length))


def with_bug(monkeypatch, task, bug, encoding="rope"):
    """Return models with the bug made in Python."""
    if bug == "q and k in different layouts":
        return run.build(task, "mixed", SEEDS)
    if bug == "positions begin again every 16":
        return run.build(task, encoding, SEEDS, Restarting)
    if bug == "the base is lost":
        return run.build(task, "one_plane", SEEDS)
    turns = itertools.cycle((1, -1))  # q, then k

    def turned(x, cos, sin, *, interleaved):
        return apply_rope(x, cos, next(turns) * sin, interleaved=interleaved)

    monkeypatch.setattr(models_of, "apply_rope", turned)
    return run.build(task, encoding, SEEDS)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("task", ["copy", "induction"])
@pytest.mark.parametrize("bug", BUGS[1:])
def test_a_bug_is_the_same_bug_in_python(node, monkeypatch, bug, task):
    task, sound = TASKS[task], how("rope")
    broken = node.call("train_it.js", "broken", sound, bug)
    models = as_in_page(node, task, broken, with_bug(monkeypatch, task, bug))
    exact = losses(monkeypatch, task, models, SEEDS, 0.01)
    found = in_page(node, task, broken, 0.01)
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-6)
    assert abs(found - in_page(node, task, sound, 0.01)).max() > 1e-3


@pytest.mark.drawn(1)
@pytest.mark.parametrize(("bug", "low", "high"), [(BUGS[2], 0.6, 0.85), (BUGS[4], 0.98, 1)])
def test_two_bugs_are_as_quiet_as_the_page_says(node, bug, low, high):
    broken = node.call("train_it.js", "broken", how("rope"), bug)
    asked = {"task": "copy", "how": broken, "rate": 0.03, "seed": 0, "steps": 200}
    near, *beyond = node.call("training.js", "run", asked, 200, True)["scores"]
    assert low <= near <= high
    assert beyond[-1] < 0.3
    if bug == BUGS[2]:
        assert 0.05 < np.mean(beyond) < 0.2, "about one in ten"


def test_a_bug_changes_nothing_where_nothing_rotates(node):
    for name in ("nope", "alibi", "t5", "learned"):
        for bug in BUGS:
            assert node.call("train_it.js", "broken", how(name), bug) == how(name)


@pytest.mark.parametrize(
    ("name", "bug"),
    [
        ("before", "q and k in different layouts"),
        ("before", "keys turn backwards"),
        ("mixed", "q and k in different layouts"),
        ("one_hand", "the base is lost"),
        ("one_plane", "the base is lost"),
    ],
)
def test_a_bug_that_changes_nothing_is_none(node, name, bug):
    assert node.call("train_it.js", "broken", how(name), bug) == how(name)
    assert node.call("train_it.js", "broken", how(name), "positions begin again every 16") != how(
        name
    )


def test_the_attention_that_is_shown_is_that_of_the_record(node):
    task = TASKS["copy"]
    models = run.build(task, "alibi", (2,))
    watched = []
    models(task.batches("train", 2, task.batch, task.window)()[0][None], watched)
    wanted = [models_of.attention_by_distance(weights)[0, 0] for *_, weights in watched]
    asked = {"task": "copy", "how": how("alibi"), "rate": 0.01, "seed": 2, "steps": 200}
    found = node.call("training.js", "run", asked, 1)["attention"]
    np.testing.assert_allclose(found, torch.stack(wanted).detach(), rtol=0, atol=1e-6)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", ["rope", "local_nope", "t5", "learned", "alibi"])
def test_scores_lie_where_those_of_the_record_lie(node, name):
    """The medians of three seeds: at a rate of 0.1, rounding alone moves a single one."""
    task, record = TASKS["copy"], recent.records()["copy"]
    rate = summary.measured(record, name)["learning_rate"]
    asked = {"task": "copy", "how": how(name), "rate": rate, "steps": task.steps}
    found = [
        node.call("training.js", "run", {**asked, "seed": seed}, task.steps, True)["scores"]
        for seed in range(3)
    ]
    for times, score in zip(run.TIMES, np.median(found, axis=0), strict=True):
        known = summary.values(record, name, times=times)
        assert min(known) - 0.02 <= score <= max(known) + 0.02, times


def test_scores_of_untrained_models_are_those_of_the_record(node):
    """What they read, and which of their answers count."""
    for name, task in itertools.product(("rope", "learned"), OFFERED):
        models = recent.build(TASKS[task], name, (1,))
        wanted = [run.score(models, TASKS[task], "test", (1,), n)["accuracy"] for n in run.TIMES]
        asked = {"task": task, "how": how(name), "rate": 0.01, "seed": 1, "steps": 100}
        found = node.call("training.js", "run", asked, 0, True)["scores"]
        np.testing.assert_allclose(found, np.array(wanted)[:, 0], rtol=0, atol=2e-3)


# ---- the figure ---------------------------------------------------------------------------------


def test_encodings_and_tasks_are_those_of_the_record():
    data = train_it_data()
    words = [one.words for one in run.ENCODINGS.values()]
    assert [*words, *(recent.RECENT[name].words for name in FIXED)] == ENCODINGS
    assert list(data["encodings"]) == ENCODINGS
    assert list(data["tasks"]) == OFFERED
    assert len(FIXED) == 3, "so the page says of chapter 16"
    page = (FOLDER.parents[1] / "notebooks" / "train-it-yourself.ipynb").read_text("utf8")
    assert "for the last three of the list, [chapter 16]" in page
    assert figures.train_it(data).data == data
    entry = data["tasks"]["copy"]["record"]["RoPE"]
    scores = summary.values(summary.load("copy"), "rope", times=8)
    assert entry["range"][3] == [min(scores), max(scores)]


def test_data_that_misses_an_encoding_are_refused():
    data = train_it_data()
    del data["encodings"]["ALiBi"]
    with pytest.raises(ValueError, match="data must hold the encodings RoPE, "):
        figures.train_it(data)


def test_a_plan_takes_the_rate_of_the_record_and_names_what_differs(node):
    data = train_it_data()

    def plan(**own):
        traits = {"encoding": "ALiBi", "bug": "none", "task": "copy", "seed": 0} | own
        return node.call("train_it.js", "plan", data, {"rate": "as in the record"} | traits)

    assert (plan()["rate"], plan()["steps"], plan()["name"]) == (0.03, 200, "ALiBi")
    assert plan(rate="0.001", seed=3)["name"] == "ALiBi, rate 0.001, seed 3"
    assert plan(bug=BUGS[2])["idle"]
    assert plan(bug=BUGS[2])["name"] == "ALiBi"
    bugged = plan(encoding="RoPE", bug=BUGS[2])
    assert (bugged["name"], bugged["known"]) == ("RoPE, keys turn backwards", None)
    assert not plan()["borrowed"]
    unseen = {"encoding": "learned, added to the input", "task": "find"}
    assert (plan(**unseen)["rate"], plan(**unseen)["borrowed"]) == (0.01, True)  # RoPE's
    assert not plan(**unseen, rate="0.01")["borrowed"]


def test_a_trainer_pauses_resumes_and_goes_on_where_it_was(node):
    own = Node()  # with a clock that goes: a picture's stage stops that of the shared one
    told = own.ask(MORE, "rehearsal", how("rope"))
    own.close()
    assert told["paused"] < told["steps"] == len(told["losses"])
    asked = {"task": "copy", "how": how("rope"), "rate": 0.01, "seed": 0, "steps": told["steps"]}
    assert told["losses"] == node.call("training.js", "run", asked, told["steps"])["losses"]
    assert told["after stop"] == 0
