"""The back end in vLLM's own manager of structured outputs."""

import enum
import json
import os
import time
import types
import unittest
from unittest import mock

import common

from . import walks
from .vllm_calls import HAS, LOGITS, WHY, Asked, Fast, begun, settings

if HAS:
    import pydantic

    from .vllm_calls import (
        SamplingParams,
        StructuredOutputManager,
        StructuredOutputOptions,
        StructuredOutputsConfig,
        StructuredOutputsParams,
        VLLMValidationError,
        ours,
    )


@unittest.skipUnless(HAS, WHY)
class Installed(unittest.TestCase):
    def test_the_name_is_known_and_the_others_stay(self):
        for name in ("auto", "xgrammar", "guidance", "outlines", "domino"):
            self.assertEqual(StructuredOutputsConfig(backend=name).backend, name)
        self.assertEqual(StructuredOutputsConfig().backend, "auto")
        with self.assertRaises(pydantic.ValidationError):
            StructuredOutputsConfig(backend="dominoes")
        adapter = pydantic.TypeAdapter(StructuredOutputsConfig)
        self.assertEqual(adapter.validate_json('{"backend": "domino"}').backend, "domino")

    def test_again_it_changes_nothing(self):
        before = SamplingParams._validate_structured_outputs, StructuredOutputManager.grammar_init
        ours.install()
        ours.plugin()
        after = SamplingParams._validate_structured_outputs, StructuredOutputManager.grammar_init
        self.assertEqual(before, after)

    def test_wrong_options_are_a_warning_at_the_start(self):
        with mock.patch.dict(os.environ, {"DOMINO_OPTIONS": '{"cach": 1}'}):
            with self.assertLogs("domino_decoding", "WARNING") as said:
                ours.plugin()
        self.assertIn("did you mean `cache`?", said.output[0])

    def test_another_vllm_is_left_alone(self):
        def other(self, request, more):
            pass

        def bare(self, request):
            pass

        for method, name in [(other, "grammar_init"), (None, "grammar_init")]:
            with mock.patch.object(StructuredOutputManager, name, method):
                with self.assertRaises(ours.DominoError):
                    ours.install()
                self.assertIs(StructuredOutputManager.__dict__[name], method)
                with self.assertLogs("domino_decoding", "WARNING"):
                    ours.plugin()
        with mock.patch.object(StructuredOutputManager, "grammar_init", bare):
            with mock.patch.object(ours, "_with_choice", side_effect=ValueError("no names")):
                self.assertRaises(ValueError, ours.install)
            self.assertIs(StructuredOutputManager.grammar_init, bare)


@unittest.skipUnless(HAS, WHY)
class Checked(unittest.TestCase):
    """Requests before an engine has them."""

    def check(self, tokenizer=None, backend="domino", **given):
        params = SamplingParams()
        params.structured_outputs = StructuredOutputsParams(**given)
        config = types.SimpleNamespace(backend=backend)
        model = types.SimpleNamespace(is_diffusion=False)
        params._validate_structured_outputs(model, config, tokenizer or Fast())
        return params.structured_outputs._backend

    def test_what_is_right(self):
        for given in [
            {"json": {"type": "object"}},
            {"json": '{"type": "array", "uniqueItems": true}'},
            {"json_object": True},
            {"regex": "[a-z]+"},
            {"choice": ["a", "b"]},
            {"grammar": 'root ::= "a" | "b" root'},
            {"grammar": 'start: "a" /b+/'},
            {"structural_tag": '{"format": {"type": "const_string", "value": "a"}}'},
        ]:
            self.assertEqual(self.check(**given), "domino", given)

    def test_what_is_wrong(self):
        for said, given in [
            ("text", {"json": {"type": "text"}}),
            ("JSON", {"json": "{"}),
            ("", {"json": ""}),
            ("look", {"regex": "(?!a)"}),
            ("nothing", {"choice": []}),
            ("othr", {"grammar": "root ::= othr"}),
            ("", {"grammar": ""}),
            ("", {"grammar": "start: ("}),
            ("unheard", {"structural_tag": '{"format": {"type": "unheard"}}'}),
            ("", {"structural_tag": ""}),
            ("True", {"json_object": False}),
            ("fast tokenizer", {"regex": "a", "tokenizer": object()}),
        ]:
            with self.assertRaises(VLLMValidationError, msg=given) as caught:
                self.check(**given)
            self.assertIn(said, str(caught.exception))
        with self.assertRaises(VLLMValidationError):
            with mock.patch.dict(os.environ, {"DOMINO_OPTIONS": '{"cach": 1}'}):
                self.check(regex="a")

    def test_other_back_ends_check_for_themselves(self):
        with self.assertRaisesRegex(AssertionError, "another back end was asked"):
            self.check(regex="a", backend="xgrammar")


