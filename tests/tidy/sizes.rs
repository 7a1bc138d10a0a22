//! Lines, functions, files and folders stay small enough to be read at once.
//!
//! * `width`: a line of a Rust file or of a page has at most [`MOST_COLUMNS`] characters, comments included.
//!   Exempt is what cannot be broken: a row of a table (a line that begins with `|`, in pages and in doc
//!   comments), and a line of one word, such as an address, behind the mark of a comment, a list or a
//!   quotation.
//! * `function`: at most [`MOST_FUNCTION_LINES`] from the line of `fn` to that of the closing brace;
//!   attributes and documentation before it do not count.
//! * `file`: at most [`MOST_FILE_LINES`], tests and documentation included.
//! * `folder`: at most [`MOST_FILES`] Rust files right in it.

use std::{collections::BTreeMap, ops::Range};

use super::{
    exceptions::{Found, counted},
    lexer::{closing, word_end, words},
    paths::next_word,
    source::Source,
};

/// Characters of a line.
pub(super) const MOST_COLUMNS: usize = 110;
/// Lines of a function.
pub(super) const MOST_FUNCTION_LINES: usize = 60;
/// Lines of a file.
pub(super) const MOST_FILE_LINES: usize = 900;
/// Rust files of a folder.
pub(super) const MOST_FILES: usize = 25;

/// Files with lines that are too wide.
pub(super) fn wide_lines(sources: &[Source]) -> Vec<Found> {
    let found = sources.iter().filter_map(|source| {
        let mut start = 0;
        let mut places = Vec::new();
        for line in source.text.split_inclusive('\n') {
            if is_wide(line.trim_end_matches(['\n', '\r'])) {
                places.push(start);
            }
            start += line.len();
        }
        counted("width", source, places)
    });
    found.collect()
}

/// True if a line is too wide and could be broken.
fn is_wide(line: &str) -> bool {
    if line.chars().count() <= MOST_COLUMNS {
        return false;
    }
    let mut words = line.split_whitespace().skip_while(|word| {
        word.chars().all(|c| "/!*-+>#".contains(c)) || word.trim_end_matches('.').parse::<u32>().is_ok()
    });
    let first = words.next();
    let row = first.is_some_and(|word| word.starts_with('|'));
    !row && words.next().is_some()
}

/// Functions that are too long.
pub(super) fn long_functions(sources: &[Source]) -> Vec<Found> {
    let mut found: Vec<Found> = Vec::new();
    for source in sources {
        let mut same: BTreeMap<String, usize> = BTreeMap::new();
        for (name, range) in functions(&source.lexed.code) {
            // Two of one name, as of two traits, are told apart by their order.
            let number = same.entry(name.clone()).or_default();
            *number += 1;
            let name = if *number == 1 { name } else { format!("{name}({number})") };
            let lines = source.line(range.end) - source.line(range.start) + 1;
            if lines > MOST_FUNCTION_LINES {
                let place = format!("{} has {lines} lines: {name}", source.place(range.start));
                found.push(Found::sized("function", &format!("{}:{name}", source.path), lines, place));
            }
        }
    }
    found
}

/// Functions with a body: their names, behind that of their type, and ranges.
fn functions(code: &str) -> Vec<(String, Range<usize>)> {
    let owners = owners(code);
    let mut found = Vec::new();
    for at in words(code, "fn") {
        let Some(name) = next_word(code, at + 2) else { continue };
        let Some(body) = body(code, at) else { continue };
        let owner = owners.iter().rev().find(|(_, range)| range.contains(&at));
        let name = owner.map_or_else(|| name.to_owned(), |(owner, _)| format!("{owner}::{name}"));
        found.push((name, at..closing(code, body) - 1));
    }
    found
}

/// The brace that opens the body of what is declared at `at`; `None` if it has none.
fn body(code: &str, at: usize) -> Option<usize> {
    let mut offset = at;
    while offset < code.len() {
        match code.as_bytes()[offset] {
            b'{' => return Some(offset),
            b';' | b'}' => return None,
            b'(' | b'[' => offset = closing(code, offset),
            _ => offset += 1,
        }
    }
    None
}

/// The blocks of `impl` and `trait`, by the names of the types.
fn owners(code: &str) -> Vec<(String, Range<usize>)> {
    let mut found = Vec::new();
    for keyword in ["impl", "trait"] {
        for at in words(code, keyword) {
            let before = code[..at].trim_end();
            let item = keyword == "trait"
                || before.is_empty()
                || before.ends_with([';', '{', '}', ']'])
                || before.ends_with("unsafe");
            let Some(open) = body(code, at).filter(|_| item) else { continue };
            let name = owner(&code[at + keyword.len()..open]);
            found.push((name, open..closing(code, open)));
        }
    }
    found.sort_by_key(|(_, range)| range.start);
    found
}

/// The name of the type in the head of an `impl` or `trait`.
fn owner(head: &str) -> String {
    let mut plain = String::new();
    let mut depth = 0_usize;
    let mut before = ' ';
    for c in head.chars() {
        match c {
            '<' => depth += 1,
            '>' if before != '-' => depth = depth.saturating_sub(1),
            _ if depth == 0 => plain.push(c),
            _ => {}
        }
        before = c;
    }
    let plain = plain.split(" where ").next().unwrap_or_default();
    let named = plain.rsplit_once(" for ").map_or(plain, |(_, named)| named);
    let named = named.split(':').filter(|part| !part.trim().is_empty()).collect::<Vec<_>>();
    // The trait of `A: B`, the type of `a::B`.
    let name = if plain.contains("::") { named.last() } else { named.first() };
    let name = name.copied().unwrap_or_default().trim().trim_start_matches(['&', '[', '(']);
    name[..word_end(name.as_bytes(), 0)].to_owned()
}

