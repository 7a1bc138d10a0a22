"""Texts of a grammar by `transformers`: values of a type in one call, a logits processor, and generation
with drafts.

>>> person = generate(model, tokenizer, "A person: ", Person)         # doctest: +SKIP
>>> processor = GrammarProcessor(compiled)                            # doctest: +SKIP
>>> model.generate(**inputs, logits_processor=[processor])            # doctest: +SKIP
>>> model.generate(**inputs, custom_generate=with_drafts, constraint=compiled.constraint(),
...                drafter=Drafter(compiled))                         # doctest: +SKIP

Needs `torch` and `transformers`.
"""

import inspect
import json
import weakref
from typing import Any, NamedTuple

import torch
from transformers import DynamicCache, LogitsProcessor, LogitsProcessorList

from . import Compiled, Compiler, Constraint, Drafter, Grammar, Mask, Vocabulary, fill_batch
from .errors import DominoError, VocabularyError

# Rows of logits may have no token, as models pad them: DeepSeek-V2 has the most that is known, 102,400 for
# 100,002 tokens, a fortieth. Where a sixteenth and more have none, the vocabulary is another model's.
_MOST_PADDING = 16
# Compilers by tokenizer, for `generate`.
_compilers = weakref.WeakKeyDictionary()


def _applied(scores, mask, vocabulary_size):
    """Minus infinity for all tokens that are not in the mask; its rows are those of the scores."""
    words = torch.frombuffer(bytearray(mask.tobytes()), dtype=torch.int32)
    words = words.view(mask.shape)[: scores.shape[0]].to(scores.device)
    shifts = torch.arange(32, dtype=torch.int32, device=scores.device)
    allowed = ((words.unsqueeze(-1) >> shifts) & 1).bool().flatten(1)
    width = scores.shape[-1]
    if (width - vocabulary_size) * _MOST_PADDING >= width:
        text = f"the model has {width} rows of logits, and the vocabulary {vocabulary_size} tokens"
        raise VocabularyError(f"{text}: it is another model's")
    if allowed.shape[-1] < width:
        allowed = torch.nn.functional.pad(allowed, (0, width - allowed.shape[-1]))
    return scores.masked_fill(~allowed[:, :width], float("-inf"))


class GrammarProcessor(LogitsProcessor):
    """Lets a model write only texts of a grammar: of one `Compiled` for all rows of a batch, or of one for
    each.

    It follows the texts by the tokens that were added since its last call. Another call of `generate` begins
    anew: other rows, another prompt, or more than one token more. One whose prompt is the whole text of the
    last call and one token goes on with it, unless `reset` came between. For beam search say `beams=True`:
    rows then change places, and those that are lost already (with a score of minus infinity) may have left
    the grammar.
    """

    def __init__(self, grammar, *, beams=False):
        self.beams = beams
        self.grammars = [grammar] if isinstance(grammar, (Compiled, Constraint)) else list(grammar)
        for grammar in self.grammars:
            if not isinstance(grammar, (Compiled, Constraint)):
                raise TypeError(f"{type(grammar).__name__} is neither a Compiled nor a Constraint")
        self.reset()

    def reset(self):
        """Forgets all texts, for another call of `generate`."""
        self.prompt = None
        self.length = 0
        self.texts = []

    def _begins(self, input_ids):
        """Is this the first call of a `generate`? One `generate` adds a token to each row at a time."""
        if self.prompt is None or input_ids.shape[0] != len(self.texts):
            return True
        start = self.prompt.shape[1]
        if not torch.equal(input_ids[:, :start], self.prompt):
            return True
        if input_ids.shape[1] == self.length + 1:
            return False
        if start < input_ids.shape[1] <= self.length:
            before = input_ids[:, start:-1].tolist()
            if all(one == known[: len(one)] for one, (known, _) in zip(before, self.texts)):
                text = "a text went back: for generation with an assistant use with_drafts, or reset()"
                raise DominoError(text)
        return True

    def __call__(self, input_ids, scores):
        """Masks `scores` (rows, vocabulary) of the tokens that come after `input_ids` (rows, length)."""
        rows = input_ids.shape[0]
        if self._begins(input_ids):
            self.prompt = input_ids.clone()
            self.texts = [([], self._at_start(row, rows)) for row in range(rows)]
        self.length = input_ids.shape[1]
        written = input_ids[:, self.prompt.shape[1] :].tolist()
        self.texts = [self._followed(row, tokens) for row, tokens in enumerate(written)]
        going = [(row, text) for row, (_, text) in enumerate(self.texts) if text and not text.is_ended()]
        first = self.grammars[0]
        vocabulary = (first if isinstance(first, Compiled) else first.compiled).vocabulary
        mask = Mask(vocabulary, rows)
        fill_batch([text for _, text in going], mask, [row for row, _ in going])
        masked = _applied(scores, mask, vocabulary.size)
        # A row that has ended is padded by whoever called, whatever it gets here.
        for row, (_, text) in enumerate(self.texts):
            if text is None or text.is_ended():
                masked[row] = scores[row]
        return masked

    def _at_start(self, row, rows):
        if len(self.grammars) not in (1, rows):
            raise DominoError(f"{len(self.grammars)} grammars were given for {rows} rows")
        grammar = self.grammars[row % len(self.grammars)]
        return grammar.constraint() if isinstance(grammar, Compiled) else grammar.fork()

    def _followed(self, row, tokens):
        """Tokens of a row and the constraint behind them; None where that row is lost."""
        known, text = self.texts[row]
        if self.beams:
            before = [one for one in self.texts if tokens[: len(one[0])] == one[0]]
            if not before:
                return tokens, None
            known, text = max(before, key=lambda one: len(one[0]))
            text = text and text.fork()
        elif tokens[: len(known)] != known:
            text = "a row has changed what it had: for beam search say GrammarProcessor(..., beams=True)"
            raise DominoError(text)
        for token in tokens[len(known) :]:
            if text is None or text.is_ended():
                break
            if self.beams and not text.allows(token):
                return tokens, None
            text.advance(token)
        return tokens, text


