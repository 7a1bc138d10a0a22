"""The grammar back end `domino` of SGLang: `python -m sglang.launch_server --grammar-backend domino ...`.

SGLang finds it by the entry point of this package (`sglang.srt.plugins`). In a program, call `install()`
before the server's arguments are read. Settings: `integrations.options`; page: docs/scale.md.
"""

import dataclasses
import json
import logging
from collections import OrderedDict
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple, Union

import torch
from sglang.srt.constrained.base_grammar_backend import (
    BaseGrammarBackend,
    BaseGrammarObject,
    GrammarRow,
    GrammarStats,
    InvalidGrammarObject,
    register_grammar_backend,
)

from .. import Compiled
from ..errors import DominoError, OptionsError
from . import notations, rows
from .library import Library, vocabulary_of
from .options import Options
from .text import Text, fill_all

NAME = "domino"
# What SGLang calls the schema of all JSON.
_ANY_JSON = "$$ANY$$"

logger = logging.getLogger(__name__)


class _Refused(InvalidGrammarObject):
    """A grammar that Domino refuses, each time for the same reason."""


def allocate_vocab_mask(vocab_size: int, batch_size: int, device: Any) -> torch.Tensor:
    """Rows that allow everything, on the CPU whatever the device."""
    return rows.allocate(vocab_size, batch_size, pinned=torch.cuda.is_available())


def move_vocab_mask(vocab_mask: torch.Tensor, device: Any) -> torch.Tensor:
    """The mask on a device."""
    return vocab_mask.to(device, non_blocking=True)


def apply_vocab_mask(logits: torch.Tensor, vocab_mask: torch.Tensor) -> None:
    """Minus infinity for all tokens that are not in the mask: on a card by SGLang's own kernel."""
    if logits.device.type == "cuda" and getattr(torch.version, "hip", None) is None:
        from sglang.kernels.ops.grammar.bitmask_ops import apply_token_bitmask_inplace_triton

        apply_token_bitmask_inplace_triton(logits, vocab_mask)
    else:
        rows.apply(logits, vocab_mask)


class DominoGrammar(BaseGrammarObject):
    """A request's text of a compiled grammar."""

    def __init__(
        self, compiled: Compiled, key: Tuple[str, str], stats: Optional[GrammarStats] = None
    ) -> None:
        super().__init__()
        self.text, self.key, self.grammar_stats = Text(compiled), key, stats

    def accept_token(self, token: int) -> None:
        """Goes on by a token; tokens behind end of text are ignored. Raises `ValueError`, which SGLang ends
        the request by, if it cannot follow or no mask could be made."""
        if self.text.is_ended:
            return
        self.current_token = token
        try:
            self.text.advance(token)
        except DominoError as error:
            raise ValueError(f"{error} (the text ends in {self.text.constraint.text[-60:]!r})") from error

    def rollback(self, k: int) -> None:
        """Takes tokens back, end of text included. Raises `ValueError` if there were fewer."""
        self.text.rollback(k)

    def is_terminated(self) -> bool:
        """Has end of text come?"""
        return self.text.is_ended

    allocate_vocab_mask = staticmethod(allocate_vocab_mask)
    move_vocab_mask = staticmethod(move_vocab_mask)
    apply_vocab_mask = staticmethod(apply_vocab_mask)

    def fill_vocab_mask(self, vocab_mask: torch.Tensor, idx: int) -> None:
        """Writes which tokens may follow into a row."""
        self.text.fill(vocab_mask, idx)

    @staticmethod
    def fill_vocab_mask_batched(entries: List[GrammarRow], vocab_mask: torch.Tensor) -> None:
        """Writes the rows of many requests, those of this back end on all cores."""
        own = [entry for entry in entries if isinstance(entry.grammar, DominoGrammar)]
        fill_all([entry.grammar.text for entry in own], vocab_mask, [entry.row for entry in own])
        for entry in entries:
            if not isinstance(entry.grammar, DominoGrammar):
                entry.grammar.fill_vocab_mask(vocab_mask, entry.row)

    @staticmethod
    def reset_vocab_mask(vocab_mask: torch.Tensor) -> None:
        """Allows everything again."""
        vocab_mask.fill_(-1)

    def copy(self) -> "DominoGrammar":
        """Another request's text of the same grammar, at its start."""
        stats = self.grammar_stats
        if stats is not None:
            stats = dataclasses.replace(stats, is_cache_hit=True, tree_traversal_time=[])
        return DominoGrammar(self.text.compiled, self.key, stats)

    def try_jump_forward(self, tokenizer: Any) -> Optional[Tuple[List[int], str]]:
        """The text that must come next, if there is any."""
        text = self.text.forced_text()
        return ([], text) if text else None

    def jump_forward_str_state(self, helper: Tuple[List[int], str]) -> Tuple[str, int]:
        """What `try_jump_forward` found, and no state."""
        return helper[1], -1

    def jump_and_retokenize(
        self, old_output_ids: List[int], new_output_ids: List[int], next_state: int
    ) -> None:
        """Replaces the tokens so far by others. Raises `ValueError` if they are no text of the grammar; then
        the old ones stay."""
        shared = 0
        for old, new in zip(old_output_ids, new_output_ids):
            if old != new:
                break
            shared += 1
        self.text.rollback(len(old_output_ids) - shared)
        try:
            self.text.advance_all(new_output_ids[shared:])
        except DominoError as error:
            self.text.advance_all(old_output_ids[shared:])
            raise ValueError(f"tokens after a jump: {error}") from error

    def __repr__(self) -> str:
        return f"DominoGrammar(key={self.key!r}, tokens={self.text.constraint.tokens!r})"


