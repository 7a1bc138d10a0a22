"""SGLang's and vLLM's own files, without cards: their modules that schedule grammars are imported as they
are, and what these import of the rest has light stand-ins.

DOMINO_HOSTS names a folder with the packages `sglang` and `vllm` of their wheels, unpacked; `.ci/hosts` makes
one. Their code is read there and no part of this repository.
"""

import __future__

import ast
import importlib
import os
import pathlib
import sys
import types

try:
    import torch
except ImportError:
    torch = None

ROOT = pathlib.Path(os.environ.get("DOMINO_HOSTS", "/nonexistent"))
SGLANG = ROOT / "sglang" / "srt"
VLLM = ROOT / "vllm"


def there(folder):
    """Is a host's package there, and torch?"""
    return torch is not None and folder.is_dir()


def version(name):
    """The version of a host's wheel."""
    found = sorted(ROOT.glob(f"{name}-*.dist-info"))
    return found[-1].name[len(name) + 1 : -len(".dist-info")] if found else "of an unknown version"


def classes(path):
    """The functions of each class of a file: parameter names, and whether a subclass must have its own."""
    tree, found = ast.parse(path.read_text(encoding="utf-8")), {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            found[node.name] = {
                one.name: (parameters(one), is_open(one))
                for one in node.body
                if isinstance(one, ast.FunctionDef)
            }
    return found


def parameters(function):
    """The names of a function's parameters."""
    given = function.args
    return [one.arg for one in [*given.posonlyargs, *given.args, *given.kwonlyargs]]


def is_open(function):
    """Is the function abstract, or does nothing but raise?"""
    if any(getattr(one, "id", "") == "abstractmethod" for one in function.decorator_list):
        return True
    body = [one for one in function.body if not isinstance(one, ast.Expr)]
    return len(body) == 1 and isinstance(body[0], ast.Raise)


def function_of(path, name, names):
    """A function of a file by itself, whose globals are `names`: the files import much that needs a card."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            node.decorator_list = []
            tree = ast.Module(body=[node], type_ignores=[])
            flags = __future__.annotations.compiler_flag
            exec(compile(tree, str(path), "exec", flags=flags), names)
            return names[name]
    raise AssertionError(f"{path} has no function {name}")


def class_of(path, name, names):
    """A class of a file by itself."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            # As in the file, since dataclasses look at annotations.
            exec(compile(ast.Module(body=[node], type_ignores=[]), str(path), "exec"), names)
            return names[name]
    raise AssertionError(f"{path} has no class {name}")


def stand_in(name, **members):
    """A module that has these members, in place of a host's own."""
    module = types.ModuleType(name)
    module.__dict__.update(members)
    sys.modules[name] = module
    parent, _, last = name.rpartition(".")
    if parent in sys.modules:
        setattr(sys.modules[parent], last, module)
    return module


def folder(name, path, **members):
    """A host's package whose own first file is not run; its modules can be imported."""
    return stand_in(name, __path__=[str(path)], **members)


class Setting:
    """A setting of the environment."""

    def __init__(self, value):
        self.value = value

    def get(self):
        return self.value


def imported(name):
    """A module by its name, imported for the first time or found."""
    return importlib.import_module(name)