def with_drafts(
    model,
    input_ids,
    logits_processor=None,
    stopping_criteria=None,
    generation_config=None,
    constraint=None,
    drafter=None,
    longest=16,
    streamer=None,
    **model_kwargs,
):
    """Generation with drafts, for `model.generate(..., custom_generate=with_drafts, constraint=...,
    drafter=...)`: the text that masks alone make, in fewer passes where drafts are right. One row, greedy or
    sampled.

    `constraint`: where the text is; it is followed. `drafter`: a `Drafter` of its grammar; without one it is
    a loop with masks alone. `longest`: tokens of a draft at most. Every token is drawn after the same
    processors and by the same random numbers as without drafts, so a sampled text is the same too where a
    pass over several tokens gives the same logits as several passes."""
    if input_ids.shape[0] != 1:
        raise DominoError("with_drafts writes one row at a time")
    if constraint is None:
        raise DominoError("with_drafts needs a constraint: constraint=compiled.constraint()")
    processors = logits_processor if logits_processor is not None else LogitsProcessorList()
    room = generation_config.max_length - input_ids.shape[1] if generation_config.max_length else 1 << 30
    sequence, written = input_ids, 0
    name = "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"
    cache = model_kwargs.get(name)
    cache = DynamicCache() if cache is None else cache
    ends, mask = False, Mask(constraint.compiled.vocabulary, longest + 1)
    while not ends and written < room and not constraint.is_ended():
        draft = []
        if drafter is not None:
            most = min(longest, room - written - 1)
            draft = drafter.draft(constraint, most, tokens=sequence[0].tolist()) if most > 0 else []
        before = cache.get_seq_length()
        drafted = torch.tensor([draft], dtype=sequence.dtype, device=sequence.device)
        fresh = torch.cat([sequence[:, before:], drafted.view(1, len(draft))], dim=1)
        with torch.no_grad():
            passed = model(input_ids=fresh, use_cache=True, logits_to_keep=len(draft) + 1, **{name: cache})
        fill_batch([constraint], mask, drafts=[draft])
        logits = passed.logits[0, -(len(draft) + 1) :].float()
        masked = _applied(logits, mask, constraint.compiled.vocabulary.size)
        for place in range(len(draft) + 1):
            scores = processors(sequence, masked[place : place + 1])
            token = _drawn(scores, generation_config)
            if drafter is not None:
                drafter.learn(constraint, token, tokens=sequence[0].tolist())
            constraint.advance(token)
            sequence = torch.cat([sequence, sequence.new_tensor([[token]])], dim=1)
            written += 1
            if streamer is not None:
                streamer.put(sequence[:, -1].cpu())
            ends = constraint.is_ended() or written >= room
            ends = ends or bool(stopping_criteria is not None and stopping_criteria(sequence, None).all())
            if ends or place == len(draft) or token != draft[place]:
                break
        # The last token's keys and values are not there yet, nor are those of refused tokens to stay.
        if cache.get_seq_length() > sequence.shape[1] - 1:
            cache.crop(sequence.shape[1] - 1 - cache.get_seq_length())
    if streamer is not None:
        streamer.end()
    return sequence


