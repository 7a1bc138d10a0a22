//! No circles of imports: files that import one another, however indirectly, can only be read all at once.
//!
//! Circles are the strongly connected components of the graph of files (Tarjan's algorithm). An exception
//! says of a file how many of its imports stay in its circle, so that neither a circle nor an import inside
//! of one can be added.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    exceptions::Found,
    modules::{Crate, Import},
    source::Source,
};

/// The program is a crate of its own beside the library.
const PROGRAM: &str = "src/bin/domino/";

/// The imports of the library and the program.
pub(super) fn imports(sources: &[Source]) -> BTreeSet<Import> {
    let mut imports = Crate::new(sources, "src/", Some("src/bin/")).imports();
    imports.extend(Crate::new(sources, PROGRAM, None).imports());
    imports
}

/// Files in circles, with their imports that stay inside.
pub(super) fn in_circles(imports: &BTreeSet<Import>) -> Vec<Found> {
    let circles = circles(imports);
    let mut found: BTreeMap<&str, Found> = BTreeMap::new();
    for Import { from, to } in imports {
        if circles.get(from.as_str()).is_some_and(|circle| Some(circle) == circles.get(to.as_str())) {
            let one = found.entry(from).or_insert_with(|| Found::counted("circle", from));
            one.add(format!("{from} imports {to}, which leads back to it"));
        }
    }
    found.into_values().collect()
}

/// The number of the circle of each file that is in one.
pub(super) fn circles(imports: &BTreeSet<Import>) -> BTreeMap<&str, usize> {
    let mut search = Search::default();
    for Import { from, to } in imports {
        search.out.entry(from).or_default().push(to);
    }
    let files: Vec<&str> = search.out.keys().copied().collect();
    for file in files {
        if !search.seen.contains_key(file) {
            search.visit(file);
        }
    }
    let circles = search.done.into_iter().filter(|circle| circle.len() > 1).enumerate();
    circles.flat_map(|(number, files)| files.into_iter().map(move |file| (file, number))).collect()
}

/// Tarjan's search.
#[derive(Default)]
struct Search<'a> {
    out: BTreeMap<&'a str, Vec<&'a str>>,
    /// The order in which files were first seen.
    seen: BTreeMap<&'a str, usize>,
    open: Vec<&'a str>,
    done: Vec<Vec<&'a str>>,
}

impl<'a> Search<'a> {
    /// Visits a file, and says the earliest open file that it leads back to.
    fn visit(&mut self, file: &'a str) -> usize {
        let own = self.seen.len();
        self.seen.insert(file, own);
        self.open.push(file);
        let mut earliest = own;
        for next in self.out.get(file).cloned().unwrap_or_default() {
            if !self.seen.contains_key(next) {
                earliest = earliest.min(self.visit(next));
            } else if self.open.contains(&next) {
                earliest = earliest.min(self.seen[next]);
            }
        }
        if earliest == own {
            let start = self.open.iter().position(|open| *open == file).expect("it is open");
            self.done.push(self.open.split_off(start));
        }
        earliest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exceptions(arrows: &[(&str, &str)]) -> Vec<(String, usize)> {
        let imports =
            arrows.iter().map(|(from, to)| Import { from: (*from).to_owned(), to: (*to).to_owned() });
        in_circles(&imports.collect()).into_iter().map(|found| (found.subject, found.count)).collect()
    }

    #[test]
    fn circles_of_imports_are_found() {
        assert_eq!(exceptions(&[("a", "b"), ("b", "a")]), [("a".to_owned(), 1), ("b".to_owned(), 1)]);
        let long = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a"), ("a", "c"), ("z", "a"), ("a", "y")];
        assert_eq!(exceptions(&long).iter().map(|(_, count)| *count).collect::<Vec<_>>(), [2, 1, 1, 1]);
    }

    #[test]
    fn trees_of_imports_have_no_circles() {
        assert_eq!(exceptions(&[("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")]), []);
        assert_eq!(exceptions(&[]), []);
    }

    #[test]
    fn circles_agree_with_reachability_on_all_small_graphs() {
        let names = ["a", "b", "c", "d"];
        let pairs: Vec<_> = names
            .iter()
            .flat_map(|from| names.map(|to| (*from, to)))
            .filter(|(from, to)| from != to)
            .collect();
        for graph in 0_u32..1 << pairs.len() {
            let arrows: Vec<_> = pairs
                .iter()
                .enumerate()
                .filter(|(bit, _)| graph >> bit & 1 == 1)
                .map(|(_, pair)| *pair)
                .collect();
            let mut reached: BTreeSet<_> = arrows.iter().copied().collect();
            for middle in names {
                for (from, to) in &pairs {
                    if reached.contains(&(*from, middle)) && reached.contains(&(middle, *to)) {
                        reached.insert((from, to));
                    }
                }
            }
            let mut slow: BTreeMap<String, usize> = BTreeMap::new();
            for (from, to) in &arrows {
                if reached.contains(&(*to, *from)) {
                    *slow.entry((*from).to_owned()).or_default() += 1;
                }
            }
            assert_eq!(exceptions(&arrows), slow.into_iter().collect::<Vec<_>>(), "{arrows:?}");
        }
    }

    #[test]
    fn files_of_one_folder_can_make_a_circle() {
        let sources = [
            Source::new("src/lib.rs", "mod a;"),
            Source::new("src/a/mod.rs", "mod b; use b::B; pub struct A;"),
            Source::new("src/a/b.rs", "use super::A; pub struct B;"),
            Source::new("src/bin/domino/main.rs", "mod a; mod b;"),
            Source::new("src/bin/domino/a.rs", "use crate::b::B; pub struct A;"),
            Source::new("src/bin/domino/b.rs", "use crate::a::A; pub struct B;"),
        ];
        assert_eq!(in_circles(&imports(&sources)).len(), 4);
        assert_eq!(in_circles(&imports(&sources[..2])).len(), 0);
    }
}
