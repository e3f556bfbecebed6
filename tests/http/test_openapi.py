"""The OpenAPI document, and requests made from it."""

from __future__ import annotations

from typing import Any

import hypothesis
import pytest
import schemathesis
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.http.site import Api, Site, token
from trunkline.http import ApiSettings
from trunkline.http.openapi import openapi
from trunkline.http.v1 import ROUTES

OPERATIONS = [operation for room in ROUTES for operation in room.operations]
DOCUMENT = openapi(OPERATIONS)
SCHEMA = schemathesis.openapi.from_dict(DOCUMENT)
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
# Redirects lead to the store; the others would stop what the next requests need. Streams have no
# end; tests/live reads them.
LEFT_OUT = {
    *("read_content", "zip_job", "zip_workflow"),
    *("job_events", "workflow_events", "activity_events"),
}


def test_the_document_needs_a_key_or_a_setting(site: Site, api: Api) -> None:
    api.refused(401, "GET", "/openapi.json")
    api.refused(401, "GET", "/docs")
    assert api.ok("GET", "/openapi.json", by="reader")["openapi"] == "3.1.0"
    public = Api(site, ApiSettings(public_openapi=True))
    try:
        assert public.ok("GET", "/openapi.json") == api.ok("GET", "/openapi.json", by="a")
        page = public.send("GET", "/docs")
        assert "<code>POST /v1/jobs</code>" in page.text
        assert "default-src 'none'" in page.headers["content-security-policy"]
    finally:
        public.close()


def test_every_operation_is_described() -> None:
    described = [
        operation for methods in DOCUMENT["paths"].values() for operation in methods.values()
    ]
    assert len(described) == len(OPERATIONS)
    names = [operation["operationId"] for operation in described]
    assert len(set(names)) == len(names)
    assert all(operation["summary"].endswith(".") for operation in described)
    assert not [name for name in DOCUMENT["components"]["schemas"] if "." in name]


@pytest.mark.parametrize(
    "operation",
    [each for each in OPERATIONS if each.endpoint.__name__ not in LEFT_OUT],
    ids=lambda found: found.endpoint.__name__,
)
def test_answers_are_as_the_document_says(api: Api, operation: Any) -> None:
    """Generated requests, valid and invalid, as an operator; the same in every run."""
    path = operation.path.replace(":path}", "}")
    described = SCHEMA[path][operation.method]

    @hypothesis.settings(
        max_examples=4,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(case=described.as_strategy())
    def run(case: Any) -> None:
        arguments = case.as_transport_kwargs(base_url="http://api.example.org")
        arguments.pop("cookies", None)
        headers = dict(arguments.pop("headers", {}))
        headers.pop("Authorization", None)
        arguments.pop("url", None)
        response = api.send(
            operation.method,
            case.formatted_path,
            by="operator",
            headers=headers,
            **{
                name: value
                for name, value in arguments.items()
                if name in {"params", "json", "data"}
            },
        )
        if case.formatted_path == "/health":
            return
        case.validate_response(schemathesis.Response.from_any(response), checks=CHECKS)

    run()


def test_a_tenant_gets_described_answers_too(api: Api) -> None:
    for path in ("/v1/jobs", "/v1/workflows", "/v1/artifacts"):
        response = api.send("GET", path, bearer=token(tenant="a"))
        assert str(response.status_code) in DOCUMENT["paths"][path]["get"]["responses"]
