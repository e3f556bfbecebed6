"""The OpenAPI document, made from the types of the routes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from trunkline.http.problems import Problem
from trunkline.http.routing import Operation
from trunkline.http.wire import wire_type
from trunkline.version import __version__

__all__ = ["openapi", "reference_page"]

_REFERENCES: Final = "#/components/schemas/{name}"
_PROBLEM: Final = {
    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
}
_ID: Final = {"type": "string", "format": "uuid"}
_NAME: Final = {"type": "string", "minLength": 1, "maxLength": 1000}
# Statuses that any operation may have.
_OF_ALL: Final = {
    400: "The request cannot be read.",
    422: "A field has a wrong value.",
    503: "The database does not answer; try again.",
}
_OF_CALLERS: Final = {
    401: "There are no valid credentials.",
    403: "The role of the caller may not do this.",
    429: "This address has failed to sign in too often.",
}
_OF_BODIES: Final = {
    408: "The body did not arrive in time.",
    413: "The body is too large.",
    415: "The body is not JSON.",
}
_DESCRIPTION: Final = (
    "Jobs, workflows and everything about them. Errors are problems (RFC 9457) with a stable "
    "`code` and a `hint`. Sign in with `Authorization: Bearer` and a service key of "
    "`trunkline keys create`, or a token."
)


def openapi(operations: Iterable[Operation]) -> dict[str, Any]:
    """Return the document as JSON values, in the order of the routes."""
    listed = list(operations)
    kinds = [
        wire_type(kind)
        for operation in listed
        for kind in (operation.body, operation.answer)
        if kind is not None
    ]
    queries = [operation.query for operation in listed if operation.query is not None]
    _, components = msgspec.json.schema_components([*kinds, Problem], ref_template=_REFERENCES)
    paths: dict[str, dict[str, Any]] = {}
    for operation in listed:
        path = operation.path.replace(":path}", "}")
        paths.setdefault(path, {})[operation.method.lower()] = _described(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Trunkline",
            "version": __version__,
            "description": _DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"bearer": []}],
        "tags": [{"name": tag} for tag in dict.fromkeys(each.tag for each in listed)],
        "paths": paths,
        "components": {
            "schemas": dict(sorted((components | _of_queries(queries)).items())),
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


def _described(operation: Operation) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation.endpoint.__name__,
        "summary": operation.summary,
        "tags": [operation.tag],
    }
    parameters = [*_path_parameters(operation), *_query_parameters(operation)]
    if operation.is_idempotent_by_key:
        parameters.append(
            {
                "name": "Idempotency-Key",
                "in": "header",
                "description": "A repeated request with this key returns the first answer.",
                "schema": {"type": "string", "minLength": 1, "maxLength": 400},
            }
        )
    if parameters:
        described["parameters"] = parameters
    if operation.body is not None:
        (schema,), _ = msgspec.json.schema_components(
            [wire_type(operation.body)], ref_template=_REFERENCES
        )
        described["requestBody"] = {
            "required": _is_required(operation.body),
            "content": {"application/json": {"schema": schema}},
        }
    if operation.is_public:
        described["security"] = []
    described["responses"] = _responses(operation)
    return described


def _path_parameters(operation: Operation) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": _ID if is_id else _NAME}
        for name, is_id in operation.parameters.items()
    ]


def _query_parameters(operation: Operation) -> list[dict[str, Any]]:
    if operation.query is None:
        return []
    schemas = _properties(operation.query)
    return [
        {
            "name": field.encode_name,
            "in": "query",
            "required": field.required,
            # A parameter is there or not, and never null.
            "schema": _without_null(schemas[field.encode_name]),
        }
        for field in msgspec.structs.fields(operation.query)
    ]


def _properties(kind: Any) -> Mapping[str, Any]:
    (_,), components = msgspec.json.schema_components([kind], ref_template=_REFERENCES)
    properties: Mapping[str, Any] = components[kind.__name__]["properties"]
    return properties


def _of_queries(queries: Iterable[Any]) -> dict[str, Any]:
    """Return the schemas that queries refer to, such as the states of a job."""
    _, components = msgspec.json.schema_components(list(queries), ref_template=_REFERENCES)
    own = {query.__name__ for query in queries}
    return {name: schema for name, schema in components.items() if name not in own}


def _without_null(schema: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in schema.items() if name != "default" or value is not None}
    if "anyOf" not in kept:
        return kept
    options = [option for option in kept.pop("anyOf") if option.get("type") != "null"]
    return {**kept, **options[0]} if len(options) == 1 else {**kept, "anyOf": options}


def _is_required(kind: Any) -> bool:
    return any(field.required for field in msgspec.structs.fields(kind))


def _responses(operation: Operation) -> dict[str, Any]:
    success: dict[str, Any] = {"description": "Done." if operation.status < 300 else "Follow it."}
    if operation.media_type is not None:
        success["content"] = {operation.media_type: {}}
    elif operation.answer is not None:
        (schema,), _ = msgspec.json.schema_components(
            [wire_type(operation.answer)], ref_template=_REFERENCES
        )
        success["content"] = {"application/json": {"schema": schema}}
    responses = {str(operation.status): success}
    statuses: dict[int, str] = dict(_OF_ALL)
    if not operation.is_public:
        statuses |= _OF_CALLERS
    if operation.body is not None:
        statuses |= _OF_BODIES
    statuses |= _OF_CHANGES if operation.method != "GET" else {304: "Unchanged."}
    statuses |= operation.statuses
    for status, description in sorted(statuses.items()):
        problem = {} if status < 400 or (operation.is_public and status == 503) else _PROBLEM
        if status == 206:
            problem = {"content": success.get("content", {})}
        responses[str(status)] = {"description": description, **problem}
    return responses


_OF_CHANGES: Final = {
    404: "Something that the request names does not exist.",
    409: "The state does not allow this, or a key is held.",
    410: "Something that the request names is gone.",
    429: "A limit or quota is used up, or the address failed to sign in too often.",
    507: "The storage of the tenant is used up.",
}


def reference_page(document: Mapping[str, Any]) -> str:
    """Return the document as a plain page without scripts."""
    parts = []
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            name = re.sub(r"[<>&]", "", path)
            parts.append(
                f"<h3 id={operation['operationId']!r}><code>{method.upper()} {name}</code></h3>"
                f"<p>{operation['summary']}</p>{_parameter_list(operation)}"
            )
    return _PAGE.format(title=document["info"]["title"], body="\n".join(parts))


def _parameter_list(operation: Mapping[str, Any]) -> str:
    lines = [
        f"<li><code>{parameter['name']}</code> in {parameter['in']}</li>"
        for parameter in operation.get("parameters", ())
    ]
    body = operation.get("requestBody")
    if body is not None:
        reference = body["content"]["application/json"]["schema"].get("$ref", "")
        lines.append(f"<li>body <code>{reference.rpartition('/')[2]}</code></li>")
    statuses = ", ".join(operation["responses"])
    return f"<ul>{''.join(lines)}</ul><p>Answers: {statuses}</p>"


_PAGE: Final = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}: HTTP API</title>
<h1>{title}: HTTP API</h1>
<p>The types are in <a href="/openapi.json">openapi.json</a>.</p>
{body}
</html>
"""
