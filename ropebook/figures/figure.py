"""The base class of the moving figures.

A figure is one small class and one JavaScript file of the same name in snake case::

    class PhaseDial(Figure):          # phase_dial.js lies beside this module
        '''One pair as an angle on a dial.'''

        question = "When does the pair come back?"

        m = Whole(0, low=0, high=4096, label="Position", unit="tokens")
        theta = Real(0.5, low=0.01, high=3.15, label="Rotation per token", unit="rad", every=0.01)
        show = Choice(["angle", "cosine"], label="Show", fold=True)
        pair = Whole(0, low=0, high=63)         # no label: the figure itself sets it

The class has traits only: `Whole` (int), `Even` (positive even int), `Real` (float), `Choice` (one
of some texts), `Flag` (bool). One with a label has a control, which the kit draws in the browser
(``kit/controls.js``): in the order of the traits, three at most in sight, the others in a fold.
``List`` and ``Dict`` of traitlets with ``.tag(sync=True)`` hold data that has no control. A bad
value raises an error that names the trait.

The JavaScript may ``import`` from ``./rope.js``, ``./kit/draw.js`` and other files of this folder;
what it imports is put in front of it, in one module that loads nothing. The interface of the kit
is described at the top of ``kit/figure.js``.
"""

import math
import numbers
import re
from pathlib import Path
from typing import Any, ClassVar, Self

import anywidget
import traitlets

from rope_minimal.checks import as_float, check_dim, check_flag

from . import alone
from .bundle import bundle

__all__ = ["Choice", "Even", "Figure", "Flag", "Real", "Whole"]


class Figure(anywidget.AnyWidget):
    """A figure that computes and draws itself in the browser, with or without a kernel."""

    question: ClassVar[str] = ""
    """What it answers, in words: its heading."""

    data = traitlets.Dict(help="what it is given once").tag(sync=True, fixed=True)

    _css = Path(__file__).with_name("figure.css").read_text(encoding="utf-8")
    _question = traitlets.Unicode().tag(sync=True)
    _again = traitlets.Bool(help="whether it asks something else than its kind").tag(sync=True)
    _own_model = traitlets.Unicode(help="the reader's model, in words").tag(sync=True)
    _start = traitlets.Dict().tag(sync=True)
    _options = traitlets.Dict().tag(sync=True)
    _limits = traitlets.Dict().tag(sync=True)
    _controls: traitlets.List[dict[str, Any]] = traitlets.List().tag(sync=True)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        if "_esm" not in cls.__dict__:  # anywidget makes a subclass per instance that has it
            snake = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()
            cls._esm = bundle(Path(__file__).with_name(f"{snake}.js"))
        super().__init_subclass__(**kwargs)

    def __init__(self, **values: Any) -> None:
        names = self.figure_traits()
        for name in values:
            if name not in names:
                known = ", ".join(names)
                raise TypeError(f"{type(self).__name__} has no trait {name!r}; it has {known}")
        super().__init__(**values)
        traits = {name: self.traits()[name] for name in names}
        self._question = self.question
        self._options = {n: list(t.options) for n, t in traits.items() if isinstance(t, Choice)}
        self._limits = {n: t.limits for n, t in traits.items() if isinstance(t, _Number)}
        self._controls = [
            {"name": name, **trait.control}
            for name, trait in traits.items()
            if isinstance(trait, _Value) and trait.control["label"]
        ]
        self.start_here()
        self.on_msg(self._typeset)

    def _typeset(self, _: Any, content: dict, buffers: list) -> None:
        """Answer ``fig.formula``: send LaTeX back as MathML, where the page has no MathJax."""
        self.send({"latex": content["latex"], "mathml": alone.mathml(content["latex"])})

    def asks(self, question: str) -> Self:
        """Return the figure with another question over it, for a second place in a book.

        Parameters
        ----------
        question
            What it answers there, in words.

        Raises
        ------
        TypeError
            If ``question`` is not a str.
        """
        if not isinstance(question, str):
            raise TypeError(f"question must be a str, got {question!r}")
        self._question, self._again = question, True
        return self

    def start_here(self) -> None:
        """Make the present values of the traits the ones that "Reset" goes back to."""
        self._start = {name: getattr(self, name) for name in self.figure_traits()}

    def save(self, path: str | Path) -> None:
        """Write one HTML file that shows the figure, by itself and offline, in light and dark.

        Values in its address are where it starts: ``heatmap.html?dim=64``; ``theme=dark`` or
        ``theme=light`` sets its theme.

        Parameters
        ----------
        path
            Where: ``"heatmap.html"``. An existing file is overwritten.
        """
        Path(path).write_text(alone.page(self), encoding="utf-8")

    @classmethod
    def figure_traits(cls) -> list[str]:
        """Return the names of the traits that a control can set, in the order of the class.

        Data that a figure is given once is tagged ``fixed``.
        """
        own = set(cls.class_trait_names(sync=True, fixed=None)) - set(Figure.class_trait_names())
        written = dict.fromkeys(name for base in reversed(cls.__mro__) for name in vars(base))
        return [name for name in written if name in own and not name.startswith("_")]


