"""SGLang's manager of grammars with our back end, and requests for it."""

import os
import types
from unittest import mock

from . import hosts, walks

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
