"""The back end in SGLang's own manager of grammars, and along the calls of its scheduler."""

import json
import os
import random
import time
import types
import unittest
from concurrent.futures import Future
from unittest import mock

import common
import hosts
import walks

WHY = "LEFT OUT: SGLang's calls, which need torch and its files (`.ci/hosts` gets them)"
HAS = hosts.there(hosts.SGLANG)
BUFFERS = types.SimpleNamespace(buffers={})
SERVING = types.SimpleNamespace(
    skip_tokenizer_init=False,
    reasoning_parser=None,
    enable_strict_thinking=False,
    constrained_json_whitespace_pattern=None,
    constrained_json_disable_any_whitespace=True,
    constrained_json_max_whitespace_cnt=None,
)
EXEC = types.SimpleNamespace(kernel=types.SimpleNamespace(grammar_backend="domino"))
PARALLEL = types.SimpleNamespace(pp_rank=0, pp_size=1)
ENVIRON = types.SimpleNamespace(
    SGLANG_GRAMMAR_POLL_INTERVAL=hosts.Setting(0.02),
    SGLANG_GRAMMAR_MAX_POLL_ITERATIONS=hosts.Setting(200),
    SGLANG_MAX_THINK_TOKENS=hosts.Setting(-1),
)


def stand_ins():
    """What SGLang's files import beside those that are looked at."""
    srt = hosts.SGLANG
    hosts.folder("sglang", srt.parent)
    hosts.folder("sglang.srt", srt)
    for name in ("constrained", "constrained.torch_ops", "distributed", "parser", "utils", "arg_groups"):
        hosts.folder(f"sglang.srt.{name}", srt.joinpath(*name.split(".")))
    hosts.stand_in("sglang.srt.environ", envs=ENVIRON)
    hosts.stand_in("sglang.srt.parser.reasoning_parser", ReasoningParser=Parser)
    none = type("None", (), {})
    hosts.stand_in("sglang.srt.parser.response_template", ResponseTemplateReasoningDetector=none)
    hosts.stand_in(
        "sglang.srt.runtime_context",
        get_context=lambda: None,
        get_exec=lambda: EXEC,
        get_parallel=lambda: PARALLEL,
        get_resources=lambda: BUFFERS,
        get_serving=lambda: SERVING,
    )
    hosts.stand_in("sglang.srt.sampling")
    hosts.stand_in(
        "sglang.srt.sampling.sampling_params",
        get_request_reasoning_end_token_ids=lambda *_, **__: None,
        get_request_reasoning_in_grammar=lambda *_: False,
    )
    choices = hosts.imported("sglang.srt.arg_groups.choices")
    hosts.stand_in(
        "sglang.srt.server_args",
        ServerArgs=object,
        GRAMMAR_BACKEND_CHOICES=choices.GRAMMAR_BACKEND_CHOICES,
        add_grammar_backend_choices=choices.add_grammar_backend_choices,
    )
    try:
        import transformers  # noqa: F401
    except ImportError:
        hosts.stand_in("transformers", PreTrainedTokenizer=object, PreTrainedTokenizerFast=object)


class Parser:
    """A parser of reasoning that ends at one token."""

    def __init__(self, model_type, stream_reasoning, tokenizer):
        self.detector = types.SimpleNamespace(
            think_end_token="]]",
            think_excluded_tokens=[],
            get_think_end_token_ids=lambda tokenizer: [walks.TOKENS.index(b"]]")],
            get_answer_frame=lambda: None,
        )


if HAS:
    import torch

    with mock.patch.dict(os.environ):
        stand_ins()
        base = hosts.imported("sglang.srt.constrained.base_grammar_backend")
        managers = hosts.imported("sglang.srt.constrained.grammar_manager")
        from domino_decoding.integrations import sglang as ours
        from domino_decoding.integrations.options import Options

# More logits than the vocabulary has tokens, as models often have.
LOGITS = len(walks.TOKENS) + 37


class Asked(types.SimpleNamespace):
    """A request as the manager of grammars has it."""

    def __init__(self, kind, text, rid="1", reasoning=False):
        names = {"json": "json_schema", "ebnf": "ebnf", "regex": "regex", "structural_tag": "structural_tag"}
        params = dict.fromkeys(names.values())
        params[names[kind]] = text
        super().__init__(
            rid=rid,
            sampling_params=types.SimpleNamespace(**params, ebnf_full_assistant=False, custom_params=None),
            require_reasoning=reasoning,
            origin_input_ids=[],
            grammar=None,
            grammar_key=None,
            grammar_wait_ct=0,
            said=None,
        )

    def finished(self):
        return self.said is not None

    def set_finish_with_abort(self, said):
        self.said = said