class _Value(traitlets.TraitType):
    """A synced value; one with a label has a control.

    Parameters
    ----------
    default
        The value.
    help
        What it is, where it has no label.
    label, unit
        What a reader reads beside the control: ``label (unit)``.
    fold
        Whether the control lies under "More settings".
    control
        What else ``kit/controls.js`` reads: for a number ``every``, the distance between two stops
        of the slider, or ``per_decade``, how many stops there are to a factor of 10; ``digits``
        after the point, or significant ones of a slider with ``per_decade``.
    """

    def __init__(
        self,
        default: Any,
        *,
        help: str = "",
        label: str = "",
        unit: str = "",
        fold: bool = False,
        **control: Any,
    ) -> None:
        super().__init__(default, help=help)
        self.control = {"label": f"{label} ({unit})" if unit else label, "fold": fold, **control}
        if unit == "tokens":
            self.control["tokens"] = True  # 128k may be typed
        self.tag(sync=True)


class _Number(_Value):
    """A number between ``low`` and ``high``, both included."""

    kind: type[Any] = numbers.Real
    words = "a real number"
    step = 0  # between its values; 0 for any

    def __init__(
        self, default: float, *, low: float = -math.inf, high: float = math.inf, **control: Any
    ) -> None:
        super().__init__(default, **control)
        self.low, self.high = low, high
        ends = (end if math.isfinite(end) else None for end in (low, high))
        self.limits = [*ends, self.step]

    def validate(self, obj: Any, value: Any) -> Any:
        """Return the value as a plain int or float, or raise an error that names the trait."""
        if isinstance(value, bool) or not isinstance(value, self.kind):
            raise TypeError(f"{self.name} must be {self.words}, got {value!r}")
        if not math.isfinite(as_float(value)):
            raise ValueError(f"{self.name} must be finite, got {value}")
        if not self.low <= value <= self.high:
            raise ValueError(f"{self.name} must be in {self.low} .. {self.high}, got {value}")
        return self.plain(value)

    @staticmethod
    def plain(value: Any) -> float:
        """Return a plain Python number, also for NumPy scalars."""
        return float(value)


class Real(_Number):
    """A float trait: ``Real(default, low=..., high=...)``; with a label, ``every`` as well."""

    def __init__(self, default: float, *, digits: int = 2, **control: Any) -> None:
        super().__init__(default, digits=digits, **control)


class Whole(_Number):
    """An int trait: ``Whole(default, low=..., high=...)``."""

    kind = numbers.Integral
    words = "an integer"
    step = 1

    def __init__(self, default: int, *, every: int | None = None, **control: Any) -> None:
        super().__init__(default, every=every or self.step, **control)

    @staticmethod
    def plain(value: Any) -> int:
        """Return a plain Python int, also for NumPy scalars."""
        return int(value)


class Even(Whole):
    """A positive even int trait, the width of a head: ``Even(default, low=2, high=...)``."""

    step = 2

    def validate(self, obj: Any, value: Any) -> int:
        """Return the value, or raise an error that names the trait."""
        check_dim(value, str(self.name))
        return super().validate(obj, value)


class Choice(_Value):
    """One of some texts: ``Choice(["angle", "cosine"], default="cosine")``.

    It takes a text or its index and holds the index. In JavaScript ``fig.traits`` gives the text.
    Up to four options are buttons, more a drop-down list.
    """

    def __init__(self, options: list[str], default: str | None = None, **control: Any) -> None:
        self.options = tuple(options)
        super().__init__(0 if default is None else self.options.index(default), **control)

    def validate(self, obj: Any, value: Any) -> int:
        """Return the index of the option, or raise an error that names the trait."""
        if isinstance(value, str) and value in self.options:
            return self.options.index(value)
        whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
        if whole and 0 <= value < len(self.options):
            return int(value)
        if whole or isinstance(value, str):
            raise ValueError(f"{self.name} must be one of {', '.join(self.options)}; got {value!r}")
        raise TypeError(f"{self.name} must be a text or its index, got {value!r}")


class Flag(_Value):
    """A bool trait: ``Flag(False)``."""

    def __init__(self, default: bool = False, **control: Any) -> None:
        super().__init__(default, **control)

    def validate(self, obj: Any, value: Any) -> bool:
        """Return the value, or raise an error that names the trait."""
        check_flag(str(self.name), value)
        return bool(value)
