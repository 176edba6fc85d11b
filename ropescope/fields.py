"""Fields of one part of a configuration, as given or by default, in the words of its class."""

import re
import sys
from typing import Any

__all__ = ["BASE", "Fields", "Json", "dotted", "letters", "positive"]

Json = dict[str, Any]

BASE = re.compile(r"theta|(rope|rotary|freq)_.*base|freq_base|^base$")
"""Names of fields that speak of a base."""


class Fields:
    """Fields of one part: as given, in another spelling, or a default, its model's ``preset``."""

    def __init__(
        self, config: Json, rule: Json, path: str, preset: Json, places: dict[str, str]
    ) -> None:
        self.aliases: dict[str, str] = rule.get("aliases", {})
        for name in rule.get("inner", ()):  # fields of a dict, by dotted names
            own = config.get(name)
            own = own if isinstance(own, dict) else {}
            config = {**config, **{f"{name}.{key}": value for key, value in own.items()}}
        unset = rule.get("unset", {})
        both = [name for name in unset if name in config]
        idle = [name for name in both if letters(config[name]) <= {*unset[name]}]
        config = {name: config[name] for name in config if name not in idle}  # as if not given
        names = sorted(config, key=self.aliases.__contains__)  # another spelling is set last
        self.given = {self.aliases.get(name, name): config[name] for name in names}
        self.named = {self.aliases.get(name, name): name for name in names}
        self.path, self.preset, self.places = path, preset, places
        self.read: dict[str, None] = dict.fromkeys(dotted(path, name) for name in idle)
        self.twice = {name: config[name] for name in names if name not in self.named.values()}
        self.defaults: Json = {**rule.get("defaults", {}), **preset}
        self.null_is: Json = rule.get("null_is", {})
        self.listed: list[str] = rule.get("rope", {}).get("listed", [])
        switch = rule.get("layers", {}).get("switch", {}).get("field", "")
        self.entry_lists = [*self.listed, *([switch] if BASE.search(switch) else [])]

    def name(self, name: str) -> str:
        """Return the dotted path of a field, spelt as given."""
        name = self.aliases.get(name, name)
        where = dotted(self.path, self.named.get(name, name))
        return self.places.get(where, where)

    def known(self, name: str, otherwise: Any = None) -> Any:
        """Return a field's value as given, or by default, and do not note that it was read."""
        return self.given.get(name, self.defaults.get(name, otherwise))

    def has(self, name: str) -> bool:
        """Return whether a field is given, in any spelling."""
        return self.aliases.get(name, name) in self.given

    def get(self, name: str) -> Any:
        """Return a field's value; None where neither it nor a default is given."""
        name = self.aliases.get(name, name)
        if name not in self.given:
            return self.defaults.get(name)
        self.read[self.name(name)] = None
        value = self.given[name]
        return self.null_is.get(name) if value is None else value

    def at(self, name: str, layer: int) -> Any:
        """Return a field's value, for this layer where it may be a list."""
        value = self.get(name)
        if name not in self.listed or not isinstance(value, list):
            return value
        if layer >= len(value):
            raise ValueError(f"{self.name(name)} must have an entry for each layer, got {value!r}")
        return value[layer]

    def count(self, name: str) -> int | None:
        """Return a positive integer; None where there is none."""
        value = self.get(name)
        if value is None:
            return None
        if type(value) is not int or not 0 < value < 2**53:
            raise ValueError(f"{self.name(name)} must be a positive integer, got {value!r}")
        return value

    def made_of(self, windows: Json, field: str) -> None:
        """Set types of layers from windows, where they are not given."""
        given = self.given.get(windows["field"])
        if self.given.get(field) is None and isinstance(given, list):
            self.named[field] = windows["field"]
            self.given[field] = [windows["other" if one else "zero"] for one in given]

    def check(self, rule: Json) -> None:
        """Raise where a size is none, or does not divide as its class wants."""
        read = dict(self.read)
        for name, fine in rule.get("refuses", {}).items():
            if name in self.given and self.given[name] not in fine:
                hint = f"left out or {fine[0]!r}" if any(fine) else "left out"
                raise ValueError(f"{self.name(name)} must be {hint}, got {self.given[name]!r}")
        for name in rule.get("must", ()):
            if self.given.get(name) is None:
                raise ValueError(f"{self.name(name)} must be given: its class fails without it")
        for name, null in rule.get("sizes", {}).items():
            if name in self.given and self.count(name) is None and not null:
                raise ValueError(f"{self.name(name)} must be a positive integer, got None")
        if rule.get("divides"):
            size, heads = map(self.count, ("hidden_size", "num_attention_heads"))
            if size and heads and size % heads:
                words = f"a multiple of {self.name('num_attention_heads')}, {heads}"
                raise ValueError(f"{self.name('hidden_size')} must be {words}, got {size}")
        self.read = read

    def first(self, expressions: list[str]) -> tuple[int, str]:
        """Return the value of the first expression whose fields are all known, and it."""
        for words in expressions:
            value = self.value(words)
            if value is not None:
                return value, words
        raise ValueError(f"{self.name(expressions[-1].split()[0])} must be given")

    def spelt(self, words: str) -> str:
        """Return an expression with its fields spelt as given."""
        return " ".join(self.name(w) if w.isidentifier() else w for w in words.split())

    def value(self, words: str) -> int | None:
        """Return fields and integers joined by ``//``, ``*`` and ``+``, from left to right."""
        first, *rest = words.split()
        total = int(first) if first.isdigit() else self.count(first)
        for operator, name in zip(rest[::2], rest[1::2], strict=True):
            other = int(name) if name.isdigit() else self.count(name)
            if total is None or other is None:
                return None
            total = {"//": total // other, "*": total * other, "+": total + other}[operator]
        return total


def letters(value: Any) -> set[str]:
    """Return the letters of the types of a value, of all entries of a list."""
    letters = {type(None): "n", bool: "b", int: "i", float: "f", str: "s", dict: "d", list: "l"}
    if isinstance(value, list):
        return {letters[type(one)].upper() for one in value} or {"e"}
    return {letters[type(value)]}


def dotted(path: str, name: str) -> str:
    """Return the dotted name of a field of a part."""
    return f"{path}.{name}".lstrip(".")


def positive(value: Any) -> bool:
    """Return whether a value is a finite number > 0."""
    return type(value) in (int, float) and 0 < value <= sys.float_info.max
