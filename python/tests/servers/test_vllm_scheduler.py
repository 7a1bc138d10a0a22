"""Whole texts through vLLM's own manager: rows of batches, with drafts and thoughts."""

import os
import random
import unittest
from unittest import mock

from . import walks
from .vllm_calls import HAS, LOGITS, WHY, Asked, begun, settings

if HAS:
    from .vllm_calls import StructuredOutputManager


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
        with mock.patch.dict(os.environ, {"DOMINO_OPTIONS": '{"schema": {"whitespace": "compact"}}'}):
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
