"""Who follows changes is told of them as long as it follows, and no longer."""

import asyncio

import pytest

import wellkept
from wellkept import aio


def test_a_follower_that_stops_is_not_told_any_more() -> None:
    async def main() -> None:
        async with aio.open("ram:", embedder=None) as memories:
            view = memories.view(user="ada")
            await view.add("Likes tea")
            async for _ in view.changes(follow=True):
                assert memories._opened.feed._followers
                break
            waiting = asyncio.create_task(_all(view.changes(after=await view.position(), follow=True)))
            await view.count()
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert not memories._opened.feed._followers
            assert not memories._sync._engine.bus.wants(wellkept.events.MemoryStored)

    asyncio.run(main())


async def _all(changes: aio.Changes) -> list[int]:
    return [version.version async for version in changes]
