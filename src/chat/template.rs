//! Chat templates and their rendering.

use std::{collections::BTreeMap, io, panic::AssertUnwindSafe, panic::catch_unwind};

use minijinja::{Error, ErrorKind, Value};
use serde_json::{Value as Json, json};

use super::error::{ChatError, ChatErrorKind};
use super::filters::{Refusal, environment};
use super::{admission::admit, budget::RenderBudget, conversation::Conversation, methods};

/// The name of the template in minijinja.
const NAME: &str = "chat template";

/// A model's chat template, which makes a prompt of messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatTemplate {
    source: String,
    /// The source as it was rewritten for minijinja.
    admitted: String,
    /// The special tokens, by their names in templates, such as `bos_token`.
    tokens: BTreeMap<String, String>,
    /// The file or folder that the template is from.
    place: Option<String>,
}

impl ChatTemplate {
    /// Reads a template in Jinja. Linear.
    ///
    /// # Errors
    /// If it is too long, is not Jinja, or uses a part of it that is not supported; with the line.
    pub fn parse(source: impl Into<String>) -> Result<Self, ChatError> {
        let source = source.into();
        // Jinja2 normalises line ends in this way.
        let admitted = admit(&source.replace("\r\n", "\n").replace('\r', "\n"))?;
        let budget = RenderBudget::of(&Json::Null);
        let parsed = catch_unwind(AssertUnwindSafe(|| {
            environment(&budget, None).template_from_named_str(NAME, &admitted).map(drop)
        }));
        parsed.map_err(|_| panicked())?.map_err(|error| told(&error))?;
        Ok(Self { source, admitted, tokens: BTreeMap::new(), place: None })
    }

    /// Sets the text of a special token, by its name in templates, such as `bos_token`.
    #[must_use]
    pub fn with_token(mut self, name: impl Into<String>, token: impl Into<String>) -> Self {
        self.tokens.insert(name.into(), token.into());
        self
    }

    pub(super) fn at_place(mut self, place: String) -> Self {
        self.place = Some(place);
        self
    }

    /// The template as it was read.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The special token with a name such as `bos_token`.
    #[must_use]
    pub fn token(&self, name: &str) -> Option<&str> {
        self.tokens.get(name).map(String::as_str)
    }

    /// The family of prompts that the template writes, such as ChatML, by its marks; `None` if it is unknown.
    #[must_use]
    pub fn family(&self) -> Option<&'static str> {
        family_of(&self.source)
    }

    /// True if the template looks at the functions that may be called, so that the model is shown them.
    #[must_use]
    pub fn shows_tools(&self) -> bool {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        self.source.split(|c| !is_part(c)).any(|word| word == "tools")
    }

    /// Renders the prompt of a conversation. Texts of special tokens in it become these tokens, whoever wrote
    /// them, as in transformers and llama.cpp.
    ///
    /// Takes time in proportion to the work of the template, which is bounded by its length and that of the
    /// messages. A template reaches no files and sees nothing but the conversation.
    ///
    /// # Errors
    /// If the template refuses the messages, fails on them, or does too much; with the line.
    pub fn render(&self, conversation: &Conversation) -> Result<String, ChatError> {
        let rendered = catch_unwind(AssertUnwindSafe(|| self.rendered(conversation)));
        let rendered = rendered.unwrap_or_else(|_| Err(panicked()));
        rendered.map_err(|error| match &self.place {
            Some(place) => error.at(place),
            None => error,
        })
    }

    fn rendered(&self, conversation: &Conversation) -> Result<String, ChatError> {
        let Conversation { tools, variables, generation_prompt, date, .. } = conversation;
        let tools = if tools.is_empty() { Json::Null } else { Json::from(tools.clone()) };
        let mut inputs = json!({
            "messages": conversation.normalised(), "tools": tools, "documents": null,
            "add_generation_prompt": generation_prompt,
        });
        for (name, token) in &self.tokens {
            inputs[name] = Json::from(token.as_str());
        }
        for (name, value) in variables {
            inputs[name] = value.clone();
        }
        let budget = RenderBudget::of(&inputs);
        let env = environment(&budget, *date);
        let template = env.template_from_named_str(NAME, &self.admitted).map_err(|error| told(&error))?;
        let context: BTreeMap<String, Value> = inputs
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.clone(), methods::value(value, &budget)))
            .collect();
        let mut out = Bounded { text: Vec::new(), most: budget.most_text() };
        let rendered = template.render_captured_to(context, &mut out);
        rendered.map_err(|error| told(&error))?;
        String::from_utf8(out.text).map_err(|_| panicked())
    }
}

