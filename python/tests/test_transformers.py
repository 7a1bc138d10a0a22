"""Generation by transformers: masks alone, and with drafts the same text."""

import json
import unittest

import common
from domino_decoding import Compiler, Drafter, Grammar, Vocabulary, errors, generate

try:
    import tokenizers
    import torch
    import transformers
    from domino_decoding.transformers import GrammarProcessor, with_drafts
except ImportError:
    torch = None

SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["name", "age", "tags"],
    "properties": {
        "name": {"type": "string", "maxLength": 4},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "tags": {"type": "array", "items": {"enum": ["red", "green"]}, "maxItems": 2},
    },
}


@unittest.skipUnless(torch, "LEFT OUT: transformers or torch is not installed")
class Generation(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.vocabulary = Vocabulary.from_file(common.MODEL)
        cls.compiled = Compiler(cls.vocabulary).compile(Grammar.json_schema(SCHEMA, whitespace="compact"))
        torch.manual_seed(3)
        config = transformers.LlamaConfig(
            vocab_size=cls.vocabulary.size + 11,
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=512,
            bos_token_id=1,
            eos_token_id=cls.vocabulary.end_of_text[0],
            pad_token_id=0,
        )
        # Of random weights in f64: no two logits are so near that the order of sums decides.
        cls.model = transformers.LlamaForCausalLM(config).double().eval()

    def generate(self, prompts, **options):
        prompts = torch.tensor(prompts)
        ones = torch.ones_like(prompts)
        texts = self.model.generate(prompts, attention_mask=ones, max_new_tokens=60, **options)
        return [row[prompts.shape[1] :].tolist() for row in texts]

    def test_all_rows_are_texts_of_the_grammar(self):
        for options in [{"do_sample": False}, {"do_sample": True}, {"num_beams": 3, "do_sample": False}]:
            processor = GrammarProcessor(self.compiled, beams="num_beams" in options)
            rows = self.generate([[1, 500], [1, 600]], logits_processor=[processor], **options)
            for tokens in rows:
                text = self.vocabulary.concat(tokens).decode()
                value = json.loads(text)
                self.assertEqual(set(value), {"name", "age", "tags"}, text)

    def test_a_processor_begins_anew_with_each_generate(self):
        processor = GrammarProcessor(self.compiled)
        for prompts in [[[1, 500]], [[1, 700]], [[1, 500, 600, 700]], [[1, 500], [1, 600]]]:
            fresh = self.generate(prompts, logits_processor=[GrammarProcessor(self.compiled)])
            self.assertEqual(self.generate(prompts, logits_processor=[processor]), fresh)

    def test_the_vocabulary_of_another_model_is_refused(self):
        few = Vocabulary.from_tokens([b"a", b"b", None], end_of_text=[2])
        processor = GrammarProcessor(Compiler(few).compile(Grammar.regex("a")))
        with self.assertRaises(errors.VocabularyError):
            self.generate([[1, 500]], logits_processor=[processor])

    def test_one_call_writes_a_value(self):
        class Tokenizer:
            backend_tokenizer = tokenizers.Tokenizer.from_file(str(common.MODEL / "tokenizer.json"))
            eos_token_id = self.vocabulary.end_of_text[0]

            def __call__(self, text, return_tensors):
                ids = torch.tensor([self.backend_tokenizer.encode(text).ids])
                return transformers.BatchEncoding({"input_ids": ids, "attention_mask": torch.ones_like(ids)})

        tokenizer = Tokenizer()
        for drafts in [True, False]:
            value = generate(self.model, tokenizer, "A person: ", SCHEMA, drafts=drafts, max_new_tokens=60)
            self.assertLessEqual({"name", "age", "tags"}, set(value))
        text = generate(self.model, tokenizer, "A: ", Grammar.regex("yes|no"), do_sample=False)
        self.assertIn(text, ("yes", "no"))

    def test_each_row_may_have_its_own(self):
        compiler = Compiler(self.vocabulary)
        grammars = [compiler.compile(Grammar.regex(pattern)) for pattern in ["[a-c]{3}", "no{1,3}pe"]]
        rows = self.generate([[1, 5], [1, 6]], logits_processor=[GrammarProcessor(grammars)], do_sample=False)
        for tokens, compiled in zip(rows, grammars):
            constraint = compiled.constraint()
            kept = tokens[: constraint.validate(tokens)]
            for token in kept:
                constraint.advance(token)
            self.assertTrue(constraint.is_complete())

    def test_drafts_change_no_text(self):
        for seed in range(3):
            texts, passes = [], []
            for drafter in [None, Drafter(self.compiled)]:
                for sampled in [False, True]:
                    torch.manual_seed(seed)
                    before = self.count()
                    texts += self.generate(
                        [[1, 70 + seed]],
                        custom_generate=with_drafts,
                        do_sample=sampled,
                        constraint=self.compiled.constraint(),
                        drafter=drafter,
                    )
                    passes.append(self.count() - before)
            processors = [GrammarProcessor(self.compiled)]
            plain = self.generate([[1, 70 + seed]], do_sample=False, logits_processor=processors)
            self.assertEqual(texts[0], plain[0])
            self.assertEqual(texts[:2], texts[2:])
            self.assertLess(sum(passes[2:]), sum(passes[:2]))

    passes = 0

    def count(self):
        """Passes of the model so far."""
        if not self.passes:
            type(self).passes = 1
            self.model.register_forward_hook(lambda *_: setattr(type(self), "passes", type(self).passes + 1))
        return type(self).passes


if __name__ == "__main__":
    unittest.main()
