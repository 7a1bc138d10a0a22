"""What the back ends for servers share: settings, notations, compiled grammars, and texts that fail alone."""

import gc
import json
import multiprocessing
import os
import tempfile
import threading
import time
import unittest
from unittest import mock

import common
import walks
from domino_decoding import Mask, Vocabulary, errors
from domino_decoding.integrations import notations, rows
from domino_decoding.integrations.library import Library, vocabulary_of
from domino_decoding.integrations.options import Options
from domino_decoding.integrations.text import Text, fill_all

try:
    import numpy
except ImportError:
    numpy = None

SHARED = '{"properties": {"a": {"type": "array", "items": {"type": "string"}}}}'
# Budgets by which the first masks of a large vocabulary fail.
TIGHT = {"step_work": 1000, "rehearsal": 0, "step_units": 0, "ahead": 0}


def options(**given):
    return Options.from_environment({"DOMINO_OPTIONS": json.dumps(given)})


def library(**given):
    return Library(walks.vocabulary(), options(**given))


class Settings(unittest.TestCase):
    def test_they_are_read(self):
        self.assertEqual(Options.from_environment({}), Options())
        self.assertEqual(Options.from_environment({"DOMINO_OPTIONS": "  "}), Options())
        read = options(cache="/shared", schema={"order": "any"}, grammars=3, compile_seconds=2)
        self.assertEqual((read.cache, read.grammars, read.compile_seconds), ("/shared", 3, 2))
        self.assertIsNone(read.step_seconds)

    def test_mistakes_say_what_is_wrong(self):
        for text, said in [
            ("{", "no JSON"),
            ("[1]", "must be a JSON object"),
            ('"cache"', "must be a JSON object"),
            ("[" * 100000, "no JSON"),
            ('{"cach": "/x"}', "did you mean `cache`?"),
            ('{"colour": 1}', "one of cache, schema"),
            ('{"cache": 3}', "path of a folder"),
            ('{"cache": ""}', "path of a folder"),
            ('{"schema": ["order"]}', "must be an object"),
            ('{"limits": 3}', "must be an object"),
            ('{"grammars": 0}', "from 1 on"),
            ('{"grammars": true}', "from 1 on"),
            ('{"grammars": 1.5}', "from 1 on"),
            ('{"compile_seconds": -1}', "number of seconds"),
            ('{"compile_seconds": "2"}', "number of seconds"),
            ('{"step_seconds": NaN}', "number of seconds"),
            ('{"step_seconds": true}', "number of seconds"),
        ]:
            with self.assertRaises(errors.OptionsError, msg=text) as caught:
                Options.from_environment({"DOMINO_OPTIONS": text})
            self.assertIn(said, str(caught.exception))

    def test_what_the_engine_does_not_know_is_said_at_the_start(self):
        for given in [
            {"schema": {"ordr": "any"}},
            {"schema": {"order": "some"}},
            {"schema": {"max_depth": -1}},
            {"limits": {"step_wrk": 1}},
            {"limits": {"step_work": -1}},
            {"limits": {"step_work": "x"}},
        ]:
            with self.assertRaises(errors.OptionsError, msg=given):
                library(**given)


