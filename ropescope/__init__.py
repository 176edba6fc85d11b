"""Identify any rotary position embedding from its outputs, without reading its code.

``identify(rotate, head_dim)`` feeds a function the identity matrix at positions 0, 1, 2, 4, 8, ...
and estimates one operator per position: which channels rotate together, which way, at which
frequencies, times what. A table of hypotheses about these operators, each with one residual and one
limit, is the report; what is rounded is found by simulating it.

Each module imports from those above it only:

=================  =============================================================================
``probe``          Call an external function safely; every failure in words
``precision``      Number formats, the noise model, and synthesis: which stage is rounded
``operators``      One operator per position; pairs, angles, frequencies. Read this one
``formulas``       Published formulas, layouts and arrangements of axes, by name
``hypotheses``     The table: residuals, limits, and the sentences made from them
``preconditions``  Deterministic, linear, independent of batch, order and call?
``differences``    What leads from one rotation to another, and converts weights
``picture``        The pairs as a drawing, the report as HTML
``report``         The report in text, HTML and JSON
``angles``         Angle = position x frequency; frequencies = a formula; what is rounded
``study``          `identify`: measure, take apart, test
``adapters``       This project's module as a function
``weights``        `layout_of_weights`, from query and key weights: no function is called
``configuration``  `rope_of`, from a published configuration: no function is called
=================  =============================================================================

Seven more read and write files, and the command ``python -m ropescope`` is made of them:

====================  ==========================================================================
``safetensors_file``  A tensor in a file, and the header that says where it lies
``gguf_file``         The header of a GGUF: its metadata, and where its tensors lie
``translation``       A ``params.json`` or such metadata in the words of a ``config.json``
``files``             `read`: what is in a file or folder, without its weights
``names``             What tensors are called in Hugging Face's files, Meta's and GGUF's
``convert``           Rows of weights from one layout to another, from file to file
``card``              The rotation of a file as text and as a page; what differs between two
====================  ==========================================================================

NumPy is all that is needed for a function of arrays.
"""

from .differences import Difference
from .hypotheses import Finding, Severity
from .report import Report
from .study import identify
from .weights import LayoutEvidence, layout_of_weights

__all__ = [
    "Difference",
    "Finding",
    "LayoutEvidence",
    "Report",
    "Severity",
    "identify",
    "layout_of_weights",
]
