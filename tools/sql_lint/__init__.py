"""House rules for the SQL of the engine, checked on its parse tree: `python -m tools.sql_lint`.

Not a formatter. Each rule is there because its breach costs something: an unqualified name can be
hijacked, an unstated volatility is a wrong plan, a file not named after its object is not found.
"""
