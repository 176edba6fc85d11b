"""A ``params.json`` or a GGUF's metadata in the words of a ``config.json``.

A translation writes down which keys it reads. Of the others, those that may be about what rotates
become a warning, so that nothing of a file is dropped in silence.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .configuration import Caution, load_rules
from .formulas import fit_formulas
from .gguf_file import LAYOUTS, SPELLED
from .layers import MOST_LAYERS
from .safetensors_file import Stored

__all__ = ["FAMILIES", "Translation", "of_gguf", "of_params", "renamed"]

Json = dict[str, Any]

FAMILIES = {
    "chatglm": "glm", "command-r": "cohere", "deepseek2": "deepseek_v3", "glm-dsa": "glm_moe_dsa",
    "gemma-embedding": "gemma3_text", "gemma3": "gemma3_text", "gemma3n": "gemma3n_text",
    "gemma4": "gemma4_text", "glm4moe": "glm4_moe", "gptneox": "gpt_neox", "phi2": "phi",
    "granitehybrid": "granitemoehybrid", "hunyuan-dense": "hunyuan_v1_dense",
    "hunyuan-moe": "hunyuan_v1_moe", "jina-bert-v3": "jina_embeddings_v3", "lfm2moe": "lfm2_moe",
    "llama4": "llama4_text", "mimo2": "mimo_v2_flash", "mistral3": "ministral3",
    "modern-bert": "modernbert", "qwen2moe": "qwen2_moe", "qwen2vl": "qwen2_vl_text",
    "qwen35": "qwen3_5_text", "qwen35moe": "qwen3_5_moe_text", "qwen3moe": "qwen3_moe",
    "qwen3next": "qwen3_next", "qwen3vl": "qwen3_vl_text", "qwen3vlmoe": "qwen3_vl_moe_text",
}  # fmt: skip
"""The `model_type` of an architecture, where it is not its name with _ for -."""

LATENT = ("deepseek_v3", "glm_moe_dsa", "minicpm3", "mistral4")
"""Families whose heads have channels that rotate beside others, with a width each."""

INSIDE = ("apertus", "ministral3", "mistral4")
"""Families whose classes want the base in ``rope_parameters``."""

BY_KIND = ("gemma4_text", "mimo_v2_flash", "modernbert")
"""And those that want a base for each kind of layer there."""

WITHOUT_KEYS = {"lfm2": "conv", "lfm2_moe": "conv", "granitemoehybrid": "mamba"}
"""What layers without key heads are in a family."""

NUMBERS = {
    "hidden_size": "embedding_length", "num_attention_heads": "attention.head_count",
    "num_key_value_heads": "attention.head_count_kv", "head_dim": "attention.key_length",
    "num_hidden_layers": "block_count", "rope_theta": "rope.freq_base",
    "max_position_embeddings": "context_length", "rope_local_base_freq": "rope.freq_base_swa",
    "sliding_window": "attention.sliding_window", "index_head_dim": "attention.indexer.key_length",
    "rms_norm_eps": "attention.layer_norm_rms_epsilon",
    "full_attention_interval": "full_attention_interval",
}  # fmt: skip
"""Fields of a `config.json`, and the same number's key in a GGUF, after the architecture."""

SCALING = {"factor": "factor", "original_max_position_embeddings": "original_context_length",
           "beta_fast": "yarn_beta_fast", "beta_slow": "yarn_beta_slow"}  # fmt: skip
"""Fields of YaRN's rescaling, and their keys."""

ABOUT = re.compile(r"rope|rotary|attention|interval|position|alibi|_swa")
OTHER = re.compile(
    r"^attention\.(\w+_lora_rank|\w*norm\w*|causal|scale|output_scale|clamp_kqv|temperature_\w+"
    r"|value_length\w*|shared_kv_layers|relative_\w+|group_\w+|indexer\.(head_count|top_k))$"
    r"|^rope\.scaling\.finetuned$"
)
"""Keys of a GGUF that may be about what rotates, and among them those that are not."""

CLIP = ("clip is a tower for pictures: its projector_type decides how it rotates, which is not "
        "read here.")  # fmt: skip
