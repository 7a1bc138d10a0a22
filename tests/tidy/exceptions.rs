//! What breaks a rule today and may stay until someone mends it: a list in one file, which only ever gets
//! shorter.
//!
//! A line is `rule subject number`. It must be exactly what is found: a higher number or another line is a
//! new fault, and a lower number or a line too many would make room for one. A sentence above it says why it
//! is left: see [`super::list`]. `DOMINO_TIDY=shrink` takes out what is gone.

use std::{env, fs, path::PathBuf};

use super::{
    list::{self, LIST, Numbers},
    source::{Source, root},
};

/// The page with the table of how many there are.
const PAGE: &str = "CONTRIBUTING.md";
const TABLE_START: &str = "<!-- exceptions: tests/tidy -->\n";
const TABLE_END: &str = "<!-- end of exceptions -->";
/// Says what to do beside checking.
const VARIABLE: &str = "DOMINO_TIDY";
/// Places of one subject that are shown: which of them is new, nobody knows.
const MOST_PLACES: usize = 100;
/// Subjects that are shown.
const MOST_SUBJECTS: usize = 50;

/// A rule: its name, what it says, and what its exceptions are called.
pub(super) struct Rule {
    pub(super) name: &'static str,
    pub(super) says: String,
    /// The things that have lines in the list.
    pub(super) subjects: &'static str,
    /// The things that its numbers count; `None` if they are sizes.
    pub(super) counts: Option<&'static str>,
}

/// Something that breaks a rule.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) rule: &'static str,
    /// The file, function, folder or name.
    pub(super) subject: String,
    pub(super) count: usize,
    /// Each with its place, in words.
    pub(super) places: Vec<String>,
}

impl Found {
    /// Something to be counted, of which there is nothing yet.
    pub(super) fn counted(rule: &'static str, subject: &str) -> Self {
        Self { rule, subject: subject.to_owned(), count: 0, places: Vec::new() }
    }

    /// Something of a size.
    pub(super) fn sized(rule: &'static str, subject: &str, count: usize, place: String) -> Self {
        Self { rule, subject: subject.to_owned(), count, places: vec![place] }
    }

    /// Counts one more.
    pub(super) fn add(&mut self, place: String) {
        self.count += 1;
        self.places.push(place);
    }
}

/// The faults at these bytes of a file, as one.
pub(super) fn counted(rule: &'static str, source: &Source, places: Vec<usize>) -> Option<Found> {
    let mut found = Found::counted(rule, &source.path);
    places.into_iter().for_each(|place| found.add(source.place(place)));
    (found.count > 0).then_some(found)
}

/// True if lists are to be shrunk, and tables counted anew.
pub(super) fn shrinks() -> bool {
    match env::var(VARIABLE) {
        Ok(word) if word == "shrink" => true,
        Ok(word) if word.is_empty() => false,
        Ok(word) => panic!("{VARIABLE} may be `shrink`, or not set: `{word}` is neither"),
        Err(_) => false,
    }
}

/// Holds what is found against the list and the table, or shrinks both if that is asked for.
///
/// # Panics
///
/// Fails the test if there is more than the list says, or less; says what to do.
pub(super) fn hold(rules: &[Rule], found: &[Found]) {
    let shrink = shrinks();
    let now = list_of(found);
    let text = fs::read_to_string(root().join(LIST)).expect("the list");
    let page = fs::read_to_string(root().join(PAGE)).expect("the page");
    let names: Vec<&str> = rules.iter().map(|rule| rule.name).collect();
    let (groups, mut wrong) = list::parse(&text, &names);
    if wrong.is_empty() {
        let left = if shrink { list::shrunk(&groups, &now) } else { groups.clone() };
        let listed = list::numbers(&left);
        let table = table(rules, &listed);
        if shrink {
            let page = with_table(&page, &table).expect("a place for the table");
            fs::write(root().join(LIST), list::render(&left)).expect("the list is written");
            fs::write(root().join(PAGE), page).expect("the page is written");
        } else {
            wrong.extend(unlike(&text, &page, &list::render(&left), &table));
        }
        let added = added(rules, &listed, found);
        let more = added.len().saturating_sub(MOST_SUBJECTS);
        wrong.extend(added.into_iter().take(MOST_SUBJECTS));
        if more > 0 {
            wrong.push(format!("And {more} more."));
        }
        wrong.extend(gone(&listed, &now));
    }
    if !wrong.is_empty() {
        let wanted = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("tidy_exceptions.txt");
        fs::write(&wanted, list::render(&list::wanted(&groups, &now))).expect("a file in the target folder");
        panic!(
            "{}\n\nThe list as it would have to be is {}. Copy it over {LIST} only to merge branches that \
             were tidy by themselves, look at the difference, and give each group without a reason one.",
            wrong.join("\n\n"),
            wanted.display()
        );
    }
}

