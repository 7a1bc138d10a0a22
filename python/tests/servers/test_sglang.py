"""The back end in SGLang's own manager of grammars."""

import os
import time
import types
import unittest
from concurrent.futures import Future
from unittest import mock

import common

from . import hosts, walks
from .sglang_calls import HAS, LOGITS, SERVING, WHY, Asked, manager, ready

if HAS:
    from .sglang_calls import Options, ours


@unittest.skipUnless(HAS, WHY)
class Manager(unittest.TestCase):
    def setUp(self):
        self.manager = manager()

    def test_the_name_is_a_choice(self):
        from sglang.srt.server_args import GRAMMAR_BACKEND_CHOICES

        ours.install()
        self.assertEqual(GRAMMAR_BACKEND_CHOICES.count("domino"), 1)
        self.assertIsInstance(self.manager.grammar_backend, ours.DominoBackend)

    def test_refusals_say_why(self):
        for kind, text, said in [
            ("json", '{"type": "text"}', "text"),
            ("json", "{", "JSON"),
            ("json", '{"$ref": "#/nowhere"}', "nowhere"),
            ("json", '{"type": "string", "minLength": 5, "maxLength": 2}', ""),
            ("regex", "a(", ""),
            ("regex", "(?=a)", "look"),
            ("ebnf", "root ::= othr", "othr"),
            ("ebnf", "root ::= root", ""),
            ("structural_tag", '{"format": {"type": "unheard"}}', "unheard"),
            ("structural_tag", "{}", "format"),
        ]:
            with self.subTest(text):
                with self.assertLogs("domino_decoding", "ERROR"):
                    (request,) = ready(self.manager, [Asked(kind, text)])
                self.assertIn(f"Failed to compile {kind} grammar", request.said)
                self.assertIn(said, request.said)
                # The same again is known at once.
                (again,) = ready(self.manager, [Asked(kind, text)])
                self.assertEqual(again.said, request.said)
                self.assertFalse(self.manager.has_waiting_grammars())

    def test_an_unknown_notation(self):
        backend = self.manager.grammar_backend
        future, hit = backend.get_cached_or_future_value(("cfg", "x"), False)
        self.assertFalse(hit)
        with self.assertRaises(ValueError):
            future.result(20)

    def test_a_grammar_is_there_the_second_time(self):
        (first,) = ready(self.manager, [Asked("regex", "ab+")])
        first.grammar.accept_token(97)
        (second,) = ready(self.manager, [Asked("regex", "ab+")])
        self.assertIs(second.grammar.text.compiled, first.grammar.text.compiled)
        self.assertEqual(second.grammar.text.constraint.steps, 0)
        self.assertTrue(second.grammar.grammar_stats.is_cache_hit)
        self.manager.clear()
        self.assertEqual(len(self.manager.grammar_backend.cache), 0)

    def test_the_cache_drops_in_one_order_on_all_ranks(self):
        ranks = [manager() for _ in range(2)]
        for rank in ranks:
            rank.grammar_backend.library.options = Options(grammars=3)
        texts = [f"a{{{count}}}" for count in (1, 2, 3, 1, 4, 2, 5, 1, 3, 3, 6, 1)]
        hits = []
        for rank in ranks:
            hits.append([])
            for text in texts:
                hits[-1].append(rank.process_req_with_grammar(Asked("regex", text)))
                ready(rank, [])
        self.assertEqual(hits[0], hits[1])
        for rank in ranks:
            self.assertEqual([text for _, text in rank.grammar_backend.cache], ["a{3}", "a{6}", "a{1}"])
        self.assertIn(False, hits[0])

    def test_tokens_that_end_are_the_models(self):
        for ends in (walks.ENDS[:1], walks.ENDS[1:], [264]):
            grammar = ready(manager(ends=ends), [Asked("regex", "ab?")])[0].grammar
            grammar.accept_token(97)
            mask = grammar.allocate_vocab_mask(LOGITS, 1, "cpu")
            grammar.fill_vocab_mask(mask, 0)
            self.assertEqual(walks.tokens_of(mask[0].tolist(), LOGITS), [98, *ends])

    def test_compact_json(self):
        for compact in (True, False):
            with mock.patch.object(SERVING, "constrained_json_disable_any_whitespace", compact):
                grammar = ready(manager(), [Asked("json", '{"type": "array"}')])[0].grammar
            grammar.accept_token(ord("["))
            mask = grammar.allocate_vocab_mask(LOGITS, 1, "cpu")
            grammar.fill_vocab_mask(mask, 0)
            self.assertEqual(ord(" ") in walks.tokens_of(mask[0].tolist(), LOGITS), not compact)

    def test_a_request_that_is_cancelled_while_it_compiles(self):
        request = Asked("regex", "a{7}", rid="7")
        library = self.manager.grammar_backend.library
        with mock.patch.object(library, "compile", side_effect=hang):
            self.manager.process_req_with_grammar(request)
            self.manager.abort_requests(types.SimpleNamespace(abort_all=False, rid="7"))
        self.assertIn("Aborted", request.said)
        ready(self.manager, [])
        (again,) = ready(self.manager, [Asked("regex", "a{7}")])
        self.assertIsNone(again.said)

    def test_a_time_out_is_not_the_grammars_fault(self):
        self.manager.SGLANG_GRAMMAR_MAX_POLL_ITERATIONS = 2
        request = Asked("regex", "a{8}")
        request.grammar, request.grammar_key = Future(), ("regex", "a{8}")
        self.manager.grammar_queue.append(request)
        ready(self.manager, [])
        self.assertIn("timed out", request.said)
        (again,) = ready(self.manager, [Asked("regex", "a{8}")])
        self.assertIsNone(again.said)

    def test_any_json_and_a_whole_answer(self):
        (request,) = ready(self.manager, [Asked("json", "$$ANY$$")])
        for byte in b"[1,null]":
            request.grammar.accept_token(byte)
        whole = Asked("ebnf", 'root ::= "ab"')
        whole.sampling_params.ebnf_full_assistant = True
        ready(self.manager, [whole])
        self.assertEqual(whole.grammar_key[0], "full_assistant_ebnf")
        whole.grammar.accept_token(97)

    def test_clocks_are_refused(self):
        for given in ('{"compile_seconds": 1}', '{"step_seconds": 0.1}', '{"cach": "x"}'):
            with mock.patch.dict(os.environ, {"DOMINO_OPTIONS": given}), self.assertRaises(ValueError):
                manager()
        for name in ("constrained_json_whitespace_pattern", "constrained_json_max_whitespace_cnt"):
            with mock.patch.object(SERVING, name, 3), self.assertRaises(ValueError) as caught:
                manager()
            self.assertIn("DOMINO_OPTIONS", str(caught.exception))
        with self.assertRaises(ValueError):
            manager(tokenizer=object())


