"""Bad input raises an exception that says what is wrong, never ends the program."""

import pickle
import tempfile
import threading
import time
import unittest

import common
from domino_decoding import (
    CancelHandle,
    Compiled,
    Compiler,
    Constraint,
    Drafter,
    Grammar,
    Mask,
    Prior,
    RawMask,
    Vocabulary,
    errors,
    fill_batch,
)

try:
    import numpy
except ImportError:
    numpy = None
try:
    import torch
except ImportError:
    torch = None


class Vocabularies(unittest.TestCase):
    def test_what_is_no_tokenizer(self):
        for text in ["", "{", "[]", "{}", '{"model": 3}', '{"model": {"type": "WordPiece", "vocab": {}}}']:
            with self.assertRaises(errors.VocabularyError):
                Vocabulary.from_json(text)
        for thing in [None, 3, "tokenizer", object(), {}]:
            with self.assertRaises(errors.VocabularyError):
                Vocabulary.from_tokenizer(thing)
        with self.assertRaises(errors.VocabularyError):
            Vocabulary.from_file("/nowhere")
        for ranks in [None, 3, {b"a": 0, b"b": 0}]:
            with self.assertRaises(errors.VocabularyError):
                Vocabulary.from_tiktoken(ranks, end_of_text=[1])

    def test_holes_and_doubles(self):
        holes = Vocabulary.from_tokens([b"a", None, b"a", b"", None, None, b"b"], end_of_text=[4])
        self.assertEqual((holes.size, holes.bytes(1), holes.bytes(3), holes.bytes(2)), (7, None, None, b"a"))
        mask = Mask(holes)
        Compiler(holes).compile(Grammar.regex("a")).constraint().fill(mask)
        self.assertEqual(mask.tokens(), [0, 2])
        for tokens, end in [
            ([], [0]),
            ([b"a"], []),
            ([b"a"], [-1]),
            ({-1: b"a"}, [2]),
            ({1 << 24: b"a"}, [2]),
        ]:
            with self.assertRaises(ValueError):
                Vocabulary.from_tokens(tokens, end_of_text=end)
        for tokens in [3, "ab", ["a"], {0: "a"}, {"a": b"a"}, None]:
            with self.assertRaises(TypeError):
                Vocabulary.from_tokens(tokens, end_of_text=[1])


class Grammars(unittest.TestCase):
    def test_errors_have_place_and_hint(self):
        with self.assertRaises(errors.GrammarError) as caught:
            Grammar.gbnf('root ::= "a"\n  | othr\nother ::= "b"')
        error = caught.exception
        self.assertEqual((error.line, error.column, error.span), (2, 5, (17, 21)))
        self.assertIn("othr", error.message)
        with self.assertRaises(errors.SchemaError) as caught:
            Grammar.json_schema({"properties": {"a": {"type": "text"}}})
        self.assertEqual((caught.exception.pointer, caught.exception.keyword), ("#/properties/a", "type"))
        with self.assertRaises(errors.CompileError):
            common.compiler().compile(Grammar.gbnf("root ::= root"))
        with self.assertRaises(errors.LimitError):
            common.compiler(limits={"symbols": 1}).compile(Grammar.gbnf('root ::= "a" root "b" | "c"'))

    def test_options_are_known(self):
        schema = {"type": "object"}
        for options in [
            {"ordr": "any"},
            {"order": "some"},
            {"order": 3.5},
            {"closed": "yes"},
            {"max_depth": -1},
        ]:
            with self.assertRaises((TypeError, ValueError)):
                Grammar.json_schema(schema, **options)
        for limits in [{"step_wrk": 1}, {"step_work": -1}, {"step_work": "x"}, {"repeat": 1 << 40}, {3: 3}]:
            with self.assertRaises((TypeError, ValueError)):
                common.compiler(limits=limits)
        for thing in [float("nan"), {1, 2}, object()]:
            with self.assertRaises((TypeError, ValueError)):
                Grammar.json_schema({"const": thing})

    def test_warnings_and_reports(self):
        grammar = Grammar.regex("[a&&ab]|c")
        self.assertEqual([warning["kind"] for warning in grammar.warnings], ["set operation"])
        rows = Grammar.json_schema({"minItem": 2, "title": "x"}).report()
        self.assertEqual(
            {row["keyword"]: row["status"] for row in rows}, {"minItem": "unknown", "title": "annotation"}
        )


