//! Turns prompts of requests into tokens: texts as they are, messages through the model's chat template.
//!
//! Callers are not trusted: a prompt that cannot fit is refused before it is tokenised, long ones are
//! tokenised in fair turns, and none on a thread that answers.

use std::{path::Path, sync::Arc, time::SystemTime, time::UNIX_EPOCH};

use domino::{TokenId, Vocabulary, chat::ChatTemplate, chat::Conversation, vocab::Tokenizer};
use serde_json::{Map, Value};

use super::{access::Caller, problem::Problem, work::Pool};
use crate::session::chat::{at_least_one, prompt_tokens};
use crate::terminal::failure::BadInput;

/// Bytes past which a prompt is read in its caller's turn: it takes some ten milliseconds or more.
const LONG: usize = 64 << 10;

/// A prompt as a request has it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum PromptAsked {
    Chat(ChatAsked),
    Text(String),
    Tokens(Vec<u32>),
}

impl PromptAsked {
    /// Is it said that the model shall not think?
    pub(crate) fn closes_thoughts(&self) -> bool {
        let Self::Chat(chat) = self else { return false };
        chat.variables.get("enable_thinking").is_some_and(|enabled| *enabled == false)
    }

    /// Approximate size of its texts, in bytes; for tokens their number.
    fn bytes(&self) -> usize {
        let of_message = |message: &Value| message["content"].as_str().map_or(0, str::len);
        match self {
            Self::Chat(chat) => chat.messages.iter().map(of_message).sum(),
            Self::Text(text) => text.len(),
            Self::Tokens(tokens) => tokens.len(),
        }
    }
}

/// Messages, functions and variables for the chat template.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct ChatAsked {
    pub(crate) messages: Vec<Value>,
    pub(crate) tools: Vec<Value>,
    pub(crate) variables: Map<String, Value>,
}

/// Reader of prompts.
#[derive(Debug)]
pub(crate) struct PromptReader {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    tokenizer: Tokenizer,
    vocabulary: Vocabulary,
    /// Templates for conversations without functions and with some. `None`: the model has no template.
    templates: [Option<ChatTemplate>; 2],
    /// Are functions and calls shown in words, since no template shows them in the form that answers have?
    in_words: bool,
    /// Most tokens of a prompt.
    most: usize,
    /// Bytes of the longest token.
    longest: usize,
}

