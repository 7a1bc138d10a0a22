//! Reports of the schemas in a list of functions.

use super::{
    super::{
        json_schema::{SchemaError, SchemaOptions, SchemaReport},
        structural,
    },
    Tools,
};
use crate::limits::Limits;

impl Tools<'_> {
    /// Reports what becomes of each keyword of the schemas of arguments, with the names of their functions,
    /// in the list's order. Functions without arguments are left out. Schemas are read as in
    /// [`grammar`](Self::grammar).
    ///
    /// # Errors
    /// As [`SchemaOptions::report`](crate::grammar::json_schema::SchemaOptions::report).
    pub fn reports(&self, limits: &Limits) -> Result<Vec<(&str, SchemaReport)>, SchemaError> {
        let mut reports = Vec::with_capacity(self.tools.len());
        let options = structural::schema_options(&SchemaOptions::default());
        for tool in &self.tools {
            if let Some((schema, _)) = tool.parameters {
                reports.push((tool.name.as_str(), options.report(schema, limits)?));
            }
        }
        Ok(reports)
    }
}
