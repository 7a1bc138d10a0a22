//! Examples and exit codes at the end of the help of the whole program.

/// Examples for `domino -h`.
pub(crate) const SHORT: &str = "\
Examples:
  domino generate --grammar json --prompt 'A JSON file describing a person: '
  domino generate --schema person.json --prompt 'A person as JSON: ' --model OWNER/NAME
  domino check --schema person.json document.json
The ten usual flags of a command: domino COMMAND -h";

/// Examples and exit codes for `domino --help`.
pub(crate) const LONG: &str = "\
Examples:
  domino generate --grammar json --prompt 'A JSON file describing a person: '
  domino generate --schema person.json --prompt 'A person as JSON: ' --model OWNER/NAME
  domino check --grammar rfc8259 document.json
  domino compile --grammar json --tokenizer tokenizer.json --out json.trees
  domino mask --grammar json --model models/domino-small --text '{\"a\": '
  domino trace --grammar json --tokenizer tokenizer.json traces.json --out cell.json
  domino inspect --grammar my.gbnf
  domino experiment experiments/definitions/quick.toml --quick     (feature `experiments`)

Exit codes:
  0    done; the text is in the language
  1    the text is not in the language, or (not check) the work failed
  2    flags, a grammar, a tokenizer or a model that cannot be used
  3    generate: the text was cut, by --max-tokens, or by --stop before it was in the language,
       without --finish
  4    no answer: a budget of work, time or memory was used up; check: also past --max-bytes,
       or the work failed
  130  ended by Ctrl-C
  141  whoever read standard output went away

Warnings go to standard error, and logs when RUST_LOG is set, for example RUST_LOG=domino=debug.";
