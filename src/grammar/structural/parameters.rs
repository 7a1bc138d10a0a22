//! Arguments of a function between XML tags, as Qwen3-Coder writes them:
//!
//! ```text
//! <parameter=city>
//! Paris
//! </parameter>
//! <parameter=days>
//! 3
//! </parameter>
//! ```
//!
//! Strings are written there as they are, without quotes and escapes; all else is JSON. A text that reads as
//! JSON of a type that the parameter may have is that value, so a string that is spelled like that is written
//! in quotes. Parameters come in the order of the schema, and those that are not required may be left out.

use std::collections::HashMap;

use crate::{
    grammar::{
        Pattern,
        document::NodeId,
        json_schema::{
            arguments::{Argument, ArgumentName, END, arguments, around_arguments},
            keyword_warnings,
        },
        source::Span,
    },
    ids::ExprId,
};

use super::translate::{TagResult, TagTranslator};

impl TagTranslator<'_, '_> {
    /// The arguments of an object's schema.
    pub(super) fn parameters(&mut self, schema: NodeId) -> TagResult<ExprId> {
        let span = self.documents.span(schema);
        let document = self.documents.document(schema);
        let text = self.documents.text(document).get(span.range()).unwrap_or_default();
        let read = arguments(self.options, text, self.limits, self.automata);
        let read = read.map_err(|error| self.of_schema(error, text, span))?;
        self.warn_of_keywords(&keyword_warnings(self.options, text), text, span);
        if read.may_repeat {
            self.warn_of_repeated(span);
        }
        if read.left_out {
            self.warn_of_long(span);
        }
        let space = self.pattern(around_arguments(self.options, self.automata), span)?;
        let mut ways = Vec::with_capacity(read.ways.len());
        // The alternatives share most of their arguments.
        let mut known = HashMap::new();
        for way in read.ways {
            let mut all = vec![space];
            for argument in way {
                let at = argument.span.shifted(span.start);
                let (required, max) = match &argument.name {
                    ArgumentName::Is(_) => (argument.required, Some(1)),
                    ArgumentName::In(_) => (false, None),
                };
                let one = self.argument(argument, &mut known, space, (at, span))?;
                let one = self.sequence(vec![one, space], at)?;
                all.push(self.repeat(one, u32::from(required), max, at)?);
            }
            ways.push(self.sequence(all, span)?);
        }
        self.choice(ways, span)
    }

    /// An argument with its tags. `span` is its place, `schema` the place of the schema of all arguments, and
    /// `known` has the tags written so far, by name.
    fn argument(
        &mut self,
        argument: Argument,
        known: &mut HashMap<String, ExprId>,
        space: ExprId,
        (span, schema): (Span, Span),
    ) -> TagResult<ExprId> {
        const BEGIN: &str = "<parameter=";
        let begin = match argument.name {
            ArgumentName::Is(name) => match known.get(&*name) {
                Some(&begin) => begin,
                None => {
                    let begin = self.text(&format!("{BEGIN}{name}"), span)?;
                    known.insert(name.to_string(), begin);
                    begin
                }
            },
            ArgumentName::In(names) => {
                let (begin, names) =
                    (self.text(BEGIN, span)?, self.pattern(Pattern::automaton(names), span)?);
                self.sequence(vec![begin, names], span)?
            }
        };
        let texts = argument.texts.into_iter().map(|text| self.pattern(text, span));
        let mut values = texts.collect::<TagResult<Vec<_>>>()?;
        if let Some(json) = &argument.json {
            let (open, end) = (self.text(">", span)?, self.text(END, span)?);
            let json = self.embedded(json, schema)?;
            values.push(self.sequence(vec![open, space, json, space, end], span)?);
        }
        let value = self.choice(values, span)?;
        self.sequence(vec![begin, value], span)
    }
}
