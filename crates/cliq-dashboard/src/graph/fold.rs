//! Joins phases of large teams, so that the picture stays readable: phases that stand side by side, phases in a row, and where
//! that is not enough, whole layers.

use std::collections::{BTreeMap, BTreeSet};

use super::{Node, Picture};

/// Up to so many boxes nothing is joined.
const READABLE: usize = 60;
/// More boxes than that are joined by layers.
const TOO_MANY: usize = 100;
/// The fewest phases that are joined.
const GROUP: usize = 4;

/// The picture with as few boxes as it takes to be readable. Phases are counted, none is lost.
pub(super) fn fold(picture: Picture) -> Picture {
    if picture.nodes.len() <= READABLE {
        return picture;
    }
    let picture = join(&picture, &side_by_side(&picture));
    let picture = if picture.nodes.len() > READABLE { join(&picture, &in_a_row(&picture)) } else { picture };
    if picture.nodes.len() > TOO_MANY { join(&picture, &layers(&picture)) } else { picture }
}

fn neighbours(picture: &Picture) -> (Vec<BTreeSet<usize>>, Vec<BTreeSet<usize>>) {
    let mut before = vec![BTreeSet::new(); picture.nodes.len()];
    let mut after = vec![BTreeSet::new(); picture.nodes.len()];
    for &(a, b) in &picture.edges {
        after[a].insert(b);
        before[b].insert(a);
    }
    (before, after)
}

/// For each box the first of its group: phases of one kind that wait for the same and are waited for by the same.
fn side_by_side(picture: &Picture) -> Vec<usize> {
    let (before, after) = neighbours(picture);
    let mut groups: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (n, node) in picture.nodes.iter().enumerate() {
        groups.entry((&before[n], &after[n], &node.kind, node.support)).or_default().push(n);
    }
    heads(picture.nodes.len(), groups.into_values())
}

/// For each box the first of its row: each has one before it and one after it.
fn in_a_row(picture: &Picture) -> Vec<usize> {
    let (before, after) = neighbours(picture);
    let only = |set: &BTreeSet<usize>| if set.len() == 1 { set.first().copied() } else { None };
    let next = |n: usize| only(&after[n]).filter(|&to| only(&before[to]) == Some(n));
    let begins = |n: usize| only(&before[n]).is_none_or(|from| next(from) != Some(n));
    let rows = (0..picture.nodes.len()).filter(|&n| begins(n)).flat_map(|n| {
        let row: Vec<usize> = std::iter::successors(Some(n), |&n| next(n)).collect();
        // A row of hundreds becomes several boxes, so that progress along it can be seen.
        let length = row.len().div_ceil(10).max(GROUP);
        row.chunks(length).map(<[usize]>::to_vec).collect::<Vec<_>>()
    });
    heads(picture.nodes.len(), rows)
}

/// For each box the first of its layer; so many layers that they are readable.
fn layers(picture: &Picture) -> Vec<usize> {
    let (before, after) = neighbours(picture);
    let mut missing: Vec<usize> = before.iter().map(BTreeSet::len).collect();
    let mut layer: Vec<usize> = (0..missing.len()).filter(|&n| missing[n] == 0).collect();
    let mut layers = Vec::new();
    while !layer.is_empty() {
        let mut next = Vec::new();
        for &n in &layer {
            for &to in &after[n] {
                missing[to] -= 1;
                if missing[to] == 0 {
                    next.push(to);
                }
            }
        }
        layers.push(std::mem::replace(&mut layer, next));
    }
    let length = layers.len().div_ceil(READABLE);
    let groups = layers.chunks(length.max(1)).map(<[Vec<usize>]>::concat).collect::<Vec<_>>();
    let mut heads: Vec<usize> = (0..picture.nodes.len()).collect();
    for group in groups {
        let head = group.iter().copied().min().unwrap_or(0);
        group.iter().for_each(|&n| heads[n] = head);
    }
    heads
}

fn heads(count: usize, groups: impl Iterator<Item = Vec<usize>>) -> Vec<usize> {
    let mut heads: Vec<usize> = (0..count).collect();
    for group in groups.filter(|group| group.len() >= GROUP) {
        group.iter().for_each(|&n| heads[n] = group[0]);
    }
    heads
}

fn join(picture: &Picture, heads: &[usize]) -> Picture {
    let kept: Vec<usize> = (0..heads.len()).filter(|&n| heads[n] == n).collect();
    let place = |n: usize| kept.binary_search(&heads[n]).unwrap_or(0);
    let mut members: Vec<Vec<&Node>> = vec![Vec::new(); kept.len()];
    for (n, node) in picture.nodes.iter().enumerate() {
        members[place(n)].push(node);
    }
    let nodes: Vec<Node> = members.iter().map(|members| joined(members)).collect();
    let lines = |lines: &[(usize, usize)]| {
        let mut lines: Vec<_> =
            lines.iter().map(|&(a, b)| (place(a), place(b))).filter(|(a, b)| a != b).collect();
        lines.sort_unstable();
        lines.dedup();
        lines
    };
    Picture { edges: lines(&picture.edges), routes: lines(&picture.routes), nodes }
}

fn joined(members: &[&Node]) -> Node {
    if let [only] = members {
        return (*only).clone();
    }
    let mut statuses: BTreeMap<&str, usize> = BTreeMap::new();
    for (status, n) in members.iter().flat_map(|node| &node.statuses) {
        *statuses.entry(status).or_default() += n;
    }
    let first = members.first().map_or("", |node| node.name.split(" … ").next().unwrap_or_default());
    let last = members.last().map_or("", |node| node.name.rsplit(" … ").next().unwrap_or_default());
    Node {
        name: format!("{first} … {last}"),
        kind: members.first().map(|node| node.kind.clone()).unwrap_or_default(),
        members: members.iter().map(|node| node.members).sum(),
        statuses: statuses.into_iter().map(|(status, n)| (status.to_owned(), n)).collect(),
        detail: String::new(),
        support: members.iter().all(|node| node.support),
    }
}
