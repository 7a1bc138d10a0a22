//! The pages that users read, and the blocks in them.

use std::{
    fs,
    path::{Path, PathBuf},
};

pub(crate) fn root() -> &'static Path {
    Path::new(env!("DOMINO_ROOT"))
}

pub(crate) fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(root().join(&path))
        .unwrap_or_else(|error| panic!("{}: {error}", path.as_ref().display()))
}

/// The pages, by their path from the root.
pub(crate) fn pages() -> Vec<PathBuf> {
    let mut pages: Vec<PathBuf> =
        ["README.md", "CHANGELOG.md", "CONTRIBUTING.md"].map(PathBuf::from).to_vec();
    let docs = fs::read_dir(root().join("docs")).expect("the folder of pages");
    let mut docs: Vec<PathBuf> =
        docs.map(|entry| Path::new("docs").join(entry.expect("an entry").file_name())).collect();
    // Beside pages there are pictures.
    docs.retain(|page| page.extension().is_some_and(|ending| ending == "md"));
    docs.sort();
    pages.append(&mut docs);
    pages
}

/// A block between fences: its line number, the words after the fence, the line before it, its text.
pub(crate) struct Block {
    pub(crate) at: String,
    pub(crate) language: String,
    pub(crate) before: String,
    pub(crate) text: String,
}

impl Block {
    /// True if it is in this language.
    pub(crate) fn is(&self, language: &str) -> bool {
        self.language == language
    }
}

pub(crate) fn blocks(page: &Path) -> Vec<Block> {
    let text = read(page);
    let (mut blocks, mut before) = (Vec::new(), "");
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            let body: Vec<&str> =
                lines.by_ref().map(|(_, line)| line).take_while(|line| !line.starts_with("```")).collect();
            blocks.push(Block {
                at: format!("{}:{}", page.display(), number + 1),
                language: language.to_owned(),
                before: before.to_owned(),
                text: body.join("\n"),
            });
        }
        before = line;
    }
    blocks
}

/// Lines outside of blocks, with their numbers from 1 on.
pub(crate) fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut inside = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let fence = line.starts_with("```");
        inside ^= fence;
        !inside && !fence
    })
}
