"""Setting cells of one tensor by hand.

Purpose: an Edit applied to a tensor, checked against its shape and dtype, never in place.
Must not know: blocks, hooks, traces, the page.
"""

from __future__ import annotations

import torch
from torch import Tensor

from explorer.spec import Edit
from explorer.typed import shown


class CaptureError(RuntimeError):
    """The block did something that a record cannot hold, or an edit does not fit it."""


def set_cells(tensor: Tensor, edit: Edit, own: bool = False) -> Tensor:
    """A new tensor of the same layout with the edit's cells set; `tensor` itself where it is `own`, made by an earlier
    edit and seen by nobody yet. Raises CaptureError when index or values do not fit.

    The layout is kept because kernels may add up in another order for another one: an edit that sets what is there
    already has to change nothing, to the last bit.
    """
    shape = tuple(tensor.shape)
    value = _values(edit, tensor)
    if edit.index and (len(edit.index) != len(shape) or not all(map(_is_position, edit.index, shape))):
        raise CaptureError(
            f"{edit.target} has shape {list(shape)}; index {shown(list(edit.index))} is outside of it. "
            f"Give {len(shape)} numbers, each below its length, or None for every position."
        )
    if value.ndim and (edit.index or tuple(value.shape) != shape):
        raise CaptureError(
            f"{edit.target} has shape {list(shape)}; the values given have {list(value.shape)}. "
            "Give one number, or without an index values of the whole shape."
        )
    if not edit.index:
        return (tensor if own else torch.empty_like(tensor)).copy_(value)
    edited = tensor if own else tensor.clone()
    edited[tuple(slice(None) if i is None else i for i in edit.index)] = value
    return edited


def _values(edit: Edit, tensor: Tensor) -> Tensor:
    """The edit's value in the tensor's dtype, on its device. Raises CaptureError for one that the dtype cannot hold."""
    try:
        value = torch.as_tensor(edit.value, dtype=torch.float64)
    except (TypeError, ValueError, RuntimeError):
        raise CaptureError(
            f"{edit.target}: {shown(edit.value)} is neither a number nor numbers of one shape."
        ) from None
    fitted = value.to(tensor.dtype)
    if tensor.is_floating_point():
        if bool((fitted.isinf() & value.isfinite()).any()):
            dtype, largest = str(tensor.dtype).removeprefix("torch."), torch.finfo(tensor.dtype).max
            raise CaptureError(f"{edit.target} is {dtype}, which holds numbers up to {largest:g}. Set a smaller one.")
    elif bool((fitted != value).any()):
        raise CaptureError(f"{edit.target} holds whole numbers; {shown(edit.value)} is none. Set a whole number.")
    return fitted.to(tensor.device)


def check_experts(index: Tensor, experts: int) -> None:
    """Refuse numbers of experts that are not there before a kernel reads beyond its table. Raises CaptureError."""
    for bound in index.aminmax():
        if not 0 <= int(bound) < experts:
            raise CaptureError(f"expert_index: there is no expert {int(bound)}; they are 0 to {experts - 1}.")


def _is_position(entry: object, length: int) -> bool:
    return entry is None or (type(entry) is int and 0 <= entry < length)
