"""vLLM's manager of structured outputs with our back end, and requests for it."""

import json
import time
import types

import common

from . import hosts, walks

WHY = "LEFT OUT: vLLM's calls, which need torch, numpy, pydantic and its files (`.ci/hosts` gets them)"
try:
    import numpy  # noqa: F401
    import pydantic  # noqa: F401

    from . import vllm_host

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
