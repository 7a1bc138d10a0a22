"""The back end along the calls of SGLang's scheduler, whose functions are read from its files."""

import json
import os
import random
import types
import unittest
from unittest import mock

import common

from . import hosts, walks
from .sglang_calls import HAS, LOGITS, WHY, Asked, manager, ready

if HAS:
    import torch

    from .sglang_calls import Options, base, ours


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