class DominoBackend(BaseGrammarBackend):
    """Compiles the grammars of requests.

    Every rank of a server compiles for itself and has to come to the same end, so no clock decides anything
    here: compiling and masks end by budgets of work. What waits too long, SGLang gives up on all ranks at
    once (`SGLANG_GRAMMAR_MAX_POLL_ITERATIONS`)."""

    def __init__(
        self,
        tokenizer: Any,
        vocab_size: int,
        eos_token_ids: Union[None, int, Iterable[int]] = None,
        *,
        options: Optional[Options] = None,
        whitespace: Optional[str] = None,
    ) -> None:
        super().__init__()
        options = Options.from_environment() if options is None else options
        if options.compile_seconds is not None or options.step_seconds is not None:
            hint = "leave out compile_seconds and step_seconds, and set limits"
            text = "ranks of SGLang would disagree by their clocks"
            raise OptionsError(f"{text}\nhint: {hint}", hint=hint)
        ends = [eos_token_ids] if isinstance(eos_token_ids, int) else eos_token_ids
        self.library = Library(vocabulary_of(tokenizer, vocab_size, ends or None), options)
        self.library.prepare()
        self._schema = {} if whitespace is None else {"whitespace": whitespace}
        # The least recently used goes first, in an order that is the same on all ranks.
        self.cache = OrderedDict()

    allocate_vocab_mask = staticmethod(allocate_vocab_mask)
    move_vocab_mask = staticmethod(move_vocab_mask)
    apply_vocab_mask = staticmethod(apply_vocab_mask)

    def get_cached_or_future_value(
        self, key: Tuple[str, str], require_reasoning: bool
    ) -> Tuple[Any, bool]:
        """A text of a grammar that is there and True, or the future of one and False."""
        if key in self.cache:
            self.cache.move_to_end(key)
        return super().get_cached_or_future_value(key, require_reasoning)

    def set_cache(self, key: Tuple[str, str], value: BaseGrammarObject) -> None:
        """Keeps a grammar, or that it is refused; not that it was given up, which is no fault of its own."""
        if isinstance(value, InvalidGrammarObject) and not isinstance(value, _Refused):
            return
        super().set_cache(key, value)
        self.cache.move_to_end(key)
        while len(self.cache) > self.library.options.grammars:
            self.cache.popitem(last=False)

    def reset(self) -> None:
        """Forgets all grammars."""
        super().reset()
        self.library.clear()

    def dispatch_json(self, key_string: str) -> BaseGrammarObject:
        """The grammar of a JSON Schema."""
        return self._grammar("json", "{}" if key_string == _ANY_JSON else key_string)

    def dispatch_regex(self, key_string: str) -> BaseGrammarObject:
        """The grammar of a regular expression, which a whole text matches."""
        return self._grammar("regex", key_string)

    def dispatch_ebnf(self, key_string: str) -> BaseGrammarObject:
        """The grammar of a text in XGrammar's EBNF."""
        return self._grammar("ebnf", key_string)

    def dispatch_structural_tag(self, key_string: str) -> BaseGrammarObject:
        """The grammar of a structural tag, in either form."""
        return self._grammar("structural_tag", key_string)

    def compile_framed_grammar(
        self, grammar: BaseGrammarObject, frame: Callable[[Dict[str, Any]], Dict[str, Any]]
    ) -> Optional[BaseGrammarObject]:
        """The grammar inside of a structural tag; None where Domino cannot read that, as SGLang has it."""
        tag = json.dumps(frame(_content(*grammar.key)))
        try:
            compiled = self.library.compile("structural_tag", tag, schema=self._schema)
        except DominoError as error:
            logger.info("a frame of the answer that Domino does not read: %s", error)
            return None
        stats = GrammarStats(dispatch_type="structural_tag")
        return DominoGrammar(compiled, ("structural_tag", tag), stats)

    @property
    def is_support_token_filter(self) -> bool:
        """Masks can be changed by `set_token_filter`."""
        return True

    @staticmethod
    def set_token_filter(
        vocab_mask: torch.Tensor,
        token_ids: List[int],
        batch_idx: int,
        is_allowed: bool = True,
        reset_vocab_mask: bool = True,
    ) -> None:
        """Allows or forbids tokens in a row, by SGLang's own function."""
        from sglang.srt.constrained.torch_ops.token_filter_torch_ops import set_token_filter_torch

        set_token_filter_torch(vocab_mask, token_ids, batch_idx, is_allowed, reset_vocab_mask)

    def _grammar(self, kind: str, text: str) -> BaseGrammarObject:
        try:
            compiled = self.library.compile(kind, text, schema=self._schema)
        except DominoError as error:
            logger.error("refused a grammar of the kind %s: %s", kind, error)
            return _Refused(str(error))
        return DominoGrammar(compiled, (kind, text), GrammarStats(dispatch_type=kind))


