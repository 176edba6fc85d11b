"""The moving figures of the book.

Each is a function that returns what a cell shows. Figures compute and draw in the browser, so they
move on the published page without a kernel, and in JupyterLab just the same.

======================  ==================================================================
`angle_heatmap`         Do the rotations go up and down along the positions?
`axioms`                Which relative encodings have exactly the properties you tick?
`bug_bench`             One line of this package is wrong: which bug is it?
`byte_budget`           How often does the rotation go to memory and back?
`c3_dial`               What does a horizon without wrapping cost the neighbours?
`choice`                Predict, then look: one of some answers, graded in the page
`clock`                 One hand comes back to its start. Do all of them, ever?
`contest`               The same model, another encoding: does it matter?
`equaliser`             Which hands must be slowed for a longer context?
`layout_loom`           Which rows must move between the two layouts?
`myth_fails`            Under a myth: the assertion that states it must fail
`number`                Predict, then look: a number, graded in the page
`precision_microscope`  Where does rounding hurt the angles?
`rotor`                 What does the angle between query and key depend on?
`waves`                 Every pair adds a wave: where do their crests meet?
`wrap_explorer`         The angle falls back at distance 7: is far taken for near?
======================  ==================================================================
"""

from .angle_heatmap import AngleHeatmap, angle_heatmap
from .axioms import Axioms, axioms
from .bug_bench import BugBench, bug_bench
from .byte_budget import ByteBudget, byte_budget
from .c3_dial import C3Dial, c3_dial
from .clock import Clock, clock
from .contest import Contest, contest
from .equaliser import Equaliser, equaliser
from .figure import Figure
from .layout_loom import LayoutLoom, layout_loom
from .precision_microscope import PrecisionMicroscope, precision_microscope
from .questions import ChoiceQuestion, NumberQuestion, choice, myth_fails, number
from .rotor import Rotor, rotor
from .waves import Waves, waves
from .wrap_explorer import WrapExplorer, wrap_explorer

__all__ = [
    "AngleHeatmap",
    "Axioms",
    "BugBench",
    "ByteBudget",
    "C3Dial",
    "ChoiceQuestion",
    "Clock",
    "Contest",
    "Equaliser",
    "Figure",
    "LayoutLoom",
    "NumberQuestion",
    "PrecisionMicroscope",
    "Rotor",
    "Waves",
    "WrapExplorer",
    "angle_heatmap",
    "axioms",
    "bug_bench",
    "byte_budget",
    "c3_dial",
    "choice",
    "clock",
    "contest",
    "equaliser",
    "layout_loom",
    "myth_fails",
    "number",
    "precision_microscope",
    "rotor",
    "waves",
    "wrap_explorer",
]
