"""The metrics page of linnet-server."""

from __future__ import annotations

import re

from aiohttp import ClientError, ClientSession, ClientTimeout

from .options import Options
from .problem import Problem


async def read(options: Options) -> str:
    """The page. Raises Problem if there is none, or if it cannot be read."""
    if not options.server_metrics:
        raise Problem(404, "the option --server-metrics is empty", "NOT_FOUND")
    try:
        async with (
            ClientSession(timeout=ClientTimeout(total=5)) as session,
            session.get(f"http://{options.server_metrics}/metrics") as page,
        ):
            return await page.text()
    except (ClientError, TimeoutError):
        raise Problem(
            503, "the server's metrics page cannot be reached: see --server-metrics", "UNAVAILABLE"
        ) from None


async def version(options: Options) -> str:
    """The version of the server, of which the API does not tell."""
    found = re.search(r'^linnet_build_info\{.*\bversion="([^"]*)"', await read(options), re.M)
    return found[1] if found else ""
