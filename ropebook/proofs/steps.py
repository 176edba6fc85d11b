"""`Step` and `Derivation`: a step is verified when it is added."""

import re as regex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import sympy as sp
from sympy.core.relational import Relational

from .counterexamples import (
    AGREED,
    LARGEST,
    NUMERIC_POINTS,
    SCREEN_POINTS,
    DerivationError,
    Model,
    concrete,
    definitions,
    find_counterexample,
)
from .equality import MOST_TERMS, equal, same_statement
from .statements import Statement, equation, relations, shapes, unknowns
from .writing import card, part, plain_text, tex_parts, whole

KINDS = ("given", "chosen", "derived", "found")


@dataclass(frozen=True, repr=False)
class Step:
    """One step of a derivation.

    Attributes
    ----------
    name
        Short and unique in its derivation; part of its HTML anchor.
    kind
        ``"given"``, ``"chosen"``, ``"derived"``, or ``"found"``: added as derived, but verified
        only numerically.
    statement
        A sympy relation, an ``Or`` of relations, or a pair (left, right): an equation.
    reason
        Why, in words; ``$...$`` is mathematics.
    follows
        Names of its premises.
    by
        For a produced step: a function that returns the statement from the premises, in the order
        of ``follows``.
    words
        What ``by`` does, in words.
    otherwise
        For a chosen step: the other choice and what it would give.
    rival
        For a chosen step: ``(name, model)``, a model of every earlier step but not of this one.
    method, points
        Set by the check: how it was verified, and at how many settings of each model.
    choices
        Set by the check: names of the chosen steps among its premises and theirs.
    home
        Set when added: its derivation. As the value of a notebook cell, a step shows the cards of
        its derivation that no earlier cell has shown; a derivation shows the remaining ones.
    """

    name: str
    kind: str
    statement: Statement
    reason: str
    follows: tuple[str, ...] = ()
    by: Callable[..., Any] | None = None
    words: str = ""
    otherwise: str = ""
    rival: tuple[str, Model] | None = None
    method: str = ""
    points: int = 0
    choices: tuple[str, ...] = ()
    home: "Derivation | None" = field(default=None, compare=False, repr=False)

    @property
    def sides(self) -> tuple[Any, Any]:
        """Both sides; for an ``Or`` those of the first alternative."""
        relation = relations(self.statement)[0]
        return relation.lhs, relation.rhs

    def __str__(self) -> str:
        premises = f" (from {', '.join(self.follows)})" if self.follows else ""
        return f"[{self.kind}] {self.name}: {plain_text(self.statement)}{premises}"

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str | None:
        return None if self.home is None else self.home._new_cards(self)


