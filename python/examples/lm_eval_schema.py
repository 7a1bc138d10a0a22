"""A model of lm-eval whose answers are texts of a grammar:

python lm_eval_schema.py --model domino --model_args pretrained=MODEL,regex='(yes|no)' --tasks TASK

Needs the packages lm-eval, transformers and torch. Only `generate_until` is constrained: likelihoods are the model's.
"""

from lm_eval.__main__ import cli_evaluate
from lm_eval.api.registry import register_model
from lm_eval.models.huggingface import HFLM

from domino_decoding import Compiler, Grammar, Vocabulary
from domino_decoding.transformers import GrammarProcessor


@register_model("domino")
class Domino(HFLM):
    """A model of transformers, with a regular expression for what it writes."""

    def __init__(self, *arguments, regex, **options):
        super().__init__(*arguments, **options)
        self.compiled = Compiler(Vocabulary.from_tokenizer(self.tokenizer)).compile(Grammar.regex(regex))

    def _model_generate(self, context, max_length, stop, **options):
        processors = [GrammarProcessor(self.compiled)]
        return super()._model_generate(context, max_length, stop, logits_processor=processors, **options)


if __name__ == "__main__":
    cli_evaluate()
