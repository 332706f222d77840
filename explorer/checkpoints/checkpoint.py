"""An opened checkpoint: everything compared and found to fit, the numbers still on disk until they are asked for.

Builds the whole model, one block, or what a block receives from a text. transformers is imported only for the whole
model. Must not know where files lie or which names they use.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import torch
from torch import Tensor, nn

from explorer import allowance
from explorer.checkpoints.limits import Limits
from explorer.checkpoints.names import Part
from explorer.checkpoints.report import CheckpointError, Report
from explorer.checkpoints.shapes import EMBEDDING, HEAD, block_shapes, check_size
from explorer.checkpoints.stored import Weights
from explorer.model.block import MiniMindBlock
from explorer.model.config import MiniMindConfig
from explorer.model.rope import RotaryEmbedding

if TYPE_CHECKING:
    from explorer.model.causal_lm import MiniMindForCausalLM

_Module = TypeVar("_Module", bound=nn.Module)


class Checkpoint:
    """An opened checkpoint whose every weight fits; the numbers stay on disk until they are asked for.

    config, report; folder: where config and tokenizer files lie.
    """

    def __init__(
        self,
        folder: Path,
        config: MiniMindConfig,
        report: Report,
        weights: Weights,
        parts: Mapping[str, Part],
        limits: Limits,
    ) -> None:
        self.folder, self.config, self.report = folder, config, report
        self._weights, self._parts, self._limits = weights, parts, limits
        self._strange: dict[str, None] = {}  # weights that held NaN or infinity, in the order of reading

    def model(self, dtype: torch.dtype = torch.float32) -> MiniMindForCausalLM:
        """The whole language model, in evaluation mode, RoPE tables built. Imports transformers."""
        check_size(self.config, dtype.itemsize, self._limits)
        from explorer.model.causal_lm import MiniMindForCausalLM

        state = {name: self._read(name, dtype) for name in self._parts}
        with torch.device("meta"):
            model = MiniMindForCausalLM(self.config)
        if self.config.tie_word_embeddings:
            state[HEAD] = state[EMBEDDING]
        model.load_state_dict(state, assign=True)
        if self.config.tie_word_embeddings:
            model.lm_head.weight = model.model.embed_tokens.weight
        model.config.dtype = dtype
        return _finish(model)

    def block(self, layer: int, dtype: torch.dtype = torch.float32) -> MiniMindBlock:
        """One block, in evaluation mode; no other layer's numbers are read."""
        self._check_layer(layer, self.config.num_hidden_layers - 1)
        check_size(self.config, dtype.itemsize, self._limits, only_block=True)
        state = {name: self._read(f"model.layers.{layer}.{name}", dtype) for name in block_shapes(self.config)}
        with torch.device("meta"):
            block = MiniMindBlock(self.config, layer)
        block.load_state_dict(state, assign=True)
        return _finish(block)

    def embedding(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """The token embeddings [V,D]."""
        return self._read(EMBEDDING, dtype)

    @torch.no_grad()
    def hidden_states(
        self,
        input_ids: Tensor,
        layer: int,
        attention_mask: Tensor | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> Tensor:
        """What block `layer` receives for a text: input_ids [B,T] -> [B,T,D].

        layer = num_hidden_layers gives what the final norm receives. Blocks are loaded, run and dropped one after the
        other, so the memory of one is enough. attention_mask [B,T], 1 real and 0 padding.
        """
        self._check_layer(layer, self.config.num_hidden_layers)
        lowest, highest = (int(bound) for bound in input_ids.aminmax()) if input_ids.numel() else (0, 0)
        if input_ids.dim() != 2 or lowest < 0 or highest >= self.config.vocab_size:
            raise ValueError(
                f"input_ids of shape {list(input_ids.shape)} with numbers {lowest} to {highest}: "
                f"give [batch, tokens], each from 0 to {self.config.vocab_size - 1}"
            )
        states = nn.functional.embedding(input_ids, self.embedding(dtype))
        tables = RotaryEmbedding(self.config)(0, input_ids.shape[1], input_ids.device)
        for number in range(layer):
            allowance.check()
            states, _ = self.block(number, dtype)(states, tables, attention_mask=attention_mask)
        return states

    def current_report(self) -> Report:
        """The report, with what reading the numbers has shown since."""
        if not self._strange:
            return self.report
        count, names = len(self._strange), ", ".join(list(self._strange)[:3])
        weights = "1 weight holds" if count == 1 else f"{count} weights hold"
        note = f"{weights} NaN or infinity ({names}); what depends on them will too."
        return replace(self.report, notes=(*self.report.notes, note))

    def _read(self, name: str, dtype: torch.dtype) -> Tensor:
        part = self._parts[name]
        weight = self._weights.read(part.stored).to(dtype)
        if part.take is not None:  # a part of a stored weight: copied, or it would keep the rest alive
            weight = part.take(weight).clone(memory_format=torch.contiguous_format)
        if not weight.isfinite().all():
            self._strange[name] = None
        return weight

    def _check_layer(self, layer: int, last: int) -> None:
        if not 0 <= layer <= last:
            raise CheckpointError(f"layer {layer} was asked for; this checkpoint has layers 0 to {last}")


def _finish(module: _Module) -> _Module:
    """Give memory to what is not a weight, and leave training mode. What was built on the meta device has none."""
    for part in module.modules():
        if isinstance(part, RotaryEmbedding):
            part(0, 1)  # computes its tables, since those it has are not its own
        if isinstance(getattr(part, "aux_loss", None), Tensor):
            part.aux_loss = torch.zeros(())
    left = [name for name, tensor in (*module.named_parameters(), *module.named_buffers()) if tensor.is_meta]
    if left:
        raise RuntimeError(f"{', '.join(left)} got no numbers; the list of weights and the model disagree")
    return module.eval()
