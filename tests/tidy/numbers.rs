//! No number is silently made another one: ids and indices are converted by `ids.rs` alone, or fail with an
//! error.
//!
//! * `saturation`: `unwrap_or` or `unwrap_or_else` with `u32::MAX` or a constant `NONE` in its argument,
//!   whatever is unwrapped; and with any other `MAX` or `!0` if what is unwrapped is a conversion
//!   (`try_from(..)`, `try_into()`), also behind `ok()`, `map(..)` and the like. So too `map_or` and
//!   `map_or_else` of a conversion, by their first argument. An option of `u64::MAX` where nothing is
//!   bounded is no conversion, and may be.
//! * `as`: a cast of what is an id, which a machine knows by its place: behind `.raw()` or `.index()`,
//!   inside of an index (`rows[state as usize]`), and inside of what makes an id (`StateId(..)`, its `new`
//!   and `from_index`). A cast that gets a name first is not seen.
//!
//! Both are about `src`, its tests included, but for `ids.rs`.

use std::collections::BTreeSet;

use super::{
    exceptions::{Found, counted},
    lexer::{closing, is_word, words},
    source::Source,
};

/// The one place that turns numbers into ids.
const IDS: &str = "src/engine/ids.rs";

/// Files that break either rule.
pub(super) fn conversions(sources: &[Source]) -> Vec<Found> {
    let product = sources.iter().filter(|source| source.path.starts_with("src/") && source.path != IDS);
    product
        .flat_map(|source| {
            [
                counted("saturation", source, saturations(&source.lexed.code)),
                counted("as", source, casts(&source.lexed.code)),
            ]
        })
        .flatten()
        .collect()
}

/// The places of methods that make what does not fit a number of their own.
fn saturations(code: &str) -> Vec<usize> {
    let mut found = Vec::new();
    for (method, maps) in
        [("unwrap_or", false), ("unwrap_or_else", false), ("map_or", true), ("map_or_else", true)]
    {
        for at in words(code, method).filter(|at| code[..*at].ends_with('.')) {
            let open = at + method.len();
            if !code[open..].starts_with('(') {
                continue;
            }
            let inside = &code[open + 1..closing(code, open)];
            // The second of two arguments is for numbers that fit.
            let argument = if maps { inside.split(',').next().unwrap_or_default() } else { inside };
            let argument: String = argument.chars().filter(|c| !c.is_whitespace()).collect();
            let none = words(&argument, "NONE").next().is_some();
            let limit = none || words(&argument, "MAX").next().is_some() || argument.contains("!0");
            let always = !maps && (none || argument.contains("u32::MAX"));
            if always || (limit && is_conversion(&code[..at - 1])) {
                found.push(at);
            }
        }
    }
    found.sort_unstable();
    found
}

/// True if code ends with a call of `try_from` or `try_into`, or of methods that hand on what that gives.
fn is_conversion(code: &str) -> bool {
    let mut code = code.trim_end();
    while code.ends_with(')') {
        let name = code[..opening(code)].trim_end();
        if name.ends_with("try_from") || name.ends_with("try_into") {
            return true;
        }
        let Some(before) =
            [".ok", ".map", ".map_err", ".and_then"].into_iter().find_map(|m| name.strip_suffix(m))
        else {
            return false;
        };
        code = before.trim_end();
    }
    false
}

/// The place of the bracket that closes at the end of `code`.
fn opening(code: &str) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in code.bytes().enumerate().rev() {
        match byte {
            b')' | b']' | b'}' => depth += 1,
            b'(' | b'[' | b'{' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    0
}

/// The places of `as` that cast ids.
fn casts(code: &str) -> Vec<usize> {
    let bytes = code.as_bytes();
    let mut inside = Vec::new();
    for (at, byte) in code.bytes().enumerate().skip(1) {
        let before = bytes[at - 1];
        let index = byte == b'[' && (is_word(before) || matches!(before, b')' | b']' | b'?'));
        let id =
            byte == b'(' && ["Id", "Id::new", "Id::from_index"].iter().any(|id| code[..at].ends_with(id));
        if (index && !code[..at].ends_with("mut") && !code[..at].ends_with("return")) || id {
            inside.push(at..closing(code, at));
        }
    }
    let found: BTreeSet<usize> = words(code, "as")
        .filter(|at| {
            let before = code[..*at].trim_end();
            before.ends_with(".raw()")
                || before.ends_with(".index()")
                || inside.iter().any(|range| range.contains(at))
        })
        .collect();
    found.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saturations_are_found() {
        for wrong in [
            "u32::try_from(a).unwrap_or(u32::MAX)",
            "u32::try_from(a.len())\n    .unwrap_or(u32::MAX)",
            "a.unwrap_or(u32::MAX)",
            "a.unwrap_or_else(|_| u32::MAX)",
            "a.unwrap_or( std::u32::MAX - 1 )",
            "u32::try_from(a).unwrap_or(NONE)",
            "a.unwrap_or(Self::NONE)",
            "usize::try_from(a).unwrap_or(usize::MAX)",
            "u8::try_from(a(b)).ok().unwrap_or(u8::MAX)",
            "a.try_into().unwrap_or(u64::MAX / 2)",
            "u32::try_from(a)\n    .ok()\n    .map(|a| a + 1)\n    .unwrap_or(u64::MAX)",
            "u16::try_from(a).unwrap_or(!0)",
            "u32::try_from(a).map_or(NONE, |a| a + 1)",
            "u8::try_from(a).map_or_else(|_| u8::MAX, |a| a)",
        ] {
            assert_eq!(saturations(wrong).len(), 1, "{wrong}");
        }
        for right in [
            "a.unwrap_or(u64::MAX)",
            "u32::try_from(a).unwrap_or(0)",
            "u32::try_from(a).map_err(|_| b)?",
            "a.unwrap_or(NONE_SUCH)",
            "a.unwrap_or_default(u32::MAX)",
            "a.map(u32::try_from).unwrap_or(u64::MAX)",
            "a.map_or(u32::MAX, |a| a.cost)",
            "u32::try_from(a).map_or(0, |a| a.min(u32::MAX))",
            "u32::try_from(a).map_err(b)?.checked_add(c).unwrap_or(u64::MAX)",
            "my_unwrap_or(u32::MAX)",
        ] {
            assert!(saturations(right).is_empty(), "{right}");
        }
    }

    #[test]
    fn casts_of_ids_are_found() {
        for wrong in [
            "a.raw() as usize",
            "self.state.index() as u32",
            "rows[state as usize]",
            "rows()[1 + state as usize]",
            "rows[0][(state as usize)..]",
            "StateId::new(a as u32)",
            "Some(PartId((a + 1) as u32))",
            "crate::ids::TokenId::from_index(a as usize)",
        ] {
            assert_eq!(casts(wrong).len(), 1, "{wrong}");
        }
        for right in [
            "length as usize",
            "rows[state.index()]",
            "[a as usize, b as usize]",
            "vec![a as usize]",
            "#[cfg(a)] let b = c as f32;",
            "use rows as other; let a: &mut [u8] = b;",
            "StateId::new(a)",
        ] {
            assert!(casts(right).is_empty(), "{right}");
        }
    }
}
