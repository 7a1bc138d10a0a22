//! The list of exceptions as a file: groups of one rule, each below a sentence that says why they are left.
//!
//! ```text
//! - The chart and its links are one data structure: an item points to links, and a link to items.
//! circle src/engine/parser/closure.rs 1
//! circle src/engine/parser/core.rs 1
//! ```
//!
//! A reason may go on in lines that begin with two spaces. An empty line ends a group. Groups of one rule
//! stand together, and the lines of a group are in order: [`render`] writes them so. An exception that no
//! sentence explains is a fault.

use std::collections::{BTreeMap, BTreeSet};

/// The file.
pub(super) const LIST: &str = "tests/tidy/exceptions.txt";
/// Words of the shortest sentence that can be a reason.
const FEWEST_WORDS: usize = 5;
const HEAD: &str = "\
# What breaks a rule of tests/tidy today, in groups: a sentence says why they are left, then come rule,
# subject and number of each. Lines and numbers may only go.
# After mending some: DOMINO_TIDY=shrink cargo test tidy
";

/// A rule's name and a subject.
pub(super) type Key = (String, String);
/// Numbers by rule and subject.
pub(super) type Numbers = BTreeMap<Key, usize>;

/// Exceptions of one rule that are left for one reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Group {
    /// A sentence, perhaps in several lines; empty if there is none.
    pub(super) reason: String,
    pub(super) numbers: Numbers,
}

impl Group {
    fn new(reason: &str) -> Self {
        Self { reason: reason.to_owned(), numbers: Numbers::new() }
    }

    /// The rule that all of them break.
    fn rule(&self) -> Option<&str> {
        self.numbers.keys().next().map(|(rule, _)| rule.as_str())
    }

    /// A complaint about a group at `place` that explains nothing, or is not explained.
    fn fault(&self, place: &str) -> Option<String> {
        if self.numbers.is_empty() {
            return Some(format!("{place}: no exception follows this reason: take it out"));
        }
        let sentence = self.reason.starts_with(|first: char| first.is_uppercase() || first == '`')
            && self.reason.ends_with('.')
            && self.reason.split_whitespace().count() >= FEWEST_WORDS;
        (!sentence).then(|| {
            format!(
                "{place}: these exceptions have no reason. Mend them, or write before the first of them a \
                 line `- `, followed by one plain sentence that says why they are left"
            )
        })
    }
}

/// The numbers of all groups.
pub(super) fn numbers(groups: &[Group]) -> Numbers {
    groups.iter().flat_map(|group| group.numbers.clone()).collect()
}

/// Reads the list, whose rules have these names, and says what is wrong with it.
pub(super) fn parse(text: &str, rules: &[&str]) -> (Vec<Group>, Vec<String>) {
    let mut groups: Vec<Group> = Vec::new();
    let mut places = Vec::new();
    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    // The last group goes on until an empty line.
    let mut open = false;
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
        let place = format!("{LIST}:{}", number + 1);
        if line.is_empty() {
            open = false;
        } else if let Some(reason) = line.strip_prefix("- ") {
            groups.push(Group::new(reason));
            places.push(place);
            open = true;
        } else if let Some(more) = line.strip_prefix("  ") {
            match groups.last_mut().filter(|group| open && group.numbers.is_empty()) {
                Some(group) => group.reason.push_str(&format!("\n{more}")),
                None => wrong.push(format!("{place}: `{line}` goes on with a reason that there is not")),
            }
        } else if let Some((key, count)) = exception(line, rules) {
            if !open {
                groups.push(Group::new(""));
                places.push(place.clone());
                open = true;
            }
            let Some(group) = groups.last_mut() else { continue };
            if group.rule().is_some_and(|rule| rule != key.0) {
                wrong.push(format!("{place}: `{line}` is of another rule than those above it"));
            }
            if !seen.insert(key.clone()) {
                wrong.push(format!("{place}: `{line}` is there twice"));
            }
            group.numbers.insert(key, count);
        } else {
            wrong.push(format!("{place}: `{line}` is not a rule, a subject and a number, nor a reason"));
        }
    }
    wrong.extend(groups.iter().zip(&places).filter_map(|(group, place)| group.fault(place)));
    (groups, wrong)
}

