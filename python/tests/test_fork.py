"""What a fork and another process do with what they get."""

import multiprocessing
import os
import unittest

import common
from domino_decoding import Compiler, Grammar, Mask, fill_batch

SCHEMA = {"type": "object", "properties": {"a": {"type": "string", "maxLength": 9}, "b": {"type": "integer"}}}


def mask_of(compiled):
    """The masks along a text, as bytes."""
    constraint, mask, found = compiled.constraint(), Mask(compiled.vocabulary), []
    for byte in b'{"a": "x", "b": 1':
        constraint.fill(mask)
        found.append(mask.tobytes())
        constraint.advance(byte)
    return found


class Processes(unittest.TestCase):
    def test_a_process_of_its_own(self):
        compiled = common.compiler().compile(Grammar.json_schema(SCHEMA))
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            self.assertEqual(pool.apply(mask_of, (compiled,)), mask_of(compiled))

    @unittest.skipUnless(hasattr(os, "fork"), "LEFT OUT: there are no forks here")
    def test_a_fork_has_threads_of_its_own(self):
        compiler = common.compiler()
        wanted = mask_of(compiler.compile(Grammar.json_schema(SCHEMA)))
        mask = Mask(compiler.vocabulary, 40)
        fill_batch([compiler.compile(Grammar.regex("a")).constraint() for _ in range(40)], mask)
        child = os.fork()
        if child == 0:
            try:
                own = Compiler(compiler.vocabulary).compile(Grammar.json_schema(SCHEMA))
                fill_batch([own.constraint() for _ in range(40)], Mask(compiler.vocabulary, 40))
                os._exit(0 if mask_of(own) == wanted else 1)
            finally:
                os._exit(2)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)


if __name__ == "__main__":
    unittest.main()
