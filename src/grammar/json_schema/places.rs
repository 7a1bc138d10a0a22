//! Maps a place in a schema's text back to its JSON pointer, to show where a rule or an automaton comes from.

use std::collections::HashMap;

use super::document::{Documents, NodeId, Value};
use crate::grammar::source::Span;

/// The schemas of a text by their places.
#[derive(Debug)]
pub struct SchemaPlaces {
    documents: Documents,
    objects: HashMap<Span, NodeId>,
}

impl SchemaPlaces {
    /// Reads a text. `None` if it is not JSON. Linear.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let mut documents = Documents::default();
        documents.read(text).ok()?;
        let objects = documents.objects().map(|node| (documents.span(node), node)).collect();
        Some(Self { documents, objects })
    }

    /// The JSON pointer, as a URI fragment, of the schema that is the span of a rule of its grammar. `None`
    /// for rules of another document, and for those not made of one schema alone.
    #[must_use]
    pub fn pointer(&self, span: Span) -> Option<String> {
        self.objects.get(&span).map(|&node| self.documents.pointer(node))
    }

    /// The keywords of the schema at a span, in the order of the text.
    #[must_use]
    pub fn keywords(&self, span: Span) -> Vec<&str> {
        match self.objects.get(&span).map(|&node| self.documents.value(node)) {
            Some(Value::Object(members)) => members.iter().map(|(key, _)| &**key).collect(),
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Grammar, Limits, Syntax};

    #[test]
    fn rules_are_traced_to_the_pointers_of_their_schemas() {
        let text = r#"{"properties": {"a/b": {"type": "string", "pattern": "^a+$"}}, "type": "object"}"#;
        let grammar = Grammar::parse(Syntax::JsonSchema, text, &Limits::default()).unwrap();
        let places = SchemaPlaces::read(text).unwrap();
        let spans: Vec<_> = grammar.rules().map(|rule| grammar.rule_span(rule)).collect();
        let pointers: Vec<_> = spans.iter().filter_map(|&span| places.pointer(span)).collect();
        assert!(pointers.contains(&"#/properties/a~1b".to_owned()), "{pointers:?}");
        let span = *spans.iter().find(|&&span| places.pointer(span).is_some_and(|p| p.len() > 1)).unwrap();
        assert_eq!(places.keywords(span), ["type", "pattern"]);
        assert_eq!(places.pointer(Span::new(3, 4)), None);
        assert!(SchemaPlaces::read("{").is_none());
    }
}
