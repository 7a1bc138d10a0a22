//! Stop strings, held against a plain search.

use proptest::prelude::*;

use super::*;

/// Returns the first end of a stop string in `text`, and its longest beginning; and what may become one.
fn plainly(strings: &[Vec<u8>], text: &[u8]) -> (Option<(usize, usize)>, usize) {
    for end in 1..=text.len() {
        let lengths = strings.iter().filter(|string| text[..end].ends_with(string)).map(Vec::len);
        if let Some(length) = lengths.max() {
            return (Some((end, length)), 0);
        }
    }
    let prefixes = strings.iter().flat_map(|string| (0..string.len()).map(|length| &string[..length]));
    (None, prefixes.filter(|prefix| text.ends_with(prefix)).map(<[u8]>::len).max().unwrap_or(0))
}

/// Searches a text byte by byte; also returns what may become a stop string after each of them.
fn found(strings: &[Vec<u8>], text: &[u8]) -> (Option<(usize, usize)>, Vec<usize>) {
    let mut search = StopStrings::new(strings.to_vec()).unwrap().search();
    let mut held = Vec::new();
    for (at, &byte) in text.iter().enumerate() {
        if let Some(length) = search.push(byte) {
            return (Some((at + 1, length)), held);
        }
        held.push(search.held());
    }
    (None, held)
}

/// A few letters in every mixture; sometimes one far above them, so that classes of bytes matter.
fn bytes(most: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(b"aaabbc\xff".to_vec()), 1..most)
}

proptest! {
    #[test]
    fn stop_strings_are_found_as_by_a_plain_search(
        strings in prop::collection::vec(bytes(7), 0..6),
        text in bytes(60),
    ) {
        let (stop, held) = found(&strings, &text);
        let (expected, _) = plainly(&strings, &text);
        prop_assert_eq!(stop, expected);
        for (at, held) in held.into_iter().enumerate() {
            prop_assert_eq!(held, plainly(&strings, &text[..=at]).1, "after byte {}", at);
        }
        let begins = expected.map(|(end, length)| end - length);
        prop_assert_eq!(StopStrings::new(strings).unwrap().find(&text), begins);
    }

    /// However the bytes are cut, the text is the one before the first stop string.
    #[test]
    fn cuts_of_tokens_do_not_matter(
        strings in prop::collection::vec(bytes(5), 0..4),
        pieces in prop::collection::vec(bytes(5), 0..12),
    ) {
        let whole = pieces.concat();
        let mut search = StopStrings::new(strings.clone()).unwrap().search();
        let mut text = Vec::new();
        let stopped = pieces.iter().any(|piece| search.append(&mut text, piece));
        let expected = plainly(&strings, &whole).0.map(|(end, length)| end - length);
        prop_assert_eq!(stopped, expected.is_some());
        prop_assert_eq!(&text[..], &whole[..expected.unwrap_or(whole.len())]);
    }
}

/// Strings within strings, at their ends, begun again and again, and the same ones twice.
#[test]
fn the_first_end_wins_and_there_the_longest() {
    for (strings, text, expected) in [
        (&["b", "abc"][..], "xabc", Some((3, 1))),
        (&["abc", "bc", "c"], "xabc", Some((4, 3))),
        (&["bc", "c"], "xabc", Some((4, 2))),
        (&["aab"], "aaaab", Some((5, 3))),
        (&["abab", "ba"], "ababab", Some((3, 2))),
        (&["ab", "ab", "ab"], "aab", Some((3, 2))),
        (&["\u{e9}"], "e\u{e8}\u{e9}", Some((5, 2))),
        (&["a"], "", None),
        (&["abc"], "ab", None),
        (&[], "abc", None),
    ] {
        let strings: Vec<Vec<u8>> = strings.iter().map(|string| string.as_bytes().to_vec()).collect();
        assert_eq!(found(&strings, text.as_bytes()).0, expected, "{strings:?} {text}");
        assert_eq!(plainly(&strings, text.as_bytes()).0, expected, "{strings:?} {text}");
    }
}

#[test]
fn long_strings_that_nearly_come_are_held_whole() {
    let string = [vec![b'a'; 3000], vec![b'b']].concat();
    let mut search = StopStrings::new([string.clone()]).unwrap().search();
    for at in 1..=5000 {
        assert_eq!(search.push(b'a'), None);
        assert_eq!(search.held(), at.min(3000));
    }
    assert_eq!(search.push(b'b'), Some(string.len()));
}

#[test]
fn empty_stop_strings_are_refused() {
    assert_eq!(StopStrings::new(["a", ""]), Err(StopStringError::Empty));
    assert!(StopStrings::new(Vec::<String>::new()).unwrap().is_empty());
    assert_eq!(StopStrings::default().search().push(0), None);
}

#[test]
fn order_and_number_do_not_matter() {
    let stops = |strings: &[&str]| StopStrings::new(strings.iter().copied()).unwrap();
    assert_eq!(stops(&["a", "b", "a"]), stops(&["b", "a"]));
    assert_ne!(stops(&["a"]), stops(&["a", "b"]));
    assert_eq!(format!("{:?}", stops(&["b", "a"])), r#"{"a", "b"}"#);
}
