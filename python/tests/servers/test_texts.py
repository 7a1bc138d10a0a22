"""Texts of requests: steps, requests that fail without the rest of their batch, tokens that end them."""

import unittest

import common
from domino_decoding import Vocabulary, errors
from domino_decoding.integrations import rows
from domino_decoding.integrations.library import Library
from domino_decoding.integrations.options import Options
from domino_decoding.integrations.text import Text, fill_all

from . import walks
from .shared import library, options

try:
    import numpy
except ImportError:
    numpy = None

# Budgets by which the first masks of a large vocabulary fail.
TIGHT = {"step_work": 1000, "rehearsal": 0, "step_units": 0, "ahead": 0}


@unittest.skipUnless(numpy, "LEFT OUT: texts that fail alone, without numpy")
class Failing(unittest.TestCase):
    """One request's budget is used up: the others go on, and it ends at its next token."""

    @classmethod
    def setUpClass(cls):
        cls.vocabulary = Vocabulary.from_file(common.MODEL)
        tight = Library(cls.vocabulary, options(limits=TIGHT))
        cls.tight = tight.compile("ebnf", 'root ::= [a-z ]{2,99} r2\nr2 ::= "x" [a-y]* | r2 "y"')
        cls.free = Library(cls.vocabulary, Options()).compile("regex", "[a-z]+")

    def rows_of(self, texts):
        mask = numpy.full((len(texts), self.vocabulary.words), -1, numpy.int32)
        fill_all(texts, mask, list(range(len(texts))))
        return [common.tokens_of(row, self.vocabulary.size) for row in mask]

    def test_it_ends_alone(self):
        texts = [Text(self.free), Text(self.tight), Text(self.free), Text(self.tight)]
        wanted, mask = None, numpy.zeros((1, self.vocabulary.words), numpy.int32)
        for found, text in zip(self.rows_of(texts), texts):
            if text.compiled is self.tight:
                self.assertEqual(found, self.vocabulary.end_of_text)
                with self.assertRaises(errors.LimitError):
                    text.advance(self.vocabulary.end_of_text[0])
                self.assertEqual(text.validate([300, 301]), 0)
                self.assertEqual(text.forced_text(), "")
                self.assertFalse(text.is_ended)
            else:
                text.compiled.constraint().fill(mask)
                wanted = common.tokens_of(mask[0], self.vocabulary.size)
                self.assertEqual(found, wanted)
                text.advance(found[0])
        self.assertIsNotNone(wanted)

    def test_a_way_back_leads_out_of_it(self):
        text = Text(self.free)
        text.advance(next(t for t in range(self.vocabulary.size) if self.vocabulary.bytes(t) == b"a"))
        text.failure, text._failed_at = errors.LimitError("used up"), 1
        text.rollback(0)
        text.rollback(-3)
        self.assertIsNotNone(text.failure)
        text.rollback(1)
        self.assertIsNone(text.failure)
        with self.assertRaises(errors.RollbackError) as caught:
            text.rollback(1)
        self.assertIsInstance(caught.exception, ValueError)

    def test_rows_of_few_tokens(self):
        mask = numpy.full((2, 4), -1, numpy.int32)
        rows.only(mask, 1, [0, 31, 32, 95, 127])
        self.assertEqual(common.tokens_of(mask[1], 128), [0, 31, 32, 95, 127])
        self.assertTrue((mask[0] == -1).all())

    def test_a_wrong_mask_is_the_callers_mistake(self):
        with self.assertRaises(errors.MaskError):
            Text(self.free).fill(numpy.zeros((1, 3), numpy.int32), 0)
        with self.assertRaises(errors.MaskError):
            fill_all([Text(self.free), Text(self.free)], numpy.zeros((2, 3), numpy.int32), [0, 1])


class Steps(unittest.TestCase):
    def setUp(self):
        self.library = library()

    def text(self, kind, grammar, ends=()):
        return Text(self.library.compile(kind, grammar), ends)

    @unittest.skipUnless(numpy, "LEFT OUT: rows of requests that end by other tokens, without numpy")
    def test_each_request_may_end_by_other_tokens(self):
        known, texts = walks.ENDS, [b"a", b"ab", b"ac", b"abab"]
        for ends, meant in [
            ((), known),
            (known, known),
            (known[:1], known[:1]),
            ([264, known[1]], [264, known[1]]),
            ([1 << 20, -5], known),
            ([265, 1 << 20], [265]),
            # Tokens with a text, which they then do not have.
            ([98], [98]),
            ([98, known[0], 31, 32], [98, known[0], 31, 32]),
        ]:
            tokens = [None if token in meant else piece for token, piece in enumerate(walks.TOKENS)]
            oracle = walks.Oracle(texts, tokens, meant)
            for path in ([], [97], [97, 98], [256], [97, 99], [256, 256], [97, 98, 97, 98]):
                if set(path) & set(meant):
                    continue
                text, other = (self.text("regex", "a(b(ab)?|c)?", ends) for _ in range(2))
                prefix = b"".join(walks.TOKENS[token] for token in path)
                wanted = oracle.allowed(prefix)
                for one in (text, other):
                    one.advance_all(path)
                mask = numpy.full((3, 12), -1, numpy.int32)
                text.fill(mask, 0)
                fill_all([text, other], mask, [1, 2])
                for row in mask:
                    self.assertEqual(common.tokens_of(row, 12 * 32), wanted, (ends, path))
                for token in range(len(walks.TOKENS)):
                    self.assertEqual(text.validate([token, 97]) > 0, token in wanted, (ends, path, token))
                    if token not in wanted:
                        self.assertRaises(errors.RefusedError, text.advance, token)
                        continue
                    text.advance(token)
                    self.assertEqual(text.is_ended, token in meant)
                    text.rollback(1)
                    self.assertFalse(text.is_ended)

    def test_tokens_are_taken_together_or_not_at_all(self):
        text = self.text("regex", "abc")
        for tokens in [[97, 98, 100], [98], [97, 97], [97, 1 << 20], [97, -1]]:
            with self.assertRaises(errors.RefusedError):
                text.advance_all(tokens)
            self.assertEqual(text.constraint.steps, 0)
        # Tokens behind the end do not count.
        text.advance_all([97, 98, 99, walks.ENDS[0], 5, 6])
        self.assertTrue(text.is_ended)
        self.assertEqual(text.constraint.steps, 4)
        text.rollback(1)
        self.assertFalse(text.is_ended)
        self.assertEqual(text.validate([*walks.ENDS, 97]), 1)

    def test_forced_text(self):
        for kind, grammar, before, wanted in [
            ("regex", "abc(d|e)f", "", "abc"),
            ("regex", "abc?", "", "ab"),
            ("regex", "(ab|b)c", "", ""),
            ("regex", "ä€(x|y)", "", "ä€"),
            ("regex", "a(ä|ö)", "", "a"),
            ("regex", "ab*", "", "a"),
            ("regex", "ab", "ab", ""),
            ("json", '{"const": {"name": "x"}}', '{"name"', ":"),
        ]:
            text = self.text(kind, grammar)
            text.constraint.advance_text(before)
            steps = text.constraint.steps
            self.assertEqual(text.forced_text(), wanted, grammar)
            self.assertEqual(text.constraint.steps, steps)
        self.assertEqual(self.text("regex", "a{2000}").forced_text(), "a" * 512)
        self.assertEqual(self.text("regex", "a{2000}").forced_text(7), "aaaaaaa")


if __name__ == "__main__":
    unittest.main()
