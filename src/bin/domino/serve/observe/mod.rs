//! Makes requests visible to the server's operators: each has an id ([`request_id`]) and a line in the log
//! ([`access_log`]), and all are counted ([`metrics`]).

pub(crate) mod access_log;
pub(crate) mod metrics;
pub(crate) mod request_id;
