"""House rules for the SQL of the engine, checked on its parse tree: `python -m tools.sql_lint`.

It is not a formatter. Each rule prevents a real problem: an unqualified name can be hijacked, a
missing volatility gives wrong plans, and a file with another name than its object is hard to find.
"""
