"""The text of a request. A server fills masks for many requests at once, where an exception would end them
all: so one that cannot be filled ends its own request alone, at the next token."""

import itertools
from typing import Any, Iterable, List, Optional, Sequence

from .. import Compiled, fill_batch
from ..errors import BusyError, DominoError, MaskError, RefusedError, RollbackError
from . import rows

# Forced bytes that are looked for at a time.
MOST_FORCED = 512


def again(error: DominoError) -> DominoError:
    """The same exception, to be raised once more."""
    details = {key: value for key, value in vars(error).items() if not key.startswith("_")}
    return type(error)(str(error), **details)


class Text:
    """A text of a compiled grammar, which ends by one of `ends` where they are others than its vocabulary's:
    then these tokens have no text, and may come where the grammar may end.

    `fill` raises nothing that a grammar or a budget is to blame for. It leaves only end of text, which no
    other request notices, and then `advance` raises what was wrong, until `rollback` leads back before it."""

    def __init__(self, compiled: Compiled, ends: Iterable[int] = ()) -> None:
        self.compiled = compiled
        self.constraint = compiled.constraint()
        vocabulary = compiled.vocabulary
        own = vocabulary.end_of_text
        self.ends = sorted({end for end in ends if 0 <= end < vocabulary.size}) or own
        # Tokens whose meaning is another one than in the vocabulary, and what stands for an end there.
        self._others = frozenset() if set(self.ends) == set(own) else frozenset((*self.ends, *own))
        self._end = own[0]
        self.failure: Optional[DominoError] = None
        self._failed_at = 0

    @property
    def is_ended(self) -> bool:
        """Has end of text come?"""
        return self.constraint.is_ended()

    @property
    def is_open(self) -> bool:
        """Is there a mask to be filled?"""
        return self.failure is None and not self.constraint.is_ended()

    def fill(self, mask: Any, row: int) -> None:
        """Writes which tokens may follow: end of text alone where it has come, or no mask can be made."""
        if self.is_open:
            try:
                self.constraint.fill(mask, row)
                self.change_ends(mask, row)
                return
            except (MaskError, BusyError):
                raise
            except DominoError as error:
                self.failure, self._failed_at = again(error), self.constraint.steps
        rows.only(mask, row, self.ends)

    def change_ends(self, mask: Any, row: int) -> None:
        """Makes a row that the vocabulary's ends are in one that has those of the text."""
        if self._others:
            on = self.ends if self.constraint.is_complete() else ()
            rows.change(mask, row, on, self._others.difference(on))

    def advance(self, token: int) -> None:
        """Goes on by a token. Raises a `DominoError`; then nothing has moved."""
        if self.failure is not None:
            raise again(self.failure)
        self.constraint.advance(self._meant(token))

    def _meant(self, token: int) -> int:
        """The token in the vocabulary, where one that ends the text is another one there."""
        if token not in self._others:
            return token
        if token in self.ends:
            return self._end
        raise RefusedError(f"token {token} cannot follow: it ends no text of this request", token=token)

    def advance_all(self, tokens: Sequence[int]) -> None:
        """Goes on by tokens up to end of text, or by none of them."""
        before = self.constraint.steps
        try:
            for token in tokens:
                if self.constraint.is_ended():
                    return
                self.advance(token)
        except Exception:
            self.constraint.rollback(self.constraint.steps - before)
            raise

    def validate(self, tokens: Sequence[int]) -> int:
        """How many of the tokens, from the first on, may follow. None where a budget is used up."""
        if not self.is_open:
            return 0
        if self._others:
            kept = itertools.takewhile(lambda one: one in self.ends or one not in self._others, tokens)
            tokens = [self._meant(token) for token in kept]
        try:
            return self.constraint.validate(tokens)
        except BusyError:
            raise
        except DominoError:
            return 0

    def rollback(self, steps: int) -> None:
        """Takes steps back, none of a number below one. Raises `RollbackError` if there were fewer."""
        if steps <= 0:
            return
        if steps > self.constraint.steps:
            taken = self.constraint.steps
            raise RollbackError(f"{steps} steps were to be undone, but {taken} were taken", steps=steps)
        self.constraint.rollback(steps)
        if self.failure is not None and self.constraint.steps < self._failed_at:
            self.failure = None

    def forced_text(self, most: int = MOST_FORCED) -> str:
        """The text that must come next, however it is cut into tokens. Up to `most` bytes are looked for."""
        if not self.is_open:
            return ""
        found, ahead = bytearray(), self.constraint.fork()
        try:
            while len(found) < most and not ahead.is_complete():
                following = ahead.next_bytes()
                # No text has bytes from 0xF8 on: a special token is spelled by them.
                if len(following) != 1 or following[0] >= 0xF8 or ahead.advance_text(following) != 1:
                    break
                found += following
        except DominoError:
            pass  # What was found until then is forced all the same.
        return _whole(bytes(found))


def _whole(data: bytes) -> str:
    """The text of bytes up to the last whole character."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        return data[: error.start].decode()


def fill_all(texts: List[Text], mask: Any, places: List[int]) -> None:
    """Fills the rows of many texts, on all cores."""
    ready = [(text, row) for text, row in zip(texts, places) if text.is_open]
    try:
        if len(ready) > 1:
            fill_batch([text.constraint for text, _ in ready], mask, [row for _, row in ready])
            for text, row in ready:
                text.change_ends(mask, row)
            ready = []
    except (MaskError, BusyError):
        raise
    except DominoError:
        pass  # One of them has failed; each by itself shows which.
    for text, row in ready:
        text.fill(mask, row)
    for text, row in zip(texts, places):
        if not text.is_open:
            text.fill(mask, row)
