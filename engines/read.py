"""What was read in public source and not heard, and why what cannot be asked here cannot."""

__all__ = ["OBSTACLES", "READ"]

_DATE = "2026-11-28"


def _row(name: str, source: str, commit: str, says: str, date: str = _DATE) -> dict[str, str]:
    return {"name": name, "source": source, "commit": commit, "date": date, "says": says}


READ: list[dict[str, str]] = [
    _row("candle", "huggingface/candle: candle-nn/src/rotary_emb.rs", "091c49b",
         "rope is half-split, rope_i interleaved; x, cos and sin of one type; the caller makes the "
         "table"),
    _row("MLC LLM",
         "mlc-ai/mlc-llm: python/mlc_llm/nn/kv_cache.py, op/mrope.py, "
         "model/deepseek_v2/deepseek_v2_model.py, model/llama4/llama4_model.py", "79d603f",
         "base, scale and rule go to TVM's cache of keys, in a branch (mlc-ai/relax) that was not "
         "read; for Llama 4 the model calls a rotation of TVM's itself; rotations of its own are "
         "M-RoPE for Qwen2.5-VL, half-split and in blocks (op/mrope.py), and that of DeepSeek-V2, "
         "which takes its angles from TVM's function; TVM itself was heard",
         "2026-11-29"),
]  # fmt: skip
"""A name, the repository and file, the commit, the day, and what it says."""


OBSTACLES: list[dict[str, str]] = [
    {"name": name, "why": why}
    for name, why in (
        ("xFormers' rule for Llama 3",
         "an \"and\" of two arrays in its kernel, of which Triton's interpreter returns the second "
         "(3.7.1); the rest of the kernel was heard"),
        ("TensorRT-LLM, ExLlamaV2, LMDeploy", "not tried: their packages are built for CUDA"),
        ("Transformer Engine's fused kernel",
         "built for CUDA: what was heard is the form in torch that stands beside it"),
        ("CTranslate2 4.8.5",
         "offers whole models alone, so its rotation was not given to the instrument; its models "
         "were run, and their logits are among the conversions above"),
        ("mistral.rs, MLC LLM, WebLLM", "not tried: what they offer is whole models"),
        ("PaddlePaddle 3.3.1", "imports, but its fused rotation was not called"),
        ("MaxText 0.2.5", "tried: needs Python 3.12, and this environment has 3.11"),
    )
]  # fmt: skip
"""What was not heard, and why."""
