//! Settings for a server's operators: flags about who may call, what a server may take, and what it says of
//! itself, and a file that may hold any flag of `domino serve` ([`file`]).

mod file;

use std::{net::IpAddr, num::NonZeroUsize, path::PathBuf};

use clap::Args;

pub(crate) use self::file::merge;
use super::args::mib;
use crate::terminal::{failure::BadInput, log::LogFormat};

/// Converts clap's error about the flags of a file to the program's own form.
pub(crate) fn of_file(error: &clap::Error) -> BadInput {
    let text = error.render().to_string();
    let first = text.split("\n\n").next().unwrap_or_default().trim_start_matches("error: ").trim();
    BadInput::new(format!("the file of --config: {first}"))
        .hint("a key is the name of a flag of `domino serve` and takes what that takes; see its --help")
}

/// Flags about who may call, and what the server may take and say.
#[derive(Debug, Args)]
pub(crate) struct RunningFlags {
    /// Take the flags in this file: TOML, with a flag's name and its value on a line, `port = 8081`.
    ///
    /// Flags of the command line and variables of the environment win. A flag that takes no value is true or
    /// false, one that can be given several times has a list. Paths are as on the command line.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Ask for this key: clients send it as `Authorization: Bearer KEY`. /health and /ready need none.
    #[arg(long, value_name = "KEY", env = "DOMINO_API_KEY", hide_env_values = true)]
    pub(crate) api_key: Option<String>,
    /// Ask for one of the keys in this file, which has a name and a key on each line; # begins a comment.
    ///
    /// The file is read again when it changes, within a second. Names are in the log; what is counted and
    /// shared between clients is by key.
    #[arg(long, value_name = "FILE")]
    pub(crate) api_keys: Option<PathBuf>,
    /// Serve everybody who reaches the server, where --host is not of loopback and no key is asked for.
    #[arg(long)]
    allow_anonymous: bool,
    /// Connections at once. Past that the one that has asked for nothing for longest is closed.
    #[arg(long, value_name = "N", default_value = "512")]
    pub(crate) max_connections: NonZeroUsize,
    /// Memory of all bodies that are being read, in MiB, of which one client gets a half.
    #[arg(long, value_name = "MIB", default_value = "64", value_parser = mib)]
    pub(crate) body_memory: usize,
    /// Threads that compile grammars and read long prompts, at least 2; one client never has all of them.
    /// Default: as many as there are cores.
    #[arg(long, value_name = "N")]
    workers: Option<NonZeroUsize>,
    /// Write a line to standard error for each request when its answer has ended: text, json or off. With
    /// json warnings are JSON too.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = LogFormat::Off)]
    log: LogFormat,
}

impl RunningFlags {
    /// The format of the log of requests.
    pub(crate) fn log(&self) -> LogFormat {
        self.log
    }

    /// Is anybody asked for a key?
    pub(crate) fn is_keyed(&self) -> bool {
        self.api_key.is_some() || self.api_keys.is_some()
    }

    /// The number of threads that compile grammars and read long prompts.
    pub(crate) fn workers(&self) -> usize {
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        self.workers.map_or(cores, NonZeroUsize::get)
    }

    /// Checks the flags of a server at `host` that takes bodies of up to `most_body` bytes.
    pub(crate) fn check(&self, host: IpAddr, most_body: usize) -> Result<(), BadInput> {
        if !host.to_canonical().is_loopback() && !self.is_keyed() && !self.allow_anonymous {
            let message = format!("on {host} everybody who reaches the server could use it");
            return Err(BadInput::new(message).hint(
                "ask for a key by --api-key or --api-keys, or say --allow-anonymous if others keep them out",
            ));
        }
        if self.body_memory < most_body {
            return Err(BadInput::new("--body-memory is less than one body of --max-body")
                .hint("raise --body-memory, or lower --max-body"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        running: RunningFlags,
    }

    fn resolved(flags: &[&str], host: &str) -> Result<(), BadInput> {
        let line = Line::parse_from([&["serve"], flags].concat());
        line.running.check(host.parse().unwrap(), 4 << 20)
    }

    #[test]
    fn a_server_of_the_network_asks_for_a_key_or_says_that_it_does_not() {
        for host in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"] {
            assert!(resolved(&[], host).is_ok(), "{host}");
        }
        for host in ["0.0.0.0", "::", "192.168.1.5", "::ffff:10.0.0.1", "2001:db8::1"] {
            assert!(resolved(&[], host).is_err(), "{host}");
            for flags in [&["--allow-anonymous"][..], &["--api-key", "a"], &["--api-keys", "file"]] {
                assert!(resolved(flags, host).is_ok(), "{host} {flags:?}");
            }
        }
    }

    #[test]
    fn body_memory_must_hold_the_largest_body() {
        assert!(resolved(&["--body-memory", "4"], "::1").is_ok());
        assert!(resolved(&["--body-memory", "3"], "::1").is_err());
    }
}
