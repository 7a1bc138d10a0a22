//! `--tools`: functions that the model may call, in place of a grammar.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use domino::grammar::tools::{Calling, Choice, Reasoning, Spelling};
use serde_json::Value;

use crate::{failure::BadInput, files};

/// Which functions, and how they are called.
#[derive(Debug, Args)]
pub(crate) struct LowTools {
    /// Functions that the model may call, instead of a grammar: a file with a list as OpenAI's API has it
    /// (`tools`), or an MCP server. The grammar is that of free text with calls in it, spelled as the model
    /// spells them; see docs/tools.md.
    #[arg(long, value_name = "FILE", group = "LowGrammar", conflicts_with_all = ["grammar", "regex"])]
    tools: Option<PathBuf>,
    /// How the model writes calls: hermes (Qwen 2.5 and 3 too), qwen3-coder, llama3, mistral, mistral-v11,
    /// deepseek, deepseek-v3.1 or harmony.
    #[arg(long, value_name = "NAME", requires = "tools")]
    tool_spelling: Option<String>,
    /// The model's chat template, which shows how it writes calls: a file in Jinja, or tokenizer_config.json.
    #[arg(long, value_name = "FILE", requires = "tools", conflicts_with = "tool_spelling")]
    chat_template: Option<PathBuf>,
    /// Which functions are called: auto (any or none), required (one at least), none, or one by its name.
    #[arg(long, value_name = "CHOICE", requires = "tools", default_value = "auto")]
    tool_choice: String,
    /// Allow one call at most.
    #[arg(long, requires = "tools")]
    one_tool_call: bool,
    /// May the model think before it answers?
    #[arg(long, value_name = "WHERE", requires = "tools", default_value = "off")]
    reasoning: Thinking,
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
        let choice = match self.tool_choice.as_str() {
            "auto" => Choice::Auto,
            "none" => Choice::None,
            "required" => Choice::Required,
            name => Choice::Named(name.to_owned()),
        };
        let reasoning = match self.reasoning {
            Thinking::Off => Reasoning::Off,
            Thinking::Optional => Reasoning::Optional,
            Thinking::Open => Reasoning::Open,
        };
        let calling = Calling::new(spelling).choice(choice).parallel(!self.one_tool_call);
        Ok(Some((file, calling.reasoning(reasoning))))
    }
}

fn unknown(name: &str) -> BadInput {
    let known: Vec<String> = Spelling::all().map(|spelling| spelling.to_string()).collect();
    BadInput::new(format!("no way to write calls is named {name:?}"))
        .hint(format!("there are {}", known.join(", ")))
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
