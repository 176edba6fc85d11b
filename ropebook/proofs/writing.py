"""Output of derivations: LaTeX, plain text, and HTML cards."""

import html
import re as regex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sympy as sp
from sympy.printing.latex import LatexPrinter

from .statements import Statement, relations

_RELATIONS = {"==": "=", "!=": r"\neq", "<": "<", "<=": r"\leq", ">": ">", ">=": r"\geq"}


def plain_text(statement: Statement) -> str:
    """Return a statement as one line of plain text."""
    signs = {"==": "="}
    return " or ".join(
        f"{r.lhs} {signs.get(r.rel_op, r.rel_op)} {r.rhs}" for r in relations(statement)
    )


def tex_parts(statement: Statement, premises: Sequence[Statement] = ()) -> list[tuple[str, str]]:
    """Return the sides and relation signs in LaTeX; what occurs in no premise gets a CSS class."""
    printer = _Printer(_fresh(statement, premises))
    parts: list[tuple[str, str]] = []
    for relation in relations(statement):
        if parts:
            parts.append(("or", r"\quad\text{or}\quad"))
        parts += [
            ("left", printer.doprint(relation.lhs)),
            ("relation", _RELATIONS[relation.rel_op]),
            ("right", printer.doprint(relation.rhs)),
        ]
    return parts


def _fresh(statement: Statement, premises: Sequence[Statement]) -> set:
    """Return the smallest compound subexpressions that occur in no premise."""
    known = {node for premise in premises for node in sp.preorder_traversal(premise)}

    def is_known(node: Any) -> bool:
        return not node.args or node in known or -node in known or node.is_number

    return {
        node
        for node in sp.preorder_traversal(statement)
        if isinstance(node, sp.Expr)
        and known
        and not is_known(node)
        and all(is_known(a) for a in node.args if isinstance(a, sp.Expr))
    }


class _Printer(LatexPrinter):
    """sympy's LaTeX printer, with upright Re and Im, and a CSS class for new subexpressions."""

    def __init__(self, fresh: set | None = None):
        super().__init__({"mat_delim": "(", "mat_str": "matrix", "fold_func_brackets": False})
        self._fresh = fresh or set()

    def _print(self, expr: Any, **kwargs: Any) -> str:
        tex = super()._print(expr, **kwargs)
        if isinstance(expr, sp.Basic) and expr in self._fresh:
            return rf"\class{{derivation-new}}{{{tex}}}"
        return tex

    def _print_re(self, expr: Any, exp: Any = None) -> str:
        return rf"\operatorname{{Re}}\left({self._print(expr.args[0])}\right)"

    def _print_im(self, expr: Any, exp: Any = None) -> str:
        return rf"\operatorname{{Im}}\left({self._print(expr.args[0])}\right)"

    def _as_ordered_terms(self, expr: Any, order: Any = None) -> list:
        terms = super()._as_ordered_terms(expr, order)  # n - m, not -m + n
        return sorted(terms, key=lambda term: term.could_extract_minus_sign())

    def _print_Function(self, expr: Any, exp: Any = None) -> str:  # noqa: N802
        self._settings["fold_func_brackets"] = isinstance(expr, sp.sin | sp.cos)
        tex = super()._print_Function(expr, exp)
        self._settings["fold_func_brackets"] = False
        return tex

    def _print_Identity(self, expr: Any) -> str:  # noqa: N802
        return "I"

    def _print_Transpose(self, expr: Any) -> str:  # noqa: N802
        inner = self.parenthesize(expr.arg, 100, strict=True) if expr.arg.args else ""
        return rf"{inner or self._print(expr.arg)}^{{\top}}"

    def _print_MatrixAt(self, expr: Any) -> str:  # noqa: N802
        return expr._latex(self)


# ------------------------------------------------------------------------------------------------
# Cards

_STYLE = """<style>
.derivation, .derivation-part { margin: 1rem 0; container-type: inline-size; }
html[data-theme=dark] .bd-content
  div.cell_output .text_html.text_html:has(.derivation, .derivation-part) {
  background: none; color: inherit; padding: 0; }
.derivation-title { font-weight: 600; margin: 0 0 .5rem; }
ol.derivation-steps { list-style: none; margin: 0; padding: 0; }
.derivation-step { border: 1px solid color-mix(in srgb, currentColor 25%, transparent);
  border-inline-start-width: 4px; border-radius: .4rem; padding: .6rem .9rem; margin: 0 0 .6rem;
  scroll-margin-top: 5rem; }
.derivation-step[data-kind="given"] { border-inline-start-color: #5c7cfa; }
.derivation-step[data-kind="chosen"] { border-inline-start-color: #e8890c; }
.derivation-step[data-kind="derived"] { border-inline-start-color: #2b9a66; }
.derivation-step[data-kind="found"] { border-inline-start: 4px dashed #2b9a66; }
.derivation-step:target { outline: 2px solid currentColor; outline-offset: 2px; }
.derivation-step p { margin: .25rem 0; }
.derivation-number { font-variant-numeric: tabular-nums; opacity: .75; }
.derivation-name { color: inherit; font-weight: 600; text-decoration: none; }
.derivation-name:hover, .derivation-name:focus { text-decoration: underline; }
.derivation-kind { border: 1px solid currentColor; border-radius: 1rem; font-size: .8em;
  padding: 0 .5em; }
.derivation-statement { overflow-x: auto; overflow-y: hidden; padding: .35rem 0; }
.derivation-statement > span { display: inline-block; padding: .12em .35em .12em 0; }
.derivation-new { border-bottom: .08em solid #2b9a66; }
.derivation-verdict, .derivation-follows, .derivation-choices { display: inline; font-size: .9em; }
</style>
"""


