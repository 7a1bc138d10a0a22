//! Rows of ggml's blocks as the kernels take them (`kernels/blocks.cu`): all loads of quants are aligned, so
//! factors of 16 bits lie behind the quants of their row.

use crate::model::formats::Format;

/// The format in which the kernels multiply with blocks of `format`, without a change of any weight; `None`
/// if there is none. Blocks without offsets of 4 or 5 bits become those of 8.
pub(in crate::model::candle) fn kernel_format(format: Format) -> Option<Format> {
    match format {
        Format::Q4K | Format::Q5K | Format::Q6K => Some(format),
        Format::Q4_0 | Format::Q5_0 | Format::Q8_0 => Some(Format::Q8_0),
        _ => None,
    }
}

/// Bytes of a row of `inputs` weights in a format of the kernels.
pub(in crate::model::candle) fn row_bytes(format: Format, inputs: usize) -> usize {
    (inputs / format.block() * format.block_bytes()).next_multiple_of(16)
}

/// Appends stored rows of `inputs` weights of a `format` that has one of the kernels.
pub(in crate::model::candle) fn append_rows(format: Format, inputs: usize, stored: &[u8], to: &mut Vec<u8>) {
    let size = format.block_bytes();
    for row in stored.chunks_exact((inputs / format.block() * size).max(1)) {
        match format {
            Format::Q4K | Format::Q5K => to.extend_from_slice(row),
            Format::Q6K => {
                row.chunks_exact(size).for_each(|block| to.extend_from_slice(&block[..208]));
                row.chunks_exact(size).for_each(|block| to.extend_from_slice(&block[208..]));
            }
            _ => {
                row.chunks_exact(size).for_each(|block| to.extend(quants(format, block)));
                row.chunks_exact(size).for_each(|block| to.extend_from_slice(&block[..2]));
            }
        }
        to.resize(to.len().next_multiple_of(16), 0);
    }
}

/// The 32 quants of a block without offsets, as signed bytes.
fn quants(format: Format, block: &[u8]) -> [u8; 32] {
    let (fifth, rest) = block[2..].split_at(if format == Format::Q5_0 { 4 } else { 0 });
    let less = if format == Format::Q5_0 { 16 } else { 8 };
    std::array::from_fn(|index| {
        if format == Format::Q8_0 {
            return rest[index];
        }
        let lower = rest[index % 16] >> (index / 16 * 4) & 15;
        let upper = fifth.get(index / 8).map_or(0, |bits| (bits >> (index % 8) & 1) << 4);
        (lower | upper).wrapping_sub(less)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_lie_behind_the_quants_of_their_row() {
        let block = |first: u8| [first, first + 1].into_iter().chain(std::iter::repeat_n(first, 32));
        let stored: Vec<u8> = [1, 3, 5, 7].into_iter().flat_map(block).collect();
        let mut rows = Vec::new();
        append_rows(Format::Q8_0, 64, &stored, &mut rows);
        assert_eq!(rows.len(), 2 * row_bytes(Format::Q8_0, 64));
        let expected = |a: u8, b: u8| {
            let mut row = [[a; 32], [b; 32]].concat();
            row.extend([a, a + 1, b, b + 1]);
            row.resize(80, 0);
            row
        };
        assert_eq!(rows, [expected(1, 3), expected(5, 7)].concat());
        rows.clear();
        append_rows(Format::Q6K, 512, &[[7; 208].as_slice(), &[8; 2]].concat().repeat(2), &mut rows);
        assert_eq!((rows.len(), &rows[..416], &rows[416..421]), (432, &[7; 416][..], &[8, 8, 8, 8, 0][..]));
        rows.clear();
        append_rows(Format::Q4K, 512, &[7; 288], &mut rows);
        assert_eq!((rows.len(), row_bytes(Format::Q4K, 512)), (288, 288));
    }

    #[test]
    fn quants_of_fewer_bits_are_the_same_in_eight() {
        let mut block = vec![0, 0];
        block.extend((0..16).map(|index| index | (15 - index) << 4));
        let four = quants(Format::Q4_0, &block).map(u8::cast_signed);
        assert_eq!((four[0], four[15], four[16], four[31]), (-8, 7, 7, -8));
        // The fifth bits of weights 1 and 31.
        block.splice(2..2, [2, 0, 0, 128]);
        let five = quants(Format::Q5_0, &block).map(u8::cast_signed);
        assert_eq!((five[0], five[1], five[16], five[31]), (-16, 1, -1, 0));
    }
}
