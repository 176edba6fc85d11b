"""Models and configurations of transformers, as rotations that `ropescope.identify` can probe."""

import copy
import re
from collections import Counter
from typing import Any

from torch import nn

from ropescope import Finding, Severity
from ropescope.adapters import Rotation

from .recording import AttentionRecord, classes_of_tables, record_all

__all__ = ["of_transformers"]

KEYS = "Keys do not depend on the position as queries do: this report is on queries."
KEYS_ALONE = "Keys depend on the position and queries do not."
SHIFTED = "Keys are rotated one position {} than queries: every distance is off by one."
BROKEN = 1e-3
"""Change of a score of unit vectors from which on it depends on the place: rounding makes 1e-6."""
WEIGHTS = (
    "A norm with learned weights follows the rotation: where they differ within a pair, scores "
    "depend on the place, and a change of rows has to change them, too."
)
COUNTS = (
    "It takes position_ids and counts tokens instead: left-padded and packed rows get other "
    "positions than they ask for."
)
INSTANCE = "Rebuilt from the configuration in float32: changes to the model given {}are not seen."
UNSEEN = "it may rotate, but no model that takes tokens runs it: give it to identify as a function"


def of_transformers(model: Any) -> dict[str, Rotation]:
    """Return the rotations of a transformers model, by the names of its parts.

    The family's own code runs without weights, rebuilt from the configuration, and what its
    attention modules score becomes a function of vectors and positions (see `recording`). It is
    the queries of the first head; findings report where keys differ from them, and by how much
    scores change under a common shift then. Layers with the same queries are one entry. Parts that
    do not rotate have none, nor have parts that are not reached, such as Llama 4's vision tower,
    the text model of Moshi, the speech encoder of SeamlessM4T and all of LightGlue. A model that
    counts tokens itself is run with 512 to 2,048 of them.

    Parameters
    ----------
    model
        A configuration of transformers, or a model, of which the configuration is taken. A class
        of your own that derives from one of theirs is taken for that.

    Returns
    -------
    dict of str to ropescope.adapters.Rotation
        Named by the class that ran, ``"LlamaModel"``, and where a model has several by the type of
        layer or the first module, ``"Gemma3TextModel[sliding_attention]"``. A class that does not
        run has an entry without ``rotate``, whose report gives the reason. Where there is neither,
        the classes that make tables of angles for parts without tokens have one each.

    Raises
    ------
    TypeError
        If ``model`` is neither a model nor a configuration of transformers.
    """
    config = _of_theirs(model)
    records, refusals = record_all([config])
    shown = [one for one in records if one.rotated or one.keys_rotated]
    models = Counter(one.model for one in shown)
    kinds = Counter((one.model, one.kind) for one in shown)
    rotations: dict[str, Rotation] = {}
    for one in shown:
        name = one.model
        if models[name] > 1:
            single = one.kind and kinds[name, one.kind] == 1
            name = f"{name}[{one.kind if single else one.modules[0]}]"
        more = (*_findings(one), *_unrotated(one, records), *_of_instance(model))
        rotate = one.rotate if one.rotated else None
        rotations[name] = Rotation(rotate, one.head_dim, one.positions(), more=more)
    for words in refusals:
        name, _, reason = words.partition(": ")
        rotations[name] = _refused(reason)
    return rotations or {name: _refused(UNSEEN) for name in classes_of_tables(config)}


def _of_theirs(model: Any) -> Any:
    """Return the configuration, as a copy of the class of transformers that it derives from."""
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


def _of_instance(model: Any) -> list[Finding]:
    """Return what to note where a model was given."""
    if not isinstance(model, nn.Module):
        return []
    kinds = {p.dtype for p in model.parameters() if p.is_floating_point() and p.itemsize < 4}
    held = " and ".join(sorted(str(kind).removeprefix("torch.") for kind in kinds))
    words = INSTANCE.format(held and f"and the rounding of its {held} ")
    return [Finding(Severity.INFO, words, "attention")]


def _findings(one: AttentionRecord) -> list[Finding]:
    """Return what a report on the queries alone would leave out."""
    found = _of_keys(one)
    if one.norm == "after" and one.norm_weights:
        found.append(Finding(Severity.WARNING, WEIGHTS, "attention", partial=True))
    if one.ignores_ids:
        found.append(Finding(Severity.WARNING, COUNTS, "attention"))
    factor = one.query_factor or 1.0
    if abs(factor - 1.0) >= 1e-5:
        words = f"Queries are {factor:.6g} times as long as keys; this report is without that."
        if one.factor_on_keys:
            words = f"Keys are {1.0 / factor:.6g} times as long as queries; "
            words += "this report is on queries."
        found.append(Finding(Severity.INFO, words, "attention", partial=True))
    return found


def _of_keys(one: AttentionRecord) -> list[Finding]:
    """Return how keys differ from queries, and whether scores depend on the place by that."""
    if one.key_offset:
        words = SHIFTED.format("further" if one.key_offset > 0 else "less far")
        return [Finding(Severity.WARNING, words, "attention", partial=True)]
    if one.deviation >= BROKEN or not one.rotated:
        words = f"{KEYS if one.rotated else KEYS_ALONE} A common shift changes the score of a "
        words += f"query and a key, both unit vectors, by {one.deviation:.2g}."
        return [Finding(Severity.ERROR, words, "why-position")]
    return [Finding(Severity.WARNING, KEYS, "attention", partial=True)] if one.keys_differ else []


def _refused(reason: str) -> Rotation:
    """Return an entry that cannot be probed, with the reason; its head width is not known."""
    return Rotation(
        None, 2, more=(Finding(Severity.WARNING, f"Not probed: {reason}.", "attention"),)
    )


def _unrotated(one: AttentionRecord, records: list[AttentionRecord]) -> list[Finding]:
    """Return a note on the layers whose module in the same place rotates nothing."""

    def place(name: str) -> str:
        return re.sub(r"\d+", "*", name)

    same = [r for r in records if r.model == one.model and not (r.rotated or r.keys_rotated)]
    names = [n for r in same for n in r.modules if place(n) == place((*one.modules, "")[0])]
    if not names:
        return []
    words = f"{len(names)} of {len(one.modules) + len(names)} such modules rotate nothing, "
    return [Finding(Severity.INFO, f"{words}such as {names[0]}.", "attention")]
