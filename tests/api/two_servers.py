"""Two servers behind one address."""

from __future__ import annotations

from dataclasses import dataclass

import httpx


@dataclass
class Proxy:
    """One address for two servers that know nothing of each other."""

    url: str

    def counts(self) -> list[int]:
        """How many requests each server got so far."""
        return list(httpx.get(f"{self.url}__counts", trust_env=False).json().values())
