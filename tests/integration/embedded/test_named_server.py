"""The doctor and errors name the server that was used."""

from __future__ import annotations

import json
import textwrap

from tests.integration.embedded.place import Place
from trunkline.embedded import pin, status


def test_doctor_names_the_server(place: Place) -> None:
    pin(place.home)
    place.python("import shop; shop.app.sync.jobs.list()")
    checks = _checks(place)
    assert checks["embedded"]["level"] == "warn"
    assert "TRUNKLINE_DSN" in checks["embedded"]["hint"]
    assert f"embedded in {place.home}" in checks["connection"]["message"]
    assert _checks(place, TRUNKLINE_EMBEDDED="1")["embedded"]["level"] == "ok"
    secret = place.trunkline("db", "dsn", "--tcp").stdout.strip()
    checks = _checks(place, TRUNKLINE_DSN=secret)
    assert "embedded" not in checks
    # Passed on, it is still recognised; from another home it is a server like any other.
    assert f"embedded in {place.home}" in checks["connection"]["message"]
    elsewhere = _checks(place, TRUNKLINE_DSN=secret, TRUNKLINE_HOME=str(place.folder / "other"))
    port = status(place.home).port
    assert f"trunkline on 127.0.0.1, port {port}" in elsewhere["connection"]["message"]
    password = secret.partition("//")[2].partition(":")[2].partition("@")[0]
    assert password
    assert password not in json.dumps(elsewhere)


def _checks(place: Place, **variables: str) -> dict[str, dict[str, str]]:
    ended = place.trunkline("doctor", "--json", **variables)
    assert ended.stderr == ""
    return {check["check"]: check for check in json.loads(ended.stdout)["checks"]}


def test_errors_of_the_wrong_server_name_it(place: Place) -> None:
    pin(place.home)
    script = textwrap.dedent("""
        import asyncio, uuid
        from shop import app, send
        from trunkline.errors import UnknownJob, UnknownTask, WaitTimeout

        async def main():
            try:
                await app.jobs.enqueue("sned")
            except UnknownTask as error:
                print("1", error)
            try:
                app.sync.jobs.enqueue("sned")
            except UnknownTask as error:
                print("2", error)
            try:
                await app.jobs.get(uuid.uuid4())
            except UnknownJob as error:
                print("3", error)
            try:
                await app.jobs.cancel(uuid.uuid4())
            except UnknownJob as error:
                print("4", error)
            job = await send.enqueue(to="ann")
            try:
                await job.wait(timeout=0.01)
            except WaitTimeout as error:
                print("5", error.hint)
        asyncio.run(main())
    """)
    here = place.python(script, TRUNKLINE_EMBEDDED="1")
    assert [line[0] for line in here.stdout.splitlines()] == ["1", "2", "3", "4", "5"], here.stderr
    assert here.stdout.count(f"embedded in {place.home}") == 5
    secret = place.trunkline("db", "dsn", "--tcp").stdout.strip()
    there = place.python(script, TRUNKLINE_DSN=secret, TRUNKLINE_HOME="/nowhere")
    port = status(place.home).port
    assert there.stdout.count(f"127.0.0.1:{port}/trunkline") == 5, there.stderr
    password = secret.partition("//")[2].partition(":")[2].partition("@")[0]
    assert password not in there.stdout
    refused = place.trunkline("jobs", "enqueue", "sned", TRUNKLINE_EMBEDDED="1")
    assert f"server embedded in {place.home}" in refused.stderr


def test_a_database_without_our_schema_is_named(place: Place) -> None:
    pin(place.home)
    dsn = place.trunkline("db", "dsn").stdout.strip()
    refused = place.trunkline("jobs", "list", TRUNKLINE_DSN=dsn)
    assert f"no Trunkline schema: embedded in {place.home}" in refused.stderr
