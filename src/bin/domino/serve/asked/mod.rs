//! Fields of a body beside its grammar: the options of the schemas in it ([`options`]), and the parts of it
//! whose texts are listed ([`captures`]).

pub(crate) mod captures;
pub(crate) mod options;
