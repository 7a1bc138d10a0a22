//! Parts of answers: OpenAI's objects (`form`), written bytes as text without stop strings (`shown`), calls
//! of functions (`tool_calls`), and the report on a request's grammar (`told`).

pub(crate) mod form;
pub(crate) mod shown;
pub(crate) mod told;
pub(crate) mod tool_calls;
