"""A cached key moved many times and stored each time, plainly and mixed, beside one moved once."""

from .figure import Choice, Figure, Whole

__all__ = ["WornKey", "worn_key"]


class WornKey(Figure):
    """The error of every pair after many moves and after one (``worn_key.js``)."""

    question = "Move a stored key by one token, often: what is left of it?"

    moves = Whole(256, low=1, high=512, label="Moves")
    step = Whole(1, low=1, high=256, label="Each move by", unit="tokens")
    kept = Choice(["fp16", "bf16", "fp8", "q8_0", "q4_0"], default="q8_0", label="Keys stored as")
    pair = Whole(36, low=0, high=63, help="the pair that is read")


def worn_key(kept: str = "q8_0", moves: int = 256, step: int = 1, pair: int = 36) -> WornKey:
    """Return the worn key with its controls: 16 random keys of 128 channels, base 10000.

    Parameters
    ----------
    kept
        How the keys are stored: ``"fp16"``, ``"bf16"``, ``"fp8"`` (E4M3, no scale), or in the
        block formats of ggml, ``"q8_0"`` or ``"q4_0"``: whole numbers, -127 to 127 or -8 to 7,
        times a float16 scale that each block of 32 neighbouring channels has to itself (the
        layout is half-split). A second line shows the same format in a Hadamard basis.
    moves
        How often the keys are moved and stored again, 1 to 512.
    step
        Tokens by which each move moves them, 1 to 256.
    pair
        The pair that is read, 0 to 63, fast to slow.

    Returns
    -------
    WornKey
        The pair follows the pointer and the arrow keys.

    Raises
    ------
    TypeError, ValueError
        If a value is of the wrong kind, unknown or out of range; the message names it.
    """
    return WornKey(kept=kept, moves=moves, step=step, pair=pair)
