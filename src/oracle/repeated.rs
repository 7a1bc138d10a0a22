//! Finds objects of a text with a key twice. Reads the whole text on each call.

/// Are two complete keys of an object equal? `text` is the beginning of a JSON text.
pub(super) fn has_key_twice(text: &[u8]) -> bool {
    // Of each open container the keys; `None` for arrays.
    let mut open: Vec<Option<Vec<String>>> = Vec::new();
    let mut at = 0;
    let mut awaits_key = false;
    while let Some(&byte) = text.get(at) {
        at += 1;
        match byte {
            b'{' => open.push(Some(Vec::new())),
            b'[' => open.push(None),
            b'}' | b']' => drop(open.pop()),
            b'"' => {
                let mut end = at;
                while text.get(end).is_some_and(|&byte| byte != b'"') {
                    end += if text[end] == b'\\' { 2 } else { 1 };
                }
                let Some(string) = text.get(at - 1..=end) else { return false };
                if awaits_key && let Some(Some(keys)) = open.last_mut() {
                    let Ok(key) = serde_json::from_slice::<String>(string) else { return false };
                    if keys.contains(&key) {
                        return true;
                    }
                    keys.push(key);
                }
                at = end + 1;
            }
            _ => {}
        }
        if !byte.is_ascii_whitespace() {
            awaits_key = matches!(byte, b'{' | b',');
        }
    }
    false
}