def _content(kind: str, text: str) -> Dict[str, Any]:
    """A grammar as a format of structural tags."""
    if kind == "json":
        return {"type": "json_schema", "json_schema": json.loads(text)}
    if kind == "regex":
        return {"type": "regex", "pattern": text}
    if kind == "structural_tag":
        return json.loads(notations.structural_tag(text))["format"]
    return {"type": "grammar", "grammar": text}


def create(
    server_args: Any, tokenizer: Any, vocab_size: int, eos_token_ids: Any = None
) -> BaseGrammarBackend:
    """Makes the back end of a server, with a parser of reasoning around it where the server has one: SGLang
    does so for its own back ends alone."""
    from sglang.srt.runtime_context import get_serving

    serving = get_serving()
    for name in ("constrained_json_whitespace_pattern", "constrained_json_max_whitespace_cnt"):
        if getattr(serving, name, None) is not None:
            flag = "--" + name.replace("_", "-")
            hint = 'set {"schema": {"whitespace": ...}} in DOMINO_OPTIONS'
            text = f"{flag} is not there with the grammar back end domino"
            raise OptionsError(f"{text}\nhint: {hint}", hint=hint)
    compact = getattr(serving, "constrained_json_disable_any_whitespace", False)
    backend = DominoBackend(tokenizer, vocab_size, eos_token_ids, whitespace="compact" if compact else None)
    if not serving.reasoning_parser:
        return backend
    from sglang.srt.constrained.reasoner_grammar_backend import ReasonerGrammarBackend
    from sglang.srt.parser.reasoning_parser import ReasoningParser

    parser = ReasoningParser(
        model_type=serving.reasoning_parser, stream_reasoning=False, tokenizer=tokenizer
    )
    if not parser.detector.get_think_end_token_ids(tokenizer):
        return backend
    strict = serving.enable_strict_thinking
    return ReasonerGrammarBackend(backend, parser, tokenizer, enable_strict_thinking=strict)


def install() -> None:
    """Makes `--grammar-backend domino` known to this process. Called again it changes nothing."""
    from sglang.srt.server_args import GRAMMAR_BACKEND_CHOICES, add_grammar_backend_choices

    register_grammar_backend(NAME, create)
    if NAME not in GRAMMAR_BACKEND_CHOICES:
        add_grammar_backend_choices([NAME])
