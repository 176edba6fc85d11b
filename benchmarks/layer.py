"""Time of the rotation within a layer, beside its matrix products and attention."""

from collections.abc import Callable
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention

from rope_minimal import rope_table
from ropebook.timing import FORMS, compare

WIDTH, HEADS, KV_HEADS, HEAD, MLP = 4096, 32, 8, 128, 14_336
TEXTS, TOKENS = 8, 4096
FORM = "four products, cat"  # what is compiled


def calls(device: str) -> dict[str, Callable[[], Any]]:
    """Return the timed calls, on bfloat16 inputs from N(0, 1) with small weights."""
    torch.manual_seed(0)
    options = {"device": device, "dtype": torch.bfloat16}
    wide, inner = HEADS * HEAD, KV_HEADS * HEAD
    sizes = ((WIDTH, wide + 2 * inner), (wide, WIDTH), (WIDTH, 2 * MLP), (MLP, WIDTH))
    products = [
        (torch.randn(TEXTS * TOKENS, a, **options), torch.randn(a, b, **options) / 64)
        for a, b in sizes
    ]
    q, k, v = (  # in memory as a projection leaves them
        torch.randn(TEXTS, TOKENS, heads, HEAD, **options).transpose(1, 2)
        for heads in (HEADS, KV_HEADS, KV_HEADS)
    )
    table = rope_table(torch.arange(TOKENS, device=device), HEAD)
    made = {
        "products": lambda: [x @ w for x, w in products],
        "attention": lambda: scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True),
    }
    for name, form in (("textbook", FORMS["rotate_half"]), ("compiled", FORMS[FORM].compiled())):
        both = [form.bind(x, *table) for x in (q, k)]
        made[f"rotation, {name}"] = lambda both=both: [turn() for turn in both]
    return made


def measure(device: str, rounds: int = 15) -> dict[str, Any]:
    """Return the times of one layer, including attention and the rotation of q and k."""
    timings = compare(calls(device), "products", rounds=rounds, cold=True, device=device)
    names = ("us", "us_low", "us_high")
    rows = [
        {"call": name, **{n: round(getattr(timing, n), 1) for n in names}}
        for name, timing in timings.items()
    ]
    return {"texts": TEXTS, "tokens": TOKENS, "rows": rows}
