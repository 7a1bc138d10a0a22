//! Rows of logits on the device that computed them.

use candle_core::{DType, Device, Result, Tensor};

use crate::{
    ids::TokenId,
    model::{KeptRows, Logits, RowAnswer, RowChoice, candle::card::CardChooser, error::ModelError},
    vocab::TokenSet,
};

/// The allowed logits alone come back if at most one token in 16 is allowed; otherwise the whole row does.
const FEW: usize = 16;

/// Rows of logits where [`TensorModel::launch`](super::TensorModel::launch) left them.
#[derive(Debug)]
pub struct DeviceRows {
    /// `[rows, vocabulary]`, in 32 bits.
    logits: Tensor,
    /// Chooser of tokens by kernels of the card, if there is one.
    chooser: Option<CardChooser>,
}

impl DeviceRows {
    /// The rows of `parts`, one below the other.
    pub(super) fn new(parts: &[Tensor], chooser: Option<CardChooser>) -> Result<Self> {
        let logits = match parts {
            [one] => one.clone(),
            parts => Tensor::cat(parts, 0)?,
        };
        Ok(Self { logits, chooser })
    }

    /// Copies of rows as if a card had left them, for tests of choices: kernels choose from them, thread by
    /// thread on the host. As for [`Placement::emulated`](super::Placement::emulated).
    ///
    /// # Errors
    /// If the tensor library fails.
    #[cfg(feature = "card-host")]
    pub fn emulated(rows: &Logits, backwards: bool) -> std::result::Result<Self, ModelError> {
        let numbers: Vec<f32> = (0..rows.rows()).filter_map(|row| rows.row(row)).flatten().copied().collect();
        let logits = Tensor::from_vec(numbers, (rows.rows(), rows.width()), &Device::Cpu)?;
        let chooser = CardChooser::emulated(rows.width(), backwards)?;
        Ok(Self { logits, chooser: Some(chooser) })
    }

    /// All rows, once they are done.
    ///
    /// # Errors
    /// If the pass or the copy fails.
    pub fn fetch(&self) -> std::result::Result<Logits, ModelError> {
        let (_rows, width) = self.logits.dims2()?;
        Ok(Logits::new(self.logits.flatten_all()?.to_vec1()?, width))
    }

    /// The logits of the allowed tokens of a row, lowest id first, and whether all logits up to the set's
    /// size are numbers below infinity.
    fn gather(&self, index: usize, allowed: &TokenSet) -> Result<(Vec<f32>, bool)> {
        let device = self.logits.device();
        let width = self.logits.dim(1)?.min(allowed.size());
        let row = self.logits.narrow(0, index, 1)?.narrow(1, 0, width)?;
        let ids: Vec<u32> = allowed.iter().map(TokenId::raw).collect();
        let ids = Tensor::new(ids, device)?;
        let found = row.contiguous()?.index_select(&ids, 1)?;
        let mut found: Vec<f32> = Tensor::cat(&[found, is_fine(&row)?], 1)?.flatten_all()?.to_vec1()?;
        let fine = found.pop().is_some_and(|fine| fine > 0.0);
        Ok((found, fine))
    }

    /// Largest logit of the allowed tokens, lowest id that has it, and whether all logits are below infinity.
    fn search(&self, index: usize, allowed: &TokenSet) -> Result<[f32; 3]> {
        let device = self.logits.device();
        let width = self.logits.dim(1)?.min(allowed.size());
        let row = self.logits.narrow(0, index, 1)?.narrow(1, 0, width)?;
        let everywhere = |value: f32| Tensor::new(value, device)?.broadcast_as((1, width));
        let masked = expand(allowed, width, device)?.where_cond(&row, &everywhere(f32::NEG_INFINITY)?)?;
        let largest = masked.max_keepdim(1)?;
        // Which of equals a device's own search finds is not said. Ids are below 2^24, and so exact.
        let ids = Tensor::arange(0_u32, u32::try_from(width)?, device)?.to_dtype(DType::F32)?;
        let ids = ids.reshape((1, width))?;
        let found = masked.broadcast_eq(&largest)?.where_cond(&ids, &everywhere(f32::INFINITY)?)?;
        let found = Tensor::cat(&[largest, found.min_keepdim(1)?, is_fine(&row)?], 1)?;
        match *found.flatten_all()?.to_vec1()? {
            [largest, id, fine] => Ok([largest, id, fine]),
            _ => candle_core::bail!("three numbers are expected"),
        }
    }
}