class Notations(unittest.TestCase):
    def texts(self, kind, text, schema=None):
        compiled = common.compiler().compile(notations.read(kind, text, schema))

        def has(candidate):
            constraint = compiled.constraint()
            whole = constraint.advance_text(candidate) == len(candidate.encode())
            return whole and constraint.is_complete()

        return has

    def test_choices_are_taken_as_they_are(self):
        words = ["a.b", "x|y", "", "[a]*", "\\d", "ä\n", "\x00", "{2}", "(?i)q", "^$", "日本", "😀"]
        words.append("#-&~ ")
        has = self.texts("choice", json.dumps(words))
        for word in words:
            self.assertTrue(has(word), word)
        for word in ["acb", "x", "y", "aa", "7", "Q", "日", "x|", "\\"]:
            self.assertFalse(has(word), word)

    def test_structural_tags_in_both_forms(self):
        structure = {"begin": "<f>", "schema": {"type": "integer"}, "end": "</f>"}
        older = {"type": "structural_tag", "structures": [structure], "triggers": ["<f"]}
        free, forced = (
            self.texts("structural_tag", json.dumps({**older, "at_least_one": must}))
            for must in (False, True)
        )
        for text, at_all, must in [
            ("<f>12</f>", True, True),
            ("x <f>12</f> y", True, None),
            ("x", True, False),
            ("<f>x</f>", False, False),
            ("<f>1", False, False),
        ]:
            self.assertEqual(free(text), at_all, text)
            if must is not None:
                self.assertEqual(forced(text), must, text)
        left_out = {**older, "structures": [{"begin": "<f>", "end": "</f>"}]}
        self.assertTrue(self.texts("structural_tag", json.dumps(left_out))('<f>{"a": [1]}</f>'))
        content = {"type": "json_schema", "json_schema": None}
        format = {"type": "tag", "begin": "<", "content": content, "end": ">"}
        newer = {"type": "structural_tag", "format": format}
        self.assertTrue(self.texts("structural_tag", json.dumps(newer))("<[1, null]>"))

    def test_a_null_in_a_schema_is_not_a_schema_that_was_left_out(self):
        schema = {"enum": [{"type": "json_schema", "json_schema": None}]}
        tag = {"type": "structural_tag", "format": {"type": "json_schema", "json_schema": schema}}
        has = self.texts("structural_tag", json.dumps(tag))
        self.assertTrue(has('{"type": "json_schema", "json_schema": null}'))
        self.assertFalse(has('{"type": "json_schema", "json_schema": {}}'))

    def test_lark_and_options(self):
        self.assertTrue(self.texts("lark", 'start: "a" /b+/')("abb"))
        has = self.texts("json", '{"properties": {"a": {}, "b": {}}}', {"order": "any"})
        self.assertTrue(has('{"b": 1, "a": 2}'))

    def test_what_is_none(self):
        for kind, text in [
            ("cfg", "x"),
            ("", ""),
            ("json", "{"),
            ("json", ""),
            ("json", '{"type": "text"}'),
            ("json", "\ud800"),
            ("json", None),
            ("json", {"type": "object"}),
            ("regex", "("),
            ("regex", "a(?=b)"),
            ("ebnf", "root ::= other"),
            ("lark", "start: ("),
            ("choice", "[]"),
            ("choice", "{}"),
            ("choice", "[1]"),
            ("choice", '"a"'),
            ("choice", "["),
            ("choice", '["\\ud800"]'),
            ("structural_tag", "[]"),
            ("structural_tag", "{}"),
            ("structural_tag", "{"),
            ("structural_tag", "[" * 100000),
            ("structural_tag", '{"structures": 3, "triggers": []}'),
            ("structural_tag", '{"structures": [3], "triggers": ["a"]}'),
            ("structural_tag", '{"structures": [{"begin": "a", "end": "b"}], "triggers": []}'),
            ("structural_tag", '{"structures": [{"begin": "a", "end": "b", "x": 1}], "triggers": ["a"]}'),
            ("structural_tag", '{"structures": [{"begin": "a", "end": "b"}], "triggers": ["a"], "x": 1}'),
            ("structural_tag", '{"structures": [{"end": "b"}], "triggers": ["a"]}'),
            ("structural_tag", '{"type": "structural_tag", "format": {"type": "unheard_of"}}'),
        ]:
            with self.assertRaises(errors.DominoError, msg=(kind, text)):
                notations.read(kind, text)


