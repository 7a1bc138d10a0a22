//! Settings of thoughts before texts, as flags, rows and requests have them, and the thought of one text.

use domino::grammar::{Reasoning, ThoughtMarks, suggest, tools::Spelling};
use domino::{TokenId, Vocabulary};

use crate::terminal::failure::BadInput;

/// Tokens at the end of a prompt that may open or close a thought, white space after the mark included.
const LONGEST_MARK: usize = 12;

/// A value of `--reasoning`, also in rows and requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum WantedReasoning {
    /// The chat template and the end of the prompt decide.
    Auto,
    /// This is said.
    At(Reasoning),
}

impl WantedReasoning {
    /// Reads the value.
    pub(crate) fn named(name: &str) -> Result<Self, BadInput> {
        if name == "auto" {
            return Ok(Self::Auto);
        }
        Reasoning::named(name).map(Self::At).ok_or_else(|| {
            let names = || Reasoning::all().map(|(_, name)| name).chain(["auto"]);
            let near = suggest::did_you_mean(name, names());
            let all = || format!("it is one of {}", names().collect::<Vec<_>>().join(", "));
            BadInput::new(format!("`reasoning` is {name:?}")).hint(near.unwrap_or_else(all))
        })
    }
}

/// Settings of thoughts, as far as they are said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Thinking {
    pub(crate) place: Option<WantedReasoning>,
    pub(crate) marks: Option<ThoughtMarks>,
}

/// The thought before a text: its marks, and whether it must come.
pub(crate) type WantedThought = (ThoughtMarks, Reasoning);

impl Thinking {
    /// Makes marks of the opening and the closing one.
    pub(crate) fn marks_of(marks: &[String]) -> Result<ThoughtMarks, BadInput> {
        match marks {
            [open, close] => ThoughtMarks::new(open, close),
            _ => None,
        }
        .ok_or_else(|| {
            BadInput::new("thoughts have an opening and a closing mark, of 1 to 1,024 bytes")
                .hint("give both, such as \"<think>\" and \"</think>\"")
        })
    }

    /// Joins two parts; this one goes first where both say something.
    pub(crate) fn beside(&self, other: &Self) -> Self {
        Self { place: self.place.or(other.place), marks: self.marks.clone().or_else(|| other.marks.clone()) }
    }

    /// True if nothing is said.
    pub(crate) fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Finds the thought before a text of which there is no prompt.
    pub(crate) fn of_text(&self) -> Option<WantedThought> {
        self.decide("", None, false)
    }

    /// Finds the thought of an answer to a prompt. `template` is the text of the model's chat template, and
    /// `tail` the end of the prompt, which is in it if this is a `chat`. `None` if there is nothing beside
    /// the text itself.
    pub(crate) fn decide(&self, template: &str, tail: Option<&[u8]>, chat: bool) -> Option<WantedThought> {
        let place = self.place.or(chat.then_some(WantedReasoning::Auto))?;
        let marks = self.marks.clone().or_else(|| ThoughtMarks::of_chat_template(template));
        // A prompt may open a thought whatever the template shows.
        let opened = || {
            let usual = ThoughtMarks::default();
            (usual.behind(tail?) == Reasoning::Open).then_some(usual)
        };
        let marks = marks.or_else(opened);
        let thought = match place {
            WantedReasoning::Auto => {
                let marks = marks?;
                let reasoning = tail.map_or(Reasoning::Optional, |tail| marks.behind(tail));
                (marks, reasoning)
            }
            WantedReasoning::At(reasoning) => (marks.unwrap_or_default(), reasoning),
        };
        // Without a thought there may still be something before the answer.
        (thought.1 != Reasoning::Off || chat && !thought.0.plain().is_empty()).then_some(thought)
    }

    /// True for a grammar that has the thoughts in it: calls as gpt-oss writes them, and where nothing is
    /// said, tags that name the mark themselves.
    pub(crate) fn is_in(&self, calls: Option<Spelling>, grammar: &str, marks: &ThoughtMarks) -> bool {
        let asked = matches!(self.place, Some(WantedReasoning::At(_)));
        calls == Some(Spelling::Harmony) || !asked && grammar.contains(marks.close())
    }
}

/// The end of a prompt as text, with the names of special tokens.
pub(crate) fn tail(vocabulary: &Vocabulary, prompt: &[TokenId]) -> Vec<u8> {
    let tail = &prompt[prompt.len().saturating_sub(LONGEST_MARK)..];
    let spelt = |&token: &TokenId| {
        let name = || vocabulary.name(token).unwrap_or_default().as_bytes();
        vocabulary.bytes(token).unwrap_or_else(name).to_vec()
    };
    tail.iter().flat_map(spelt).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(place: Option<WantedReasoning>, template: &str, tail: &str, chat: bool) -> Option<Reasoning> {
        let thinking = Thinking { place, marks: None };
        thinking.decide(template, Some(tail.as_bytes()), chat).map(|(_, reasoning)| reasoning)
    }

    #[test]
    fn templates_and_prompts_decide_where_nothing_is_said() {
        let template = "{{ x }}<think></think>";
        assert_eq!(at(None, template, "a\n", true), Some(Reasoning::Optional));
        assert_eq!(at(None, template, "a<think>\n", true), Some(Reasoning::Open));
        assert_eq!(at(None, template, "<think>\n\n</think>\n\n", true), None);
        assert_eq!(at(None, "{{ x }}", "a<think>\n", true), Some(Reasoning::Open));
        assert_eq!(at(None, "{{ x }}", "a\n", true), None);
        assert_eq!(at(None, template, "a<think>\n", false), None);
        assert_eq!(at(Some(WantedReasoning::Auto), template, "a<think>\n", false), Some(Reasoning::Open));
        let required = Some(WantedReasoning::At(Reasoning::Required));
        assert_eq!(at(required, "", "a", false), Some(Reasoning::Required));
        assert_eq!(at(Some(WantedReasoning::At(Reasoning::Off)), template, "a<think>", true), None);
        // Harmony has a channel for answers.
        assert_eq!(at(None, "<|channel|>analysis", "<|start|>assistant", true), Some(Reasoning::Optional));
        let off = Some(WantedReasoning::At(Reasoning::Off));
        assert_eq!(at(off, "<|channel|>analysis", "<|start|>assistant", true), Some(Reasoning::Off));
    }

    #[test]
    fn grammars_with_thoughts_of_their_own_get_none() {
        let thought = ThoughtMarks::default();
        let said = Thinking { place: Some(WantedReasoning::At(Reasoning::Optional)), marks: None };
        let unsaid = Thinking::default();
        assert!(unsaid.is_in(None, "{\"end\": \"</think>\"}", &thought));
        assert!(
            !said.is_in(None, "{\"end\": \"</think>\"}", &thought) && !unsaid.is_in(None, "{}", &thought)
        );
        assert!(said.is_in(Some(Spelling::Harmony), "{}", &thought));
    }

    #[test]
    fn mistaken_names_have_a_hint() {
        assert_eq!(WantedReasoning::named("auto").unwrap(), WantedReasoning::Auto);
        assert_eq!(WantedReasoning::named("open").unwrap(), WantedReasoning::At(Reasoning::Open));
        assert!(WantedReasoning::named("optoinal").is_err());
        assert!(Thinking::marks_of(&["<a>".to_owned()]).is_err());
        assert!(Thinking::marks_of(&["<a>".to_owned(), String::new()]).is_err());
    }
}
