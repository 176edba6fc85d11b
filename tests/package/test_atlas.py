"""The atlas's files say what its families do: a sample drawn anew is recorded again.

``ATLAS=all`` records every family, which takes minutes: the weekly workflow does.
"""

import importlib
import os
import random
import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import atlas
from rope_minimal import wave_vectors

STATUSES = {"recorded", "refused", "dead code", "none"}
MEASURED = {
    "relative_error",
    "angle_error",
    "singular_values",
}  # sizes of rounding differ by machine
SAID = {"findings", "equally", "past_end", "why", "angle_error_at", "shared_position"}


def installed(package: str) -> str | None:
    try:
        return version(package).split("+")[0]
    except PackageNotFoundError:
        return None


def files() -> list[str]:
    """The files of a package's families."""
    others = {"checkpoints", "conversions", "engines", "rules"}
    return sorted({path.stem for path in atlas.RESULTS.glob("*.json")} - others)


@pytest.mark.parametrize("peer", files())
def test_a_file_is_whole(peer: str) -> None:
    found = atlas.load(peer)
    families = found["families"]
    assert list(families) == sorted(families)
    counts = {s: sum(e["status"] == s for e in families.values()) for s in STATUSES}
    rotations = [r for e in families.values() for r in e["rotations"]]
    wanted = {s: n for s, n in counts.items() if n} | {"rotations": len(rotations)}
    assert found["counts"] == wanted
    for name, entry in families.items():
        assert bool(entry["rotations"]) == (entry["status"] == "recorded"), name
        assert entry["status"] == "recorded" or entry["why"], name
    for row in rotations:
        pairs = atlas.all_pairs(row["pairs"])
        assert 2 * len(pairs) == row["width"] <= row["head_dim"]
        assert len(set(pairs.flatten().tolist())) == row["width"]
        if row["frequencies"] is not None:
            speeds = np.array(found["frequencies"][row["frequencies"]])
            axes = (row["axes"],) if row["axes"] > 1 else ()
            assert speeds.shape == (len(pairs), *axes)
    assert (atlas.RESULTS / f"{peer}.json").stat().st_size < 600_000


def differences(one: Any, two: Any, at: str = "") -> list[str]:
    """Return where two entries differ by more than a machine's rounding."""
    if isinstance(one, dict) and isinstance(two, dict):
        keys = sorted(set(one) | set(two))
        return [
            d
            for k in keys
            if k not in SAID | MEASURED
            for d in differences(one.get(k), two.get(k), f"{at}.{k}")
        ]
    if isinstance(one, list) and isinstance(two, list) and len(one) == len(two):
        pairs = enumerate(zip(one, two, strict=True))
        return [d for k, (a, b) in pairs for d in differences(a, b, f"{at}[{k}]")]
    numbers = isinstance(one, (int, float)) and isinstance(two, (int, float))
    if one == two or (numbers and abs(one - two) <= 1e-4 * max(abs(one), abs(two)) + 1e-9):
        return []
    return [f"{at}: {one!r} in the file, {two!r} now"]


def spread(entry: dict[str, Any], lists: list[Any]) -> dict[str, Any]:
    """Return an entry with its frequencies in place."""
    rows = [
        row | {"frequencies": None if (n := row["frequencies"]) is None else lists[n]}
        for row in entry["rotations"]
    ]
    return entry | {"rotations": rows}


def sample(families: dict[str, Any]) -> list[str]:
    if os.environ.get("ATLAS") == "all":
        return sorted(families)
    quick = [
        name
        for name, entry in sorted(families.items())
        if len(entry["rotations"]) == 1
        and entry["rotations"][0]["head_dim"] <= 128
        and entry["rotations"][0]["axes"] == 1
    ]
    return random.SystemRandom().sample(quick, 2)


def here(names: list[str]) -> Iterator[tuple[str, dict[str, Any], list[Any], float]]:
    """Record families in this process."""
    from atlas import families

    for name in names:
        lists: list[Any] = []
        yield name, families.entry_of(name, lists), lists, 0.0


