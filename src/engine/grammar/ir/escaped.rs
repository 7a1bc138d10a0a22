//! Grammars -> the grammars of their texts between the quotes of a JSON string, each character written in one
//! way: escaped where JSON wants that, by the short escape where there is one, and as itself elsewhere.
//!
//! What JSON escapes are single bytes, so a text is escaped byte by byte, and a grammar terminal by terminal.

use regex_syntax::hir::{
    Class, ClassBytes, ClassBytesRange, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Repetition,
};

use super::{Expr, Grammar, pattern::Pattern};

impl Grammar {
    /// The grammar of these texts inside of JSON strings. `None` if a terminal is an automaton, or a token.
    /// Linear.
    pub(in crate::grammar) fn escaped(&self) -> Option<Self> {
        let mut grammar = self.clone();
        for expr in &mut *grammar.exprs {
            if let Expr::Pattern(pattern) = expr {
                let plain = pattern.hir().filter(|_| pattern.classes().is_empty())?;
                *pattern = Pattern::from_hir(escaped(plain)).ok()?;
            }
        }
        Some(grammar)
    }
}

/// The escape of a byte; `None` if it stands for itself.
fn escape(byte: u8) -> Option<String> {
    Some(match byte {
        b'"' => r#"\""#.to_owned(),
        b'\\' => r"\\".to_owned(),
        0x08 => r"\b".to_owned(),
        b'\t' => r"\t".to_owned(),
        b'\n' => r"\n".to_owned(),
        0x0C => r"\f".to_owned(),
        b'\r' => r"\r".to_owned(),
        0..0x20 => format!("\\u{byte:04x}"),
        _ => return None,
    })
}

/// The expression of the escaped texts. Expressions are nested as deep as their limit at most, which bounds
/// the recursion.
fn escaped(hir: &Hir) -> Hir {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => hir.clone(),
        HirKind::Literal(literal) => {
            let bytes =
                literal.0.iter().flat_map(|&byte| escape(byte).map_or(vec![byte], String::into_bytes));
            Hir::literal(bytes.collect::<Vec<u8>>())
        }
        HirKind::Class(Class::Unicode(class)) => {
            let mut plain = class.clone();
            plain.difference(&ClassUnicode::new(
                (0..=u8::MAX)
                    .filter(|&byte| escape(byte).is_some())
                    .map(char::from)
                    .map(|c| ClassUnicodeRange::new(c, c)),
            ));
            let has = |byte: u8| {
                class.iter().any(|range| (range.start()..=range.end()).contains(&char::from(byte)))
            };
            either(Class::Unicode(plain), has)
        }
        HirKind::Class(Class::Bytes(class)) => {
            let mut plain = class.clone();
            plain.difference(&ClassBytes::new(
                (0..=u8::MAX)
                    .filter(|&byte| escape(byte).is_some())
                    .map(|byte| ClassBytesRange::new(byte, byte)),
            ));
            let has = |byte: u8| class.iter().any(|range| (range.start()..=range.end()).contains(&byte));
            either(Class::Bytes(plain), has)
        }
        HirKind::Repetition(repetition) => {
            let sub = Box::new(escaped(&repetition.sub));
            Hir::repetition(Repetition { sub, ..repetition.clone() })
        }
        HirKind::Capture(capture) => escaped(&capture.sub),
        HirKind::Concat(parts) => Hir::concat(parts.iter().map(escaped).collect()),
        HirKind::Alternation(parts) => Hir::alternation(parts.iter().map(escaped).collect()),
    }
}

/// A character that stands for itself, or the escape of one that the class has.
fn either(plain: Class, has: impl Fn(u8) -> bool) -> Hir {
    let escapes = (0..=u8::MAX).filter(|&byte| has(byte)).filter_map(escape);
    let escapes = escapes.map(|escape| Hir::literal(escape.into_bytes()));
    Hir::alternation(std::iter::once(Hir::class(plain)).chain(escapes).collect())
}
