//! `domino cache`: shows what the cache folder holds, or empties it.

use std::io::{self, Write};
use std::{collections::BTreeMap, time::UNIX_EPOCH};

use clap::Args;
use domino::store::{CacheFile, CacheFolder};
use indicatif::BinaryBytes;
use serde_json::json;

use crate::terminal::failure::{BadInput, Exit};
use crate::terminal::{self, count};

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

/// Shows or empties the folder.
pub(crate) fn run(command: &LowCache, json: bool, cache: &CacheFolder) -> anyhow::Result<Exit> {
    let mut out = terminal::stdout();
    let folder = cache.path().map(|path| path.display().to_string());
    let name = folder.as_deref().unwrap_or("no cache folder");
    let refuse = |error: io::Error| {
        BadInput::new(format!("cannot use {name}: {error}")).hint("name another folder with --cache-dir DIR")
    };
    if command.clear {
        let cleared = cache.clear().map_err(refuse)?;
        if json {
            let object = json!({ "folder": folder, "files": cleared.files, "bytes": cleared.bytes });
            writeln!(out, "{object}")?;
        } else {
            writeln!(
                out,
                "{name}: removed {}, {}",
                count(cleared.files, "file"),
                BinaryBytes(cleared.bytes)
            )?;
        }
        return Ok(Exit::Success);
    }
    let mut files = cache.files().map_err(refuse)?;
    files.sort_unstable_by(|a, b| (&a.kind, &a.name).cmp(&(&b.kind, &b.name)));
    if json {
        let rows: Vec<_> = files.iter().map(row).collect();
        writeln!(out, "{}", json!({ "folder": folder, "limit": cache.budget(), "files": rows }))?;
        return Ok(Exit::Success);
    }
    let mut kinds: BTreeMap<&str, (usize, u64)> = BTreeMap::new();
    for file in &files {
        let (files, bytes) = kinds.entry(&file.kind).or_default();
        *files += 1;
        *bytes += file.bytes;
    }
    let sum: u64 = files.iter().map(|file| file.bytes).sum();
    writeln!(out, "{name}")?;
    let total = ("total", (files.len(), sum));
    for (kind, (files, bytes)) in kinds.into_iter().chain([total]) {
        writeln!(out, "  {kind:<16} {:>10}  {:>12}", count(files, "file"), BinaryBytes(bytes).to_string())?;
    }
    Ok(Exit::Success)
}

fn row(file: &CacheFile) -> serde_json::Value {
    let used = file.used.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    json!({ "kind": file.kind, "name": file.name, "bytes": file.bytes, "used": used })
}