/// Files that are too long.
pub(super) fn long_files(sources: &[Source]) -> Vec<Found> {
    let found = sources.iter().filter_map(|source| {
        let lines = source.text.lines().count();
        let place = || format!("{} has {lines} lines", source.path);
        (lines > MOST_FILE_LINES).then(|| Found::sized("file", &source.path, lines, place()))
    });
    found.collect()
}

/// Folders with too many files.
pub(super) fn full_folders(sources: &[Source]) -> Vec<Found> {
    let mut folders: BTreeMap<&str, usize> = BTreeMap::new();
    for source in sources {
        if let Some((folder, _)) = source.path.rsplit_once('/') {
            *folders.entry(folder).or_default() += 1;
        }
    }
    folders.retain(|_, files| *files > MOST_FILES);
    let found = folders.into_iter().map(|(folder, files)| {
        Found::sized("folder", folder, files, format!("{folder} has {files} Rust files"))
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_lines_are_found() {
        let wide = "word ".repeat(23);
        assert_eq!(wide.trim_end().chars().count(), 114);
        for line in [&wide, &format!("// {wide}"), &format!("    let a = \"{wide}\";"), &format!("* {wide}")]
        {
            assert!(is_wide(line.trim_end()), "{line}");
        }
        assert!(is_wide(&format!("{}\u{e4}\u{e4} b", "\u{e4}".repeat(107))), "characters count");
        let word = "a".repeat(120);
        for line in [
            &"word ".repeat(22),
            &"\u{e4} ".repeat(55),
            &format!("| {wide} |"),
            &format!("//! | {wide} |"),
            &format!("//! {word}"),
            &format!("  * {word}"),
            &format!("12. {word}"),
            &format!("    {word}"),
        ] {
            assert!(!is_wide(line.trim_end()), "{line}");
        }
        let source = Source::new("docs/a.md", &format!("a\n{wide}\r\nb\n{wide}"));
        let found = wide_lines(&[source]);
        assert_eq!(
            (found[0].count, found[0].places.as_slice()),
            (2, &["docs/a.md:2".into(), "docs/a.md:4".into()][..])
        );
    }

    /// Names and lines of long functions.
    fn long(text: &str) -> Vec<(String, usize)> {
        let found = long_functions(&[Source::new("a.rs", text)]);
        found.into_iter().map(|found| (found.subject, found.count)).collect()
    }

    #[test]
    fn long_functions_are_found() {
        let body = |lines: usize| format!("{{\n{}}}", "    let a = '}';\n".repeat(lines));
        let (short, far) = (body(58), body(59));
        assert_eq!(long(&format!("fn a() {short}\nfn b() {far}")), [("a.rs:b".to_owned(), 61)]);
        let docs = "/// A line.\n#[must_use]\n".repeat(60);
        assert_eq!(long(&format!("{docs}fn a() {short}")), []);
        let strings = "fn a() { \"{\"; r#\"\"{\"#; b'{'; /* { */ } // {\n";
        assert_eq!(long(&format!("{strings}{}", "// a\n".repeat(70))), []);
        assert_eq!(long(&format!("trait A {{\n fn a();\n{}}}", "// a\n".repeat(70))), []);
        assert_eq!(long(&format!("const A: fn(u8) -> u8 = b;\n{}fn c() {{}}", "// a\n".repeat(70))), []);
        let args = "    a: [u8; 2],\n".repeat(60);
        assert_eq!(long(&format!("fn a(\n{args}) {{}}")), [("a.rs:a".to_owned(), 62)]);
    }

    #[test]
    fn functions_are_named_after_their_type() {
        let code = "impl<'a, F: Fn() -> u8> fmt::Display for some::Type<'a, F> where F: Copy { fn a() {} }
            impl Own { fn b() -> impl Copy { fn c() {} } } trait Way: Copy { fn d() {} } fn e() {}
            unsafe impl Send for Own { fn f() {} } impl<T> Way for &T { fn g() {} }";
        let names: Vec<_> = functions(code).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["Type::a", "Own::b", "Own::c", "Way::d", "e", "Own::f", "T::g"]);
        let same =
            format!("impl A for B {{ fn a() {{}} }} impl C for B {{ fn a() {{{}}} }}", "\n".repeat(60));
        assert_eq!(long(&same), [("a.rs:B::a(2)".to_owned(), 61)]);
    }

    #[test]
    fn long_files_and_full_folders_are_found() {
        let source = |path: &str, lines| Source::new(path, &"// a\n".repeat(lines));
        let files = [source("a.rs", MOST_FILE_LINES), source("b.rs", MOST_FILE_LINES + 1)];
        let found = long_files(&files);
        assert_eq!((found.len(), found[0].subject.as_str(), found[0].count), (1, "b.rs", 901));
        let files =
            |count| (0..count).map(|number| source(&format!("a/b/{number}.rs"), 1)).collect::<Vec<_>>();
        assert!(full_folders(&files(MOST_FILES)).is_empty());
        let found = full_folders(&files(MOST_FILES + 1));
        assert_eq!((found.len(), found[0].subject.as_str(), found[0].count), (1, "a/b", 26));
    }
}
