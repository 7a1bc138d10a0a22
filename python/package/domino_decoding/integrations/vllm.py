"""The structured outputs back end `domino` of vLLM: `--structured-outputs-config.backend domino`.

vLLM has the names of its back ends in its code, so `install()` puts this one in beside them, in every process
by the entry point of this package (`vllm.general_plugins`). Settings: `integrations.options`; page:
docs/scale.md, which says what vLLM would have to change for this to need no `install()`.
"""

import dataclasses
import inspect
import logging
import threading
from concurrent.futures import Future
from typing import Any, Callable, Iterable, List, Literal, Optional, Set, get_args

import torch
from vllm.exceptions import VLLMValidationError
from vllm.v1.structured_output.backend_types import (
    StructuredOutputBackend,
    StructuredOutputGrammar,
    StructuredOutputOptions,
)

from .. import Compiled
from ..errors import BusyError, DominoError
from . import notations, rows
from .library import Library, vocabulary_of
from .options import Options
from .text import Text

NAME = "domino"
# Seconds after which a request whose grammar is not compiled is given up, unless the options say otherwise.
COMPILE_SECONDS = 60.0
# Set on what `install` has put in.
_MARK = "_domino_installed"

logger = logging.getLogger(__name__)


def _kind(request_type: StructuredOutputOptions, text: str) -> str:
    """The kind of `notations` of a request."""
    if request_type == StructuredOutputOptions.GRAMMAR:
        from vllm.v1.structured_output.utils import grammar_is_likely_lark

        return "lark" if grammar_is_likely_lark(text) else "ebnf"
    kinds = {
        StructuredOutputOptions.JSON: "json",
        StructuredOutputOptions.JSON_OBJECT: "json",
        StructuredOutputOptions.REGEX: "regex",
        StructuredOutputOptions.CHOICE: "choice",
        StructuredOutputOptions.STRUCTURAL_TAG: "structural_tag",
    }
    if request_type not in kinds:
        raise VLLMValidationError(f"domino has no structured outputs of the kind {request_type!s}")
    return kinds[request_type]


def _text(request_type: StructuredOutputOptions, grammar_spec: str) -> str:
    """The text of a request: any JSON object has none of its own."""
    any_object = request_type == StructuredOutputOptions.JSON_OBJECT
    return '{"type": "object"}' if any_object else grammar_spec


class DominoGrammar(StructuredOutputGrammar):
    """A request's text of a compiled grammar."""

    def __init__(self, compiled: Compiled, ends: Iterable[int] = ()) -> None:
        self._compiled, self._ends = compiled, ends
        self.reset()

    def accept_tokens(self, request_id: str, tokens: List[int]) -> bool:
        """Goes on by tokens; those behind end of text are ignored. False, and nothing has moved, if they
        cannot follow or no mask could be made: vLLM ends the request by that."""
        try:
            self._text.advance_all(tokens)
        except BusyError:
            raise
        except DominoError as error:
            logger.error("request %s cannot go on by the tokens %s: %s", request_id, tokens, error)
            return False
        return True

    def validate_tokens(self, tokens: List[int]) -> List[int]:
        """Those of the tokens, from the first on, that may follow. Nothing moves."""
        return tokens[: self._text.validate(tokens)]

    def rollback(self, num_tokens: int) -> None:
        """Takes tokens back, end of text included. Raises `ValueError` if there were fewer."""
        self._text.rollback(num_tokens)

    def fill_bitmask(self, bitmask: torch.Tensor, batch_index: int) -> None:
        """Writes which tokens may follow into a row."""
        self._text.fill(bitmask, batch_index)

    def is_terminated(self) -> bool:
        """Has end of text come?"""
        return self._text.is_ended

    def reset(self) -> None:
        """Goes back to the start."""
        self._text = Text(self._compiled, self._ends)


@dataclasses.dataclass
class DominoBackend(StructuredOutputBackend):
    """Compiles the grammars of requests."""

    def __post_init__(self) -> None:
        options = Options.from_environment()
        self.library = Library(vocabulary_of(self.tokenizer, self.vocab_size), options)
        self.library.prepare()
        self._lock, self._settled = threading.Lock(), False
        seconds = COMPILE_SECONDS if options.compile_seconds is None else options.compile_seconds
        # There every rank has a scheduler, and their clocks would disagree.
        ranks = self.vllm_config.parallel_config.distributed_executor_backend == "external_launcher"
        self._seconds = None if ranks else seconds

    def compile_grammar(
        self,
        request_type: StructuredOutputOptions,
        grammar_spec: str,
        stop_token_ids: Optional[Set[int]] = None,
    ) -> StructuredOutputGrammar:
        """The text of a request, which ends by one of its stop tokens. Raises `VLLMValidationError`."""
        kind, text = _kind(request_type, grammar_spec), _text(request_type, grammar_spec)
        stops = sorted(stop_token_ids or ())
        try:
            compiled = self._library(stops).compile(kind, text, seconds=self._seconds)
        except DominoError as error:
            raise VLLMValidationError(str(error)) from error
        return DominoGrammar(compiled, stops)

    def _library(self, stops: List[int]) -> Library:
        """The library, made anew for the tokens that end the first request. Those of nearly all are the same,
        and known to vLLM from the model's settings only; a text with others costs a little more."""
        with self._lock:
            vocabulary = self.library.vocabulary
            if stops and not self._settled:
                self._settled = True
                inside = [stop for stop in stops if 0 <= stop < vocabulary.size]
                ends = [stop for stop in inside if vocabulary.bytes(stop) is None]
                if ends and ends != sorted(vocabulary.end_of_text):
                    self.library = Library(vocabulary.with_end_of_text(ends), self.library.options)
                    self.library.prepare()
            return self.library

    def allocate_token_bitmask(self, max_num_seqs: int) -> torch.Tensor:
        """Rows that allow everything."""
        return rows.allocate(self.vocab_size, max_num_seqs)

    def destroy(self) -> None:
        """Forgets all grammars; what is being compiled ends within its budgets."""
        self.library.close()


