//! Bytes of tokens -> text that may be shown: whole characters, and nothing of a stop string.

use domino::vocab::Utf8Stream;

/// The text of one answer as it grows.
#[derive(Debug)]
pub(crate) struct Shown {
    stops: Vec<Vec<u8>>,
    /// Bytes that are not shown yet: they may become a stop string.
    held: Vec<u8>,
    characters: Utf8Stream,
}

impl Shown {
    /// A text that is cut before the first of `stops`, none of which is empty.
    pub(crate) fn new(stops: &[String]) -> Self {
        let stops = stops.iter().map(|stop| stop.clone().into_bytes()).collect();
        Self { stops, held: Vec::new(), characters: Utf8Stream::default() }
    }

    /// The text that `bytes` let be shown, and whether a stop string was found, after which nothing comes.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> (String, bool) {
        self.held.extend_from_slice(bytes);
        let found = self.stops.iter().filter_map(|stop| find(&self.held, stop)).min();
        if let Some(at) = found {
            self.held.truncate(at);
            let text = self.finish();
            return (text, true);
        }
        let keep = self.stops.iter().map(|stop| overlap(&self.held, stop)).max().unwrap_or(0);
        let shown: Vec<u8> = self.held.drain(..self.held.len() - keep).collect();
        (self.characters.push(&shown), false)
    }

    /// Returns the text that was held back.
    pub(crate) fn finish(&mut self) -> String {
        let held = std::mem::take(&mut self.held);
        self.characters.push(&held) + &self.characters.finish()
    }
}

/// Returns the text before the first of `stops`, none of which is empty.
pub(crate) fn before_stop<'t>(text: &'t [u8], stops: &[String]) -> &'t [u8] {
    let found = stops.iter().filter_map(|stop| find(text, stop.as_bytes())).min();
    &text[..found.unwrap_or(text.len())]
}

/// Finds the first place of `pattern` in `text`.
fn find(text: &[u8], pattern: &[u8]) -> Option<usize> {
    text.windows(pattern.len()).position(|window| window == pattern)
}

/// Length of the longest proper prefix of `pattern` that `text` ends with.
fn overlap(text: &[u8], pattern: &[u8]) -> usize {
    let most = text.len().min(pattern.len() - 1);
    (1..=most).rev().find(|&length| text.ends_with(&pattern[..length])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// However the bytes are cut, what is shown is the lossy text before the first stop string.
        #[test]
        fn as_the_whole_text_cut(
            pieces in prop::collection::vec(
                prop::collection::vec(prop::sample::select(b"ab\xc3\xa9\xe2".to_vec()), 0..4),
                0..8,
            ),
            stops in prop::collection::vec("[ab\u{e9}]{1,3}", 0..3),
        ) {
            let whole = pieces.concat();
            // The one that ends first is found first, so that later bytes do not matter.
            let ends = stops.iter().filter_map(|stop| Some(find(&whole, stop.as_bytes())? + stop.len()));
            let mut shown = Shown::new(&stops);
            let mut text = String::new();
            let mut stopped = false;
            let mut came = Vec::new();
            for piece in &pieces {
                came.extend_from_slice(piece);
                let (more, stop) = shown.push(piece);
                text += &more;
                if stop {
                    stopped = true;
                    break;
                }
            }
            prop_assert_eq!(stopped, ends.min().is_some());
            if stopped {
                let whole = String::from_utf8_lossy(&whole).into_owned();
                prop_assert!(whole.starts_with(text.trim_end_matches('\u{fffd}')), "{} {}", whole, text);
                prop_assert!(stops.iter().all(|stop| !text.contains(stop.as_str())), "{} {:?}", text, stops);
            } else {
                text += &shown.finish();
                prop_assert_eq!(&text, &String::from_utf8_lossy(&whole).into_owned());
            }
            // The bytes that came, cut, are those of the text that was shown.
            prop_assert_eq!(&*String::from_utf8_lossy(before_stop(&came, &stops)), text.as_str());
        }
    }

    #[test]
    fn nothing_of_a_stop_string_is_shown() {
        let mut shown = Shown::new(&["END".to_owned()]);
        assert_eq!(shown.push(b"a E"), ("a ".to_owned(), false));
        assert_eq!(shown.push(b"N"), (String::new(), false));
        assert_eq!(shown.push(b"x E"), ("ENx ".to_owned(), false));
        assert_eq!(shown.push(b"ND more"), (String::new(), true));
    }
}