class Vocabularies(unittest.TestCase):
    def test_tokens_without_logits_are_left_out(self):
        whole = Vocabulary.from_tokens(
            [b"a", None, b"b", b"ab", None, b"abb", None], end_of_text=[4, 6], special={1: "<one>"}
        )
        cut = vocabulary_of(whole, 5)
        self.assertEqual((cut.size, cut.end_of_text, cut.special.get(1)), (5, [4], "<one>"))
        mask = Mask(cut)
        Library(cut, Options()).compile("regex", "abb").constraint().fill(mask)
        self.assertEqual(mask.tokens(), [0, 3])
        self.assertEqual(vocabulary_of(whole, 100).fingerprint, whole.fingerprint)
        with self.assertRaises(errors.VocabularyError):
            vocabulary_of(whole, 4)
        self.assertEqual(vocabulary_of(whole, 7, {6}).end_of_text, [6])
        for tokenizer in [None, 3, object(), "gpt2"]:
            with self.assertRaises(errors.VocabularyError):
                vocabulary_of(tokenizer, 5)


class Compiling(unittest.TestCase):
    def test_a_grammar_is_compiled_once(self):
        one = library()
        found, threads = [], []
        with mock.patch.object(notations, "read", wraps=notations.read) as read:
            for _ in range(16):
                threads.append(threading.Thread(target=lambda: found.append(one.compile("regex", "a+b"))))
                threads[-1].start()
            [thread.join() for thread in threads]
            self.assertEqual(read.call_count, 1)
        self.assertEqual(len({id(compiled) for compiled in found}), 1)

    def test_refusals_are_kept_and_raised_anew(self):
        one, seen = library(), []
        with mock.patch.object(notations, "read", wraps=notations.read) as read:
            for _ in range(5):
                with self.assertRaises(errors.GrammarError) as caught:
                    one.compile("ebnf", 'root ::= "a"\n  | othr')
                seen.append(caught.exception)
            self.assertEqual(read.call_count, 1)
        self.assertEqual(len({id(error) for error in seen}), 5)
        self.assertEqual({(error.line, str(error)) for error in seen}, {(2, str(seen[0]))})
        self.assertLess(len(gc.get_referrers(seen[0])), 9)

    def test_what_is_no_fault_of_a_grammar_is_forgotten(self):
        one = library()
        with mock.patch.object(notations, "read", side_effect=MemoryError("no memory")):
            with self.assertRaises(MemoryError):
                one.compile("regex", "ab")
        self.assertEqual(len(one), 0)
        one.compile("regex", "ab")

    def test_the_least_recently_used_goes_first(self):
        one = library(grammars=2)
        first, second = one.compile("regex", "a"), one.compile("regex", "b")
        self.assertIs(one.compile("regex", "a"), first)
        one.compile("regex", "c")
        self.assertIs(one.compile("regex", "a"), first)
        self.assertIsNot(one.compile("regex", "b"), second)
        self.assertEqual(len(one), 2)

    def test_a_time_ends_the_wait_and_not_the_work(self):
        one, may_go = library(), threading.Event()
        real = notations.read

        def slow(*arguments):
            may_go.wait(20)
            return real(*arguments)

        with mock.patch.object(notations, "read", slow):
            for seconds in (0, 0.05):
                with self.assertRaises(errors.TimeError) as caught:
                    one.compile("regex", "ab", seconds=seconds)
                self.assertIn("ask again", caught.exception.hint)
            may_go.set()
            compiled = one.compile("regex", "ab", seconds=20)
        self.assertIs(one.compile("regex", "ab", seconds=0), compiled)

    def test_an_end_while_grammars_are_compiled(self):
        one, may_go, raised = library(), threading.Event(), []
        real = notations.read

        def slow(*arguments):
            may_go.wait(20)
            return real(*arguments)

        def ask(number):
            try:
                one.compile("regex", f"a{{{number}}}")
            except errors.DominoError as error:
                raised.append(str(error))

        with mock.patch.object(notations, "read", slow):
            threads = [threading.Thread(target=ask, args=(number,)) for number in range(1, 9)]
            [thread.start() for thread in threads]
            time.sleep(0.1)
            one.close()
            may_go.set()
            [thread.join(20) for thread in threads]
        self.assertFalse(any(thread.is_alive() for thread in threads))
        self.assertTrue(raised and all("ending" in text for text in raised), raised)
        with self.assertRaises(errors.DominoError):
            one.compile("regex", "z")

    def test_a_folder_is_shared(self):
        with tempfile.TemporaryDirectory() as folder:
            made = []
            for _ in range(2):
                one = library(cache=folder)
                compiled = one.compile("json", '{"type": "array", "items": {"type": "string"}}')
                one._ahead.shutdown(wait=True)
                made.append(compiled)
            files = list(common.pathlib.Path(folder).rglob("*.domino"))
            self.assertTrue(files)
            for compiled in made:
                mask = Mask(compiled.vocabulary)
                compiled.constraint().fill(mask)
                self.assertIn(ord("["), mask.tokens())


