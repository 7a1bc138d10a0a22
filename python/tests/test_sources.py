"""Vocabularies and grammars of other packages' objects."""

import base64
import dataclasses
import json
import tempfile
import typing
import unittest

import common
from domino_decoding import Compiler, Grammar, Mask, Vocabulary, errors

try:
    import tokenizers
except ImportError:
    tokenizers = None
try:
    import pydantic
except ImportError:
    pydantic = None

PATH = common.MODEL / "tokenizer.json"


class Sources(unittest.TestCase):
    @unittest.skipUnless(tokenizers, "LEFT OUT: the package tokenizers is not installed")
    def test_a_tokenizer_and_its_file_are_one_vocabulary(self):
        of_file = Vocabulary.from_file(common.MODEL)
        own = tokenizers.Tokenizer.from_file(str(PATH))
        ends = of_file.end_of_text
        for made in [
            Vocabulary.from_tokenizer(own, end_of_text=ends),
            Vocabulary.from_json(PATH.read_text(encoding="utf-8"), end_of_text=ends),
            Vocabulary.from_tokenizer(of_file),
        ]:
            self.assertEqual(made.fingerprint, of_file.fingerprint)

        class OfTransformers:
            backend_tokenizer, eos_token_id = own, ends[0]

        self.assertEqual(Vocabulary.from_tokenizer(OfTransformers()).fingerprint, of_file.fingerprint)

    @unittest.skipUnless(tokenizers, "LEFT OUT: the package tokenizers is not installed")
    @unittest.skipUnless(
        common.shared(), "LEFT OUT: real tokenizers, whose data is not there (DOMINO_SHARED)"
    )
    def test_real_tokenizers_are_the_same_by_both_ways(self):
        seen = 0
        for path in sorted((common.shared() / "data" / "tokenizers").glob("*/tokenizer.json")):
            own, of_file = tokenizers.Tokenizer.from_file(str(path)), Vocabulary.from_file(path)
            made = Vocabulary.from_tokenizer(own, end_of_text=of_file.end_of_text)
            for token in range(of_file.size):
                self.assertEqual(made.bytes(token), of_file.bytes(token), path)
            # The package numbers special tokens without holes, and what it says holds.
            for number, name in made.special.items():
                self.assertEqual(own.token_to_id(name), number, path)
            text = 'He said: "\u00e9\u6f22 \U0001f600"\n\t{}  x'
            tokens = own.encode(text, add_special_tokens=False).ids
            self.assertEqual(made.concat(tokens).decode().lstrip(" "), text)
            seen += 1
        self.assertGreater(seen, 3)

    def test_ranks(self):
        ranks = {bytes([byte]): byte for byte in range(256)} | {b"ab": 256}
        wanted = Vocabulary.from_tiktoken(ranks, special_tokens={"<|endoftext|>": 257})
        self.assertEqual((wanted.end_of_text, wanted.bytes(256)), ([257], b"ab"))
        lines = [f"{base64.b64encode(piece).decode()} {rank}" for piece, rank in ranks.items()]
        for text, right in [("\n".join(lines), True), ("ab", False), ("!! 3", False), ("YQ== x", False)]:
            with tempfile.NamedTemporaryFile("w", suffix=".tiktoken") as file:
                file.write(text)
                file.flush()
                if right:
                    made = Vocabulary.from_tiktoken(file.name, special_tokens={"<|endoftext|>": 257})
                    self.assertEqual(made.fingerprint, wanted.fingerprint)
                else:
                    with self.assertRaises(errors.VocabularyError):
                        Vocabulary.from_tiktoken(file.name, end_of_text=[9])

        class Encoding:
            _mergeable_ranks, _special_tokens = ranks, {"<|endoftext|>": 257}

        self.assertEqual(Vocabulary.from_tiktoken(Encoding()).fingerprint, wanted.fingerprint)

    @unittest.skipUnless(pydantic, "LEFT OUT: pydantic is not installed")
    def test_types(self):
        class Person(pydantic.BaseModel):
            name: str
            age: int

        compiler = common.compiler()
        for made, text in [
            (Grammar.from_pydantic(Person), b'{"name": "A", "age": 3}'),
            (Grammar.from_type(typing.List[int]), b"[1, 2]"),
            (Grammar.from_type(typing.Literal["a", "b"]), b'"b"'),
            (Grammar.from_type(typing.Optional[bool]), b"null"),
        ]:
            constraint = compiler.compile(made).constraint()
            self.assertEqual(constraint.advance_text(text), len(text))
            self.assertTrue(constraint.is_complete())

    @unittest.skipUnless(pydantic, "LEFT OUT: pydantic is not installed")
    def test_schemas_and_compilers_take_types(self):
        class Person(pydantic.BaseModel):
            name: str

        texts = {Grammar.json_schema(Person).text, Grammar.from_pydantic(Person).text}
        texts.add(common.compiler().compile(Person).grammar.text)
        self.assertEqual(len(texts), 1)

    def test_compilers_take_schemas(self):
        for schema in [{"type": "integer"}, True]:
            constraint = common.compiler().compile(schema).constraint()
            self.assertEqual(constraint.advance_text("7"), 1)
        with self.assertRaises(TypeError):
            common.compiler().compile("[0-9]")

    def test_pretrained(self):
        made = Vocabulary.from_pretrained(common.MODEL)
        self.assertEqual(made.fingerprint, Vocabulary.from_file(common.MODEL).fingerprint)
        if tokenizers is None:
            with self.assertRaises(errors.VocabularyError) as caught:
                Vocabulary.from_pretrained("OWNER/NAME")
            self.assertIn("pip install", caught.exception.hint)

    @unittest.skipUnless(pydantic, "LEFT OUT: pydantic is not installed")
    def test_types_have_no_other_keys(self):
        class Closed(pydantic.BaseModel):
            n: int

        class Open(pydantic.BaseModel, extra="allow"):
            n: int

        @dataclasses.dataclass
        class Data:
            n: int

        class Outer(pydantic.BaseModel):
            inner: Closed
            map: typing.Dict[str, int]

        compiler = common.compiler()
        more, outer = b'{"n": 1, "m": 2}', b'{"inner": {"n": 1}, "map": {"a": 1}}'
        for made, text, whole in [
            (Grammar.from_pydantic(Closed), b'{"n": 1}', True),
            (Grammar.from_pydantic(Closed), more, False),
            (Grammar.from_pydantic(Closed, closed=False), more, True),
            (Grammar.from_pydantic(Closed, closed=None), more, False),
            (Grammar.from_pydantic(Open), more, True),
            (Grammar.from_type(Data), more, False),
            (Grammar.from_type(typing.List[Closed]), b"[" + more + b"]", False),
            (Grammar.from_type(typing.Dict[str, int]), more, True),
            (Grammar.from_pydantic(Outer), outer, True),
            (Grammar.from_pydantic(Outer), outer.replace(b"}, ", b', "m": 1}, '), False),
            (Grammar.json_schema(Closed.model_json_schema()), more, True),
        ]:
            constraint = compiler.compile(made).constraint()
            self.assertEqual(constraint.advance_text(text) == len(text), whole, text)

    @unittest.skipUnless(pydantic, "LEFT OUT: pydantic is not installed")
    def test_what_is_no_type(self):
        for thing in [object(), 3, "__import__('os')", b"int", typing.Callable[[], int]]:
            with self.assertRaises(errors.GrammarError):
                Grammar.from_type(thing)

    @unittest.skipIf(pydantic, "pydantic is installed")
    def test_types_need_pydantic(self):
        with self.assertRaises(errors.GrammarError) as caught:
            Grammar.from_type(typing.List[int])
        self.assertIn("pydantic", caught.exception.hint)

    def test_all_notations(self):
        tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
        tag = {"type": "structural_tag", "format": {"type": "const_string", "value": "ab"}}
        for made, text in [
            (Grammar.gbnf('root ::= "a" [b]'), "ab"),
            (Grammar.ebnf('root ::= "a" [b]'), "ab"),
            (Grammar.regex("ab"), "ab"),
            (Grammar.lark('start: "a" "b"'), "ab"),
            (Grammar.lark("start: A B\nA: /a+/\nB: /b/", greedy=True), "aab"),
            (Grammar.json_schema(json.dumps({"const": 1})), "1"),
            (Grammar.structural_tag(tag), "ab"),
            (
                Grammar.tools(tools, choice="required"),
                '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>',
            ),
        ]:
            vocabulary = common.letters()
            special = {257: "<tool_call>", 258: "</tool_call>"}
            tokens = {byte: bytes([byte]) for byte in range(256)}
            if made.notation == "tools":
                vocabulary = Vocabulary.from_tokens(tokens, end_of_text=[256], special=special)
            constraint = Compiler(vocabulary).compile(made).constraint()
            if made.notation != "tools":
                self.assertEqual(constraint.advance_text(text), len(text))
                self.assertTrue(constraint.is_complete(), made)
            else:
                mask = Mask(vocabulary)
                constraint.fill(mask)
                self.assertTrue(mask.tokens())


if __name__ == "__main__":
    unittest.main()
