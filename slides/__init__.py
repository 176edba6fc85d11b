"""The ten central figures for a projector, each a picture of one idea: ``make slides``.

``python -m slides FOLDER`` writes ``light/*.svg``, for bright slides, and ``dark/*.svg``, for dark
ones, all of them 16:9 and transparent (by default below ``_build/slides``). What is drawn is
computed by ``rope_minimal``; letters are written as curves, so that no font has to be there.
"""
