"""The instrument: ask any function that rotates what it is.

``identify(rotate, head_dim)`` feeds it the identity matrix at positions 0, 1, 2, 4, 8, ... and
reads the matrices that come back: which channels turn together, which way, how fast, times what;
whether a score knows the distance only; where precision and table end; and which published formula
gives these numbers. Nothing is read from code.

Each module imports from those above it only:

===============  ===============================================================================
``asking``       Feed vectors and positions to a stranger's function; every failure in words
``circuit``      The core: matrices, pairs, angles, frequencies, the promise. Read this one
``naming``       Layouts by their names, frequencies by their formulas
``picture``      The circuit as a drawing, the card as HTML
``report``       What was found, in text, HTML and JSON; what leads from one to another
``manners``      Whether it is one linear map for each position, whoever asks
``judging``      What the numbers mean, in words: the findings
``instrument``   `identify`: ask, read, name, judge
``opening``      A model of transformers without its weights, whose attention can be heard
``recording``    Its attention modules, each as a function to ask
``adapters``     Tables, this package's module, models and configurations of transformers
``layers``       `examine`: whole layers and models, from outside
===============  ===============================================================================

NumPy is all that is needed for a function of arrays.
"""

from .instrument import identify
from .report import Difference, Finding, Report

__all__ = ["Difference", "Finding", "Report", "identify"]