"""What is known of llama.cpp's files mmproj, whatever the tower in them."""

TRUNCATES = ("The published config.json of gpt-oss has truncate false, which a GGUF cannot say: "
             "its card truncates.")  # fmt: skip
"""What YaRN in a file of llama.cpp leaves open; it rounds the ends of the ramp as it runs."""

PARAMS = {
    "hidden_size": "dim", "num_hidden_layers": "n_layers", "num_attention_heads": "n_heads",
    "num_key_value_heads": "n_kv_heads", "rms_norm_eps": "norm_eps",
    **{name: name for name in (
        "head_dim", "rope_theta", "max_position_embeddings", "sliding_window", "qk_rope_head_dim",
        "qk_nope_head_dim", "q_lora_rank", "kv_lora_rank", "v_head_dim", "use_qk_norm",
        "attention_chunk_size", "attn_temperature_tuning", "floor_scale", "attn_scale",
    )},
}  # fmt: skip
"""Fields of a `config.json`, and what they are called in a ``params.json``."""

FROM_WEIGHTS = (
    "vocab_size", "hidden_dim", "multiple_of", "ffn_dim_multiplier", "ffn_exp", "tied_embeddings",
    "max_batch_size", "max_seq_len", "model_type",
)  # fmt: skip
"""Keys of a ``params.json`` that the weights tell, or a run chooses."""

UNWRITTEN = (
    "moe", "moe_args", "quantization", "quantization_args", "quantization_config", "lora",
    "lora_args", "use_biases", "causal", "activation", "_sliding_window",
)  # fmt: skip
"""Keys of a ``params.json`` that are not about the rotation, and have no word here."""

YARN = {"factor": "factor", "original_max_position_embeddings": "original_max_position_embeddings",
        "beta_fast": "beta", "beta_slow": "alpha"}  # fmt: skip
"""Fields of YaRN's rescaling, and Mistral's words for them."""


@dataclass(frozen=True)
class Translation:
    """What a file says, in the words of a ``config.json``.

    Attributes
    ----------
    config
        As a ``config.json``.
    said
        Of its fields, by their dotted names: the file's key, or the default that was taken.
    notes
        What was taken for granted, and keys that may be about what rotates and were not read.
    unwritten
        Keys that ``config`` lacks, and that the model is not the same without.
    """

    config: Json
    said: dict[str, str]
    notes: tuple[Caution, ...]
    unwritten: tuple[str, ...] = ()


def renamed(value: Any, said: dict[str, str], path: str = "") -> Any:
    """Return a value with the fields that its texts name called as the file calls them.

    ``path`` is the part of a configuration that names without one are about.
    """
    if isinstance(value, str):
        inside = f"{path}." if path else ""
        return re.sub(
            r"[A-Za-z_]\w*(?:\.\w+)*",
            lambda m: said.get(f"{inside}{m[0]}") or said.get(m[0], m[0]),
            value,
        )
    if isinstance(value, dict):
        return {k: renamed(v, said, value.get("path", path)) for k, v in value.items()}
    return [renamed(one, said, path) for one in value] if isinstance(value, list) else value


class _Keys:
    """A file's keys; notes which are read, and which fields they become."""

    def __init__(self, found: Json, prefix: str = "") -> None:
        self.found, self.prefix = found, prefix
        self.read, self.said, self.notes = set[str](), dict[str, str](), list[Caution]()

    def get(self, key: str, field: str = "") -> Any:
        """Return the value of a key, which becomes a field."""
        self.read.add(key)
        value = self.found.get(self.prefix + key)
        if field and value is not None:
            self.said[field] = self.prefix + key
        return value

    def number(self, key: str, field: str = "") -> Any:
        """Return a number, of one for each layer the largest; floats have seven digits."""
        found = self.get(key, field)
        many = found if isinstance(found, list) else [] if found is None else [found]
        if not all(isinstance(n, int | float) for n in many):
            name = self.prefix + key
            raise ValueError(f"{name} must be a number, or one for each layer, got {found!r}")
        if isinstance(found, list) and "sections" not in key:
            found = max(found, default=None)
        return float(f"{found:.7g}") if isinstance(found, float) else found

    def dict(self, key: str) -> Json:
        """Return an object; an empty one where there is none."""
        found = self.get(key)
        if not isinstance(found, dict | None):
            raise ValueError(f"{key} must be an object, got {found!r}")
        return found or {}

    def assumed(self, message: str) -> None:
        self.notes.append(Caution("assumed", 1, "", message))

    def not_read(self, keys: Iterable[str]) -> None:
        """Warn of keys that may be about what rotates."""
        if names := [self.prefix + key for key in keys]:
            words = f"{', '.join(names)}: not read here; what that changes of the rotation is"
            self.notes.append(Caution("not-known", 1, names[0], f"{words} not known."))


