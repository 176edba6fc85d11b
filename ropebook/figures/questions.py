"""Predict, then look: questions that are answered in the page, with native inputs and no kernel.

Prompts, options and explanations are plain text with ``**bold**`` and ```code```.
"""

import contextlib
import numbers
from collections.abc import Iterator, Sequence

import traitlets

from .figure import Figure, Real

__all__ = ["ChoiceQuestion", "NumberQuestion", "choice", "myth_fails", "number"]


class ChoiceQuestion(Figure):
    """One of some answers (``choice_question.js``)."""

    prompt = traitlets.Unicode().tag(sync=True)
    options = traitlets.List(traitlets.Unicode()).tag(sync=True)
    answer = traitlets.Int().tag(sync=True)
    why = traitlets.Unicode().tag(sync=True)


class NumberQuestion(Figure):
    """A number, right within a tolerance (``number_question.js``)."""

    prompt = traitlets.Unicode().tag(sync=True)
    answer = Real(0.0)
    tolerance = Real(0.0, low=0.0)
    unit = traitlets.Unicode().tag(sync=True)
    why = traitlets.Unicode().tag(sync=True)


def choice(prompt: str, options: Sequence[str], answer: str | int, why: str) -> ChoiceQuestion:
    """Return a question with one right answer.

    Parameters
    ----------
    prompt
        The question.
    options
        At least two different answers.
    answer
        The right one, as its text or its index.
    why
        Shown after a right answer, or with "Show the answer".

    Raises
    ------
    TypeError
        If a text is not a str, ``options`` is one text or has no order, or ``answer`` is neither a
        text nor an index.
    ValueError
        If there are fewer than two different options or ``answer`` is none of them.
    """
    _check_texts(prompt=prompt, why=why)
    if isinstance(options, str) or not isinstance(options, Sequence):
        raise TypeError(f"options must be a sequence of texts, got {options!r}")
    options = list(options)
    for option in options:
        _check_texts(options=option)
    if len(options) < 2 or len(set(options)) < len(options):
        raise ValueError(f"options must be at least two different texts, got {options!r}")
    if isinstance(answer, str):
        if answer not in options:
            raise ValueError(f"answer must be one of {options!r}, got {answer!r}")
        answer = options.index(answer)
    if isinstance(answer, bool) or not isinstance(answer, numbers.Integral):
        raise TypeError(f"answer must be a text or an index, got {answer!r}")
    if not 0 <= answer < len(options):
        raise ValueError(f"answer must be in 0 .. {len(options) - 1}, got {answer}")
    return ChoiceQuestion(prompt=prompt, options=options, answer=int(answer), why=why)


def number(
    prompt: str, answer: float, tolerance: float, why: str, *, unit: str = ""
) -> NumberQuestion:
    """Return a question whose answer is a number.

    Parameters
    ----------
    prompt
        The question; it says how exact the answer must be.
    answer
        The right number.
    tolerance
        How far a right answer may be off, in the answer's unit, >= 0.
    why
        Shown after a right answer, or with "Show the answer".
    unit
        Written after the input.

    Raises
    ------
    TypeError, ValueError
        If a text is not a str, a number is not finite or ``tolerance`` is negative; the message
        names it.
    """
    _check_texts(prompt=prompt, why=why, unit=unit)
    return NumberQuestion(prompt=prompt, answer=answer, tolerance=tolerance, why=why, unit=unit)


@contextlib.contextmanager
def myth_fails() -> Iterator[None]:
    """Print how an assertion fails that states a myth; a myth that holds stops the build.

    Raises
    ------
    RuntimeError
        If no assertion in the block fails.

    Examples
    --------
    >>> with myth_fails():
    ...     assert 2 + 2 == 5, "2 + 2 is 4"
    the myth fails: 2 + 2 is 4
    """
    try:
        yield
    except AssertionError as failure:
        print("the myth fails:", failure)
    else:
        raise RuntimeError("the myth held: no assertion in its cell failed")


def _check_texts(**texts: str) -> None:
    for name, text in texts.items():
        if not isinstance(text, str):
            raise TypeError(f"{name} must be a text, got {text!r}")
        if not text.strip() and name != "unit":
            raise ValueError(f"{name} must not be empty, got {text!r}")
