//! stub
use super::{Grammar, GrammarError};
use crate::limits::Limits;
pub(super) fn parse(_text: &str, _limits: &Limits) -> Result<Grammar, GrammarError> {
    unimplemented!()
}
