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
from .summary import Comparison, compare, measured, unit

FILE = Path(__file__).parent / "papers.json"
KINDS = ("mathematics", "a released model", "small models")
VERDICTS = ("holds", "holds in part", "fails", "cannot be asked here", "not run yet")
LINES = {"claim": "Claim", "setting": "Their setting", "read": "Read", "run": "Run here",
         "found": "Found"}  # fmt: skip
STYLE = """
.paper { border-left: 0.3rem solid var(--paper); padding: 0.2rem 0 0.2rem 0.9rem; }
.paper, .paper-filter { --paper: #767676; }
.paper-holds { --paper: #2e7d32; } .paper-holds-in-part { --paper: #a36a00; }
.paper-fails { --paper: #c62828; }
html[data-theme="dark"] .paper-holds { --paper: #66bb6a; }
html[data-theme="dark"] .paper-holds-in-part { --paper: #e0a030; }
html[data-theme="dark"] .paper-fails { --paper: #ef5350; }
html[data-theme="dark"] .bd-content div.cell_output .output.text_html:has(.paper),
html[data-theme="dark"] .bd-content div.cell_output .output.text_html:has(.paper-filter) {
  background: none; color: inherit; padding: 0; }
.paper p { margin: 0.15rem 0; }
.paper dl { display: grid; grid-template-columns: 7rem 1fr; gap: 0.2rem 0.8rem; margin: 0.4rem 0; }
.paper dt { font-weight: normal; opacity: 0.85; } .paper dd { margin: 0; min-width: 0;
  overflow-wrap: anywhere; }
.paper-verdict { font-weight: 700; border-bottom: 0.15rem solid var(--paper); }
.paper-filter { display: flex; flex-wrap: wrap; gap: 0.3rem 1.2rem; border: 0; padding: 0;
  margin: 0.5rem 0; }
.paper-filter label { white-space: nowrap; }
@media (max-width: 40rem) {
  .paper dl { grid-template-columns: 1fr; gap: 0; } .paper dt { margin-top: 0.4rem; } }
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


def card(name: str, verdict: str | None = None, **numbers: Any) -> HTML:
    """Return a card whose line ``found`` is filled with numbers.

    ``verdict`` is the card's own unless given.
    """
    one = load()[name]
    verdict = verdict or one["verdict"]
    if verdict not in VERDICTS:
        raise ValueError(f"verdict must be one of {', '.join(VERDICTS)}; got {verdict!r}")
    lines = {**one, "found": one["found"].format(**numbers)}
    rows = "".join(f"<dt>{words}</dt><dd>{_line(lines[key])}</dd>" for key, words in LINES.items())
    why = f". {_line(one['why'].format(**numbers))}" if "why" in one else ""
    said = f'<span class="paper-verdict">{verdict}</span>'
    return HTML(
        f'<div class="paper paper-{slug(verdict)} paper-{slug(one["kind"])}">'
        f'<p>{_line(one["authors"])}, {one["year"]}, arXiv <a href="https://arxiv.org/abs/'
        f'{one["id"]}">{one["id"]}</a></p><dl>{rows}<dt>Verdict</dt><dd>{said}{why}</dd></dl></div>'
    )


def filters() -> HTML:
    """Return boxes that leave the cards of some verdicts and kinds on the page, without a script.

    A box that is not ticked hides the sections, or outside a site the cards, of its class.
    """
    counts = Counter(verdict(name) for name in load()) + Counter(
        one["kind"] for one in load().values()
    )
    rules, sets = [], []
    for title, names in (("Verdict", VERDICTS), ("Asked of", KINDS)):
        boxes = []
        for name in names:
            box = f"show-{slug(name)}"
            boxes.append(
                f'<label><input type="checkbox" id="{box}" checked> {name} ({counts[name]})</label>'
            )
            there = f"body:has(#{box}:not(:checked))"
            rules.append(
                f"{there} section:has(> .cell .paper-{slug(name)}), "
                f"{there} .paper-{slug(name)} {{ display: none; }}"
            )
        sets.append(
            f'<fieldset class="paper-filter"><legend>{title}</legend>{"".join(boxes)}</fieldset>'
        )
    style = STYLE + "\n".join(rules)
    return HTML(f"<style>{style}</style>{''.join(sets)}")


# ---- cards whose numbers come from the record of recent.py ---------------------------------------


def place(task: str, times: int) -> str:
    return f"{task} at {'the window' if times == 1 else f'{times} windows'}"


class Against(NamedTuple):
    """An encoding against RoPE on one task and length."""

    task: str
    times: int
    found: Comparison
    back: Comparison
    """The same, RoPE against the encoding."""

    @property
    def words(self) -> str:
        """Say who is ahead in how many seeds, and whether the other rates and steps agree."""
        so = "better" if self.found.stands else "worse" if self.back.stands else "undecided"
        for words, side in (("ahead", self.found), ("behind", self.back)):
            if so == "undecided" and side.wins >= len(side.measured) - 1:
                others = {"at the lower rate": side.lower, "at the higher rate": side.higher,
                          "with twice the steps": side.twice}  # fmt: skip
                against = [at for at, d in others.items() if d is not None and sum(d) <= 0]
                so += f", since not {words} {' nor '.join(against)}"
        so = so if self.found.twice else "twice the steps not recorded yet"
        level = sum(d == 0 for d in self.found.measured)
        ahead = f"{self.found.wins} of 8 seeds{f', level in {level}' if level else ''}"
        of = "bits" if unit(self.task) == "bits" else "in accuracy"
        gain = f"median gain {np.median(self.found.measured):+z.2f} {of}"
        return f"{place(self.task, self.times)}: ahead in {ahead} ({gain}), {so}"


def contest(name: str) -> list[Against]:
    """Return those of a card's comparisons with RoPE that have been measured."""
    one, found = load()[name], []
    for task, times in one["against"]:
        record = _records()[task]
        try:
            measured(record, one["encoding"])
        except LookupError:
            continue
        sides = one["encoding"], "rope"
        both = (compare(record, *order, times=times) for order in (sides, sides[::-1]))
        found.append(Against(task, times, *both))
    return found


def verdict(name: str) -> str:
    """Return the verdict of a card: its own, or what its comparisons say.

    A comparison stands by the rule for what was not predicted. The claim holds if all stand, in
    part if some do, and fails if none does and RoPE is better in one; else it cannot be asked.
    """
    one = load()[name]
    if "encoding" not in one:
        return one["verdict"]
    found = contest(name)
    if len(found) < len(one["against"]) or not all(each.found.twice for each in found):
        return "not run yet"
    stand = [each.found.stands for each in found]
    if any(stand):
        return "holds" if all(stand) else "holds in part"
    return "fails" if any(each.back.stands for each in found) else "cannot be asked here"


def contest_card(name: str) -> HTML:
    """Return a card whose numbers and verdict come from the record, where it has them."""
    found = contest(name)
    done = {(each.task, each.times) for each in found}
    lacking = [at for at in map(tuple, load()[name]["against"]) if at not in done]
    words = "; ".join(each.words for each in found)
    if lacking:
        words += (
            f"{'; ' if found else ''}not recorded yet: {', '.join(place(*at) for at in lacking)}"
        )
    return card(name, verdict(name), words=words)
