//! Keywords that combine schemas.

use super::{
    super::{
        algebra::{Algebra, FormulaId, Formulas},
        document::{NodeId, Value},
        error::{Checked, PendingError},
    },
    SchemaSite,
};

impl Algebra<'_> {
    /// The schemas of the array under a keyword.
    pub(super) fn schemas(
        &mut self,
        site: SchemaSite,
        keyword: &'static str,
        value: NodeId,
    ) -> Checked<Vec<FormulaId>> {
        match self.resolver.documents.value(value).clone() {
            Value::Array(schemas) if !schemas.is_empty() => {
                Ok(schemas.into_iter().map(|schema| self.schema(schema, site.scope)).collect())
            }
            _ => Err(PendingError::invalid(
                site.node,
                keyword,
                "the schemas must be in an array that is not empty",
            )),
        }
    }

    /// The formula of `if`, `then` and `else`: (condition and `then`) or (not condition and `else`).
    pub(super) fn conditional(&mut self, site: SchemaSite, value: NodeId) -> Checked<FormulaId> {
        let condition = self.schema(value, site.scope);
        let mut branch =
            |keyword| self.sibling(site, keyword).map_or(Formulas::ANY, |node| self.schema(node, site.scope));
        let (then, otherwise) = (branch("then"), branch("else"));
        if then == Formulas::ANY && otherwise == Formulas::ANY {
            return Ok(Formulas::ANY);
        }
        let with = self.formulas.and([condition, then]);
        let not = self.formulas.not(condition);
        let without = self.formulas.and([not, otherwise]);
        Ok(self.formulas.or([with, without]))
    }
}
