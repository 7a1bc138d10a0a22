//! The header of a folder of records: definition, program, models and machines that all rows share.

use std::{
    io::{self, Read},
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::ExperimentError;

/// The form of headers and rows that this version writes.
const FORMAT: u32 = 1;

/// The data that all rows of a folder share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The form of the files.
    pub format: u32,
    /// [`Definition::to_json`](super::Definition::to_json).
    pub definition: Value,
    /// [`Definition::hash`](super::Definition::hash).
    pub definition_hash: String,
    /// The shard of the plan, if it is not all of it.
    pub shard: Option<String>,
    /// The command that started it.
    pub command: Vec<String>,
    /// Version of the program.
    pub version: String,
    /// The commit it was built from, or the one of the folder it ran in; `None` if that is not known.
    pub commit: Option<String>,
    /// The models.
    pub models: Vec<ModelRecord>,
    /// The machines.
    pub machines: Vec<Machine>,
    /// Time of the start, in UTC.
    pub begun: String,
}

/// A model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelRecord {
    /// The model's name in the definition.
    pub name: String,
    /// BLAKE3 of its files, in hexadecimal.
    pub hash: String,
}

/// A machine, by what decides how fast it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Cores that the program may use.
    pub cores: usize,
    /// Name of the processor where the system says it, instruction set, and the extensions that products are
    /// made with.
    pub processor: String,
    /// Operating system.
    pub system: String,
}

impl Header {
    /// Creates a header in the present form.
    #[must_use]
    pub fn new(
        definition: &super::Definition,
        shard: Option<super::Shard>,
        models: Vec<ModelRecord>,
        begun: SystemTime,
    ) -> Self {
        Self {
            format: FORMAT,
            definition: definition.to_json(),
            definition_hash: definition.hash(),
            shard: shard.map(|shard| shard.to_string()),
            command: Vec::new(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: None,
            models,
            machines: vec![Machine::here()],
            begun: date_and_time(begun),
        }
    }

    /// Lists the differences between two experiments, in words; none if `other` may continue this one.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let mut found = self.differences_of_shards(other);
        let shown = |shard: &Option<String>| shard.clone().unwrap_or_else(|| "all".to_owned());
        if self.shard != other.shard {
            found.push(format!("the shard is {} there, {} here", shown(&self.shard), shown(&other.shard)));
        }
        if self.machines != other.machines {
            let (there, here) = (Machine::names(&self.machines), Machine::names(&other.machines));
            found.push(format!("the machine is {there} there, {here} here"));
        }
        found
    }

    /// Lists the differences, if both are to be parts of one experiment.
    #[must_use]
    pub fn differences_of_shards(&self, other: &Self) -> Vec<String> {
        let mut found = Vec::new();
        let mut differ = |what: &str, there: &str, here: &str| {
            if there != here {
                found.push(format!("{what} is {there} there, {here} here"));
            }
        };
        let unknown = || "unknown".to_owned();
        differ("the form of the files", &self.format.to_string(), &other.format.to_string());
        differ("the version", &self.version, &other.version);
        let commit = |header: &Self| header.commit.clone().unwrap_or_else(unknown);
        differ("the commit", &commit(self), &commit(other));
        for (there, here) in self.models.iter().zip(&other.models) {
            differ(&format!("the model {}", here.name), short(&there.hash), short(&here.hash));
        }
        differ("the number of models", &self.models.len().to_string(), &other.models.len().to_string());
        if self.definition_hash != other.definition_hash {
            found.extend(differing_keys(&self.definition, &other.definition));
        }
        found
    }
}

/// Shortens a hash to its first digits.
fn short(hash: &str) -> &str {
    hash.get(..16).unwrap_or(hash)
}

/// Lists the keys in which two definitions differ, with their values if they are short.
fn differing_keys(there: &Value, here: &Value) -> Vec<String> {
    const LONG: usize = 60;
    let (Some(there), Some(here)) = (there.as_object(), here.as_object()) else {
        return vec!["the definition differs".to_owned()];
    };
    let keys = there.keys().chain(here.keys().filter(|key| !there.contains_key(*key)));
    let mut found = Vec::new();
    for key in keys.filter(|key| there.get(*key) != here.get(*key)) {
        let show = |value: Option<&Value>| value.map_or_else(|| "missing".to_owned(), Value::to_string);
        let (was, is) = (show(there.get(key)), show(here.get(key)));
        found.push(match was.len().max(is.len()) {
            ..=LONG => format!("`{key}` is {was} there, {is} here"),
            _ => format!("`{key}` differs"),
        });
    }
    found
}

impl Machine {
    /// Describes this machine.
    #[must_use]
    pub fn here() -> Self {
        Self {
            cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            processor: processor(),
            system: std::env::consts::OS.to_owned(),
        }
    }

    fn names(machines: &[Self]) -> String {
        let name =
            |Self { cores, processor, system }: &Self| format!("{cores} cores of {processor}, {system}");
        machines.iter().map(name).collect::<Vec<_>>().join(" and ")
    }
}

