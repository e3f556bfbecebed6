"""The only way from a test to ``trunkline_internal``.

Tests call public functions and views. Where these cannot show or arrange what a test is about, the
test calls a helper of this package, named in the words of the product. So a renamed table or column
changes this package and no test.

``tables`` knows the names and ``rows`` counts. ``jobs``, ``workers``, ``periodic``, ``flow`` and
``usage`` read and arrange rows, ``filling`` writes many, ``locks`` holds them, and ``reads`` tells
how many a call has read. ``refusals`` reads the register, ``chance`` draws, and ``breaks`` damages
the engine on purpose. ``internals.sql`` does the same for the SQL tests.
"""
