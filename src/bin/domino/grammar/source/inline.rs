//! Grammars without a file of their own: from a row of a batch, or made of a list of functions.

use std::borrow::Cow;

use domino::grammar::{
    json_schema::SchemaOptions,
    tools::{Calling, Tools},
};

use super::{GrammarSource, GrammarText};
use crate::{grammar::notation::Notation, terminal::failure::BadInput};

impl GrammarSource {
    /// The notation of the text.
    pub(crate) fn notation(&self) -> Notation {
        match self {
            Self::File(_, notation, _) => *notation,
            Self::Shipped(shipped) => shipped.notation,
            Self::Regex(_) => Notation::Regex,
            Self::Tools(..) => Notation::StructuralTag,
            Self::Text(text) => text.notation,
        }
    }

    /// The way to call its functions, if it is made of functions.
    pub(crate) fn calling(&self) -> Option<&Calling> {
        match self {
            Self::Tools(_, calling, _) => Some(calling),
            Self::Text(text) => text.tools.as_ref().map(|(_, calling)| calling),
            Self::File(..) | Self::Shipped(_) | Self::Regex(_) => None,
        }
    }
}

impl GrammarText {
    /// Takes a text as it is.
    pub(crate) fn inline(notation: Notation, text: String, schema: SchemaOptions) -> Self {
        let (name, text) = ("the grammar".to_owned(), Cow::Owned(text.into_bytes()));
        Self { name, notation, text, schema, tools: None, is_file: false }
    }

    /// Makes the text for a list of functions, which is called `name` in messages.
    pub(crate) fn of_tools(
        name: &str,
        list: String,
        calling: &Calling,
        schema: SchemaOptions,
    ) -> Result<Self, BadInput> {
        let tag = Tools::parse(&list).and_then(|tools| tools.structural_tag(calling));
        let tag = tag.map_err(|error| BadInput::in_file(name, &error))?;
        let (name, notation) = (name.to_owned(), Notation::StructuralTag);
        let text = Cow::Owned(tag.into_bytes());
        Ok(Self { name, notation, text, schema, tools: Some((list, calling.clone())), is_file: false })
    }

    /// The list of functions that the text was made from, and the way to call them.
    pub(crate) fn tools(&self) -> Option<&(String, Calling)> {
        self.tools.as_ref()
    }
}
