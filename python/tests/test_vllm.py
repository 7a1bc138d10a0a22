"""The back end in vLLM's own manager of structured outputs, and along the calls of its scheduler."""

import enum
import json
import os
import random
import time
import types
import unittest
from unittest import mock

import common
import hosts
import walks

WHY = "LEFT OUT: vLLM's calls, which need torch, numpy, pydantic and its files (`.ci/hosts` gets them)"
try:
    import numpy  # noqa: F401
    import pydantic
    import vllm_host

    HAS = hosts.there(hosts.VLLM)
except ImportError:
    HAS = False

# More logits than the vocabulary has tokens, as models often have.
LOGITS = len(walks.TOKENS) + 37


if HAS:
    vllm_host.stand_ins()
    from vllm.config.structured_outputs import StructuredOutputsConfig
    from vllm.exceptions import VLLMValidationError
    from vllm.sampling_params import SamplingParams, StructuredOutputsParams
    from vllm.v1.structured_output import StructuredOutputManager
    from vllm.v1.structured_output.backend_types import StructuredOutputOptions
    from vllm.v1.structured_output.request import StructuredOutputRequest

    from domino_decoding.integrations import vllm as ours

    ours.install()


def settings(tokenizer=None, logits=LOGITS, drafts=0, requests=64, launcher=None):
    """What vLLM calls its configuration."""
    model = types.SimpleNamespace(
        skip_tokenizer_init=False,
        tokenizer=tokenizer or walks.vocabulary(),
        is_diffusion=False,
        get_vocab_size=lambda: logits,
    )
    return types.SimpleNamespace(
        model_config=model,
        parallel_config=types.SimpleNamespace(distributed_executor_backend=launcher),
        scheduler_config=types.SimpleNamespace(max_num_seqs=requests),
        structured_outputs_config=types.SimpleNamespace(
            backend="domino", reasoning_parser="", reasoning_parser_plugin="", enable_in_reasoning=False
        ),
        num_speculative_tokens=drafts,
    )


class Asked:
    """A request as vLLM's engine has it."""

    def __init__(self, kind, text, number=0, stops=()):
        names = {"ebnf": "grammar", "lark": "grammar"}
        value = json.loads(text) if kind == "choice" else text
        params = StructuredOutputsParams(**{names.get(kind, kind): value})
        params._backend = "domino"
        self.request_id = str(number)
        self.sampling_params = types.SimpleNamespace(
            structured_outputs=params, all_stop_token_ids=set(stops)
        )
        self.structured_output_request = StructuredOutputRequest(params=params)
        self.use_structured_output = True
        self.prompt_token_ids, self.all_token_ids = [], []

    @property
    def grammar(self):
        return self.structured_output_request.grammar


def begun(manager, *asked):
    """Requests whose grammars are there, or have failed."""
    for request in asked:
        manager.grammar_init(request)
    until = time.monotonic() + 30
    while any(request.grammar is None for request in asked):
        assert time.monotonic() < until, "grammars are not there"
        time.sleep(0.002)
    return asked


class Fast:
    """A fast tokenizer of transformers, as far as anybody asks."""

    eos_token_id = 2

    @property
    def backend_tokenizer(self):
        return self

    def to_str(self):
        return (common.MODEL / "tokenizer.json").read_text(encoding="utf-8")


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


class Thoughts:
    """A parser of reasoning that ends at one token."""

    def __init__(self, end):
        self.end = end

    def is_reasoning_end(self, tokens):
        return self.end in tokens

    def is_reasoning_end_streaming(self, tokens, fresh):
        return self.end in fresh


