"""A tenant's budget beside a provider's limit follows what calls really took."""

from typing import Any
from uuid import UUID

import pytest

from tests.worker.scene import Scene
from tests.worker.test_grants import KINDS, bucket, limit
from tests.worker.test_http import chat, url
from trunkline import Context, SyncContext
from trunkline.errors import QuotaSpent
from trunkline_profiles.clinical.stubs.limits import Model
from trunkline_profiles.clinical.stubs.provider import Provider

BUDGET = '{"quota": 2000, "quota_unit": "tokens", "quota_period": "month"}'


async def enqueue(scene: Scene, task: str, tenant: str, **payload: Any) -> UUID:
    found: UUID = (await scene.app.tasks[task].options(tenant=tenant).enqueue(**payload)).id
    return found


@pytest.mark.parametrize("kind", KINDS)
async def test_actuals_far_above_the_estimate_stop_that_tenant(scene: Scene, kind: str) -> None:
    """Estimated at 100, taken 5000: the next job of that tenant is refused, until it may go on."""
    limit(scene, "openai", '{"tokens_per_minute": 100000}')
    limit(scene, "budget/{tenant}", BUDGET)
    with Provider(Model(tokens=5000)) as provider:

        @scene.app.task(limit=["openai", "budget/{tenant}"], cost={"tokens": 100})
        async def loop(ctx: Context) -> None:
            await ctx.http.post(url(provider), json=chat())

        @scene.app.task(limit=["openai", "budget/{tenant}"], cost={"tokens": 100})
        def thread(ctx: SyncContext) -> None:
            ctx.http.post(url(provider), json=chat())

        async with scene.working():
            await scene.until_state(await enqueue(scene, kind, "acme"), "completed")
            assert bucket(scene, "budget/acme").spent == 5000
            assert bucket(scene, "openai").tokens_of_minute == 5000
            with pytest.raises(QuotaSpent):
                await enqueue(scene, kind, "acme")
            await scene.until_state(await enqueue(scene, kind, "zoo"), "completed")
            limit(scene, "budget/acme", BUDGET.replace("2000", "20000"))
            await scene.until_state(await enqueue(scene, kind, "acme"), "completed")
    assert bucket(scene, "budget/acme").spent == 10_000
    # Money and tokens of the books are those of the calls.
    spent = (
        'select tenant, sum(tokens)::bigint as tokens from trunkline.usage where "limit" like %s'
        " group by tenant order by tenant"
    )
    assert [tuple(row) for row in scene.rows(spent, "budget/%")] == [
        ("acme", 10_000),
        ("zoo", 5000),
    ]
