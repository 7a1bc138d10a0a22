//! "Did you mean": the name nearest to one that is not there.
//!
//! Bounded: long names and all but the first ten thousand candidates are not looked at.

const LONGEST_NAME: usize = 64;
const MOST_CANDIDATES: usize = 10_000;

/// The candidate nearest to `name` if it is near: at most a third of the characters differ.
pub(crate) fn nearest<'n>(name: &str, candidates: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let wanted = folded(name);
    if wanted.len() > LONGEST_NAME {
        return None;
    }
    let most = (wanted.len() / 3).max(1);
    candidates
        .take(MOST_CANDIDATES)
        .filter(|candidate| candidate.len() <= 4 * LONGEST_NAME)
        .map(|candidate| (distance(&wanted, &folded(candidate)), candidate))
        .filter(|&(distance, _)| distance <= most)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}

/// Case and the kind of dash make no difference between names.
fn folded(name: &str) -> Vec<char> {
    name.chars().flat_map(char::to_lowercase).map(|c| if c == '_' { '-' } else { c }).collect()
}

/// Least number of insertions, deletions, replacements and swaps of neighbours.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut row = vec![i + 1; b.len() + 1];
        for j in 0..b.len() {
            let replaced = last[j] + usize::from(a[i] != b[j]);
            row[j + 1] = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                row[j + 1] = row[j + 1].min(before[j - 1] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        let names = ["value", "object", "string", "ws", "data-type"];
        let find = |name| nearest(name, names.into_iter());
        assert_eq!(find("vlaue"), Some("value"));
        assert_eq!(find("Strings"), Some("string"));
        assert_eq!(find("data_type"), Some("data-type"));
        assert_eq!(find("w"), Some("ws"));
        assert_eq!(find("number"), None);
        assert_eq!(find(&"x".repeat(1000)), None);
    }
}