class Derivation:
    """A named list of verified steps.

    Parameters
    ----------
    name
        Short identifier: letters, digits and dashes; the first part of every anchor.
    title
        Heading on the page.
    model
        The solution: formulas for the undefined functions and matrices, and numbers for symbolic
        matrix sizes. Every statement must hold in it, so the assumptions are consistent, and a
        false step has a numeric counterexample.
    others
        More models, ``{name: formulas}``, each given by its differences from the solution. A
        derived step must hold in each of them, and of the rivals, that satisfies its premises.

    Examples
    --------
    >>> import sympy as sp
    >>> q, k = sp.symbols("q k")
    >>> d = Derivation("dot", "The dot product")
    >>> _ = d.given("start", (sp.Abs(q) ** 2, q * sp.conjugate(q)), "length squared")
    """

    def __init__(
        self,
        name: str,
        title: str,
        model: Model | None = None,
        *,
        others: Mapping[str, Model] | None = None,
    ):
        if not isinstance(name, str) or not regex.fullmatch(r"[A-Za-z][A-Za-z0-9-]*", name):
            raise ValueError(f"name must be letters, digits and dashes, got {name!r}")
        if not isinstance(title, str) or not title:
            raise ValueError(f"title must be a text, got {title!r}")
        if not isinstance(model or {}, Mapping):
            raise TypeError(f"model must give formulas, got {model!r}")
        if not isinstance(others or {}, Mapping):
            raise TypeError(f"others must be models by their names, got {others!r}")
        for label, other in (others or {}).items():
            if not isinstance(other, Mapping):
                raise TypeError(f"others must give formulas for {label!r}, got {other!r}")
        self.name, self.title = name, title
        self.model: dict = dict(model or {})
        self.others: dict[str, Model] = dict(others or {})
        self._steps: dict[str, Step] = {}
        self._fits: dict[tuple, bool] = {}
        self._shown = 0

    def __iter__(self) -> Iterator[Step]:
        return iter(self._steps.values())

    def __len__(self) -> int:
        return len(self._steps)

    def __getitem__(self, name: str) -> Step:
        if name not in self._steps:
            raise KeyError(f"derivation {self.name!r} has no step {name!r}")
        return self._steps[name]

    def given(self, name: str, statement: Any, reason: str) -> Step:
        """Add an assumption."""
        return self.add(Step(name, "given", statement, reason))

    def chosen(
        self,
        name: str,
        statement: Any,
        reason: str,
        *,
        otherwise: str,
        rival: tuple[str, Model] | None = None,
    ) -> Step:
        """Add a choice: ``otherwise`` names an alternative, ``rival`` is a model of it."""
        step = Step(name, "chosen", statement, reason, otherwise=otherwise, rival=rival)
        return self.add(step)

    def derived(
        self,
        name: str,
        statement: Any,
        reason: str,
        *,
        follows: Sequence[str] = (),
        by: Callable[..., Any] | None = None,
        words: str = "",
    ) -> Step:
        """Add a step that follows from earlier ones, and verify it.

        An identity such as 1 + 1 = 2 needs no ``follows``.
        """
        if not isinstance(follows, Sequence):
            raise TypeError(f"follows must be names of steps, got {follows!r}")
        follows = (follows,) if isinstance(follows, str) else tuple(follows)
        return self.add(Step(name, "derived", statement, reason, follows, by, words))

    def add(self, step: Step) -> Step:
        """Verify a step and append it.

        Raises
        ------
        DerivationError
            If the step is false or does not follow from its premises.
        ValueError
            If its name is taken, or a field is missing.
        TypeError
            If a field has the wrong type.
        KeyError
            If a premise is not a step of this derivation.
        """
        if not isinstance(step, Step):
            raise TypeError(f"step must be a Step, got {step!r}")
        name = step.name
        if not isinstance(name, str) or not regex.fullmatch(r"[A-Za-z0-9][A-Za-z0-9-]*", name):
            raise ValueError(f"step name must be letters, digits and dashes, got {name!r}")
        if name in self._steps:
            raise ValueError(f"derivation {self.name!r} already has a step {name!r}")
        checked = replace(self.check(step), home=self)
        self._steps[step.name] = checked
        return checked

    def check(self, step: Step) -> Step:
        """Return the step with ``method``, ``points`` and ``choices`` filled in, or raise."""
        if step.kind not in KINDS:
            raise ValueError(f"kind must be {', '.join(KINDS)}, got {step.kind!r}")
        if not isinstance(step.reason, str) or not step.reason:
            raise ValueError(f"step {step.name!r} needs a reason in words")
        step = replace(step, statement=_as_statement(step.statement, step.name))
        if step.kind == "chosen":
            self._check_choice(step)
            return step
        if step.kind == "given":
            self._screen(step, self.model, "the model of this derivation breaks it")
            return step
        return self._check_derived(step)

    def _screen(self, step: Step, model: Model, problem: str, points: int = SCREEN_POINTS) -> None:
        witness, _ = find_counterexample(step.statement, model, points)
        if witness is not None:
            raise DerivationError(
                step.name, problem, step.sides, witness.setting, (witness.left, witness.right)
            )

    def _check_choice(self, step: Step) -> None:
        if not isinstance(step.otherwise, str) or not step.otherwise:
            raise ValueError(f"chosen step {step.name!r} must say what the other choice gives")
        match step.rival:
            case None | (str(), Mapping()):
                pass
            case other:
                raise TypeError(f"rival must be a name and its formulas, got {other!r}")
        self._screen(step, self.model, "the model of this derivation breaks it")
        if step.rival is None:
            return
        name, formulas = step.rival
        rival = {**self.model, **formulas}
        if self._refuters().get(name, rival) != rival:
            raise ValueError(f"derivation {self.name!r} already has another model {name!r}")
        for earlier in self:
            problem = f"the rival {name!r} of step {step.name!r} breaks it"
            if earlier.follows:  # what it names stands above and has just been found to hold
                problem = _unproved(name)
            self._screen(earlier, rival, problem, _points(earlier.method))
        if find_counterexample(step.statement, rival, SCREEN_POINTS)[0] is None:
            raise DerivationError(
                step.name, f"it is no choice: the rival {name!r} satisfies it too", step.sides
            )

    def _check_derived(self, step: Step) -> Step:
        if not (step.by is None or callable(step.by)):
            raise TypeError(f"by must be a function of the premises, got {step.by!r}")
        premises = [self[name].statement for name in step.follows]
        if len(shapes(step.statement)) > 1:
            raise DerivationError(step.name, "the two sides differ in shape", step.sides)
        self._screen(step, self.model, "the two sides differ")
        method, problem = self._method(step, premises)
        if not step.follows and method != "symbolic" and self._is_about_unknowns(step.statement):
            raise ValueError(
                f"derived step {step.name!r} must name its premises: only an identity has none"
            )
        points = _points(method)
        if method == "numeric":
            self._screen(step, self.model, "the two sides differ", points)
        for name in self.refuters(step.follows):
            self._screen(step, self._refuters()[name], problem or _unproved(name), points)
        if problem:
            raise DerivationError(step.name, problem, step.sides)
        kind = "found" if method == "numeric" else "derived"
        choices = self._choices(step.follows)
        return replace(step, kind=kind, method=method, points=points, choices=choices)

    def _method(self, step: Step, premises: list[Statement]) -> tuple[str, str]:
        """Return the method of verification, and the problem if the premises give another one."""
        if step.by is None:
            return ("symbolic" if self._proved(step, premises) else "numeric"), ""
        result = _as_statement(step.by(*premises), step.name)
        same = same_statement(result, step.statement)
        return "produced", "" if same else f"the premises give {plain_text(result)} instead"

    def _proved(self, step: Step, premises: list[Statement]) -> bool:
        facts = definitions(premises, fixed=self.model)
        for relation in relations(step.statement):
            left, right = concrete(relation.lhs, facts), concrete(relation.rhs, facts)
            if isinstance(relation, sp.Eq):
                if equal(left, right):
                    return True
            elif sp.simplify(relation.func(left, right)) is sp.true:
                return True
        return False

    def _is_about_unknowns(self, statement: Statement) -> bool:
        """Whether a statement has undefined functions or symbols that a model defines."""
        return bool(unknowns(statement) or statement.free_symbols & set(self.model))

    def _refuters(self) -> dict[str, Model]:
        """Return all models except the solution: `others`, and the rivals of choices."""
        rivals = dict(step.rival for step in self if step.rival is not None)
        return {name: {**self.model, **m} for name, m in {**self.others, **rivals}.items()}

    def refuters(self, follows: Sequence[str]) -> tuple[str, ...]:
        """Return the names of the models other than the solution that satisfy the named steps."""
        return tuple(
            name
            for name in self._refuters()
            if all(self._satisfies(name, self[step].statement) for step in follows)
        )

    def _satisfies(self, name: str, statement: Statement) -> bool:
        if (name, statement) not in self._fits:
            witness, _ = find_counterexample(statement, self._refuters()[name], SCREEN_POINTS)
            self._fits[name, statement] = witness is None
        return self._fits[name, statement]

    def _closure(self, names: Iterable[str]) -> list[str]:
        """Return the named steps and all their direct and indirect premises, in order."""
        wanted = set()
        pending = list(names)
        while pending:
            name = pending.pop()
            if name not in wanted:
                wanted.add(name)
                pending += self[name].follows
        return [step.name for step in self if step.name in wanted]

    def _choices(self, follows: Iterable[str]) -> tuple[str, ...]:
        return tuple(n for n in self._closure(follows) if self[n].kind == "chosen")

    # --- output -------------------------------------------------------------------------------

    def anchor(self, step: str) -> str:
        """Return the HTML id of a step's card."""
        return f"{self.name}-{self[step].name}"

    def latex(self, step: str) -> str:
        """Return the statement in LaTeX."""
        return " ".join(tex for _, tex in tex_parts(self[step].statement))

    def verdict(self, step: str) -> str:
        """Return one sentence on how the step was verified."""
        s = self[step]
        if s.kind == "given":
            return "Nothing to prove; it holds in the solution."
        if s.kind == "chosen":
            if s.rival is None:
                return "Nothing to prove."
            return (
                f"Really a choice: {s.rival[0]} satisfies every step above, but not this one "
                "(checked at random numbers)."
            )
        if s.method == "produced":
            return f"Produced: {s.words or 'sympy works it out'}."
        if s.method == "symbolic":
            return "Verified symbolically: sympy reduces left minus right to zero."
        places = "once" if s.points == 1 else f"at {s.points} random settings"
        agree = f"Found true, not derived: it holds to {AGREED} digits {places}"
        if not self._is_about_unknowns(s.statement):
            return f"{agree} of numbers up to {LARGEST}."
        if others := self.refuters(s.follows):
            return f"{agree} of the solution, and of {' and '.join(others)}."
        return f"{agree} of the solution. No other model known here satisfies what it rests on."

    def _described(self, s: Step) -> dict:
        """Return the contents of a step's card as JSON data."""
        return {
            "name": s.name,
            "anchor": self.anchor(s.name),
            "kind": s.kind,
            "latex": self.latex(s.name),
            "reason": s.reason,
            "follows": list(s.follows),
            "method": s.method,
            "verdict": self.verdict(s.name),
            "otherwise": s.otherwise,
            "choices": list(s.choices),
            "found": [n for n in self._closure(s.follows) if self[n].kind == "found"],
        }

    def __repr__(self) -> str:
        return f"Derivation({self.name!r}, {len(self)} steps)"

    def __str__(self) -> str:
        lines = [self.title]
        lines += [f"{number:>2}. {s}" for number, s in enumerate(self, start=1)]
        return "\n".join(lines)

    def _repr_latex_(self) -> str:
        rows = [rf"\text{{{s.name}}} && {self.latex(s.name)} && \text{{{s.kind}}}" for s in self]
        return "$$\\begin{aligned}\n" + " \\\\\n".join(rows) + "\n\\end{aligned}$$"

    def _repr_html_(self) -> str:
        """Return the cards that no step has shown yet."""
        cards = self._cards(self._shown, len(self))
        return whole(self.name, self.title, cards, self._shown + 1)

    def _new_cards(self, last: Step) -> str:
        """Return the cards up to a step that no cell has shown, or else its own card again.

        A card that is shown again has no anchor, because an HTML id is unique.
        """
        stop = list(self._steps).index(last.name) + 1
        again = stop <= self._shown
        start, self._shown = min(self._shown, stop - 1), max(self._shown, stop)
        cards = self._cards(start, stop, again=again)
        return part(self.name, self.title, cards, start + 1, again=again)

    def _cards(self, start: int, stop: int, *, again: bool = False) -> list[str]:
        cards = []
        for number, s in list(enumerate(self, start=1))[start:stop]:
            parts = tex_parts(s.statement, [self[name].statement for name in s.follows])
            cards.append(card(number, self._described(s), parts, self.name, again=again))
        return cards


