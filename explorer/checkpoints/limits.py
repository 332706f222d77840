"""How much a checkpoint may ask for before anything is built.

Every limit is checked on headers and configurations alone, so that a refusal costs milliseconds. Knows numbers only.
"""

from __future__ import annotations

from dataclasses import dataclass

from explorer.checkpoints.report import CheckpointError, human_bytes

GIB = 1024**3


@dataclass(frozen=True)
class Limits:
    """max_bytes: what the weight files may hold, and what the built model may take, each; raise it for larger models.

    The others bound the work of reading descriptions: bytes of a config.json or index, bytes of a safetensors header
    or of the pickle inside a .pth, and how many weights a file may name.
    """

    max_bytes: int = 4 * GIB
    config_bytes: int = 1024**2
    header_bytes: int = 8 * 1024**2
    names: int = 100_000

    def check_bytes(self, what: str, count: int) -> None:
        """Raises CheckpointError if `count` bytes are more than max_bytes."""
        if count > self.max_bytes:
            raise CheckpointError(
                f"{what} {human_bytes(count)}, but the limit is {human_bytes(self.max_bytes)}; "
                "choose a smaller model, or raise the limit (Limits(max_bytes=…)) if this machine has the memory"
            )
