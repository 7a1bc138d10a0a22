//! Results kept in files: a sealed format, a cache folder of such files, and the writer of all files.
//!
//! This module knows nothing of the contents. A sealed file is never trusted: its seal says what it is, who
//! wrote it and for what, and whether a bit was lost; its reader checks every length; and the caller checks
//! what it means.

mod folder;
mod sealed;

pub use folder::{CacheFile, CacheFolder, Cleared, WholeFile};
#[doc(hidden)]
pub use sealed::{Kind, PayloadKey, PayloadReader, PayloadWriter, open, seal};
pub use sealed::{StoreError, StoreErrorKind};

#[cfg(feature = "oracle")]
#[doc(hidden)]
pub use sealed::resealed;
