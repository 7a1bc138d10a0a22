//! Groups of flags that several commands share, as they are typed. Each resolves to what it means, a type of
//! [`grammar`](crate::grammar) or [`session`](crate::session).

pub(crate) mod budgets;
pub(crate) mod cache;
pub(crate) mod capture;
pub(crate) mod chat;
pub(crate) mod device;
pub(crate) mod draft_model;
pub(crate) mod drawing;
pub(crate) mod grammar;
pub(crate) mod lookahead;
pub(crate) mod schema;
pub(crate) mod space;
pub(crate) mod speculate;
pub(crate) mod tools;
pub(crate) mod vocabulary;
