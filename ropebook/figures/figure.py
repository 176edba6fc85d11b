"""The base class of the moving figures.

A figure is one small class and one JavaScript file of the same name in snake case::

    class PhaseDial(Figure):          # phase_dial.js lies beside this module
        '''One pair's hand on a dial.'''

        m = Whole(0, low=0, high=4096)
        theta = Real(0.5, low=0.0, high=3.15)
        show = Choice(["angle", "cosine"])
        trail = Flag(False)

    def phase_dial(m: int = 0, theta: float = 0.5) -> controls.FigureBox:
        figure = PhaseDial(m=m, theta=theta)
        return controls.box(
            figure,
            [controls.slider(figure, "m", "Position"), controls.choice(figure, "show", "Show")],
            question="When does the hand come back?",
        )

The class has traits only. Its JavaScript may ``import`` from ``./rope.js``, ``./kit/draw.js`` and
other files of this folder; what it imports is put in front of it, in one module that asks the
network for nothing. The interface of the kit is described at the top of ``kit/figure.js``.

Traits: `Whole` (int), `Even` (positive even int), `Real` (float), `Choice` (one of some texts),
`Flag` (bool); ``List`` and ``Dict`` of traitlets for data that has no control, with
``.tag(sync=True)``. A bad value raises an error that names the trait.
"""

import math
import numbers
import re
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from rope_minimal.checks import as_float, check_dim, check_flag

from .alone import mathml
from .bundle import bundle

__all__ = ["Choice", "Even", "Figure", "Flag", "Real", "Whole"]


class Figure(anywidget.AnyWidget):
    """A figure that computes and draws itself in the browser, with or without a kernel."""

    _css = Path(__file__).with_name("figure.css").read_text(encoding="utf-8")
    _start = traitlets.Dict().tag(sync=True)
    _options = traitlets.Dict().tag(sync=True)
    _whole: traitlets.List[str] = traitlets.List().tag(sync=True)
    _limits = traitlets.Dict().tag(sync=True)

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
        self._options = {
            name: list(trait.options)
            for name, trait in self.traits().items()
            if isinstance(trait, Choice)
        }
        self._whole = [name for name, trait in self.traits().items() if isinstance(trait, Whole)]
        self._limits = {
            name: [
                *(end if math.isfinite(end) else None for end in (trait.low, trait.high)),
                trait.step,
            ]
            for name, trait in self.traits(sync=True, fixed=None).items()
            if isinstance(trait, _Number)
        }
        self.start_here()
        self.on_msg(self._typeset)

    def _typeset(self, _: Any, content: dict, buffers: list) -> None:
        """Answer ``fig.formula``: send LaTeX back as MathML, where the page has no MathJax."""
        self.send({"latex": content["latex"], "mathml": mathml(content["latex"])})

    def start_here(self) -> None:
        """Make the present values of the traits the ones that "Reset" goes back to."""
        self._start = {name: getattr(self, name) for name in self.figure_traits()}

    @classmethod
    def figure_traits(cls) -> list[str]:
        """Return the names of the traits that this figure adds, which a control can drive.

        Data that a figure is given once is tagged ``fixed``: no control drives it.
        """
        inherited = set(Figure.class_trait_names())
        names = cls.class_trait_names(sync=True, fixed=None)
        return [name for name in names if name not in inherited and not name.startswith("_")]


class _Number(traitlets.TraitType):
    """A synced number between ``low`` and ``high``, both included."""

    kind: type[Any] = numbers.Real
    words = "a real number"
    step = 0  # between its values; 0 for any

    def __init__(
        self, default: float, *, low: float = -math.inf, high: float = math.inf, help: str = ""
    ) -> None:
        super().__init__(default, help=help)
        self.low, self.high = low, high
        self.tag(sync=True)

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
    """A float trait: ``Real(default, low=..., high=...)``."""


class Whole(_Number):
    """An int trait: ``Whole(default, low=..., high=...)``."""

    kind = numbers.Integral
    words = "an integer"
    step = 1

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


class Choice(traitlets.TraitType):
    """One of some texts: ``Choice(["angle", "cosine"], default="cosine")``.

    It takes a text or its index and holds the index, because the index is what ipywidgets' choosers
    keep in step with the browser. In JavaScript ``fig.traits`` gives the text.
    """

    def __init__(self, options: list[str], default: str | None = None, help: str = "") -> None:
        self.options = tuple(options)
        super().__init__(0 if default is None else self.options.index(default), help=help)
        self.tag(sync=True)

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


class Flag(traitlets.TraitType):
    """A bool trait: ``Flag(False)``."""

    def __init__(self, default: bool = False, help: str = "") -> None:
        super().__init__(default, help=help)
        self.tag(sync=True)

    def validate(self, obj: Any, value: Any) -> bool:
        """Return the value, or raise an error that names the trait."""
        check_flag(str(self.name), value)
        return bool(value)