class Steps(unittest.TestCase):
    def setUp(self):
        self.compiled = common.compiler().compile(Grammar.regex("ab*"))
        self.constraint = self.compiled.constraint()

    def test_tokens_that_cannot_follow(self):
        for token in [ord("b"), 256, 257, 1 << 31, -1, 1 << 40]:
            with self.assertRaises(errors.RefusedError):
                self.constraint.advance(token)
            self.assertFalse(self.constraint.allows(token))
        for token in ["a", None, 1.5, b"a"]:
            with self.assertRaises(TypeError):
                self.constraint.advance(token)
        with self.assertRaises(OverflowError):
            self.constraint.advance(1 << 70)
        self.assertEqual(self.constraint.steps, 0)

    def test_after_the_end(self):
        for token in [ord("a"), 256]:
            self.constraint.advance(token)
        mask = Mask(self.compiled.vocabulary)
        drafter = Drafter(self.compiled)
        for call in [
            lambda: self.constraint.fill(mask),
            lambda: self.constraint.advance(97),
            lambda: fill_batch([self.constraint], mask),
            lambda: drafter.draft(self.constraint, 3),
        ]:
            with self.assertRaises(errors.EndedError):
                call()
        self.assertEqual(self.constraint.finish(), [])
        self.constraint.rollback()
        self.constraint.advance(ord("b"))

    def test_rolling_back_too_far(self):
        self.constraint.advance(97)
        with self.assertRaises(errors.RollbackError) as caught:
            self.constraint.rollback(2)
        self.assertEqual((caught.exception.steps, self.constraint.steps), (1, 1))
        with self.assertRaises(OverflowError):
            self.constraint.rollback(-1)
        short = common.compiler(limits={"history": 2}).compile(Grammar.regex("a*")).constraint()
        for _ in range(5):
            short.advance(97)
        with self.assertRaises(errors.RollbackError):
            short.rollback(3)
        short.rollback(2)
        self.assertEqual(short.tokens, [97] * 3)

    def test_captures(self):
        constraint = common.compiler().compile(Grammar.regex("(?P<word>[a-z]+)=(?P<n>[0-9]+)")).constraint()
        constraint.advance_text("size=4")
        self.assertEqual(constraint.captures()[0], ("word", 0, 4, b"size"))
        self.assertEqual(constraint.captures(whole=True)[1], ("n", 5, 6, b"4"))
        with self.assertRaises(errors.CaptureError):
            constraint.captures(["wrd"])


