//! Bytes of tokens -> text that may be shown: whole characters, and nothing of a stop string.

use domino::{
    decode::{StopSearch, StopStrings},
    vocab::Utf8Stream,
};

/// The text of one answer as it grows.
#[derive(Debug)]
pub(crate) struct Shown {
    stops: StopSearch,
    /// Bytes that are not shown yet: they may become a stop string.
    held: Vec<u8>,
    characters: Utf8Stream,
}

impl Shown {
    /// A text that is cut before the first of `stops`.
    pub(crate) fn new(stops: &StopStrings) -> Self {
        Self { stops: stops.search(), held: Vec::new(), characters: Utf8Stream::default() }
    }

    /// The text that `bytes` let be shown, and whether a stop string was found, after which nothing comes.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> (String, bool) {
        if self.stops.append(&mut self.held, bytes) {
            return (self.finish(), true);
        }
        let keep = self.stops.held();
        let shown: Vec<u8> = self.held.drain(..self.held.len() - keep).collect();
        (self.characters.push(&shown), false)
    }

    /// Returns the text that was held back.
    pub(crate) fn finish(&mut self) -> String {
        let held = std::mem::take(&mut self.held);
        self.characters.push(&held) + &self.characters.finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stop_strings(stops: &[String]) -> StopStrings {
        StopStrings::new(stops.iter().map(String::as_str)).unwrap()
    }

    /// Returns the bytes before the stop string that ends first, of several the longest; by looking at all.
    fn before_stop<'t>(text: &'t [u8], stops: &[String]) -> Option<&'t [u8]> {
        (1..=text.len()).find_map(|end| {
            let ending = stops.iter().filter(|stop| text[..end].ends_with(stop.as_bytes()));
            Some(&text[..end - ending.map(String::len).max()?])
        })
    }

    proptest! {
        /// However the bytes are cut, what is shown is the lossy text before the first stop string.
        #[test]
        fn shown_text_is_the_lossy_text_before_the_first_stop_string(
            pieces in prop::collection::vec(
                prop::collection::vec(prop::sample::select(b"ab\xc3\xa9\xe2".to_vec()), 0..4),
                0..8,
            ),
            stops in prop::collection::vec("[ab\u{e9}]{1,3}", 0..3),
        ) {
            let whole = pieces.concat();
            let expected = before_stop(&whole, &stops);
            let mut shown = Shown::new(&stop_strings(&stops));
            let mut text = String::new();
            let mut stopped = false;
            for piece in &pieces {
                let (more, stop) = shown.push(piece);
                text += &more;
                if stop {
                    stopped = true;
                    break;
                }
            }
            prop_assert_eq!(stopped, expected.is_some());
            if !stopped {
                text += &shown.finish();
            }
            prop_assert_eq!(&*String::from_utf8_lossy(expected.unwrap_or(&whole)), text.as_str());
        }
    }

    #[test]
    fn no_part_of_a_stop_string_is_shown() {
        let mut shown = Shown::new(&StopStrings::new(["END"]).unwrap());
        assert_eq!(shown.push(b"a E"), ("a ".to_owned(), false));
        assert_eq!(shown.push(b"N"), (String::new(), false));
        assert_eq!(shown.push(b"x E"), ("ENx ".to_owned(), false));
        assert_eq!(shown.push(b"ND more"), (String::new(), true));
    }
}
