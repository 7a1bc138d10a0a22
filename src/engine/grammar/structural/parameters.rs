//! Arguments of a function between XML tags, such as those of Qwen3-Coder (other styles have other
//! [marks](ArgumentMarks)):
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
//! in quotes, unless the tag says whether it is a string. Parameters come in the order of the schema, or in
//! any where the options or the format say so, and those that are not required may be left out.

use std::collections::HashMap;

use crate::{
    grammar::{
        AnyOrder, Pattern,
        document::NodeId,
        json_schema::{
            Order,
            arguments::{Argument, ArgumentMarks, ArgumentName, arguments, around_arguments},
            keyword_warnings,
        },
        source::Span,
    },
    ids::ExprId,
};

use super::{
    JsonForm,
    translate::{TagResult, TagTranslator},
};

/// An argument behind the beginning of its tag, whether it is required, and how often it may come.
type ArgumentPart = (ExprId, bool, Option<u32>);

impl TagTranslator<'_, '_> {
    /// The arguments of an object's schema.
    pub(super) fn parameters(
        &mut self,
        schema: NodeId,
        form: JsonForm,
        marks: &'static ArgumentMarks,
    ) -> TagResult<ExprId> {
        let options = form.options(self.options);
        let span = self.documents.span(schema);
        let document = self.documents.document(schema);
        let text = self.documents.text(document).get(span.range()).unwrap_or_default();
        let read = arguments(marks, &options, text, self.limits, self.automata);
        let read = read.map_err(|error| self.of_schema(error, text, span))?;
        self.warn_of_keywords(&keyword_warnings(&options, text), text, span);
        if read.may_repeat {
            self.warn_of_repeated(span);
        }
        if read.left_out {
            self.warn_of_long(span);
        }
        let space = self.pattern(around_arguments(&options, self.automata), span)?;
        // In any order the beginnings of tags separate the arguments.
        let any_order = options.order == Order::Any;
        let begin = if any_order { "" } else { marks.key };
        let mut ways = Vec::with_capacity(read.ways.len());
        // The alternatives share most of their arguments.
        let mut known = HashMap::new();
        for way in read.ways {
            let (mut all, mut parts) = (vec![space], Vec::new());
            for argument in way {
                let at = argument.span.shifted(span.start);
                let (required, max) = match &argument.name {
                    ArgumentName::Is(_) => (argument.required, Some(1)),
                    ArgumentName::In(_) => (false, None),
                };
                let one = self.argument(argument, &mut known, (marks, begin, space), (at, span))?;
                let one = self.sequence(vec![one, space], at)?;
                if any_order {
                    parts.push((one, required, max));
                } else {
                    all.push(self.repeat(one, u32::from(required), max, at)?);
                }
            }
            all.push(self.in_any_order(marks.key, parts, span)?);
            ways.push(self.sequence(all, span)?);
        }
        self.choice(ways, span)
    }

    /// Arguments behind the beginning of their tags, which stands before each of them, in any order.
    fn in_any_order(&mut self, begin: &str, parts: Vec<ArgumentPart>, span: Span) -> TagResult<ExprId> {
        if parts.is_empty() {
            return self.sequence(Vec::new(), span);
        }
        let some = parts.iter().any(|(_, required, _)| *required);
        let (named, others): (Vec<_>, Vec<_>) = parts.into_iter().partition(|(_, _, max)| max.is_some());
        let named = named.into_iter().map(|(part, required, _)| (part, required)).collect();
        let others = others.into_iter().map(|(part, _, _)| part).collect();
        let begin = self.text(begin, span)?;
        let list = self.list(AnyOrder::new(named, others, begin), span)?;
        let list = self.sequence(vec![begin, list], span)?;
        self.repeat(list, u32::from(some), Some(1), span)
    }

    /// An argument with its tags, of which the first begins with `begin`. `span` is its place, `schema` the
    /// place of the schema of all arguments, and `known` has the names written so far.
    fn argument(
        &mut self,
        argument: Argument,
        known: &mut HashMap<String, ExprId>,
        (marks, begin, space): (&ArgumentMarks, &str, ExprId),
        (span, schema): (Span, Span),
    ) -> TagResult<ExprId> {
        let ArgumentMarks { named, values: [before_string, before_json], end, .. } = marks;
        let mut parts = match argument.name {
            ArgumentName::Is(name) => match known.get(&*name) {
                Some(&written) => vec![written],
                None => {
                    let written = self.text(&format!("{begin}{name}{named}"), span)?;
                    known.insert(name.to_string(), written);
                    vec![written]
                }
            },
            ArgumentName::In(names) => {
                let names = self.pattern(Pattern::automaton(names), span)?;
                vec![self.text(begin, span)?, names, self.text(named, span)?]
            }
        };
        if named.ends_with('>') {
            parts.push(space);
        }
        let texts = argument.texts.into_iter().map(|text| self.pattern(text, span));
        let mut values = texts.collect::<TagResult<Vec<_>>>()?;
        if !values.is_empty() && !before_string.is_empty() {
            let strings = vec![self.text(before_string, span)?, self.choice(values, span)?];
            values = vec![self.sequence(strings, span)?];
        }
        if let Some(json) = &argument.json {
            let (open, end) = (self.text(&format!("{before_json}>"), span)?, self.text(end, span)?);
            let json = self.embedded(json, schema)?;
            values.push(self.sequence(vec![open, space, json, space, end], span)?);
        }
        parts.push(self.choice(values, span)?);
        self.sequence(parts, span)
    }
}
