//! `--tools`: functions that the model may call, given in place of a grammar; and flags for prompts in a chat
//! template.

use std::path::{Path, PathBuf};

use clap::Args;
use domino::grammar::tools::{Calling, Choice, Spelling};
use domino::{chat::ChatTemplate, grammar::suggest};
use serde_json::Value;

use super::refuse;
use crate::grammar::thinking::{Thinking, WantedReasoning};
use crate::{files, session::chat::Chat, session::model, terminal::failure::BadInput};

/// Flags that name functions, and the spelling of calls.
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
    /// Spell calls as these models do: hermes (Qwen 2.5 and 3 too), qwen3-coder, llama3, mistral,
    /// mistral-v11, deepseek, deepseek-v3.1, deepseek-v3.2, deepseek-v4, glm, minimax, kimi, gemma4,
    /// functiongemma, lfm2 or harmony.
    #[arg(long, value_name = "NAME")]
    tool_spelling: Option<String>,
    /// The chat template in place of the model's own: a file in Jinja, or tokenizer_config.json.
    ///
    /// It shows how the model writes calls, and with --chat it makes the prompt.
    #[arg(long, value_name = "FILE")]
    chat_template: Option<PathBuf>,
    /// Let the model call these functions: auto (any or none), required (one at least), none, or one by its
    /// name. Default: auto.
    #[arg(long, value_name = "CHOICE")]
    tool_choice: Option<String>,
    /// Allow one call at most.
    #[arg(long)]
    one_tool_call: bool,
    /// The model whose template shows how it writes calls, if no flag says it.
    #[arg(skip)]
    model: Option<Option<PathBuf>>,
    /// Are prompts put into a chat template?
    #[arg(skip)]
    chat: bool,
}

/// Settings of calls, as far as flags or a row of a batch say them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CallingParts {
    pub(crate) spelling: Option<Spelling>,
    pub(crate) choice: Option<Choice>,
    /// True if at most one call is allowed.
    pub(crate) one: Option<bool>,
}

impl CallingParts {
    /// True if no setting is made.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Joins two parts; this one goes first where both say something.
    pub(crate) fn beside(&self, other: &Self) -> Self {
        Self {
            spelling: self.spelling.or(other.spelling),
            choice: self.choice.clone().or_else(|| other.choice.clone()),
            one: self.one.or(other.one),
        }
    }

    /// Makes the settings whole with defaults. Only the spelling has none, so it must be given.
    pub(crate) fn calling(&self) -> Result<Calling, BadInput> {
        let spelling = self.spelling.ok_or_else(|| {
            BadInput::new("--tools needs to know how the model writes calls").hint(
                "give --tool-spelling NAME, or --chat-template FILE; a model's own template may show it",
            )
        })?;
        let calling = Calling::new(spelling).choice(self.choice.clone().unwrap_or_default());
        Ok(calling.parallel(!self.one.unwrap_or_default()))
    }
}

impl LowTools {
    /// Takes the settings that [`LowGrammar::is_for`](crate::flags::grammar::LowGrammar::is_for) describes.
    pub(crate) fn is_for(&mut self, model: Option<&Path>, chat: bool) -> Option<PathBuf> {
        (self.model, self.chat) = (Some(model.map(Path::to_path_buf)), chat);
        self.chat_template.clone()
    }

    /// Refuses flags for tools where there are none.
    pub(crate) fn refuse_idle(&self) -> Result<(), BadInput> {
        if self.tools.is_some() {
            return Ok(());
        }
        let flags = [
            (self.tool_spelling.is_some(), "--tool-spelling"),
            (self.tool_choice.is_some(), "--tool-choice"),
            (self.one_tool_call, "--one-tool-call"),
        ];
        if self.chat_template.is_some() && !self.chat {
            return Err(BadInput::new("--chat-template is for --tools and for --chat, and neither is given")
                .hint("give --tools FILE or --chat, or leave --chat-template out"));
        }
        refuse(&flags, |flag| {
            BadInput::new(format!("{flag} says how functions are called, and there are none"))
                .hint(format!("give them by --tools FILE, or leave {flag} out"))
        })
    }

    /// Reads the file, if one was given, and the settings of calls.
    ///
    /// With `rows`, the rows may bring functions of their own, for which the settings hold too.
    pub(crate) fn resolve(&self, rows: bool) -> Result<(Option<PathBuf>, CallingParts), BadInput> {
        let wanted = self.tools.is_some() || rows;
        let spelling = match (&self.tool_spelling, &self.chat_template, &self.model) {
            (Some(name), ..) => Some(spelling(name)?),
            (None, Some(template), _) if self.tools.is_some() || !self.chat => Some(of_template(template)?),
            (None, Some(template), _) => Spelling::of_chat_template(&template_of(template)?),
            (None, None, Some(model)) if wanted => of_model(model.as_deref())?,
            (None, None, _) => None,
        };
        let parts = CallingParts {
            spelling,
            choice: self.tool_choice.as_deref().map(choice),
            one: self.one_tool_call.then_some(true),
        };
        Ok((self.tools.clone(), parts))
    }
}