def _told(config: Json) -> Json:
    return {key: value for key, value in config.items() if value is not None}


def _newly_spelled(keys: _Keys, config: Json) -> None:
    """Write base and rescaling as ``rope_parameters``."""
    rope = config.pop("rope_scaling") or {"rope_type": "default"}
    config["rope_parameters"] = {**rope, "rope_theta": config.pop("rope_theta")}
    new = {"rope_theta": "rope_parameters.rope_theta"}
    keys.said = {new.get(field) or field.replace("rope_scaling", "rope_parameters"): key
                 for field, key in keys.said.items()}  # fmt: skip


# params.json --------------------------------------------------------------------------------------


def of_params(found: Json) -> Translation:
    """Return Meta's or Mistral's ``params.json`` in the words of a ``config.json``.

    Read in transformers' converters for Llama 4, Ministral 3 and Mistral 4 and in vLLM's
    ``configs/mistral.py``, copies of 2026; bases that are not given, in Meta's and Mistral's code.
    """
    keys = _Keys(found)
    config = _told({field: keys.get(key, field) for field, key in PARAMS.items()})
    mistral, four = "hidden_dim" in found, {"nope_layer_interval", "vision_args"} & set(found)
    family = "mistral" if mistral else "llama4_text" if four else "llama"
    if isinstance(config.get("sliding_window"), list):
        del config["sliding_window"]
    if "rope_theta" not in config:
        usual = 1e6 if mistral and "sliding_window" not in config else 5e5 if four else 1e4
        config["rope_theta"], whose = usual, "Mistral" if mistral else "Meta"
        keys.said["rope_theta"] = f"the default of {whose}'s code"
        if mistral:
            words = "rope_theta is not in the file: Mistral's code takes 10,000 beside a sliding"
            keys.assumed(f"{words} window, and 1,000,000 without.")
    if four:
        every = keys.get("nope_layer_interval", "no_rope_layer_interval")
        config["no_rope_layer_interval"] = every or MOST_LAYERS + 1
    if keys.get("use_scaled_rope"):
        config |= _scaled(keys, bool(four), "max_position_embeddings" in config)
    if keys.get("yarn") or keys.get("llama_4_scaling"):
        config["rope_scaling"] = scaling = _mistral_yarn(keys)
        family = "ministral3" if "llama_4_scaling_beta" in scaling else family
        _newly_spelled(keys, config)
    family = "mistral4" if "qk_rope_head_dim" in config else family
    config = {"model_type": family, **config}
    vision = keys.dict("vision_encoder"), keys.dict("vision_args")
    if any(vision):
        config = _with_tower(keys, config, *vision)
    left = [k for k, v in found.items() if k not in (*keys.read, *FROM_WEIGHTS)
            and v is not None and v is not False]  # fmt: skip
    keys.not_read(key for key in left if key not in UNWRITTEN)
    lists = ["sliding_window"] if isinstance(found.get("sliding_window"), list) else []
    unwritten = (*left, *lists, *(k for k in ("vision_encoder", "vision_args") if found.get(k)))
    return Translation(config, keys.said, tuple(keys.notes), unwritten)