class Masks(unittest.TestCase):
    def setUp(self):
        self.constraint = common.compiler().compile(Grammar.regex("ab*")).constraint()

    def refused(self, masks):
        for mask in masks:
            with self.assertRaises(errors.MaskError):
                self.constraint.fill(mask)
            with self.assertRaises(errors.MaskError):
                fill_batch([self.constraint], mask)

    def test_what_is_no_mask(self):
        class Liar:
            dtype, is_cpu, shape = "torch.int32", True, (1, 9)

            def stride(self):
                return (9, 1)

            def data_ptr(self):
                return 8

        self.refused([None, 3, 0, "mask", b"x" * 36, bytearray(36), [0] * 9, object(), Liar(), Mask(256)])
        for row in [1, -1, 1 << 40]:
            with self.assertRaises(errors.MaskError):
                self.constraint.fill(Mask(257), row)
        for size, rows in [(-1, 1), (1 << 60, 1), (257, 1 << 40), ("x", 1)]:
            with self.assertRaises((TypeError, ValueError, OverflowError)):
                Mask(size, rows)
        for address, rows, words in [(0, 1, 9), (3, 1, 9), (8, 1 << 62, 9), (8, 1, 1 << 62)]:
            with self.assertRaises(errors.MaskError):
                RawMask(address, rows, words)

    @unittest.skipUnless(numpy, "LEFT OUT: numpy is not installed")
    def test_arrays_of_wrong_kinds(self):
        fixed = numpy.zeros((2, 9), numpy.int32)
        fixed.flags.writeable = False
        good = numpy.zeros((4, 18), numpy.int32)
        self.refused(
            [
                numpy.zeros(8, numpy.int32),
                numpy.zeros((2, 8), numpy.int32),
                numpy.zeros((2, 9), numpy.int64),
                numpy.zeros((2, 9), numpy.float32),
                numpy.zeros((2, 9), ">i4"),
                numpy.zeros((1, 2, 9), numpy.int32),
                numpy.zeros((0, 9), numpy.int32),
                numpy.int32(3),
                numpy.zeros((), numpy.int32),
                fixed,
                good[:, ::2],
                good[::-1],
                good.T,
                numpy.broadcast_to(good[0], (4, 18)),
                numpy.zeros((2, 9), object),
                numpy.zeros(40, numpy.uint8)[1:37].view(numpy.int32),
                numpy.zeros((2, 9), numpy.bool_),
            ]
        )

    @unittest.skipUnless(torch, "LEFT OUT: torch is not installed")
    def test_tensors(self):
        self.refused(
            [
                torch.zeros(9),
                torch.zeros(8, dtype=torch.int32),
                torch.zeros(9, dtype=torch.int64),
                torch.zeros((9, 9), dtype=torch.int32, device="meta"),
                torch.zeros((9, 2), dtype=torch.int32).T,
                torch.zeros((9, 9), dtype=torch.int32).to_sparse(),
                torch.zeros((2, 18), dtype=torch.int32)[:, ::2],
                torch.zeros((1, 9), dtype=torch.int32).expand(4, 9)[:, :8],
            ]
        )
        mask = torch.full((3, 9), -1, dtype=torch.int32)
        self.constraint.fill(mask, 1)
        self.assertEqual(common.tokens_of(mask[1].tolist(), 257), [97])
        self.assertEqual(mask[2].tolist(), [-1] * 9)

    @unittest.skipUnless(torch, "LEFT OUT: torch is not installed")
    def test_a_tensor_that_was_written_before_is_looked_at_again(self):
        def written():
            self.constraint.fill(mask, 1)
            return common.tokens_of(mask[1].tolist(), 257)

        mask = torch.full((3, 9), -1, dtype=torch.int32)
        for _ in range(2):
            self.assertEqual(written(), [97])
            mask.fill_(-1)
        # Other memory, of the same shape.
        before = mask.data
        mask.data = torch.full((3, 9), -1, dtype=torch.int32)
        self.assertEqual(written(), [97])
        self.assertEqual(before.tolist(), [[-1] * 9] * 3)
        # Fewer rows, and another shape, of the same memory.
        mask.data = mask.data[:1]
        with self.assertRaises(errors.MaskError):
            self.constraint.fill(mask, 1)
        mask.data = mask.data.reshape(9, 1)
        self.refused([mask])
        del mask, before
        mask = torch.full((2, 9), -1, dtype=torch.int32)
        self.assertEqual(written(), [97])

    def test_a_bare_address(self):
        mask = Mask(257, 3)
        self.constraint.fill(RawMask(mask.address, rows=3, words=9), 2)
        self.assertEqual([mask.tokens(row) for row in range(3)], [[], [], [97]])