/// The exception that a line says.
fn exception(line: &str, rules: &[&str]) -> Option<(Key, usize)> {
    let parts: Vec<&str> = line.split(' ').collect();
    match parts[..] {
        [rule, subject, count] if rules.contains(&rule) => {
            Some(((rule.to_owned(), subject.to_owned()), count.parse().ok()?))
        }
        _ => None,
    }
}

/// Writes the list, in order: the groups by their rules, and the lines of each.
pub(super) fn render(groups: &[Group]) -> String {
    let mut ordered: Vec<&Group> = groups.iter().filter(|group| !group.numbers.is_empty()).collect();
    ordered.sort_by(|one, other| one.rule().cmp(&other.rule()));
    let mut text = HEAD.to_owned();
    for group in ordered {
        text.push('\n');
        if !group.reason.is_empty() {
            text.push_str(&format!("- {}\n", group.reason.replace('\n', "\n  ")));
        }
        for ((rule, subject), count) in &group.numbers {
            text.push_str(&format!("{rule} {subject} {count}\n"));
        }
    }
    text
}

/// The list without what is gone. Nothing is added or raised, and a reason goes with the last of its lines.
pub(super) fn shrunk(groups: &[Group], now: &Numbers) -> Vec<Group> {
    let rest = groups.iter().map(|group| {
        let numbers = group.numbers.iter().filter_map(|(key, count)| {
            let count = *now.get(key)?.min(count);
            Some((key.clone(), count))
        });
        Group { reason: group.reason.clone(), numbers: numbers.collect() }
    });
    rest.filter(|group| !group.numbers.is_empty()).collect()
}

/// The list that what there is now would need. Reasons stay with their lines, and with files that moved; new
/// lines have none.
pub(super) fn wanted(groups: &[Group], now: &Numbers) -> Vec<Group> {
    let mut wanted = groups.to_vec();
    for group in &mut wanted {
        group.numbers.retain(|key, _| now.contains_key(key));
    }
    let mut unexplained: BTreeMap<String, Group> = BTreeMap::new();
    for (key, count) in now {
        let group = match wanted.iter().position(|group| group.numbers.contains_key(key)) {
            Some(index) => &mut wanted[index],
            None => match left_by(groups, now, key) {
                Some(index) => &mut wanted[index],
                None => unexplained.entry(key.0.clone()).or_insert_with(|| Group::new("")),
            },
        };
        group.numbers.insert(key.clone(), *count);
    }
    wanted.extend(unexplained.into_values());
    wanted
}

/// The one group with a file of the same name that is gone: it moved to where `key` is.
fn left_by(groups: &[Group], now: &Numbers, key: &Key) -> Option<usize> {
    let mut found = groups.iter().enumerate().filter(|(_, group)| {
        let mut gone = group.numbers.keys().filter(|old| !now.contains_key(*old));
        gone.any(|old| old.0 == key.0 && last_name(&old.1) == last_name(&key.1))
    });
    let (index, _) = found.next()?;
    found.next().is_none().then_some(index)
}

/// Last part of a path.
fn last_name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: [&str; 2] = ["size", "width"];
    const LISTED: &str = "\
- A file of words that all belong together.
size a/one.rs 500

- A table has one row a line,
  and a row cannot be broken.
width a/one.rs 3
width b/two.rs 20

