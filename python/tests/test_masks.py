"""Masks through Python against an independent recogniser's, bit for bit, and all ways to ask for them."""

import json
import pickle
import random
import unittest

import common
from domino_decoding import Compiler, Grammar, Mask, Vocabulary, fill_batch

try:
    import numpy
except ImportError:
    numpy = None

GRAMMARS = ["json_basic", "gsm8k", "xml_person", "rpg_template", "c_simple"]
SCHEMAS = [
    {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["a"]},
    {"type": "array", "items": {"enum": ["x", "yy", None]}, "uniqueItems": True, "maxItems": 3},
    {"type": "object", "additionalProperties": {"type": "number", "minimum": 0}, "maxProperties": 2},
]


class ExactMasks(unittest.TestCase):
    @unittest.skipUnless(common.shared(), "LEFT OUT: exact masks, whose data is not there (DOMINO_SHARED)")
    def test_masks_are_those_of_an_independent_recogniser(self):
        path = common.shared() / "data" / "tokenizers" / "mistral-v1-32k" / "tokenizer.json"
        vocabulary = Vocabulary.from_file(path)
        compiler, seen = Compiler(vocabulary), 0
        for name in GRAMMARS:
            text = (common.shared() / "peers" / "grammars" / f"{name}.gbnf").read_text()
            compiled = compiler.compile(Grammar.gbnf(text))
            traces, expected = common.peers(name, "mistral32k")
            self.assertEqual(vocabulary.end_of_text, [traces["eos"]])
            for trace, wanted in zip(traces["traces"][:4], expected["traces"]):
                constraint, mask = compiled.constraint(), Mask(vocabulary)
                for step in range(len(trace["tokens"]) + 1):
                    constraint.fill(mask)
                    seen += self.compare(mask, traces["eos"], wanted, step)
                    if step < len(trace["tokens"]):
                        constraint.advance(trace["tokens"][step])
                self.assertEqual(constraint.text.decode(), trace["text"])
        self.assertGreater(seen, 1000)

    def compare(self, mask, eos, wanted, step):
        self.assertEqual(mask.allows(eos), bool(wanted["eos"][step]))
        row = bytearray(mask.tobytes())
        row[eos >> 3] &= ~(1 << (eos & 7))
        self.assertEqual(sum(bin(byte).count("1") for byte in row), wanted["pop"][step])
        # A hash in Python takes a millisecond: every fifth one.
        if step % 5 == 0:
            self.assertEqual(common.fnv(row), wanted["hash"][step])
        return 1


class OneAnswer(unittest.TestCase):
    """All ways to ask say the same, along random texts of schemas."""

    def test_fill_allows_validate_and_batch_agree(self):
        vocabulary = common.letters(extra=[b'"a"', b'":', b"null", b'{"', b"12", b'","'])
        compiler, chance = Compiler(vocabulary), random.Random(1)
        mask, batch = Mask(vocabulary), Mask(vocabulary, 9)
        for schema in SCHEMAS:
            compiled = compiler.compile(Grammar.json_schema(schema))
            for _ in range(6):
                constraint, others = compiled.constraint(), []
                for _ in range(40):
                    constraint.fill(mask)
                    allowed = mask.tokens()
                    asked = [token for token in range(vocabulary.size) if constraint.allows(token)]
                    self.assertEqual(allowed, asked)
                    self.assertEqual(
                        allowed, [token for token in range(vocabulary.size) if constraint.validate([token])]
                    )
                    if len(allowed) == 1:
                        self.assertEqual(constraint.forced(), allowed[0])
                    others = (others + [(constraint.fork(), allowed)])[-9:]
                    fill_batch([fork for fork, _ in others], batch)
                    for row, (_, wanted) in enumerate(others):
                        self.assertEqual(batch.tokens(row), wanted)
                    constraint.advance(chance.choice(allowed))
                    if constraint.is_ended():
                        break
                json_text = constraint.text + (b"" if constraint.is_ended() else constraint.finish_text())
                json.loads(json_text)

    def test_a_finish_completes_and_a_rollback_is_exact(self):
        compiled = common.compiler().compile(Grammar.json_schema(SCHEMAS[0]))
        constraint, mask = compiled.constraint(), Mask(compiled.vocabulary)
        masks = []
        for byte in b'{"a": 17, "b": "x':
            constraint.fill(mask)
            masks.append(mask.tobytes())
            constraint.advance(byte)
        rest = constraint.finish()
        self.assertFalse(constraint.is_complete())
        for token in rest:
            constraint.advance(token)
        self.assertTrue(constraint.is_complete())
        self.assertEqual(json.loads(constraint.text), {"a": 17, "b": "x"})
        constraint.rollback(len(rest))
        for wanted in reversed(masks):
            constraint.rollback()
            constraint.fill(mask)
            self.assertEqual(mask.tobytes(), wanted)
        self.assertEqual((constraint.steps, constraint.tokens, constraint.text), (0, [], b""))


