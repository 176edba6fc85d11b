"""What other runtimes have to be told to rotate as a configuration says, and what differs there.

``engines.json`` holds in short what was heard of them; elsewhere.js says the same on the page.
"""

import json
import math
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["VERDICTS", "elsewhere", "load_engines", "rules_of"]

VERDICTS = "otherwise", "so", "not heard"
"""A runtime was heard to turn otherwise, was heard to turn so, or was not asked for all of it."""

SECTIONS = "16, 8, 8", "12, 10, 10"
"""Numbers of pairs of three axes in the calls that were heard."""

FAR = 131_071
"""The position for which `elsewhere` gives the error of angles, where a model goes beyond."""


@cache
def load_engines() -> list[dict[str, Any]]:
    """Return the runtimes: name with version, ``turns``, ``rules``, ``ends``, ``far``.

    A turn is ``[layout, whether part of a head, order of axes, call, what differs]``; rules hold in
    words what differs from transformers, empty where nothing does, and are None where the caller
    makes the table of cos and sin; where a runtime has a trained length or a layout of its own for
    a rule, these stand beside the words.
    """
    return json.loads((Path(__file__).parent / "engines.json").read_text("utf8"))


def rules_of(part: dict[str, Any]) -> list[str]:
    """Return the rescalings of ``engines.json`` that a part needs, by their names there."""
    if not part["rescaling"]:
        return []
    kind, given = part["rescaling"]
    if kind == "proportional":  # a matter of channels
        return []
    if kind != "yarn":
        return [kind]
    found = []
    own = 0.1 * math.log(given["factor"]) + 1.0
    factor, mscale, over = (
        given.get(key) or 0 for key in ("attention_factor", "mscale", "mscale_all_dim")
    )
    if factor and abs(factor - own) > 1e-6:
        found.append("yarn, attention_factor 1")
    if mscale and over:
        found.append(f"yarn, mscale 1 over {'1' if mscale == over else '0.707'}")
    elif mscale and mscale != 1:  # alone
        found.append("yarn, mscale 0.707")
    if given.get("truncate") is False:
        found.append("yarn, no truncation")
    if (given.get("beta_fast") or 32, given.get("beta_slow") or 1) != (32, 1):
        found.append("yarn, beta 16 and 2")
    return found or ["yarn"]


def elsewhere(part: dict[str, Any]) -> list[dict[str, str]]:
    """Return what each runtime was told when it turned as a part does, and what differed.

    Parameters
    ----------
    part
        As `ropescope.configuration.RotatedPart`, of ``Specification.to_dict``. Of parts with two
        axes, and of those that are no text, nothing is said.

    Returns
    -------
    list of dict
        ``runtime``, ``verdict`` (of `VERDICTS`), ``call`` (with the sections of this part;
        ``with llama3``: whose parameters it has to be told, too), ``words``, and ``limits`` of
        positions; in the order of the verdicts.
    """
    first = (part["inv_freq"] or [0.0])[0]
    axes = len(first) if isinstance(first, list) else 1
    if part["part"] != "text" or axes not in (1, 3):
        return []
    order = ""
    if axes == 3:
        order = "blocks" if len(part["sections"]) == 3 else "by turns"
    some = part["place"] if part["place"] in ("first", "elsewhere") else "all"
    layout = part["layout"].replace("read interleaved, written half-split", "interleaved")
    length = max(part["trained_length"] or 0, part["max_length"] or 0)
    said = [_of(one, (layout, some, order), part, length) for one in load_engines()]
    return sorted(said, key=lambda one: VERDICTS.index(one["verdict"]))


def _of(
    runtime: dict[str, Any], turn: tuple[str, str, str], part: dict[str, Any], length: int
) -> dict[str, str]:
    """Return the entry of one runtime."""
    told = {rule: (runtime["rules"] or {}).get(rule) for rule in rules_of(part)}
    turns = runtime["turns"]
    for one in told.values():
        if isinstance(one, list) and one[2]:  # the layout of this rule
            turns = [[one[2], *of[1:]] for of in turns]
    found = [one for one in turns if tuple(one[:3]) == turn]
    near = found or [one for one in turns if one[0] == turn[0]]
    call = (near or turns)[0][3]
    if turn[2]:  # sections as this part has them
        pairs = [sum(n for axis, n in part["sections"] if axis == one) for one in range(3)]
        for own in SECTIONS:
            call = call.replace(own, ", ".join(map(str, pairs)))
            call = call.replace(own.replace(",", ""), " ".join(map(str, pairs)))
    if "rope_type" in call:  # which has one value, and that is the layout's
        told = dict.fromkeys(told)
    elif told and None not in told.values():
        call = f"{call.replace(': rope_scaling={}', '')}, with {part['rescaling'][0]}"
    verdict, words = "so", []
    trained = part["rescaling"] and part["rescaling"][1].get("original_max_position_embeddings")
    if not near:
        words.append(f"heard to turn {turns[0][0]} pairs only: move the rows")
        verdict = "otherwise"
    elif not found:
        what = {"first": "a part of a head", "elsewhere": "such a part of a head"}.get(turn[1])
        words.append(f"not asked for {' and '.join(filter(None, (what, turn[2] and 'axes so')))}")
        verdict = "not heard"
    elif found[0][4]:
        words.append(found[0][4])
        verdict = "otherwise"
    for rule, differs in told.items():
        if isinstance(differs, list):
            differs = "" if differs[1] and differs[1] == trained else differs[0]
        if runtime["rules"] is None:
            words.append("the caller makes the table, rescaled or not")
        elif differs is None:
            words.append(f"not asked for {rule}")
        elif differs:
            words.append(f"{rule}: {differs}")
            verdict = "otherwise"
        if verdict == "so" and differs is None:
            verdict = "not heard"
    limits = [*[runtime["far"]] * (length > FAR), runtime["ends"]]
    return {
        "runtime": runtime["name"],
        "verdict": verdict,
        "call": call,
        "words": "; ".join(words),
        "limits": "; ".join(filter(None, limits)),
    }
