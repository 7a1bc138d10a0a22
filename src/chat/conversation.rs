//! Conversations: messages, tools and further variables for a template.

mod in_words;

use serde_json::{Map, Value as Json, json};

/// The names that messages have for thoughts; the first is the usual one.
const THOUGHTS: [&str; 3] = ["reasoning_content", "thinking", "reasoning"];

/// Messages and tools, as a chat template takes them.
///
/// ```
/// use domino::chat::{ChatTemplate, Conversation};
///
/// let template = "{% for message in messages %}<{{ message.role }}>{{ message.content }}\n{% endfor %}\
///                 {% if add_generation_prompt %}<assistant>{% endif %}";
/// let template = ChatTemplate::parse(template)?;
/// let text = template.render(&Conversation::of_prompt(Some("Be brief."), "Who are you?"))?;
/// assert_eq!(text, "<system>Be brief.\n<user>Who are you?\n<assistant>");
/// # Ok::<(), domino::chat::ChatError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Conversation {
    pub(super) messages: Vec<Json>,
    pub(super) tools: Vec<Json>,
    pub(super) variables: Map<String, Json>,
    pub(super) generation_prompt: bool,
    pub(super) date: Option<u64>,
}

impl Conversation {
    /// A conversation of messages, each an object with at least `role` and `content`, which the model is to
    /// continue.
    #[must_use]
    pub fn new(messages: Vec<Json>) -> Self {
        Self { messages, tools: Vec::new(), variables: Map::new(), generation_prompt: true, date: None }
    }

    /// A question by a user, behind a message of the system if one is given.
    #[must_use]
    pub fn of_prompt(system: Option<&str>, prompt: &str) -> Self {
        let system = system.map(|text| json!({ "role": "system", "content": text }));
        let user = json!({ "role": "user", "content": prompt });
        Self::new(system.into_iter().chain([user]).collect())
    }

    /// Puts a message of the system first, unless there is one.
    #[must_use]
    pub fn with_system(mut self, system: &str) -> Self {
        let first = self.messages.first().and_then(|message| message["role"].as_str());
        if !matches!(first, Some("system" | "developer")) {
            self.messages.insert(0, json!({ "role": "system", "content": system }));
        }
        self
    }

    /// Sets the functions that the model may call. Functions of OpenAI's API stay as they are; others (of
    /// MCP, of Anthropic's API, or without the `function` around them) are converted to that form.
    #[must_use]
    pub fn with_tools(mut self, tools: &[Json]) -> Self {
        self.tools = tools.iter().map(as_function).collect();
        self
    }

    /// Shows the model its functions in words of the system, for a template that shows none, or whose way to
    /// write calls is not known. The words, and the form of calls in them, are those of Hermes 2 Pro and
    /// Qwen 2.5: `<tool_call>` around a JSON object. Messages with calls, and answers of functions, become
    /// texts in this form, so any template takes them.
    #[must_use]
    pub fn with_tools_in_words(mut self, tools: &[Json]) -> Self {
        self.messages = in_words::messages(self.messages);
        match tools.is_empty() {
            true => self,
            false => self.with_more_system(&in_words::functions(tools.iter().map(as_function))),
        }
    }

    /// Puts what the system says first before what the user says first, for templates without a role for
    /// the system.
    #[must_use]
    pub fn with_system_in_user(mut self) -> Self {
        let role = |message: &Json, role: &str| message["role"] == role;
        let system = self.messages.first().filter(|first| role(first, "system") || role(first, "developer"));
        let Some(text) = system.and_then(|system| system["content"].as_str()).map(str::to_owned) else {
            return self;
        };
        if let Some(user) = self.messages.iter_mut().find(|message| role(message, "user"))
            && let Some(said) = user["content"].as_str()
        {
            user["content"] = format!("{text}\n\n{said}").into();
            self.messages.remove(0);
        }
        self
    }

    /// Puts a text behind what the system says first.
    fn with_more_system(mut self, more: &str) -> Self {
        let mut system = self.messages.first_mut().filter(|message| message["role"] == "system");
        let text = system.as_mut().and_then(|system| system["content"].as_str());
        match (text.map(|text| format!("{text}\n\n{more}")), system) {
            (Some(both), Some(system)) => system["content"] = both.into(),
            _ => self.messages.insert(0, json!({ "role": "system", "content": more })),
        }
        self
    }

    /// Sets a further variable of the template, such as `enable_thinking`.
    #[must_use]
    pub fn with_variable(mut self, name: impl Into<String>, value: Json) -> Self {
        self.variables.insert(name.into(), value);
        self
    }

    /// Sets whether the text ends with the beginning of the model's answer. By default it does.
    #[must_use]
    pub fn with_generation_prompt(mut self, generation_prompt: bool) -> Self {
        self.generation_prompt = generation_prompt;
        self
    }

    /// Sets the date that a template can ask for (`strftime_now`), in seconds since the beginning of 1970, in
    /// UTC. Without it the function does not exist, and templates that test for it use a date of their own.
    #[must_use]
    pub fn with_date(mut self, unix: u64) -> Self {
        self.date = Some(unix);
        self
    }

    /// The messages as templates get them from transformers: without members that are null, and with thoughts
    /// under all names that templates have for them.
    pub(super) fn normalised(&self) -> Vec<Json> {
        let normalised = |message: &Json| {
            let Json::Object(members) = message else { return message.clone() };
            let mut members = members.clone();
            members.retain(|_, value| !value.is_null());
            let thoughts = THOUGHTS.iter().find_map(|name| members.get(*name)).cloned();
            if let Some(thoughts) = thoughts {
                members.entry("thinking").or_insert_with(|| thoughts.clone());
                members.insert(THOUGHTS[0].to_owned(), thoughts);
            }
            Json::Object(members)
        };
        self.messages.iter().map(normalised).collect()
    }

    /// The messages.
    #[must_use]
    pub fn messages(&self) -> &[Json] {
        &self.messages
    }
}

/// Converts a function to the form of OpenAI's API.
fn as_function(tool: &Json) -> Json {
    let function = match tool.get("function") {
        Some(function) if function.is_object() && tool.get("type").is_some() => return tool.clone(),
        Some(function) if function.is_object() => function,
        _ => tool,
    };
    let mut own = function.as_object().cloned().unwrap_or_default();
    own.shift_remove("type");
    for other in ["inputSchema", "input_schema"] {
        if let Some(schema) = own.shift_remove(other) {
            own.entry("parameters").or_insert(schema);
        }
    }
    json!({ "type": "function", "function": own })
}