class Thoughts(unittest.TestCase):
    def test_the_grammar_begins_behind_the_thought(self):
        grammar = Grammar.json_schema({"type": "integer"}).after_thought("required")
        self.assertEqual(repr(pickle.loads(pickle.dumps(grammar))), repr(grammar))
        compiled = common.compiler().compile(grammar)
        text = compiled.constraint()
        self.assertEqual(text.advance_text("7"), 0)
        self.assertEqual(text.advance_text("<think>\nabout 7</thi"), 20)
        self.assertEqual((text.answer, text.is_complete()), (b"", False))
        self.assertEqual(text.advance_text("nk>\n\n42"), 7)
        self.assertEqual((text.reasoning, text.answer, text.is_complete()), (b"about 7", b"42", True))
        open_text = common.compiler().compile(Grammar.regex("[ab]").after_thought("open", close=")")).constraint()
        self.assertEqual((open_text.advance_text("why)a"), open_text.reasoning), (5, b"why"))

    def test_a_long_thought_is_closed(self):
        compiled = common.compiler().compile(Grammar.regex("[ab]").after_thought("open"))
        text, mask = compiled.constraint(reasoning_tokens=2), Mask(compiled.vocabulary)
        for letter in b"x<":
            text.advance(letter)
        text.fill(mask)
        self.assertEqual(mask.tokens(), [ord("/")])
        self.assertFalse(text.allows(ord("x")))

    def test_mistakes_name_what_there_is(self):
        for reasoning, marks in [("much", {}), ("open", {"close": ""}), ("open", {"open": "a" * 2000})]:
            with self.assertRaises(ValueError):
                Grammar.regex("a").after_thought(reasoning, **marks)


class Drafted(unittest.TestCase):
    def test_each_drafted_token_has_a_row(self):
        vocabulary = common.letters()
        compiled = Compiler(vocabulary).compile(Grammar.regex("ab(c|d)e?"))
        end = vocabulary.end_of_text[0]
        drafts = [list(b"abc"), list(b"abx"), [], list(b"abce") + [end, 1], list(b"b")]
        constraints = [compiled.constraint() for _ in drafts]
        mask = Mask(vocabulary, sum(len(draft) + 1 for draft in drafts))
        self.assertEqual(fill_batch(constraints, mask, drafts=drafts), [3, 2, 0, 5, 0])
        everything, row = list(range(32 * vocabulary.words)), 0
        for draft in drafts:
            alone = compiled.constraint()
            for place in range(len(draft) + 1):
                if alone is None or alone.is_ended():
                    self.assertEqual(mask.tokens(row), everything)
                else:
                    one = Mask(vocabulary)
                    alone.fill(one)
                    self.assertEqual(mask.tokens(row), one.tokens())
                if alone is not None and place < len(draft):
                    ends = alone.is_ended() or not alone.allows(draft[place])
                    alone = None if ends else alone
                    if alone is not None:
                        alone.advance(draft[place])
                row += 1
        self.assertTrue(all(constraint.steps == 0 for constraint in constraints))


@unittest.skipUnless(numpy, "LEFT OUT: numpy is not installed")
class Arrays(unittest.TestCase):
    def setUp(self):
        self.vocabulary = common.letters()
        self.constraint = Compiler(self.vocabulary).compile(Grammar.regex("[a-f]+|q")).constraint()
        self.words = self.vocabulary.words
        self.wanted = sorted(b"abcdefq")

    def test_rows_of_arrays_of_all_layouts(self):
        whole = numpy.full((4, 2 * self.words), -1, numpy.int32)
        for array in [whole[:, : self.words], whole[::2, self.words :], whole[1], whole.view(numpy.uint32)]:
            row = 1 if array.ndim == 2 else 0
            self.constraint.fill(array, row)
            self.assertEqual(common.tokens_of(array[row] if array.ndim == 2 else array, 257), self.wanted)
        # What is behind the vocabulary is cleared, and other rows are left alone.
        self.assertEqual(list(whole[1][self.words :]), [0] * self.words)
        self.assertTrue((whole[3] == -1).all())

    def test_a_mask_shares_its_memory_with_numpy(self):
        mask = Mask(self.vocabulary, 2)
        array = numpy.asarray(mask)
        self.assertEqual((array.shape, array.dtype), ((2, self.words), numpy.int32))
        self.constraint.fill(mask, 1)
        self.assertEqual(common.tokens_of(array[1], 257), self.wanted)


if __name__ == "__main__":
    unittest.main()
