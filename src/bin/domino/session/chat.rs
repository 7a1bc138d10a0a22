//! Prompts: the text to go on from as it was given, and as the model gets it, unchanged or in its chat
//! template.

use std::cell::{Cell, OnceCell};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;
use domino::chat::{ChatTemplate, Conversation};
use domino::{TokenId, Vocabulary, grammar::tools::Spelling, vocab::Tokenizer};
use serde_json::Value;

use crate::files::{self, Input};
use crate::grammar::{
    source::GrammarPlace, source::GrammarSource, thinking::Thinking, thinking::WantedThought,
};
use crate::terminal::failure::{self, BadInput, note, remark};
use crate::terminal::progress;

/// Length in bytes of the shortest special token that shows a template written by hand; shorter ones may
/// stand in a text by chance.
const SHORTEST_MARK: usize = 3;

/// The resolved flags for putting prompts into a chat template.
#[derive(Debug, Clone)]
pub(crate) struct Chat {
    pub(crate) system: Option<String>,
    /// The file of the template; `None` for the model's own.
    pub(crate) template: Option<PathBuf>,
}

/// A maker of the tokens of prompts.
#[derive(Debug)]
pub(crate) struct Prompts {
    chat: Option<Chat>,
    folder: PathBuf,
    /// Functions that the model may call, from the flags.
    tools: Vec<Value>,
    /// Are functions shown in words where the template shows none? Only words for one spelling are there.
    in_words: bool,
    /// The template for prompts without functions, and the one for prompts with some; read when needed.
    templates: [OnceCell<ChatTemplate>; 2],
    /// True if a prompt outside the model's template is worth a hint.
    hints: Cell<bool>,
}

impl Prompts {
    /// Makes the prompts for the model in `folder` and texts of `grammar`. With `json` no hint is given.
    pub(crate) fn open(
        chat: Option<&Chat>,
        folder: &Path,
        grammar: Option<&GrammarSource>,
        json: bool,
    ) -> Result<Self, BadInput> {
        let (tools, in_words) = match grammar.map(|source| (&source.place, &source.calling)) {
            Some((GrammarPlace::Tools(file), Some(calling))) => {
                (functions(&files::read_text(file)?), calling.spelling == Spelling::Hermes)
            }
            _ => (Vec::new(), false),
        };
        let prompts = Self {
            chat: chat.cloned(),
            folder: folder.to_owned(),
            tools,
            in_words,
            templates: Default::default(),
            hints: Cell::new(!json && !failure::is_quiet()),
        };
        if prompts.chat.is_some() {
            let template = prompts.template(!prompts.tools.is_empty())?;
            if !prompts.tools.is_empty() && !template.shows_tools() && !in_words {
                remark!("warning:", "the chat template does not show the model its functions");
            }
        }
        Ok(prompts)
    }

    fn template(&self, with_tools: bool) -> Result<&ChatTemplate, BadInput> {
        let cell = &self.templates[usize::from(with_tools)];
        if let Some(template) = cell.get() {
            return Ok(template);
        }
        let file = self.chat.as_ref().and_then(|chat| chat.template.as_deref());
        let template = match file {
            Some(file) => {
                ChatTemplate::of_file(file, Some(&self.folder), with_tools).map_err(BadInput::from)?
            }
            None => ChatTemplate::of_model(&self.folder, with_tools).map_err(BadInput::from)?.ok_or_else(
                || {
                    BadInput::new(format!("{} has no chat template", self.folder.display()))
                        .hint("give --chat-template FILE; or leave --chat out, and the prompt stays as it is")
                },
            )?,
        };
        Ok(cell.get_or_init(|| template))
    }

    /// True if prompts are put into a template.
    pub(crate) fn are_in_template(&self) -> bool {
        self.chat.is_some()
    }

    /// Finds the thought before a text of this grammar. `tail` is the end of the prompt as the model gets it,
    /// which is a `chat` if it is in the template.
    pub(crate) fn thought(
        &self,
        thinking: &Thinking,
        source: &GrammarSource,
        tail: &[u8],
        chat: bool,
    ) -> Option<WantedThought> {
        let read = || ChatTemplate::of_model(&self.folder, false).ok().flatten();
        let own = if self.chat.is_some() { None } else { read() };
        let template = own.as_ref().or_else(|| self.template(false).ok().filter(|_| chat));
        let thought = thinking.decide(template.map_or("", ChatTemplate::source), Some(tail), chat)?;
        let text = source.load().ok()?;
        let spelling = source.calling.as_ref().map(|calling| calling.spelling);
        (!thinking.is_in(spelling, &text.text(), &thought.0)).then_some(thought)
    }

    /// Makes the text of the prompt that the model gets.
    pub(crate) fn text(&self, prompt: &str) -> Result<String, BadInput> {
        match &self.chat {
            None => Ok(prompt.to_owned()),
            Some(_) => self.rendered(Conversation::of_prompt(None, prompt), &self.tools),
        }
    }

