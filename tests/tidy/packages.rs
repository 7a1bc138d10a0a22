//! No part of the product outgrows its ceiling, and `docs/size.md` says how large each is. Nor is the default
//! build cut into pieces: few of its files are small, and few of its lines only connect.
//!
//! A line counts if it has code that is no test: neither a comment, nor blank, nor inside of a literal alone.
//! Tests are what an attribute `cfg` with `test` takes in, files named `tests.rs` or `.._tests.rs`, and
//! folders named `tests` or `.._tests`. A file counts as such if it has one line of code.
//!
//! The page is made by `DOMINO_TIDY=shrink cargo test tidy`. A ceiling is moved by hand, in this file, with
//! the reason in the commit that does it.

use std::fs;

use super::{
    exceptions::shrinks,
    source::{Source, root, rust},
};

/// The page.
const PAGE: &str = "docs/size.md";
const TABLE_START: &str = "<!-- sizes: tests/tidy -->\n";
const TABLE_END: &str = "<!-- end of sizes -->";

/// Lines of a file below which it is small.
const SMALL: usize = 60;
/// Files of a hundred that may be small. Other codebases of this kind have 6 to 22.
const MOST_SMALL: usize = 12;
/// Lines of a hundred that may only connect. Others have 2.5 to 3.1.
const MOST_CONNECTING: usize = 5;
/// Lines of the mean file, of others 173 to 459.
const MEAN: std::ops::RangeInclusive<usize> = 150..=300;

/// A part of the product: its folders and files, by the beginnings of their paths, and its ceiling.
struct Part {
    name: &'static str,
    paths: &'static [&'static str],
    ceiling: usize,
}

/// The parts, of which the first that has a file is its own. The last of `src` takes what is left.
const PARTS: [Part; 8] = [
    // Decides by brute force, for tests: a feature that nothing has by default.
    Part { name: "oracle", paths: &["src/engine/oracle/"], ceiling: 900 },
    Part { name: "engine", paths: &["src/engine/"], ceiling: 49_400 },
    Part { name: "plugin for mistral.rs", paths: &["src/mistralrs/"], ceiling: 3_500 },
    Part { name: "llama.cpp", paths: &["src/llama_cpp/"], ceiling: 700 },
    Part {
        name: "laboratory",
        paths: &["src/experiment/", "src/bin/domino/verbs/experiment/", "experiments/", "benches/"],
        ceiling: 14_000,
    },
    Part { name: "program", paths: &["src/bin/"], ceiling: 18_300 },
    Part { name: "Python package", paths: &["python/src/"], ceiling: 2_500 },
    Part { name: "models and decoding", paths: &["src/"], ceiling: 18_800 },
];

/// The parts of the default build.
const DEFAULT: [&str; 3] = ["engine", "models and decoding", "program"];
/// Most lines of the default build.
const DEFAULT_CEILING: usize = 86_400;

/// The size of some files.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct Size {
    files: usize,
    small: usize,
    lines: usize,
    /// Lines of `use` and `mod` alone, which only connect.
    connecting: usize,
}

impl Size {
    fn of(source: &Source) -> Self {
        if is_test(&source.path) {
            return Self::default();
        }
        let code = source.product();
        let lines = code.lines().filter(|line| !line.trim().is_empty()).count();
        let small = usize::from(lines < SMALL);
        Self { files: 1, small, lines, connecting: connecting(&code) }
    }

    fn and(self, other: Self) -> Self {
        Self {
            files: self.files + other.files,
            small: self.small + other.small,
            lines: self.lines + other.lines,
            connecting: self.connecting + other.connecting,
        }
    }

    fn row(self, name: &str, ceiling: usize) -> String {
        let Self { files, small, lines, connecting } = self;
        // Rounded, so that few changes change the page.
        let hundreds = (lines + 50) / 100;
        let share = |part: usize, of: usize| format!("{}%", (100 * part + of / 2) / of.max(1));
        format!(
            "| {name} | {}.{}k | {}.{}k | {} | {} | {} |\n",
            hundreds / 10,
            hundreds % 10,
            ceiling / 1000,
            ceiling / 100 % 10,
            lines / files.max(1),
            share(small, files),
            share(connecting, lines)
        )
    }
}

/// True for the path of a file of tests.
pub(super) fn is_test(path: &str) -> bool {
    let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
    name == "tests.rs" || name.ends_with("_tests.rs") || path.contains("/tests/") || path.contains("_tests/")
}

