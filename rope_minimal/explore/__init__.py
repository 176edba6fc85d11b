"""The moving figures of the book.

Each is a function that returns what a cell shows. Figures compute and draw in the browser, so they
move on the published page without a kernel, and in JupyterLab just the same.

==================  ============================================================================
`rotor`             What does the angle between query and key depend on? (m, n, theta)
==================  ============================================================================
"""

from .figure import Figure
from .rotor import Rotor, rotor

__all__ = ["Figure", "Rotor", "rotor"]
