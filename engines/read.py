"""What was read in public source and not heard, and why what cannot be asked here cannot."""

__all__ = ["OBSTACLES", "READ"]

_DATE = "2026-11-28"


def _row(name: str, source: str, commit: str, says: str) -> dict[str, str]:
    return {"name": name, "source": source, "commit": commit, "date": _DATE, "says": says}


READ: list[dict[str, str]] = [
    _row("flash-attention", "Dao-AILab/flash-attention: flash_attn/layers/rotary.py", "09d422b",
         "half-split unless interleaved=True; the first 2 * cos.shape[-1] channels; the module "
         "makes angles in float32 and stores cos and sin in the type of x, for as many positions "
         "as were seen"),
    _row("Transformer Engine", "NVIDIA/TransformerEngine: transformer_engine/pytorch/attention/"
         "rope.py", "0dc141c",
         "half-split unless interleaved=True; the first channels; angles in float32; "
         "interpolation by a fixed factor, or past a trained length by the length of the call"),
    _row("CTranslate2", "OpenNMT/CTranslate2: src/layers/attention.cc", "0449590",
         "rotary_dim channels, interleaved unless the model sets rotary_interleave to false"),
    _row("candle", "huggingface/candle: candle-nn/src/rotary_emb.rs", "091c49b",
         "rope is half-split, rope_i interleaved; x, cos and sin of one type; the caller makes the "
         "table"),
    _row("MLC LLM", "mlc-ai/mlc-llm: python/mlc_llm/op/position_embedding.py", "01ced33",
         "half-split, or interleaved with rope_type gptj; angles of each element in float32, no "
         "table; its YaRN passes the index of an element for the width, so no ramp is left: with a "
         "head of 64 and base 10,000 it is plain RoPE of factor times the base; no attention "
         "factor"),
]  # fmt: skip
"""A name, the repository and file, the commit, the day, and what it says."""


OBSTACLES: list[dict[str, str]] = [
    {"name": name, "why": why}
    for name, why in (
        ("flash-attention",
         "its source archive (2.8.3.post2) unpacks without CUDA; its Triton kernel, with the guard "
         "that asks for a GPU emptied, was begun by the interpreter and not heard to the end"),
        ("xformers, TensorRT-LLM, ExLlamaV2, LMDeploy",
         "not tried: their packages are built for CUDA"),
        ("Transformer Engine",
         "not tried: its package is built for CUDA, its rotation has a form in plain torch, too"),
        ("CTranslate2, mistral.rs, MLC LLM, WebLLM", "not tried: what they offer is whole models"),
        ("PaddlePaddle 3.3.1", "imports, but its fused rotation was not called"),
        ("MaxText 0.2.5", "tried: needs Python 3.12, and this environment has 3.11"),
    )
]  # fmt: skip
"""What was not heard, and why."""