class Batches(unittest.TestCase):
    def test_what_does_not_fit_together(self):
        compiled = common.compiler().compile(Grammar.regex("ab*"))
        one, other = compiled.constraint(), compiled.constraint()
        mask = Mask(257, 2)
        for arguments, options in [
            (([one, one], mask), {}),
            (([one, other], mask, [0]), {}),
            (([one, other], mask, [1, 1]), {}),
            (([one, other], mask), {"drafts": [[]]}),
            (([one, other], mask), {"drafts": [[97], []]}),
            (([one], mask, [2]), {}),
            (([one], mask, [-1]), {}),
            (([one], mask), {"drafts": [[-1]]}),
            (([one, 3], mask), {}),
            ((one, mask), {}),
            (([one], mask), {"drafts": 3}),
        ]:
            with self.assertRaises((errors.DominoError, TypeError, ValueError)):
                fill_batch(*arguments, **options)
        self.assertEqual(fill_batch([], mask), [])


class Threads(unittest.TestCase):
    def test_another_thread_cancels(self):
        constraint, mask = common.compiler().compile(Grammar.json_schema({})).constraint(), Mask(257)
        constraint.handle.cancel()
        with self.assertRaises(errors.CancelledError):
            constraint.fill(mask)
        constraint.handle.reset()
        constraint.fill(mask)
        handle = CancelHandle()
        handle.cancel()
        with self.assertRaises(errors.CancelledError):
            fill_batch([constraint], mask, cancel=handle)

    def test_reading_and_compiling_are_cancelled(self):
        compiler, handle = common.compiler(), CancelHandle()
        schema = {"properties": {f"p{at}": {"type": "number", "multipleOf": at + 2} for at in range(1000)}}
        small = Grammar.json_schema({"type": "integer"})
        tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
        tag = {"type": "structural_tag", "format": {"type": "json_schema", "json_schema": {}}}
        works = [
            lambda: Grammar.json_schema(schema, cancel=handle),
            lambda: Grammar.gbnf('root ::= "a"', cancel=handle),
            lambda: Grammar.ebnf('root ::= "a"', cancel=handle),
            lambda: Grammar.regex("a", cancel=handle),
            lambda: Grammar.lark('start: "a"', cancel=handle),
            lambda: Grammar.tools(tools, cancel=handle),
            lambda: Grammar.structural_tag(tag, cancel=handle),
            lambda: Grammar.report_of({"type": "integer"}, cancel=handle),
            lambda: small.report(cancel=handle),
            lambda: compiler.compile(small, cancel=handle),
            lambda: compiler.prepare(small, cancel=handle),
        ]
        handle.cancel()
        for work in works:
            with self.assertRaisesRegex(errors.CancelledError, "was cancelled"):
                work()
        handle.reset()
        for work in works[1:]:
            work()
        # A schema of seconds, of which another thread sees a part.
        canceller = threading.Timer(0.02, handle.cancel)
        canceller.start()
        with self.assertRaises(errors.CancelledError):
            works[0]()
        canceller.join()
        # The compiler goes on, and so does what it has compiled.
        constraint = compiler.compile(small).constraint()
        constraint.fill(Mask(compiler.vocabulary))
        with self.assertRaises(TypeError):
            compiler.compile(small, cancel=True)

    def test_a_step_is_cancelled_between_its_pieces(self):
        limits = {"step_work": 1000, "rehearsal": 0, "step_units": 1 << 30}
        compiler = Compiler(Vocabulary.from_file(common.MODEL), limits=limits)
        mask = Mask(compiler.vocabulary)
        for number in range(50):
            # Of another grammar each time, of which nothing is known.
            grammar = Grammar.gbnf(
                f'root ::= [a-z ]{{{number + 2},99}} root2\nroot2 ::= "x" [a-y]* | root2 "y"'
            )
            constraint = compiler.compile(grammar).constraint()
            canceller = threading.Timer(0.0005 * number, constraint.handle.cancel)
            canceller.start()
            try:
                constraint.fill(mask)
            except errors.CancelledError:
                constraint.handle.reset()
                canceller.join()
                constraint.handle.reset()
                constraint.fill(mask)
            canceller.join()
            constraint.handle.reset()
            wanted = Mask(compiler.vocabulary)
            constraint.fork().fill(wanted)
            self.assertEqual(wanted.tobytes(), mask.tobytes())

    def test_threads_that_share_a_constraint(self):
        compiled = common.compiler().compile(Grammar.json_schema({}))
        constraint, mask, ends = compiled.constraint(), Mask(257), time.monotonic() + 1
        raised = []

        def work(number):
            own = Mask(257)
            while time.monotonic() < ends:
                try:
                    constraint.fill(own)
                    constraint.advance(own.tokens()[number % len(own.tokens())])
                    constraint.rollback(min(3, constraint.steps))
                except errors.DominoError as error:
                    raised.append(type(error))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        allowed = {errors.BusyError, errors.RefusedError, errors.RollbackError, errors.EndedError}
        self.assertLessEqual(set(raised), allowed)
        constraint.rollback(constraint.steps)
        constraint.fill(mask)

    def test_a_step_has_a_time(self):
        compiler = Compiler(
            Vocabulary.from_file(common.MODEL),
            step_seconds=0.0,
            limits={"step_work": 1000, "rehearsal": 0, "step_units": 1 << 30},
        )
        constraint = compiler.compile(Grammar.json_schema({})).constraint()
        with self.assertRaises(errors.TimeError):
            constraint.fill(Mask(1 << 16))