@unittest.skipUnless(HAS, WHY)
class Manager(unittest.TestCase):
    def manager(self, **given):
        made = StructuredOutputManager(settings(**given))
        self.addCleanup(made.clear_backend)
        return made

    def test_a_refusal_fails_its_request_alone(self):
        manager = self.manager()
        texts = [
            ("regex", "a("),
            ("json", '{"type": "text"}'),
            ("ebnf", "root ::= root"),
            ("lark", "start: ("),
            ("structural_tag", '{"format": 3}'),
            ("regex", "ab"),
        ]
        asked = [Asked(*text, number) for number, text in enumerate(texts)]
        begun(manager, *asked)
        for request in asked[:-1]:
            self.assertIsInstance(request.grammar, VLLMValidationError)
        self.assertTrue(asked[-1].grammar.accept_tokens("", [97, 98]))
        self.assertEqual(manager.backend_name, "domino")

    def test_a_kind_that_is_none(self):
        manager = self.manager()
        begun(manager, Asked("regex", "a"))
        odd = enum.Enum("Odd", "ODD").ODD
        with self.assertRaises(VLLMValidationError):
            manager.backend.compile_grammar(odd, "x")
        any_object = manager.backend.compile_grammar(StructuredOutputOptions.JSON_OBJECT, "")
        self.assertTrue(any_object.accept_tokens("", list(b'{"a":[1]}')))

    def test_a_tokenizer_that_is_none_fails_requests_and_not_the_engine(self):
        manager = self.manager(tokenizer=object())
        (request,) = begun(manager, Asked("regex", "a"))
        self.assertIsInstance(request.grammar, VLLMValidationError)
        self.assertIsNone(manager.backend)

    def test_tokens_that_end_are_those_of_a_request(self):
        manager = self.manager()
        asked = begun(manager, *(
            Asked("regex", "ab?", number, stops)
            for number, stops in enumerate([(), walks.ENDS[:1], walks.ENDS, [98, walks.ENDS[1]]])
        ))
        for request, wanted in zip(asked, [walks.ENDS, walks.ENDS[:1], walks.ENDS, [98, walks.ENDS[1]]]):
            mask = manager.backend.allocate_token_bitmask(1)
            self.assertTrue(request.grammar.accept_tokens("", [97]))
            request.grammar.fill_bitmask(mask, 0)
            found = walks.tokens_of(mask[0].tolist(), LOGITS)
            self.assertEqual(found, sorted({98, *wanted}))

    def test_the_first_request_shows_the_tokens_that_end_most(self):
        manager = self.manager()
        begun(manager, Asked("regex", "ab?", 0))
        self.assertEqual(sorted(manager.backend.library.vocabulary.end_of_text), sorted(walks.ENDS))
        # One of them has a text, so it is a request's own.
        begun(manager, Asked("regex", "ab?", 1, [98, 264]))
        self.assertEqual(manager.backend.library.vocabulary.end_of_text, [264])
        begun(manager, Asked("regex", "ab?", 2, walks.ENDS))
        self.assertEqual(manager.backend.library.vocabulary.end_of_text, [264])

    def test_a_time_out_and_an_end_while_grammars_are_compiled(self):
        real = ours.notations.read

        def slow(*arguments):
            time.sleep(0.4)
            return real(*arguments)

        with mock.patch.dict(os.environ, {"DOMINO_OPTIONS": '{"compile_seconds": 0.05}'}):
            manager = self.manager()
            begun(manager, Asked("regex", "ab"))
        with mock.patch.object(ours.notations, "read", slow):
            (late,) = begun(manager, Asked("regex", "abc", 1))
            self.assertIsInstance(late.grammar, VLLMValidationError)
            self.assertIn("0.05 s", str(late.grammar))
            time.sleep(0.6)
            (again,) = begun(manager, Asked("regex", "abc", 2))
            self.assertTrue(again.grammar.accept_tokens("", [97]))
            manager.grammar_init(Asked("regex", "abcd", 3))
            started = time.monotonic()
            manager.clear_backend()
            self.assertLess(time.monotonic() - started, 5)
        self.assertTrue(again.grammar.accept_tokens("", [98]))

    def test_ranks_with_a_scheduler_each_have_no_clock(self):
        given = '{"compile_seconds": 0.0}'
        with mock.patch.dict(os.environ, {"DOMINO_OPTIONS": given}):
            manager = self.manager(launcher="external_launcher")
            (request,) = begun(manager, Asked("regex", "ab"))
        self.assertTrue(request.grammar.accept_tokens("", [97]))

    def test_steps_of_a_grammar(self):
        (request,) = begun(self.manager(), Asked("regex", "abc"))
        grammar, end = request.grammar, walks.ENDS[0]
        self.assertEqual(grammar.validate_tokens([97, 98, 120]), [97, 98])
        self.assertEqual(grammar.validate_tokens([97, 98, 99, end, 97]), [97, 98, 99, end])
        for wrong in ([98], [97, 97], [97, 1 << 20], [end], [-1]):
            with self.assertLogs("domino_decoding", "ERROR"):
                self.assertFalse(grammar.accept_tokens("", wrong))
        self.assertEqual(grammar.validate_tokens([97]), [97])
        with self.assertRaises(ValueError):
            grammar.rollback(1)
        self.assertTrue(grammar.accept_tokens("", [97, 98, 99, end, 5]))
        self.assertTrue(grammar.is_terminated())
        self.assertTrue(grammar.accept_tokens("", [7, 8]))
        self.assertEqual(grammar.validate_tokens([97]), [])
        for none in (0, -1):
            grammar.rollback(none)
            self.assertTrue(grammar.is_terminated())
        grammar.rollback(1)
        self.assertFalse(grammar.is_terminated())
        grammar.reset()
        self.assertTrue(grammar.accept_tokens("", [97]))

    def test_a_mask_that_cannot_be_made_ends_one_request(self):
        tight = json.dumps({"limits": {"step_work": 1000, "rehearsal": 0, "step_units": 0, "ahead": 0}})
        tokenizer = common.Vocabulary.from_file(common.MODEL)
        with mock.patch.dict(os.environ, {"DOMINO_OPTIONS": tight}):
            manager = self.manager(tokenizer=tokenizer, logits=tokenizer.size)
            bad = Asked("ebnf", 'root ::= [a-z ]{2,99} r2\nr2 ::= "x" [a-y]* | r2 "y"')
            begun(manager, bad)
        mask = manager.grammar_bitmask({"0": bad}, ["0"], {})
        self.assertEqual(walks.tokens_of(mask[0].tolist(), tokenizer.size), tokenizer.end_of_text)
        with self.assertLogs("domino_decoding", "ERROR"):
            self.assertFalse(manager.accept_tokens(bad, [tokenizer.end_of_text[0]]))


if __name__ == "__main__":
    unittest.main()
