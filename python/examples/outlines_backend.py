"""A backend for outlines: python outlines_backend.py MODEL (a folder, or a name on the hub)

Needs the packages outlines, transformers and torch.
"""

import sys

import outlines
import transformers
from outlines.backends.base import BaseBackend

from domino_decoding import Compiler, Grammar, Vocabulary
from domino_decoding.transformers import GrammarProcessor


class DominoBackend(BaseBackend):
    """Logits processors of domino_decoding for a model of outlines."""

    def __init__(self, model):
        self.compiler = Compiler(Vocabulary.from_tokenizer(model.hf_tokenizer))

    def _processor(self, grammar):
        return GrammarProcessor(self.compiler.compile(grammar))

    def get_json_schema_logits_processor(self, json_schema):
        return self._processor(Grammar.json_schema(json_schema))

    def get_regex_logits_processor(self, regex):
        return self._processor(Grammar.regex(regex))

    def get_cfg_logits_processor(self, grammar):
        return self._processor(Grammar.lark(grammar))


def main():
    name = sys.argv[1]
    model = outlines.from_transformers(
        transformers.AutoModelForCausalLM.from_pretrained(name),
        transformers.AutoTokenizer.from_pretrained(name),
    )
    processor = DominoBackend(model).get_regex_logits_processor("yes|no")
    print(outlines.Generator(model, processor=processor)("Is water wet? ", max_new_tokens=5))


if __name__ == "__main__":
    main()
