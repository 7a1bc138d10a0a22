//! Rows of logits on the CPU, as the engine hands them over.

use mistralrs_candle::{DType, Device, Tensor};

use domino::{
    decode::DrawError,
    ids::TokenId,
    vocab::{TokenSet, Vocabulary},
};

/// Copies the numbers of a row.
pub(super) fn read(logits: &Tensor) -> mistralrs_candle::Result<Vec<f32>> {
    logits.to_dtype(DType::F32)?.flatten_all()?.to_vec1()
}

/// Makes a row of the numbers.
pub(super) fn write(row: Vec<f32>) -> mistralrs_candle::Result<Tensor> {
    let size = row.len();
    Tensor::from_vec(row, size, &Device::Cpu)
}

/// Sets the logits of all tokens that are not allowed to minus infinity.
///
/// # Errors
/// If no token is left that the engine could draw.
pub(super) fn mask(row: &mut [f32], allowed: &TokenSet) -> Result<(), DrawError> {
    if allowed.is_empty() {
        return Err(DrawError::NoneAllowed);
    }
    let mut possible = false;
    let words = allowed.words();
    let words = words.iter().copied().chain(std::iter::repeat(0));
    for (logits, word) in row.chunks_mut(64).zip(words) {
        for (bit, logit) in logits.iter_mut().enumerate() {
            if word >> bit & 1 == 0 {
                *logit = f32::NEG_INFINITY;
            } else {
                possible |= *logit > f32::NEG_INFINITY;
            }
        }
    }
    if possible { Ok(()) } else { Err(DrawError::Impossible) }
}

/// Makes a row from which only `token` can be drawn, however it is sampled, in place of one of `size`
/// numbers. It ends with the token, since the engine's work takes as long as the row.
pub(super) fn only(token: TokenId, size: usize) -> mistralrs_candle::Result<Tensor> {
    if token.index() >= size {
        mistralrs_candle::bail!("token {token} is not among the model's {size}");
    }
    let mut row = vec![f32::NEG_INFINITY; token.index() + 1];
    if let Some(logit) = row.last_mut() {
        *logit = 1.0;
    }
    write(row)
}

/// The set of all tokens of a row of `size` numbers.
pub(super) fn all(size: usize) -> TokenSet {
    let mut all = TokenSet::empty(size);
    (0..size).filter_map(TokenId::from_index).for_each(|token| all.insert(token));
    all
}

/// Makes a row from which only the end of the text can be drawn.
pub(super) fn end(vocabulary: &Vocabulary, size: usize) -> mistralrs_candle::Result<Tensor> {
    match vocabulary.end_of_text().first() {
        Some(&token) => only(token, size),
        None => mistralrs_candle::bail!("no token ends a text"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(size: usize, tokens: &[u32]) -> TokenSet {
        let mut set = TokenSet::empty(size);
        tokens.iter().for_each(|&token| set.insert(TokenId::new(token)));
        set
    }

    #[test]
    fn only_allowed_tokens_stay() {
        let mut row: Vec<f32> = (0_u8..130).map(f32::from).collect();
        mask(&mut row, &set(100, &[0, 63, 64, 99])).unwrap();
        let left: Vec<usize> = (0..130).filter(|&token| row[token] > f32::NEG_INFINITY).collect();
        assert_eq!(left, [0, 63, 64, 99]);
        assert_eq!(row[64], 64.0);
    }

    #[test]
    fn a_row_without_a_token_to_draw_is_refused() {
        assert_eq!(mask(&mut [1.0, 2.0], &set(2, &[])), Err(DrawError::NoneAllowed));
        assert_eq!(mask(&mut [1.0, f32::NEG_INFINITY], &set(2, &[1])), Err(DrawError::Impossible));
        // Only tokens are allowed that the model has no logits for.
        assert_eq!(mask(&mut [1.0, 2.0], &set(9, &[8])), Err(DrawError::Impossible));
    }
}
