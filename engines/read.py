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
         "table; its YaRN interpolates by a base that is factor times as large, where the paper "
         "divides frequencies, and has no attention factor"),
]  # fmt: skip
"""A name, the repository and file, the commit, the day, and what it says."""


OBSTACLES: list[dict[str, str]] = [
    {"name": name, "why": why}
    for name, why in (
        ("flash-attention",
         "its Triton kernel, behind a guard that asks for a GPU, was not tried by the interpreter"),
        ("xformers, Transformer Engine, TensorRT-LLM, ExLlamaV2, LMDeploy",
         "not tried: their packages are built for CUDA"),
        ("CTranslate2, mistral.rs, MLC LLM, WebLLM", "not tried: what they offer is whole models"),
        ("PaddlePaddle 3.3.1", "imports, but its fused rotation was not called"),
        ("tinygrad 0.14.0",
         "tried: its processor device calls the compiler clang, and its "
         "wheel leaves out a module that its language model imports"),
        ("MaxText 0.2.5", "tried: needs Python 3.12, and this environment has 3.11"),
    )
]  # fmt: skip
"""What was not heard, and why."""