class Pickles(unittest.TestCase):
    def test_there_and_back(self):
        vocabulary = common.letters(extra=[b"ab"])
        compiled = Compiler(vocabulary, limits={"history": 7}).compile(Grammar.lark('start: "a" /b+/'))
        prior = Prior(compiled)
        prior.learn(list(b"abb"))
        with tempfile.TemporaryDirectory() as folder:
            compiled.save(f"{folder}/grammar")
            prior.save(f"{folder}/prior")
            loaded = Compiled.load(f"{folder}/grammar", compiler=Compiler(vocabulary))
            self.assertEqual(Prior.load(f"{folder}/prior", loaded).summary(), prior.summary())
        for other in [pickle.loads(pickle.dumps(compiled)), loaded, Compiled.from_bytes(compiled.to_bytes())]:
            self.assertEqual(other.vocabulary.fingerprint, vocabulary.fingerprint)
            mask = Mask(vocabulary)
            other.constraint().fill(mask)
            self.assertEqual(mask.tokens(), [97, 256])
        self.assertEqual(pickle.loads(pickle.dumps(prior)).summary(), prior.summary())
        self.assertEqual(pickle.loads(pickle.dumps(compiled.grammar)).text, compiled.grammar.text)
        with self.assertRaises(TypeError):
            pickle.dumps(compiled.constraint())

    def test_foreign_bytes(self):
        compiled = common.compiler().compile(Grammar.regex("ab*"))
        for read, whole in [
            (Compiled.from_bytes, compiled.to_bytes()),
            (Vocabulary.from_bytes, compiled.vocabulary.to_bytes()),
            (lambda data: Prior.from_bytes(data, compiled), Prior(compiled).to_bytes()),
        ]:
            read(whole)
            bad = [
                b"",
                b"x",
                whole[:-1],
                whole + b"x",
                whole[:40],
                whole[::-1],
                whole[:20] + b"9" + whole[21:],
            ]
            bad += [
                whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]
                for place in range(0, len(whole), max(1, len(whole) // 97))
            ]
            for data in bad:
                with self.assertRaises(errors.StoreError):
                    read(data)
            for data in [None, 3, "text"]:
                with self.assertRaises(TypeError):
                    read(data)
        other = Compiler(common.letters(extra=[b"zz"]))
        with self.assertRaises(errors.StoreError):
            Compiled.from_bytes(compiled.to_bytes(), compiler=other)
        with self.assertRaises(errors.StoreError):
            Prior.from_bytes(Prior(compiled).to_bytes(), other.compile(Grammar.regex("ab*")))

    def test_classes_without_a_maker(self):
        for kind in [Compiled, Constraint]:
            with self.assertRaises(TypeError):
                kind()


if __name__ == "__main__":
    unittest.main()
