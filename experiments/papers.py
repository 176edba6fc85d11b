"""Verdict cards of works on rotary embeddings: what they claim, and what came of it here."""

import html
import json
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from IPython.display import HTML

from . import recent
from .summary import Comparison, ahead, compare, unit, values

FILE = Path(__file__).parent / "papers.json"
KINDS = ("mathematics", "a released model", "small models")
VERDICTS = ("holds", "holds in part", "fails", "cannot be asked here")
TASKS = ("copy", "induction", "find", "recall", "parity", "language")
TIMES = (1, 2, 4, 8)
STYLE = """
.paper { border-left: 0.3rem solid var(--paper); padding: 0.2rem 0 0.2rem 0.9rem; }
.paper { --paper: #767676; --ahead: #c8e6c9; --behind: #ffcdd2; --about: #767676; }
.paper-holds { --paper: #2e7d32; } .paper-holds-in-part { --paper: #a36a00; }
.paper-fails { --paper: #c62828; }
html[data-theme="dark"] .paper { --ahead: #1b4d20; --behind: #6b1d1d; --about: #a0a0a0; }
html[data-theme="dark"] .paper-holds { --paper: #66bb6a; }
html[data-theme="dark"] .paper-holds-in-part { --paper: #e0a030; }
html[data-theme="dark"] .paper-fails { --paper: #ef5350; }
html[data-theme="dark"] .bd-content div.cell_output .output.text_html:has(.paper),
html[data-theme="dark"] .bd-content div.cell_output .output.text_html:has(.paper-filter) {
  background: none; color: inherit; padding: 0; }
.paper p { margin: 0.15rem 0; }
.paper dl { display: grid; grid-template-columns: 6rem 1fr; gap: 0.2rem 0.8rem; margin: 0.4rem 0; }
.paper dt { font-weight: normal; opacity: 0.85; } .paper dd { margin: 0; min-width: 0;
  overflow-wrap: anywhere; }
.paper dd p { font-size: 0.85em; }
.paper-verdict { font-weight: 700; border-bottom: 0.15rem solid var(--paper); }
.paper-tables { display: flex; flex-wrap: wrap; gap: 0 2rem; }
.bd-article table.paper-cells, table.paper-cells { width: auto; margin: 0.2rem 0 0.5rem;
  border-collapse: collapse; font-size: 0.85em; font-variant-numeric: tabular-nums; }
.bd-article table.paper-cells :is(th, td), table.paper-cells :is(th, td) { padding: 0.1rem 0.5rem;
  border: 0; text-align: right; color: inherit; background: none;
  font-weight: normal; white-space: nowrap; }
.bd-article table.paper-cells td, table.paper-cells td { min-width: 5.4rem; }
.bd-article table.paper-cells tr > :first-child, table.paper-cells tr > :first-child {
  text-align: left; }
table.paper-cells caption { caption-side: top; padding: 0; text-align: left; color: inherit; }
.bd-article table.paper-cells td.paper-ahead, table.paper-cells td.paper-ahead {
  background: var(--ahead); }
.bd-article table.paper-cells td.paper-behind, table.paper-cells td.paper-behind {
  background: var(--behind); }
.bd-article table.paper-cells td.paper-about, table.paper-cells td.paper-about {
  box-shadow: inset 0 0 0 1px var(--about); }
.bd-article table.paper-filter, table.paper-filter { width: auto; margin: 0.5rem 0; }
.bd-article table.paper-filter :is(th, td), table.paper-filter :is(th, td) { text-align: right;
  padding: 0.15rem 0.6rem; font-weight: normal; color: inherit; background: none; border: 0; }
.bd-article table.paper-filter tr > :first-child, table.paper-filter tr > :first-child {
  text-align: left; }
@media (max-width: 40rem) {
  .paper dl { grid-template-columns: 1fr; gap: 0; } .paper dt { margin-top: 0.4rem; }
  .bd-article table.paper-cells :is(th, td) { padding: 0.1rem 0.25rem; white-space: normal; }
  .bd-article table.paper-cells td { min-width: 3.2rem; }
  .bd-article table.paper-filter :is(th, td) { padding: 0.15rem 0.25rem; }
  .bd-article table.paper-cells td b { display: block; } }
"""


