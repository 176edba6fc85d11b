"""Ways to write the rotation as blocks of memory read and written, and the times that follow."""

from copy import deepcopy
from functools import cache
from typing import Any

from .figure import Choice, Figure

__all__ = ["DTYPES", "FORMS", "SHAPES", "ByteBudget", "budget_data", "byte_budget", "passes"]

SHAPES = {
    "a long prompt (1, 32, 4096, 128)": (1, 32, 4096, 128),
    "eight long prompts (8, 32, 4096, 128)": (8, 32, 4096, 128),
    "a short prompt (1, 8, 1024, 64)": (1, 8, 1024, 64),
    "one new token, 256 texts (256, 32, 1, 128)": (256, 32, 1, 128),
    "one new token, eight texts (8, 32, 1, 128)": (8, 32, 1, 128),
}
"""Batch, heads, tokens and channels of ``x``."""

DTYPES = ["float32", "bfloat16"]

FORMS = {
    "rotate_half (textbook, Hugging Face)": ("rotate_half", "eager"),
    "rotate_every_two (GPT-J)": ("rotate_every_two", "eager"),
    "Clay's module, interleaved": ("Clay, interleaved", "eager"),
    "four products, stack": ("four products, stack", "eager"),
    "four products, cat": ("four products, cat", "eager"),
    "roll, signed sine": ("roll, signed sine", "eager"),
    "a product, two addcmul": ("three kernels", "eager"),
    "one complex product (Meta)": ("view_as_complex", "eager"),
    "four products, cat: compiled": ("four products, cat", "compiled"),
    "one kernel by hand, in Triton": ("apply_rope_fused, half-split", "fused"),
}
"""What the reader chooses; its name and mode in ``ropebook.timing`` and in the record."""

FUSED = [("one loop", 1.0, 1.0)]
"""What a compiler or a written kernel can reach: x read once, the result written once."""

MACHINES = {"CPU": "amd-epyc-2-core", "GPU": "h100-80gb-hbm3"}
"""What the reader chooses; the record of the book."""


class ByteBudget(Figure):
    """The passes over memory of all forms, and their times (``byte_budget.js``)."""

    question = "How many times does the rotation go to memory and back?"

    dtype = Choice(DTYPES, label="Number type")
    form = Choice(list(FORMS), help="the way of writing that is chosen")
    machine = Choice(list(MACHINES), label="Machine", fold=True)
    shape = Choice(list(SHAPES), label="Shape of x", fold=True)


@cache
def passes(form: str, dtype: str, mode: str = "eager") -> list[tuple[str, float, float]]:
    """Return the operations of a form: name, and passes read and written, as PyTorch runs it.

    Parameters
    ----------
    form
        A name in ``FORMS`` of `ropebook.timing`.
    dtype
        ``"float32"`` or ``"bfloat16"``, the type of x.
    mode
        ``"eager"``, or anything else for one loop, which reads once and writes once.

    Returns
    -------
    list of (str, float, float)
        In units of N, the bytes of x, to a quarter; what only touches the tables is left out.
    """
    if mode != "eager":
        return FUSED
    import torch

    from rope_minimal import rope_table
    from ropebook import timing

    x = torch.zeros(1, 64, 256, 64, dtype=getattr(torch, dtype))
    call = timing.FORMS[form].bind(x, *rope_table(torch.arange(256), 64))
    units = [(each, 4 / x.nbytes) for each in timing.operations(call)]
    steps = [(e.name, round(e.read * q) / 4, round(e.written * q) / 4) for e, q in units]
    return [step for step in steps if step[1] + step[2]]


def budget_data(records: dict[str, dict[str, Any] | None]) -> dict[str, Any]:
    """Return what the figure shows: the passes of all forms, and their recorded times.

    Parameters
    ----------
    records
        For each of ``MACHINES`` what `ropebook.timing.recorded` gives.
    """
    forms = {
        label: {dtype: passes(form, dtype, mode) for dtype in DTYPES}
        for label, (form, mode) in FORMS.items()
    }
    return {
        "shapes": {label: list(shape) for label, shape in SHAPES.items()},
        "forms": forms,
        "order": list(FORMS),  # a page that is built from the cache has sorted keys
        "machines": {name: _machine(record) for name, record in records.items()},
    }


def byte_budget(
    shape: str = "a long prompt (1, 32, 4096, 128)",
    dtype: str = "float32",
    form: str = "rotate_half (textbook, Hugging Face)",
    machine: str = "CPU",
    record: dict[str, Any] | None = None,
) -> ByteBudget:
    """Return the byte budget with its controls.

    Parameters
    ----------
    shape
        One of ``SHAPES`` of this module.
    dtype
        ``"float32"`` or ``"bfloat16"``.
    form
        One of ``FORMS`` of this module.
    machine
        ``"CPU"`` or ``"GPU"``: the copy that was measured there turns bytes into time.
    record
        What `ropebook.timing.recorded` gives, in place of the book's record of a CPU or of a
        GPU, whichever it is.

    Returns
    -------
    ByteBudget
        The row follows the pointer and the arrow keys.

    Raises
    ------
    TypeError, ValueError
        If a value is of the wrong kind or unknown; the message names it.
    """
    from ropebook.timing import recorded

    figure = ByteBudget(shape=shape, dtype=dtype, form=form, machine=machine)
    records = {name: recorded(file) for name, file in MACHINES.items()}
    if record:
        if not {"cases", "machine", "date"} <= set(record):
            raise ValueError(f"record must be a record of ropebook.timing, got {record!r}")
        records["GPU" if record["machine"]["gpu"] else "CPU"] = record
    figure.data = deepcopy(budget_data(records))  # what `passes` keeps stays as it is
    return figure


def _machine(record: dict[str, Any] | None) -> dict[str, Any]:
    """Return a record's machine and date, and its cases."""
    if not record:
        return {"name": "", "cases": []}
    name = record["machine"]["gpu"] or record["machine"]["processor"]
    return {
        "name": f"{name}, {record['date']}",
        "cases": [_times(case) for case in record["cases"] if _plain(case)],
    }


def _plain(case: dict[str, Any]) -> bool:
    """Whether a case is the forward pass over x as it comes, with memory that is reused."""
    usual = {"direction": "forward", "memory": "contiguous"}
    reused = case["allocator"] != "fresh"  # as PyTorch's allocator for CUDA does by itself
    return reused and all(case[name] == value for name, value in usual.items())


def _times(case: dict[str, Any]) -> dict[str, Any]:
    """Return shape, type and floor of a recorded case, and by label microseconds."""
    found = {(r["form"], r["mode"]): r for r in case["rows"] if r["status"] == "ok"}
    timed = {label: found[key] for label, key in FORMS.items() if key in found}
    return {
        "shape": case["shape"],
        "dtype": case["dtype"],
        "floor_us": case["floor_us"],
        "us": {label: row["us"] for label, row in timed.items()},
    }
