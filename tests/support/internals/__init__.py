"""The only way from a test to ``trunkline_internal``.

Tests call public functions and views. If these cannot show or arrange the subject of a test, the
test calls a helper of this package, named in the words of the product. So a renamed table or column
changes this package and no test.

``tables`` maps names and ``rows`` counts. ``jobs``, ``workers``, ``periodic``, ``flow``, ``usage``
and ``workflows`` read and arrange rows, ``filling`` writes many, ``locks`` locks them, and
``reads`` counts the rows that a call has read. ``refusals`` reads the register, ``chance`` pins
random draws, and ``breaks`` damages the engine on purpose. ``internals.sql`` does the same for the
SQL tests.
"""