/// Names the processor, as Linux does, the instruction set, and the extensions that matter here.
fn processor() -> String {
    let told = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let named = told.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let brand = named.map(|(_, name)| format!("{}, ", name.trim())).unwrap_or_default();
    brand + &instructions()
}

/// Names the instruction set, and the extensions that matter here.
fn instructions() -> String {
    #[cfg(target_arch = "x86_64")]
    {
        let mut name = "x86-64".to_owned();
        for (there, extension) in [
            (std::arch::is_x86_feature_detected!("avx2"), "AVX2"),
            (std::arch::is_x86_feature_detected!("avx512f"), "AVX-512"),
            (std::arch::is_x86_feature_detected!("avx512vnni"), "VNNI"),
            (std::arch::is_x86_feature_detected!("avx512bf16"), "BF16"),
        ] {
            if there {
                name += " ";
                name += extension;
            }
        }
        name
    }
    #[cfg(not(target_arch = "x86_64"))]
    std::env::consts::ARCH.to_owned()
}

/// Hashes the files of a model (BLAKE3, in hexadecimal): a GGUF file, or a folder's configuration, weights
/// and tokenizer. Reads all of them.
///
/// # Errors
/// If a file cannot be read.
pub fn model_hash(path: &Path) -> Result<String, ExperimentError> {
    let mut files = vec![path.to_owned()];
    if path.is_dir() {
        let read = || -> io::Result<Vec<_>> {
            std::fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.path())).collect()
        };
        files = read().map_err(ExperimentError::io("read", path))?;
        files.retain(|file| {
            let extension = file.extension().and_then(|extension| extension.to_str());
            file.is_file() && matches!(extension, Some("json" | "safetensors" | "gguf" | "model"))
        });
        files.sort();
    }
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; 1 << 20];
    for file in files {
        hasher.update(file.file_name().unwrap_or_default().as_encoded_bytes());
        let mut reader = std::fs::File::open(&file).map_err(ExperimentError::io("read", &file))?;
        loop {
            let read = reader.read(&mut buffer).map_err(ExperimentError::io("read", &file))?;
            if read == 0 {
                break;
            }
            hasher.update(&buffer[..read]);
        }
    }
    Ok(hasher.finalize().to_hex().to_string())
}

/// Formats the day of a time in UTC, as `2026-11-23`.
#[must_use]
pub fn date(time: SystemTime) -> String {
    date_and_time(time).chars().take(10).collect()
}

/// Formats a time in UTC, as `2026-11-23T00:50:07Z` (civil calendar from days, by eras of 400 years).
fn date_and_time(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (days, rest) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    /// Creates a header of a made-up experiment.
    pub(in crate::experiment) fn example() -> Header {
        Header {
            format: FORMAT,
            definition: json!({ "name": "made-up", "seeds": [1, 2] }),
            definition_hash: "aa".to_owned(),
            shard: None,
            command: vec!["domino".to_owned()],
            version: "0.1.0".to_owned(),
            commit: Some("c0ffee".to_owned()),
            models: vec![ModelRecord { name: "small".to_owned(), hash: "11".to_owned() }],
            machines: vec![Machine { cores: 2, processor: "x86-64".to_owned(), system: "linux".to_owned() }],
            begun: "2026-11-23T00:00:00Z".to_owned(),
        }
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        let at = |seconds| date_and_time(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01T00:00:00Z");
        assert_eq!(at(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(at(1_795_392_607), "2026-11-23T00:10:07Z");
        assert_eq!(at(4_107_542_400), "2100-03-01T00:00:00Z");
        assert_eq!(date(UNIX_EPOCH + Duration::from_secs(1_795_392_607)), "2026-11-23");
    }

    #[test]
    fn differences_between_headers_are_named() {
        let there = example();
        assert!(there.differences(&there).is_empty());
        let mut here = there.clone();
        here.command.push("more".to_owned());
        here.begun.clear();
        assert!(there.differences(&here).is_empty());
        here.commit = None;
        here.models[0].hash = "22".to_owned();
        here.definition = json!({ "name": "made-up", "seeds": [1], "k": [0] });
        here.definition_hash = "bb".to_owned();
        here.shard = Some("1/2".to_owned());
        here.machines[0].cores = 4;
        assert_eq!(
            there.differences(&here),
            [
                "the commit is c0ffee there, unknown here",
                "the model small is 11 there, 22 here",
                "`seeds` is [1,2] there, [1] here",
                "`k` is missing there, [0] here",
                "the shard is all there, 1/2 here",
                "the machine is 2 cores of x86-64, linux there, 4 cores of x86-64, linux here",
            ]
        );
        assert_eq!(there.differences_of_shards(&here).len(), 4);
    }

    #[test]
    fn a_models_hash_is_that_of_its_files() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("config.json", "{}");
        write("README.md", "words");
        let first = model_hash(folder.path()).unwrap();
        write("README.md", "other words");
        assert_eq!(model_hash(folder.path()).unwrap(), first);
        write("model.safetensors", "weights");
        assert_ne!(model_hash(folder.path()).unwrap(), first);
        assert!(model_hash(&folder.path().join("none")).unwrap_err().to_string().contains("none"));
    }
}
