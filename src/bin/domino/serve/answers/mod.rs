//! Parts of answers: OpenAI's objects (`form`), the text that may be shown of the bytes that were written
//! (`shown`), calls of functions (`tool_calls`), and what is told of a grammar (`told`).

pub(crate) mod form;
pub(crate) mod shown;
pub(crate) mod told;
pub(crate) mod tool_calls;
