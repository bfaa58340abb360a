//! The graph of dependencies: cycles, ancestors, route targets. The only module that knows the graph library.

use std::collections::HashSet;

use petgraph::algo::tarjan_scc;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::{Bfs, Reversed};

/// Phases as nodes, `before → after` as edges.
pub(crate) struct Graph {
    graph: DiGraph<(), (), u32>,
}

impl Graph {
    pub(crate) fn new(nodes: usize, edges: impl Iterator<Item = (usize, usize)>) -> Self {
        let mut graph = DiGraph::with_capacity(nodes, 0);
        for _ in 0..nodes {
            graph.add_node(());
        }
        for (before, after) in edges {
            graph.add_edge(NodeIndex::new(before), NodeIndex::new(after), ());
        }
        Self { graph }
    }

    /// One cycle of each knot, as the phases along it; the first is the one that comes first in the file.
    pub(crate) fn cycles(&self) -> Vec<Vec<usize>> {
        let mut cycles: Vec<Vec<usize>> = tarjan_scc(&self.graph)
            .into_iter()
            .filter(|knot| knot.len() > 1)
            .map(|knot| self.shortest_cycle(&knot.into_iter().map(NodeIndex::index).collect()))
            .collect();
        cycles.sort();
        cycles
    }

    /// The shortest way from the first node of a knot back to itself.
    fn shortest_cycle(&self, knot: &HashSet<usize>) -> Vec<usize> {
        let start = knot.iter().copied().min().unwrap_or(0);
        let mut came_from = std::collections::HashMap::new();
        let mut queue = std::collections::VecDeque::from([start]);
        while let Some(node) = queue.pop_front() {
            let mut next: Vec<usize> = self
                .graph
                .neighbors(NodeIndex::new(node))
                .map(NodeIndex::index)
                .filter(|n| knot.contains(n))
                .collect();
            next.sort_unstable();
            for after in next {
                if after == start {
                    let mut path = vec![node];
                    while let Some(&before) = came_from.get(path.last().unwrap_or(&start)) {
                        path.push(before);
                    }
                    path.reverse();
                    return path;
                }
                if after != start && !came_from.contains_key(&after) {
                    came_from.insert(after, node);
                    queue.push_back(after);
                }
            }
        }
        vec![start]
    }

    /// All that come before `node`, the nearest first, those of one distance in the order of the file.
    pub(crate) fn ancestors(&self, node: usize) -> Vec<usize> {
        let reversed = Reversed(&self.graph);
        let mut bfs = Bfs::new(reversed, NodeIndex::new(node));
        let mut distance = std::collections::HashMap::from([(node, 0usize)]);
        let mut found = Vec::new();
        while let Some(next) = bfs.next(reversed) {
            let here = distance[&next.index()];
            for before in self.graph.neighbors_directed(next, petgraph::Direction::Incoming) {
                distance.entry(before.index()).or_insert(here + 1);
            }
            if next.index() != node {
                found.push((here, next.index()));
            }
        }
        found.sort_unstable();
        found.into_iter().map(|(_, node)| node).collect()
    }
}
