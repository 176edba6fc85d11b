"""A cached key moved many times and stored each time, beside one that is moved once."""

from .figure import Choice, Figure, Whole

__all__ = ["WornKey", "worn_key"]


class WornKey(Figure):
    """Where a key ends that is rounded after every move (``worn_key.js``)."""

    question = "A stored key is moved by one token, again and again: how far off is it?"

    moves = Whole(128, low=1, high=256, label="Moves", fold=True)
    kept = Choice(["fp16", "bf16", "fp8", "q8_0", "q4_0"], default="q8_0", label="Keys stored as")
    step = Whole(1, low=1, high=256, label="Each move by", unit="tokens", fold=True)
    other = Choice(["one move", "Hadamard basis"], label="Compared with", fold=True)
    pair = Whole(40, low=0, high=63, help="the pair whose hand is drawn")


def worn_key(
    kept: str = "q8_0", moves: int = 128, step: int = 1, pair: int = 40, other: str = "one move"
) -> WornKey:
    """Return the worn key with its controls: 16 random keys of 128 channels, base 10000.

    Parameters
    ----------
    kept
        How the keys are stored: ``"fp16"``, ``"bf16"``, ``"fp8"`` (E4M3, no scale), or in the
        block formats of ggml, ``"q8_0"`` or ``"q4_0"``: whole numbers, -127 to 127 or -8 to 7,
        times a float16 scale that each block of 32 neighbouring channels has to itself (the
        layout is half-split).
    moves
        How often the keys are moved and stored again, 1 to 256.
    step
        Tokens by which each move moves them, 1 to 256.
    pair
        The pair whose hand is drawn, 0 to 63, fast to slow.
    other
        What the moves are compared with: ``"one move"`` by their sum, or as many with the keys
        stored in a ``"Hadamard basis"``.

    Returns
    -------
    WornKey
        The end of the curve can be dragged; the pair follows the pointer and the arrow keys.

    Raises
    ------
    TypeError, ValueError
        If a value is of the wrong kind, unknown or out of range; the message names it.
    """
    return WornKey(kept=kept, moves=moves, step=step, pair=pair, other=other)