/// A writer with a limit: plain text of the template does not go through its formatter.
struct Bounded {
    text: Vec<u8>,
    most: usize,
}

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.text.len() + bytes.len() > self.most {
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, "the template writes without end"));
        }
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn panicked() -> ChatError {
    ChatError::new(ChatErrorKind::Failed, "the chat template could not be read to its end")
}

/// Converts an error of minijinja, with its line.
fn told(error: &Error) -> ChatError {
    let first: &(dyn std::error::Error + 'static) = error;
    let causes = || std::iter::successors(Some(first), |error| error.source());
    let refusal = causes().find_map(|cause| cause.downcast_ref::<Refusal>());
    let mut faults = causes().filter_map(|cause| cause.downcast_ref::<io::Error>());
    let is_quota = faults.any(|error| error.kind() == io::ErrorKind::QuotaExceeded);
    let said = match error.detail() {
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    };
    let says = |part: &str| error.detail().is_some_and(|detail| detail.contains(part));
    let limit = |what: &str| ChatError::new(ChatErrorKind::Limit, what);
    let told = match (refusal, error.kind()) {
        (Some(Refusal(message)), _) => {
            ChatError::new(ChatErrorKind::Refused, format!("the template refuses the messages: {message}"))
                .with_hint("models differ in the roles and the order of messages that they take")
        }
        _ if is_quota => limit("the template writes without end"),
        (_, ErrorKind::OutOfFuel) => {
            limit(error.detail().unwrap_or("the template takes more steps than the messages are worth"))
        }
        (_, ErrorKind::SyntaxError) if says("maximum recursion") => {
            limit("tags or brackets are nested too deeply")
        }
        _ if says("recursion limit") => limit("macros call one another too deeply"),
        (_, ErrorKind::SyntaxError | ErrorKind::BadEscape) => ChatError::new(ChatErrorKind::Syntax, said),
        (
            _,
            ErrorKind::UnknownFilter
            | ErrorKind::UnknownTest
            | ErrorKind::UnknownMethod
            | ErrorKind::UnknownFunction,
        ) => ChatError::new(ChatErrorKind::Syntax, format!("not supported in chat templates: {said}")),
        _ => ChatError::new(ChatErrorKind::Failed, said)
            .with_hint("the template may look for something that these messages do not have"),
    };
    told.on_line(error.line().filter(|&line| line > 0))
}

/// The families, with the marks that all their templates have, the most specific first.
const FAMILIES: [(&str, &[&str]); 13] = [
    ("Harmony", &["<|channel|>", "<|start|>"]),
    ("Llama 4", &["<|header_start|>"]),
    ("Llama 3", &["<|start_header_id|>"]),
    ("DeepSeek", &["<\u{ff5c}User\u{ff5c}>"]),
    ("Gemma", &["<start_of_turn>"]),
    ("Command R", &["<|START_OF_TURN_TOKEN|>"]),
    ("Granite", &["<|start_of_role|>"]),
    ("ChatML", &["<|im_start|>"]),
    ("Phi", &["<|end|>", "<|assistant|>"]),
    ("Zephyr", &["<|assistant|>"]),
    ("Llama 2", &["[INST]", "<<SYS>>"]),
    ("Mistral", &["[INST]"]),
    ("Alpaca", &["### Instruction"]),
];

/// The family of a template; `None` if its marks are unknown. Linear.
fn family_of(template: &str) -> Option<&'static str> {
    let has_all = |marks: &[&str]| marks.iter().all(|mark| template.contains(mark));
    FAMILIES.iter().find(|(_, marks)| has_all(marks)).map(|(name, _)| *name)
}