def hang(*_, **__):
    """Compiling that takes a while."""
    time.sleep(0.3)
    raise MemoryError("given up")


@unittest.skipUnless(HAS, WHY)
class Theirs(unittest.TestCase):
    def test_their_own_trial_of_a_back_end(self):
        """The function at the end of SGLang's file for XGrammar, with our back end under that name."""
        pieces, made = ["hello", " world", " there", "hell"], []
        tokens = [*(piece.encode() for piece in pieces), None]
        words = common.Vocabulary.from_tokens(tokens, end_of_text=[4])
        tokenizer = types.SimpleNamespace(eos_token_id=4, encode=lambda text, **_: [pieces.index(text)])
        config = types.SimpleNamespace(vocab_size=len(tokens))

        def backend(tokenizer, vocab_size, model_eos_token_ids):
            made.append(ours.DominoBackend(words, vocab_size, model_eos_token_ids, options=Options()))
            return made[-1]

        models = types.SimpleNamespace(
            AutoConfig=types.SimpleNamespace(from_pretrained=lambda _: config),
            AutoTokenizer=types.SimpleNamespace(from_pretrained=lambda _: tokenizer),
        )
        file = hosts.SGLANG / "constrained" / "xgrammar_backend.py"
        trial = hosts.function_of(file, "demo_test", {"XGrammarGrammarBackend": backend})
        modules = {
            "transformers": models,
            "sglang.test": types.SimpleNamespace(),
            "sglang.test.test_utils": types.SimpleNamespace(DEFAULT_MODEL_NAME_FOR_TEST=""),
        }
        with mock.patch.dict(hosts.sys.modules, modules):
            trial()
        self.assertEqual(len(made), 1)


@unittest.skipUnless(HAS, WHY)
class Reasoning(unittest.TestCase):
    """With a parser of reasoning masks begin behind the thoughts."""

    def test_masks_begin_behind_the_thoughts(self):
        with mock.patch.object(SERVING, "reasoning_parser", "any"):
            one = manager()
        (request,) = ready(one, [Asked("regex", "ab", reasoning=True)])
        grammar, end = request.grammar, walks.TOKENS.index(b"]]")
        mask = grammar.allocate_vocab_mask(vocab_size=LOGITS, batch_size=1, device="cpu")
        for token in (120, 121, end):
            grammar.fill_vocab_mask(mask, 0)
            self.assertTrue((mask == -1).all())
            grammar.accept_token(token)
        grammar.fill_vocab_mask(mask, 0)
        found = walks.tokens_of(mask[0].tolist(), len(walks.TOKENS))
        self.assertEqual(found, walks.Oracle([b"ab"]).allowed(b""))
        grammar.accept_token(97)
        grammar.rollback(2)
        mask.fill_(-1)
        grammar.fill_vocab_mask(mask, 0)
        self.assertTrue((mask == -1).all())

    def test_a_filter_of_tokens(self):
        mask = ours.allocate_vocab_mask(LOGITS, 2, "cpu")
        ours.DominoBackend.set_token_filter(mask, [0, 31, 64], 1, is_allowed=True)
        self.assertEqual(walks.tokens_of(mask[1].tolist(), LOGITS), [0, 31, 64])
        ours.DominoBackend.set_token_filter(mask, [31], 1, is_allowed=False, reset_vocab_mask=False)
        self.assertEqual(walks.tokens_of(mask[1].tolist(), LOGITS), [0, 64])
        self.assertTrue((mask[0] == -1).all())

    def test_a_frame_around_an_answer(self):
        backend = manager().grammar_backend

        def frame(content):
            elements = [{"type": "const_string", "value": "ab"}, content]
            return {"type": "structural_tag", "format": {"type": "sequence", "elements": elements}}

        for kind, text, answer in [
            ("json", '{"enum": [12]}', b"12"),
            ("regex", "ba?", b"b"),
            ("ebnf", 'root ::= "x"', b"x"),
            ("structural_tag", '{"format": {"type": "const_string", "value": "y"}}', b"y"),
        ]:
            framed = backend.compile_framed_grammar(backend._grammar(kind, text), frame)
            for byte in b"ab" + answer:
                framed.accept_token(byte)
            framed.accept_token(walks.ENDS[0])
            self.assertTrue(framed.is_terminated())
        odd = {"type": "structural_tag", "format": {"type": "odd"}}
        unknown = backend.compile_framed_grammar(backend._grammar("regex", "a"), lambda content: odd)
        self.assertIsNone(unknown)


if __name__ == "__main__":
    unittest.main()
