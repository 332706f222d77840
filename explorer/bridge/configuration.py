"""Row 1, Config: one frozen object owns every size, and refuses sizes that no block can have.

Purpose: its check. Its sentences stand in `config.md`.
Must not know: other rows, the page.
"""

from __future__ import annotations

from dataclasses import replace

from explorer.axes import actual_shape
from explorer.bridge.case import model_config, plain, times
from explorer.bridge.row import Found, Point, Row
from explorer.model.config import ConfigError, MiniMindConfig
from explorer.quantities import QUANTITIES
from explorer.run import prepare, run
from explorer.spec import RunSpec
from explorer.stages.source import Lines


def check(spec: RunSpec) -> Found:
    """Config and block agree, three wrong configurations made from these sizes are refused, and the ledger agrees."""
    spec = plain(spec)
    config = model_config(spec)
    points = [_built(spec, config)]
    heads = _no_divisor(config.hidden_size)
    points.append(_refused("heads", config, num_attention_heads=heads, num_key_value_heads=None, head_dim=None))
    groups = _no_divisor(config.num_attention_heads)
    points.append(_refused("groups", config, num_key_value_heads=groups))
    points.append(_refused("odd", config, head_dim=config.head_dim + 1))
    return Found((*points, _ledger(spec)))


def _built(spec: RunSpec, config: MiniMindConfig) -> Point:
    """The projections that the block has are those that the config calls for."""
    attention = prepare(spec).block.self_attn
    heads, kv_heads, width = config.num_attention_heads, config.num_key_value_heads, config.head_dim
    wanted = {
        "q_proj": (heads * width, config.hidden_size), "k_proj": (kv_heads * width, config.hidden_size),
        "v_proj": (kv_heads * width, config.hidden_size), "o_proj": (config.hidden_size, heads * width),
    }  # fmt: skip
    seen = {name: tuple(getattr(attention, name).weight.shape) for name in wanted}
    values = {
        "heads": heads, "kv_heads": kv_heads, "width": width, "limit": config.max_position_embeddings,
        "q": times(seen["q_proj"]), "k": times(seen["k_proj"]),
    }  # fmt: skip
    return Point("built", seen == wanted, values)


def _no_divisor(number: int) -> int:
    """The smallest number of heads that does not divide `number`."""
    return next(n for n in range(2, number + 2) if number % n)


def _refused(key: str, config: MiniMindConfig, **wrong: int | None) -> Point:
    """These sizes with a wrong one among them; whether that is refused, and in which words."""
    given = next(iter(wrong.values()))
    try:
        replace(config, **wrong)  # type: ignore[arg-type]
    except ConfigError as error:
        return Point(f"{key}_refused", True, {"given": given, "error": str(error)})
    return Point(f"{key}_taken", False, {"given": given})


def _ledger(spec: RunSpec) -> Point:
    """Every quantity's shape against the one that its axes and this spec's sizes call for."""
    rows = run(spec).ledger()
    off = [row.name for row in rows if row.shape != actual_shape(QUANTITIES[row.name].axes, spec.sizes)]
    off += [row.name for row in rows if not row.agrees and row.name not in off]
    if off:
        return Point("ledger_off", False, {"rows": len(rows), "off": ", ".join(off)})
    return Point("ledger", True, {"rows": len(rows)})


ROW = Row(
    number=1,
    key="config",
    check=check,
    lines=(
        Lines("model.config", "MiniMindConfig._fill_in", 'fill("num_key_value_heads"'),
        Lines("model.config", "MiniMindConfig._check_heads"),
    ),
)
