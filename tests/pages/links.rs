//! Links between pages: a walk from the README reaches every page, and every link on the way has a target.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Component, Path, PathBuf},
};

use crate::support::pages::{pages, prose, read, root};

/// A link as it is written: its line, and its target or the label of one.
#[derive(Debug, PartialEq, Eq)]
struct Link {
    line: usize,
    target: String,
}

/// The links and anchors of a page in Markdown.
#[derive(Debug, Default)]
struct Page {
    links: Vec<Link>,
    /// Uses of labels, and their definitions.
    labels: Vec<Link>,
    defined: BTreeSet<String>,
    /// Anchors of headings.
    anchors: BTreeSet<String>,
}

impl Page {
    fn parse(text: &str) -> Self {
        let mut page = Self::default();
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        for (line, text) in prose(text) {
            if text.starts_with('#') {
                let anchor = anchor(text);
                let times = seen.entry(anchor.clone()).or_default();
                page.anchors.insert(if *times == 0 { anchor } else { format!("{anchor}-{times}") });
                *times += 1;
            }
            let text = without_code(text);
            let link = |target: &str| Link { line, target: target.to_owned() };
            if let Some((label, target)) = definition(&text) {
                page.defined.insert(label.to_lowercase());
                page.links.push(link(target));
                continue;
            }
            let ends = |opening: &str, closing: char| {
                let parts: Vec<String> = text.split(opening).skip(1).map(str::to_owned).collect();
                parts.into_iter().filter_map(move |rest| Some(rest.split_once(closing)?.0.to_owned()))
            };
            page.links.extend(ends("](", ')').map(|target| link(&target)));
            page.labels.extend(ends("][", ']').map(|label| link(&label.to_lowercase())));
        }
        page
    }
}

/// Parses `[label]: target` at the beginning of a line.
fn definition(line: &str) -> Option<(&str, &str)> {
    let (label, target) = line.strip_prefix('[')?.split_once("]: ")?;
    Some((label, target.trim()))
}

/// A line without code in backticks, where brackets are no links.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("``")
}

/// The anchor that a heading gets: its letters, numbers, hyphens and underscores, blanks as hyphens.
fn anchor(heading: &str) -> String {
    let kept = heading.trim_start_matches('#').trim().chars();
    kept.filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .flat_map(|c| if c == ' ' { '-' } else { c }.to_lowercase())
        .collect()
}

/// The path without `..` and `.`; `None` if it leaves the repository.
fn plain(path: &Path) -> Option<PathBuf> {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => parts.pop().then_some(())?,
            Component::Normal(part) => parts.push(part),
            _ => {}
        }
    }
    Some(parts)
}

/// Depth-first search along links, from the page `start`; `text` reads a page that `exists`. Returns the
/// pages that were reached, and the faults of their links.
fn walk(
    start: &Path,
    exists: &dyn Fn(&Path) -> bool,
    text: &dyn Fn(&Path) -> String,
) -> (BTreeSet<PathBuf>, Vec<String>) {
    let (mut known, mut wrong) = (BTreeMap::new(), Vec::new());
    let mut open = vec![start.to_owned()];
    while let Some(path) = open.pop() {
        if known.contains_key(&path) {
            continue;
        }
        let page = Page::parse(&text(&path));
        let pages = page.links.iter().filter_map(|link| local(&path, &link.target)).map(|(file, _)| file);
        open.extend(pages.flatten().filter(|file| is_page(file) && exists(file)));
        known.insert(path, page);
    }
    for (path, page) in &known {
        let at = |line: usize| format!("{}:{line}", path.display());
        for link in page.labels.iter().filter(|label| !page.defined.contains(&label.target)) {
            wrong.push(format!("{}: [{}] is defined nowhere", at(link.line), link.target));
        }
        for Link { line, target } in &page.links {
            let Some((file, heading)) = local(path, target) else { continue };
            let Some(file) = file.filter(|file| exists(file)) else {
                wrong.push(format!("{}: there is no {target}", at(*line)));
                continue;
            };
            let anchors = known.get(&file).map(|page| &page.anchors);
            if !heading.is_empty() && anchors.is_none_or(|anchors| !anchors.contains(heading)) {
                wrong.push(format!("{}: {} has no heading for #{heading}", at(*line), file.display()));
            }
        }
    }
    (known.into_keys().collect(), wrong)
}

