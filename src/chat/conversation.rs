//! Conversations: messages, tools and further variables for a template. For models whose template has no form
//! for functions and their calls, these become words of the conversation: those of Qwen 2.5's template, and
//! so nearly those of Hermes 2 Pro, since many models have seen them.

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
        self.messages = messages_in_words(self.messages);
        match tools.is_empty() {
            true => self,
            false => self.with_more_system(&functions_in_words(tools.iter().map(as_function))),
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

/// Writes what the system says of the functions that the model may call.
fn functions_in_words(tools: impl Iterator<Item = Json>) -> String {
    let list: String = tools.map(|tool| format!("{tool}\n")).collect();
    format!(
        "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n\
         You are provided with function signatures within <tools></tools> XML tags:\n\
         <tools>\n{list}</tools>\n\n\
         For each function call, return a json object with function name and arguments within \
         <tool_call></tool_call> XML tags:\n\
         <tool_call>\n{{\"name\": <function-name>, \"arguments\": <args-json-object>}}\n</tool_call>"
    )
}

/// Makes texts of the model of calls in messages, and texts of the user of answers of functions. Answers that
/// follow one another become one message.
fn messages_in_words(messages: Vec<Json>) -> Vec<Json> {
    let mut all: Vec<Json> = Vec::with_capacity(messages.len());
    let mut answered = false;
    for mut message in messages {
        let answers = message["role"] == "tool" || message["role"] == "function";
        let said = message["content"].as_str().unwrap_or_default();
        if answers {
            let text = format!("<tool_response>\n{said}\n</tool_response>");
            match all.last_mut().filter(|_| answered) {
                Some(last) => {
                    last["content"] =
                        format!("{}\n{text}", last["content"].as_str().unwrap_or_default()).into();
                }
                None => all.push(json!({ "role": "user", "content": text })),
            }
        } else {
            if let Some(calls) = message["tool_calls"].as_array().filter(|calls| !calls.is_empty()) {
                let parts = [said.to_owned()].into_iter().filter(|said| !said.is_empty());
                let parts: Vec<String> = parts.chain(calls.iter().map(call_in_words)).collect();
                message["content"] = parts.join("\n").into();
            }
            if let Some(members) = message.as_object_mut() {
                members.shift_remove("tool_calls");
            }
            all.push(message);
        }
        answered = answers;
    }
    all
}

/// Writes a call as the model does. Arguments may be an object or its text, as in OpenAI's API.
fn call_in_words(call: &Json) -> String {
    let function = call.get("function").unwrap_or(call);
    let arguments = match &function["arguments"] {
        Json::Null => "{}".to_owned(),
        Json::String(text) => text.clone(),
        other => other.to_string(),
    };
    format!("<tool_call>\n{{\"name\": {}, \"arguments\": {arguments}}}\n</tool_call>", function["name"])
}

#[cfg(test)]
mod tests {
    use super::{super::ChatTemplate, super::Conversation, *};

    /// A template that knows nothing of functions, and one that knows nothing of the system either.
    const PLAIN: &str = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}";
    const NO_SYSTEM: &str = "{% for m in messages %}{% if m.role == 'system' %}\
         {{ raise_exception('no system') }}{% endif %}[{{ m.role }}]{{ m.content }}{% endfor %}";

    fn paint() -> Json {
        json!({ "name": "paint", "description": "Paints.", "parameters": { "type": "object" } })
    }

    fn rendered(template: &str, conversation: &Conversation) -> String {
        ChatTemplate::parse(template).unwrap().render(conversation).unwrap()
    }

    #[test]
    fn functions_stand_in_what_the_system_says() {
        let user = json!({ "role": "user", "content": "hi" });
        let system = json!({ "role": "system", "content": "Be brief." });
        let alone = Conversation::new(vec![user.clone()]).with_tools_in_words(&[paint()]);
        let text = rendered(PLAIN, &alone);
        assert!(text.starts_with("[system]# Tools\n") && text.ends_with("</tool_call>[user]hi"), "{text}");
        for part in ["\"paint\"", "Paints.", "\"parameters\":{\"type\":\"object\"}"] {
            assert!(text.contains(part), "{text}");
        }
        let both = Conversation::new(vec![system, user.clone()]).with_tools_in_words(&[paint()]);
        let text = rendered(PLAIN, &both);
        assert!(text.starts_with("[system]Be brief.\n\n# Tools\n") && text.ends_with("[user]hi"), "{text}");
        let text = rendered(NO_SYSTEM, &both.with_system_in_user());
        assert!(text.starts_with("[user]Be brief.\n\n# Tools\n") && text.ends_with("\n\nhi"), "{text}");
        assert_eq!(Conversation::new(vec![user.clone()]).with_tools_in_words(&[]).messages(), [user]);
    }

    #[test]
    fn calls_and_answers_are_texts() {
        let call =
            |arguments: Json| json!({ "id": "c", "function": { "name": "f", "arguments": arguments } });
        let said =
            json!({ "role": "assistant", "content": "Look.", "tool_calls": [call(json!("{\"a\": 1}"))] });
        let silent =
            json!({ "role": "assistant", "tool_calls": [call(json!({ "a": 1 })), call(json!(null))] });
        let answer = |text: &str| json!({ "role": "tool", "tool_call_id": "c", "content": text });
        let all = messages_in_words(vec![said, answer("1"), silent, answer("2"), answer("3")]);
        let wanted = [
            ("assistant", "Look.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>"),
            ("user", "<tool_response>\n1\n</tool_response>"),
            (
                "assistant",
                "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\":1}}\n</tool_call>\n\
                 <tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>",
            ),
            ("user", "<tool_response>\n2\n</tool_response>\n<tool_response>\n3\n</tool_response>"),
        ];
        let wanted = wanted.map(|(role, content)| json!({ "role": role, "content": content }));
        assert_eq!(all, wanted);
    }
}