def test_families_drawn_anew_are_as_the_file_says() -> None:
    pytest.importorskip("transformers")
    from atlas.__main__ import recorded as in_processes

    found = atlas.load("transformers")
    wanted = found["versions"]["transformers"]
    if installed("transformers") != wanted:
        pytest.skip(f"the file is about transformers {wanted}, not {installed('transformers')}")
    names = sample(found["families"])
    everything = os.environ.get("ATLAS") == "all"
    answers = in_processes(names, os.cpu_count() or 1) if everything else here(names)
    wrong = []
    for name, entry, lists, _ in answers:
        now = spread(entry, lists)
        written = spread(found["families"][name], found["frequencies"])
        wrong += differences(written, now, name)
    assert not wrong, f"recorded {names}: " + "; ".join(wrong[:10])


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["llamma"], "'llamma' is no family of transformers that rotates: did you mean llama"),
        (["llama", "gema3"], "argument families: 'gema3' is no family"),
        (["gema3"], "did you mean gemma3"),
        (["Llama"], "'Llama' is no family of transformers that rotates: did you mean llama"),
        ([""], "argument families: '' is no family of transformers that rotates\n"),
    ],
)
def test_a_name_that_is_no_family_is_refused(
    names: list[str], words: str, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    pytest.importorskip("transformers")
    command = importlib.import_module("atlas.__main__")
    for one in ("recorded", "save"):
        monkeypatch.setattr(command, one, lambda *_: [])
    monkeypatch.setattr("sys.argv", ["atlas", *names])
    with pytest.raises(SystemExit) as stop:
        command.main()
    assert stop.value.code == 2
    assert words in capsys.readouterr().err


def test_every_family_that_says_so_is_in_the_file() -> None:
    pytest.importorskip("transformers")
    from atlas import families

    found = atlas.load("transformers")
    if installed("transformers") != found["versions"]["transformers"]:
        pytest.skip("the file is about another version")
    assert sorted(found["families"]) == families.families()


DEAD = {
    "jamba": ("JambaConfig", "JambaAttention"),
    "nemotron_asr_streaming": (
        "NemotronAsrStreamingEncoderConfig",
        "NemotronAsrStreamingEncoderAttention",
    ),
    "nemotron_h": ("NemotronHConfig", "NemotronHAttention"),
    "parakeet": ("ParakeetEncoderConfig", "ParakeetEncoderAttention"),
}
SMALL = {"hidden_size": 32, "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 16}


def family_module(family: str, kind: str) -> Any:
    pytest.importorskip("transformers")
    return importlib.import_module(f"transformers.models.{family}.{kind}_{family}")


@pytest.mark.parametrize("family", DEAD)
@torch.no_grad()
def test_what_is_called_dead_is_not_run(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The layer attends although the functions that rotate would fail."""
    module = family_module(family, "modeling")
    config_name, attention = DEAD[family]
    config = getattr(family_module(family, "configuration"), config_name)()
    for name, size in SMALL.items():
        setattr(config, name, size)
    config._attn_implementation = "eager"

    def fail(*_: Any, **__: Any) -> None:
        raise AssertionError(f"{family} rotates")

    for name in ("apply_rotary_pos_emb", "rotate_half"):
        assert hasattr(module, name)
        monkeypatch.setattr(module, name, fail)
    layer = getattr(module, attention)(config, 0)
    x = torch.randn(1, 4, 32)
    more = {"position_embeddings": torch.randn(1, 7, 32)} if hasattr(layer, "bias_u") else {}
    assert layer(x, **more)[0].shape == x.shape


def test_the_dead_are_all_known() -> None:
    families = atlas.load("transformers")["families"]
    assert [n for n, entry in families.items() if entry["status"] == "dead code"] == sorted(DEAD)


def test_files_of_which_nothing_turns_define_nothing_that_could() -> None:
    """And the three that hand their tokens on name a family that is asked."""
    families = atlas.load("transformers")["families"]
    idle = {name: e["why"] for name, e in families.items() if e["status"] == "none"}
    assert sorted(idle) == ["cosmos3_omni", "glm46v", "minicpmv4_7", "pp_doclayout_v2"]
    for name, why in idle.items():
        text = Path(str(family_module(name, "modeling").__file__)).read_text("utf-8")
        assert not re.search(r"(def|class) \w*([Rr]otat|[Rr]otary|RoPE|apply_rope)", text), name
        heads = re.search(r"the heads are those of (\w+)", why)
        if heads:
            assert families[heads[1]]["status"] == "recorded"
            config = Path(str(family_module(name, "configuration").__file__)).read_text("utf-8")
            assert f'model_type="{heads[1]}_text"' in config
        else:
            assert not re.search(r"\bq\w* \* cos|\bcos\b.*\bquer", text), name


def test_a_note_says_where_less_than_a_model_was_recorded() -> None:
    """A model that ran is one of a family's own, and has layers."""
    pytest.importorskip("transformers")
    from transformers import PreTrainedModel

    families = atlas.load("transformers")["families"]
    for name, entry in families.items():
        for row in entry["rotations"]:
            said = [
                words for words in (atlas.NOT_RUN, atlas.TABLE_ALONE) if words in str(row["note"])
            ]
            assert len(said) == (not row["layers"]), (name, row["model"])
    for name in random.SystemRandom().sample(sorted(families), 8):
        for row in families[name]["rotations"]:
            made = getattr(family_module(name, "modeling"), row["model"], object)
            assert issubclass(made, PreTrainedModel) == bool(row["layers"]), (name, row["model"])


def test_pairs_become_runs_and_back() -> None:
    for pairs in ([(0, 1), (2, 3)], [(0, 8), (1, 9), (4, 6)], [(3, 5)], []):
        assert atlas.all_pairs(atlas.runs(pairs)).tolist() == [list(p) for p in pairs]


@pytest.mark.parametrize("family", ["dinov3_vit", "eomt_dinov3", "sapiens2"])
def test_an_image_is_recorded_as_it_is_used_and_not_stretched_by_chance(family: str) -> None:
    """In training these multiply the coordinates of a picture by a random number."""
    found = atlas.load("transformers")
    (one,) = found["families"][family]["rotations"]
    recorded = found["frequencies"][one["frequencies"]]
    np.testing.assert_allclose(recorded, wave_vectors("dinov3", 64).T / 16, atol=1e-6)
    assert np.max(recorded) * 16 == pytest.approx(4 * np.pi)
    assert "two turns from edge to edge" in one["note"]


def rotations_in(parameters: Any) -> Iterator[dict[str, Any]]:
    """Yield what a configuration says of its rotation, or of that of each kind of layer."""
    parts = [value for value in parameters.values() if isinstance(value, dict)]
    for part in parts:
        yield from rotations_in(part)
    yield from [] if parts else [parameters]


def test_a_base_or_rescaling_that_no_configuration_has_is_explained_in_a_note() -> None:
    transformers = pytest.importorskip("transformers")
    transformers.logging.set_verbosity_error()
    from atlas.families import configurations
    from atlas.recording import parts_of

    odd = {}
    for family, entry in atlas.load("transformers")["families"].items():
        configured = set()
        for part in (p for c in configurations(family) for p in parts_of(c)):
            for found in rotations_in(getattr(part, "rope_parameters", None) or {}):
                configured.add((found.get("rope_theta"), found.get("rope_type", "default")))
            named = [value for name, value in vars(part).items() if "theta" in name]
            configured |= {(theta, "default") for theta in named if isinstance(theta, int | float)}
        bases = [theta for theta, _ in configured if theta]
        kinds = {kind for _, kind in configured} | {"default"}
        for row in entry["rotations"] if bases else []:
            known = row["base"] is None or np.isclose(bases, row["base"], rtol=1e-4).any()
            if not known or (row["rescaling"] or ["default"])[0] not in kinds:
                odd[family] = row["note"] or ""
    told = ("its configuration has", "two turns from edge to edge", "in steps of a third")
    assert set(odd) == {"hy_v3", "glm4_moe", "dinov3_vit", "eomt_dinov3", "sapiens2", "sam3"}
    assert all(any(words in note for words in told) for note in odd.values())
