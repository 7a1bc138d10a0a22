//! Flags for prompts in a chat template.

use std::path::PathBuf;

use clap::Args;

use crate::{session::chat::Chat, terminal::failure::BadInput};

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
    pub(crate) fn resolve(self, template: Option<PathBuf>) -> Option<Chat> {
        self.chat.then_some(Chat { system: self.system, template })
    }

    /// Refuses the flags for a command without a prompt.
    pub(crate) fn refuse_idle(&self, reason: &str) -> Result<(), BadInput> {
        match self.chat {
            true => Err(BadInput::new(format!("--chat is for prompts, and {reason}")).hint("leave it out")),
            false => Ok(()),
        }
    }
}
