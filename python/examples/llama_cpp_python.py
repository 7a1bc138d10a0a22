"""llama-cpp-python under a grammar: python llama_cpp_python.py MODEL.gguf

Needs the packages llama-cpp-python and numpy.
"""

import sys

import numpy
from llama_cpp import Llama, LogitsProcessorList

from domino_decoding import Compiler, Grammar, Mask, Vocabulary


def processor(compiled, prompt_length):
    """A logits processor of llama-cpp-python for one text."""
    constraint, mask, vocabulary = compiled.constraint(), Mask(compiled.vocabulary), compiled.vocabulary
    seen = prompt_length

    def masked(tokens, scores):
        nonlocal seen
        for token in tokens[seen:]:
            constraint.advance(int(token))
        seen = len(tokens)
        constraint.fill(mask)
        bits = numpy.unpackbits(numpy.asarray(mask)[0].view(numpy.uint8), bitorder="little")
        scores = numpy.array(scores)
        scores[: vocabulary.size][bits[: vocabulary.size] == 0] = -numpy.inf
        scores[vocabulary.size :] = -numpy.inf
        return scores

    return masked


def main():
    path = sys.argv[1]
    model = Llama(model_path=path, n_ctx=512, verbose=False)
    schema = {
        "type": "object",
        "required": ["name", "age"],
        "additionalProperties": False,
        "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer"}},
    }
    compiled = Compiler(Vocabulary.from_file(path)).compile(Grammar.json_schema(schema))
    prompt = model.tokenize(b"A person in JSON: ")
    processors = LogitsProcessorList([processor(compiled, len(prompt))])
    print(model(prompt, max_tokens=60, logits_processor=processors)["choices"][0]["text"])


if __name__ == "__main__":
    main()