@cache
def load() -> dict[str, dict[str, Any]]:
    """Return all cards by name."""
    return json.loads(FILE.read_text("utf8"))


_records = cache(recent.records)


def slug(verdict: str) -> str:
    return verdict.replace(" ", "-")


def _line(text: str) -> str:
    """Escape a line; what stands between backticks is code, *between stars* stressed."""
    text = html.escape(text, quote=False)
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
    return re.sub(r"\*([^*]+)\*", r"<em>\1</em>", text)


def _card(name: str, verdict: str, found: str, why: str) -> HTML:
    """Return a card; ``found`` and ``why`` are HTML."""
    one = load()[name]
    link = f'<a href="https://arxiv.org/abs/{one["id"]}">arXiv&nbsp;{one["id"]}</a>'
    rows = {
        "Claim": f"{_line(one['claim'])}<p>{_line(one['setting'].rstrip('.'))}. "
        f"Read: {_line(one['read'])} ({link}).</p>",
        "Run here": _line(one["run"]),
        "Found": found,
        "Verdict": f'<span class="paper-verdict">{verdict}</span>{why and f". {why}"}',
    }
    lines = "".join(f"<dt>{words}</dt><dd>{line}</dd>" for words, line in rows.items())
    classes = f"paper paper-{slug(verdict)} paper-{slug(one['kind'])}"
    return HTML(f'<div class="{classes}"><dl>{lines}</dl></div>')


def card(name: str, **numbers: Any) -> HTML:
    """Return a card whose lines ``found`` and ``why`` are filled with numbers."""
    one = load()[name]
    found, why = (_line(one.get(key, "").format(**numbers)) for key in ("found", "why"))
    return _card(name, one["verdict"], found, why)


def filters() -> HTML:
    """Return how many cards there are of each verdict and kind, with boxes that hide some.

    A box that is not ticked hides, without a script, the sections of its class, or outside a site
    the cards; the one that the page's address names stays.
    """
    counts = Counter((one["kind"], verdict(name)) for name, one in load().items())
    of = {name: sum(n for pair, n in counts.items() if name in pair) for name in VERDICTS + KINDS}

    def head(name: str, scope: str) -> str:
        box = f'<label><input type="checkbox" id="show-{slug(name)}" checked> {name}</label>'
        return f'<th scope="{scope}">{box if of[name] else name}</th>'

    def line(first: str, numbers: list[int]) -> str:
        return f"<tr>{first}{''.join(f'<td>{n}</td>' for n in [*numbers, sum(numbers)])}</tr>"

    rows = [line(head(kind, "row"), [counts[kind, v] for v in VERDICTS]) for kind in KINDS]
    rows.append(line('<th scope="row">all</th>', [of[v] for v in VERDICTS]))
    rules = []
    for name in (name for name in of if of[name]):
        there = f"body:has(#show-{slug(name)}:not(:checked))"
        rules.append(
            f"{there} section:not(:target):has(> .cell .paper-{slug(name)}), "
            f"{there} .paper-{slug(name)}:not(:target *) {{ display: none; }}"
        )
    return HTML(
        f"<style>{STYLE}{chr(10).join(rules)}</style>"
        '<table class="paper-filter"><thead><tr><td></td>'
        f"{''.join(head(v, 'col') for v in VERDICTS)}"
        f'<th scope="col">all</th></tr></thead><tbody>{"".join(rows)}</tbody></table>'
    )


# ---- cards whose numbers come from the record of recent.py ---------------------------------------


class Cell(NamedTuple):
    """One encoding against another on a task and a length."""

    found: Comparison
    back: Comparison
    """The same, the other one first."""

    @property
    def so(self) -> str:
        """``ahead`` or ``behind`` by the book's rule, else ``undecided``."""
        return "ahead" if self.found.stands else "behind" if self.back.stands else "undecided"

    @property
    def median(self) -> str:
        return f"{np.median(self.found.measured):+z.2f}".replace("-", "\N{MINUS SIGN}")

    @property
    def words(self) -> str:
        return f"{self.so}: ahead in {self.found.wins} of 8 seeds, behind in {self.back.wins}"