def _scaled(keys: _Keys, four: bool, reach: bool) -> Json:
    """Return what Meta's ``use_scaled_rope`` means, whose numbers its files leave out.

    Where ``reach`` is true, the file says how far a text may reach.
    """
    factor = keys.get("rope_scaling_factor", "rope_scaling.factor")
    high = keys.get("rope_high_freq_factor", "rope_scaling.high_freq_factor")
    rope = {"rope_type": "llama3", "factor": factor or (16.0 if four else 8.0),
            "low_freq_factor": 1.0, "high_freq_factor": high or (1.0 if four else 4.0),
            "original_max_position_embeddings": 8192}  # fmt: skip
    fields = ("rope_scaling", "max_position_embeddings")
    keys.said |= dict.fromkeys(fields[: 1 if reach else 2], "use_scaled_rope")
    if four:
        words = "use_scaled_rope gives not all numbers: what is missing is as in Llama 4's code."
        keys.assumed(words)
        return {"rope_scaling": rope}
    words = (
        "use_scaled_rope gives no numbers: Llama 3.1's are taken. In texts of every length, slow "
        "pairs turn up to 8 times slower (Llama 3.2: 32)."
    )
    if reach:
        keys.assumed(words)
        return {"rope_scaling": rope}
    words += " Llama 3.1 was then trained on, to 131,072 tokens, which is assumed here."
    keys.assumed(words)
    return {"rope_scaling": rope, "max_position_embeddings": 131072}


def _mistral_yarn(keys: _Keys) -> Json:
    """Return Mistral's ``yarn`` and ``llama_4_scaling`` as ``rope_scaling`` has them."""
    yarn, growing = keys.dict("yarn"), keys.dict("llama_4_scaling")
    rope = {"rope_type": "yarn"} | {field: yarn[key] for field, key in YARN.items() if key in yarn}
    keys.said |= {f"rope_scaling.{field}": f"yarn.{key}" for field, key in YARN.items()}
    keys.said["rope_scaling"] = "yarn"
    if yarn and "apply_scale" not in yarn:
        keys.assumed("yarn.apply_scale is not in the file: true is taken, as vLLM takes it.")
    if yarn.get("apply_scale") is False:
        rope |= {"mscale": 1.0, "mscale_all_dim": 1.0}
    if "beta" in growing:
        rope["llama_4_scaling_beta"] = growing["beta"]
    length = "original_max_position_embeddings"
    apart = length in growing and growing[length] != yarn.get(length)
    keys.not_read([f"yarn.{key}" for key in yarn if key not in (*YARN.values(), "apply_scale")]
                  + [f"llama_4_scaling.{key}" for key in growing
                     if key not in ("beta", length) or (key == length and apart)])  # fmt: skip
    return rope


def _with_tower(keys: _Keys, text: Json, mistral: Json, meta: Json) -> Json:
    """Return a configuration with a tower for pictures beside that of the text."""
    names = {field: field for field in mistral}
    if meta:
        names = {"hidden_size": "dim", "num_hidden_layers": "n_layers",
                 "num_attention_heads": "n_heads"}  # fmt: skip
    given, name = mistral or meta, "vision_encoder" if mistral else "vision_args"
    tower = {field: given[key] for field, key in names.items() if key in given}
    for field in ("image_size", "patch_size") if meta else ():
        if isinstance(given.get(field), dict):
            tower[field] = given[field].get("height")
    keys.said = {f"text_config.{field}": key for field, key in keys.said.items()}
    keys.said |= {f"vision_config.{field}": f"{name}.{key}" for field, key in names.items()}
    kind, inner = ("mistral3", "pixtral") if mistral else ("llama4", "llama4_vision_model")
    return {"model_type": kind, "text_config": text,
            "vision_config": {**tower, "model_type": inner}}  # fmt: skip


# GGUF ---------------------------------------------------------------------------------------------