/// Lines of declarations that begin with `use` or `mod`, of several lines too.
fn connecting(code: &str) -> usize {
    let (mut count, mut open) = (0, false);
    for line in code.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let word = line.split_whitespace().find(|word| !word.starts_with("pub"));
        let begins =
            matches!(word, Some("use" | "mod")) || line.starts_with("pub(in ") && line.contains(" use ");
        // `mod a {` has a body, `use a::{` a list.
        if open || begins && (!line.ends_with('{') || line.contains("::{")) {
            count += 1;
            open = !line.ends_with(';');
        }
    }
    count
}

/// The sizes of all parts, in the order of [`PARTS`].
fn sizes(sources: &[Source]) -> [Size; PARTS.len()] {
    let mut found = [Size::default(); PARTS.len()];
    for source in sources {
        let has = |part: &Part| part.paths.iter().any(|path| source.path.starts_with(path));
        if let Some(part) = PARTS.iter().position(has) {
            found[part] = found[part].and(Size::of(source));
        }
    }
    found
}

fn table(sizes: &[Size; PARTS.len()]) -> String {
    let mut text = "| part | lines of code | ceiling | lines a file | files under 60 | `use`, `mod` |\n\
                    |---|---|---|---|---|---|\n"
        .to_owned();
    for (part, size) in PARTS.iter().zip(sizes) {
        text += &size.row(part.name, part.ceiling);
    }
    text += &default_build(sizes).row("default build", DEFAULT_CEILING);
    text
}

fn default_build(sizes: &[Size; PARTS.len()]) -> Size {
    let parts = PARTS.iter().zip(sizes).filter(|(part, _)| DEFAULT.contains(&part.name));
    parts.fold(Size::default(), |sum, (_, size)| sum.and(*size))
}

#[test]
fn no_part_outgrows_its_ceiling() {
    let sizes = sizes(rust());
    let parts = PARTS.iter().map(|part| (part.name, part.ceiling));
    let ceilings = parts.chain([("default build", DEFAULT_CEILING)]);
    let all = sizes.iter().copied().chain([default_build(&sizes)]);
    for ((name, ceiling), size) in ceilings.zip(all) {
        assert!(size.lines <= ceiling, "{name}: {} lines of code, and {ceiling} is the ceiling", size.lines);
    }
    let Size { files, small, lines, connecting } = default_build(&sizes);
    assert!(100 * small <= MOST_SMALL * files, "{small} of {files} files have fewer than {SMALL} lines");
    assert!(100 * connecting <= MOST_CONNECTING * lines, "{connecting} of {lines} lines only connect");
    assert!(MEAN.contains(&(lines / files)), "{files} files have {lines} lines");
    let page = fs::read_to_string(root().join(PAGE)).expect("the page of sizes");
    let (head, rest) = page.split_once(TABLE_START).expect("a place for the table");
    let (_, tail) = rest.split_once(TABLE_END).expect("the end of the table");
    let wanted = format!("{head}{TABLE_START}{}{TABLE_END}{tail}", table(&sizes));
    if shrinks() {
        fs::write(root().join(PAGE), wanted).expect("the page is written");
    } else {
        assert!(page == wanted, "{PAGE} has other sizes: `DOMINO_TIDY=shrink cargo test tidy` counts anew");
    }
}

#[test]
fn lines_of_code_are_counted() {
    let text = "//! a\nuse a::{\n    b,\n};\nmod c;\n\npub(crate) use d;\n/// e\nfn f() {\n    \"g\n    \
                h\";\n}\nmod i {\n    fn j() {}\n}\n#[cfg(test)]\nmod tests {\n    fn k() {}\n}\n";
    let size = Size::of(&Source::new("src/a.rs", text));
    assert_eq!(size, Size { files: 1, small: 1, lines: 12, connecting: 5 });
    for path in ["src/a/tests.rs", "src/a_tests.rs", "src/a/tests/b.rs"] {
        assert_eq!(Size::of(&Source::new(path, text)), Size::default());
    }
    let of = |path| sizes(&[Source::new(path, text)]).iter().position(|size| size.lines > 0).unwrap();
    for (path, name) in [
        ("src/bin/domino/main.rs", "program"),
        ("src/experiment/a.rs", "laboratory"),
        ("src/engine/lib.rs", "engine"),
        ("src/lib.rs", "models and decoding"),
        ("src/model/mod.rs", "models and decoding"),
    ] {
        assert_eq!(PARTS[of(path)].name, name);
    }
}
