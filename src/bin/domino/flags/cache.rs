//! Flags of the cache folder.

use std::{ffi::OsString, path::PathBuf};

use clap::{Args, builder::FalseyValueParser};
use domino::store::CacheFolder;

/// Flags of the folder that keeps vocabularies, tables and trees between runs.
#[derive(Debug, Args)]
pub(crate) struct LowCacheFlags {
    /// Keep vocabularies and tables of grammars in this folder, so that the next run need not make them.
    /// Several runs may share it, and it may be deleted at any time. Default: domino in the user's cache
    /// folder. `trace` measures without it.
    #[arg(long, global = true, value_name = "DIR", env = "DOMINO_CACHE_DIR", hide_env_values = true)]
    cache_dir: Option<OsString>,
    /// Neither keep anything nor look for it.
    #[arg(
        long,
        global = true,
        env = "DOMINO_NO_CACHE",
        hide_env_values = true,
        value_parser = FalseyValueParser::new()
    )]
    no_cache: bool,
}

impl LowCacheFlags {
    /// Finds the folder that the flags and variables mean.
    pub(crate) fn resolve(&self) -> CacheFolder {
        if self.no_cache {
            return CacheFolder::none();
        }
        // Variables that are set to nothing mean that they are not set.
        let named = self.cache_dir.as_ref().filter(|folder| !folder.is_empty()).map(PathBuf::from);
        // A home that is no absolute path would put the cache wherever the program is run.
        let home = || dirs::cache_dir().filter(|folder| folder.is_absolute());
        let folder = named.or_else(|| Some(home()?.join("domino")));
        folder.map_or_else(CacheFolder::none, CacheFolder::new)
    }
}
