"""The programs in Python on the pages run, and what the package says of itself is true."""

import contextlib
import doctest
import inspect
import io
import os
import pathlib
import re
import unittest

import common
import domino_decoding

try:
    import numpy
except ImportError:
    numpy = None

NATIVE = pathlib.Path(domino_decoding.__file__).with_name("_native.pyi")


def programs(page):
    """The blocks of Python on a page, without those for transformers."""
    text = (common.ROOT / page).read_text(encoding="utf-8")
    return [
        block for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "transformers" not in block
    ]


class Pages(unittest.TestCase):
    def run_page(self, page):
        blocks, here = programs(page), os.getcwd()
        self.assertTrue(blocks)
        os.chdir(common.ROOT)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                for block in blocks:
                    exec(compile(block, page, "exec"), {})
        finally:
            os.chdir(here)

    def test_the_readme(self):
        self.run_page("README.md")

    @unittest.skipUnless(numpy, "LEFT OUT: the page on Python, without numpy")
    def test_the_page_on_python(self):
        self.run_page("docs/python.md")

    def test_the_docstring(self):
        found = doctest.testmod(domino_decoding, verbose=False)
        self.assertGreater(found.attempted, 5)
        self.assertEqual(found.failed, 0)


class Metadata(unittest.TestCase):
    def test_versions_are_equal(self):
        manifest = (common.ROOT / "Cargo.toml").read_text(encoding="utf-8")
        version = re.search(r'^version = "(.*)"$', manifest, re.MULTILINE)[1]
        self.assertEqual(domino_decoding.__version__, version)

    def test_all_is_documented_and_in_the_stubs(self):
        stubs = NATIVE.read_text(encoding="utf-8")
        for name in domino_decoding.__all__:
            thing = getattr(domino_decoding, name)
            if not inspect.isclass(thing) or thing.__module__ not in (
                "domino_decoding",
                "domino_decoding._native",
            ):
                continue
            self.assertTrue(thing.__doc__, name)
            section = re.search(
                rf"^class {name}:\n(.*?)(?=^class |^def |\Z)", stubs, re.MULTILINE | re.DOTALL
            )
            self.assertTrue(section, f"{name} is not in the stubs")
            for member, value in vars(thing).items():
                if member.startswith("_"):
                    continue
                self.assertRegex(section[1], rf"\bdef {member}\(", f"{name}.{member} is not in the stubs")
                self.assertTrue(inspect.getdoc(value), f"{name}.{member} has no docstring")


if __name__ == "__main__":
    unittest.main()
