//! A public name of a type is defined once in `src`, so that a reader who meets it knows what it is.
//!
//! Public is `pub` in any reach, `pub(super)` included. A private type counts as a definition too where a
//! public one has its name. Associated types, and types that only tests see, are none.

use std::collections::BTreeMap;

use super::{exceptions::Found, lexer::words, paths::next_word, source::Source};

/// The names that are defined more than once, each with how often.
pub(super) fn repeated(sources: &[Source]) -> Vec<Found> {
    let mut names: BTreeMap<String, (bool, Vec<String>)> = BTreeMap::new();
    for source in sources.iter().filter(|source| source.path.starts_with("src/")) {
        for (at, name, public) in definitions(&source.product()) {
            let (any_public, places) = names.entry(name).or_default();
            *any_public |= public;
            places.push(source.place(at));
        }
    }
    names.retain(|_, (public, places)| *public && places.len() > 1);
    let found = names.into_iter().map(|(name, (_, places))| {
        let mut found = Found::counted("type", &name);
        for place in places {
            found.add(format!("{place} defines {name}, which is defined elsewhere too"));
        }
        found
    });
    found.collect()
}

/// Types that code defines: place, name, and whether it is public.
fn definitions(code: &str) -> Vec<(usize, String, bool)> {
    let mut found = Vec::new();
    for keyword in ["struct", "enum", "trait", "type", "union"] {
        for at in words(code, keyword) {
            let Some(name) = next_word(code, at + keyword.len()) else { continue };
            let before = code[..at].trim_end().trim_end_matches("unsafe").trim_end();
            let public = before.ends_with("pub")
                || before
                    .strip_suffix(')')
                    .and_then(|inside| inside.rsplit_once("pub("))
                    .is_some_and(|(_, inside)| !inside.contains(['(', ')', ';', '{', '}']));
            let starts = before.is_empty() || before.ends_with([';', '{', '}', ']']);
            let associated = keyword == "type" && !public && is_indented(code, at);
            if (public || starts) && !associated && name.starts_with(char::is_uppercase) {
                found.push((at, name.to_owned(), public));
            }
        }
    }
    found
}

/// True inside of a trait, an `impl` or a function: the line does not begin with the word at `at`.
fn is_indented(code: &str, at: usize) -> bool {
    let start = code[..at].rfind('\n').map_or(0, |line| line + 1);
    at > start
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(files: &[&str]) -> Vec<(String, usize)> {
        let sources: Vec<_> = files
            .iter()
            .enumerate()
            .map(|(number, text)| Source::new(&format!("src/{number}.rs"), text))
            .collect();
        repeated(&sources).into_iter().map(|found| (found.subject, found.count)).collect()
    }

    #[test]
    fn public_names_defined_twice_are_found() {
        assert_eq!(counts(&["pub struct Place;", "pub enum Place {}"]), [("Place".to_owned(), 2)]);
        assert_eq!(
            counts(&[
                "pub(crate) trait Row {}",
                "pub(super) type Row = u8;",
                "pub(in crate::a) union Row {}"
            ]),
            [("Row".to_owned(), 3)]
        );
        assert_eq!(counts(&["pub struct Part<'a>(&'a str);", "struct Part;"]), [("Part".to_owned(), 2)]);
        assert_eq!(counts(&["pub unsafe trait Way {}", "mod a {\n    pub struct Way;\n}"])[0].1, 2);
    }

    #[test]
    fn names_defined_once_in_public_are_not_reported() {
        assert_eq!(counts(&["pub struct Place;", "pub enum Row {}"]), []);
        assert_eq!(counts(&["struct Place;", "enum Place {}"]), []);
        assert_eq!(counts(&["pub struct Item;", "impl A for B {\n    type Item = C;\n}"]), []);
        assert_eq!(
            counts(&["pub struct Place;", "// struct Place;\nfn a() -> &str { \"struct Place;\" }"]),
            []
        );
        assert_eq!(counts(&["pub struct Place;", "#[cfg(test)]\nmod tests {\n    struct Place;\n}"]), []);
        assert_eq!(counts(&["pub struct Place;", "pub use a::Place;"]), []);
    }
}
