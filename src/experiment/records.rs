//! A folder of records: a header, rows one by one, and a lock while a process writes.
//!
//! Invariant: appended rows stay. A row is on the disk before the next run begins; if a process is killed
//! while it writes one, the next process cuts the partial line off. One process writes at a time.

use std::{
    collections::HashSet,
    fs::{File, OpenOptions, TryLockError},
    io::{Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use serde::{Serialize, de::DeserializeOwned};

use super::{
    definition::Definition,
    enumeration::{Distribution, read_distributions, write_distributions},
    error::ExperimentError,
    header::Header,
    passes::{PassCurve, read_passes, write_passes},
    plan::Plan,
    row::{Row, fill_reproduced},
    summary::{PlainNames, quoted},
};
use crate::{ids::as_u64, store::WholeFile};

/// Name of the header's file.
const HEADER: &str = "header.json";
/// Name of the rows' file.
const ROWS: &str = "rows.jsonl";
/// Name of the file with the rows as a table.
const TABLE: &str = "rows.csv";
/// Name of the file that the writing process locks.
const LOCK: &str = ".lock";

/// A folder of records that is written to.
#[derive(Debug)]
pub struct Records {
    folder: PathBuf,
    rows: File,
    /// Keys of the rows that are there.
    known: HashSet<String>,
    /// Held until this is dropped.
    _lock: File,
}

impl Records {
    /// Opens a folder for the experiment of `header`; makes it if it is missing. Existing rows stay, except
    /// for a last one that was cut.
    ///
    /// # Errors
    /// If another process writes to it, it has something else or records of another experiment, its files are
    /// damaged, or they cannot be read or written.
    pub fn open(folder: &Path, header: &Header) -> Result<Self, ExperimentError> {
        let there = folder.join(HEADER);
        if !there.exists() && !is_free(folder)? {
            let message = format!("it has files, and no {HEADER}: it is not a folder of records");
            return Err(ExperimentError::Damaged { path: folder.to_owned(), message });
        }
        std::fs::create_dir_all(folder).map_err(ExperimentError::io("make", folder))?;
        let lock = lock(folder)?;
        if there.exists() {
            let differences = read_header(folder)?.differences(header);
            if !differences.is_empty() {
                return Err(ExperimentError::Differs { path: folder.to_owned(), differences });
            }
        } else {
            let text = serde_json::to_string_pretty(header).unwrap_or_default() + "\n";
            write_file(&there, text.as_bytes())?;
        }
        let path = folder.join(ROWS);
        let mut rows = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(&path)
            .map_err(ExperimentError::io("open", &path))?;
        let (found, whole) = read_rows(&path)?;
        rows.set_len(whole)
            .and_then(|()| rows.seek(SeekFrom::End(0)))
            .map_err(ExperimentError::io("write", &path))?;
        let known = found.iter().map(|row| row.run.key()).collect();
        Ok(Self { folder: folder.to_owned(), rows, known, _lock: lock })
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Is the run with this key recorded?
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.known.contains(key)
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Are there no rows?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Appends a row, and waits until it is on the disk.
    ///
    /// # Errors
    /// If it cannot be written, for instance since the disk is full; then the file ends with the row before.
    pub fn append(&mut self, row: &Row) -> Result<(), ExperimentError> {
        let path = || self.folder.join(ROWS);
        let line = serde_json::to_string(row).unwrap_or_default() + "\n";
        let before = self.rows.metadata().map_err(ExperimentError::io("read", path()))?.len();
        let written = self.rows.write_all(line.as_bytes()).and_then(|()| self.rows.sync_data());
        if written.is_err() {
            // What is left of the line would be cut off by the next process too; the first error is told.
            let _ = self.rows.set_len(before);
        }
        written.map_err(ExperimentError::io("write", path()))?;
        self.known.insert(row.run.key());
        Ok(())
    }

    /// Writes all rows also as a table (`rows.csv`), without their tokens, and returns them as [`read`] does.
    ///
    /// # Errors
    /// If a file cannot be read or written.
    pub fn tabulate(&self) -> Result<Vec<Row>, ExperimentError> {
        let (_, rows) = read(&self.folder)?;
        write_file(&self.folder.join(TABLE), csv(&rows).as_bytes())?;
        Ok(rows)
    }
}

/// Reads the header and the rows of a folder, and fills in what is about two rows. A last line that was cut
/// is left out.
///
/// # Errors
/// If a file is missing, cannot be read, or is damaged.
pub fn read(folder: &Path) -> Result<(Header, Vec<Row>), ExperimentError> {
    let header = read_header(folder)?;
    let (mut rows, _) = read_rows(&folder.join(ROWS))?;
    fill_reproduced(&mut rows);
    Ok((header, rows))
}

/// Collects the curves and distributions that were measured beside the runs of shards, once each.
fn measured_beside(folders: &[PathBuf]) -> Result<(Vec<PassCurve>, Vec<Distribution>), ExperimentError> {
    let (mut curves, mut distributions): (Vec<PassCurve>, Vec<Distribution>) = Default::default();
    for folder in folders {
        // Of each model the first that was measured: machines differ, so curves do not add up.
        for curve in read_passes(folder)? {
            if !curves.iter().any(|known| known.model == curve.model) {
                curves.push(curve);
            }
        }
        // A prompt that shards have in common has the same texts in all of them.
        for one in read_distributions(folder)? {
            let is_it =
                |known: &Distribution| known.is_of(&one.model, &one.grammar, one.prompt, one.temperature);
            if !distributions.iter().any(is_it) {
                distributions.push(one);
            }
        }
    }
    Ok((curves, distributions))
}

/// Merges the records of the shards of one experiment in a folder, in the order of the plan.
///
/// # Errors
/// If the folders are of different definitions, commits or models, a run is missing or there twice, or the
/// folder has something in it.
pub fn merge(folders: &[PathBuf], out: &Path) -> Result<Vec<Row>, ExperimentError> {
    let mut whole: Option<Header> = None;
    let mut rows = std::collections::HashMap::new();
    let (curves, distributions) = measured_beside(folders)?;
    for folder in folders {
        let (header, found) = read(folder)?;
        if let Some(whole) = &mut whole {
            let differences = whole.differences_of_shards(&header);
            if !differences.is_empty() {
                return Err(ExperimentError::Differs { path: folder.clone(), differences });
            }
            whole.machines.extend(header.machines);
            whole.begun = header.begun.min(std::mem::take(&mut whole.begun));
        } else {
            whole = Some(Header { shard: None, ..header });
        }
        for row in found {
            let key = row.run.key();
            if rows.insert(key.clone(), row).is_some() {
                let message = format!("{} has a run that another folder has too: {key}", folder.display());
                return Err(ExperimentError::Merge(message));
            }
        }
    }
    let mut whole = whole.ok_or_else(|| ExperimentError::Merge("no folder was given".to_owned()))?;
    whole.machines.dedup();
    let keys = Definition::outline(&whole.definition)
        .map(|definition| Plan::new(definition, None).keys())
        .ok_or_else(|| ExperimentError::Merge(format!("{HEADER} has no definition")))?;
    let missing: Vec<&String> = keys.iter().filter(|key| !rows.contains_key(*key)).collect();
    if let Some(first) = missing.first() {
        let message = format!("{} of {} runs are missing, the first is {first}", missing.len(), keys.len());
        return Err(ExperimentError::Merge(message));
    }
    let planned: HashSet<&String> = keys.iter().collect();
    if let Some(key) = rows.keys().find(|key| !planned.contains(key)) {
        return Err(ExperimentError::Merge(format!("a run is not of the definition: {key}")));
    }
    if out.exists() && !is_free(out)? {
        return Err(ExperimentError::Merge(format!("{} is there already, and not empty", out.display())));
    }
    let mut records = Records::open(out, &whole)?;
    write_passes(out, &curves)?;
    write_distributions(out, &distributions)?;
    for row in keys.iter().filter_map(|key| rows.remove(key)) {
        records.append(&row)?;
    }
    records.tabulate()
}

/// Has a folder nothing in it but what a process leaves that was killed before it had a header?
fn is_free(folder: &Path) -> Result<bool, ExperimentError> {
    if !folder.exists() {
        return Ok(true);
    }
    let mut entries = std::fs::read_dir(folder).map_err(ExperimentError::io("read", folder))?;
    let is_left = |name: &str| name == LOCK || WholeFile::of_part(name) == Some(HEADER);
    Ok(entries.all(|entry| entry.is_ok_and(|entry| entry.file_name().to_str().is_some_and(is_left))))
}

/// Locks the folder for this process.
fn lock(folder: &Path) -> Result<File, ExperimentError> {
    let path = folder.join(LOCK);
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
    let file = file.map_err(ExperimentError::io("write", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(ExperimentError::Locked { path: folder.to_owned() }),
        Err(TryLockError::Error(source)) => Err(ExperimentError::Io { action: "lock", path, source }),
    }
}

/// Writes a file whole or not at all, and waits until it is on the disk.
///
/// # Errors
/// If it cannot be written.
pub fn write_file(path: &Path, content: &[u8]) -> Result<(), ExperimentError> {
    WholeFile::new(path).synced().write(content).map_err(ExperimentError::io("write", path))
}

/// Reads the list in a file of JSON; an empty one if there is no such file.
pub(super) fn read_list<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, ExperimentError> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = std::fs::read_to_string(path).map_err(ExperimentError::io("read", path))?;
    let damaged = |error: serde_json::Error| ExperimentError::Damaged {
        path: path.to_owned(),
        message: error.to_string(),
    };
    serde_json::from_str(&text).map_err(damaged)
}

/// Writes a list as JSON, an item a line; no file for an empty list.
pub(super) fn write_list<T: Serialize>(path: &Path, list: &[T]) -> Result<(), ExperimentError> {
    if list.is_empty() {
        return Ok(());
    }
    let items: Vec<String> =
        list.iter().map(|item| serde_json::to_string(item).unwrap_or_default()).collect();
    write_file(path, format!("[\n{}\n]\n", items.join(",\n")).as_bytes())
}

/// Reads the header of a folder.
///
/// # Errors
/// If it is missing, cannot be read, or is damaged.
pub fn read_header(folder: &Path) -> Result<Header, ExperimentError> {
    let path = folder.join(HEADER);
    let text = std::fs::read_to_string(&path).map_err(ExperimentError::io("read", &path))?;
    serde_json::from_str(&text).map_err(|error| ExperimentError::Damaged { path, message: error.to_string() })
}

/// Reads the rows of a file, and returns how many of its bytes they are: fewer than all if the last line was
/// cut.
fn read_rows(path: &Path) -> Result<(Vec<Row>, u64), ExperimentError> {
    let bytes = std::fs::read(path).map_err(ExperimentError::io("read", path))?;
    let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    let damaged = |number: usize, what: String| {
        let message = format!("line {number}: {what}");
        ExperimentError::Damaged { path: path.to_owned(), message }
    };
    let mut rows = Vec::new();
    let mut known = HashSet::new();
    for (number, line) in (1..).zip(bytes[..whole].split(|&byte| byte == b'\n')) {
        if line.is_empty() {
            continue;
        }
        let row: Row = serde_json::from_slice(line).map_err(|error| damaged(number, error.to_string()))?;
        if !known.insert(row.run.key()) {
            return Err(damaged(number, format!("a run that was there before: {}", row.run.key())));
        }
        rows.push(row);
    }
    Ok((rows, as_u64(whole)))
}

/// Formats rows as comma-separated values (RFC 4180), with a head, the number of tokens in place of the
/// tokens, and models named without folders.
fn csv(rows: &[Row]) -> String {
    let names = PlainNames::of(rows.iter().map(|row| row.run.model.as_str()));
    let value = |row: &Row| {
        let mut row = row.clone();
        row.run.model = names.get(&row.run.model).to_owned();
        serde_json::to_value(row).unwrap_or_default()
    };
    let values: Vec<serde_json::Value> = rows.iter().map(value).collect();
    // Some rows have fields that others lack: heads are in the order of the row with the most.
    let objects = || values.iter().filter_map(serde_json::Value::as_object);
    let longest = objects().max_by_key(|fields| fields.len());
    let mut heads: Vec<&String> = Vec::new();
    for name in longest.into_iter().chain(objects()).flat_map(serde_json::Map::keys) {
        if !heads.contains(&name) {
            heads.push(name);
        }
    }
    if heads.is_empty() {
        return String::new();
    }
    let mut table = heads.iter().map(|head| head.as_str()).collect::<Vec<_>>().join(",") + "\r\n";
    for value in &values {
        let cells: Vec<String> =
            heads.iter().map(|head| value.get(head.as_str()).map(cell).unwrap_or_default()).collect();
        table += &cells.join(",");
        table += "\r\n";
    }
    table
}

/// Formats a value as a cell.
fn cell(value: &serde_json::Value) -> String {
    let text = match value {
        serde_json::Value::Null => String::new(),
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Array(items) => items.len().to_string(),
        other => other.to_string(),
    };
    quoted(&text)
}

#[cfg(test)]
mod tests;
