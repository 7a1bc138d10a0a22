"""Vocabularies and grammars of other packages' objects, none of which is needed to import this one."""

import base64
import os

from . import _native
from .errors import GrammarError, VocabularyError


def from_tokenizer(tokenizer, /, *, end_of_text=None):
    """The vocabulary of a tokenizer of `transformers` or of `tokenizers`.

    `end_of_text`: ids in place of the tokenizer's own `eos_token_id`, or those found by name.
    """
    if isinstance(tokenizer, _native.Vocabulary):
        return tokenizer if end_of_text is None else tokenizer.with_end_of_text(end_of_text)
    fast = getattr(tokenizer, "backend_tokenizer", None)
    if fast is None:
        fast = getattr(tokenizer, "_tokenizer", None) or tokenizer
    if not callable(getattr(fast, "to_str", None)):
        kind = type(tokenizer).__name__
        hint = "give a fast tokenizer of transformers, one of tokenizers, or Vocabulary.from_tokens"
        raise VocabularyError(f"{kind} is no tokenizer with a tokenizer.json\nhint: {hint}", hint=hint)
    if end_of_text is None:
        own = getattr(tokenizer, "eos_token_id", None)
        if own is not None:
            end_of_text = list(own) if isinstance(own, (list, tuple)) else [own]
    return _native.Vocabulary.from_json(fast.to_str(), end_of_text=end_of_text)


def from_pretrained(name, /, *, end_of_text=None, **options):
    """The vocabulary of a model: of its folder or GGUF file, or by its name on the Hugging Face hub, where
    transformers or tokenizers finds it. `options` are theirs, such as `revision`."""
    if os.path.exists(name):
        return _native.Vocabulary.from_file(name, end_of_text=end_of_text)
    try:
        from transformers import AutoTokenizer as kind
    except ImportError:
        try:
            from tokenizers import Tokenizer as kind
        except ImportError:
            hint = "pip install transformers or tokenizers, or give the path of a folder or a file"
            raise VocabularyError(f"there is no file {name}\nhint: {hint}", hint=hint) from None
    try:
        tokenizer = kind.from_pretrained(name, **options)
    except Exception as error:  # of several kinds, with no class in common
        first = str(error).split("\n")[0]
        raise VocabularyError(f"no tokenizer of {name}: {first}") from error
    return from_tokenizer(tokenizer, end_of_text=end_of_text)


def from_tiktoken(ranks, /, *, end_of_text=None, special_tokens=None):
    """The vocabulary of `tiktoken`: an `Encoding`, a `dict` of bytes and ranks, or a file of such ranks (two
    columns, base64 and number).

    `special_tokens`: ids by name. `end_of_text`: ids; without it, the special token `<|endoftext|>` or its
    like."""
    if hasattr(ranks, "_mergeable_ranks"):
        special_tokens = special_tokens or dict(getattr(ranks, "_special_tokens", {}))
        ranks = ranks._mergeable_ranks
    elif isinstance(ranks, (str, os.PathLike)):
        ranks = _ranks_of_file(ranks)
    if not isinstance(ranks, dict):
        kind = type(ranks).__name__
        raise VocabularyError(f"{kind} is neither an Encoding, nor a dict, nor a file of ranks")
    special = {number: name for name, number in (special_tokens or {}).items()}
    if end_of_text is None:
        names = ("<|endoftext|>", "<|end_of_text|>", "<|eot_id|>", "</s>", "<|im_end|>")
        end_of_text = [number for number, name in special.items() if name in names]
    tokens = {}
    for piece, number in ranks.items():
        if number in tokens:
            raise VocabularyError(f"id {number} is given to two different tokens")
        tokens[number] = piece
    return _native.Vocabulary.from_tokens(tokens, end_of_text=end_of_text, special=special)


def _ranks_of_file(path):
    ranks = {}
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                piece, rank = line.split()
                ranks[base64.b64decode(piece, validate=True)] = int(rank)
            except ValueError:
                message = f"{os.fspath(path)}, line {number}: not a token in base64 and a rank"
                raise VocabularyError(message) from None
    return ranks


_json_schema = _native.Grammar.json_schema
_compile = _native.Compiler.compile


def json_schema(schema, /, **options):
    """Reads a JSON Schema: a text, an object that `json.dumps` writes, or a type that pydantic knows (a
    model, a dataclass, `list[int]`). Keywords: `draft`, `format`, `whitespace`, `order`, `duplicate_keys`,
    `escapes`, `numbers`, `closed`, `max_depth`, `lenient`, and `documents`, a `dict` of those that references
    lead to."""
    if isinstance(schema, (str, bytes, bool, dict)):
        return _json_schema(schema, **options)
    return from_pydantic(schema, **options)


def compile(compiler, grammar, /, *, cancel=None):
    """Compiles a grammar, or what `Grammar.json_schema` reads but for texts: a `dict` with a schema, or a
    type. Another thread can end it by the handle `cancel`."""
    if isinstance(grammar, (str, bytes)):
        raise TypeError("a text may be of any notation: say Grammar.json_schema(text), Grammar.regex(text)")
    if not isinstance(grammar, _native.Grammar):
        grammar = json_schema(grammar, cancel=cancel)
    return _compile(compiler, grammar, cancel=cancel)


def from_pydantic(model, /, **options):
    """The grammar of the JSON of a pydantic model, or of any type that pydantic knows; options as those of
    `Grammar.json_schema`.

    Objects have the fields of their types and no other keys, unless a type says `extra="allow"`, or
    `closed=False` is given."""
    if isinstance(model, (str, bytes)):
        raise GrammarError("a type must be given, not its name: pydantic would evaluate that")
    try:
        from pydantic import TypeAdapter
    except ImportError:
        hint = "pip install pydantic, or give Grammar.json_schema a schema"
        raise GrammarError(f"{model!r} needs pydantic\nhint: {hint}", hint=hint) from None
    try:
        schema = TypeAdapter(model).json_schema()
    except Exception as error:  # of several kinds, with no class in common
        first = str(error).split("\n")[0]
        raise GrammarError(f"pydantic makes no JSON Schema of {model!r}: {first}") from error
    if options.get("closed") is None:
        options["closed"] = True
    return _json_schema(schema, **options)


def from_type(kind, /, **options):
    """The grammar of the JSON of a type that pydantic knows: dataclasses, TypedDict, Literal, Enum, list,
    dict, Optional and the like. Needs pydantic. No other keys, as in `from_pydantic`."""
    return from_pydantic(kind, **options)