def of_gguf(metadata: Json, tensors: dict[str, Stored]) -> Translation:
    """Return what a ``config.json`` would say of a GGUF.

    Divisors of frequencies in a tensor become the rescaling that has them, LongRoPE's its lists.
    """
    name = metadata["general.architecture"]
    if name == "clip":
        note = Caution("no-rule", 1, "general.architecture", CLIP)
        return Translation({"model_type": "mmproj"}, {"model_type": note.field}, (note,))
    family = FAMILIES.get(name, name.replace("-", "_"))
    keys = _Keys(metadata, f"{name}.")
    config = {"model_type": family} | {f: keys.number(key, f) for f, key in NUMBERS.items()}
    rule = load_rules()["types"].get(family)
    turns = rule is None or any(rule.get(key) for key in ("null", "rotations", "parts"))
    if turns and config["rope_theta"] is None:
        config["rope_theta"] = 10000.0
        keys.said["rope_theta"] = "the default of llama.cpp"
        keys.assumed(f"{name}.rope.freq_base is not in the file: llama.cpp takes 10,000.")
    if turns and name not in LAYOUTS:
        keys.assumed(f"In which layout llama.cpp rotates {name!r} is not known here.")
    config |= _layers_of(keys, family)
    width, rotated = config["head_dim"], keys.number("rope.dimension_count")
    heads, hidden = config["num_attention_heads"], config["hidden_size"]
    if heads and hidden and width is None:
        width = hidden // heads
    if rotated and width and family in LATENT:
        rest = (keys.number("attention.key_length_mla") or width) - rotated
        config |= {"qk_rope_head_dim": rotated, "qk_nope_head_dim": rest, "head_dim": None}
        keys.said["qk_rope_head_dim"] = f"{name}.rope.dimension_count"
    elif rotated and width and rotated < width:
        config["partial_rotary_factor"] = rotated / width
        words = f"{name}.rope.dimension_count / {keys.said.get('head_dim', 'head width')}"
        keys.said["partial_rotary_factor"] = words
    scaling = _scaling(keys, tensors, config)
    if sections := keys.number("rope.dimension_sections"):
        while sections and not sections[-1]:
            sections = sections[:-1]
        scaling = {"rope_type": "default", "mrope_section": sections} | scaling
    config["rope_scaling"] = _told(scaling) or None
    if family in BY_KIND:
        _two_kinds(keys, config)
    if family in INSIDE:
        _newly_spelled(keys, config)
    keys.not_read(
        key.removeprefix(keys.prefix) for key, value in metadata.items()
        if key.startswith(keys.prefix) and value is not None and value is not False
        and (rest := key.removeprefix(keys.prefix)) not in keys.read
        and ABOUT.search(rest) and not OTHER.search(rest)
        and not (rest.endswith("_swa") and value == metadata.get(key.removesuffix("_swa")))
    )  # fmt: skip
    spelled = SPELLED.get(family, {})
    known = {spelled.get(key, key): value for key, value in _told(config).items()}
    known.pop("", None)
    said = {spelled.get(key, key): value for key, value in keys.said.items()}
    return Translation(known, said, tuple(keys.notes))


def _layers_of(keys: _Keys, family: str) -> Json:
    """Return the types of layers, by their windows and their key heads."""
    every = keys.get("attention.sliding_window_pattern", "sliding_window_pattern")
    counts = keys.get("attention.head_count_kv")
    if isinstance(every, list):
        kinds = ["sliding_attention" if one else "full_attention" for one in every]
        keys.said["layer_types"] = keys.said["sliding_window_pattern"]
        return {"layer_types": kinds}
    if isinstance(counts, list) and 0 in counts:
        if family in WITHOUT_KEYS:
            other = WITHOUT_KEYS[family]
            keys.said["layer_types"] = f"{keys.prefix}attention.head_count_kv"
            return {"layer_types": ["full_attention" if n else other for n in counts]}
        keys.not_read(["attention.head_count_kv"])
    return {"sliding_window_pattern": every}


