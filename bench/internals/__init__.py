"""Everything in the bench that names internal tables; a new table design changes only these files.

Measures use public functions and views, which two versions of the engine share. This folder has the
rest: the plain SQL that the engine is compared with, a long history, resets between repetitions.
"""
