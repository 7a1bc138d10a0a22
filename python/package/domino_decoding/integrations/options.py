"""Settings that servers have no flags for: one variable of the environment, in JSON.

    DOMINO_OPTIONS='{"cache": "/shared/domino", "schema": {"order": "any"}}'
"""

import dataclasses
import difflib
import json
import math
import os
from typing import Any, Dict, Mapping, Optional

from ..errors import OptionsError

VARIABLE = "DOMINO_OPTIONS"


@dataclasses.dataclass(frozen=True)
class Options:
    """Settings of a back end.

    `cache`: a folder of what takes long to work out, which any number of servers may share. `schema`:
    keywords of `Grammar.json_schema`. `limits`: budgets by name, as of `Compiler`. `grammars`: compiled
    grammars that are kept. `compile_seconds`, `step_seconds`: times after which a request is given up; None
    for none."""

    cache: Optional[str] = None
    schema: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    limits: Mapping[str, int] = dataclasses.field(default_factory=dict)
    grammars: int = 1024
    compile_seconds: Optional[float] = None
    step_seconds: Optional[float] = None

    def __post_init__(self):
        for name in ("schema", "limits"):
            if not isinstance(getattr(self, name), Mapping):
                raise OptionsError(f"the option `{name}` must be an object, not {getattr(self, name)!r}")
        if self.cache is not None and (not isinstance(self.cache, (str, os.PathLike)) or not self.cache):
            raise OptionsError(f"the option `cache` must be the path of a folder, not {self.cache!r}")
        kept = self.grammars
        if isinstance(kept, bool) or not isinstance(kept, int) or kept < 1:
            raise OptionsError(f"the option `grammars` must be a whole number from 1 on, not {kept!r}")
        for name in ("compile_seconds", "step_seconds"):
            value = getattr(self, name)
            if value is not None and not _is_time(value):
                raise OptionsError(f"the option `{name}` must be a number of seconds, not {value!r}")

    @classmethod
    def from_environment(cls, environment: Optional[Mapping[str, str]] = None) -> "Options":
        """Reads the variable. Raises `OptionsError` if it is no JSON object of known settings."""
        text = (os.environ if environment is None else environment).get(VARIABLE, "").strip()
        if not text:
            return cls()
        try:
            given = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise OptionsError(f"{VARIABLE} is no JSON: {error}") from None
        if not isinstance(given, dict):
            raise OptionsError(f"{VARIABLE} must be a JSON object, not {text[:60]}")
        return cls(**_known(given))


def _is_time(value: Any) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and math.isfinite(value) and value >= 0


def _known(given: Dict[str, Any]) -> Dict[str, Any]:
    """The settings as they are, if all of them are known."""
    names = [field.name for field in dataclasses.fields(Options)]
    for name in given:
        if name not in names:
            near = difflib.get_close_matches(name, names, 1)
            hint = f"did you mean `{near[0]}`?" if near else f"one of {', '.join(names)}"
            raise OptionsError(f"{VARIABLE}: there is no option `{name}`\nhint: {hint}", hint=hint)
    return given
