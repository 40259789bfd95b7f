"""Makes a table as an application of zae-limiter does: make.py ENDPOINT TABLE USERS.

It runs with each version of the package from 0.9 on.
"""

import asyncio
import sys
import warnings
from datetime import timedelta

import zae_limiter
from zae_limiter import Limit, RateLimiter
from zae_limiter.repository import Repository
from zae_limiter.version import CURRENT_SCHEMA_VERSION

warnings.simplefilter("ignore")
VERSION = tuple(int(n) for n in zae_limiter.__version__.split(".")[:2])


def repository(endpoint, table):
    return Repository(name=table, region="us-east-1", endpoint_url=endpoint)


async def take(limiter, entity, resource, consume):
    async with limiter.acquire(entity, resource, consume):
        pass


async def records(repo, users):
    """Entities and limits of every level."""
    await repo.set_system_defaults([Limit.per_hour("rpm", 100, 150)], on_unavailable="block")
    await repo.set_resource_defaults("gpt-4", [Limit.per_minute("rpm", 50), Limit.per_hour("tpm", 10_000)])
    await repo.create_entity("acme", name="Acme, Inc.", metadata={"team": "search", "plan": "gold"})
    await repo.create_entity("acme-key", parent_id="acme", cascade=True)
    await repo.create_entity("lonely", parent_id="never-made")
    await repo.set_limits("acme", [Limit.per_day("rpm", 500)], resource="gpt-4")
    await repo.set_limits("acme", [Limit.per_minute("rpm", 40)])
    for i in range(users):
        await repo.create_entity(f"user-{i}")


async def use(repo):
    """Balances below their capacities."""
    limiter = RateLimiter(repository=repo)
    await take(limiter, "acme-key", "gpt-4", {"rpm": 5, "tpm": 600})
    await take(limiter, "stranger", "gpt-4", {"rpm": 1, "tpm": 9_000})
    await take(limiter, "stranger", "other", {"rpm": 149})


async def newest(repo):
    """What only the newest versions have."""
    from zae_limiter.schedule import ScheduleEntry

    await repo.set_limits("soft", [Limit.per_minute("rpm", 10, soft=True)], resource="gpt-4")
    await repo.set_resource_defaults("disabled", [Limit.per_minute("rpm", 10)], disabled=True)
    night = [ScheduleEntry(cron="* 22-23 * * *", scale=0.5)]
    await repo.set_resource_defaults("nightly", [Limit("rpm", 10, 10, 60, schedule=night)])
    daily = Limit(name="day", capacity=1_000, refill_amount=0, refill_period_seconds=1, reset_schedule=[ScheduleEntry.reset("0 0 * * *")])
    await repo.set_resource_defaults("quota", [daily])
    window = Limit(name="session", capacity=9, refill_amount=0, refill_period_seconds=1, reset_after=timedelta(hours=5))
    await repo.set_resource_defaults("windowed", [window, Limit.per_minute("rpm", 10)])
    await repo.set_limits("acme-key", [Limit.per_minute("rpm", 30)], resource="apart", cascade=False)
    await repo.bump_shard_count("stranger", "gpt-4", 1)


async def main(endpoint, table, users):
    repo = repository(endpoint, table)
    await repo.create_table()
    await repo.set_version_record(schema_version=CURRENT_SCHEMA_VERSION, lambda_version=zae_limiter.__version__)
    if VERSION >= (0, 10):
        await repo.register_namespaces(["default", "tenant-b", "gone"])
        for name in ("tenant-b", "gone"):
            await (await repo.namespace(name)).create_entity("only", name=name)
        await repo.delete_namespace("gone")
        repo = await repo.namespace("default")
    await records(repo, users)
    await use(repo)
    if VERSION >= (0, 17):
        await newest(repo)
    await repo.close()


asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
