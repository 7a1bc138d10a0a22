//! The fate of white space behind a complete text.

/// Says where a text ends that is complete and that nothing but white space can follow.
///
/// Many grammars allow white space at their end, so there a model would be asked whether it goes on, and some
/// models write blank lines until they are cut. By default they are not asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TrailingSpace {
    /// The text ends there. What ends it is [`Finish::OnlySpace`](crate::decode::Finish::OnlySpace).
    #[default]
    Stop,
    /// The model goes on, and ends the text when it likes, as in the DOMINO paper.
    Keep,
}

/// Reason for which a text must end where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextEnd {
    /// Nothing can follow.
    Nothing,
    /// Only white space can, and that is not wanted.
    OnlySpace,
}
