"""What a rotation costs: ways to write it, their time, their way to memory, and a record of both.

`apply_rope_fused`, one Triton kernel, is in `ropebook.timing.fused`, which needs triton.
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
