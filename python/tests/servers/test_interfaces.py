"""The classes of the back ends have what SGLang and vLLM call, read from their files and not imported."""

import ast
import pathlib
import unittest
from importlib import metadata

import domino_decoding

from . import hosts

OURS = pathlib.Path(domino_decoding.__file__).parent / "integrations"
WHY = "LEFT OUT: interfaces of SGLang and vLLM, whose files are not there (`.ci/hosts` gets them)"


def as_assigned(path, name):
    """The functions that a class has by assignment, with the parameters of what is assigned."""
    tree, found = ast.parse(path.read_text(encoding="utf-8")), {}
    functions = {one.name: hosts.parameters(one) for one in tree.body if isinstance(one, ast.FunctionDef)}
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            for one in node.body:
                if isinstance(one, ast.Assign) and one.targets[0].id in functions:
                    found[one.targets[0].id] = (functions[one.targets[0].id], False)
    return found


class Interfaces(unittest.TestCase):
    def compare(self, theirs, ours, known=()):
        """Every function that a host leaves open is ours, and each of ours takes what theirs takes."""
        for name, (wanted, must) in theirs.items():
            if must and name not in known:
                self.assertIn(name, ours, f"{name} is not there")
            if name in ours and not name.startswith("__"):
                found = [one for one in ours[name][0] if one != "self"]
                self.assertEqual(found, [one for one in wanted if one != "self"], name)
        self.assertGreater(sum(name in ours for name in theirs), 2)

    @unittest.skipUnless(hosts.SGLANG.is_dir(), WHY)
    def test_sglang(self):
        theirs = hosts.classes(hosts.SGLANG / "constrained" / "base_grammar_backend.py")
        ours = hosts.classes(OURS / "sglang.py")
        for host, own in [("BaseGrammarObject", "DominoGrammar"), ("BaseGrammarBackend", "DominoBackend")]:
            with self.subTest(own, version=hosts.version("sglang")):
                # An unknown notation stays an error of the host's own.
                known = ["dispatch_fallback"]
                both = {**ours[own], **as_assigned(OURS / "sglang.py", own)}
                self.compare(theirs[host], both, known)

    @unittest.skipUnless(hosts.VLLM.is_dir(), WHY)
    def test_vllm(self):
        theirs = hosts.classes(hosts.VLLM / "v1" / "structured_output" / "backend_types.py")
        ours = hosts.classes(OURS / "vllm.py")
        for host, own in [
            ("StructuredOutputGrammar", "DominoGrammar"),
            ("StructuredOutputBackend", "DominoBackend"),
        ]:
            with self.subTest(own, version=hosts.version("vllm")):
                self.assertTrue(all(must for _, must in theirs[host].values()))
                self.compare(theirs[host], ours[own])

    @unittest.skipUnless(hosts.SGLANG.is_dir() and hosts.VLLM.is_dir(), WHY)
    def test_the_methods_that_are_wrapped_are_there(self):
        params = hosts.classes(hosts.VLLM / "sampling_params.py")["SamplingParams"]
        self.assertEqual(
            params["_validate_structured_outputs"][0],
            ["self", "model_config", "structured_outputs_config", "tokenizer"],
        )
        manager = hosts.classes(hosts.VLLM / "v1" / "structured_output" / "__init__.py")
        self.assertEqual(manager["StructuredOutputManager"]["grammar_init"][0], ["self", "request"])
        choices = (hosts.SGLANG / "arg_groups" / "choices.py").read_text(encoding="utf-8")
        self.assertIn("add_grammar_backend_choices", choices)


class EntryPoints(unittest.TestCase):
    def test_servers_find_what_is_there(self):
        try:
            found = metadata.distribution("domino-decoding").entry_points
        except metadata.PackageNotFoundError:
            self.skipTest("LEFT OUT: entry points, since no wheel is installed")
        named = {one.group: one.value for one in found if one.name == "domino"}
        self.assertEqual(set(named), {"sglang.srt.plugins", "vllm.general_plugins"})
        for value in named.values():
            module, _, function = value.partition(":")
            package, _, file = module.rpartition(".")
            self.assertEqual(package, "domino_decoding.integrations")
            tree = ast.parse((OURS / f"{file}.py").read_text(encoding="utf-8"))
            functions = {one.name: one for one in tree.body if isinstance(one, ast.FunctionDef)}
            self.assertEqual(hosts.parameters(functions[function]), [])


if __name__ == "__main__":
    unittest.main()
