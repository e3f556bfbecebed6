"""The only way from a test to ``trunkline_internal``.

Tests call public functions and views. Where these cannot show or arrange what a test is about, the
test calls a helper of this package, named in the words of the product. So a renamed table or column
changes this package and no test.

``tables`` knows the names, ``rows`` counts, copies and empties, ``jobs``, ``workers`` and ``flow``
read and arrange rows, ``locks`` holds them, ``breaks`` damages the engine on purpose, ``catalogue``
describes the schema, ``filling`` makes large tables. ``tap.sql`` has the helpers of pgTAP files.
"""
