//! Paths in code: what `use` brings in, and what expressions and types name.

use super::lexer::{closing, is_word, word_end, words};

/// A path by its segments, or a module by the way to it.
pub(super) type Path = Vec<String>;

/// The word behind white space at `at`.
pub(super) fn next_word(code: &str, at: usize) -> Option<&str> {
    let rest = code[at..].trim_start();
    let length = word_end(rest.as_bytes(), 0);
    (length > 0 && length < rest.len()).then(|| &rest[..length])
}

/// Returns what declarations `use` bring in, their trees written out, with the names under which it is known.
pub(super) fn uses(code: &str) -> Vec<(Path, String)> {
    let mut names = Vec::new();
    for at in words(code, "use") {
        let behind = code[at + 3..].trim_start();
        // `impl Trait + use<'a>` is none.
        if behind.starts_with('<') {
            continue;
        }
        let end = code[at..].find(';').map_or(code.len(), |length| at + length);
        expand(&Vec::new(), code[at + 3..end].trim(), &mut names);
    }
    names
}

/// Writes the branches of a tree of `use` out.
fn expand(prefix: &Path, tree: &str, found: &mut Vec<(Path, String)>) {
    let tree = tree.trim().trim_start_matches("::");
    if let Some(open) = tree.find('{') {
        let mut prefix = prefix.clone();
        prefix.extend(segments(&tree[..open]));
        let inside = &tree[open + 1..closing(tree, open).saturating_sub(1).max(open + 1)];
        let mut start = 0;
        let mut depth = 0_usize;
        for (at, byte) in inside.bytes().enumerate() {
            match byte {
                b'{' => depth += 1,
                b'}' => depth = depth.saturating_sub(1),
                b',' if depth == 0 => {
                    expand(&prefix, &inside[start..at], found);
                    start = at + 1;
                }
                _ => {}
            }
        }
        expand(&prefix, &inside[start..], found);
        return;
    }
    if tree.is_empty() {
        return;
    }
    let (named, name) = match tree.split_once(" as ") {
        Some((named, name)) => (named, Some(name.trim().to_owned())),
        None => (tree, None),
    };
    let mut path = prefix.clone();
    path.extend(segments(named));
    if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    let Some(last) = path.last().cloned() else { return };
    found.push((path, name.unwrap_or(last)));
}

fn segments(path: &str) -> impl Iterator<Item = String> + '_ {
    path.split("::")
        .map(|part| part.trim().trim_start_matches("r#").to_owned())
        .filter(|part| !part.is_empty())
}

/// Paths of two segments and more, with their places.
pub(super) fn paths(code: &str) -> Vec<(usize, Path)> {
    let bytes = code.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if !is_word(bytes[at]) {
            at += 1;
            continue;
        }
        let start = at;
        let mut path = Vec::new();
        loop {
            let end = word_end(bytes, at);
            path.push(code[at..end].to_owned());
            at = end;
            let goes_on =
                bytes[at..].starts_with(b"::") && bytes.get(at + 2).is_some_and(|byte| is_word(*byte));
            if !goes_on {
                break;
            }
            at += 2;
        }
        let method = start > 0 && bytes[start - 1] == b'.' && !(start > 1 && bytes[start - 2] == b'.');
        // `<A as B>::c` and `::c` begin with what is no name of this module.
        let rooted = start > 1 && bytes[start - 2..start] == *b"::";
        if path.len() > 1 && !method && !rooted {
            found.push((start, path));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(path: &[String]) -> String {
        path.join("::")
    }

    #[test]
    fn trees_of_use_are_written_out() {
        let trees = |code: &str| {
            uses(code)
                .into_iter()
                .map(|(path, name)| format!("{} {name}", written(&path)))
                .collect::<Vec<_>>()
        };
        assert_eq!(trees("pub(crate) use a::b;"), ["a::b b"]);
        assert_eq!(
            trees("use a::{self, b::{c, d as e,},\n f::*}; use g;"),
            ["a a", "a::b::c c", "a::b::d e", "a::f::* *", "g g"]
        );
        assert_eq!(trees("use {a::b, super::c}; use r#type::d as _;"), ["a::b b", "super::c c", "type::d _"]);
        assert_eq!(trees("fn a<'b>() -> impl C + use<'b> {} fn reuse() {}"), [] as [&str; 0]);
    }

    #[test]
    fn paths_in_expressions_and_types_are_found() {
        let found = |code: &str| paths(code).iter().map(|(_, path)| written(path)).collect::<Vec<_>>();
        assert_eq!(found("a::b(c::d::<e::f>::g(), &h.i::<j>())"), ["a::b", "c::d", "e::f"]);
        assert_eq!(found("for a in b::C..d::E {}"), ["b::C", "d::E"]);
        assert_eq!(found("<A as b::B>::c::d; ::e::f; g: h"), ["b::B"]);
    }
}
