//! Turns prompts into tokens: as they are, or in a model's chat template.

use super::{
    definition::{Definition, Task},
    error::ExperimentError,
};
use crate::{
    chat::{ChatTemplate, Conversation},
    ids::TokenId,
    vocab::{Tokenizer, Vocabulary},
};

/// Maker of the tokens of a definition's prompts, for one model.
pub(super) struct PromptWriter<'a> {
    pub(super) definition: &'a Definition,
    /// Name of the model in the definition.
    pub(super) model: &'a str,
    pub(super) template: Option<&'a ChatTemplate>,
    pub(super) tokenizer: &'a Tokenizer,
    pub(super) vocabulary: &'a Vocabulary,
}

/// Tokens of several prompts.
type PromptTokens = Vec<Vec<TokenId>>;

impl PromptWriter<'_> {
    /// The tokens of a grammar's prompts, and of those that its warm-ups go on from.
    pub(super) fn of_task(&self, task: &Task) -> Result<(PromptTokens, PromptTokens), ExperimentError> {
        let tokens = |texts: Vec<&str>| -> Result<PromptTokens, ExperimentError> {
            texts.into_iter().map(|text| self.tokens(text, task)).collect()
        };
        let measured = tokens(task.prompts.iter().map(|prompt| prompt.text.as_str()).collect())?;
        Ok((measured, tokens(task.warm_up_prompts.iter().map(String::as_str).collect())?))
    }

    /// The tokens of a prompt; at least one, as a model has to go on from something.
    fn tokens(&self, text: &str, task: &Task) -> Result<Vec<TokenId>, ExperimentError> {
        let mut tokens = match self.definition.chat {
            true => self.tokenizer.encode_written(&self.in_template(text, task)?)?,
            false => self.tokenizer.encode(text, true)?,
        };
        if tokens.is_empty() {
            tokens.extend(self.vocabulary.end_of_text().first());
        }
        Ok(tokens)
    }

    /// The prompt as what a user says, in the model's template. Templates get no date, so that the same
    /// definition gives the same prompts on another day.
    fn in_template(&self, text: &str, task: &Task) -> Result<String, ExperimentError> {
        let wrong = |source| ExperimentError::Template { model: self.model.to_owned(), source };
        let template =
            self.template.ok_or_else(|| ExperimentError::NoTemplate { model: self.model.to_owned() })?;
        let mut conversation = Conversation::of_prompt(self.definition.system.as_deref(), text);
        if let Some(functions) = &task.functions {
            conversation = conversation.with_tools(&functions.values());
        }
        template.render(&conversation).map_err(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTE_LEVEL: &str = include_str!("../../tests/fixtures/byte_level.json");
    const TEMPLATE: &str = "{% for tool in tools %}[{{ tool.function.name }}]{% endfor %}\
        {% for message in messages %}<{{ message.role }}>{{ message.content }}{% endfor %}\
        {% if add_generation_prompt %}<assistant>{% endif %}{% if strftime_now is defined %}today{% endif %}";
    const FUNCTIONS: &str = r#"[{"name": "find", "parameters": {"type": "object"}}]"#;

    /// The texts of the prompts, and those of warm-ups, that a model gets by a definition with these lines.
    fn texts(lines: &str, template: Option<&str>) -> Result<(Vec<String>, Vec<String>), ExperimentError> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("tools.json"), FUNCTIONS).unwrap();
        let text = format!(
            "name = \"c\"\nmethods = [\"ours\"]\nprompts = [\"A?\", \"B?\"]\n\
             warm_up_prompts = [\"W?\"]\n{lines}"
        );
        let shipped = |name: &str| (name == "digits").then_some("root ::= [0-9]+");
        let definition = Definition::parse(&text, "", folder.path(), false, &shipped).unwrap();
        let template = template.map(|source| ChatTemplate::parse(source).unwrap());
        let vocabulary = Vocabulary::from_tokenizer_json(BYTE_LEVEL).unwrap();
        let tokenizer = Tokenizer::from_tokenizer_json(BYTE_LEVEL).unwrap();
        let writer = PromptWriter {
            definition: &definition,
            model: "m",
            template: template.as_ref(),
            tokenizer: &tokenizer,
            vocabulary: &vocabulary,
        };
        let (prompts, warm_ups) = writer.of_task(&definition.tasks[0])?;
        let text = |tokens: Vec<TokenId>| String::from_utf8(vocabulary.concat(&tokens)).unwrap();
        Ok((prompts.into_iter().map(text).collect(), warm_ups.into_iter().map(text).collect()))
    }

    #[test]
    fn prompts_are_what_the_definition_says() {
        let digits = "grammars = [\"digits\"]\n";
        let tools = "[[grammars]]\nname = \"calls\"\ntools = \"tools.json\"\nspelling = \"hermes\"\n";
        for (lines, first, warm_up) in [
            (digits.to_owned(), "A?", "W?"),
            (format!("chat = true\n{digits}"), "<user>A?<assistant>", "<user>W?<assistant>"),
            (
                format!("chat = true\nsystem = \"Brief.\"\n{digits}"),
                "<system>Brief.<user>A?<assistant>",
                "<system>Brief.<user>W?<assistant>",
            ),
            (tools.to_owned(), "A?", "W?"),
            (format!("chat = true\n{tools}"), "[find]<user>A?<assistant>", "[find]<user>W?<assistant>"),
        ] {
            let (prompts, warm_ups) = texts(&lines, Some(TEMPLATE)).unwrap();
            assert_eq!((&*prompts[0], &*warm_ups[0]), (first, warm_up), "{lines}");
            assert_eq!(prompts[1], first.replace('A', "B"));
        }
    }

    #[test]
    fn missing_and_refusing_chat_templates_are_errors() {
        let chat = "chat = true\ngrammars = [\"digits\"]\n";
        let none = texts(chat, None).unwrap_err();
        assert!(matches!(&none, ExperimentError::NoTemplate { model } if model == "m"), "{none}");
        assert!(none.is_bad_input() && none.hint().unwrap().contains("chat"));
        let strict = "{{ raise_exception('no system here') }}";
        let refused = texts(chat, Some(strict)).unwrap_err();
        assert!(refused.to_string().contains("no system here"), "{refused}");
        // Raw prompts need none.
        assert_eq!(texts("grammars = [\"digits\"]\n", None).unwrap().0, ["A?", "B?"]);
    }
}