def _points(method: str) -> int:
    return NUMERIC_POINTS if method == "numeric" else SCREEN_POINTS


def _unproved(model: str) -> str:
    return f"it does not follow: {model} satisfies all that it rests on, but not this step"


def _as_statement(statement: Any, name: str) -> Statement:
    """Convert a pair to an unevaluated equation; raise for what cannot be verified."""
    if isinstance(statement, tuple) and len(statement) == 2:
        statement = equation(*statement)
    if statement is sp.false or statement is False:
        raise DerivationError(name, "the statement is false as written")
    if statement is sp.true or statement is True:
        raise ValueError(
            f"statement of step {name!r} was evaluated to True before it could be checked: "
            "write it as a pair (left, right)"
        )
    alternatives = relations(statement)
    if not all(isinstance(a, Relational) for a in alternatives):
        raise TypeError(
            f"statement of step {name!r} must be a pair (left, right), a sympy relation or an Or "
            f"of relations, got {statement!r}"
        )
    if statement.has(sp.zoo, sp.nan) or any(0 in shape for shape in shapes(statement)):
        raise ValueError(f"statement of step {name!r} has no numbers: {plain_text(statement)}")
    for long in statement.atoms(sp.Sum, sp.Product):
        terms = [stop - start for _, start, stop in long.limits]
        if any(number.is_Integer and number > MOST_TERMS for number in terms):
            raise ValueError(f"step {name!r} has more terms than can be added up: {long}")
    return statement
