"""What requests of servers ask for, as grammars: a kind, and a text in its notation."""

import json
from typing import Any, Dict, List, Mapping, Optional

from .. import Grammar
from ..errors import GrammarError

KINDS = ("json", "regex", "ebnf", "lark", "choice", "structural_tag")
# Formats of structural tags whose schema servers may leave out.
_WITH_SCHEMA = ("json_schema", "qwen_xml_parameter")


def read(kind: str, text: str, schema: Optional[Mapping[str, Any]] = None) -> Grammar:
    """Reads a text of a kind; `schema` has keywords of `Grammar.json_schema`. Raises `GrammarError`."""
    options = dict(schema or {})
    if not isinstance(text, str):
        raise GrammarError(f"a grammar of the kind `{kind}` must be a text, not {type(text).__name__}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise GrammarError(f"the text is no UTF-8: {error}") from None
    if kind == "json":
        return Grammar.json_schema(text, **options)
    if kind == "regex":
        return Grammar.regex(text)
    if kind == "ebnf":
        return Grammar.ebnf(text)
    if kind == "lark":
        return Grammar.lark(text, **options)
    if kind == "choice":
        return Grammar.regex(_one_of(text))
    if kind == "structural_tag":
        return Grammar.structural_tag(structural_tag(text), **options)
    raise GrammarError(f"there is no notation `{kind}`\nhint: one of {', '.join(KINDS)}")


def _one_of(text: str) -> str:
    """The expression of a list of texts, in JSON."""
    words = _json(text, "a choice")
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise GrammarError("a choice must be a list of strings")
    if not words:
        raise GrammarError("a choice of nothing has no text")
    if any(0xD800 <= ord(char) <= 0xDFFF for word in words for char in word):
        raise GrammarError("a choice has half of a surrogate pair, which is no text")
    return "|".join(f"(?:{_literal(word)})" for word in words)


def _literal(word: str) -> str:
    """The expression of one text. What is no letter or digit of ASCII is written by its number."""
    plain = [char if char.isascii() and char.isalnum() else f"\\x{{{ord(char):X}}}" for char in word]
    return "".join(plain)


def structural_tag(text: str) -> str:
    """A structural tag in the newer form, with what servers leave out: its type, and schemas that allow
    everything."""
    tag = _json(text, "a structural tag")
    if not isinstance(tag, dict):
        raise GrammarError("a structural tag must be an object")
    if tag.get("structures") is not None:
        return json.dumps(_format_of_structures(tag))
    untyped = "type" not in tag
    tag.setdefault("type", "structural_tag")
    return json.dumps(tag) if _fill(tag.get("format")) or untyped else text


def _format_of_structures(tag: Dict[str, Any]) -> Dict[str, Any]:
    """The older form of structural tags in the newer one, which says whether one must come."""
    structures, known = tag["structures"], ("type", "structures", "triggers", "at_least_one")
    if not isinstance(structures, list) or not all(isinstance(one, dict) for one in structures):
        raise GrammarError("`structures` must be a list of objects")
    unknown = sorted(set(tag) - set(known)) or sorted({key for one in structures for key in one} - {
        "begin", "schema", "end"
    })
    if unknown:
        raise GrammarError(f"a structural tag has no `{unknown[0]}` beside `structures`")
    tags: List[Dict[str, Any]] = []
    for one in structures:
        schema = one.get("schema")
        content = {"type": "json_schema", "json_schema": {} if schema is None else schema}
        tags.append({"type": "tag", "content": content, **{k: v for k, v in one.items() if k != "schema"}})
    found = {"type": "triggered_tags", "triggers": tag.get("triggers") or [], "tags": tags}
    if tag.get("at_least_one"):
        found["at_least_one"] = True
    return {"type": "structural_tag", "format": found}


def _fill(root: Any) -> bool:
    """Puts a schema where there is none; was there such a place?"""
    filled, rest = False, [root]
    while rest:
        node = rest.pop()
        if isinstance(node, list):
            rest.extend(node)
        elif isinstance(node, dict):
            if node.get("type") in _WITH_SCHEMA and node.get("json_schema") is None:
                node["json_schema"] = {}
                filled = True
            # Schemas are not looked into: what is called `type` there means something else.
            rest.extend(value for key, value in node.items() if key != "json_schema")
    return filled


def _json(text: str, what: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise GrammarError(f"{what} must be JSON: {error}") from None
