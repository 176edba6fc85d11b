"""The moving figures of the book.

Each is a function that returns what a cell shows. Figures compute and draw in the browser, so they
move on the published page without a kernel, and in JupyterLab just the same. Each can be saved as
one HTML file, for slides and other pages: ``figures.clock().save("clock.html")``. `angle_heatmap`,
`clock` and `rescaling_faders` also draw a model of yours, given as ``model``.

======================  ==================================================================
`angle_heatmap`         Along a text, does a pair ever turn backwards?
`atlas`                 Whose rotations break the promise that scores see the distance alone?
`axioms`                Ten position encodings see distance alone: what leaves only RoPE?
`bug_bench`             One line of this package is wrong: which bug is it?
`byte_budget`           How often does the rotation go to memory and back?
`cache_shelf`           Which kept keys are still right after a cut, once they are moved?
`choice`                Predict, then look: one of some answers, graded in the page
`clock`                 One hand comes back to its start. Do all of them, ever?
`glimpses`              Three small panels for the first page: a card, a head and a bug
`horizon_dial`          What does it cost to slow all hands until none turns back?
`layout_threads`        Which rows must move between the two layouts?
`model_card`            How does your model rotate, and how far does it carry?
`myth_fails`            Under a myth: the assertion that states it must fail
`number`                Predict, then look: a number, graded in the page
`page_lab`              Labs 2 and 5 of `ropebook.labs`, short, in the page
`precision_microscope`  Where does rounding hurt the angles?
`real_head`             Which of its 32 pairs does a real head need for what it reads?
`recent_methods`        Where do two encodings part, how surely, and at what price?
`rescaling_faders`      Which pairs must turn more slowly for a longer context?
`rotor`                 What does the score know about where two words stand?
`three_clocks`          After an image in the text, where does the next word stand?
`train_it`              Train it in the page: what does it do with longer texts?
`trained_models`        The same model, another encoding: does it matter?
`wave_vectors`          A patch has a row and a column: are they seen apart?
`waves`                 Every pair adds a wave: where do their crests meet?
`word_order`            The words change places: do their numbers change?
`worn_key`              Move a stored key by one token, often: what is left of it?
`wrap_explorer`         An angle falls back after a turn: is far then taken for near?
======================  ==================================================================
"""

from .angle_heatmap import AngleHeatmap, angle_heatmap
from .atlas import Atlas, atlas
from .axioms import Axioms, axioms
from .bug_bench import BugBench, bug_bench
from .byte_budget import ByteBudget, byte_budget
from .cache_shelf import CacheShelf, cache_shelf
from .clock import Clock, clock
from .figure import Figure
from .glimpses import Glimpses, glimpses
from .horizon_dial import HorizonDial, horizon_dial
from .layout_threads import LayoutThreads, layout_threads
from .model_card import ModelCard, model_card
from .page_lab import PageLab, page_lab
from .precision_microscope import PrecisionMicroscope, precision_microscope
from .questions import ChoiceQuestion, NumberQuestion, choice, myth_fails, number
from .real_head import RealHead, real_head
from .recent_methods import RecentMethods, recent_methods
from .rescaling_faders import RescalingFaders, rescaling_faders
from .rotor import Rotor, rotor
from .three_clocks import ThreeClocks, three_clocks
from .train_it import TrainIt, train_it
from .trained_models import TrainedModels, trained_models
from .wave_vectors import WaveVectors, wave_vectors
from .waves import Waves, waves
from .word_order import WordOrder, word_order
from .worn_key import WornKey, worn_key
from .wrap_explorer import WrapExplorer, wrap_explorer

__all__ = [
    "AngleHeatmap",
    "Atlas",
    "Axioms",
    "BugBench",
    "ByteBudget",
    "CacheShelf",
    "ChoiceQuestion",
    "Clock",
    "Figure",
    "Glimpses",
    "HorizonDial",
    "LayoutThreads",
    "ModelCard",
    "NumberQuestion",
    "PageLab",
    "PrecisionMicroscope",
    "RealHead",
    "RecentMethods",
    "RescalingFaders",
    "Rotor",
    "ThreeClocks",
    "TrainIt",
    "TrainedModels",
    "WaveVectors",
    "Waves",
    "WordOrder",
    "WornKey",
    "WrapExplorer",
    "angle_heatmap",
    "atlas",
    "axioms",
    "bug_bench",
    "byte_budget",
    "cache_shelf",
    "choice",
    "clock",
    "glimpses",
    "horizon_dial",
    "layout_threads",
    "model_card",
    "myth_fails",
    "number",
    "page_lab",
    "precision_microscope",
    "real_head",
    "recent_methods",
    "rescaling_faders",
    "rotor",
    "three_clocks",
    "train_it",
    "trained_models",
    "wave_vectors",
    "waves",
    "word_order",
    "worn_key",
    "wrap_explorer",
]
