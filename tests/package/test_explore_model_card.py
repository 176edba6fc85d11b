"""The page's card of every public checkpoint: whole sentences, and lines to write that hold."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import atlas
from rope_minimal import inverse_frequencies
from ropebook import aliasing
from ropescope.configuration import load_rules, rope_of

TWIN = (Path(__file__).parents[1] / "tools" / "cards.mjs").as_uri()
ROWS = json.loads((atlas.RESULTS / "checkpoints.json").read_text("utf8"))


def known(config: dict) -> bool:
    """Whether a configuration has a rule and is not refused."""
    try:
        return rope_of(config).known
    except ValueError:
        return False


ROWS = [row for row in ROWS if known(row["config"])]


@pytest.fixture(scope="module")
def cards(node):
    texts = [json.dumps(row["config"]) for row in ROWS]
    found = node.ask(TWIN, "cards", texts, json.dumps(load_rules()), 4)
    return dict(zip((row["name"] for row in ROWS), found, strict=True))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_a_card_has_no_hole(cards, row):
    for part in cards[row["name"]]:
        assert not re.search(r"NaN|undefined|null|object|∞|not a number", part["said"])


def of_vllm(part: dict) -> dict:
    """What the command for vLLM sets in the fields of a part."""
    (command,) = (code for title, code in part["blocks"] if title == "vLLM")
    told = json.loads(re.search(r"--hf-overrides '(.*)'", command, re.DOTALL)[1])
    return told.get("text_config", told)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_what_is_to_be_written_leaves_no_pair_with_a_new_angle(cards, row):
    for number, part in enumerate(cards[row["name"]]):
        if (told := part["written"]) is None:
            continue
        config = json.loads(json.dumps(row["config"]))
        own = config
        for name in filter(None, part["path"].split(".")):
            own = own[name]
        before = rope_of(config).parts[number]
        given = own.pop("rope_scaling", None) or own.get("rope_parameters") or {}
        given = given.get(part["kind"], given)
        assert {*given} - {"type", "attention_factor"} <= {*told}
        for name in ("partial_rotary_factor", "rotary_pct"):  # the lines hold by themselves
            own.pop(name, None)
        own["rope_parameters"] = of_vllm(part)["rope_parameters"]
        after = rope_of(config).parts[number]
        assert (after.base, after.width, after.layout) == (before.base, before.width, before.layout)
        waves = np.array(after.inv_freq, float)
        speed = waves if waves.ndim == 1 else np.linalg.norm(waves, axis=1)
        plain = inverse_frequencies(after.width, after.base)
        trained = before.trained_length
        assert not aliasing.unseen_pairs(speed, part["wanted"], plain, trained).any()
        assert part["wanted"] <= told["factor"] * trained * (1 + 1e-9)


def test_some_lines_are_written(cards):
    assert sum(part["written"] is not None for parts in cards.values() for part in parts) > 20


def test_what_does_not_rotate_is_told_from_what_is_not_known(node):
    says = [
        node.call("model_card.js", "wordsWithout", {"family": family, "known": known})
        for family, known in (("gpt2", True), ("gpt7", False), (None, False))
    ]
    assert "**gpt2** has no rotary embedding" in says[0]
    assert "Of **gpt7** it is not known" in says[1]
    assert "Of **this configuration** it is not known" in says[2]
