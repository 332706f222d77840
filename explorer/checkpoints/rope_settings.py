"""Rotary settings as configurations spell them, old and new, turned into MiniMindConfig's fields.

transformers 4 writes rope_theta and rope_scaling, transformers 5 one rope_parameters with both. Must not know files.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from explorer.checkpoints.report import CheckpointError
from explorer.model.config import RopeScaling

_YARN = ("factor", "original_max_position_embeddings", "beta_fast", "beta_slow", "attention_factor")
_READ = {*_YARN, "rope_type", "type", "rope_theta", "truncate", "finetuned"}


def rope_fields(given: Mapping[str, Any], own: bool) -> dict[str, Any]:
    """rope_theta, inference_rope_scaling and rope_scaling as far as the configuration states them.

    own: it is MiniMind's own configuration, whose YaRN is taken as it is. Another's is taken only where it gives the
    same angles. Raises CheckpointError for any other scaling.
    """
    settings = _settings(given)
    said: dict[str, Any] = {}
    theta = given.get("rope_theta", settings.get("rope_theta"))
    if theta is not None:
        said["rope_theta"] = theta
    kind = settings.get("rope_type", settings.get("type", "default" if not set(settings) & set(_YARN) else "yarn"))
    if kind == "default":
        return said
    if kind != "yarn":
        raise CheckpointError(f'config.json has RoPE scaling of type "{kind}"; allowed are "default" and "yarn"')
    scaling = {name: settings[name] for name in _YARN if settings.get(name) is not None}
    RopeScaling.from_dict(scaling)  # raises ConfigError for a number that cannot be
    if theta is not None and theta <= 1:
        raise CheckpointError(f"config.json has YaRN with rope_theta={theta}; YaRN needs a rope_theta above 1")
    if own:
        return said | {"rope_scaling": scaling, "inference_rope_scaling": given.get("inference_rope_scaling", True)}
    return said | {"rope_scaling": _same_angles(given, settings, scaling, theta), "inference_rope_scaling": True}


def _settings(given: Mapping[str, Any]) -> dict[str, Any]:
    found = given.get("rope_parameters") or given.get("rope_scaling") or {}
    if not isinstance(found, Mapping):
        raise CheckpointError(f"config.json has RoPE settings {found!r}; they must be an object")
    return dict(found)


def _same_angles(
    given: Mapping[str, Any], settings: Mapping[str, Any], scaling: dict[str, Any], theta: float | None
) -> dict[str, Any]:
    """transformers' YaRN (modeling_rope_utils.py) as MiniMind's, where the two agree; otherwise CheckpointError."""
    odd = sorted(name for name in set(settings) - _READ if settings[name] not in (None, False))
    longest, trained = given.get("max_position_embeddings"), scaling.get("original_max_position_embeddings")
    numbers = (longest, trained, theta, given.get("head_dim"), scaling.get("factor"))
    if not all(isinstance(number, int | float) and not isinstance(number, bool) and number > 0 for number in numbers):
        raise CheckpointError(
            "config.json has YaRN, which needs max_position_embeddings, head_dim, rope_theta, factor and "
            "original_max_position_embeddings, all above 0"
        )
    longest, trained, base, width, factor = (float(number) for number in numbers if number is not None)
    slowest = width * math.log(trained / (scaling.get("beta_slow", 1) * 2 * math.pi)) / (2 * math.log(base))
    if odd or settings.get("truncate") is False or longest <= trained or math.ceil(slowest) > width // 2 - 1:
        raise CheckpointError(
            f"config.json has YaRN settings that MiniMind computes otherwise ({', '.join(odd) or 'its range of pairs'})"
            "; choose a checkpoint without RoPE scaling"
        )
    scaling.setdefault("attention_factor", 0.1 * math.log(factor) + 1.0 if factor > 1 else 1.0)
    return {"type": "yarn", **scaling}
