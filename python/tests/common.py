"""What the tests share: small vocabularies, and the exact masks of `shared/peers`."""

import json
import os
import pathlib

from domino_decoding import Compiler, Vocabulary

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = ROOT / "models" / "domino-small"


def shared():
    """The folder of data that is no part of the repository, or None."""
    named = os.environ.get("DOMINO_SHARED")
    folder = pathlib.Path(named) if named else ROOT.parent / "shared"
    return folder if folder.is_dir() else None


def letters(*, extra=()):
    """A token for each byte, then these; the last one ends a text."""
    tokens = [bytes([byte]) for byte in range(256)] + list(extra) + [None]
    return Vocabulary.from_tokens(tokens, end_of_text=[len(tokens) - 1])


def compiler(**options):
    return Compiler(letters(), **options)


def tokens_of(row, size):
    """The tokens of a row of 32-bit words."""
    return [token for token in range(size) if int(row[token // 32]) >> (token % 32) & 1]


def fnv(data):
    """FNV-1a with 64 bits, as `shared/peers/FORMAT.md` has it."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def peers(grammar, vocabulary):
    """Traces and expected masks of a grammar, each a list of texts."""
    folder = shared() / "peers"
    traces = json.loads((folder / "traces" / f"{grammar}.{vocabulary}.traces.json").read_text())
    expected = json.loads((folder / "expected" / f"{grammar}.{vocabulary}.json").read_text())
    return traces, expected
