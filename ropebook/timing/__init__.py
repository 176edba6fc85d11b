"""Run time and memory traffic of implementations of rotary position embedding.

The Triton kernel `apply_rope_fused` is in `ropebook.timing.fused`, which needs triton.
"""

from .clock import Timing, compare
from .forms import FORMS, Form
from .records import BOOK, recorded
from .traffic import Operation, moved_bytes, operations, peak_extra_bytes

__all__ = [
    "BOOK",
    "FORMS",
    "Form",
    "Operation",
    "Timing",
    "compare",
    "moved_bytes",
    "operations",
    "peak_extra_bytes",
    "recorded",
]
