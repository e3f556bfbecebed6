"""Everything in the bench that names internal tables; a redesign of them changes these files only.

Measures use public functions and views, which two versions of the engine share. What has no public
form is here: the plain side of the comparison, a long history, and resets between repetitions.
"""