    fn rendered(&self, conversation: Conversation, tools: &[Value]) -> Result<String, BadInput> {
        let template = self.template(!tools.is_empty())?;
        let system = self.chat.as_ref().and_then(|chat| chat.system.as_deref());
        let conversation = match system {
            Some(system) => conversation.with_system(system),
            None => conversation,
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let conversation = match self.in_words && !template.shows_tools() {
            true => conversation.with_tools_in_words(tools),
            false => conversation.with_tools(tools),
        };
        template.render(&conversation.with_date(now)).map_err(BadInput::from)
    }

    /// Makes the tokens of the prompt that the model gets.
    pub(crate) fn tokens(
        &self,
        tokenizer: &Tokenizer,
        prompt: &str,
        vocabulary: &Vocabulary,
    ) -> anyhow::Result<Vec<TokenId>> {
        if self.chat.is_some() {
            return written(tokenizer, &self.text(prompt)?, vocabulary);
        }
        let tokens = prompt_tokens(tokenizer, prompt, vocabulary)?;
        if self.hints.take() {
            self.hint(tokenizer, prompt, vocabulary, &tokens);
        }
        Ok(tokens)
    }

    /// Makes the tokens of the prompt that the model gets, with their text.
    pub(crate) fn shown(
        &self,
        tokenizer: &Tokenizer,
        prompt: &str,
        vocabulary: &Vocabulary,
    ) -> anyhow::Result<(Vec<TokenId>, String)> {
        Ok((self.tokens(tokenizer, prompt, vocabulary)?, self.text(prompt)?))
    }

    /// Makes the tokens of messages in the model's template, which messages need even without `--chat`.
    /// `tools` are functions in JSON that replace those of the flags.
    pub(crate) fn of_messages(
        &self,
        tokenizer: &Tokenizer,
        messages: &[Value],
        tools: Option<&str>,
        vocabulary: &Vocabulary,
    ) -> anyhow::Result<Vec<TokenId>> {
        let own = tools.map(functions);
        let tools = own.as_deref().unwrap_or(&self.tools);
        let text = self.rendered(Conversation::new(messages.to_vec()), tools)?;
        written(tokenizer, &text, vocabulary)
    }

    /// Hints that the model has a template, if the template would change the prompt and the prompt does not
    /// follow it by hand.
    fn hint(&self, tokenizer: &Tokenizer, prompt: &str, vocabulary: &Vocabulary, raw: &[TokenId]) {
        let Ok(Some(template)) = ChatTemplate::of_model(&self.folder, false) else { return };
        let by_hand = |name: &str| name.len() >= SHORTEST_MARK && prompt.contains(name);
        if vocabulary.special_tokens().any(|(_, name)| by_hand(name)) {
            return;
        }
        let conversation = Conversation::of_prompt(None, prompt);
        let Ok(text) = template.render(&conversation.with_generation_prompt(false)) else { return };
        if tokenizer.encode_written(&text).is_ok_and(|tokens| tokens != raw) {
            let family = template.family().map(|family| format!(" ({family})")).unwrap_or_default();
            remark!("hint:", "the model has a chat template{family}; --chat puts the prompt into it");
        }
    }
}

/// Makes the tokens of the prompt, with those that the tokenizer puts around a text. A model needs at least
/// one token to go on from: an empty prompt becomes the end of an earlier text.
pub(crate) fn prompt_tokens(
    tokenizer: &Tokenizer,
    text: &str,
    vocabulary: &Vocabulary,
) -> anyhow::Result<Vec<TokenId>> {
    let tokens = tokenizer.encode(text, true).context("the prompt cannot be turned into tokens")?;
    Ok(at_least_one(tokens, vocabulary))
}

/// Makes the tokens of a text that a template wrote; at least one.
fn written(tokenizer: &Tokenizer, text: &str, vocabulary: &Vocabulary) -> anyhow::Result<Vec<TokenId>> {
    let tokens = tokenizer
        .encode_written(text)
        .map_err(|error| BadInput::new(format!("the prompt cannot be turned into tokens: {error}")))?;
    Ok(at_least_one(tokens, vocabulary))
}

/// Gives tokens that are none the end of an earlier text.
pub(crate) fn at_least_one(mut tokens: Vec<TokenId>, vocabulary: &Vocabulary) -> Vec<TokenId> {
    if tokens.is_empty() {
        tokens.extend(vocabulary.end_of_text().first());
    }
    tokens
}

/// Reads the functions of a list in JSON, or of the member `tools` of an object. Mistakes in it give no
/// functions here; they are reported where the grammar is made.
fn functions(text: &str) -> Vec<Value> {
    let list: Value = serde_json::from_str(text).unwrap_or_default();
    list.get("tools").unwrap_or(&list).as_array().cloned().unwrap_or_default()
}

/// The text to go on from.
#[derive(Debug)]
pub(crate) enum PromptSource {
    Text(String),
    From(Input),
}

impl PromptSource {
    /// Reads the two flags of the prompt, of which both take `-` for standard input; without either it is the
    /// empty text.
    pub(crate) fn of(text: Option<String>, file: Option<PathBuf>) -> Self {
        match (text, file) {
            (Some(text), _) if text == "-" => Self::From(Input::Stdin),
            (Some(text), _) => Self::Text(text),
            (None, Some(file)) => Self::From(Input::new(file)),
            (None, None) => Self::Text(String::new()),
        }
    }
}

/// Reads the text of a prompt, and tells a person where there is none.
pub(crate) fn asked_text(prompt: &PromptSource) -> Result<String, BadInput> {
    let text = prompt_text(prompt)?;
    if text.is_empty() && progress::wanted() {
        note!("no prompt is given, so the model is asked for nothing; --prompt says what the text is about");
    }
    Ok(text)
}

/// Reads the text of a prompt.
pub(crate) fn prompt_text(prompt: &PromptSource) -> Result<String, BadInput> {
    match prompt {
        PromptSource::Text(text) => Ok(text.clone()),
        PromptSource::From(input) => files::text(input.read()?, &input.name()),
    }
}