def cells(first: str, second: str = "rope") -> dict[tuple[str, int], Cell]:
    """Return each comparison of two encodings that the record has, by task and length."""
    found = {}
    for task in TASKS:
        record = _records()[task]
        if {first, second} <= set(record["settings"]["encodings"]):
            for times in TIMES:
                found[task, times] = Cell(
                    compare(record, first, second, times=times),
                    compare(record, second, first, times=times),
                )
    return found


def counts(task: str, times: int, said: str) -> bool:
    """Return whether a cell counts: none does that cannot be ahead, as RoPE makes no mistake, and
    is not behind."""
    room = unit(task) == "bits" or min(values(_records()[task], "rope", times=times)) < 1
    return room or said == "behind"


def about(name: str) -> list[str]:
    """Return what the cells say that a card's claim is about: its rows where its columns cross."""
    one = load()[name]
    return [
        cell.so
        for (task, times), cell in cells(one["encoding"]).items()
        if task in one["tasks"] and times in one["times"] and counts(task, times, cell.so)
    ]


def verdict(name: str) -> str:
    """Return the verdict of a card: its own, or what the cells say that its claim is about."""
    one = load()[name]
    if "verdict" in one:
        return one["verdict"]
    said = about(name)
    if "ahead" in said:
        return "holds" if set(said) == {"ahead"} else "holds in part"
    return "fails" if "behind" in said else "cannot be asked here"


def _matrix(caption: str, first: str, second: str, rows: list[str], columns: list[int]) -> str:
    """Return the table of all cells of two encodings; those of some rows and columns are framed."""
    known, lines = cells(first, second), []
    for task in TASKS:
        line = [f'<th scope="row">{task}{" (bits)" * (unit(task) == "bits")}</th>']
        for times in TIMES:
            if (task, times) not in known:
                line.append('<td title="not recorded">–</td>')
                continue
            cell = known[task, times]
            about = task in rows and times in columns and counts(task, times, cell.so)
            framed = " paper-about" * about
            said = "" if cell.so == "undecided" else f"<b>{cell.so}</b> "
            line.append(
                f'<td class="paper-{cell.so}{framed}" title="{cell.words}">{said}{cell.median}</td>'
            )
        lines.append(f"<tr>{''.join(line)}</tr>")
    heads = "".join(f'<th scope="col">{times}</th>' for times in TIMES)
    return (
        f'<table class="paper-cells"><caption>{_line(caption)}</caption><thead><tr>'
        f'<th scope="col">windows</th>{heads}</tr></thead><tbody>{"".join(lines)}</tbody></table>'
    )


def masked(encoding: str) -> int | None:
    """Return in how many seeds an encoding reads four windows of English better than RoPE that sees
    one window of keys; None if it was not trained on English."""
    record = _records()["language"]
    if encoding not in record["settings"]["encodings"]:
        return None
    near = values(record, "rope", "bits", times=4, kind="near")
    own = values(record, encoding, "bits", times=4)
    return sum(d > 0 for d in ahead("language", own, near))


def contest_card(name: str, **numbers: Any) -> HTML:
    """Return a card with every comparison of its encoding with RoPE that the record has."""
    one, said, so = load()[name], about(name), verdict(name)
    tables = _matrix("Against RoPE", one["encoding"], "rope", one["tasks"], one["times"])
    if "beside" in one:
        first, second, caption = one["beside"]
        tables += _matrix(caption, first, second, [], [])
    wins = masked(one["encoding"])
    line = (
        ""
        if wins is None
        else "<p>In English, at four windows, ahead of RoPE that sees one window of keys in "
        f"{wins} of 8 seeds.</p>"
    )
    told = (
        f"Of {len(said)} cells {said.count('ahead')} ahead, {said.count('behind')} behind."
        if said
        else "No cell is of the form that the claim is about."
    )
    why = _line(f"{told} {one.get('why', '').format(**numbers)}".strip())
    return _card(name, so, f'<div class="paper-tables">{tables}</div>{line}', why)
