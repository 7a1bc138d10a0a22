//! Schemas in grammars: which of the options for JSON Schemas the notations take.

use domino::grammar::json_schema::{SchemaOptions, WhiteSpace};

use super::Notation;

impl Notation {
    /// The options for schemas inside a text of this notation: those of their spelling, if it can have any
    /// inside.
    pub(crate) fn options_inside(self, options: &SchemaOptions) -> SchemaOptions {
        let inside = SchemaOptions::default();
        let leaves = |inside: SchemaOptions| {
            let inside = inside.with_numbers(options.numbers).with_escapes(options.escapes);
            inside.with_format(options.format)
        };
        match self {
            Self::JsonSchema => options.clone(),
            Self::StructuralTag => {
                let mut inside = inside.with_order(options.order).with_white_space(options.white_space);
                inside.closed = options.closed;
                leaves(inside)
            }
            Self::Lark => match options.white_space {
                // For judging: what stands around a schema is for other rules to say.
                WhiteSpace::Any => leaves(inside).with_white_space(WhiteSpace::Wide),
                _ => leaves(inside),
            },
            Self::Gbnf | Self::Regex | Self::LarkGreedy | Self::Ebnf => inside,
        }
    }

    /// The flags for schemas that a grammar in this notation takes; `None` if it takes all.
    pub(crate) fn schema_flags(self) -> Option<&'static [&'static str]> {
        match self {
            Self::JsonSchema => None,
            Self::StructuralTag => {
                Some(&["--order", "--whitespace", "--escapes", "--numbers", "--format", "--closed"])
            }
            Self::Lark => Some(&["--escapes", "--numbers", "--format"]),
            Self::Gbnf | Self::Regex | Self::LarkGreedy | Self::Ebnf => Some(&[]),
        }
    }
}

#[cfg(test)]
mod tests {
    use domino::grammar::json_schema::{Escapes, Format, Numbers, Order};

    use super::*;

    /// An option reaches the schemas inside of a notation if and only if its flag is taken.
    #[test]
    fn options_reach_schemas_whose_flags_are_taken() {
        let usual = SchemaOptions::default();
        let changed = [
            ("--order", usual.clone().with_order(Order::Any)),
            ("--whitespace", usual.clone().with_white_space(WhiteSpace::Compact)),
            ("--escapes", usual.clone().with_escapes(Escapes::All)),
            ("--numbers", usual.clone().with_numbers(Numbers::Any)),
            ("--format", usual.clone().with_format(Format::Annotate)),
            ("--closed", usual.clone().with_closed(true)),
            ("--max-depth", usual.clone().with_max_depth(Some(3))),
        ];
        for notation in [Notation::StructuralTag, Notation::Lark, Notation::Gbnf, Notation::JsonSchema] {
            for (flag, options) in &changed {
                let taken = notation.schema_flags().is_none_or(|flags| flags.contains(flag));
                assert_eq!(notation.options_inside(options) == *options, taken, "{notation:?} {flag}");
                assert_eq!(notation.options_inside(options) != usual, taken, "{notation:?} {flag}");
            }
        }
    }
}