/// Reads the value of `--tool-spelling`.
pub(crate) fn spelling(name: &str) -> Result<Spelling, BadInput> {
    Spelling::named(name).ok_or_else(|| unknown(name))
}

/// Reads the value of `--tool-choice`.
pub(crate) fn choice(name: &str) -> Choice {
    match name {
        "auto" => Choice::Auto,
        "none" => Choice::None,
        "required" => Choice::Required,
        name => Choice::Named(name.to_owned()),
    }
}

fn unknown(name: &str) -> BadInput {
    let known: Vec<String> = Spelling::all().map(|spelling| spelling.to_string()).collect();
    let near = suggest::did_you_mean(name, known.iter().map(String::as_str));
    BadInput::new(format!("no way to write calls is named {name:?}"))
        .hint(near.unwrap_or_else(|| format!("there are {}", known.join(", "))))
}

/// Reads a chat template from its file, or from inside a `tokenizer_config.json`.
fn template_of(path: &Path) -> Result<String, BadInput> {
    let text = files::read_text(path)?;
    let config: Option<Value> = serde_json::from_str(&text).ok();
    Ok(match config.as_ref().and_then(|config| config.get("chat_template")) {
        Some(Value::String(template)) => template.clone(),
        // Some models have a template for each purpose.
        Some(Value::Array(templates)) => {
            templates.iter().filter_map(|one| one.get("template")?.as_str()).collect::<Vec<_>>().join("\n")
        }
        _ => text,
    })
}

/// Finds the spelling of calls that a model's own chat template shows; `None` if it shows none.
fn of_model(model: Option<&Path>) -> Result<Option<Spelling>, BadInput> {
    let template = ChatTemplate::of_model(model::locate(model)?, true).map_err(BadInput::from)?;
    Ok(template.and_then(|template| Spelling::of_chat_template(template.source())))
}

fn of_template(path: &Path) -> Result<Spelling, BadInput> {
    Spelling::of_chat_template(&template_of(path)?).ok_or_else(|| {
        BadInput::new(format!("{} does not show how the model writes calls", path.display()))
            .hint("give --tool-spelling NAME")
    })
}

/// Flags for thoughts before texts.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct LowReasoning {
    /// Let the model think before a text of the grammar. off: the text comes at once. optional: a thought may
    /// come first. open: the prompt has opened one. required: one comes first. auto: as the chat template and
    /// the end of the prompt show.
    ///
    /// A thought is any text up to its closing mark; the text of the grammar begins behind that. Default:
    /// auto with --chat, otherwise off. See docs/reasoning.md.
    #[arg(long, value_name = "WHERE")]
    reasoning: Option<String>,
    /// The marks around thoughts. Default: those of the model's chat template, or else <think> and </think>.
    #[arg(long, num_args = 2, value_names = ["OPEN", "CLOSE"], allow_hyphen_values = true)]
    thought_marks: Option<Vec<String>>,
}

impl LowReasoning {
    /// Reads the flags.
    pub(crate) fn resolve(&self) -> Result<Thinking, BadInput> {
        Ok(Thinking {
            place: self.reasoning.as_deref().map(WantedReasoning::named).transpose()?,
            marks: self.thought_marks.as_deref().map(Thinking::marks_of).transpose()?,
        })
    }
}

/// Ways to put a prompt to the model.
#[derive(Debug, Clone, Args)]
pub(crate) struct LowChat {
    /// Put the prompt into the model's chat template, as what a user says. Without, it stays as it is.
    ///
    /// An instruct model answers well only what is put to it as it was trained. The template is the model's
    /// own, in its GGUF file or beside its tokenizer, or that of --chat-template; with --tools it shows the
    /// model the functions too. See docs/chat.md.
    #[arg(long)]
    chat: bool,
    /// Say this as the system, before the user speaks; for --chat.
    #[arg(long, value_name = "TEXT", requires = "chat", allow_hyphen_values = true)]
    system: Option<String>,
}

impl LowChat {
    /// True if prompts are to be put into a template.
    pub(crate) fn is_asked(&self) -> bool {
        self.chat
    }

    /// Resolves the flags, with the template of this file if there is one. `None` if prompts stay as they
    /// are.
    pub(crate) fn resolve(&self, template: Option<PathBuf>) -> Option<Chat> {
        self.chat.then(|| Chat { system: self.system.clone(), template })
    }

    /// Refuses the flags for a command without a prompt.
    pub(crate) fn refuse_idle(&self, reason: &str) -> Result<(), BadInput> {
        match self.chat {
            true => Err(BadInput::new(format!("--chat is for prompts, and {reason}")).hint("leave it out")),
            false => Ok(()),
        }
    }
}
