//! Work on texts that exist already: heals the end of a prompt, replays tokens, cuts a text into tokens.

pub(super) mod heal;
pub(super) mod replay;
mod retokenize;
