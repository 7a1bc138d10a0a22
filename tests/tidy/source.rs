//! The files that the rules are about.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use super::lexer::{Lexed, closing, lex};

/// Folders with Rust files that are ours.
const RUST: [&str; 7] = ["src", "tests", "benches", "examples", "fuzz", "experiments", "python"];
/// Folders with Markdown, and those of the root.
const MARKDOWN: [&str; 6] = ["docs", "experiments", "fuzz", "models", "benches", "python"];

/// A file.
pub(super) struct Source {
    /// The path from the root on, with `/`.
    pub(super) path: String,
    pub(super) text: String,
    /// The text without comments and contents of literals; of Markdown, nothing.
    pub(super) lexed: Lexed,
}

impl Source {
    pub(super) fn new(path: &str, text: &str) -> Self {
        let lexed = lex(if path.ends_with(".rs") { text } else { "" });
        Self { path: path.to_owned(), text: text.to_owned(), lexed }
    }

    /// The line, from 1, of a byte.
    pub(super) fn line(&self, offset: usize) -> usize {
        super::lexer::line(&self.text, offset)
    }

    /// `path:line`, as terminals make links of.
    pub(super) fn place(&self, offset: usize) -> String {
        format!("{}:{}", self.path, self.line(offset))
    }

    /// The code but for what only tests see.
    pub(super) fn product(&self) -> String {
        without_tests(&self.lexed.code)
    }
}

/// The root of the repository.
pub(super) fn root() -> &'static Path {
    Path::new(env!("DOMINO_ROOT"))
}

/// All Rust files, in order, read once.
pub(super) fn rust() -> &'static [Source] {
    static READ: OnceLock<Vec<Source>> = OnceLock::new();
    READ.get_or_init(|| {
        let mut found: Vec<Source> = RUST.into_iter().flat_map(|folder| read(folder, "rs")).collect();
        let build = root().join("build.rs");
        if build.exists() {
            found.push(source(&build));
        }
        found.sort_by(|left, right| left.path.cmp(&right.path));
        found
    })
}

/// All pages, in order.
pub(super) fn markdown() -> Vec<Source> {
    let mut found: Vec<Source> = MARKDOWN.into_iter().flat_map(|folder| read(folder, "md")).collect();
    for entry in fs::read_dir(root()).expect("the root") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "md") {
            found.push(source(&path));
        }
    }
    found.sort_by(|left, right| left.path.cmp(&right.path));
    found
}

fn source(path: &Path) -> Source {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let inside = path.strip_prefix(root()).expect("a file of the repository");
    let parts: Vec<_> = inside.components().map(|part| part.as_os_str().to_string_lossy()).collect();
    Source::new(&parts.join("/"), &text)
}

/// The files below a folder with this extension, but for what Cargo builds and Git does not keep.
fn read(folder: &str, extension: &str) -> Vec<Source> {
    let mut found: Vec<PathBuf> = Vec::new();
    let mut open = vec![root().join(folder)];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let entry = entry.expect("an entry");
            let path = entry.path();
            let name = entry.file_name();
            if entry.file_type().expect("a kind").is_dir() {
                let built = ["peers/build", "end_to_end/llama_cpp"].iter().any(|end| path.ends_with(end));
                let built = built || name == "target";
                if !built && !name.to_string_lossy().starts_with('.') {
                    open.push(path);
                }
            } else if path.extension().is_some_and(|own| own == extension) {
                found.push(path);
            }
        }
    }
    found.iter().map(|path| source(path)).collect()
}

/// Items behind an attribute `cfg` that names `test`: their ranges in blanked code.
pub(super) fn test_items(code: &str) -> Vec<std::ops::Range<usize>> {
    let mut found: Vec<std::ops::Range<usize>> = Vec::new();
    for (at, _) in code.match_indices("#[cfg(") {
        if found.last().is_some_and(|last| last.contains(&at)) {
            continue;
        }
        let mut end = closing(code, at + 1);
        let attribute = &code[at..end];
        if super::lexer::words(attribute, "test").next().is_none() || attribute.contains("not(test)") {
            continue;
        }
        // Skips further attributes to the end of the item: a `;`, or the brace that closes its first.
        loop {
            let rest = &code[end..];
            let skipped = end + (rest.len() - rest.trim_start().len());
            if !code[skipped..].starts_with("#[") {
                break;
            }
            end = closing(code, skipped + 1);
        }
        found.push(at..item_end(code, end));
    }
    found
}

/// The end of the item that begins at `at`.
fn item_end(code: &str, mut at: usize) -> usize {
    let bytes = code.as_bytes();
    // A comma ends a field or a variant, but not a generic argument.
    let mut angles = 0_usize;
    while at < bytes.len() {
        match bytes[at] {
            b';' => return at + 1,
            b',' if angles == 0 => return at + 1,
            b'<' => {
                angles += 1;
                at += 1;
            }
            b'>' => {
                angles = angles.saturating_sub(usize::from(bytes[at - 1] != b'-'));
                at += 1;
            }
            b'{' => return closing(code, at),
            b'(' | b'[' => at = closing(code, at),
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Blanks what [`test_items`] finds.
fn without_tests(code: &str) -> String {
    let mut bytes = code.as_bytes().to_vec();
    for range in test_items(code) {
        for byte in &mut bytes[range] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
    }
    String::from_utf8(bytes).expect("whole items are blanked")
}

#[test]
fn tests_are_no_product() {
    let shown = |text: &str| without_tests(&lex(text).code).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(shown("a #[cfg(test)] mod tests { b } c"), "a c");
    assert_eq!(shown("a #[cfg(all(test, x))]\n#[path = \"p\"]\nmod tests;\nc"), "a c");
    assert_eq!(shown("a #[cfg(test)] fn b(c: [u8; 2]) -> d { e } f"), "a f");
    assert_eq!(shown("a #[cfg(test)] fn b<C, D: Fn() -> E>(c: C) { e } f"), "a f");
    assert_eq!(shown("a #[cfg(test)] use b; c"), "a c");
    assert_eq!(shown("a { #[cfg(test)] b: c, d: e }"), "a { d: e }");
    assert_eq!(shown("a #[cfg(not(test))] mod b { c }"), "a #[cfg(not(test))] mod b { c }");
    assert_eq!(shown("a #[cfg(feature = \"tests\")] mod b { c }").matches("mod b").count(), 1);
    assert_eq!(shown("a #[cfg(latest)] mod b { c }").matches("mod b").count(), 1);
}

#[test]
fn sources_and_pages_of_the_repository_are_found() {
    let (rust, markdown) = (rust(), markdown());
    for folder in RUST {
        assert!(rust.iter().any(|source| source.path.starts_with(&format!("{folder}/"))), "{folder}");
    }
    for file in ["README.md", "docs/architecture.md"] {
        assert!(markdown.iter().any(|source| source.path == file), "{file}");
    }
}

/// Every Rust file of ours compiles, so its brackets are in pairs without comments and literals.
#[test]
fn brackets_of_code_are_in_pairs() {
    for source in rust() {
        let mut open = Vec::new();
        for (at, byte) in source.lexed.code.bytes().enumerate() {
            let opening = match byte {
                b'(' | b'[' | b'{' => {
                    open.push(byte);
                    continue;
                }
                b')' => b'(',
                b']' => b'[',
                b'}' => b'{',
                _ => continue,
            };
            assert_eq!(open.pop(), Some(opening), "{}", source.place(at));
        }
        assert!(open.is_empty(), "{}", source.path);
    }
}
