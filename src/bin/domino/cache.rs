//! The cache folder: its flags, and `domino cache`.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    io::{self, Write},
    path::PathBuf,
    time::UNIX_EPOCH,
};

use clap::{Args, builder::FalseyValueParser};
use domino::store::{CacheFile, CacheFolder};
use indicatif::BinaryBytes;
use serde_json::json;

use crate::terminal::{
    failure::{BadInput, Exit},
    stdout,
};

/// Where vocabularies, tables and trees are kept between runs.
#[derive(Debug, Args)]
pub(crate) struct LowCacheFlags {
    /// Keep vocabularies and what was worked out about grammars in this folder, so that they are there at
    /// once the next time. Several runs may share it, and it may be deleted at any time. Default: domino in
    /// the user's cache folder. `trace` measures without it.
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

/// Show what the cache folder holds, or empty it.
///
/// It never grows past 1 GiB: files that were not used for longest go first.
///
/// With --json one object is printed: folder (null without one), limit in bytes, and files, each with kind,
/// name, bytes and used (seconds since 1970); with --clear folder, and files and bytes that were removed.
#[derive(Debug, Args)]
pub(crate) struct LowCache {
    /// Remove its files. Others in the same folder stay.
    #[arg(long)]
    clear: bool,
}

/// The resolved command `domino cache`.
#[derive(Debug)]
pub(crate) struct Cache {
    clear: bool,
    json: bool,
}

impl LowCache {
    pub(crate) fn resolve(self, json: bool) -> Cache {
        Cache { clear: self.clear, json }
    }
}

/// Shows or empties the folder.
pub(crate) fn run(command: &Cache, cache: &CacheFolder) -> anyhow::Result<Exit> {
    let mut out = stdout::lock();
    let folder = cache.path().map(|path| path.display().to_string());
    let name = folder.as_deref().unwrap_or("no cache folder");
    let refuse = |error: io::Error| {
        BadInput::new(format!("cannot use {name}: {error}")).hint("name another folder with --cache-dir DIR")
    };
    if command.clear {
        let cleared = cache.clear().map_err(refuse)?;
        if command.json {
            let object = json!({ "folder": folder, "files": cleared.files, "bytes": cleared.bytes });
            writeln!(out, "{object}")?;
        } else {
            writeln!(out, "{name}: removed {}, {}", many_files(cleared.files), BinaryBytes(cleared.bytes))?;
        }
        return Ok(Exit::Success);
    }
    let mut files = cache.files().map_err(refuse)?;
    files.sort_unstable_by(|a, b| (&a.kind, &a.name).cmp(&(&b.kind, &b.name)));
    if command.json {
        let rows: Vec<_> = files.iter().map(row).collect();
        writeln!(out, "{}", json!({ "folder": folder, "limit": cache.budget(), "files": rows }))?;
        return Ok(Exit::Success);
    }
    let mut kinds: BTreeMap<&str, (usize, u64)> = BTreeMap::new();
    for file in &files {
        let (count, bytes) = kinds.entry(&file.kind).or_default();
        *count += 1;
        *bytes += file.bytes;
    }
    let sum: u64 = files.iter().map(|file| file.bytes).sum();
    writeln!(out, "{name}")?;
    let total = ("total", (files.len(), sum));
    for (kind, (count, bytes)) in kinds.into_iter().chain([total]) {
        writeln!(out, "  {kind:<16} {:>10}  {:>12}", many_files(count), BinaryBytes(bytes).to_string())?;
    }
    Ok(Exit::Success)
}

fn many_files(count: usize) -> String {
    if count == 1 { "1 file".to_owned() } else { format!("{count} files") }
}

fn row(file: &CacheFile) -> serde_json::Value {
    let used = file.used.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    json!({ "kind": file.kind, "name": file.name, "bytes": file.bytes, "used": used })
}
