//! Matrix product with rows of which only some outputs are wanted.
//!
//! The whole product would read all of the output matrix for logits that nobody looks at, where few tokens
//! may follow. Invariant: an output that is wanted has the bits it has in the whole product.

use std::ops::Range;

use super::{
    matrix::{Matrix, Wanted},
    panel::PANEL,
};
use crate::vocab::{Contents, TokenSet};

/// Share of panels, one in this many, up to which a row is computed by itself. Rows of which more is wanted
/// are computed together and whole: they share what is read.
const FEW: usize = 4;
/// Rows for which memory is kept though fewer are wanted now: about as many as a pass over a draft has.
const SPARE: usize = 32;

/// Multiplies rows `x` by `matrix`, one after the other. Of each row the outputs in its set (all if `None`)
/// are computed; others may be minus infinity. The products overwrite `out` from its beginning, which grows
/// if need be.
pub(crate) fn product(matrix: &Matrix, x: &[f32], sets: &[Option<&TokenSet>], mut out: Vec<f32>) -> Vec<f32> {
    let (inputs, outputs) = (matrix.inputs(), matrix.outputs());
    let panels = outputs.div_ceil(PANEL);
    let few = |set: &TokenSet| {
        let runs = runs(set, panels);
        let wanted: usize = runs.iter().map(ExactSizeIterator::len).sum();
        (wanted * FEW <= panels && matrix.is_of_one_part()).then_some(runs)
    };
    let plan: Vec<Option<Vec<Range<usize>>>> = sets.iter().map(|set| few((*set)?)).collect();
    let room = sets.len().next_power_of_two();
    if !(sets.len() * outputs..=room.max(SPARE) * outputs).contains(&out.len()) {
        // Growing would copy the old contents; and the memory of a long pass is given back.
        out = vec![0.0; room * outputs];
    }
    let rows = || x.chunks_exact(inputs).zip(&plan);
    let whole: Vec<f32> =
        rows().filter(|(_, runs)| runs.is_none()).flat_map(|(row, _)| row).copied().collect();
    let wanted: Vec<Wanted<'_>> =
        rows().filter_map(|(row, runs)| Some(Wanted { row, panels: runs.as_deref()? })).collect();
    let tiles = matrix.panels(&wanted);
    let mut tiles = tiles.chunks_exact(PANEL);
    let mut places = Vec::new();
    for (out, runs) in out.chunks_exact_mut(outputs).zip(&plan) {
        let Some(runs) = runs else {
            places.push(out);
            continue;
        };
        out.fill(f32::NEG_INFINITY);
        for (panel, tile) in runs.iter().flat_map(Clone::clone).zip(&mut tiles) {
            let out = &mut out[panel * PANEL..];
            let count = out.len().min(PANEL);
            out[..count].copy_from_slice(&tile[..count]);
        }
    }
    matrix.product_in(&whole, places);
    out
}

/// Panels, of the first `most`, that have tokens of the set, as runs of neighbours in order.
fn runs(set: &TokenSet, most: usize) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    let mut add = |panel: usize| match runs.last_mut() {
        Some(last) if last.end > panel => {}
        Some(last) if last.end == panel => last.end += 1,
        _ => runs.push(panel..panel + 1),
    };
    match set.contents() {
        Contents::Listed(tokens) => {
            let panels = tokens.iter().map(|token| token.index() / PANEL);
            panels.take_while(|&panel| panel < most).for_each(add);
        }
        Contents::Bits(words) => {
            for (index, &word) in words.iter().enumerate().filter(|(_, word)| **word != 0) {
                let panels = (0..64 / PANEL).filter(|part| word >> (part * PANEL) & ((1 << PANEL) - 1) != 0);
                let panels = panels.map(|part| index * (64 / PANEL) + part);
                panels.take_while(|&panel| panel < most).for_each(&mut add);
            }
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::TokenId;
    use crate::model::formats::format::Format;

    fn set(size: usize, tokens: impl IntoIterator<Item = usize>) -> TokenSet {
        let mut set = TokenSet::empty(size);
        tokens.into_iter().for_each(|token| set.insert(TokenId::from_index(token).unwrap()));
        set
    }

    fn matrix(inputs: usize, outputs: usize) -> Matrix {
        let mut matrix = Matrix::new(inputs);
        let weights: Vec<f32> = (0..inputs * outputs).map(|n| (n as f32 * 0.37).sin()).collect();
        matrix.push(Format::F32, &weights.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>());
        matrix
    }

    #[test]
    fn wanted_panels_are_joined_into_runs_of_neighbours() {
        let found = runs(&set(1000, [0, 15, 16, 63, 64, 200, 999]), 62);
        assert_eq!(found, [0..2, 3..5, 12..13]);
        assert_eq!(runs(&set(1000, [999, 0]), 63), [0..1, 62..63]);
        assert!(runs(&set(1000, []), 63).is_empty());
    }

    #[test]
    fn wanted_outputs_have_the_bits_of_the_whole_product() {
        // The row alone, and with enough panels that threads are woken.
        for (inputs, outputs) in [(48, 1003), (512, 9000)] {
            let matrix = matrix(inputs, outputs);
            let x: Vec<f32> = (0..5 * inputs).map(|n| (n as f32 * 0.11).cos()).collect();
            let whole = matrix.product(&x, 5);
            let sets = [
                set(outputs, [3, 500, outputs - 1]),
                set(outputs, 0..outputs),
                set(outputs, []),
                // A vocabulary may be larger or smaller than the matrix is.
                set(outputs + 700, (outputs / 2..outputs / 2 + outputs / 5).chain([outputs + 600])),
                set(40, [7, 39]),
            ];
            let mut wanted: Vec<Option<&TokenSet>> = sets.iter().map(Some).collect();
            for unconstrained in [false, true] {
                if unconstrained {
                    wanted[4] = None;
                }
                // The memory was used before.
                let memory = vec![7.0; if unconstrained { whole.len() / 2 } else { 2 * whole.len() }];
                let got = product(&matrix, &x, &wanted, memory);
                let got = &got[..whole.len()];
                assert_eq!(got.len(), whole.len());
                let mut left_out = 0;
                for (index, (&got, &whole)) in got.iter().zip(&whole).enumerate() {
                    let token = TokenId::from_index(index % outputs).unwrap();
                    let computed = got.to_bits() == whole.to_bits();
                    left_out += usize::from(!computed);
                    let counts = wanted[index / outputs].is_none_or(|set| set.contains(token));
                    assert!(computed || !counts && got == f32::NEG_INFINITY, "{index}");
                }
                assert!(left_out > 2 * outputs, "{left_out}");
            }
        }
    }
}
