//! Results kept in files: a sealed format, a cache folder of such files, and the writer of all files.
//!
//! This module knows nothing of the contents. A sealed file is never trusted: its seal says what it is, who
//! wrote it and for what, and whether a bit was lost; its reader checks every length; and the caller checks
//! what it means.

mod codec;
mod error;
mod folder;
mod sealed;
mod whole;

pub(crate) use codec::{PayloadReader, PayloadWriter};
pub use error::{StoreError, StoreErrorKind};
pub use folder::{CacheFile, CacheFolder, Cleared};
#[cfg(feature = "oracle")]
#[doc(hidden)]
pub use sealed::resealed;
pub(crate) use sealed::{Kind, PayloadKey, open, seal};
pub use whole::WholeFile;
