//! Cards, on machines without one: kernels thread by thread, and the script of the record in a dry run.

#[cfg(feature = "card-host")]
mod kernels;
#[cfg(unix)]
mod record;
