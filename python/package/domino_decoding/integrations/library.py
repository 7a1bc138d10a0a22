"""Compiled grammars of one tokenizer: each is compiled once, however many requests ask for it at a time."""

import os
import threading
from collections import OrderedDict
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, Dict, Iterable, Optional, Tuple, Union

from .. import Compiled, Compiler, Vocabulary
from ..errors import DominoError, GrammarError, OptionsError, TimeError, VocabularyError
from . import notations
from .options import Options
from .text import again

_ENDING = "the server is ending: no grammar is compiled any more"
_Key = Tuple[str, str]
_Made = Union[Compiled, DominoError]


def vocabulary_of(
    tokenizer: Any, size: Optional[int] = None, ends: Optional[Iterable[int]] = None
) -> Vocabulary:
    """The vocabulary of a server's tokenizer, for a model with `size` logits: a token behind these cannot be
    written, so no grammar may lead to it. `ends`: ids that end a text, in place of the tokenizer's own."""
    ends = None if ends is None else sorted({int(end) for end in ends})
    vocabulary = Vocabulary.from_tokenizer(tokenizer, end_of_text=ends or None)
    if size is None or vocabulary.size <= size:
        return vocabulary
    kept = [end for end in vocabulary.end_of_text if end < size]
    if not kept:
        raise VocabularyError(f"no token ends a text among the {size} that the model has logits for")
    tokens = [vocabulary.bytes(token) for token in range(size)]
    special = {token: name for token, name in vocabulary.special.items() if token < size}
    return Vocabulary.from_tokens(tokens, end_of_text=kept, special=special)


class Library:
    """Compiled grammars, the least recently used of which go first.

    A refusal is kept as well, since a budget of work ends a grammar the same way each time. Threads may share
    a library; it has some of its own, on which grammars are compiled, so that one that its request has given
    up is there for the next one."""

    def __init__(self, vocabulary: Vocabulary, options: Options) -> None:
        self.vocabulary, self.options = vocabulary, options
        self._known: "OrderedDict[_Key, Future[_Made]]" = OrderedDict()
        self._begin()
        # What is wrong with the options shows here, when a server starts, and not at its first request.
        try:
            notations.read("json", "{}", options.schema)
            self._compiler = Compiler(
                vocabulary,
                cache=options.cache,
                limits=dict(options.limits) or None,
                step_seconds=options.step_seconds,
            )
        except (TypeError, ValueError) as error:
            raise OptionsError(f"the options of Domino: {error}") from error

    def _begin(self) -> None:
        """Makes the threads of this process: a fork has none, and its lock may be that of a thread that has
        stayed behind. What was being compiled there is compiled anew."""
        self._process, self._lock = os.getpid(), threading.RLock()
        self._threads = ThreadPoolExecutor(max(1, (os.cpu_count() or 1) // 2), "domino compile")
        self._ahead = ThreadPoolExecutor(1, "domino ahead")
        self._known = OrderedDict((key, made) for key, made in self._known.items() if made.done())

    def prepare(self) -> None:
        """Makes what JSON Schemas have in common, on a thread of its own: for the start of a server."""
        self._ahead.submit(self._compiler.prepare)

    def compile(
        self,
        kind: str,
        text: str,
        *,
        seconds: Optional[float] = None,
        schema: Optional[Dict[str, Any]] = None,
    ) -> Compiled:
        """The grammar of a text of a kind of `notations`. `schema`: keywords of `Grammar.json_schema` beside
        those of the options, the same for all texts. Raises a `DominoError`: a `TimeError` after `seconds`,
        while the grammar is still being compiled for the next who asks."""
        if not isinstance(kind, str) or not isinstance(text, str):
            raise GrammarError(f"a grammar must be a text, not {type(text).__name__}")
        if self._process != os.getpid():
            self._begin()
        key = (kind, text)
        with self._lock:
            future = self._known.get(key)
            if future is None:
                future = self._submit(key, {**self.options.schema, **(schema or {})})
            else:
                self._known.move_to_end(key)
            while len(self._known) > self.options.grammars:
                self._known.popitem(last=False)
        try:
            made = future.result(timeout=seconds)
        except FutureTimeout:
            hint = "ask again later, since it is still being compiled, or raise `compile_seconds`"
            late = f"the grammar was not compiled within {seconds} s\nhint: {hint}"
            raise TimeError(late, hint=hint) from None
        except CancelledError:
            raise DominoError(_ENDING) from None
        if isinstance(made, DominoError):
            raise again(made)
        return made

    def clear(self) -> None:
        """Forgets all grammars. What texts use stays until they end."""
        with self._lock:
            self._known.clear()
        self._compiler.trim()

    def close(self) -> None:
        """Forgets all grammars and begins none; what is being compiled ends within its budgets."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._ahead.shutdown(wait=False, cancel_futures=True)
        self.clear()

    def __len__(self) -> int:
        return len(self._known)

    def _submit(self, key: _Key, schema: Dict[str, Any]) -> "Future[_Made]":
        """Begins to compile a grammar. The lock is held."""
        try:
            future = self._threads.submit(self._made, key, schema)
        except RuntimeError:
            raise DominoError(_ENDING) from None
        self._known[key] = future
        future.add_done_callback(lambda done: self._forget(key, done))
        return future

    def _made(self, key: _Key, schema: Dict[str, Any]) -> _Made:
        kind, text = key
        try:
            compiled = self._compiler.compile(notations.read(kind, text, schema))
        except DominoError as error:
            return again(error)
        if self.options.cache is not None:
            # Trees are what a shared folder saves others: they are kept once all are grown.
            try:
                self._ahead.submit(compiled.grow_trees)
            except RuntimeError:
                pass
        return compiled

    def _forget(self, key: _Key, done: "Future[_Made]") -> None:
        """Forgets what is no fault of the grammar, such as memory that has run out."""
        if done.cancelled() or done.exception() is not None:
            with self._lock:
                if self._known.get(key) is done:
                    del self._known[key]
