"""What the controls of a figure are linked to."""

from ipywidgets.widgets.widget import _instances
from ipywidgets.widgets.widget_link import Link


def links() -> dict[tuple, tuple]:
    return {w.source: w.target for w in _instances.values() if isinstance(w, Link)}