- An address of the literature is one word.
width c/three.rs 1
";

    fn groups(text: &str) -> Vec<Group> {
        let (groups, wrong) = parse(text, &RULES);
        assert_eq!(wrong, [] as [String; 0]);
        groups
    }

    /// Numbers that are there, whatever explains them.
    fn now(lines: &[(&str, &str, usize)]) -> Numbers {
        let one = |(rule, subject, count): &(&str, &str, usize)| {
            (((*rule).to_owned(), (*subject).to_owned()), *count)
        };
        lines.iter().map(one).collect()
    }

    #[test]
    fn lists_are_read_and_written_alike() {
        assert_eq!(render(&groups(LISTED)), format!("{HEAD}\n{LISTED}"));
        assert_eq!(groups(&render(&groups(LISTED))), groups(LISTED));
        assert_eq!(numbers(&groups(LISTED)).len(), 4);
        assert_eq!(groups(LISTED)[1].reason, "A table has one row a line,\nand a row cannot be broken.");
    }

    #[test]
    fn writing_a_list_puts_it_in_order() {
        let shuffled = "\
- A table has one row a line,
  and a row cannot be broken.
width b/two.rs 20
width a/one.rs 3

- An address of the literature is one word.
width c/three.rs 1

- A file of words that all belong together.
size a/one.rs 500
";
        assert_eq!(render(&groups(shuffled)), format!("{HEAD}\n{LISTED}"));
    }

    #[test]
    fn exceptions_without_a_reason_fail() {
        for text in [
            "width a 3\nwidth b 4\n",
            "# head\n\nwidth a 3\n",
            "- \nwidth a 3\n",
            "- It stays.\nwidth a 3\n",
            "- The words of this reason have no end\nwidth a 3\n",
            "- the words of this reason begin anywhere.\nwidth a 3\n",
            "- The words of these are fine.\nwidth a 3\n\nwidth b 4\n",
            "- Four words are few.\nwidth a 3\n",
        ] {
            let (_, wrong) = parse(text, &RULES);
            assert!(wrong.len() == 1 && wrong[0].contains("no reason"), "{text}: {wrong:?}");
        }
    }

    #[test]
    fn a_list_that_cannot_be_read_fails() {
        let why = "- A reason of five words.\n";
        for (lines, says) in [
            ("width a", "txt:2: `width a` is not a rule"),
            ("# head\nwidth b three\nwidth a 3", "txt:3: `width b three` is not a rule"),
            ("width a 3\nother a 3", "is not a rule"),
            ("width a 3\n<<<<<<< a\n", "is not a rule"),
            ("width a 3\n- \n", "no exception follows"),
            ("width a 3\nsize b 500", "txt:3: `size b 500` is of another rule"),
            ("width a 3\nwidth a 4", "there twice"),
            ("width a 3\n\n- Another reason of five words.\nwidth a 4", "there twice"),
            ("width a 3\n  and so on.", "goes on with a reason that there is not"),
            ("width a 3\n\n  and so on.", "txt:4"),
        ] {
            let (_, wrong) = parse(&format!("{why}{lines}"), &RULES);
            assert!(wrong.iter().any(|one| one.contains(says)), "{lines}: {wrong:?}");
        }
        let (_, wrong) = parse(&format!("- A reason of no exception.\n\n{why}width a 3\n"), &RULES);
        assert!(wrong.len() == 1 && wrong[0].contains("txt:1: no exception"), "{wrong:?}");
    }

    #[test]
    fn shrinking_keeps_the_reasons_of_what_is_left() {
        let there = now(&[("size", "a/one.rs", 600), ("width", "b/two.rs", 7), ("width", "d/new.rs", 1)]);
        let rest = shrunk(&groups(LISTED), &there);
        let expected = "\
- A file of words that all belong together.
size a/one.rs 500

- A table has one row a line,
  and a row cannot be broken.
width b/two.rs 7
";
        assert_eq!(rest, groups(expected));
        assert_eq!(shrunk(&rest, &there), rest);
        assert!(shrunk(&rest, &Numbers::new()).is_empty());
    }

    #[test]
    fn wanted_reasons_follow_files_that_moved() {
        let there = now(&[
            ("size", "a/one.rs", 600),
            ("width", "b/two.rs", 20),
            ("width", "d/e/three.rs", 2),
            ("width", "d/four.rs", 1),
        ]);
        let text = render(&wanted(&groups(LISTED), &there));
        assert!(text.contains("together.\nsize a/one.rs 600\n\n"), "{text}");
        assert!(text.contains("broken.\nwidth b/two.rs 20\n\n"), "{text}");
        assert!(text.contains("one word.\nwidth d/e/three.rs 2\n\n"), "{text}");
        let (listed, wrong) = parse(&text, &RULES);
        assert_eq!(numbers(&listed), there);
        assert!(wrong.len() == 1 && wrong[0].contains("no reason"), "{wrong:?}");
        assert!(text.ends_with("\n\nwidth d/four.rs 1\n"), "{text}");
    }

    #[test]
    fn wanted_reasons_of_several_groups_are_nobodys() {
        let two = "\
- A reason of five words.
width a/one.rs 1

- Another reason of five words.
width b/one.rs 1
";
        let text = render(&wanted(&groups(two), &now(&[("width", "c/one.rs", 1)])));
        assert_eq!(text, format!("{HEAD}\nwidth c/one.rs 1\n"));
    }
}
