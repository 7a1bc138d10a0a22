//! Cells of comma-separated values (RFC 4180): quoting, names of columns that need none, and names of models
//! without the folders that they lie in.

use std::collections::HashMap;

/// Quotes a text as a cell of comma-separated values.
pub(in crate::experiment) fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// Returns the name of a column in files, for a head that is written for readers: lower case, digits and
/// underscores.
pub(in crate::experiment) fn column(head: &str) -> String {
    if head == "1 - TV" {
        return "overlap".to_owned();
    }
    let mut name = String::with_capacity(head.len());
    for c in head.chars() {
        let put: &str = match c {
            '/' => "_per_",
            _ if c.is_alphanumeric() => {
                name.extend(c.to_lowercase());
                continue;
            }
            _ => "_",
        };
        name.push_str(put);
    }
    name.split('_').filter(|word| !word.is_empty()).collect::<Vec<_>>().join("_")
}

/// Names of models without folders: the last part of a path, and as many parts before it as distinguish it.
#[derive(Debug, Clone, Default)]
pub(in crate::experiment) struct PlainNames {
    known: HashMap<String, String>,
}

impl PlainNames {
    /// Computes plain names for these models.
    pub(in crate::experiment) fn of<'a>(models: impl IntoIterator<Item = &'a str>) -> Self {
        let mut all: Vec<&str> = models.into_iter().collect();
        all.sort_unstable();
        all.dedup();
        let parts = |model: &str| -> Vec<String> {
            let parts = model.split(['/', '\\']).filter(|part| !["", ".", ".."].contains(part));
            parts.map(str::to_owned).collect()
        };
        let tail = |model: &str, most: usize| {
            let parts = parts(model);
            parts[parts.len().saturating_sub(most)..].join("/")
        };
        let plain = |model: &str| {
            // A repository on the hub is a name as it is.
            let lies_in_folders = model.starts_with(['/', '.', '\\']) || parts(model).len() > 2;
            let most = if lies_in_folders { 1 } else { 2 };
            let is_other =
                |most: usize| all.iter().all(|one| *one == model || tail(one, most) != tail(model, most));
            let most = (most..=parts(model).len()).find(|most| is_other(*most)).unwrap_or(most);
            let name = tail(model, most);
            if name.is_empty() { model.to_owned() } else { name }
        };
        Self { known: all.iter().map(|model| ((*model).to_owned(), plain(model))).collect() }
    }

    /// Returns the plain name of a model; itself if it was not among those given.
    pub(in crate::experiment) fn get<'a>(&'a self, model: &'a str) -> &'a str {
        self.known.get(model).map_or(model, String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_names_that_need_no_quotes() {
        for (head, name) in [
            ("over unconstrained", "over_unconstrained"),
            ("tokens/s", "tokens_per_s"),
            ("mask ms/token", "mask_ms_per_token"),
            ("1 - TV", "overlap"),
            ("non-canonical", "non_canonical"),
            ("s = 4", "s_4"),
            ("t(n)/t(1)", "t_n_per_t_1"),
            ("Paper: Mistral 7B", "paper_mistral_7b"),
        ] {
            assert_eq!(column(head), name);
        }
    }

    #[test]
    fn models_have_plain_names() {
        for (models, plain) in [
            (&["../end_to_end/small/small-q8_0.gguf"][..], &["small-q8_0.gguf"][..]),
            (&["/models/a.gguf", "domino-small"], &["a.gguf", "domino-small"]),
            (&["/x/one/model.gguf", "/x/two/model.gguf"], &["one/model.gguf", "two/model.gguf"]),
            (&["OWNER/NAME"], &["OWNER/NAME"]),
            (&["./model"], &["model"]),
            (&["../a/m", "b/m"], &["a/m", "b/m"]),
            (&["/"], &["/"]),
        ] {
            let names = PlainNames::of(models.iter().copied());
            let found: Vec<&str> = models.iter().map(|model| names.get(model)).collect();
            assert_eq!(found, plain);
        }
        assert_eq!(PlainNames::default().get("other"), "other");
    }
}
