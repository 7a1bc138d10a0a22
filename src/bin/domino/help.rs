//! The arrangement of help: `-h` shows the flags that most runs need, and `--help` shows all of them in
//! sections, with examples and exit codes at the end.
//!
//! Flags are declared beside their meaning. Only two tables here say where help shows them, so that a section
//! of one command is the same in all others, with the same end. A flag in neither table stands under
//! "Options" in `--help`, and not in `-h`.

use clap::{Arg, Command, builder::StyledStr};

use crate::{engine::program, terminal::lists};

/// The sections of `--help` in their order, with the names of the flags of each. No flag is in two.
const SECTIONS: &[(&str, &str)] = &[
    ("Grammar", "grammar schema regex syntax rules"),
    (
        "JSON Schema",
        "draft format whitespace order duplicate_keys escapes numbers closed max_depth lenient \
         documents",
    ),
    ("Chat", "chat system"),
    ("Tools", "tools tool_spelling chat_template tool_choice one_tool_call reasoning"),
    ("Model", "model tokenizer device precision threads quantize kv engine"),
    (
        "Sampling",
        "max_tokens temperature seed top_k top_p min_p repeat_penalty repeat_last_n presence_penalty \
         frequency_penalty stop trailing_space finish logprobs mask opportunistic sampling particles \
         tokenization",
    ),
    (
        "Speculation",
        "speculate grammar_speculate s proposer threshold prior learn compare draft_model draft_mask",
    ),
    ("Lookahead", "lookahead terminals trees"),
    (
        "Limits of the server",
        "max_seqs max_queue max_body read_timeout max_grammar grammar_cache compile_timeout \
         stall_timeout drain_timeout",
    ),
    ("Cache and budgets", "cache_dir no_cache max_step_seconds max_memory"),
];

/// The flags of each command that `-h` shows; it shows all flags of a command that is not here.
const USUAL: &[(&str, &str)] = &[
    ("domino", "json quiet"),
    ("generate", "prompt batch out grammar schema regex model max_tokens temperature seed"),
    ("explain", "prompt out grammar schema regex model max_tokens temperature seed speculate"),
    ("learn", "prompt text out runs show grammar schema regex model max_tokens"),
    (
        "serve",
        "model host port api_key allow_origin grammar_dir tool_spelling chat_template \
         grammar_speculate prior",
    ),
    ("check", "prefix report batch max_bytes grammar schema regex rules documents tools"),
    ("mask", "text all grammar schema regex model tokenizer lookahead terminals trees"),
    ("compile", "out force grammar schema regex model tokenizer terminals"),
    ("inspect", "text along rule limit dot grammar schema regex model tokenizer"),
    ("bench-model", "most context prompt repeats random random_format model threads quantize"),
    ("retokenize", "text prompt prompt_file model threads"),
    ("trace", "out expected passes grammar schema regex model tokenizer lookahead threads"),
];

/// The flags of all commands, which stand behind those of one.
const LAST: &str = "json quiet";

/// Puts the flags of the command and its subcommands in their sections, and hides rare ones from `-h`.
pub(crate) fn arranged(command: Command) -> Command {
    let usual = usual_of(&command);
    let command = command.mut_args(|arg| in_its_place(arg, usual));
    let command = if usual.is_some() { with_pointer(command) } else { command };
    command.mut_subcommands(arranged)
}

/// The flags that `-h` shows of a command; `None` for all.
fn usual_of(command: &Command) -> Option<&'static str> {
    let named = if command.get_name() == program() { "domino" } else { command.get_name() };
    USUAL.iter().find(|(name, _)| *name == named).map(|&(_, flags)| flags)
}

/// Puts a flag in its section, and hides it from `-h` unless it is usual. Arguments without a flag stay.
fn in_its_place(arg: Arg, usual: Option<&str>) -> Arg {
    if arg.is_positional() {
        return arg;
    }
    let id = arg.get_id().as_str().to_owned();
    let has = |flags: &str| lists(flags, &id);
    let arg = match SECTIONS.iter().find(|(_, flags)| has(flags)) {
        Some((heading, flags)) => {
            let place = flags.split(' ').position(|flag| flag == id);
            arg.help_heading(*heading).display_order(place.unwrap_or_default())
        }
        None if has(LAST) => arg.display_order(usize::MAX / 2),
        None => arg,
    };
    match usual {
        Some(usual) => arg.hide_short_help(!has(usual)),
        None => arg,
    }
}

/// Adds a pointer to `--help` at the end of a command's `-h`.
fn with_pointer(command: Command) -> Command {
    let program = program();
    let name = match command.get_name() {
        name if name == program => String::new(),
        name => format!(" {name}"),
    };
    let (short, long) = (command.get_after_help().cloned(), command.get_after_long_help().cloned());
    let pointer = format!("All flags, in sections: {program}{name} --help");
    let shown = match &short {
        Some(examples) => format!("{examples}\n\n{pointer}"),
        None => pointer,
    };
    let long = long.or(short).unwrap_or_else(StyledStr::new);
    command.after_help(shown).after_long_help(long)
}

/// Checks that all names in the tables are those of flags, and that no flag is in two sections.
#[cfg(test)]
pub(crate) fn check_tables(whole: &Command) {
    use std::collections::BTreeSet;

    let commands = std::iter::once(whole).chain(whole.get_subcommands());
    let all: BTreeSet<&str> =
        commands.flat_map(Command::get_arguments).map(|arg| arg.get_id().as_str()).collect();
    let mut seen = BTreeSet::new();
    for (heading, flags) in SECTIONS {
        for flag in flags.split(' ') {
            assert!(all.contains(flag), "{heading}: {flag}");
            assert!(seen.insert(flag), "{heading}: {flag} is in another section too");
        }
    }
    for (name, usual) in USUAL {
        let command = if *name == whole.get_name() { Some(whole) } else { whole.find_subcommand(name) };
        let command = command.unwrap_or_else(|| panic!("there is no command {name}"));
        let own: Vec<&str> = command.get_arguments().map(|arg| arg.get_id().as_str()).collect();
        let count = usual.split(' ').count();
        assert!(count <= 10, "{name} has {count} usual flags");
        for flag in usual.split(' ') {
            assert!(own.contains(&flag), "{name} has no {flag}");
        }
    }
}

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
