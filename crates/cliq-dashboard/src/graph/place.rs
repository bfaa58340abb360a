//! Positions of the boxes: layers from left to right (Sugiyama's method, by a library).

use std::panic::{AssertUnwindSafe, catch_unwind};

use rust_sugiyama::configure::Config;
use rust_sugiyama::from_vertices_and_edges;

use super::Picture;

/// The size of a box.
pub(super) const WIDTH: f64 = 184.0;
/// The size of a box.
pub(super) const HEIGHT: f64 = 52.0;
/// Between layers, and between boxes of a layer.
const GAP: (f64, f64) = (56.0, 20.0);
/// Around the picture.
pub(super) const MARGIN: f64 = 12.0;

/// The upper left corners of boxes, and the size of the whole.
#[derive(Debug, Default)]
pub(super) struct Places {
    pub(super) boxes: Vec<(f64, f64)>,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// Lays a picture out.
pub(super) fn place(picture: &Picture) -> Places {
    let count = picture.nodes.len();
    // Support phases stand behind a gate that routes to them.
    let support = picture.routes.iter().copied().filter(|&(_, to)| picture.nodes[to].support);
    let mut edges: Vec<(usize, usize)> = picture.edges.iter().copied().chain(support).collect();
    edges.sort_unstable();
    edges.dedup();
    let layers = layers(count, &edges);
    let heights = heights(count, &edges, &layers);
    let width = layers.iter().copied().max().map_or(0, |last| last + 1) as f64 * (WIDTH + GAP.0) - GAP.0;
    let height = heights.iter().copied().fold(0.0, f64::max) + HEIGHT;
    let boxes =
        layers.iter().zip(&heights).map(|(&layer, &y)| (MARGIN + layer as f64 * (WIDTH + GAP.0), MARGIN + y));
    Places { boxes: boxes.collect(), width: width + 2.0 * MARGIN, height: height + 2.0 * MARGIN }
}

/// The layer of each box: one behind the last of those that it waits for. A line that closes a circle counts for nothing.
fn layers(count: usize, edges: &[(usize, usize)]) -> Vec<usize> {
    let mut layers = vec![0; count];
    for _ in 0..count {
        let mut changed = false;
        for &(a, b) in edges {
            if layers[b] <= layers[a] && layers[a] + 1 < count {
                layers[b] = layers[a] + 1;
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    layers
}

/// The height of each box: that of the library, moved where boxes of a layer would overlap.
fn heights(count: usize, edges: &[(usize, usize)], layers: &[usize]) -> Vec<f64> {
    let wanted = wanted(count, edges);
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|&a, &b| layers[a].cmp(&layers[b]).then(wanted[a].total_cmp(&wanted[b])));
    let mut heights = vec![0.0; count];
    let mut last: Option<(usize, f64)> = None;
    for n in order {
        let free = match last {
            Some((layer, y)) if layer == layers[n] => y + HEIGHT + GAP.1,
            _ => f64::MIN,
        };
        heights[n] = wanted[n].max(free);
        last = Some((layers[n], heights[n]));
    }
    let top = heights.iter().copied().fold(f64::MAX, f64::min);
    heights.iter().map(|y| y - top).collect()
}

/// Returns the library's positions. Its graphs run from top to bottom, so its breadth is our height.
fn wanted(count: usize, edges: &[(usize, usize)]) -> Vec<f64> {
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let vertices: Vec<_> = (0..count).map(|n| (number(n), (HEIGHT, HEIGHT))).collect();
    let edges: Vec<_> = edges.iter().map(|&(a, b)| (number(a), number(b))).collect();
    let config =
        Config { vertex_spacing: GAP.1, dummy_size: 0.4, transpose: count <= 60, ..Config::default() };
    // A graph that the library cannot take is drawn in a plain order.
    let laid_out = catch_unwind(AssertUnwindSafe(|| from_vertices_and_edges(&vertices, &edges, &config)));
    let mut heights: Vec<f64> = (0..count).map(|n| n as f64 * (HEIGHT + GAP.1)).collect();
    let mut top = 0.0;
    for (part, breadth, _) in laid_out.unwrap_or_default() {
        let first = part.iter().map(|(_, (x, _))| *x).fold(f64::MAX, f64::min);
        for (n, (x, _)) in &part {
            if let Some(height) = heights.get_mut(*n) {
                *height = top + x - first;
            }
        }
        top += breadth.max(HEIGHT) + GAP.1;
    }
    heights
}
