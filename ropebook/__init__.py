"""What the interactive book on rotary position embedding is made of, besides its chapters.

============  ===================================================================================
`figures`     The interactive figures, and the questions that a page checks
`proofs`      Derivations whose steps sympy verifies
`timing`      Forms of the rotation, their run time and memory traffic, and the recorded results
`aliasing`    Where angles wrap: horizons, near repeats, distances between position codes
`bugs`        Twelve one-line bugs of a rotation, each a mutation of `rope_minimal`
`atlas`       The rotations of some two hundred model families, as rows and as a figure's data
============  ===================================================================================

Each part needs an extra of its own (``figures``, ``proofs``, ``timing``); importing this package
loads none of them.
"""

__version__ = "0.2.0"
