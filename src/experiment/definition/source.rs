//! A definition's file, and errors about it.

use std::{collections::HashSet, hash::Hash, path::Path};

use super::shipped::ShippedGrammars;
use crate::experiment::error::ExperimentError;

/// A definition's name in errors, and the folder of its files.
#[derive(Clone, Copy)]
pub(super) struct DefinitionSource<'a> {
    pub(super) name: &'a str,
    pub(super) folder: &'a Path,
    pub(super) shipped: ShippedGrammars<'a>,
}

impl DefinitionSource<'_> {
    pub(super) fn wrong(&self, message: impl Into<String>) -> ExperimentError {
        ExperimentError::definition(self.name, message)
    }

    /// Refuses an empty list, and one with the same thing twice.
    pub(super) fn list<T: std::fmt::Debug, I: Eq + Hash>(
        &self,
        key: &str,
        list: &[T],
        identity: impl Fn(&T) -> I,
    ) -> Result<(), ExperimentError> {
        if list.is_empty() {
            return Err(self
                .wrong(format!("`{key}` is empty"))
                .with_hint(format!("leave `{key}` out, or fill it")));
        }
        let mut seen = HashSet::new();
        match list.iter().find(|item| !seen.insert(identity(item))) {
            Some(twice) => Err(self.wrong(format!("`{key}` has {twice:?} twice"))),
            None => Ok(()),
        }
    }
}