/// File and heading that a link of `page` leads to, without a file if that is outside of the repository.
/// `None` for a link to the web.
fn local<'t>(page: &Path, target: &'t str) -> Option<(Option<PathBuf>, &'t str)> {
    if target.starts_with("https://") {
        return None;
    }
    let (path, heading) = target.split_once('#').unwrap_or((target, ""));
    let file = match path {
        "" => Some(page.to_owned()),
        _ => plain(&page.parent().unwrap_or(Path::new("")).join(path)),
    };
    Some((file, heading))
}

fn is_page(file: &Path) -> bool {
    file.extension().is_some_and(|ending| ending == "md")
}

#[test]
fn anchors_are_those_of_headings() {
    assert_eq!(anchor("## A sweep over k and s"), "a-sweep-over-k-and-s");
    assert_eq!(anchor("# `serve`: its bounds"), "serve-its-bounds");
    assert_eq!(anchor("### Über `a_b`, c-d"), "über-a_b-c-d");
}

/// Dead links of every kind are found, and live ones are not taken for dead.
#[test]
fn dead_links_are_found() {
    let readme = "# Top\n[a](docs/a.md#one)\n[b](docs/a.md#one-1), [gone](docs/gone.md)\n[x][LABEL]\n\n\
                  [label]: docs/p.png";
    let a = "# One\n## One\n[up](../README.md#top) `[code](nowhere.md)`\n[no](#two) [out](../../etc)\n\
             [y][other] [far](https://example.org/#x) [b](b.md) [pic](p.png#one)\n\
             ```sh\n[block](nowhere.md)\n# Two\n```\n";
    let files = BTreeMap::from([
        ("README.md", readme),
        ("docs/a.md", a),
        ("docs/b.md", "[back](a.md) [plain](http://example.org)"),
        ("docs/p.png", ""),
        ("docs/alone.md", "[a](gone.md)"),
    ]);
    let exists = |path: &Path| files.contains_key(path.to_str().unwrap());
    let text = |path: &Path| files[path.to_str().unwrap()].to_owned();
    let (found, wrong) = walk(Path::new("README.md"), &exists, &text);
    assert_eq!(found, ["README.md", "docs/a.md", "docs/b.md"].map(PathBuf::from).into());
    assert_eq!(
        wrong,
        [
            "README.md:3: there is no docs/gone.md",
            "docs/a.md:5: [other] is defined nowhere",
            "docs/a.md:4: docs/a.md has no heading for #two",
            "docs/a.md:4: there is no ../../etc",
            "docs/a.md:5: docs/p.png has no heading for #one",
            "docs/b.md:1: there is no http://example.org",
        ]
    );
}

#[test]
fn the_readme_leads_to_every_page_and_no_link_is_dead() {
    let exists = |path: &Path| root().join(path).exists();
    let (found, mut wrong) = walk(Path::new("README.md"), &exists, &|path| read(path));
    let alone = pages().into_iter().filter(|page| !found.contains(page));
    wrong.extend(alone.map(|page| format!("no link leads from the README to {}", page.display())));
    // Experiments, models and fuzz targets have pages too.
    assert!(found.len() > pages().len() + 10, "only {} pages were found", found.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The README links to every page of the manual.
#[test]
fn the_readme_links_to_every_page_directly() {
    let readme = Page::parse(&read("README.md"));
    let linked = |page: &PathBuf| {
        readme
            .links
            .iter()
            .any(|link| link.target.split('#').next().is_some_and(|path| Path::new(path) == page.as_path()))
    };
    let missing: Vec<PathBuf> = pages()
        .into_iter()
        .filter(|page| page.as_path() != Path::new("README.md") && !linked(page))
        .collect();
    assert!(missing.is_empty(), "the README has no link to {missing:?}");
}
