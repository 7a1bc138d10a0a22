//! Results kept in files: a sealed format, and a cache folder of such files.
//!
//! This module knows nothing of the contents. A file is never trusted: its seal says what it is, who wrote it
//! and for what, and whether a bit was lost; its reader checks every length; and the caller checks what it
//! means.

mod codec;
mod error;
mod folder;
mod sealed;

pub(crate) use codec::{PayloadReader, PayloadWriter};
pub use error::{StoreError, StoreErrorKind};
pub use folder::{CacheFile, CacheFolder, Cleared};
#[cfg(feature = "oracle")]
#[doc(hidden)]
pub use sealed::resealed;
pub(crate) use sealed::{Kind, PayloadKey, open, seal};
