"""A plain reverse proxy that sends each request to the next server in turn, whoever asks.

python tests/api/round_robin.py --host 127.0.0.1 --port 8000 http://127.0.0.1:7860/ http://127.0.0.1:7861/
GET /__counts says how many requests each server got.
"""

from __future__ import annotations

import argparse
import json
from itertools import cycle
from typing import Any

import httpx
import uvicorn

HOP_BY_HOP = {b"connection", b"keep-alive", b"transfer-encoding", b"host"}


class RoundRobin:
    """The proxy as an ASGI app."""

    def __init__(self, servers: list[str]) -> None:
        self.counts = dict.fromkeys(servers, 0)
        self.turns = cycle(servers)
        self.client: httpx.AsyncClient | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/__counts":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": json.dumps(self.counts).encode()})
            return
        self.client = self.client or httpx.AsyncClient(trust_env=False, timeout=60)
        server = next(self.turns)
        self.counts[server] += 1
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        query = scope["query_string"].decode()
        url = server.rstrip("/") + scope["raw_path"].decode() + (f"?{query}" if query else "")
        headers = [(k, v) for k, v in scope["headers"] if k not in HOP_BY_HOP]
        async with self.client.stream(scope["method"], url, headers=headers, content=body) as reply:
            about = [(k.lower(), v) for k, v in reply.headers.raw if k.lower() not in HOP_BY_HOP]
            await send({"type": "http.response.start", "status": reply.status_code, "headers": about})
            async for chunk in reply.aiter_raw():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b""})


if __name__ == "__main__":
    flags = argparse.ArgumentParser(description="A round-robin reverse proxy.")
    flags.add_argument("--host", required=True)
    flags.add_argument("--port", type=int, required=True)
    flags.add_argument("servers", nargs="+")
    asked = flags.parse_args()
    uvicorn.run(RoundRobin(asked.servers), host=asked.host, port=asked.port, log_level="error", lifespan="off")
