"""Measure every form of the rotation on this machine: ``python -m benchmarks``, or ``make bench``.

Each form is compared with the float64 oracle first and timed only if it is right. The result is one
file for each machine, ``benchmarks/results/<machine>.json``, which the book shows.
"""
