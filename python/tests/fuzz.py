"""Random calls with random wrong things at the border: every call returns or raises an `Exception`, never
more.

    python fuzz.py [SECONDS [SEED]]

A crash ends the program by a signal; an exception that is none of those below, and `InternalError`, end it
with 1."""

import faulthandler
import pickle
import random
import sys
import threading
import time

import common
from domino_decoding import (
    CancelHandle,
    Compiled,
    Compiler,
    Constraint,
    Drafter,
    Grammar,
    Mask,
    Prior,
    Vocabulary,
    errors,
    fill_batch,
)

try:
    import numpy
except ImportError:
    numpy = None

EXPECTED = (
    errors.DominoError,
    TypeError,
    ValueError,
    OverflowError,
    AttributeError,
    OSError,
    MemoryError,
    RecursionError,
    IndexError,
    KeyError,
)
TEXTS = [
    "",
    "a",
    "ab*",
    'root ::= "a" b',
    'root ::= "a"*',
    '{"type": "array"}',
    "{",
    "[]",
    "\ud800",
    "\0",
    "(" * 300,
    'start: "a" | "b" start',
    '{"const": 1e999}',
    "[a-z]{3,70}",
    '{"enum": []}',
    '{"$ref": "#"}',
    "\u20ac" * 9,
]
GRAMMARS = ["[ab]*c?", "(a|b|ab){2,9}", "(?P<x>a+)b|c"]


def arrays(chance):
    """Masks that are right, nearly right, and none."""
    size = chance.choice([0, 1, 8, 9, 10, 33])
    yield lambda: Mask(chance.choice([0, 1, 256, 257, 300, 2000]), chance.choice([0, 1, 2, 5]))
    if numpy:
        kind = chance.choice(["<i4", "<u4", ">i4", "<i8", "<f4", "<i2", "O", "?", "V4", "U1"])
        shape = chance.choice([(size,), (2, size), (1, 2, size), ()])
        yield lambda: numpy.zeros(shape, kind)
        yield lambda: numpy.zeros((6, 40), numpy.int32)[
            :: chance.choice([1, 2, -1]), :: chance.choice([1, 3, -1])
        ]
        yield lambda: numpy.zeros(4 * size + 1, numpy.uint8)[1:].view(numpy.int32)
        yield lambda: numpy.zeros((40, 3), numpy.int32).T
    yield lambda: bytearray(size)


class Fuzz:
    def __init__(self, seed):
        self.chance = random.Random(seed)
        vocabulary = common.letters(extra=[b"ab", b"aab", b"bc"])
        compiler = Compiler(vocabulary)
        self.compiled = [compiler.compile(Grammar.regex(pattern)) for pattern in GRAMMARS]
        self.things = [vocabulary, compiler, CancelHandle(), *self.compiled]
        self.things += [compiled.constraint() for compiled in self.compiled for _ in range(2)]
        self.things += [
            Drafter(self.compiled[0]),
            Prior(self.compiled[1]),
            Grammar.regex("a"),
            Mask(vocabulary, 3),
        ]
        self.calls, self.raised = 0, {}

    def value(self, depth=0):
        chance = self.chance
        kinds = [
            lambda: chance.choice(
                [None, True, 0, 1, -1, 97, 98, 256, 259, 1 << 31, 1 << 63, -(1 << 63), 1 << 70]
            ),
            lambda: chance.randrange(262),
            lambda: chance.choice(TEXTS),
            lambda: chance.choice(TEXTS[:4]).encode(),
            lambda: chance.choice([0.0, -1.5, float("nan"), float("inf")]),
            lambda: chance.choice(self.things),
            lambda: chance.choice(list(arrays(chance)))(),
            lambda: object(),
            lambda: chance.choice([list, Mask]),
        ]
        if depth < 2:
            kinds.append(lambda: [self.value(depth + 1) for _ in range(chance.randrange(4))])
            kinds.append(
                lambda: {chance.choice(TEXTS): self.value(depth + 1) for _ in range(chance.randrange(3))}
            )
            kinds.append(lambda: [chance.randrange(262) for _ in range(chance.randrange(5))])
        return chance.choice(kinds)()

    def call(self):
        """One call of one thing with what it may not expect."""
        chance, thing = self.chance, self.chance.choice(self.things)
        roll = chance.random()
        if roll < 0.1:
            constraints = [one for one in self.things if isinstance(one, Constraint)]
            given = chance.sample(constraints, chance.randrange(len(constraints)))
            drafts = chance.choice([None, [[97]] * len(given), self.value()])
            return fill_batch(
                given,
                chance.choice(list(arrays(chance)))(),
                chance.choice([None, self.value()]),
                drafts=drafts,
            )
        if roll < 0.15:
            maker = chance.choice(
                [
                    Grammar.gbnf,
                    Grammar.regex,
                    Grammar.lark,
                    Grammar.ebnf,
                    Grammar.json_schema,
                    Grammar.structural_tag,
                    Grammar.tools,
                    Compiled.from_bytes,
                    Vocabulary.from_json,
                    Vocabulary.from_tokens,
                    Vocabulary.from_bytes,
                    Compiler,
                    Mask,
                    Drafter,
                    Prior,
                    Vocabulary.from_tokenizer,
                    Vocabulary.from_tiktoken,
                    Grammar.from_pydantic,
                ]
            )
            arguments = [self.value() for _ in range(chance.choice([0, 1, 1, 1, 2]))]
            made = maker(*arguments, **({"end_of_text": self.value()} if "from_t" in maker.__name__ else {}))
            return made
        if roll < 0.17:
            return pickle.loads(pickle.dumps(thing))
        if roll < 0.3 and isinstance(thing, Constraint):
            thing.advance(chance.choice([97, 98, 99, 256, 257, 258, 259]))
            return thing.fill(Mask(common.letters()))
        names = [
            name
            for name in dir(thing)
            if not name.startswith("__") and name not in ("save", "load", "cancel")
        ]
        names = [name for name in names if name not in ("from_file", "from_gguf", "handle")]
        found = getattr(thing, chance.choice(names))
        if callable(found):
            options = {"tokens": self.value()} if chance.random() < 0.05 else {}
            return found(*[self.value() for _ in range(chance.choice([0, 0, 1, 1, 1, 2, 3]))], **options)
        return found

    def run(self, ends):
        while time.monotonic() < ends:
            self.calls += 1
            try:
                made = self.call()
                if isinstance(made, (Constraint, Mask)) and self.chance.random() < 0.1:
                    places = [place for place, thing in enumerate(self.things) if type(thing) is type(made)]
                    self.things[self.chance.choice(places)] = made
            except errors.InternalError:
                raise
            except EXPECTED as error:
                name = type(error).__name__
                self.raised[name] = self.raised.get(name, 0) + 1


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 10
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 32)
    print(f"seed {seed}")
    faulthandler.enable()
    ends, failed = time.monotonic() + seconds, []
    fuzz = Fuzz(seed)
    # Four threads with the same things.
    others = []
    for number in range(3):
        other = Fuzz(seed + 1 + number)
        other.things = fuzz.things
        others.append(other)

    def work(one):
        try:
            one.run(ends)
        except BaseException as error:
            failed.append(error)
            raise

    threads = [threading.Thread(target=work, args=(one,)) for one in [fuzz, *others]]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    raised = {}
    for one in [fuzz, *others]:
        for name, count in one.raised.items():
            raised[name] = raised.get(name, 0) + count
    print(f"{sum(one.calls for one in [fuzz, *others])} calls; raised {dict(sorted(raised.items()))}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
