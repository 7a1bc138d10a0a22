//! Reads what a request asks for. Its `body` is checked and taken apart (`request`): the `grammar` of the
//! text (in vLLM's words: `guided`), or functions to be called (`tools`), with `options`, `schemas`,
//! `captures` and the `reach` of masks; its `prompts`; how tokens are drawn (`drawing`). `fields` knows the
//! names that there are.

pub(crate) mod body;
pub(crate) mod captures;
mod drawing;
mod fields;
pub(crate) mod grammar;
mod guided;
mod options;
mod prompts;
pub(crate) mod reach;
pub(crate) mod request;
mod schemas;
pub(crate) mod tools;