@unittest.skipUnless(HAS, WHY)
class Scheduler(unittest.TestCase):
    """Whole texts through vLLM's own manager: rows of batches, with and without drafts."""

    def requests(self, manager, count):
        asked = []
        for number in range(count):
            # Most of them over one grammar.
            language = 0 if number % 3 else number // 3 % len(walks.LANGUAGES)
            kind, text, _ = walks.LANGUAGES[language]
            # Some end by tokens of their own, of which one is a hole.
            ends = [walks.ENDS[1], 264] if number % 5 == 4 else walks.ENDS
            asked.append((language, ends, Asked(kind, text, number, ends)))
        begun(manager, *(request for _, _, request in asked))
        return [(walks.Request(kind, one.grammar, ends), one) for kind, ends, one in asked]

    def drafted(self, request, chance, most):
        """A draft, right up to some place."""
        tokens, ahead = [], walks.Request(0, None)
        ahead.oracle, ahead.tokens = request.oracle, list(request.tokens)
        for _ in range(chance.randrange(most + 1)):
            ahead.prefix = ahead.text()
            legal = [] if ahead.ended else ahead.allowed()
            right = legal and chance.random() < 0.8
            tokens.append(chance.choice(legal) if right else chance.randrange(LOGITS))
            ahead.tokens.append(tokens[-1])
        return tokens

    def rows_after(self, request, draft):
        """What may follow before each drafted token and after the last, and None behind the end."""
        ahead = walks.Request(0, None)
        ahead.oracle, ahead.tokens = request.oracle, list(request.tokens)
        rows = []
        for token in [*draft, None]:
            ahead.prefix = ahead.text()
            rows.append(None if ahead.ended else ahead.allowed())
            ahead.tokens.append(token)
        return rows

    def walk(self, drafts, count, seed):
        chance = random.Random(seed)
        with mock.patch.dict(os.environ, {"DOMINO_OPTIONS": '{"schema": {"white_space": "compact"}}'}):
            manager = StructuredOutputManager(settings(drafts=drafts, requests=count))
            self.addCleanup(manager.clear_backend)
            running = self.requests(manager, count)
        seen = refused = 0
        for _ in range(60):
            running = [pair for pair in running if not pair[0].ended and chance.random() > 0.02]
            if not running:
                break
            chance.shuffle(running)
            batch = running[: max(1, chance.randrange(len(running) + 1))]
            scheduled = {}
            for request, asked in batch:
                draft = self.drafted(request, chance, drafts)
                kept = manager.validate_tokens(asked, draft)
                refused += len(draft) - len(kept)
                self.assertEqual(kept, self.right(request, draft))
                # The scheduler pads refused drafts.
                scheduled[asked.request_id] = kept + [-1] * (len(draft) - len(kept))
            requests = {asked.request_id: asked for _, asked in batch}
            mask = manager.grammar_bitmask(requests, list(requests), scheduled)
            for index, (request, asked) in enumerate(batch):
                draft = [token for token in scheduled[asked.request_id] if token >= 0]
                for place, wanted in enumerate(self.rows_after(request, draft)):
                    row = mask[index * (drafts + 1) + place].tolist()
                    found = list(range(LOGITS)) if wanted is None else wanted
                    self.assertEqual(walks.tokens_of(row, LOGITS), found, (request.prefix, draft))
                    seen += 1
                # The model agrees with some of the draft, then writes a token of its own.
                agreed = draft[: chance.randrange(len(draft) + 1)]
                rows = self.rows_after(request, agreed)
                own = [] if rows[-1] is None else [chance.choice(rows[-1])]
                for token in agreed + own:
                    request.take(token)
                asked.all_token_ids += agreed + own
                self.assertTrue(manager.accept_tokens(asked, agreed + own))
                self.assertEqual(asked.grammar.is_terminated(), request.ended)
        return seen, refused

    def right(self, request, draft):
        """The drafted tokens that may follow."""
        rows, kept = self.rows_after(request, draft), []
        for token, row in zip(draft, rows):
            if row is None or token not in row:
                break
            kept.append(token)
        return kept

    def test_masks_begin_behind_thoughts(self):
        """Rows and drafts where a draft goes from thoughts, which a token ends, into the answer."""
        over = walks.TOKENS.index(b"]]")
        a, b, c, end = 97, 98, 99, walks.ENDS[0]
        oracle = walks.Oracle([b"ab", b"ac"])
        for draft, kept, begins in [
            ([a, c, c], [a, c, c], None),
            ([over, a, b], [over, a, b], 1),
            ([c, over, a, a], [c, over, a], 2),
            ([c, c, over], [c, c, over], 3),
            ([over, c, a], [over], 1),
            ([over, a, b, end, c], [over, a, b, end], 1),
            ([], [], None),
        ]:
            with self.subTest(draft):
                manager = StructuredOutputManager(settings(drafts=5))
                self.addCleanup(manager.clear_backend)
                manager.reasoner_cls = lambda tokenizer: Thoughts(over)
                (asked,) = begun(manager, Asked("choice", '["ab", "ac"]', 0, walks.ENDS))
                self.assertEqual(manager.validate_tokens(asked, draft), kept)
                padded = kept + [-1] * (len(draft) - len(kept))
                mask = manager.grammar_bitmask({"0": asked}, ["0"], {"0": padded})
                for place in range(len(kept) + 1):
                    row = walks.tokens_of(mask[place].tolist(), LOGITS)
                    answer = [] if begins is None else kept[begins:place]
                    if begins is None or place < begins or end in answer:
                        self.assertEqual(row, list(range(LOGITS)))
                    else:
                        text = b"".join(walks.TOKENS[token] for token in answer)
                        self.assertEqual(row, oracle.allowed(text))
                asked.all_token_ids += kept
                self.assertTrue(manager.accept_tokens(asked, kept))
                self.assertEqual(asked.grammar.is_terminated(), end in kept)

    def test_64_requests(self):
        seen, _ = self.walk(0, 64, 1)
        self.assertGreater(seen, 200)

    def test_so_many_that_threads_fill_them(self):
        seen, _ = self.walk(0, 200, 2)
        self.assertGreater(seen, 400)

    def test_drafts(self):
        seen, refused = zip(*(self.walk(drafts, 64, drafts) for drafts in (1, 3, 7)))
        self.assertGreater(min(seen), 200)
        self.assertGreater(sum(refused), 60)


if __name__ == "__main__":
    unittest.main()