def mask_in(folder):
    """A mask of a grammar that a process of its own compiles, with a folder that others share."""
    one = library(cache=folder)
    compiled = one.compile("json", SHARED)
    one._ahead.shutdown(wait=True)
    mask = Mask(compiled.vocabulary)
    constraint = compiled.constraint()
    constraint.advance_text('{"a": [')
    constraint.fill(mask)
    return mask.tobytes()


class Processes(unittest.TestCase):
    def test_several_share_a_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            wanted = mask_in(folder)
            with multiprocessing.get_context("spawn").Pool(2) as pool:
                found = pool.map_async(mask_in, [folder] * 6).get(60)
            self.assertEqual(found, [wanted] * 6)

    @unittest.skipUnless(hasattr(os, "fork"), "LEFT OUT: there are no forks here")
    def test_a_fork_has_threads_of_its_own(self):
        one, may_go, real = library(), threading.Event(), notations.read
        known = one.compile("regex", "ab")

        def slow(*arguments):
            may_go.wait(20)
            return real(*arguments)

        with mock.patch.object(notations, "read", slow):
            # Its thread does not come along.
            thread = threading.Thread(target=lambda: one.compile("regex", "abc"))
            thread.start()
            time.sleep(0.1)
            child = os.fork()
            if child == 0:
                try:
                    may_go.set()
                    fine = one.compile("regex", "ab") is known
                    fine &= one.compile("regex", "abc", seconds=10).constraint().advance_text("abc") == 3
                    fine &= one.compile("regex", "abcd", seconds=10).constraint().advance_text("abcd") == 4
                    os._exit(0 if fine else 1)
                finally:
                    os._exit(2)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
            may_go.set()
            thread.join(20)
        self.assertFalse(thread.is_alive())


class Hostile(unittest.TestCase):
    """Grammars that would take for ever or all memory end within their budgets; nothing hangs."""

    def test_budgets_end_them(self):
        one = library()
        wide = " | ".join(f'"{number}" root' for number in range(3000))
        for kind, text, fails in [
            ("regex", "(" * 5000 + "a" + ")" * 5000, True),
            ("regex", "((a{1,1000}){1,1000}){1,1000}", None),
            ("regex", "(a|aa)*" * 300 + "b", None),
            ("regex", "(.*a.{30}){20}", None),
            ("json", "[" * 100000, True),
            ("json", '{"items": ' * 3000 + "{}" + "}" * 3000, True),
            ("json", '{"$ref": "#"}', True),
            ("json", '{"minLength": 1e300}', None),
            ("json", json.dumps({"enum": ["x" * 100 + str(number) for number in range(3000)]}), None),
            ("ebnf", "root ::= " + "(" * 3000 + '"a"' + ")" * 3000, None),
            ("ebnf", f'root ::= "a" | {wide}', None),
            ("lark", "start: " + "a" * 3 + "\n" + "aaa: aaa aaa | aaa", True),
            ("structural_tag", '{"format": {"type": "star", "content": {"type": "any_text"}}}', None),
        ]:
            begun = time.monotonic()
            try:
                one.compile(kind, text, seconds=60)
                self.assertIsNot(fails, True, (kind, text[:60]))
            except errors.TimeError:
                raise
            except errors.DominoError as error:
                self.assertTrue(str(error))
            self.assertLess(time.monotonic() - begun, 30, (kind, text[:60]))


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
            ("json", '{"const": {"name": "x"}}', '{"name"', ""),
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