class Answer(NamedTuple):
    """A value, and the thought before it."""

    value: Any
    reasoning: str


def generate(
    model,
    tokenizer,
    prompt,
    kind,
    /,
    *,
    drafts=True,
    reasoning=None,
    reasoning_tokens=None,
    marks=("<think>", "</think>"),
    **options,
):
    """Writes a value: `kind` is a type that pydantic knows, a `dict` with a JSON Schema, or a `Grammar`,
    whose text is returned as a `str`.

    `prompt`: a text, or a list of messages for the tokenizer's chat template. `options` go to
    `model.generate`, such as `max_new_tokens` (without it 256) or `do_sample`. A text that was cut is
    completed as shortly as the grammar allows, so there is always a value. A vocabulary is read once for a
    tokenizer. With `drafts` a pass writes several tokens where they can be guessed; they change none.

    With `reasoning` the model may think before it writes: `optional`, `open` (the prompt ends inside a thought)
    or `required`, or `off`; `auto` sees by the end of the prompt whether it has opened one. An `Answer` is
    returned then. `marks` stand around thoughts, which are closed after `reasoning_tokens` tokens."""
    compiler = _compilers.get(tokenizer)
    if compiler is None:
        compiler = _compilers[tokenizer] = Compiler(Vocabulary.from_tokenizer(tokenizer))
    if isinstance(prompt, str):
        inputs = tokenizer(prompt, return_tensors="pt")
    else:
        inputs = tokenizer.apply_chat_template(
            prompt, add_generation_prompt=True, return_tensors="pt", return_dict=True
        )
    grammar = kind
    if reasoning is not None:
        if reasoning == "auto":
            reasoning = _place_behind(tokenizer.decode(inputs["input_ids"][0].tolist()), marks)
        grammar = kind if isinstance(kind, Grammar) else Grammar.json_schema(kind)
        grammar = grammar.after_thought(reasoning, open=marks[0], close=marks[1])
    compiled = compiler.compile(grammar)
    options = {"max_new_tokens": 256, **options}
    constraint = compiled.constraint(reasoning_tokens=reasoning_tokens)
    model.generate(
        **inputs.to(model.device),
        custom_generate=with_drafts,
        constraint=constraint,
        drafter=Drafter(compiled) if drafts else None,
        **options,
    )
    # A text that has ended needs no more; that of any other goes on.
    rest = b"" if constraint.is_ended() else constraint.finish_text()
    if reasoning is None:
        return _value_of(kind, (constraint.text + rest).decode())
    if constraint.advance_text(rest) < len(rest):
        raise DominoError("the thought could not be closed")
    return Answer(_value_of(kind, constraint.answer.decode()), constraint.reasoning.decode())


def _place_behind(prompt, marks):
    """Where a thought is in the answer to a prompt that ends so."""
    prompt = prompt.rstrip()
    if prompt.endswith(marks[0].rstrip()):
        return "open"
    return "off" if prompt.endswith(marks[1]) else "optional"


def _value_of(kind, text):
    if isinstance(kind, Grammar):
        return text
    if isinstance(kind, (dict, bool)):
        return json.loads(text)
    from pydantic import TypeAdapter

    return TypeAdapter(kind).validate_json(text)


def _drawn(scores, generation_config):
    """The token that a row of scores is drawn to."""
    if generation_config is not None and generation_config.do_sample:
        chances = torch.softmax(scores, dim=-1)
        return int(torch.multinomial(chances, num_samples=1)[0, 0])
    return int(scores.argmax(dim=-1)[0])
