//! Grows all trees of a grammar ahead of their use, on all cores.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::tree::{Forest, Grow, TreeInputs, TreeNodeId};
use crate::{
    cores,
    ids::ScanStateId,
    limits::{GROWING_WORK, LimitExceeded, Work},
};

impl Forest {
    /// Grows every tree, as deep as tokens reach or memory and [`GROWING_WORK`] allow. Trees share both;
    /// those of the first states come first. `progress` is called with the number of scanner states done,
    /// from any thread. The result does not depend on the number of cores unless a budget runs out; then the
    /// rest is made at run time.
    ///
    /// Costs one walk over the trie for each scanner state, which is short except for states that most tokens
    /// can follow, and a walk over the tokens that cross into other terminals for each way to do so.
    pub(crate) fn grown(inputs: TreeInputs<'_>, max_bytes: usize, progress: &(dyn Fn(usize) + Sync)) -> Self {
        let (done, bytes, spent) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        // A node at a time, so that threads hear of each other's work.
        let with_work = |grow: &mut dyn FnMut(&mut Work) -> Result<Vec<TreeNodeId>, LimitExceeded>| {
            let left = GROWING_WORK.saturating_sub(spent.load(Ordering::Relaxed));
            if left == 0 {
                return Vec::new();
            }
            let mut work = Work::new(left);
            let found = grow(&mut work);
            spent.fetch_add(work.spent(), Ordering::Relaxed);
            found.unwrap_or_default()
        };
        let states: Vec<ScanStateId> = inputs.scanner.states().collect();
        let trees = cores::map(states.clone(), |state| {
            let mut tree = Self::new(max_bytes.saturating_sub(bytes.load(Ordering::Relaxed)));
            let mut open = with_work(&mut |work| Ok(vec![tree.root(inputs, state, work)?]));
            while let Some(node) = open.pop() {
                open.extend(with_work(&mut |work| {
                    let children = tree.children(inputs, node, Grow::Yes, work)?;
                    Ok(children.into_iter().flatten().map(|child| tree.child(child).1).collect())
                }));
            }
            bytes.fetch_add(tree.bytes(), Ordering::Relaxed);
            progress(done.fetch_add(1, Ordering::Relaxed) + 1);
            tree
        });
        let mut forest = Self::new(max_bytes);
        for (state, tree) in states.into_iter().zip(trees) {
            if forest.adopt(state, tree).is_err() {
                break;
            }
        }
        forest
    }
}
