"""A walk of a server's scheduler: many requests over a few grammars, which begin and end in any order, with
masks filled together, drafts that are refused in part, and rows held to those of a brute force."""

import functools
import itertools

import common
from domino_decoding import Vocabulary

# A byte each, some tokens of several, holes, and two ends of a text.
MORE = [b"ab", b"ba", b"abc", b'"a', b'a"', b"[[", b"]]", b"  "]
TOKENS = [*(bytes([byte]) for byte in range(256)), *MORE, None, None, None, b"bab", None]
ENDS = [len(TOKENS) - 1, len(TOKENS) - 3]


def vocabulary():
    """A small vocabulary with holes, and less than the logits of its model."""
    return Vocabulary.from_tokens(TOKENS, end_of_text=ENDS)


def nested(depth):
    """All of `a`, `[a]`, `[[a]]` and so on."""
    return [b"[" * many + b"a" + b"]" * many for many in range(depth + 1)]


# Grammars of few texts, which are written out here by other means: kind of `notations`, text, all texts.
LANGUAGES = [
    ("regex", "(ab|ba){1,3}c?", [
        b"".join(parts) + end
        for many in (1, 2, 3)
        for parts in itertools.product([b"ab", b"ba"], repeat=many)
        for end in (b"", b"c")
    ]),
    ("json", '{"enum": ["a", "ab", "ba", 12, null, true]}', [
        b'"a"', b'"ab"', b'"ba"', b"12", b"null", b"true"
    ]),
    ("ebnf", 'root ::= "a" | "[" one "]"\none ::= "a" | "[" two "]"\ntwo ::= "a"', nested(2)),
    ("choice", '["", "a", "(a|b)*", "  b", "\\u00e4", "bab"]', [
        b"", b"a", b"(a|b)*", b"  b", "ä".encode(), b"bab"
    ]),
    ("structural_tag", '{"type": "structural_tag", "format": {"type": "sequence", "elements": ['
     '{"type": "const_string", "value": "ab"}, {"type": "or", "elements": ['
     '{"type": "regex", "pattern": "[ab]{2}"}, {"type": "const_string", "value": "[[a]]"}]}]}}', [
        *(b"ab" + bytes(two) for two in itertools.product(b"ab", repeat=2)), b"ab[[a]]"
    ]),
]


class Oracle:
    """What may follow a text of a language that is written out."""

    def __init__(self, texts, tokens=TOKENS, ends=ENDS):
        self.texts, self.tokens, self.ends, self.known = texts, tokens, ends, {}

    def allowed(self, prefix):
        """The tokens that may follow, in order."""
        if prefix not in self.known:
            found = [
                token
                for token, piece in enumerate(self.tokens)
                if piece and any(text.startswith(prefix + piece) for text in self.texts)
            ]
            self.known[prefix] = sorted(found + (list(self.ends) if prefix in self.texts else []))
        return list(self.known[prefix])


@functools.cache
def oracle_of(language, ends):
    """The oracle of a language, for texts that end by these tokens."""
    return Oracle(LANGUAGES[language][2], TOKENS, ends)


class Request:
    """A text of a language, in a host."""

    def __init__(self, language, grammar, ends=ENDS):
        self.oracle, self.grammar = oracle_of(language, tuple(ends)), grammar
        self.prefix, self.tokens = b"", []

    def allowed(self):
        """What may follow, by brute force."""
        return self.oracle.allowed(self.prefix)

    def take(self, token):
        """Goes on by a token."""
        self.tokens.append(token)
        self.prefix = self.text()

    def drop(self, many):
        """Takes tokens back."""
        del self.tokens[len(self.tokens) - many :]
        self.prefix = self.text()

    def text(self):
        """The text of the tokens."""
        return b"".join(TOKENS[token] or b"" for token in self.tokens if token < len(TOKENS))

    @property
    def ended(self):
        """Has a token come that ends it?"""
        return bool(self.tokens) and self.tokens[-1] in self.oracle.ends


def tokens_of(row, size):
    """The tokens of a row."""
    return common.tokens_of(row, size)
