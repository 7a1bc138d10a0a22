//! Joins byte strings to one that is sealed by a checksum, for pickles and files of `Compiled`.

use crate::failure::{Failure, Outcome};

/// Head of all such bytes: their kind, and the version that can read them.
const HEAD: &[u8] = concat!("domino_decoding ", env!("CARGO_PKG_VERSION"), " compiled\n").as_bytes();
/// Beginning of the head, which all versions share.
const NAME: &[u8] = b"domino_decoding ";
/// Bytes of the checksum.
const SUM: usize = 32;

/// Joins the parts.
pub(crate) fn joined(parts: &[&[u8]]) -> Vec<u8> {
    let mut all = HEAD.to_vec();
    for part in parts {
        all.extend_from_slice(&u64::try_from(part.len()).unwrap_or_default().to_le_bytes());
        all.extend_from_slice(part);
    }
    let sum = blake3::hash(&all);
    all.extend_from_slice(sum.as_bytes());
    all
}

/// Splits what [`joined`] made.
///
/// # Errors
/// If they are not as many as [`joined`] was given, or not of this version.
pub(crate) fn parts<const N: usize>(all: &[u8]) -> Outcome<[&[u8]; N]> {
    let wrong = |what: &str| Failure::Foreign(format!("not a compiled grammar of this package: {what}"));
    let Some(rest) = all.strip_prefix(HEAD) else {
        let version = all.strip_prefix(NAME).and_then(|rest| rest.split(|&byte| byte == b'\n').next());
        return Err(match version.map(String::from_utf8_lossy) {
            Some(version) => {
                let ours = env!("CARGO_PKG_VERSION");
                wrong(&format!("written by version {version:.20}, and this is {ours}; make it again"))
            }
            None => wrong("something else"),
        });
    };
    let body =
        all.len().checked_sub(SUM).filter(|&body| body >= HEAD.len()).ok_or_else(|| wrong("cut off"))?;
    if blake3::hash(&all[..body]).as_bytes()[..] != all[body..] {
        return Err(wrong("damaged or cut off: its checksum is wrong"));
    }
    let mut rest = &rest[..rest.len() - SUM];
    let mut found = [&[][..]; N];
    for part in &mut found {
        let (length, after) = rest.split_first_chunk().ok_or_else(|| wrong("too few parts"))?;
        let length =
            usize::try_from(u64::from_le_bytes(*length)).ok().filter(|&length| length <= after.len());
        (*part, rest) = after.split_at(length.ok_or_else(|| wrong("a part that is too long"))?);
    }
    if rest.is_empty() { Ok(found) } else { Err(wrong("too many parts")) }
}