def validate(params: Any, tokenizer: Any) -> None:
    """Checks what a request asks for before an engine gets it. Raises `VLLMValidationError`."""
    from vllm.v1.structured_output.request import get_structured_output_key

    if params.json_object is False:
        raise VLLMValidationError("structured_outputs.json_object must be True if set")
    places = (getattr(tokenizer, name, None) for name in ("backend_tokenizer", "_tokenizer"))
    if not any(callable(getattr(fast, "to_str", None)) for fast in (*places, tokenizer)):
        kind = type(tokenizer).__name__
        raise VLLMValidationError(
            f"domino needs a fast tokenizer, and {kind} is none: use tokenizer_mode 'hf' or another back end"
        )
    try:
        request_type, text = get_structured_output_key(params)
        kind = _kind(request_type, text)
        notations.read(kind, _text(request_type, text), Options.from_environment().schema)
    except (DominoError, TypeError, ValueError, RecursionError) as error:
        raise VLLMValidationError(f"domino cannot use this: {error}") from error


def _with_choice(config: type) -> None:
    """Adds the name to those that the configuration takes."""
    from pydantic.dataclasses import rebuild_dataclass

    field = config.__dataclass_fields__["backend"]
    known = get_args(field.type)
    if not known or not all(isinstance(name, str) for name in known):
        raise DominoError("StructuredOutputsConfig.backend of this vLLM is no list of names")
    if NAME in known:
        return
    before = field.type, config.__annotations__
    try:
        field.type = Literal[(*known, NAME)]
        config.__annotations__ = {**config.__annotations__, "backend": field.type}
        rebuild_dataclass(config, force=True)
    except Exception:
        field.type, config.__annotations__ = before
        raise


def _with_validation(original: Callable[..., None]) -> Callable[..., None]:
    """The check of requests, with ours where the back end is this one."""

    def checked(self: Any, model_config: Any, structured_outputs_config: Any, tokenizer: Any) -> None:
        params = self.structured_outputs
        if structured_outputs_config is None or params is None or structured_outputs_config.backend != NAME:
            return original(self, model_config, structured_outputs_config, tokenizer)
        if params._backend not in (None, NAME):
            raise VLLMValidationError(
                f"the request asks for the back end '{params._backend}', and vLLM was started with '{NAME}'"
            )
        if model_config.is_diffusion:
            raise VLLMValidationError("structured outputs need a model that writes from left to right")
        if tokenizer is None:
            raise VLLMValidationError("structured outputs need a tokenizer: leave out 'skip_tokenizer_init'")
        validate(params, tokenizer)
        params._backend = NAME
        return None

    return checked


def _with_backend(original: Callable[..., None]) -> Callable[..., None]:
    """The start of a request's grammar, which makes the back end at the first one."""

    def started(self: Any, request: Any) -> None:
        asked = request.structured_output_request
        params = None if asked is None else request.sampling_params.structured_outputs
        if params is not None and params._backend == NAME and self.backend is None:
            try:
                size = self.vllm_config.model_config.get_vocab_size()
                made = DominoBackend(self.vllm_config, tokenizer=self.tokenizer, vocab_size=size)
            except DominoError as error:
                # Of this request alone: the engine goes on.
                failed: "Future[StructuredOutputGrammar]" = Future()
                failed.set_exception(VLLMValidationError(f"domino cannot start: {error}"))
                asked.grammar = failed
                return
            self.backend, self.backend_name = made, NAME
        original(self, request)

    return started


def _replaced(owner: type, name: str, parameters: List[str], wrap: Callable[..., Any]) -> None:
    """Puts a function around a method, once, if that has these parameters."""
    original = getattr(owner, name, None)
    if original is None or list(inspect.signature(original).parameters) != parameters:
        hint = "read docs/scale.md for the versions that were read"
        raise DominoError(f"{owner.__name__}.{name} of this vLLM is another one\nhint: {hint}", hint=hint)
    if not hasattr(original, _MARK):
        wrapped = wrap(original)
        setattr(wrapped, _MARK, True)
        wrapped.__doc__, wrapped.__name__ = original.__doc__, name
        setattr(owner, name, wrapped)


def install() -> None:
    """Makes the back end known to this process. Called again it changes nothing; what other back ends do
    stays as it is. Raises `DominoError`, and changes nothing, where vLLM is not as this was written for."""
    from vllm.config.structured_outputs import StructuredOutputsConfig
    from vllm.sampling_params import SamplingParams
    from vllm.v1.structured_output import StructuredOutputManager

    check = ["self", "model_config", "structured_outputs_config", "tokenizer"]
    steps = [
        (SamplingParams, "_validate_structured_outputs", check, _with_validation),
        (StructuredOutputManager, "grammar_init", ["self", "request"], _with_backend),
    ]
    before = [(owner, name, owner.__dict__.get(name)) for owner, name, _, _ in steps]
    try:
        for step in steps:
            _replaced(*step)
        _with_choice(StructuredOutputsConfig)
    except Exception:
        for owner, name, method in before:
            if method is not None:
                setattr(owner, name, method)
        raise


def plugin() -> None:
    """The entry point: `install` and a look at the options, or a warning. An exception here would end every
    vLLM of the environment, also those that use another back end."""
    try:
        install()
        Options.from_environment()
    except Exception as error:
        logger.warning("the structured outputs back end domino cannot be used: %s", error)
