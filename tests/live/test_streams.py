"""Streams of events over HTTP: state at once, changes, resume, the end; and who may read them."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest

from tests.http.site import SECRET, Site, token
from tests.live.serving import DEADLINE, Serving, serving
from tests.support import databases
from tests.support.calls import Calls
from tests.support.servers import Server


@pytest.fixture(scope="module")
def site(server: Server, template: str) -> Iterator[Site]:
    with databases.fresh(server, template) as database:
        made = Site.create(database)
        yield made
        made.drop_roles()


@pytest.fixture(scope="module")
def api(site: Site) -> Iterator[Serving]:
    with serving(site) as made:
        yield made


@pytest.fixture
def calls(site: Site) -> Iterator[Calls]:
    with site.database.superuser() as connection:
        yield Calls(connection)


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def start(calls: Calls, tenant: str | None = "a") -> str:
    """Return a job that runs."""
    job = calls.enqueue("report", tenant=tenant, priority=49).job_id
    (claimed,) = calls.claim("w", 1).jobs
    assert claimed == job
    return str(job)


def complete(calls: Calls, job: str) -> None:
    calls.value("select trunkline.complete('w', array[%s::uuid], array[1])", job)


def emit(calls: Calls, job: str, number: int, text: str) -> None:
    calls.value(
        "select trunkline.emit('w', array[%s::uuid], array[1], array[%s::integer], array[%s])",
        job,
        number,
        text,
    )


def test_a_stream_begins_with_the_state_and_ends_with_the_job(api: Serving, calls: Calls) -> None:
    job = start(calls)
    path = f"/v1/jobs/{job}/events"
    with api.stream(path, by="a") as stream:
        assert 1000 <= stream.retry <= 5000
        first = stream.next()
        assert (first.kind, first.data["state"], first.data["job"]) == ("state", "running", job)
        calls.value("select trunkline.progress('w', %s::uuid, 1, 40, 'half')", job)
        changed = stream.next()
        assert (changed.data["progress"], changed.data["message"]) == (40, "half")
        emit(calls, job, 1, "one ")
        chunk = stream.next()
        assert (chunk.kind, chunk.data["text"], chunk.id) == ("chunk", "one ", "1.1")
        complete(calls, job)
        (end,) = stream.rest()
        assert (end.kind, end.data["state"], end.id) == ("end", "completed", "1.1.end")
    # A browser opens the stream again with the id of the end, and is told to stop.
    assert api.send("GET", path, by="a", **{"Last-Event-ID": "1.1.end"}).status_code == 204
    with api.stream(path, by="a", last="1.0") as stream:
        assert [event.kind for event in stream.rest()] == ["chunk", "end"]
    with api.stream(path, by="a", last="1.1") as stream:
        assert [event.kind for event in stream.rest()] == ["end"]
    with api.stream(path, by="a", last="no such id") as stream:
        assert [event.kind for event in stream.rest()] == ["chunk", "end"]


def test_a_new_attempt_resets_the_text(api: Serving, calls: Calls) -> None:
    job = start(calls)
    emit(calls, job, 1, "old")
    with api.stream(f"/v1/jobs/{job}/events", by="a") as stream:
        stream.until("chunk")
        calls.value(
            "select trunkline.fail('w', array[%s::uuid], array[1],"
            " p_delays => array[interval '0'])",
            job,
        )
        assert stream.next().data["state"] == "scheduled"
        calls.claim("w", 1)
        assert "reset" in [event.kind for event in stream.until("reset")]
        calls.value("select trunkline.complete('w', array[%s::uuid], array[2])", job)
        assert stream.rest()[-1].id == "2.0.end"


def test_a_workflow_is_streamed_to_its_end(api: Serving, calls: Calls) -> None:
    workflow = calls.value(
        "select workflow_id from trunkline.start_workflow("
        '\'{"name": "w", "tenant": "a", "steps": [{"name": "s", "task": "report"}]}\')'
    )
    path = f"/v1/workflows/{workflow}/events"
    with api.stream(path, by="a") as stream:
        assert stream.next().data["state"] == "queued"
        (job,) = calls.claim("w", 1).jobs
        assert stream.next().data["state"] == "running"
        complete(calls, str(job))
        end = stream.rest()[-1]
        assert (end.kind, end.data["percent"]) == ("end", 100)
    last = {"Last-Event-ID": str(end.id)}
    assert api.send("GET", path, by="a", **last).status_code == 204
    assert api.send("GET", path, by="b").status_code == 404


@pytest.mark.parametrize("kind", ["jobs", "workflows"])
def test_what_the_caller_may_not_see_is_unknown(api: Serving, calls: Calls, kind: str) -> None:
    job = start(calls, "a")
    known = job if kind == "jobs" else str(uuid4())
    for way in ("events", "events/ticket"):
        method = "GET" if way == "events" else "POST"
        for caller in ({"by": "b"}, {"bearer": token(tenant="b")}):
            found = api.send(method, f"/v1/{kind}/{known}/{way}", **caller)
            assert found.status_code == 404, found.text
        assert api.send(method, f"/v1/{kind}/{known}/{way}").status_code == 401
        odd = api.send(method, f"/v1/{kind}/not-an-id/{way}", by="a")
        assert odd.status_code in {404, 422}
    complete(calls, job)


def test_a_ticket_opens_one_stream_for_its_caller(api: Serving, calls: Calls, site: Site) -> None:
    job, other = start(calls), start(calls)
    answer = api.send("POST", f"/v1/jobs/{job}/events/ticket", bearer=token(tenant="a"))
    assert answer.status_code == 201, answer.text
    href = answer.json()["href"]
    with api.stream(href) as stream:
        assert stream.next().data["job"] == job
    ticket = answer.json()["ticket"]
    assert api.send("GET", f"/v1/jobs/{other}/events?ticket={ticket}").status_code == 401
    assert api.send("GET", f"/v1/jobs/{job}/events?ticket={ticket[:-2]}xx").status_code == 401
    for odd in ("", "x", "\u20ac", "A" * 13_000):
        refused = api.send("GET", f"/v1/jobs/{job}/events?ticket={odd}")
        assert refused.status_code == 401, odd
        assert "Traceback" not in refused.text
    # It is no credential of anything else.
    assert api.send("GET", f"/v1/jobs/{job}", bearer=ticket).status_code == 401
    complete(calls, job)
    complete(calls, other)


def test_a_ticket_expires(site: Site, calls: Calls) -> None:
    job = start(calls)
    with serving(site, ticket_lifetime=-1.0) as api:
        answer = api.send("POST", f"/v1/jobs/{job}/events/ticket", by="a")
        assert api.send("GET", answer.json()["href"]).status_code == 401
    complete(calls, job)


@pytest.mark.parametrize("by_ticket", [False, True])
def test_a_stream_ends_with_the_token_of_its_caller(
    api: Serving, calls: Calls, *, by_ticket: bool
) -> None:
    job = start(calls)
    path = f"/v1/jobs/{job}/events"
    bearer = token(tenant="a", exp=time.time() + 2)
    if by_ticket:
        path = api.send("POST", f"{path}/ticket", bearer=bearer).json()["href"]
        bearer = ""
    with api.stream(path, bearer=bearer) as stream:
        events = stream.rest()
    assert [event.kind for event in events if event.kind] == ["state"]
    complete(calls, job)


def test_streams_are_capped(site: Site, calls: Calls) -> None:
    job, other = start(calls, "a"), start(calls, "b")
    mine, theirs = f"/v1/jobs/{job}/events", f"/v1/jobs/{other}/events"
    with (
        serving(site, most=2, most_per_tenant=1) as api,
        api.stream(mine, by="a") as first,
    ):
        first.next()
        refused = api.send("GET", mine, by="a")
        assert (refused.status_code, refused.json()["code"]) == (429, "too_many_tenant_streams")
        assert refused.headers["retry-after"]
        # The key of the operator counts for the tenant of the job.
        assert api.send("GET", mine, by="operator").status_code == 429
        with api.stream(theirs, by="b") as second:
            second.next()
            refused = api.send("GET", mine, by="a")
            assert (refused.status_code, refused.json()["code"]) == (503, "too_many_streams")
        until(lambda: api.streams.count == 1)
        with api.stream(theirs, by="b"):
            pass
    complete(calls, job)
    complete(calls, other)


def test_a_closed_connection_is_noticed_and_holds_nothing(api: Serving, calls: Calls) -> None:
    job = start(calls)
    until(lambda: api.streams.count == 0)
    with api.stream(f"/v1/jobs/{job}/events", by="a") as stream:
        stream.next()
        assert api.streams.count == 1
        assert len(api.streams.hub) == 1
        # A read may be under way; a transaction that stays open is one that the stream holds.
        transactions = (
            "select count(*) from pg_stat_activity where application_name = 'trunkline api'"
            " and datname = current_database() and state like 'idle in%%'"
        )
        until(lambda: calls.value(transactions) == 0)
    until(lambda: api.streams.count == 0)
    assert len(api.streams.hub) == 0
    complete(calls, job)


def test_a_silent_stream_is_kept_open_by_comments(site: Site, calls: Calls) -> None:
    job = start(calls)
    with (
        serving(site, comment_every=0.1, timeout=1.0) as api,
        api.stream(f"/v1/jobs/{job}/events", by="a") as stream,
    ):
        events = stream.rest()
    assert events[0].kind == "state"
    # Then the timeout ends it.
    assert {event.kind for event in events[1:]} == {None}
    complete(calls, job)


def test_a_client_that_does_not_read_is_disconnected(site: Site, calls: Calls) -> None:
    job = start(calls)
    for number in range(1, 16):
        emit(calls, job, number, "x" * 65_000)
    request = (
        f"GET /v1/jobs/{job}/events HTTP/1.1\r\nHost: x\r\n"
        f"Authorization: Bearer {site.keys['a']}\r\n\r\n"
    )
    with serving(site, send_buffer=8192, stalled=0.5) as api, socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", api.port))
        client.sendall(request.encode())
        client.recv(1)
        until(lambda: api.streams.count == 1)
        # A megabyte of output is waiting; nobody takes it.
        until(lambda: api.streams.count == 0)
    complete(calls, job)


def test_operators_follow_all_activity(api: Serving, calls: Calls) -> None:
    assert api.send("GET", "/v1/events", by="a").status_code == 403
    with api.stream("/v1/events", by="operator") as stream:
        assert stream.next().kind == "open"
        until(lambda: api.streams.activity.reads)
        jobs = []
        while True:
            # The reader begins with what happens from its first query on.
            jobs.append(start(calls))
            event = stream.next()
            if event.kind == "activity":
                break
        assert event.data["job_id"] in jobs
        assert event.data["task"] == "report"
        assert "payload" not in event.data
    until(lambda: not api.streams.activity.reads)
    for job in jobs:
        complete(calls, job)


def test_the_module_for_browsers_is_served_to_everybody(api: Serving) -> None:
    answer = api.send("GET", "/v1/events.js")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/javascript")
    assert "export function followJob" in answer.text


def test_unknown_parameters_are_refused(api: Serving, calls: Calls) -> None:
    job = start(calls)
    assert api.send("GET", f"/v1/jobs/{job}/events?wat=1", by="a").status_code == 422
    assert api.send("HEAD", f"/v1/jobs/{job}/events", by="a").status_code == 200
    until(lambda: api.streams.count == 0)
    complete(calls, job)


def test_all_processes_of_a_server_believe_a_ticket(site: Site, calls: Calls) -> None:
    job = start(calls)
    with serving(site) as one, serving(site) as two:
        answer = one.send("POST", f"/v1/jobs/{job}/events/ticket", by="a")
        with two.stream(answer.json()["href"]) as stream:
            assert stream.next().data["job"] == job
    assert SECRET not in answer.text
    complete(calls, job)


def test_streams_end_when_the_server_does(site: Site, calls: Calls) -> None:
    job = start(calls)
    with serving(site) as api, api.stream(f"/v1/jobs/{job}/events", by="a") as stream:
        assert stream.next().kind == "state"
        api.stop()
        assert stream.rest() == []
    complete(calls, job)


def test_connections_whose_client_takes_nothing_are_closed_by_the_system(site: Site) -> None:
    with serving(site) as api:
        option = (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
        until(lambda: api.listening.getsockopt(*option) == 30_000)
