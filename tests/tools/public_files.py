"""What public ``params.json`` files and GGUFs say, in short: facts, and where they were read."""

from typing import Any

_YARN = {"alpha": 1, "apply_scale": False, "beta": 32, "factor": 36,
         "original_max_position_embeddings": 8192}  # fmt: skip
_SCALING = {"beta": 0.1, "original_max_position_embeddings": 8192}
_LARGE: dict[str, Any] = {
    "dim": 7168, "head_dim": 192, "hidden_dim": 16384, "kv_lora_rank": 512,
    "llama_4_scaling": _SCALING, "max_position_embeddings": 294912, "moe": {"num_experts": 128},
    "n_heads": 128, "n_kv_heads": 128, "n_layers": 61, "norm_eps": 1e-06, "q_lora_rank": 1536,
    "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "rope_theta": 10000.0,
    "quantization_config": {"quant_method": "compressed-tensors"}, "tied_embeddings": False,
    "v_head_dim": 128, "vocab_size": 131072, "yarn": _YARN,
}  # fmt: skip
_TOWER = {"hidden_size": 1664, "image_size": 1540, "intermediate_size": 8192,
          "num_attention_heads": 16, "num_channels": 3, "num_hidden_layers": 48, "patch_size": 14,
          "rope_theta": 10000.0}  # fmt: skip
_VOXTRAL: dict[str, Any] = {
    "dim": 3072, "n_layers": 26, "head_dim": 128, "hidden_dim": 9216, "n_heads": 32,
    "n_kv_heads": 8, "use_biases": False, "causal": True, "rope_theta": 1000000.0,
    "norm_eps": 1e-05, "vocab_size": 131072, "tied_embeddings": True, "sliding_window": 8192,
    "multimodal": {"whisper_model_args": {"encoder_args": {"dim": 1280, "n_layers": 32}}},
}  # fmt: skip
_MISTRAL: dict[str, Any] = {
    "dim": 4096, "n_layers": 32, "head_dim": 128, "hidden_dim": 14336, "n_heads": 32,
    "n_kv_heads": 8, "norm_eps": 1e-05, "sliding_window": 4096, "vocab_size": 32000,
}  # fmt: skip
_SCOUT: dict[str, Any] = {
    "dim": 5120, "n_layers": 48, "n_heads": 40, "n_kv_heads": 8, "ffn_exp": 4.0, "norm_eps": 1e-05,
    "attention_chunk_size": 8192, "rope_theta": 500000, "use_scaled_rope": True,
    "rope_scaling_factor": 16.0, "rope_high_freq_factor": 1.0,
    "nope_layer_interval": 4, "use_qk_norm": True, "moe_args": {"num_experts": 16},
    "vision_args": {
        "image_size": {"height": 336, "width": 336}, "patch_size": {"height": 14, "width": 14},
        "dim": 1408, "n_layers": 34, "n_heads": 16, "mlp_ratio": 4.0, "output_dim": 4096,
    },
}  # fmt: skip

PARAMS_JSON: dict[str, dict[str, Any]] = {
    "Mistral Large 3": _LARGE,
    "Mistral Large 3, with its tower": _LARGE | {"max_seq_len": 262144, "vision_encoder": _TOWER},
    "Devstral Small 2": {
        "dim": 5120, "n_layers": 40, "head_dim": 128, "hidden_dim": 32768, "n_heads": 32,
        "n_kv_heads": 8, "rope_theta": 100000000.0, "norm_eps": 1e-05, "vocab_size": 131072,
        "max_position_embeddings": 393216, "llama_4_scaling": _SCALING,
        "yarn": _YARN | {"factor": 48},
    },
    "Voxtral Mini Realtime": _VOXTRAL,
    "Mistral 7B v0.1": _MISTRAL,
    "Llama 4 Scout": _SCOUT,
}  # fmt: skip
"""Mistral Large 3: unslothai/unsloth, a test of its reader for Mistral's files, and NVIDIA's
TensorRT-LLM (with the tower); Voxtral: a test of a loader in Rust; Devstral: the numbers of its
GGUF below, in the words of vLLM's configs/mistral.py; Scout: the fields that Meta's code and
transformers' converter for Llama 4 read, with the numbers of its public config.json. Copies of
2026, read 2026-11-29."""

_GEMMA: dict[str, Any] = {
    "block_count": 35, "context_length": 131072, "embedding_length": 1536,
    "feed_forward_length": [6144] * 15 + [12288] * 20, "attention.head_count": 8,
    "attention.head_count_kv": 1, "attention.key_length": 512, "attention.value_length": 512,
    "attention.key_length_swa": 256, "attention.value_length_swa": 256,
    "rope.dimension_count": 512, "rope.dimension_count_swa": 256, "rope.freq_base": 1000000.0,
    "rope.freq_base_swa": 10000.0, "attention.sliding_window": 512,
    "attention.sliding_window_pattern": [True, True, True, True, False] * 7,
    "attention.shared_kv_layers": 20, "attention.layer_norm_rms_epsilon": 1e-06,
    "embedding_length_per_layer_input": 256, "final_logit_softcapping": 30.0,
}  # fmt: skip
_LFM: dict[str, Any] = {
    "block_count": 16, "context_length": 128000, "embedding_length": 2048,
    "feed_forward_length": 8192, "attention.head_count": 32,
    "attention.head_count_kv": [0, 0, 8, 0, 0, 8, 0, 0, 8, 0, 8, 0, 8, 0, 8, 0],
    "rope.freq_base": 1000000.0, "attention.layer_norm_rms_epsilon": 1e-05, "vocab_size": 65536,
    "shortconv.l_cache": 3,
}  # fmt: skip
_DEVSTRAL: dict[str, Any] = {
    "block_count": 40, "context_length": 393216, "embedding_length": 5120,
    "feed_forward_length": 32768, "attention.head_count": 32, "attention.head_count_kv": 8,
    "rope.freq_base": 100000000.0, "attention.layer_norm_rms_epsilon": 1e-05,
    "attention.key_length": 128, "attention.value_length": 128, "rope.dimension_count": 128,
    "rope.scaling.type": "yarn", "rope.scaling.factor": 48.0, "rope.scaling.yarn_beta_fast": 32.0,
    "rope.scaling.yarn_beta_slow": 1.0, "rope.scaling.yarn_log_multiplier": 1.0,
    "rope.scaling.original_context_length": 8192, "attention.temperature_scale": 0.1,
    "vocab_size": 131072,
}  # fmt: skip


def _of(name: str, keys: dict[str, Any]) -> dict[str, Any]:
    return {"general.architecture": name, **{f"{name}.{key}": one for key, one in keys.items()}}


GGUFS: dict[str, tuple[dict[str, Any], dict[str, list[float]]]] = {
    "Gemma 4 E2B": (
        _of("gemma4", _GEMMA), {"rope_freqs.weight": [1.0] * 64 + [1e30] * 192},
    ),
    "LFM2.5 1.2B": (_of("lfm2", _LFM), {}),
    "Devstral Small 2 24B": (_of("mistral3", _DEVSTRAL), {}),
}  # fmt: skip
"""Metadata and small tensors. Gemma 4: a header that was printed, and the tensor of llama.cpp's
converter; LFM2.5: notes on its header; Devstral: a log of llama.cpp. Read 2026-11-29."""
