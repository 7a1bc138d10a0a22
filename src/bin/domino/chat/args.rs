//! Flags of prompts that a chat template makes.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::{args::LowGrammar, failure::BadInput};

/// How a prompt is put to the model.
#[derive(Debug, Clone, Args)]
pub(crate) struct LowChat {
    /// Put the prompt into the model's chat template, as what a user says. Without, it stays as it is.
    ///
    /// An instruct model answers well only what is put to it as it was trained. The template is the model's
    /// own, in its GGUF file or beside its tokenizer, or that of --chat-template; with --tools it shows the
    /// model the functions too. See docs/chat.md.
    #[arg(long)]
    chat: bool,
    /// With --chat: what the system says before the user does.
    #[arg(long, value_name = "TEXT", requires = "chat", allow_hyphen_values = true)]
    system: Option<String>,
}

/// Prompts are put into a chat template.
#[derive(Debug, Clone)]
pub(crate) struct Chat {
    pub(super) system: Option<String>,
    /// Where the template is; `None`: it is the model's.
    pub(super) template: Option<PathBuf>,
}

impl LowChat {
    /// What was asked for; `None`: prompts stay as they are. Tells the flags of the grammar which model they
    /// are for.
    pub(crate) fn resolve(self, grammar: &mut LowGrammar, model: Option<&Path>) -> Option<Chat> {
        let template = grammar.is_for(model, self.chat);
        self.chat.then_some(Chat { system: self.system, template })
    }

    /// Refuses the flags where there is no prompt.
    pub(crate) fn refuse_idle(&self, reason: &str) -> Result<(), BadInput> {
        match self.chat {
            true => Err(BadInput::new(format!("--chat is for prompts, and {reason}")).hint("leave it out")),
            false => Ok(()),
        }
    }
}
