//! "Did you mean": the nearest of some names to an unknown one, by Damerau-Levenshtein distance (optimal
//! string alignment).
//!
//! The work is bounded: long names, and all but the first ten thousand candidates, are ignored.
//!
//! ```
//! use domino::grammar::suggest;
//!
//! let hint = suggest::did_you_mean("xml_persn", ["json", "xml_person"].into_iter());
//! assert_eq!(hint.as_deref(), Some("did you mean `xml_person`?"));
//! ```

const LONGEST_NAME: usize = 64;
const MOST_CANDIDATES: usize = 10_000;

/// The candidate nearest to `name`, if it is near: at most a third of the characters differ.
///
/// Case makes no difference, nor does `-` for `_`. Quadratic in the length of the names.
pub fn nearest<'n>(name: &str, candidates: impl Iterator<Item = &'n str>) -> Option<&'n str> {
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

/// A hint with the candidate nearest to `name`, if there is a near one.
pub fn did_you_mean<'n>(name: &str, candidates: impl Iterator<Item = &'n str>) -> Option<String> {
    nearest(name, candidates).map(|near| format!("did you mean `{near}`?"))
}

/// A hint for an error of serde about a key that a struct does not have: the nearest of its keys, or else all
/// of them. `message` is the error's own text; `None` if it is about something else.
///
/// # Examples
/// ```
/// use domino::grammar::suggest;
///
/// let message = "unknown field `prmpt`, expected one of `id`, `prompt`, `seed`";
/// assert_eq!(suggest::known_key(message).as_deref(), Some("did you mean `prompt`?"));
/// let message = "unknown field `colour`, expected `id` or `prompt`";
/// assert_eq!(suggest::known_key(message).as_deref(), Some("the keys here are `id`, `prompt`"));
/// ```
pub fn known_key(message: &str) -> Option<String> {
    let (_, about) = message.split_once("unknown field `")?;
    let (name, known) = about.split_once("`, expected ")?;
    // Names stand between back ticks, so every second part is one.
    let known: Vec<&str> = known.lines().next()?.split('`').skip(1).step_by(2).collect();
    if known.is_empty() {
        return None;
    }
    let all = || {
        let known: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
        format!("the keys here are {}", known.join(", "))
    };
    Some(did_you_mean(name, known.iter().copied()).unwrap_or_else(all))
}

/// Folds case and the kind of dash.
fn folded(name: &str) -> Vec<char> {
    name.chars().flat_map(char::to_lowercase).map(|c| if c == '_' { '-' } else { c }).collect()
}

/// The least number of insertions, deletions, replacements and swaps of neighbours.
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
        assert_eq!(did_you_mean("vlaue", names.into_iter()).as_deref(), Some("did you mean `value`?"));
        assert_eq!(did_you_mean("number", names.into_iter()), None);
    }

    /// Reads serde's own errors, so that a change of their words is noticed.
    #[test]
    fn unknown_keys_of_serde_errors_get_suggestions() {
        #[derive(Debug, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        #[expect(dead_code, reason = "only the names count")]
        struct Row {
            prompt: Option<String>,
            max_tokens: Option<u32>,
            seed: Option<u64>,
        }
        #[derive(Debug, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        #[expect(dead_code, reason = "only the names count")]
        struct One {
            id: Option<u32>,
        }
        #[derive(Debug, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Empty {}
        let hint = |row: &str| known_key(&serde_json::from_str::<Row>(row).unwrap_err().to_string());
        for (row, expected) in [
            (r#"{"promt": ""}"#, Some("did you mean `prompt`?")),
            (r#"{"Prompt": ""}"#, Some("did you mean `prompt`?")),
            (r#"{"max-tokens": 1}"#, Some("did you mean `max_tokens`?")),
            (r#"{"seeds": 1}"#, Some("did you mean `seed`?")),
            (r#"{"tokens": 1}"#, Some("the keys here are `prompt`, `max_tokens`, `seed`")),
            (r#"{"seed": "x"}"#, None),
            (r#"{"seed": 1"#, None),
        ] {
            assert_eq!(hint(row).as_deref(), expected, "{row}");
        }
        let one = serde_json::from_str::<One>(r#"{"idd": 1}"#).unwrap_err().to_string();
        assert_eq!(known_key(&one).as_deref(), Some("did you mean `id`?"));
        let none = serde_json::from_str::<Empty>(r#"{"idd": 1}"#).unwrap_err().to_string();
        assert_eq!(known_key(&none), None);
    }
}