impl KeptRows for DeviceRows {
    type Error = ModelError;

    fn rows(&self) -> usize {
        self.logits.dims().first().copied().unwrap_or_default()
    }

    fn likeliest(
        &self,
        index: usize,
        allowed: &TokenSet,
    ) -> std::result::Result<Option<TokenId>, ModelError> {
        if allowed.size() == 0 {
            return Ok(None);
        }
        if let Some(answers) = self.choose(index, &[RowChoice { allowed, draw: None, near: None }])? {
            return Ok(answers.first().and_then(|answer| answer.token));
        }
        let [largest, id, fine] = self.search(index, allowed)?;
        if fine == 0.0 || largest.is_nan() || largest == f32::NEG_INFINITY || !id.is_finite() {
            return Ok(None);
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a column's number")]
        Ok(Some(TokenId::new(id as u32)))
    }

    fn choose(
        &self,
        first: usize,
        choices: &[RowChoice<'_>],
    ) -> std::result::Result<Option<Vec<RowAnswer>>, ModelError> {
        let Some(chooser) = &self.chooser else { return Ok(None) };
        Ok(Some(chooser.choose(&self.logits, first, choices)?))
    }

    fn row(&self, index: usize) -> std::result::Result<Vec<f32>, ModelError> {
        Ok(self.logits.get(index)?.to_vec1()?)
    }

    fn among(&self, index: usize, allowed: &TokenSet) -> std::result::Result<Vec<f32>, ModelError> {
        let count = allowed.len();
        let width = self.logits.dim(1)?;
        let is_within = allowed.iter().last().is_some_and(|last| last.index() < width);
        if is_within && count <= width / FEW {
            let (found, fine) = self.gather(index, allowed)?;
            if fine {
                let mut row = vec![f32::NEG_INFINITY; width];
                allowed.iter().zip(found).for_each(|(token, logit)| row[token.index()] = logit);
                return Ok(row);
            }
        }
        self.row(index)
    }

    fn wait(&self) -> std::result::Result<(), ModelError> {
        Ok(self.logits.device().synchronize()?)
    }
}

/// One if all logits of a row are numbers below infinity, otherwise zero: `[1, 1]`.
fn is_fine(row: &Tensor) -> Result<Tensor> {
    row.lt(f32::INFINITY)?.to_dtype(DType::F32)?.min_keepdim(1)
}

/// Expands a set of tokens to `[1, width]` bytes that are zero or one. A bit for each token goes to the
/// device; Candle has no operations on bits, so they are taken out by halving and rounding down, which is
/// exact.
fn expand(allowed: &TokenSet, width: usize, device: &Device) -> Result<Tensor> {
    let words = allowed.words();
    let bytes = words.iter().flat_map(|word| word.to_le_bytes());
    let bytes: Vec<u8> = bytes.take(width.div_ceil(8)).collect();
    let count = bytes.len();
    let bytes = Tensor::from_vec(bytes, (count, 1), device)?.to_dtype(DType::F32)?;
    let shares: [f32; 8] = [1.0, 0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015_625, 0.007_812_5];
    let shifted = bytes.broadcast_mul(&Tensor::new(&[shares], device)?)?.floor()?;
    let above = ((&shifted * 0.5)?.floor()? * 2.0)?;
    let bits = (shifted - above)?.reshape((1, 8 * count))?.narrow(1, 0, width)?;
    bits.to_dtype(DType::U8)?.contiguous()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(size: usize, tokens: &[u32]) -> TokenSet {
        let mut set = TokenSet::empty(size);
        tokens.iter().for_each(|&token| set.insert(TokenId::new(token)));
        set
    }

    fn rows(rows: &[&[f32]]) -> DeviceRows {
        let width = rows[0].len();
        let logits = Tensor::from_vec(rows.concat(), (rows.len(), width), &Device::Cpu).unwrap();
        DeviceRows { logits, chooser: None }
    }

    #[test]
    fn a_mask_is_its_bits() {
        for width in [1, 7, 8, 9, 64, 65, 130] {
            let tokens: Vec<u32> = (0..200).filter(|token| token % 3 == 0 || token % 7 == 1).collect();
            let allowed = set(200, &tokens);
            let got = expand(&allowed, width, &Device::Cpu).unwrap().to_vec2::<u8>().unwrap();
            let expected: Vec<u8> =
                (0..width as u32).map(|token| u8::from(allowed.contains(TokenId::new(token)))).collect();
            assert_eq!(got, [expected], "{width}");
        }
    }

    #[test]
    fn the_likeliest_allowed_token_is_the_lowest_of_equals() {
        let rows = rows(&[&[1.0, 5.0, 5.0, 9.0], &[-1.0, -2.0, f32::NEG_INFINITY, 3.0]]);
        let pick = |row, tokens: &[u32]| rows.likeliest(row, &set(4, tokens)).unwrap().map(TokenId::raw);
        assert_eq!(pick(0, &[0, 1, 2, 3]), Some(3));
        assert_eq!(pick(0, &[0, 2, 1]), Some(1));
        assert_eq!(pick(0, &[2]), Some(2));
        assert_eq!(pick(1, &[0, 1, 2]), Some(0));
        assert_eq!(pick(1, &[2]), None);
        assert_eq!(pick(1, &[]), None);
        // Columns past the set are padding.
        assert_eq!(rows.likeliest(0, &set(3, &[0, 1])).unwrap(), Some(TokenId::new(1)));
        assert_eq!(rows.row(1).unwrap()[..2], [-1.0, -2.0]);
        assert_eq!(rows.fetch().unwrap().row(0), Some(&[1.0, 5.0, 5.0, 9.0][..]));
    }

    #[test]
    fn logits_of_few_tokens_are_those_of_the_row() {
        let row: Vec<f32> = (0..200_u8).map(|token| f32::from(token.wrapping_mul(37)) - 100.0).collect();
        let rows = rows(&[&vec![0.0; 200], &row]);
        // Few, many, none, in a set that is shorter than the row, and one that is longer.
        for (size, tokens) in
            [(200, &[0, 7, 199][..]), (200, &[]), (64, &[63]), (300, &[5, 250]), (300, &[5])]
        {
            let set = set(size, tokens);
            let got = rows.among(1, &set).unwrap();
            assert_eq!(got.len(), row.len());
            for (token, (got, expected)) in (0..).zip(got.iter().zip(&row)) {
                let counts = set.contains(TokenId::new(token));
                assert!(got == expected || !counts && *got == f32::NEG_INFINITY, "{token} of {tokens:?}");
            }
        }
        let few = rows.among(1, &set(200, &[3])).unwrap();
        assert_eq!(few.iter().filter(|logit| **logit > f32::NEG_INFINITY).count(), 1);
        let many: Vec<u32> = (0..200).step_by(2).collect();
        assert_eq!(rows.among(1, &set(200, &many)).unwrap(), row);
        for wrong in [f32::NAN, f32::INFINITY] {
            let mut row = row.clone();
            row[100] = wrong;
            let rows = self::rows(&[&row]);
            let got = rows.among(0, &set(200, &[3])).unwrap();
            assert_eq!(got[100].to_bits(), wrong.to_bits());
            // Past the set it is padding.
            assert_eq!(rows.among(0, &set(64, &[3])).unwrap()[4], f32::NEG_INFINITY);
        }
    }

    #[test]
    fn rows_that_cannot_be_drawn_from_name_no_token() {
        for wrong in [f32::NAN, f32::INFINITY] {
            let rows = rows(&[&[1.0, wrong, 2.0]]);
            assert_eq!(rows.likeliest(0, &set(3, &[0, 2])).unwrap(), None);
        }
    }
}
