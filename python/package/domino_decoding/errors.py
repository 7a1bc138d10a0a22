"""Exceptions of this package. All are `DominoError`; what one is about stands in its attributes."""


class DominoError(Exception):
    """What all exceptions of this package are. `hint` says what may help, or is None."""

    hint = None

    def __init__(self, text="", /, **details):
        super().__init__(text)
        self.__dict__.update({key: value for key, value in details.items() if value is not None})


class LimitError(DominoError):
    """A budget is used up; see `Compiler(limits=...)`. A step that is called again goes on where it stopped
    where the budget is of the work of one step. `bytes` of text came before, in `rules`."""

    bytes = None
    rules = ()


class TimeError(LimitError, TimeoutError):
    """A step has taken longer than the compiler's `step_seconds`; called again it goes on where it was."""


class GrammarError(DominoError, ValueError):
    """A text is no grammar. `message` is one line; `line` and `column` count from 1, `span` is in bytes."""

    message = ""
    line = None
    column = None
    span = None


class SchemaError(GrammarError):
    """A JSON Schema cannot be used. `pointer` says where, as a JSON pointer; `keyword` about what."""

    pointer = "#"
    keyword = None


class GrammarLimitError(GrammarError, LimitError):
    """A grammar is too large for a budget."""


class SchemaLimitError(SchemaError, LimitError):
    """A JSON Schema is too large for a budget."""


class VocabularyError(DominoError, ValueError):
    """What was given is no tokenizer that can be used."""


class CompileError(DominoError, ValueError):
    """A grammar has no text at all, or asks for tokens that the vocabulary does not have."""


class CompileLimitError(CompileError, LimitError):
    """A grammar is too large to be compiled."""


class OptionsError(DominoError, ValueError):
    """A setting of a server's back end is unknown, or has a value that it cannot have."""


class StepError(DominoError):
    """A step that could not be taken; nothing has moved."""


class RefusedError(StepError, ValueError):
    """`token` cannot follow: no text of the grammar goes on like this."""

    token = None


class EndedError(StepError):
    """The text has ended; `rollback` leads back."""


class RollbackError(StepError, ValueError):
    """More steps were to be undone than are remembered: `steps`."""

    steps = 0


class CaptureError(DominoError, ValueError):
    """A grammar has no rule or group of a name."""


class StoreError(DominoError, ValueError):
    """Bytes that this package did not write, or in another version, for something else, or not to the end."""


class MaskError(DominoError, TypeError, ValueError):
    """An object that no mask can be written into: of a wrong type, size, layout or device."""


class BusyError(DominoError, RuntimeError):
    """Two threads use one object at once."""


class CancelledError(DominoError):
    """Another thread has cancelled this by a `CancelHandle`."""


class InternalError(DominoError, RuntimeError):
    """A mistake of this package."""
