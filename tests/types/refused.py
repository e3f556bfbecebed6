"""Calls that a type checker must refuse, each with the code it gives. Checked, never run.

The checks of the project see the comments and fail when one is not needed; test_types.py takes
them away and compares line by line.
"""

from trunkline import Context, Results, SyncContext, Trunkline, WorkflowEnd
from trunkline.testing import Sandbox

app = Trunkline()


@app.task
async def send(ctx: Context, to: str, copies: int = 1) -> int:
    return copies


@app.task
def plain(number: int) -> str:
    return str(number)


@app.task(lease=[5])  # type: ignore[call-overload, untyped-decorator]
def lease_of_a_list() -> None: ...


@app.task(leese="5m")  # type: ignore[call-overload, untyped-decorator]
def unknown_argument() -> None: ...


@app.task(unique_until="never")  # type: ignore[call-overload, untyped-decorator]
def unknown_choice() -> None: ...


@app.task("send")  # type: ignore[call-overload, untyped-decorator]
def name_without_its_word() -> None: ...


async def calls() -> None:
    await send.enqueue()  # type: ignore[call-arg]
    await send.enqueue(5)  # type: ignore[arg-type]
    await send.enqueue(to="ann", copies="2")  # type: ignore[arg-type]
    await send.enqueue(to="ann", cc="bob")  # type: ignore[call-arg]
    await send.enqueue("ann", 1, 2)  # type: ignore[call-arg]
    await send.enqueue(None, to="ann")  # type: ignore[misc, arg-type]
    await plain.enqueue("5")  # type: ignore[arg-type]
    send.request(to=5)  # type: ignore[arg-type]
    await send.options(priority="high").enqueue(to="ann")  # type: ignore[arg-type]
    await send.options(prio=5).enqueue(to="ann")  # type: ignore[call-arg]
    await send.options(delay=[1]).enqueue(to="ann")  # type: ignore[arg-type]
    await send.options(run_at="tomorrow").enqueue(to="ann")  # type: ignore[arg-type]
    await send.options(priority=5).enqueue()  # type: ignore[call-arg]
    await send.enqueue_many([plain.request(5)])  # type: ignore[list-item]
    await send("ann")  # type: ignore[operator]
    plain(5)  # type: ignore[operator]


async def results() -> None:
    handle = await send.enqueue(to="ann")
    text: str = await handle.wait()  # type: ignore[assignment]
    number: int = await (await plain.enqueue(5)).wait()  # type: ignore[assignment]
    await handle.wait(timeout=[5])  # type: ignore[arg-type]
    handle.state = "done"  # type: ignore[assignment]
    print(text, number)


async def jobs() -> None:
    await app.jobs.get(5)  # type: ignore[arg-type]
    await app.jobs.list(5)  # type: ignore[call-arg, arg-type]
    await app.jobs.list(limit="5")  # type: ignore[arg-type]
    await app.jobs.enqueue("send", ["ann"])  # type: ignore[arg-type]
    await app.jobs.enqueue("send", prio=5)  # type: ignore[call-arg]


def blocking() -> None:
    plain.sync.enqueue("5")  # type: ignore[arg-type]
    plain.sync.enqueue()  # type: ignore[call-arg]
    number: int = plain.sync.enqueue(5).wait()  # type: ignore[assignment]
    plain.sync.options(prio=5)  # type: ignore[call-arg]
    app.sync.enqueue_many([5])  # type: ignore[list-item]
    print(number)


def in_a_sandbox() -> None:
    with Sandbox("shop:app") as sandbox:  # type: ignore[arg-type]
        number: int = sandbox.run_inline(plain.request(5))  # type: ignore[assignment]
        sandbox.move_time([5])  # type: ignore[arg-type]
        print(number)


async def within_limits(ctx: Context) -> None:
    ctx.grant("openai", token=5)  # type: ignore[call-arg]
    ctx.grant("openai", tokens="5")  # type: ignore[arg-type]
    await ctx.settle(tokens=1.5)  # type: ignore[arg-type]
    ctx.http_client(limit=True)  # type: ignore[arg-type]
    ctx.http_client(token=5)  # type: ignore[call-arg]
    await ctx.http.post("https://example.com", tokens=5)  # type: ignore[call-arg]
    app.task(concurrency="3")  # type: ignore[call-overload]
    app.task(breaker=5)  # type: ignore[call-overload]


async def without_await(ctx: Context) -> None:
    ctx.http.get("https://example.com")  # type: ignore[unused-coroutine]
    ctx.http.get("https://example.com").json()  # type: ignore[attr-defined]
    ctx.progress(50)  # type: ignore[unused-coroutine]
    ctx.settle(tokens=5)  # type: ignore[unused-coroutine]
    if ctx.settle(tokens=5):  # type: ignore[truthy-bool]
        pass
    with ctx.grant("openai"):  # type: ignore[attr-defined]
        pass
    with ctx.transaction():  # type: ignore[attr-defined]
        pass
    async with ctx.grant("openai") as grant:
        grant.settle(tokens=5)  # type: ignore[unused-coroutine]


async def awaited_in_vain(ctx: SyncContext) -> None:
    await ctx.http.get("https://example.com")  # type: ignore[misc]
    await ctx.progress(50)  # type: ignore[func-returns-value, misc]
    async with ctx.grant("openai"):  # type: ignore[attr-defined]
        pass


@app.task
def pages_of(path: str) -> list[int]:
    return [1]


@app.task
def join(texts: Results[str]) -> str:
    return texts[0]


@app.task
def join_numbers(numbers: Results[int]) -> None: ...


@app.task
def ended(workflow: WorkflowEnd) -> None: ...


async def workflows() -> None:
    order = app.workflow("report", dead_line="2h")  # type: ignore[call-arg]
    order = app.workflow("report", deadline=[2])  # type: ignore[arg-type]
    pages = order.add(pages_of.request("a.pdf"))
    order.add(send.request(to=pages.result))  # type: ignore[arg-type]
    texts = order.map(pages.result, plain.request)
    order.map(pages.result, lambda page: send.request(to=page))  # type: ignore[arg-type]
    order.map(pages, plain.request)  # type: ignore[arg-type]
    order.add(join_numbers.request(texts.results))  # type: ignore[arg-type]
    order.add(join.request(texts.result))  # type: ignore[attr-defined]
    order.add(join.request(pages.results))  # type: ignore[attr-defined]
    order.add(plain(5))  # type: ignore[operator]
    order.add(ended.request(workflow=texts.results))  # type: ignore[arg-type]
    order.on_failure(ended)  # type: ignore[arg-type]
    order.add(plain.request(5), after=5)  # type: ignore[arg-type]
    run = await order.start()
    number: int = await run.result(pages)  # type: ignore[arg-type]
    print(number, run.wait(timeout=[1]))  # type: ignore[arg-type]
