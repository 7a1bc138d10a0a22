"""Settings of the back ends for servers, and what requests ask for."""

import json
import unittest

import common
from domino_decoding import errors
from domino_decoding.integrations import notations
from domino_decoding.integrations.options import Options

from .shared import library, options


class Settings(unittest.TestCase):
    def test_they_are_read(self):
        self.assertEqual(Options.from_environment({}), Options())
        self.assertEqual(Options.from_environment({"DOMINO_OPTIONS": "  "}), Options())
        read = options(cache="/shared", schema={"order": "any"}, grammars=3, compile_seconds=2)
        self.assertEqual((read.cache, read.grammars, read.compile_seconds), ("/shared", 3, 2))
        self.assertIsNone(read.step_seconds)

    def test_mistakes_say_what_is_wrong(self):
        for text, said in [
            ("{", "no JSON"),
            ("[1]", "must be a JSON object"),
            ('"cache"', "must be a JSON object"),
            ("[" * 100000, "no JSON"),
            ('{"cach": "/x"}', "did you mean `cache`?"),
            ('{"colour": 1}', "one of cache, schema"),
            ('{"cache": 3}', "path of a folder"),
            ('{"cache": ""}', "path of a folder"),
            ('{"schema": ["order"]}', "must be an object"),
            ('{"limits": 3}', "must be an object"),
            ('{"grammars": 0}', "from 1 on"),
            ('{"grammars": true}', "from 1 on"),
            ('{"grammars": 1.5}', "from 1 on"),
            ('{"compile_seconds": -1}', "number of seconds"),
            ('{"compile_seconds": "2"}', "number of seconds"),
            ('{"step_seconds": NaN}', "number of seconds"),
            ('{"step_seconds": true}', "number of seconds"),
        ]:
            with self.assertRaises(errors.OptionsError, msg=text) as caught:
                Options.from_environment({"DOMINO_OPTIONS": text})
            self.assertIn(said, str(caught.exception))

    def test_what_the_engine_does_not_know_is_said_at_the_start(self):
        for given in [
            {"schema": {"ordr": "any"}},
            {"schema": {"order": "some"}},
            {"schema": {"max_depth": -1}},
            {"limits": {"step_wrk": 1}},
            {"limits": {"step_work": -1}},
            {"limits": {"step_work": "x"}},
        ]:
            with self.assertRaises(errors.OptionsError, msg=given):
                library(**given)


class Notations(unittest.TestCase):
    def texts(self, kind, text, schema=None):
        compiled = common.compiler().compile(notations.read(kind, text, schema))

        def has(candidate):
            constraint = compiled.constraint()
            whole = constraint.advance_text(candidate) == len(candidate.encode())
            return whole and constraint.is_complete()

        return has

    def test_choices_are_taken_as_they_are(self):
        words = ["a.b", "x|y", "", "[a]*", "\\d", "ä\n", "\x00", "{2}", "(?i)q", "^$", "日本", "😀"]
        words.append("#-&~ ")
        has = self.texts("choice", json.dumps(words))
        for word in words:
            self.assertTrue(has(word), word)
        for word in ["acb", "x", "y", "aa", "7", "Q", "日", "x|", "\\"]:
            self.assertFalse(has(word), word)

    def test_structural_tags_in_both_forms(self):
        structure = {"begin": "<f>", "schema": {"type": "integer"}, "end": "</f>"}
        older = {"type": "structural_tag", "structures": [structure], "triggers": ["<f"]}
        free, forced = (
            self.texts("structural_tag", json.dumps({**older, "at_least_one": must}))
            for must in (False, True)
        )
        for text, at_all, must in [
            ("<f>12</f>", True, True),
            ("x <f>12</f> y", True, None),
            ("x", True, False),
            ("<f>x</f>", False, False),
            ("<f>1", False, False),
        ]:
            self.assertEqual(free(text), at_all, text)
            if must is not None:
                self.assertEqual(forced(text), must, text)
        left_out = {**older, "structures": [{"begin": "<f>", "end": "</f>"}]}
        self.assertTrue(self.texts("structural_tag", json.dumps(left_out))('<f>{"a": [1]}</f>'))
        content = {"type": "json_schema", "json_schema": None}
        format = {"type": "tag", "begin": "<", "content": content, "end": ">"}
        newer = {"type": "structural_tag", "format": format}
        self.assertTrue(self.texts("structural_tag", json.dumps(newer))("<[1, null]>"))

    def test_a_null_in_a_schema_is_not_a_schema_that_was_left_out(self):
        schema = {"enum": [{"type": "json_schema", "json_schema": None}]}
        tag = {"type": "structural_tag", "format": {"type": "json_schema", "json_schema": schema}}
        has = self.texts("structural_tag", json.dumps(tag))
        self.assertTrue(has('{"type": "json_schema", "json_schema": null}'))
        self.assertFalse(has('{"type": "json_schema", "json_schema": {}}'))

    def test_lark_and_options(self):
        self.assertTrue(self.texts("lark", 'start: "a" /b+/')("abb"))
        has = self.texts("json", '{"properties": {"a": {}, "b": {}}}', {"order": "any"})
        self.assertTrue(has('{"b": 1, "a": 2}'))

    def test_what_is_none(self):
        for kind, text in [
            ("cfg", "x"),
            ("", ""),
            ("json", "{"),
            ("json", ""),
            ("json", '{"type": "text"}'),
            ("json", "\ud800"),
            ("json", None),
            ("json", {"type": "object"}),
            ("regex", "("),
            ("regex", "a(?=b)"),
            ("ebnf", "root ::= other"),
            ("lark", "start: ("),
            ("choice", "[]"),
            ("choice", "{}"),
            ("choice", "[1]"),
            ("choice", '"a"'),
            ("choice", "["),
            ("choice", '["\\ud800"]'),
            ("structural_tag", "[]"),
            ("structural_tag", "{}"),
            ("structural_tag", "{"),
            ("structural_tag", "[" * 100000),
            ("structural_tag", '{"structures": 3, "triggers": []}'),
            ("structural_tag", '{"structures": [3], "triggers": ["a"]}'),
            ("structural_tag", '{"structures": [{"begin": "a", "end": "b"}], "triggers": []}'),
            ("structural_tag", '{"structures": [{"begin": "a", "end": "b", "x": 1}], "triggers": ["a"]}'),
            ("structural_tag", '{"structures": [{"begin": "a", "end": "b"}], "triggers": ["a"], "x": 1}'),
            ("structural_tag", '{"structures": [{"end": "b"}], "triggers": ["a"]}'),
            ("structural_tag", '{"type": "structural_tag", "format": {"type": "unheard_of"}}'),
        ]:
            with self.assertRaises(errors.DominoError, msg=(kind, text)):
                notations.read(kind, text)


if __name__ == "__main__":
    unittest.main()
