//! Grows all trees of a grammar ahead of their use, on all cores.

use std::ops::Range;
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use hashbrown::{HashMap, HashSet};

use super::tree::{Children, Forest, Grow, TreeInputs, TreeNode, TreeNodeId};
use super::{rows::TokenRow, shortcuts};
use crate::cores;
use crate::ids::{ScanStateId, TerminalId, numbered};
use crate::limits::{GROWING_WORK, LimitExceeded, Work};
use crate::vocab::{ByteTrie, ENDLESS};

impl Forest {
    /// Grows the trees of all states but those that only longer texts tell apart from another, as deep as
    /// tokens reach or memory and [`GROWING_WORK`] allow. Trees share both; those of the first states come
    /// first. `progress` is called with the number of scanner states done and that of all, from any thread.
    /// The result does not depend on the number of cores unless a budget runs out; then the rest is made at
    /// run time.
    ///
    /// Costs one walk over the trie for each scanner state, which is short except for states that most tokens
    /// can follow, and a walk over the tokens that cross into other terminals for each way to do so.
    pub(crate) fn grown(
        inputs: TreeInputs<'_>,
        max_bytes: usize,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Self {
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
        let found = states(inputs);
        let own = found.iter().filter(|(state, first, _)| state == first);
        let states: Vec<ScanStateId> = own.map(|(state, ..)| *state).collect();
        let total = states.len();
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
            progress(done.fetch_add(1, Ordering::Relaxed) + 1, total);
            tree
        });
        let mut adopted = Adopted::new(max_bytes);
        for (state, tree) in states.into_iter().zip(trees) {
            if adopted.adopt(state, tree).is_err() {
                return adopted.forest;
            }
        }
        let mut forest = adopted.forest;
        let work = &mut Work::new(GROWING_WORK.saturating_sub(spent.load(Ordering::Relaxed)));
        forest.share_roots(inputs, &found, work);
        forest
    }

    /// Makes the root of each state that has the row of another one, whose tree is grown, that of the other.
    fn share_roots(&mut self, inputs: TreeInputs<'_>, states: &[GrownFor], work: &mut Work) {
        let mut known: HashMap<ScanStateId, u32> = HashMap::new();
        for &(state, first, from) in states.iter().filter(|(state, first, _)| state != first) {
            let Some(&root) = self.roots.get(&first) else { continue };
            let longest = *known.entry(first).or_insert_with(|| {
                let table = &inputs.tables[inputs.scanner.terminal(first).index()];
                // Where the work is used up, trees of such states grow as texts need them.
                table.longest_text(inputs.trie, inputs.scanner.local(first), work).unwrap_or(ENDLESS)
            });
            if shortcuts::have_same_row(longest, from) {
                self.roots.insert(state, root);
            }
        }
    }
}

/// A state in a table, the first one of those that are almost alike, such as the states in the middle of a
/// count, whose tree is grown for all of them, and the length below which the two treat all texts alike.
type GrownFor = (ScanStateId, ScanStateId, u32);

/// Lists the states in tables.
fn states(inputs: TreeInputs<'_>) -> Vec<GrownFor> {
    let longest = inputs.trie.height_or_endless(ByteTrie::ROOT);
    let mut states = Vec::new();
    for (terminal, table) in numbered(inputs.tables).filter(|(_, table)| table.dfa().is_table()) {
        let start = inputs.scanner.start(TerminalId::new(terminal)).raw();
        let id = |state: u32| ScanStateId::new(start + state);
        let found = shortcuts::grown(table.dfa(), longest).into_iter();
        states.extend(found.map(|(state, first, from)| (id(state), id(first), from)));
    }
    states
}

// Trees that were grown apart are put together, each node once: nodes with equal contents and equal children
// are one.
//
// States in the middle of a count, as of white space, differ in few tokens, and what follows them is mostly
// the same. Children come before their parents, so that equal ones have equal numbers.

/// The contents of a node, as an address, and its children, by which equal nodes are known.
type NodeKey = (TerminalId, usize, Option<Range<u32>>);

/// A node of a tree that is adopted, and its children in the forest, if they were made.
type NodeWithChildren<'n> = (&'n TreeNode, &'n Option<Range<u32>>);

/// A forest that takes over trees.
#[derive(Debug)]
struct Adopted {
    pub(super) forest: Forest,
    rows: HashSet<Arc<TokenRow>>,
    siblings: HashMap<Vec<NodeKey>, Range<u32>>,
    roots: HashMap<NodeKey, TreeNodeId>,
}

impl Adopted {
    /// Creates an empty forest of at most `max_bytes`.
    pub(super) fn new(max_bytes: usize) -> Self {
        Self {
            forest: Forest::new(max_bytes),
            rows: HashSet::new(),
            siblings: HashMap::new(),
            roots: HashMap::new(),
        }
    }

    /// Adopts the tree of `state`, whose children come after their parents. Linear in its contents.
    ///
    /// # Errors
    /// If there are more nodes than numbers.
    pub(super) fn adopt(&mut self, state: ScanStateId, tree: Forest) -> Result<(), LimitExceeded> {
        let Some(&root) = tree.roots.get(&state) else { return Ok(()) };
        let nodes: Vec<TreeNode> =
            tree.nodes.into_iter().map(|node| TreeNode { reach: self.row(node.reach), ..node }).collect();
        let mut made: Vec<Option<Range<u32>>> = vec![None; nodes.len()];
        for (number, node) in nodes.iter().enumerate().rev() {
            if let Children::Made(children) = &node.children {
                let children = children.start as usize..children.end as usize;
                let siblings = nodes[children.clone()].iter().zip(&made[children]);
                made[number] = Some(self.siblings(siblings)?);
            }
        }
        let (node, children) = (&nodes[root.index()], &made[root.index()]);
        let key = key((node, children));
        let root = match self.roots.get(&key) {
            Some(&root) => root,
            None => {
                let root = self.push((node, children))?;
                self.forest.nodes[root.index()].state = Some(state);
                self.roots.insert(key, root);
                root
            }
        };
        self.forest.plant(state, root);
        Ok(())
    }

    /// Returns the contents that equal these.
    fn row(&mut self, row: Arc<TokenRow>) -> Arc<TokenRow> {
        // Contents that a table has too are its own.
        let own = if Arc::strong_count(&row) == 1 { row.bytes() } else { 0 };
        Arc::clone(self.rows.get_or_insert_with(&row, |_| {
            self.forest.own.0 += own;
            Arc::clone(&row)
        }))
    }

    /// Returns the numbers of siblings like these.
    fn siblings<'n>(
        &mut self,
        siblings: impl Iterator<Item = NodeWithChildren<'n>> + Clone,
    ) -> Result<Range<u32>, LimitExceeded> {
        let keys: Vec<NodeKey> = siblings.clone().map(key).collect();
        if let Some(known) = self.siblings.get(&keys) {
            return Ok(known.clone());
        }
        let first = self.forest.nodes.numbers().end;
        for sibling in siblings {
            self.push(sibling)?;
        }
        let made = first..self.forest.nodes.numbers().end;
        self.siblings.insert(keys, made.clone());
        Ok(made)
    }

    fn push(&mut self, (node, children): NodeWithChildren<'_>) -> Result<TreeNodeId, LimitExceeded> {
        let number = self.forest.push(node.terminal, Arc::clone(&node.reach))?;
        if let Some(children) = children {
            self.forest.share(number, children.clone());
        }
        Ok(number)
    }
}

fn key((node, children): NodeWithChildren<'_>) -> NodeKey {
    (node.terminal, Arc::as_ptr(&node.reach).addr(), children.clone())
}