fn list_of(found: &[Found]) -> Numbers {
    found.iter().map(|one| ((one.rule.to_owned(), one.subject.clone()), one.count)).collect()
}

/// Complaints about a list that is not written in order, and about a page that does not count it.
fn unlike(text: &str, page: &str, ordered: &str, table: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text != ordered {
        let line = text.lines().zip(ordered.lines()).take_while(|(is, wanted)| is == wanted).count() + 1;
        wrong.push(format!(
            "{LIST}:{line}: not in order, or its head or an empty line is another: \
             `{VARIABLE}=shrink cargo test tidy` writes it anew"
        ));
    }
    if with_table(page, table).is_none_or(|wanted| wanted != page) {
        wrong.push(format!(
            "{PAGE} does not count the exceptions of {LIST}: run `{VARIABLE}=shrink cargo test tidy`, or put \
             this between `{}` and `{TABLE_END}`:\n{table}",
            TABLE_START.trim_end()
        ));
    }
    wrong
}

/// Complaints about what is not listed.
fn added(rules: &[Rule], listed: &Numbers, found: &[Found]) -> Vec<String> {
    let new = found.iter().filter_map(|one| {
        let allowed = listed.get(&(one.rule.to_owned(), one.subject.clone())).copied().unwrap_or(0);
        if one.count <= allowed {
            return None;
        }
        let says = rules.iter().find(|rule| rule.name == one.rule).map_or("", |rule| rule.says.as_str());
        let mut text = format!(
            "{} {}: {} where the list allows {allowed}. The rule: {says}. Mend it at:",
            one.rule, one.subject, one.count
        );
        for place in one.places.iter().take(MOST_PLACES) {
            text.push_str("\n  ");
            text.push_str(place);
        }
        if let Some(more) = one.places.len().checked_sub(MOST_PLACES + 1) {
            text.push_str(&format!("\n  and {} more", more + 1));
        }
        Some(text)
    });
    new.collect()
}

/// Complaints about what is listed and no longer there.
fn gone(listed: &Numbers, now: &Numbers) -> Vec<String> {
    let mut lines = Vec::new();
    for (key, count) in listed {
        let left = now.get(key).copied().unwrap_or(0);
        if left < *count {
            lines.push(format!("  {} {} {count} (now {left})", key.0, key.1));
        }
    }
    if lines.is_empty() {
        return Vec::new();
    }
    let head = format!("{LIST} has more than there is; run `{VARIABLE}=shrink cargo test tidy`:");
    vec![format!("{head}\n{}", lines.join("\n"))]
}

/// The page's table: each rule with the number of its exceptions.
fn table(rules: &[Rule], listed: &Numbers) -> String {
    let mut text = "| name | rule | exceptions |\n|---|---|---|\n".to_owned();
    for rule in rules {
        let counts: Vec<usize> =
            listed.iter().filter(|((name, _), _)| name == rule.name).map(|(_, count)| *count).collect();
        let subjects = format!("{} {}", counts.len(), rule.subjects);
        let exceptions = match (counts.is_empty(), rule.counts) {
            (true, _) => "none".to_owned(),
            (_, Some(things)) => format!("{} {things} in {subjects}", counts.iter().sum::<usize>()),
            (_, None) => subjects,
        };
        text.push_str(&format!("| `{}` | {} | {exceptions} |\n", rule.name, rule.says));
    }
    text
}

