"""(b) What recording costs: a traced forward over an untraced one, both on the explicit attention path."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

import torch

from explorer import device
from explorer.capture import record
from explorer.model.block import MiniMindBlock
from explorer.model.config import MiniMindConfig
from explorer.model.rope import RotaryEmbedding
from tests.bench.stats import Row, compare, pair_ratios

BAR = 1.05
LENGTHS = (64, 512, 1024)
SHAPE = {
    "hidden_size": 768,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 96,
    "intermediate_size": 2432,
}


def milliseconds(work: Callable[[], object]) -> tuple[float, float]:
    """Wall and processor time of one call; the second is steadier where others use the machine.

    What the call returns is let go after the clock has stopped: a trace is made to be read, not to be dropped.
    """
    wall, cpu = time.perf_counter(), time.process_time()
    kept = work()
    spent = (time.perf_counter() - wall) * 1e3, (time.process_time() - cpu) * 1e3
    del kept
    return spent


def measure_length(tokens: int, rounds: int) -> Row:
    """Median of the ratios of `rounds` pairs, whose order alternates."""
    device.keep_freed_memory()  # as in the app: both sides then reuse memory instead of asking the system for it
    torch.manual_seed(0)
    config = MiniMindConfig(**SHAPE, flash_attn=False)
    block = MiniMindBlock(config).eval()
    hidden = torch.randn(1, tokens, config.hidden_size)
    positions = RotaryEmbedding(config)(0, tokens, hidden.device)

    def untraced() -> object:
        with torch.no_grad():  # as recording does: inference_mode would leave out the version counters it reads
            return block(hidden, positions)

    def traced() -> object:
        return record(block, hidden, positions)

    pairs = []
    for i in range(rounds + 2):
        order = (traced, untraced) if i % 2 else (untraced, traced)
        times = {work: milliseconds(work) for work in order}
        pairs.append((times[traced], times[untraced]))
    (ours, ours_cpu), (floor, floor_cpu) = (zip(*side, strict=True) for side in zip(*pairs[2:], strict=True))
    by_cpu = median(pair_ratios(ours_cpu, floor_cpu))
    notes = {"threads": torch.get_num_threads(), "ratio of processor time": f"{by_cpu:.3f}"}
    return compare("b", f"T={tokens}", ours, floor, bar=BAR, unit="ms", by_pair=True, notes=notes)


def measure(rounds: int) -> list[Row]:
    """`rounds` pairs at the longest length; more at the shorter ones, whose times are small and scatter more."""
    return [measure_length(tokens, rounds * min(8, max(LENGTHS) // tokens)) for tokens in LENGTHS]
