//! `--tools`: functions that the model may call, in place of a grammar.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use domino::grammar::{
    suggest,
    tools::{Calling, Choice, Reasoning, Spelling},
};
use serde_json::Value;

use crate::{failure::BadInput, files};

/// Which functions, and how they are called.
#[derive(Debug, Args)]
pub(crate) struct LowTools {
    /// Functions that the model may call, instead of a grammar: a file with a list of them.
    ///
    /// A list as OpenAI's API has it (`tools`), or an MCP server. The grammar is that of free text with calls
    /// in it, spelled as the model spells them; see docs/tools.md.
    #[arg(
        long,
        value_name = "FILE",
        group = "LowGrammar",
        conflicts_with_all = ["grammar", "schema", "regex"]
    )]
    tools: Option<PathBuf>,
    /// How the model writes calls: hermes (Qwen 2.5 and 3 too), qwen3-coder, llama3, mistral, mistral-v11,
    /// deepseek, deepseek-v3.1 or harmony.
    #[arg(long, value_name = "NAME")]
    tool_spelling: Option<String>,
    /// The model's chat template, which shows how it writes calls: a file in Jinja, or tokenizer_config.json.
    #[arg(long, value_name = "FILE", conflicts_with = "tool_spelling")]
    chat_template: Option<PathBuf>,
    /// Which functions are called: auto (any or none), required (one at least), none, or one by its name.
    /// Default: auto.
    #[arg(long, value_name = "CHOICE")]
    tool_choice: Option<String>,
    /// Allow one call at most.
    #[arg(long)]
    one_tool_call: bool,
    /// May the model think before it answers? Default: off.
    #[arg(long, value_name = "WHERE")]
    reasoning: Option<Thinking>,
}

/// What an answer may begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Thinking {
    /// With the answer at once.
    Off,
    /// With a block of thinking, or without.
    Optional,
    /// Inside a block that the prompt has opened.
    Open,
}

impl LowTools {
    /// Refuses flags that say something of tools where there are none.
    pub(crate) fn refuse_idle(&self) -> Result<(), BadInput> {
        if self.tools.is_some() {
            return Ok(());
        }
        let flags = [
            (self.tool_spelling.is_some(), "--tool-spelling"),
            (self.chat_template.is_some(), "--chat-template"),
            (self.tool_choice.is_some(), "--tool-choice"),
            (self.one_tool_call, "--one-tool-call"),
            (self.reasoning.is_some(), "--reasoning"),
        ];
        match flags.into_iter().find(|(given, _)| *given) {
            Some((_, flag)) => {
                Err(BadInput::new(format!("{flag} says how functions are called, and there are none"))
                    .hint(format!("give them by --tools FILE, or leave {flag} out")))
            }
            None => Ok(()),
        }
    }

    /// The file and how its functions are called, if one was given.
    pub(crate) fn resolve(self) -> Result<Option<(PathBuf, Calling)>, BadInput> {
        let Some(file) = self.tools else { return Ok(None) };
        let spelling = match (&self.tool_spelling, &self.chat_template) {
            (Some(name), _) => Spelling::named(name).ok_or_else(|| unknown(name))?,
            (None, Some(template)) => of_template(template)?,
            (None, None) => {
                return Err(BadInput::new("--tools needs to know how the model writes calls")
                    .hint("give --tool-spelling NAME, or --chat-template FILE"));
            }
        };
        let choice = match self.tool_choice.as_deref() {
            None | Some("auto") => Choice::Auto,
            Some("none") => Choice::None,
            Some("required") => Choice::Required,
            Some(name) => Choice::Named(name.to_owned()),
        };
        let reasoning = match self.reasoning {
            None | Some(Thinking::Off) => Reasoning::Off,
            Some(Thinking::Optional) => Reasoning::Optional,
            Some(Thinking::Open) => Reasoning::Open,
        };
        let calling = Calling::new(spelling).choice(choice).parallel(!self.one_tool_call);
        Ok(Some((file, calling.reasoning(reasoning))))
    }
}

fn unknown(name: &str) -> BadInput {
    let known: Vec<String> = Spelling::all().map(|spelling| spelling.to_string()).collect();
    let near = suggest::did_you_mean(name, known.iter().map(String::as_str));
    BadInput::new(format!("no way to write calls is named {name:?}"))
        .hint(near.unwrap_or_else(|| format!("there are {}", known.join(", "))))
}

/// A chat template; of `tokenizer_config.json`, the one inside.
pub(crate) fn template_of(path: &Path) -> Result<String, BadInput> {
    let text = files::read_text(path)?;
    let config: Option<Value> = serde_json::from_str(&text).ok();
    Ok(match config.as_ref().and_then(|config| config.get("chat_template")) {
        Some(Value::String(template)) => template.clone(),
        // One for each purpose.
        Some(Value::Array(templates)) => {
            templates.iter().filter_map(|one| one.get("template")?.as_str()).collect::<Vec<_>>().join("\n")
        }
        _ => text,
    })
}

fn of_template(path: &Path) -> Result<Spelling, BadInput> {
    Spelling::of_chat_template(&template_of(path)?).ok_or_else(|| {
        BadInput::new(format!("{} does not show how the model writes calls", path.display()))
            .hint("give --tool-spelling NAME")
    })
}
