//! Compilers whose work others can end.

#[cfg(test)]
mod tests;

use super::Compiler;
use crate::limits::Cancel;

impl Compiler {
    /// This compiler, with a handle by which another thread, or a time, ends what it [reads](Self::parse),
    /// [compiles](Self::compile) and [prepares](Self::prepare). It shares all that this one keeps. Costs a
    /// few counts of references.
    ///
    /// What has ended so was never asked for: nothing unfinished is kept, and this compiler goes on. Compiled
    /// grammars do not have the handle, so they go on too when it is cancelled later.
    ///
    /// # Example
    /// ```
    /// use std::time::Duration;
    ///
    /// use domino::{Cancel, Compiler, Syntax, TokenId, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().all_bytes().end_of_text(TokenId::new(256)).build()?;
    /// let compiler = Compiler::new(vocabulary);
    /// let grammar = compiler.parse(Syntax::Regex, "[a-f]{40}")?;
    /// let hurried = compiler.cancelled_by(&Cancel::after(Duration::ZERO));
    /// let error = hurried.compile(&grammar).unwrap_err();
    /// assert!(error.is_cancelled());
    /// assert!(error.to_string().contains("give it more time"));
    /// compiler.cancelled_by(&Cancel::after(Duration::from_secs(60))).compile(&grammar)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn cancelled_by(&self, cancel: &Cancel) -> Self {
        self.clone().limits(self.limits.clone().cancelled_by(cancel))
    }
}