/// The page with this table, `None` if it has no place for it.
fn with_table(page: &str, table: &str) -> Option<String> {
    let (before, rest) = page.split_once(TABLE_START)?;
    let (_, after) = rest.split_once(TABLE_END)?;
    Some(format!("{before}{TABLE_START}{table}{TABLE_END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> [Rule; 2] {
        [
            Rule { name: "size", says: "small".to_owned(), subjects: "files", counts: None },
            Rule { name: "width", says: "narrow".to_owned(), subjects: "files", counts: Some("lines") },
        ]
    }

    /// Numbers of lines that one reason explains.
    fn listed(text: &str) -> Numbers {
        let line = |line: &str| {
            let parts: Vec<&str> = line.split(' ').collect();
            ((parts[0].to_owned(), parts[1].to_owned()), parts[2].parse::<usize>().expect("a number"))
        };
        text.lines().map(line).collect()
    }

    /// Faults as a list writes them.
    fn found(text: &str) -> Vec<Found> {
        let known = |rule: &str| rules().iter().find(|known| known.name == rule).expect("a rule").name;
        let one = |((rule, subject), count): ((String, String), usize)| {
            let places = (1..=count).map(|line| format!("{subject}:{line}")).collect();
            Found { rule: known(&rule), subject, count, places }
        };
        listed(text).into_iter().map(one).collect()
    }

    const LISTED: &str = "size a 500\nwidth a 3\nwidth b 20\n";

    #[test]
    fn listed_faults_pass() {
        assert_eq!(added(&rules(), &listed(LISTED), &found(LISTED)), [] as [String; 0]);
        assert_eq!(gone(&listed(LISTED), &listed(LISTED)), [] as [String; 0]);
    }

    #[test]
    fn added_or_grown_faults_fail() {
        for (now, says) in [
            ("size a 501\nwidth a 3\nwidth b 20\n", "size a: 501 where the list allows 500"),
            ("size a 500\nsize b 451\nwidth a 3\nwidth b 20\n", "size b: 451 where the list allows 0"),
            ("size a 500\nwidth a 4\nwidth b 20\n", "a:4"),
            ("size a 500\nwidth a 3\nwidth b 120\n", "and 20 more"),
        ] {
            let wrong = added(&rules(), &listed(LISTED), &found(now));
            assert!(wrong.len() == 1 && wrong[0].contains(says), "{now}: {wrong:?}");
        }
    }

    #[test]
    fn mended_faults_that_are_still_listed_fail() {
        for (now, says) in [
            ("size a 499\nwidth a 3\nwidth b 20\n", "size a 500 (now 499)"),
            ("size a 500\nwidth b 20\n", "width a 3 (now 0)"),
            ("size a 500\nwidth a 3\nwidth b 1\n", "width b 20 (now 1)"),
        ] {
            let wrong = gone(&listed(LISTED), &listed(now));
            assert!(wrong.len() == 1 && wrong[0].contains(says), "{now}: {wrong:?}");
            assert_eq!(added(&rules(), &listed(LISTED), &found(now)), [] as [String; 0]);
        }
    }

    #[test]
    fn shrinking_adds_and_raises_nothing() {
        let why = "- A reason of five words.\n";
        let text = format!("{why}size a 500\n\n{why}width a 3\nwidth b 20\n");
        let (groups, wrong) = list::parse(&text, &["size", "width"]);
        assert_eq!(wrong, [] as [String; 0]);
        let rest = list::numbers(&list::shrunk(&groups, &listed("size a 600\nsize b 460\nwidth b 7\n")));
        assert_eq!(rest, listed("size a 500\nwidth b 7\n"));
        assert_eq!(gone(&rest, &rest), [] as [String; 0]);
    }

    #[test]
    fn a_list_out_of_order_and_a_page_that_miscounts_fail() {
        let table = table(&rules(), &listed(LISTED));
        let page = format!("a\n{TABLE_START}{table}{TABLE_END}\nb\n");
        assert_eq!(unlike("a\nb\n", &page, "a\nb\n", &table), [] as [String; 0]);
        for (text, page, says) in [
            ("b\na\n", page.as_str(), "txt:1: not in order"),
            ("a\n\nb\n", page.as_str(), "txt:2: not in order"),
            ("a\nb\nc\n", page.as_str(), "txt:3: not in order"),
            ("a\nb\n", "a page without a table", "does not count"),
        ] {
            let wrong = unlike(text, page, "a\nb\n", &table);
            assert!(wrong.len() == 1 && wrong[0].contains(says), "{text}: {wrong:?}");
        }
    }

    #[test]
    fn the_table_of_the_page_counts_the_exceptions() {
        let table = table(&rules(), &listed("width a 3\nwidth b 20\n"));
        assert!(
            table.ends_with("| `size` | small | none |\n| `width` | narrow | 23 lines in 2 files |\n"),
            "{table}"
        );
        let page = format!("a\n{TABLE_START}old\n{TABLE_END}\nb\n");
        let new = with_table(&page, &table).expect("a place");
        assert!(
            new.starts_with("a\n") && new.ends_with("\nb\n") && new.contains(&table) && !new.contains("old")
        );
        assert_eq!(with_table(&new, &table).as_deref(), Some(new.as_str()));
        assert_eq!(with_table("a", &table), None);
    }
}
