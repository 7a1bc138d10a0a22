//! What was worked out once, kept in files: sealed bytes, and a folder of them.
//!
//! Knows nothing of what it keeps. A file is never trusted: its seal says what it is, who wrote it and for what,
//! and whether a bit was lost; its reader checks every length; and whoever reads it checks what it means.

mod codec;
mod error;
mod folder;
mod sealed;

pub(crate) use codec::{Reader, Writer};
pub use error::{StoreError, StoreErrorKind};
pub use folder::{CacheFile, CacheFolder, Cleared};
#[cfg(feature = "oracle")]
#[doc(hidden)]
pub use sealed::resealed;
pub(crate) use sealed::{Key, Kind, open, seal};
