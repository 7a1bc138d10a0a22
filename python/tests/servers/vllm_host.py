"""vLLM's manager of structured outputs without vLLM: what its files import of the rest has light stand-ins.

Its own back ends are stand-ins too, unless they are asked for (`real`): then xgrammar, llguidance and
transformers are needed.
"""

import dataclasses
import importlib
import re
import sys
import types
from unittest import mock

import pydantic

from . import hosts


class Lazy(types.ModuleType):
    """A module that is imported when it is first used, as vLLM's own kind."""

    def __init__(self, _, __, name):
        super().__init__(name)

    def __getattr__(self, name):
        return getattr(importlib.import_module(self.__name__), name)


class Backend:
    """A back end of vLLM's own, of which nothing is asked."""

    def __init__(self, *_, **__):
        raise AssertionError("another back end was made")


class Adapter:
    """A reasoning parser of the newer kind, which no request here has."""


def refuse(*_, **__):
    raise AssertionError("another back end was asked")


def stand_ins(real=False):
    """Makes what vLLM's files import beside those that are looked at, then imports these."""
    hosts.folder("vllm", hosts.VLLM)
    kinds = ("debug", "info", "warning", "error", "exception", "warning_once")
    logger = types.SimpleNamespace(**{name: mock.Mock() for name in kinds})
    hosts.stand_in("vllm.logger", init_logger=lambda name: logger)
    for name in ("config", "utils", "v1", "parser", "parser.engine"):
        hosts.folder(f"vllm.{name}", hosts.VLLM.joinpath(*name.split(".")), VllmConfig=object)

    def config(kind):
        return pydantic.dataclasses.dataclass(kind, config=pydantic.ConfigDict(extra="forbid"))

    def tokenizer_of(model_config):
        return model_config.tokenizer

    hosts.stand_in("vllm.config.utils", config=config)
    hosts.stand_in("vllm.utils.hashing", safe_hash=None)
    hosts.stand_in("vllm.utils.import_utils", LazyLoader=Lazy)
    hosts.stand_in("vllm.utils.mistral", is_mistral_tokenizer=lambda tokenizer: False)
    hosts.stand_in("vllm.parser.engine.adapters", ParserEngineReasoningAdapter=Adapter)
    hosts.stand_in("vllm.reasoning", ReasoningParserManager=None)
    hosts.stand_in("vllm.tokenizers", TokenizerLike=object, cached_tokenizer_from_config=tokenizer_of)
    hosts.stand_in("vllm.envs", VLLM_XGRAMMAR_CACHE_MB=512)
    _parameters()
    _back_ends(real)
    hosts.imported("vllm.v1.structured_output")


def _parameters():
    """Parameters of requests, and the check of them, as they are in vLLM's file."""
    names = {
        "dataclass": dataclasses.dataclass,
        "field": dataclasses.field,
        "VLLMValidationError": hosts.imported("vllm.exceptions").VLLMValidationError,
        "check_json_nesting": lambda *_, **__: None,
        "is_mistral_tokenizer": lambda tokenizer: False,
        "_is_non_tekken_mistral": lambda tokenizer: False,
        "_get_llg_tokenizer": lambda tokenizer: None,
    }
    file = hosts.VLLM / "sampling_params.py"
    params = hosts.class_of(file, "StructuredOutputsParams", names)
    check = hosts.function_of(file, "_validate_structured_outputs", names)
    hosts.stand_in(
        "vllm.sampling_params",
        SamplingParams=type("SamplingParams", (), {"_validate_structured_outputs": check}),
        StructuredOutputsParams=params,
        check_json_nesting=names["check_json_nesting"],
    )


def _back_ends(real):
    """vLLM's own back ends, by a package whose first file, which imports them, is run afterwards."""
    place = hosts.VLLM / "v1" / "structured_output"
    functions = ("strip_speculative_padding", "grammar_is_likely_lark", "choice_as_grammar")
    utils = {name: hosts.function_of(place / "utils.py", name, {"re": re}) for name in functions}
    utils["compile_regex_with_timeout"] = lambda function, pattern: function(pattern)
    theirs = {
        "backend_outlines": {"validate_structured_output_request_outlines": refuse},
        "backend_lm_format_enforcer": {"validate_structured_output_request_lm_format_enforcer": refuse},
        "utils": utils,
    }
    if not real:
        theirs["backend_xgrammar"] = {"XgrammarBackend": Backend, "validate_xgrammar_grammar": refuse}
        theirs["backend_guidance"] = {
            "GuidanceBackend": Backend,
            "validate_guidance_grammar": refuse,
            "has_guidance_unsupported_json_features": refuse,
        }
    hosts.folder("vllm.v1.structured_output", place)
    for name, members in theirs.items():
        hosts.stand_in(f"vllm.v1.structured_output.{name}", **members)
    del sys.modules["vllm.v1.structured_output"]
