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
/// Between bands.
const BAND_GAP: f64 = 44.0;
/// Maximum number of boxes of a layer that stand in one column.
const MAX_ROWS: usize = 8;
/// Around the picture.
pub(super) const MARGIN: f64 = 12.0;

/// The upper left corners of boxes, and the size of the whole.
#[derive(Debug, Default)]
pub(super) struct Places {
    pub(super) boxes: Vec<(f64, f64)>,
    /// Band of each box.
    pub(super) bands: Vec<usize>,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// Lays a picture out in bands of at most `columns` columns, one below the other, so that it fits a page.
pub(super) fn place(picture: &Picture, columns: usize) -> Places {
    let count = picture.nodes.len();
    // Support phases stand behind a gate that routes to them.
    let support = picture.routes.iter().copied().filter(|&(_, to)| picture.nodes[to].support);
    let mut edges: Vec<(usize, usize)> = picture.edges.iter().copied().chain(support).collect();
    edges.sort_unstable();
    edges.dedup();
    let layers = layers(count, &edges);
    let heights = heights(count, &edges, &layers);
    let cells = cells(&layers, &heights, columns.max(2));
    let bands = cells.iter().map(|cell| cell.band + 1).max().unwrap_or(0);
    let (mut tops, mut top) = (Vec::new(), MARGIN);
    for band in 0..bands {
        let of_band = || cells.iter().filter(|cell| cell.band == band).map(|cell| cell.y);
        let (first, last) = (of_band().fold(f64::MAX, f64::min), of_band().fold(0.0, f64::max));
        tops.push(top - first.min(last));
        top += last - first.min(last) + HEIGHT + BAND_GAP;
    }
    let boxes: Vec<(f64, f64)> = cells
        .iter()
        .map(|cell| (MARGIN + cell.column as f64 * (WIDTH + GAP.0), tops[cell.band] + cell.y))
        .collect();
    let width = boxes.iter().map(|(x, _)| x + WIDTH).fold(0.0, f64::max) + MARGIN;
    let height = boxes.iter().map(|(_, y)| y + HEIGHT).fold(0.0, f64::max) + MARGIN;
    Places { boxes, bands: cells.iter().map(|cell| cell.band).collect(), width, height }
}

/// Place of a box: band, column of the band, and height in the picture before it was cut into bands.
#[derive(Debug, Clone, Copy)]
struct Cell {
    band: usize,
    column: usize,
    y: f64,
}

/// Puts layers into columns of bands. A layer of many boxes takes several columns.
fn cells(layers: &[usize], heights: &[f64], columns: usize) -> Vec<Cell> {
    let last = layers.iter().copied().max().map_or(0, |last| last + 1);
    let mut cells = vec![Cell { band: 0, column: 0, y: 0.0 }; layers.len()];
    let (mut band, mut next) = (0, 0);
    for layer in 0..last {
        let mut boxes: Vec<usize> = (0..layers.len()).filter(|&n| layers[n] == layer).collect();
        boxes.sort_by(|&a, &b| heights[a].total_cmp(&heights[b]));
        let wide = boxes.len().div_ceil(MAX_ROWS).min(columns).max(1);
        if next + wide > columns && next > 0 {
            (band, next) = (band + 1, 0);
        }
        let rows = boxes.len().div_ceil(wide);
        for (n, &node) in boxes.iter().enumerate() {
            let y = if wide == 1 { heights[node] } else { (n % rows) as f64 * (HEIGHT + GAP.1) };
            cells[node] = Cell { band, column: next + n / rows, y };
        }
        next += wide;
    }
    for band in 0..=band {
        close_gaps(&mut cells, band);
    }
    cells
}

/// Moves the boxes of a band together where nothing is between them.
fn close_gaps(cells: &mut [Cell], band: usize) {
    let mut order: Vec<usize> = (0..cells.len()).filter(|&n| cells[n].band == band).collect();
    order.sort_by(|&a, &b| cells[a].y.total_cmp(&cells[b].y));
    let (mut before, mut y) = (None, 0.0);
    for n in order {
        let own = cells[n].y;
        y += before.map_or(0.0, |before: f64| (own - before).min(HEIGHT + GAP.1));
        before = Some(own);
        cells[n].y = y;
    }
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
