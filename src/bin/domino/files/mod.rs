//! Files as people save them: in UTF-8, with or without a byte order mark. Beside that the places that texts
//! come from and go to.

pub(crate) mod input;
pub(crate) mod lines;
pub(crate) mod output;

use std::path::Path;

use crate::terminal::failure::BadInput;

/// Reads the bytes of a file.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, BadInput> {
    std::fs::read(path).map_err(|error| BadInput::new(format!("cannot read {}: {error}", path.display())))
}

/// Reads the text of a file.
pub(crate) fn read_text(path: &Path) -> Result<String, BadInput> {
    text(read(path)?, &path.display().to_string())
}

/// Reads bytes called `name` as UTF-8, and drops a byte order mark.
pub(crate) fn text(bytes: Vec<u8>, name: &str) -> Result<String, BadInput> {
    let is_utf_16 = bytes.starts_with(b"\xFF\xFE") || bytes.starts_with(b"\xFE\xFF");
    let mut text = String::from_utf8(bytes).map_err(|error| {
        let error = BadInput::new(format!("{name}: the text is not UTF-8: {error}"));
        if is_utf_16 {
            error.hint("it is UTF-16, as shells of Windows write it: save it as UTF-8")
        } else {
            error
        }
    })?;
    if text.starts_with('\u{FEFF}') {
        text.drain(..'\u{FEFF}'.len_utf8());
    }
    Ok(text)
}
