//! Strongly connected components of a graph given by numbers.

/// Returns the strongly connected components reachable from `starts`, each after those it leads to (Tarjan's
/// algorithm, without recursion). `successors(n)` lists the successors of `n`, and is called once each.
/// Linear.
pub(crate) fn components(
    count: usize,
    starts: impl IntoIterator<Item = usize>,
    mut successors: impl FnMut(usize) -> Vec<usize>,
) -> Vec<Vec<usize>> {
    const UNSEEN: usize = usize::MAX;
    let (mut index, mut low) = (vec![UNSEEN; count], vec![0; count]);
    let mut on_stack = vec![false; count];
    let (mut stack, mut components, mut next) = (Vec::new(), Vec::new(), 0);
    // The stack of calls: nodes with the successors that are still to be visited.
    let mut calls: Vec<(usize, std::vec::IntoIter<usize>)> = Vec::new();
    for start in starts {
        let mut enter = (index[start] == UNSEEN).then_some(start);
        loop {
            // Call: number the node and push it on both stacks.
            if let Some(node) = enter.take() {
                (index[node], low[node]) = (next, next);
                next += 1;
                stack.push(node);
                on_stack[node] = true;
                calls.push((node, successors(node).into_iter()));
            }
            let Some((node, open)) = calls.last_mut() else { break };
            let node = *node;
            if let Some(successor) = open.next() {
                if index[successor] == UNSEEN {
                    enter = Some(successor);
                } else if on_stack[successor] {
                    low[node] = low[node].min(index[successor]);
                }
                continue;
            }
            // Return: the caller can reach whatever the node reaches.
            calls.pop();
            if let Some((caller, _)) = calls.last() {
                low[*caller] = low[*caller].min(low[node]);
            }
            // `node` is the first one met of its component: the others are above it on the stack.
            if low[node] == index[node] {
                let mut component = Vec::new();
                while let Some(member) = stack.pop() {
                    on_stack[member] = false;
                    component.push(member);
                    if member == node {
                        break;
                    }
                }
                components.push(component);
            }
        }
    }
    components
}

#[cfg(test)]
mod tests {
    use super::components;

    #[test]
    fn components_come_after_those_they_lead_to() {
        // 0 -> 1 <-> 2 -> 3, 4 -> 0 is not reached, 3 -> 3.
        let edges: [&[usize]; 5] = [&[1], &[2], &[1, 3], &[3], &[0]];
        let mut found = components(5, [0], |node| edges[node].to_vec());
        found.iter_mut().for_each(|component| component.sort_unstable());
        assert_eq!(found, [vec![3], vec![1, 2], vec![0]]);
        assert_eq!(components(5, 0..5, |node| edges[node].to_vec()).len(), 4);
    }
}
