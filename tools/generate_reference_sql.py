"""Generates docs/reference/sql.md and privileges.md from the shipped catalogue."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.generate_docs import transitions
from tools.markdown import REFERENCE, cell, code, page, table
from trunkline import sql

__all__ = ["generate"]

ROLES = ("trunkline_producer", "trunkline_worker", "trunkline_operator", "trunkline_reader")
_ROLE_MEANING = {
    "trunkline_owner": "Owns every object and has no login. The installer is a member.",
    "trunkline_producer": "An application: enqueues, cancels and reads jobs.",
    "trunkline_worker": "A worker process: claims jobs and ends them; cannot read other jobs.",
    "trunkline_operator": "A person or tool that operates the system: everything but running jobs.",
    "trunkline_reader": "Dashboards and monitoring: reads and changes nothing.",
}
_DOMAINS = {
    "queue": "Jobs, queues and tasks",
    "workflows": "Workflows",
    "steps": "Steps of jobs, and events",
    "live": "Live events",
    "operate": "Finding and changing many jobs, and the operator log",
    "limits": "Limits",
    "buckets": "Buckets",
    "usage": "Grants, quotas and usage",
    "breakers": "Breakers",
    "artifacts": "Artifacts",
    "schedules": "Schedules",
    "workers": "Workers",
    "scale": "Autoscaling",
    "duties": "Duties and health",
    "settings": "Settings",
    "access": "Service keys of the HTTP API",
    "security": "Session and version",
}
_CONTRACT = """
The functions, views and types of schema `trunkline` are the public contract. Call functions with
named arguments and read columns by name. Tables are in `trunkline_internal` and may change in any
release. [Privileges](privileges.md) shows what each role may do, and [errors](errors/README.md)
explains each refusal.
"""
_PRIVILEGES = """
Trunkline has five roles without LOGIN. Grant them to the logins of your applications. No role has
privileges on tables. [`tenant_scope`](sql.md#tenant_scope) describes how tenants are separated.
"""
_GRANT = re.compile(
    r"(?P<right>\w+) on (?P<kind>\w+) trunkline\.(?P<name>\w+)(?:\(.*\))? to (?P<role>\w+)"
)
_ARGUMENT = re.compile(r"(?P<name>p_\w+) (?P<type>.+?)(?: DEFAULT (?P<default>.+))?$")
# Splits only at a comma before an argument, not at one within a default.
_COMMA = re.compile(r", (?=p_\w+ )")


def generate() -> dict[Path, str | None]:
    """Return the pages and the texts they should have."""
    catalog: dict[str, dict[str, Any]] = json.loads(sql.catalog_json())
    rights = _rights(catalog)
    return {
        REFERENCE / "sql.md": _sql_page(catalog, rights),
        REFERENCE / "privileges.md": _privileges_page(catalog, rights),
    }


def _rights(catalog: dict[str, dict[str, Any]]) -> dict[str, list[str]]:
    """Which of our roles may call each function or read each view."""
    found: dict[str, list[str]] = {}
    for grant in catalog["grant"]:
        match = _GRANT.fullmatch(grant)
        if match and match["role"] in ROLES and match["right"] in {"execute", "select"}:
            found.setdefault(match["name"], []).append(match["role"])
    return {name: [role for role in ROLES if role in roles] for name, roles in found.items()}


def _functions(catalog: dict[str, dict[str, Any]]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Domain, name and facts of each public function, in the order of the folders."""
    facts = {
        key.removeprefix("trunkline.").partition("(")[0]: value
        for key, value in catalog["function"].items()
        if key.startswith("trunkline.")
    }
    files = {one.name: one.path for one in sql.repeatables() if one.kind == "api"}
    order = list(_DOMAINS)
    # A folder without a heading here is an error.
    for name in sorted(facts, key=lambda name: (order.index(files[name].partition("/")[0]), name)):
        yield files[name], name, facts[name]


def _sql_page(catalog: dict[str, dict[str, Any]], rights: dict[str, list[str]]) -> str:
    parts = ["## Functions"]
    domain = ""
    for path, name, facts in _functions(catalog):
        if (found := path.partition("/")[0]) != domain:
            domain = found
            parts.append(f"### {_DOMAINS[domain]}")
        parts += _function(path, name, facts, rights.get(name, []))
    parts.append("## Views")
    for key, facts in sorted(catalog["view"].items()):
        name = key.removeprefix("trunkline.")
        if key.startswith("trunkline."):
            parts += [f"### View {code(name)}", facts["comment"]]
            parts.append(f"Read by {_roles(rights.get(name, []))}.")
            parts.append(_columns(catalog, key, facts["columns"]))
    parts.append("## Types")
    for key, facts in sorted(catalog["type"].items()):
        if key.startswith("trunkline."):
            parts += [f"### Type {code(key.removeprefix('trunkline.'))}", facts["comment"]]
            parts.append(_columns(catalog, key, facts["attributes"]))
    return page("SQL reference", _CONTRACT, *parts)


def _function(path: str, name: str, facts: dict[str, Any], roles: list[str]) -> list[str]:
    parts = [f"#### {code(name)}", facts["comment"]]
    rows = [
        [code(match["name"]), code(match["type"]), _default(match["default"])]
        for argument in _COMMA.split(facts.get("arguments", ""))
        if (match := _ARGUMENT.fullmatch(argument))
    ]
    if rows:
        parts.append(table(["argument", "type", "default"], rows))
    changes = ", ".join(
        f"{code(before)} → {code(after)}" for before, after, by in transitions() if by == name
    )
    facts_line = f"Returns {_result(facts['result'])}. Called by {_roles(roles)}."
    if changes:
        facts_line += f" Changes {changes}."
    return [*parts, f"{facts_line} [Source](../../src/trunkline/sql/{path})"]


def _result(text: str) -> str:
    rows = text.startswith("SETOF ")
    name = text.removeprefix("SETOF ").removeprefix("trunkline.")
    shown = code(name)
    if "trunkline." in text:
        shown = f"[{shown}](#type-{name})"
    return f"rows of {shown}" if rows else shown


def _default(text: str | None) -> str:
    if text is None:
        return "required"
    # NULL::text[] is shown as null.
    return code(re.sub(r"^NULL::.+$", "null", text))


def _columns(catalog: dict[str, dict[str, Any]], owner: str, names: list[str]) -> str:
    rows = []
    for name in names:
        facts = catalog["column"].get(f"{owner}.{name}", {})
        rows.append([code(name), code(facts["type"]) if "type" in facts else ""])
    return table(["column", "type"], rows)


def _roles(roles: list[str]) -> str:
    return ", ".join(code(role) for role in roles) or "the owner only"


def _privileges_page(catalog: dict[str, dict[str, Any]], rights: dict[str, list[str]]) -> str:
    heads = ["", *(role.removeprefix("trunkline_") for role in ROLES)]
    functions = [
        [f"[{code(name)}](sql.md#{name})", *_marks(rights.get(name, []))]
        for _, name, _ in _functions(catalog)
    ]
    views = [
        [f"[{code(name)}](sql.md#view-{name})", *_marks(rights.get(name, []))]
        for name in sorted(
            key.removeprefix("trunkline.")
            for key in catalog["view"]
            if key.startswith("trunkline.")
        )
    ]
    roles = [[code(role), cell(_ROLE_MEANING[role])] for role in sorted(catalog["role"])]
    return page(
        "Privileges",
        _PRIVILEGES,
        "## Roles",
        table(["role", "used by"], roles),
        "## Functions by role",
        table(heads, functions),
        "## Views by role",
        table(heads, views),
    )


def _marks(roles: list[str]) -> list[str]:
    return ["yes" if role in roles else "" for role in ROLES]
