"""The public checkpoints' rows are whole: where each was read, and numbers that fit each other."""

import json
import re
from collections.abc import Iterator
from datetime import date
from typing import Any

import pytest

import atlas

PATH = atlas.RESULTS / "checkpoints.json"
ROWS: list[dict[str, Any]] = json.loads(PATH.read_text(encoding="utf-8"))
KINDS = {"text", "vision-language", "audio-language", "encoder", "vision", "video"}
NEEDED = {"name", "aliases", "kind", "config", "complete", "source"}
ALLOWED = NEEDED | {"unseen", "translated_from", "note", "seen_again"}
FILE, PAGE = {"repository", "path", "commit", "read"}, {"address", "read"}


def plain(text: str) -> str:
    """The text as a search reads it: small letters, no spaces, hyphens or underscores."""
    return re.sub("[-_ ]", "", text.lower())


def parts(config: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The configuration and those nested in it."""
    yield config
    for value in config.values():
        if isinstance(value, dict):
            yield from parts(value)


@pytest.fixture(params=ROWS, ids=lambda row: row["name"])
def row(request: pytest.FixtureRequest) -> dict[str, Any]:
    return request.param


def test_the_file_is_sorted_small_and_without_doubles() -> None:
    text = PATH.read_text(encoding="utf-8")
    assert text == json.dumps(ROWS, indent=1, ensure_ascii=False) + "\n"
    names = [row["name"].lower() for row in ROWS]
    assert names == sorted(set(names))
    assert len(ROWS) >= 80
    assert len(text) < 200_000
    aliases = [plain(alias) for row in ROWS for alias in row["aliases"]]
    assert len(aliases) == len(set(aliases))


def test_a_row_says_what_it_is_and_where_it_was_read(row: dict[str, Any]) -> None:
    assert set(row) >= NEEDED
    assert set(row) <= ALLOWED
    assert re.fullmatch(r"[\w.-]+/[\w.-]+", row["name"])
    assert row["kind"] in KINDS
    assert row["aliases"]
    assert all(alias == alias.lower().strip() for alias in row["aliases"])
    assert row["complete"] == ("unseen" not in row)
    assert "translated_from" not in row or not row["complete"]
    places = [row["source"]] + ([row["seen_again"]] if "seen_again" in row else [])
    for place in places:
        assert date.fromisoformat(place["read"]) >= date(2026, 11, 28)
        if "address" in place:
            assert set(place) - {"date"} == PAGE
            assert place["address"].startswith("https://")
            assert date.fromisoformat(place.get("date", "2020-01-01")) < date(2026, 11, 28)
            continue
        assert set(place) == FILE
        assert re.fullmatch(r"[\w.-]+/[\w.-]+", place["repository"])
        assert place["path"]
        assert re.fullmatch("[0-9a-f]{40}", place["commit"])
    assert len({place.get("repository") for place in places}) == len(places)
    assert row["kind"] == "video" or row["config"]["model_type"]


def width(config: dict[str, Any]) -> float | None:
    """Channels of a head, from the field or from the sizes."""
    if config.get("qk_rope_head_dim"):
        return config["qk_rope_head_dim"]
    if config.get("head_dim"):
        return config["head_dim"]
    channels = config.get("hidden_size", config.get("n_embd", config.get("d_model")))
    heads = config.get("num_attention_heads", config.get("n_head", config.get("num_heads")))
    return channels / heads if channels and heads else None


def test_the_numbers_of_a_row_fit_each_other(row: dict[str, Any]) -> None:
    for config in parts(row["config"]):
        head = width(config)
        if head is not None:
            assert head == int(head)
            assert head % 2 == 0
            assert 16 <= head <= 512
        base = config.get("rope_theta", config.get("rotary_emb_base"))
        assert base is None or 100 <= base <= 1e8
        layers = config.get("num_hidden_layers")
        for field in ("layer_types", "hybrid_layer_pattern"):
            assert len(config.get(field) or []) in {0, layers}
        heads, shared = config.get("num_attention_heads"), config.get("num_key_value_heads")
        assert not (heads and shared) or heads % shared == 0
        fraction = config.get("partial_rotary_factor", config.get("rotary_pct", 1))
        assert 0 < fraction <= 1
        for place in ("rope_scaling", "rope_parameters"):
            scaling = config.get(place) or {}
            turned = (head or 0) * scaling.get("partial_rotary_factor", fraction)
            if "mrope_section" in scaling:
                assert 2 * sum(scaling["mrope_section"]) == turned
            for field in ("long_factor", "short_factor"):
                assert 2 * len(scaling.get(field, [])) in {0, turned}
            factor = scaling.get("factor")
            assert factor is None or factor >= 1
            original = scaling.get("original_max_position_embeddings")
            longest = config.get("max_position_embeddings")
            assert not (original and longest) or original <= longest