def _two_kinds(keys: _Keys, config: Json) -> None:
    """Write the bases of two kinds of layers, and Gemma 4's widths."""
    scaling = config.pop("rope_scaling") or {"rope_type": "default"}
    base, near = config.pop("rope_theta"), config.pop("rope_local_base_freq")
    config["rope_parameters"] = {
        "full_attention": {**scaling, "rope_theta": base},
        "sliding_attention": {"rope_type": "default", "rope_theta": near or base},
    }
    at, said = "rope_parameters.{}_attention.rope_theta", keys.said
    said[at.format("full")] = said.pop("rope_theta")
    said[at.format("sliding")] = said.get("rope_local_base_freq", said[at.format("full")])
    if config["model_type"] == "gemma4_text":
        config["global_head_dim"] = config["head_dim"]
        config["head_dim"] = keys.number("attention.key_length_swa") or config["head_dim"]
        if keys.number("rope.dimension_count_swa") not in (None, config["head_dim"]):
            keys.not_read(["rope.dimension_count_swa"])
        said["rope_parameters.full_attention.partial_rotary_factor"] = "rope_freqs.weight"
        said["global_head_dim"] = f"{keys.prefix}attention.key_length"
        said["head_dim"] = f"{keys.prefix}attention.key_length_swa"


def _scaling(keys: _Keys, tensors: dict[str, Stored], config: Json) -> Json:
    """Return what rescales the frequencies, as ``rope_scaling`` has it."""
    told = {field: keys.number(f"rope.scaling.{key}", f"rope_scaling.{field}")
            for field, key in SCALING.items()}  # fmt: skip
    kind, linear = keys.get("rope.scaling.type"), keys.number("rope.scale_linear")
    factor, original = told["factor"] or linear, told["original_max_position_embeddings"]
    more = keys.number("rope.scaling.attn_factor")  # beside what a rule has by itself
    long, short, divisors = (
        _floats(tensors.get(f"rope_{which}.weight"))
        for which in ("factors_long", "factors_short", "freqs")
    )
    if long and short:
        config["original_max_position_embeddings"] = original
        return {"rope_type": "longrope", "long_factor": long, "short_factor": short,
                "attention_factor": more}  # fmt: skip
    if divisors:
        return _named(np.array(divisors), float(config["rope_theta"]), keys)
    if kind == "yarn":
        if config["model_type"] == "gpt_oss":
            keys.assumed(TRUNCATES)
        latent = config["model_type"] in LATENT  # llama.cpp keeps a tenth of it for these
        scale = (keys.number("rope.scaling.yarn_log_multiplier") or 0.0) * (10.0 if latent else 1.0)
        found = {"rope_type": "yarn", **told, "factor": factor,
                 "attention_factor":
                     more and factor and float(f"{more * (1.0 + 0.1 * math.log(factor)):.7g}"),
                 "mscale": (scale if latent else 1.0) if scale else None,
                 "mscale_all_dim": scale or None}  # fmt: skip
        if config["model_type"] in ("ministral3", "mistral4"):
            found["llama_4_scaling_beta"] = keys.number("attention.temperature_scale")
        return found
    stretched = kind in (None, "linear") and factor not in (None, 0.0, 1.0)
    return {"rope_type": "linear", "factor": factor} if stretched else {}


def _floats(tensor: Stored | None) -> list[float]:
    """Return a short list of float32."""
    if tensor is None or tensor.kind != "F32" or not tensor.shape:
        return []
    return [float(f"{x:.7g}") for x in tensor.rows(0, tensor.shape[0]).reshape(-1).view("<f4")]


def _named(divisors: np.ndarray, base: float, keys: _Keys) -> Json:
    """Return the rescaling that divides the frequencies of a base by these numbers."""
    width, still = 2 * len(divisors), divisors > 1e29  # as Gemma 4's pairs that do not rotate
    if still.any() and (divisors == np.where(still, divisors, 1.0)).all():
        return {"rope_type": "proportional", "partial_rotary_factor": float(1.0 - still.mean())}
    if np.isfinite(divisors).all() and (divisors > 0).all():
        waves = base ** (-np.arange(0, width, 2) / width) / divisors
        for one in fit_formulas(waves, 1e-7 * waves, (width,)):
            if abs(one.base / base - 1.0) < 1e-5:
                return {"rope_type": one.kind, **one.parameters} if one.kind != "default" else {}
    words = "The divisors in rope_freqs.weight are of no rescaling known here; left out."
    keys.notes.append(Caution("not-known", 1, "rope_freqs.weight", words))
    return {}
