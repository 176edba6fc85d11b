"""A released model, SmolLM2-135M-Instruct, asked what the chapters claim.

``python -m experiments.real`` makes what is missing of the record, ``record.json``.
"""
