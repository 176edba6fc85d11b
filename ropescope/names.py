"""What tensors are called in the files of Hugging Face, Meta and GGUF.

Read in llama.cpp's converter at commit 0c1e570 of 2026-10-01; a test asks the map in the package
gguf. Architectures whose numbers that converter changes (a gain of 1 + weight), or whose experts it
joins, are left out.
"""

import re

__all__ = [
    "ACTIVATIONS", "ALWAYS", "ARCHITECTURES", "BIASES", "CLASSES", "name_of", "rows_of", "stems",
]  # fmt: skip

ARCHITECTURES = {
    "falcon": "falcon", "glm4": "glm4", "gpt_neox": "gptneox", "llama": "llama",
    "mistral": "llama", "olmo2": "olmo2", "phi": "phi2", "phi3": "phi3", "qwen2": "qwen2",
    "qwen3": "qwen3", "smollm3": "smollm3", "stablelm": "stablelm", "starcoder2": "starcoder2",
}  # fmt: skip
"""GGUF's name of each `model_type` that is written to GGUF and read back."""

CLASSES = {"gpt_neox": "GPTNeoX", "stablelm": "StableLm", "smollm3": "SmolLM3"}
"""Names of classes that are more than the `model_type` with a capital."""

ACTIVATIONS = {"falcon": "gelu", "gpt_neox": "gelu", "phi": "gelu_new",
               "starcoder2": "gelu_pytorch_tanh"}  # fmt: skip
"""What llama.cpp computes in these; in the others silu."""

_BIAS = {"attention_bias": "blk.0.attn_q.bias"}
BIASES = {
    "glm4": _BIAS,
    "gpt_neox": {"attention_bias": "blk.0.attn_qkv.bias"},
    "llama": _BIAS | {"mlp_bias": "blk.0.ffn_up.bias"}, "olmo2": _BIAS, "qwen3": _BIAS,
    "smollm3": _BIAS | {"mlp_bias": "blk.0.ffn_up.bias"},
    "stablelm": {"use_qkv_bias": "blk.0.attn_q.bias"},
    "starcoder2": {"use_bias": "blk.0.attn_q.bias"},
}  # fmt: skip
"""Fields that say that tensors are there."""

ALWAYS = {"falcon": {"new_decoder_architecture": True, "alibi": False, "bias": False}}
"""Fields of a family that GGUF's architecture is without."""

_TOP = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
_LAYERS = {"gpt_neox": "gpt_neox.layers", "falcon": "transformer.h", "meta": "layers"}
_LAYER = {
    "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm", "ffn_gate": "mlp.gate_proj", "ffn_down": "mlp.down_proj",
    "ffn_up": "mlp.up_proj", "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
}  # fmt: skip
_OTHERS = {
    "meta": {
        "token_embd": "tok_embeddings", "output_norm": "norm", "output": "output",
        "attn_q": "attention.wq", "attn_k": "attention.wk", "attn_v": "attention.wv",
        "attn_output": "attention.wo", "attn_q_norm": "attention.q_norm",
        "attn_k_norm": "attention.k_norm", "ffn_gate": "feed_forward.w1",
        "ffn_down": "feed_forward.w2", "ffn_up": "feed_forward.w3",
        "attn_norm": "attention_norm", "ffn_norm": "ffn_norm",
    },
    "falcon": {
        "token_embd": "transformer.word_embeddings", "output_norm": "transformer.ln_f",
        "attn_qkv": "self_attention.query_key_value", "attn_output": "self_attention.dense",
        "ffn_up": "mlp.dense_h_to_4h", "ffn_down": "mlp.dense_4h_to_h", "attn_norm": "ln_mlp",
        "attn_norm_2": "ln_attn",
    },
    "glm4": {
        "ffn_up": "mlp.gate_up_proj", "post_attention_norm": "post_self_attn_layernorm",
        "post_ffw_norm": "post_mlp_layernorm",
    },
    "gpt_neox": {
        "token_embd": "gpt_neox.embed_in", "output_norm": "gpt_neox.final_layer_norm",
        "output": "embed_out", "attn_qkv": "attention.query_key_value",
        "attn_output": "attention.dense", "ffn_up": "mlp.dense_h_to_4h",
        "ffn_down": "mlp.dense_4h_to_h",
    },
    "olmo2": {
        "post_attention_norm": "post_attention_layernorm",
        "post_ffw_norm": "post_feedforward_layernorm",
    },
    "phi": {
        "output_norm": "model.final_layernorm", "attn_output": "self_attn.dense",
        "ffn_up": "mlp.fc1", "ffn_down": "mlp.fc2",
    },
    "phi3": {"attn_qkv": "self_attn.qkv_proj", "ffn_up": "mlp.gate_up_proj"},
    "starcoder2": {"ffn_up": "mlp.c_fc", "ffn_down": "mlp.c_proj"},
}  # fmt: skip


def rows_of(layout: str) -> str:
    """Return how rows of weights stand in a layout, whatever order the code writes channels in."""
    return layout.replace("read interleaved, written half-split", "interleaved")


def stems(names: str, family: str) -> dict[str, str]:
    """Return GGUF's stem of each stem in the files of ``hf``, ``meta`` or ``gguf``.

    A layer's number is ``{}``.
    """
    # a family without names of its own has Llama's
    theirs = _TOP | _LAYER | _OTHERS.get("meta" if names == "meta" else family, {})
    layers = _LAYERS.get("meta" if names == "meta" else family, "model.layers")
    found = {}
    for ours, stem in theirs.items():
        full = ours if ours in _TOP else f"blk.{{}}.{ours}"
        theirs_in_full = stem if ours in _TOP else f"{layers}.{{}}.{stem}"
        found[full if names == "gguf" else theirs_in_full] = full
    return found


def name_of(name: str, old: dict[str, str], new: dict[str, str]) -> str | None:
    """Return a tensor's name among others' stems, None where they have none for it."""
    stem, _, end = name.rpartition(".")
    number = re.findall(r"\.(\d+)\.", name)
    ours = old.get(re.sub(r"\.\d+\.", ".{}.", stem, count=1))
    found = next((theirs for theirs, full in new.items() if full == ours), None)
    return found and f"{found.format(*number[:1])}.{end}"
