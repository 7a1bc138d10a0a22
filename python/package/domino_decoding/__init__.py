"""Makes a language model write only text of a given grammar, exactly and fast.

>>> from domino_decoding import Compiler, Grammar, Mask, Vocabulary
>>> vocabulary = Vocabulary.from_tokens([b"yes", b"no", b"maybe", None], end_of_text=[3])
>>> compiled = Compiler(vocabulary).compile(Grammar.regex("yes|no"))
>>> constraint, mask = compiled.constraint(), Mask(vocabulary)
>>> constraint.fill(mask)
>>> mask.tokens()
[0, 1]
>>> constraint.advance(1)
>>> constraint.is_complete()
True

A row of a mask is `vocabulary.words` words of 32 bits; token `t` is bit `t % 32` of word `t // 32`.
"""

import os as _os

from . import errors
from ._native import (
    CancelHandle,
    Compiled,
    Compiler,
    Constraint,
    Drafter,
    Grammar,
    Mask,
    Prior,
    RawMask,
    Vocabulary,
    __version__,
    _after_fork,
    fill_batch,
    limit_names,
)
from .errors import DominoError
from .sources import compile as _compile
from .sources import from_pretrained as _from_pretrained
from .sources import from_pydantic as _from_pydantic
from .sources import from_tiktoken as _from_tiktoken
from .sources import from_tokenizer as _from_tokenizer
from .sources import from_type as _from_type
from .sources import json_schema as _json_schema

Compiler.compile = _compile  # type: ignore[method-assign,assignment]
Grammar.json_schema = staticmethod(_json_schema)  # type: ignore[method-assign,assignment]
Grammar.from_pydantic = staticmethod(_from_pydantic)  # type: ignore[method-assign,assignment]
Grammar.from_type = staticmethod(_from_type)  # type: ignore[method-assign,assignment]
Vocabulary.from_pretrained = staticmethod(_from_pretrained)  # type: ignore[method-assign,assignment]
Vocabulary.from_tokenizer = staticmethod(_from_tokenizer)  # type: ignore[method-assign,assignment]
Vocabulary.from_tiktoken = staticmethod(_from_tiktoken)  # type: ignore[method-assign,assignment]
Vocabulary.from_gguf = staticmethod(Vocabulary.from_file)  # type: ignore[method-assign,assignment]


def generate(model, tokenizer, prompt, kind, /, **options):
    """Writes a value of a type with a model of transformers: see `domino_decoding.transformers.generate`."""
    from .transformers import generate

    return generate(model, tokenizer, prompt, kind, **options)


# The threads of this package do not come along into a fork, which then makes some of its own.
if hasattr(_os, "register_at_fork"):
    _os.register_at_fork(after_in_child=_after_fork)

__all__ = [
    "CancelHandle",
    "Compiled",
    "Compiler",
    "Constraint",
    "DominoError",
    "Drafter",
    "Grammar",
    "Mask",
    "Prior",
    "RawMask",
    "Vocabulary",
    "__version__",
    "errors",
    "fill_batch",
    "generate",
    "limit_names",
]
