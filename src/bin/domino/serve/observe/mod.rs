//! What those who run a server see of its requests: an id for each ([`request_id`]), and a line of the log
//! ([`access_log`]).

pub(crate) mod access_log;
pub(crate) mod request_id;
