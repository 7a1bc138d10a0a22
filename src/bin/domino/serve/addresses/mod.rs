//! The addresses: which there are and what all requests pass before (`router`), and the answers of those that
//! write text (`handlers`) by an `order` to the engine, and of `/health` (`probe`, `health`).

mod handlers;
pub(crate) mod health;
mod order;
mod probe;
pub(crate) mod router;
