"""Compiled grammars that requests of a server share: by threads, processes and folders."""

import gc
import json
import multiprocessing
import os
import pathlib
import tempfile
import threading
import time
import unittest
from unittest import mock

from domino_decoding import Mask, Vocabulary, errors
from domino_decoding.integrations import notations
from domino_decoding.integrations.library import Library, vocabulary_of
from domino_decoding.integrations.options import Options

from .shared import library

SHARED = '{"properties": {"a": {"type": "array", "items": {"type": "string"}}}}'


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
            files = list(pathlib.Path(folder).rglob("*.domino"))
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


if __name__ == "__main__":
    unittest.main()
