"""Interactive figures, sympy derivations and benchmarks on rotary position embedding (RoPE).

============  ===================================================================================
`figures`     Interactive figures (anywidgets), and questions that check their answers
`proofs`      Derivations in named steps that sympy verifies
`timing`      Implementations of the rotation: run time, memory traffic, recorded results
`aliasing`    Where angles wrap: near repeats of a pair, distances between position codes
`bugs`        Twelve published one-line bugs, each applied to a copy of `rope_minimal`
`atlas`       The rotations of some two hundred model families, as a table
`engines`     The rotations of other runtimes, as tables
`labs`        Six tasks for the reader's own code, with checks that name the slip
============  ===================================================================================

These are the parts of the book beside its chapters. `figures`, `proofs` and `timing` each need the
extra of that name; importing this package loads none of them.
"""

__version__ = "0.2.0"