def whole(derivation: str, title: str, cards: Sequence[str], start: int) -> str:
    """Return the cards from ``start`` on as HTML, below a link to the earlier ones."""
    above = f'<p class="derivation-above"><a href="#{derivation}">{_text(title)}</a>: steps 1 to '
    above += f"{start - 1} stand above.</p>\n"
    if not cards:
        return f'<div class="derivation-part tex2jax_process">\n{above}</div>'
    name = f'id="{derivation}" aria-labelledby="{derivation}-title"'
    if start > 1:
        name = f'aria-label="{_plain(title)}, from step {start}"'
    head = _title(derivation, title) if start == 1 else above
    return (
        f'{_STYLE}<section class="derivation tex2jax_process" data-derivation="{derivation}" '
        f"{name}>\n{head}{_list(cards, start)}</section>"
    )


def part(
    derivation: str, title: str, cards: Sequence[str], start: int, *, again: bool = False
) -> str:
    """Return some cards of a derivation as HTML; card 1 has the title above it."""
    first = start == 1 and not again
    name = f'id="{derivation}" ' if first else ""
    return (
        f'{_STYLE if first else ""}<div class="derivation-part tex2jax_process" {name}role="group" '
        f'data-derivation="{derivation}" aria-label="{_plain(title)}, from step {start}">\n'
        f"{_title(derivation, title) if first else ''}{_list(cards, start)}</div>"
    )


def _title(derivation: str, title: str) -> str:
    return f'<p class="derivation-title" id="{derivation}-title">{_text(title)}</p>\n'


def _list(cards: Sequence[str], start: int) -> str:
    body = "\n".join(cards)
    return f'<ol class="derivation-steps" start="{start}">\n{body}\n</ol>\n'


def card(
    number: int,
    step: Mapping,
    parts: Iterable[tuple[str, str]],
    derivation: str,
    *,
    again: bool = False,
) -> str:
    """Return the HTML card of one step."""
    anchor, name, kind = step["anchor"], step["name"], step["kind"]
    statement = "".join(
        f'<span class="derivation-{part}">\\(\\displaystyle {html.escape(tex)}\\)</span> '
        for part, tex in parts
    )
    rows = [
        f'<p class="derivation-head"><span class="derivation-number">{number}</span> '
        f'<a class="derivation-name" href="#{anchor}">{name.replace("-", " ")}</a> '
        f'<span class="derivation-kind derivation-kind-{kind}">{kind}</span></p>',
        f'<div class="derivation-statement">{statement}</div>',
        f'<p class="derivation-reason">{_text(step["reason"])}</p>',
    ]
    if step["otherwise"]:
        rows.append(
            f'<p class="derivation-otherwise"><b>Otherwise:</b> {_text(step["otherwise"])}</p>'
        )
    rows.append(
        f'<p class="derivation-verdict"><span aria-hidden="true">'
        f"{'&#10003;' if kind == 'derived' else '&#8226;'}</span> "
        f"{_text(step['verdict'])}</p>"
    )
    if follows := step["follows"]:
        label = "Rests on" if kind == "derived" else "Tried with"
        rows.append(f'<p class="derivation-follows">{label} {_links(derivation, follows)}.</p>')
    elif step["method"]:
        rows.append('<p class="derivation-follows">Rests on no other step.</p>')
    if follows and kind == "derived":
        rows.append(f'<p class="derivation-choices">{_forced(derivation, step)}.</p>')
    body = "\n".join(rows)
    identity = "" if again else f' id="{anchor}"'
    return (
        f'<li class="derivation-step"{identity} data-step="{name}" '
        f'data-kind="{kind}" data-method="{step["method"]}" '
        f'data-follows="{" ".join(follows)}">\n{body}\n</li>'
    )


def _forced(derivation: str, step: Mapping) -> str:
    choices, found = step["choices"], step["found"]
    grounds = []
    if choices:
        grounds.append(f"the choice{'s' if len(choices) > 1 else ''} {_links(derivation, choices)}")
    if found:
        grounds.append(f"what was only found true: {_links(derivation, found)}")
    if not grounds:
        return "Forced: it depends on no choice made here"
    return f"Depends on {', and on '.join(grounds)}"


def _links(derivation: str, names: Iterable[str]) -> str:
    return ", ".join(f'<a href="#{derivation}-{n}">{n.replace("-", " ")}</a>' for n in names)


def _plain(text: str) -> str:
    return html.escape(regex.sub(r"[$*`]", "", text))


def _text(text: str) -> str:
    """Escape for HTML; ``$...$`` becomes inline mathematics, ``*...*`` and ``**...**`` emphasis."""
    pieces = text.split("$")
    for i, piece in enumerate(pieces):
        piece = html.escape(piece)
        if i % 2:
            pieces[i] = rf"\({piece}\)"
        else:
            piece = regex.sub(r"`([^`]+)`", r"<code>\1</code>", piece)
            piece = regex.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", piece)
            pieces[i] = regex.sub(r"\*([^*]+)\*", r"<em>\1</em>", piece)
    return "".join(pieces)
