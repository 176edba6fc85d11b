"""The moving figures of the book.

Each is a function that returns what a cell shows. Figures compute and draw in the browser, so they
move on the published page without a kernel, and in JupyterLab just the same.

==================  ============================================================================
`angle_heatmap`     Do the rotations go up and down along the positions? (dim, base, show, ...)
`layout_loom`       Which rows must move between the two layouts? (family, permute_q, permute_k)
`rotor`             What does the angle between query and key depend on? (m, n, theta)
`bug_bench`         One line of this package is wrong: which bug is it? (patient)
`choice`            Predict, then look: one of some answers, graded in the page
`number`            Predict, then look: a number, graded in the page
==================  ============================================================================
"""

from .angle_heatmap import AngleHeatmap, angle_heatmap
from .bug_bench import BugBench, bug_bench
from .figure import Figure
from .layout_loom import LayoutLoom, layout_loom
from .questions import ChoiceQuestion, NumberQuestion, choice, number
from .rotor import Rotor, rotor

__all__ = [
    "AngleHeatmap",
    "BugBench",
    "ChoiceQuestion",
    "Figure",
    "LayoutLoom",
    "NumberQuestion",
    "Rotor",
    "angle_heatmap",
    "bug_bench",
    "choice",
    "layout_loom",
    "number",
    "rotor",
]