def manager(tokenizer=None, logits=LOGITS, ends=walks.ENDS):
    """SGLang's manager of grammars with our back end, as its scheduler makes it."""
    group = types.SimpleNamespace(world_size=1, first_rank=0, is_first_rank=True)
    ours.install()
    return managers.GrammarManager(
        types.SimpleNamespace(
            server_args=None,
            tokenizer=tokenizer or walks.vocabulary(),
            model_config=types.SimpleNamespace(
                vocab_size=logits, hf_eos_token_id=set(ends), think_end_ids=[1]
            ),
            dp_tp_cpu_group=None,
            dp_tp_group=group,
            pp_group=None,
        )
    )


def ready(one, asked):
    """Waits for the grammars of requests, as the scheduler's loop does. Returns them."""
    for request in asked:
        one.process_req_with_grammar(request)
    for _ in range(500):
        if not one.has_waiting_grammars():
            return asked
        one.get_ready_grammar_requests()
    raise AssertionError("grammars are not there")


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


@unittest.skipUnless(HAS, WHY)
class Scheduler(unittest.TestCase):
    """The calls of SGLang's scheduler, whose functions are read from its files."""

    @classmethod
    def setUpClass(cls):
        sampling = hosts.SGLANG / "sampling" / "sampling_batch_info.py"
        names = {"GrammarRow": base.GrammarRow, "GrammarMask": base.GrammarMask}
        cls.masks_of = staticmethod(hosts.function_of(sampling, "update_regex_vocab_mask", names))
        verify = hosts.SGLANG / "speculative" / "spec_utils.py"
        cls.tree = staticmethod(hosts.function_of(verify, "traverse_tree", {}))

    def batch(self, grammars):
        """The mask of a batch as the scheduler makes it."""
        info = types.SimpleNamespace(
            grammars=grammars, temperatures=[0.0] * len(grammars), vocab_size=LOGITS, device="cpu"
        )
        self.masks_of(info)
        return info.grammar_mask

    def languages(self, one):
        """A grammar of each language, from the manager."""
        kinds = [index for index, language in enumerate(walks.LANGUAGES) if language[0] != "choice"]
        asked = [Asked(*walks.LANGUAGES[index][:2], rid=str(index)) for index in kinds]
        ready(one, asked)
        self.assertEqual([request.said for request in asked], [None] * len(asked))
        return dict(zip(kinds, (request.grammar for request in asked)))

    def test_64_requests_that_end_in_any_order(self):
        chance, grammars = random.Random(5), self.languages(manager())
        kinds = list(grammars)
        # Most of them over one grammar.
        running = [walks.Request(kinds[0], grammars[kinds[0]].copy()) for _ in range(64)]
        ended = 0
        for step in range(40):
            rows = [None if chance.random() < 0.1 else request for request in running]
            if not any(rows):
                continue
            mask = self.batch([request.grammar if request else None for request in rows])
            logits = torch.zeros(len(rows), LOGITS)
            mask.apply(logits)
            for row, request in enumerate(rows):
                if request is None or request.ended:
                    self.assertTrue((mask.vocab_mask[row] == -1).all())
                    continue
                found = walks.tokens_of(mask.vocab_mask[row].tolist(), LOGITS)
                self.assertEqual(found, request.allowed(), request.prefix)
                self.assertEqual(torch.isfinite(logits[row]).nonzero().flatten().tolist(), found)
                request.take(chance.choice(found))
                request.grammar.accept_token(request.tokens[-1])
                self.assertEqual(request.grammar.is_terminated(), request.ended)
            for row, request in enumerate(running):
                if request.ended and chance.random() < 0.5 or chance.random() < 0.02:
                    ended += request.ended
                    kind = chance.choice(kinds)
                    running[row] = walks.Request(kind, grammars[kind].copy())
            chance.shuffle(running)
        self.assertGreater(ended, 64)

    def test_trees_of_drafts(self):
        """Masks of drafts by the scheduler's own walk over a tree; then the grammar is where it was."""
        chance, grammars = random.Random(6), self.languages(manager())
        refused = 0
        for round in range(60):
            kind = chance.choice(list(grammars))
            request = walks.Request(kind, grammars[kind].copy())
            for _ in range(chance.randrange(4)):
                token = chance.choice([t for t in request.allowed() if t not in walks.ENDS] or walks.ENDS)
                if token in walks.ENDS:
                    break
                request.take(token)
                request.grammar.accept_token(token)
            nodes, parents = [walks.ENDS[0]], [-1]
            places = {0: request.prefix}
            for node in range(1, 9):
                parent = chance.randrange(node)
                before = places.get(parent)
                legal = [] if before is None else request.oracle.allowed(before)
                right = bool(legal) and chance.random() < 0.7
                token = chance.choice(legal) if right else chance.randrange(LOGITS)
                siblings = {nodes[other] for other in range(1, node) if parents[other] == parent}
                if token in siblings:
                    token = LOGITS - 1
                nodes.append(token)
                parents.append(parent)
                if token in legal and token not in walks.ENDS:
                    places[node] = before + walks.TOKENS[token]
                refused += token not in legal
            child, sibling = [-1] * 9, [-1] * 9
            for node in range(8, 0, -1):
                sibling[node], child[parents[node]] = child[parents[node]], node
            mask = request.grammar.allocate_vocab_mask(LOGITS, 9, "cpu")
            self.tree(*map(torch.tensor, (child, sibling, nodes)), request.grammar, mask, LOGITS)
            for node in range(9):
                found = walks.tokens_of(mask[node].tolist(), LOGITS)
                if node in places:
                    self.assertEqual(found, request.oracle.allowed(places[node]), (round, node))
                else:
                    self.assertTrue((mask[node] == -1).all())
            alone = request.grammar.allocate_vocab_mask(LOGITS, 1, "cpu")
            request.grammar.fill_vocab_mask(alone, 0)
            self.assertEqual(walks.tokens_of(alone[0].tolist(), LOGITS), request.allowed())
        self.assertGreater(refused, 60)

    def test_what_cannot_follow_ends_one_request(self):
        grammar = ready(manager(), [Asked("regex", "ab")])[0].grammar
        for token in [98, 1 << 20, walks.ENDS[0], -1]:
            with self.assertRaises(ValueError):
                grammar.accept_token(token)
        with self.assertRaises(ValueError):
            grammar.rollback(1)
        grammar.accept_token(97)
        with self.assertRaises(ValueError):
            grammar.rollback(2)
        grammar.accept_token(98)
        grammar.accept_token(walks.ENDS[1])
        grammar.accept_token(5)
        self.assertTrue(grammar.is_terminated())
        grammar.rollback(3)
        grammar.rollback(0)
        self.assertEqual(grammar.text.constraint.steps, 0)

    def test_a_mask_that_cannot_be_made_ends_one_request(self):
        tight = json.dumps({"limits": {"step_work": 1000, "rehearsal": 0, "step_units": 0, "ahead": 0}})
        tokenizer = ours.vocabulary_of(common.Vocabulary.from_file(common.MODEL))
        with mock.patch.dict(os.environ, {"DOMINO_OPTIONS": tight}):
            backend = ours.DominoBackend(tokenizer, tokenizer.size, None)
        free = ours.DominoBackend(tokenizer, tokenizer.size, None, options=Options())
        bad = backend._grammar("ebnf", 'root ::= [a-z ]{2,99} r2\nr2 ::= "x" [a-y]* | r2 "y"')
        good = free._grammar("regex", "[a-z]+")
        mask = good.allocate_vocab_mask(tokenizer.size, 2, "cpu")
        good.fill_vocab_mask_batched([base.GrammarRow(0, bad), base.GrammarRow(1, good)], mask)
        self.assertEqual(walks.tokens_of(mask[0].tolist(), tokenizer.size), tokenizer.end_of_text)
        self.assertGreater(len(walks.tokens_of(mask[1].tolist(), tokenizer.size)), 100)
        with self.assertRaises(ValueError):
            bad.accept_token(tokenizer.end_of_text[0])

    def test_jumps(self):
        grammar = ready(manager(), [Asked("regex", "abc(d|e)f")])[0].grammar
        helper = grammar.try_jump_forward(None)
        self.assertEqual(grammar.jump_forward_str_state(helper), ("abc", -1))
        grammar.accept_token(97)
        one = walks.TOKENS.index(b"abc")
        grammar.jump_and_retokenize([97], [one], -1)
        self.assertEqual(grammar.text.constraint.tokens, [one])
        self.assertIsNone(grammar.try_jump_forward(None))
        with self.assertRaises(ValueError):
            grammar.jump_and_retokenize([one], [97, 99], -1)
        self.assertEqual(grammar.text.constraint.tokens, [one])


if __name__ == "__main__":
    unittest.main()
