"""A model or configuration of transformers, as functions that `ropescope.identify` can probe."""

import copy
import re
from typing import Any

from torch import nn

from ropescope.adapters import Rotation
from ropescope.report import LOOK, NOTE, WRONG, Finding

from .recording import Heard, altered, listen, tables_of

__all__ = ["of_transformers"]

KEYS = "Keys do not move with the position as queries do: what is said here is of queries."
AHEAD = "Keys are turned one position {} than queries: every distance is off by one."
BROKEN = 1e-3
"""Change of a score of unit vectors from which on keys break the promise: rounding makes 1e-6."""
GAINS = (
    "A norm with learned gains stands after the turn: where they differ within a pair, scores "
    "depend on the place, and a change of rows has to change them, too."
)
COUNTS = (
    "It takes position_ids and counts tokens whatever these are: left-padded and packed rows get "
    "other positions than they ask for."
)
SIXTEEN = "The model given holds {}, and its code is asked in float32: what it rounds is not said."
UNHEARD = "it may rotate, and no model that takes tokens runs it: give it to identify as a function"


def of_transformers(model: Any) -> dict[str, Rotation]:
    """Return every rotation that a family of transformers makes, by the names of its parts.

    Its own code runs from tokens to scores, without weights: see `recording`. Queries of the first
    head are asked, and a finding says where keys that are a multiple of them at the first position
    are none at others (the first five, and five up to 102,404 where a model has so many), and by
    how much scores break the promise where they do. Layers whose queries come out alike are one
    entry. What does not rotate is no entry, and neither is a part that was not reached, such as
    Llama 4's tower for pictures, the text model of Moshi, the speech encoder of SeamlessM4T, all of
    LightGlue. The queries of JetMoe, sums over experts, are not reached either, which its entry
    says. A model that counts tokens itself is asked at 512 to 2,048 of them, by how many it is made
    for.

    Parameters
    ----------
    model
        A model of transformers or its configuration; a class of your own that is made from one of
        theirs is taken for that. What is asked is made anew from the configuration, in float32; of
        a model, findings say what around attention or tables is not as in what was made, and that
        it holds numbers of fewer bits. No weight is read.

    Returns
    -------
    dict of str to Rotation
        Named by the class that ran, ``"LlamaModel"``, and where a model has several by the type of
        layer or the first module, ``"Gemma3TextModel[sliding_attention]"``. A class that does not
        run has an entry without ``rotate``, whose report says why. Where neither gives an entry,
        tables of angles of parts that take no tokens have one each.
    """
    config = _of_theirs(model)

    of_model = _of_model(model) if isinstance(model, nn.Module) else []
    heard, refusals = listen([config])
    turned = [one for one in heard if one.turned or one.keys_turned]
    named = [(one.part, one.kind) for one in turned]
    rotations: dict[str, Rotation] = {}
    for one in turned:
        name = one.part
        if sum(part == name for part, _ in named) > 1:
            told = one.kind and named.count((name, one.kind)) == 1
            name = f"{name}[{one.kind if told else one.names[0]}]"
        beside = _of_keys(one)
        if one.norm == "after" and one.gains:
            beside.append(Finding(LOOK, GAINS, "attention", partial=True))
        beside += [Finding(LOOK, COUNTS, "attention")] if one.ids_ignored else []
        beside += of_model
        if one.queries_scaled and abs(one.queries_scaled - 1.0) >= 1e-5:
            words = (
                f"Queries come out {one.queries_scaled:.6g} times as long as keys; what is said "
                "here is without that, as of keys."
            )
            if one.queries_kept:
                words = f"Keys come out {1.0 / one.queries_scaled:.6g} times as long as queries; "
                words += "what is said here is of queries."
            beside.append(Finding(NOTE, words, "attention", partial=True))
        if rests := _resting(one, heard):
            words = f"{len(rests)} of {len(one.names) + len(rests)} such modules turn nothing, "
            words += f"such as {rests[0]}."
            beside.append(Finding(NOTE, words, "attention"))
        asked = one.rotate if one.turned else None, one.head_dim, one.positions()
        rotations[name] = Rotation(*asked, beside=tuple(beside))
    for words in refusals:
        name, _, said = words.partition(": ")
        rotations[name] = _refused(said)
    for name in () if rotations else tables_of(config):
        rotations[name] = _refused(UNHEARD)
    return rotations


def _of_theirs(model: Any) -> Any:
    """Return the configuration of a model, or a copy as the class of transformers it is made of."""
    config = getattr(model, "config", model)
    own, *bases = type(config).__mro__
    known = [c for c in bases if c.__module__.startswith("transformers.models.")]
    if "configuration_" in own.__module__:
        known = [own]
    if not (known and hasattr(config, "to_dict")):
        raise TypeError(
            f"model must be a model or configuration of transformers, got {type(model).__name__}"
        )
    config = copy.copy(config)
    config.__class__ = known[0]
    return config


def _of_model(model: nn.Module) -> list[Finding]:
    """Return what a model is that its configuration does not tell."""
    found, others = [], altered(model)
    if others is None:
        words = "The model given cannot be made anew from its configuration: what is said here is "
        words += "of what transformers makes of that, and the model was not looked at."
        found.append(Finding(LOOK, words, "attention", partial=True))
    elif others:
        also = f" and {len(others) - 1} more" if len(others) > 1 else ""
        words = f"In the model given, {others[0]}{also} {'are' if also else 'is'} not as "
        words += "transformers makes it from its configuration, which is what is said here."
        found.append(Finding(LOOK, words, "attention", partial=True))
    kinds = {p.dtype for p in model.parameters() if p.is_floating_point() and p.itemsize < 4}
    if kinds:
        held = " and ".join(sorted(str(kind).removeprefix("torch.") for kind in kinds))
        found.append(Finding(NOTE, SIXTEEN.format(held), "precision"))
    return found


def _of_keys(one: Heard) -> list[Finding]:
    """Return in what keys differ from queries, and whether that breaks the promise."""
    if one.keys_ahead:
        words = AHEAD.format("further" if one.keys_ahead > 0 else "less far")
        return [Finding(LOOK, words, "attention", partial=True)]
    if one.deviation >= BROKEN or not one.turned:
        words = KEYS if one.turned else "Keys turn with the position and queries do not."
        words += " A common shift was heard to change the score of a query and a key, both unit "
        words += f"vectors, by {one.deviation:.2g}."
        return [Finding(WRONG, words, "why-position")]
    return [Finding(LOOK, KEYS, "attention", partial=True)] if one.keys_otherwise else []


def _refused(said: str) -> Rotation:
    """Return what cannot be asked, with the reason; the width of a head is not known."""
    return Rotation(None, 2, beside=(Finding(LOOK, f"It cannot be asked: {said}.", "attention"),))


def _resting(one: Heard, heard: list[Heard]) -> list[str]:
    """Return the modules of the same place in other layers that turn neither queries nor keys."""

    def place(name: str) -> str:
        return re.sub(r"\d+", "*", name)

    same = [h for h in heard if h.part == one.part and not (h.turned or h.keys_turned)]
    return [name for h in same for name in h.names if place(name) == place(one.names[0])]
