//! Text of models and grammars inside HTML: none of it becomes markup, and none of it is invisible.

use crate::terminal::describe;

/// Escapes text for the content of elements and for attributes in double quotes. Line feeds stay; other
/// control characters and marks that turn the direction of text are spelled out.
pub(super) fn text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | ' ' => out.push(character),
            '\t' => out.push_str("    "),
            _ => push(&mut out, character),
        }
    }
    out
}

/// Shows the bytes of a token, with marks in `<i>` for white space and for characters without a picture.
pub(super) fn bytes(bytes: &[u8]) -> String {
    let mut out = String::new();
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                ' ' => out.push_str("<i>\u{b7}</i>"),
                '\n' => out.push_str("<i>\u{23ce}</i>"),
                '\t' => out.push_str("<i>\u{21e5}</i>"),
                _ if describe::is_visible(character) => push(&mut out, character),
                _ => {
                    out.push_str("<i>");
                    push(&mut out, character);
                    out.push_str("</i>");
                }
            }
        }
        for byte in chunk.invalid() {
            out += &format!("<i>\\x{byte:02X}</i>");
        }
    }
    out
}

fn push(out: &mut String, character: char) {
    match character {
        '<' => out.push_str("&lt;"),
        '>' => out.push_str("&gt;"),
        '&' => out.push_str("&amp;"),
        '"' => out.push_str("&quot;"),
        '\'' => out.push_str("&#39;"),
        _ if describe::is_visible(character) => out.push(character),
        _ => out.extend(character.escape_unicode()),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn texts_are_escaped_and_invisible_characters_shown() {
        assert_eq!(
            super::text("<a href=\"x\">'&'</a>\n"),
            "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;&lt;/a&gt;\n"
        );
        assert_eq!(super::text("\0\u{202e}\tx"), "\\u{0}\\u{202e}    x");
        assert_eq!(
            super::bytes(b" <\n\xed\xa0\x80\xff"),
            "<i>\u{b7}</i>&lt;<i>\u{23ce}</i><i>\\xED</i><i>\\xA0</i><i>\\x80</i><i>\\xFF</i>"
        );
        assert_eq!(super::bytes("\u{301}e\u{7}".as_bytes()), "<i>\\u{301}</i>e<i>\\u{7}</i>");
    }
}
