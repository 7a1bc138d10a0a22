//! Flags of `domino inspect`.

use std::{num::ParseIntError, path::PathBuf};

use clap::{Args, ValueEnum};

use crate::flags::grammar::{LowGrammar, LowTerminals, LowVocabulary};
use crate::{files::Input, terminal::failure::BadInput};

const EXAMPLES: &str = "\
Examples:
  domino inspect --grammar my.gbnf
  domino inspect rules --grammar my.gbnf --rule value
  domino inspect terminals --grammar json --model models/domino-small
  domino inspect terminals --grammar json --terminals written
  domino inspect trees --grammar json --tokenizer models/domino-small
  domino inspect sets --grammar my.gbnf --text '{\"a\": '
  domino inspect sets --grammar my.gbnf --along document.txt
  domino inspect schema --grammar my.schema.json
  domino inspect masks --grammar my.schema.json --along instance.json --tokenizer models/domino-small
  domino inspect dfas --grammar json --terminal 3 --dot | dot -Tsvg > terminal.svg";

/// Show what a grammar is compiled to, stage by stage, so that a slow one can be understood.
///
/// rules: each rule of the source and what became of it: productions, a terminal of its own, or a part of
/// larger terminals; recursion at a rule's ends that became repetition is marked. Parts of a rule that need a
/// nonterminal of their own have its name and a number, as in value#7.
///
/// terminals: the regular parts that are automata, their sizes, and the rules that use them; with a
/// tokenizer, how many tokens can lie wholly inside, which need no parser.
///
/// dfas: the automata, by ranges of bytes.
///
/// trees: for each state of each terminal the tree of what tokens spell from there on, the largest first;
/// with --terminal and --state, or --dot, what is in one. Grows them all first. Without a tokenizer tokens
/// are bytes, and no tree is of any depth.
///
/// sets: the parser sets that --text leads to, with their items, or, with --along, sizes after each byte of a
/// file, in which growth shows. A thread is a terminal that began at some place and is still open; threads
/// are doubled where the text can be split in several ways; work counts items that the parser had to handle
/// and could not look up.
///
/// masks: the token masks along --text or --along, the slowest first, each on its first visit: its time, how
/// many tokens it has, and the terminals it is made of, with their rules, or the pointers and keywords of a
/// JSON Schema. The text is cut into the longest tokens that fit.
///
/// schema: every keyword of a JSON Schema, or of the schemas of --tools, with its pointer: enforced,
/// annotation, unknown, relaxed or refused, and why. Exit code 2 if the schema cannot be used.
///
/// Tokens are those of --tokenizer or --model, and without either the 256 bytes, also where DOMINO_MODEL
/// names a model.
///
/// Without a stage: sizes, memory and times of all of them, and warnings. A warning says where the grammar is
/// written in a way that costs, shows that on a text, and says how to write it instead: "slow" marks what
/// costs more with every step, "note" what costs some threads more at a few places. Of a JSON Schema also its
/// shapes (the sets of values it speaks of, by their JSON pointers), and the pointers and keywords that its
/// largest automata and the warnings come from (with --json: shapes, largest).
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LowInspect {
    /// The part to show; without it, a summary of all.
    #[arg(value_name = "STAGE", default_value = "all", hide_default_value = true)]
    pub(super) stage: View,
    #[command(flatten)]
    pub(super) grammar: LowGrammar,
    #[command(flatten)]
    pub(super) tokens: LowVocabulary,
    #[command(flatten)]
    pub(super) terminals: LowTerminals,
    /// The text so far, for sets; the whole text, for masks.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, conflicts_with = "along")]
    text: Option<String>,
    /// A file with a text to go along, for sets and masks; - is standard input.
    #[arg(long, value_name = "FILE", conflicts_with = "dot")]
    pub(super) along: Option<PathBuf>,
    /// Show only this rule, or what has to do with it.
    #[arg(long, value_name = "NAME")]
    pub(super) rule: Option<String>,
    /// Show only the terminal of this number.
    #[arg(long, value_name = "N")]
    pub(super) terminal: Option<u32>,
    /// Show only the tree of this state of the terminal.
    #[arg(long, value_name = "N")]
    pub(super) state: Option<u32>,
    /// Show at most this many rows of anything; 0 shows all.
    #[arg(long, short = 'n', value_name = "N", default_value = "50", value_parser = limit)]
    pub(super) limit: usize,
    /// Print a graph in Graphviz's language instead.
    #[arg(long, conflicts_with = "json")]
    dot: bool,
}

/// The value of STAGE: the part to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum View {
    /// Sizes, memory, times and warnings.
    All,
    /// Rules and productions.
    Rules,
    /// Terminals.
    Terminals,
    /// The terminals' automata.
    Dfas,
    /// Subterminal trees.
    Trees,
    /// Parser sets.
    Sets,
    /// Token masks along a text.
    Masks,
    /// Keywords of a JSON Schema.
    Schema,
}

/// Reads the value of `--limit`.
fn limit(text: &str) -> Result<usize, ParseIntError> {
    text.parse().map(|rows| if rows == 0 { usize::MAX } else { rows })
}

/// A form of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutputForm {
    Text,
    Json,
    Dot,
}

impl LowInspect {
    /// Chooses the form of output, and refuses flags that are not for the stage.
    pub(super) fn form(&self, json: bool) -> Result<OutputForm, BadInput> {
        let form = match (json, self.dot) {
            (true, _) => OutputForm::Json,
            (false, true) => OutputForm::Dot,
            (false, false) => OutputForm::Text,
        };
        if form == OutputForm::Dot
            && matches!(self.stage, View::All | View::Terminals | View::Masks | View::Schema)
        {
            return Err(
                BadInput::new("this stage has no graph").hint("--dot goes with rules, dfas, trees and sets")
            );
        }
        if !matches!(self.stage, View::Sets | View::Masks) && (self.text.is_some() || self.along.is_some()) {
            return Err(BadInput::new("only parser sets and masks depend on a text")
                .hint("--text and --along go with `domino inspect sets` and `domino inspect masks`"));
        }
        if self.stage != View::Trees && self.state.is_some() {
            return Err(BadInput::new("only trees are told apart by state")
                .hint("--state goes with `domino inspect trees`"));
        }
        Ok(form)
    }

    /// Reads the text that sets and masks are shown of.
    pub(super) fn text(&self) -> Result<Vec<u8>, BadInput> {
        match &self.along {
            Some(file) => Input::new(file.clone()).read(),
            None => Ok(self.text.clone().unwrap_or_default().into_bytes()),
        }
    }
}