impl PromptReader {
    /// A reader for the model at `path` with this context, in tokens; its template is that of the file, if
    /// one is named.
    ///
    /// # Errors
    /// If a template cannot be read, or is none.
    pub(crate) fn new(
        tokenizer: Tokenizer,
        vocabulary: Vocabulary,
        path: &Path,
        template: Option<&Path>,
        context: usize,
    ) -> Result<Self, BadInput> {
        let read = |with_tools| match template {
            Some(file) => ChatTemplate::of_file(file, Some(path), with_tools).map(Some),
            None => ChatTemplate::of_model(path, with_tools),
        };
        if let Some(file) = template
            && !file.extension().is_some_and(|extension| extension == "jinja" || extension == "json")
        {
            return Err(BadInput::new(format!("{} is no chat template", file.display()))
                .hint("--chat-template takes a file that ends in .jinja or .json"));
        }
        let templates = [read(false)?, read(true)?];
        let longest = (0..vocabulary.size())
            .filter_map(|index| vocabulary.bytes(TokenId::from_index(index)?))
            .map(<[u8]>::len)
            .max()
            .unwrap_or(1);
        let most = context.saturating_sub(1);
        let inner = Inner { tokenizer, vocabulary, templates, in_words: false, most, longest };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Shows functions and calls in words of the conversation rather than by the template.
    pub(crate) fn show_tools_in_words(&mut self) {
        if let Some(inner) = Arc::get_mut(&mut self.inner) {
            inner.in_words = true;
        }
    }

    /// The text of the chat template that shows functions; empty without one.
    pub(crate) fn template(&self) -> &str {
        self.inner.templates[1].as_ref().map_or("", ChatTemplate::source)
    }

    /// Tokenises a prompt. It has at least one token, and the model's context has room for one more.
    ///
    /// # Errors
    /// If it is too long, or cannot be read.
    pub(crate) async fn read(
        &self,
        pool: &Arc<Pool>,
        caller: &Caller,
        asked: PromptAsked,
    ) -> Result<Arc<[TokenId]>, Problem> {
        let inner = Arc::clone(&self.inner);
        let read = match asked.bytes() > LONG {
            true => pool.run(caller, move || inner.read(asked)).await?,
            false => {
                let read = tokio::task::spawn_blocking(move || inner.read(asked)).await;
                read.map_err(|_| Problem::engine("reading the prompt failed"))?
            }
        };
        read.map(Arc::from)
    }
}

impl Inner {
    fn read(&self, asked: PromptAsked) -> Result<Vec<TokenId>, Problem> {
        let wrong = |param: &str, error: &dyn std::fmt::Display| {
            Problem::invalid(param, format!("the prompt cannot be read: {error}"))
        };
        let tokens = match asked {
            PromptAsked::Chat(chat) => {
                let text = self.rendered(chat)?;
                self.fits(&text, "messages")?;
                let tokens = self.tokenizer.encode_written(&text);
                at_least_one(tokens.map_err(|error| wrong("messages", &error))?, &self.vocabulary)
            }
            PromptAsked::Text(text) => {
                self.fits(&text, "prompt")?;
                let tokens = prompt_tokens(&self.tokenizer, &text, &self.vocabulary);
                tokens.map_err(|error| wrong("prompt", &format!("{error:#}")))?
            }
            PromptAsked::Tokens(tokens) => {
                let tokens: Vec<TokenId> = tokens.into_iter().map(TokenId::new).collect();
                if let Some(token) = tokens.iter().find(|token| token.index() >= self.vocabulary.size()) {
                    return Err(wrong("prompt", &format!("there is no token {token}")));
                }
                tokens
            }
        };
        if tokens.is_empty() || tokens.len() > self.most {
            let message = format!(
                "the prompt has {} tokens; with a text after it the model takes from 1 to {}",
                tokens.len(),
                self.most
            );
            return Err(Problem::bad_request("context_length_exceeded", message));
        }
        Ok(tokens)
    }

    fn rendered(&self, chat: ChatAsked) -> Result<String, Problem> {
        let by_template = !chat.tools.is_empty() && !self.in_words;
        let Some(template) = &self.templates[usize::from(by_template)] else {
            return Err(Problem::unsupported("messages", "the model has no chat template")
                .with("hint", "ask /v1/completions, or start the server with --chat-template FILE"));
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let conversation = Conversation::new(chat.messages).with_date(now);
        let mut conversation = match self.in_words {
            true => conversation.with_tools_in_words(&chat.tools),
            false => conversation.with_tools(&chat.tools),
        };
        for (name, value) in chat.variables {
            conversation = conversation.with_variable(name, value);
        }
        let mut rendered = template.render(&conversation);
        // Some templates refuse the system, and some leave out what it says.
        let is_shown = |text: &String| text.contains("<tools>");
        if self.in_words && !chat.tools.is_empty() && !rendered.as_ref().is_ok_and(is_shown) {
            rendered = template.render(&conversation.with_system_in_user());
        }
        rendered.map_err(|error| {
            let problem = Problem::invalid("messages", error.to_string());
            match error.hint() {
                Some(hint) => problem.with("hint", hint),
                None => problem,
            }
        })
    }

    /// Refuses a text that has too many tokens however it is split, before it is split.
    fn fits(&self, text: &str, param: &str) -> Result<(), Problem> {
        let least = text.len() / self.longest.max(1);
        if least <= self.most {
            return Ok(());
        }
        let message = format!(
            "the prompt has {} bytes, and so {least} tokens at least; with a text after it the model takes \
             from 1 to {}",
            text.len(),
            self.most
        );
        Err(Problem::bad_request("context_length_exceeded", message).param(param))
    }
}
