"""Rows of masks of 32-bit words: which tokens they have. For tensors of torch and arrays of numpy."""

from typing import Any, Iterable


def only(mask: Any, row: int, tokens: Iterable[int]) -> None:
    """Allows these tokens and no others in a row."""
    words = {}
    for token in tokens:
        words[token // 32] = words.get(token // 32, 0) | 1 << token % 32
    mask[row, :] = 0
    for word, bits in words.items():
        mask[row, word] = bits - (1 << 32) if bits >> 31 else bits


def change(mask: Any, row: int, on: Iterable[int], off: Iterable[int]) -> None:
    """Allows some tokens in a row, and forbids others."""
    array = mask.numpy() if hasattr(mask, "numpy") else mask
    for tokens, allowed in ((on, True), (off, False)):
        for token in tokens:
            bits, bit = int(array[row, token // 32]) & 0xFFFFFFFF, 1 << token % 32
            bits = bits | bit if allowed else bits & ~bit
            array[row, token // 32] = bits - (1 << 32) if bits >> 31 else bits


def allocate(vocab_size: int, rows: int, *, pinned: bool = False) -> Any:
    """A tensor of rows that allow everything; `pinned`: in memory that a card reads by itself."""
    import torch

    words = (vocab_size + 31) // 32
    return torch.full((rows, words), -1, dtype=torch.int32, pin_memory=pinned)


def apply(logits: Any, mask: Any) -> None:
    """Makes the logits of tokens that are not in the mask minus infinity, in place, on any device. Costs a
    byte and a half for each logit for a moment."""
    import torch

    shifts = torch.arange(32, dtype=torch.int32, device=mask.device)
    allowed = ((mask.unsqueeze(-1) >> shifts) & 1).bool().flatten(-2)
    width = min(logits.shape[-1], allowed.shape[-1])
    logits[..., :width].masked_fill_(~allowed[..., :width].view(logits[..., :width].shape), float("-inf"))
