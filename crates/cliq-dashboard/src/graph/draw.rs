//! Writes a picture as SVG. Colours come from the page's style sheet, and from a small one of its own where it stands alone.

use maud::{Markup, html};

use super::place::{HEIGHT, Places, WIDTH};
use super::{Links, Node, Picture};

/// The most characters of a name in a box.
const MAX_NAME: usize = 20;

/// The picture as SVG.
pub(super) fn draw(picture: &Picture, places: &Places, team: &str, links: &Links<'_>) -> String {
    let phases: usize = picture.nodes.iter().map(|node| node.members).sum();
    let folded = picture.nodes.len() < phases;
    let note = if folded { ", folded" } else { "" };
    // Lines that lead back run above or below the boxes.
    let back = picture.routes.iter().any(|&(from, to)| !picture.nodes[to].support && from != to);
    let top = if back { 28.0 } else { 0.0 };
    let (width, height) = (places.width, places.height + top);
    html! {
        svg.graph xmlns="http://www.w3.org/2000/svg" width=(number(width)) height=(number(height))
            viewBox=(format!("0 {} {} {}", number(-top), number(width), number(height)))
            role="group" aria-label=(format!("{team}: {phases} phases{note}")) {
            @for &(from, to) in &picture.edges { path.edge d=(edge(places, from, to)) {} }
            @for (node, &(x, y)) in picture.nodes.iter().zip(&places.boxes) { (drawn(node, x, y, links)) }
            // In front of the boxes: a way back is what a person looks for.
            @for &(from, to) in &picture.routes { path.route d=(route(picture, places, from, to)) {} }
        }
    }
    .into_string()
}

fn number(value: f64) -> String {
    format!("{value:.0}")
}

fn edge(places: &Places, from: usize, to: usize) -> String {
    let ((x1, y1), (x2, y2)) = (places.boxes[from], places.boxes[to]);
    if places.bands[from] != places.bands[to] {
        // From the lower edge to the upper one of a box in another band.
        let (x1, y1, x2) = (x1 + WIDTH / 2.0, y1 + HEIGHT, x2 + WIDTH / 2.0);
        let middle = f64::midpoint(y1, y2);
        return format!("M{x1:.0} {y1:.0}C{x1:.0} {middle:.0} {x2:.0} {middle:.0} {x2:.0} {y2:.0}");
    }
    let (x1, y1, y2) = (x1 + WIDTH, y1 + HEIGHT / 2.0, y2 + HEIGHT / 2.0);
    let middle = f64::midpoint(x1, x2);
    format!("M{x1:.0} {y1:.0}C{middle:.0} {y1:.0} {middle:.0} {y2:.0} {x2:.0} {y2:.0}")
}

fn route(picture: &Picture, places: &Places, from: usize, to: usize) -> String {
    if picture.nodes[to].support {
        return edge(places, from, to);
    }
    let ((x1, y1), (x2, y2)) = (places.boxes[from], places.boxes[to]);
    let (x1, x2) = (x1 + WIDTH / 2.0, x2 + WIDTH / 2.0);
    let above = y1.min(y2) - 34.0;
    format!("M{x1:.0} {y1:.0}C{x1:.0} {above:.0} {x2:.0} {above:.0} {x2:.0} {y2:.0}")
}

fn drawn(node: &Node, x: f64, y: f64, links: &Links<'_>) -> Markup {
    // The status that asks most for attention.
    let order = [
        "escalated",
        "failed",
        "stopped",
        "running",
        "waiting",
        "pending",
        "unclear",
        "completed",
        "skipped",
    ];
    let has = |word: &&&str| node.statuses.iter().any(|(status, n)| status == **word && *n > 0);
    let status = order.iter().find(has).copied().unwrap_or("pending");
    let short: String = match node.name.chars().count() {
        0..=MAX_NAME => node.name.clone(),
        _ => node.name.chars().take(MAX_NAME - 1).chain(['…']).collect(),
    };
    let parts: Vec<String> = node.statuses.iter().map(|(status, n)| format!("{n} {status}")).collect();
    let second = if node.members > 1 {
        parts.join(", ")
    } else if links.base.is_none() && status == "pending" {
        // A definition has no state.
        if node.detail.is_empty() { node.kind.clone() } else { format!("{} · {}", node.kind, node.detail) }
    } else if node.detail.is_empty() {
        format!("{} · {}", node.kind, status)
    } else {
        format!("{} · {}", status, node.detail)
    };
    let second: String = second.chars().take(28).collect();
    let title = format!(
        "{} ({}{}): {}",
        node.name,
        node.kind,
        if node.support { ", support" } else { "" },
        parts.join(", ")
    );
    let is_gate = node.kind == "gate" || node.kind == "hug";
    // An item that is chosen marks its phase.
    let is_chosen = links.chosen.is_some_and(|chosen| chosen.split('.').next() == Some(&node.name));
    let class = format!(
        "node {status}{}{}",
        if is_chosen { " chosen" } else { "" },
        if is_gate { " gate" } else { "" }
    );
    let body = html! {
        title { (title) }
        @if node.members > 1 {
            rect.shade x=(number(x + 4.0)) y=(number(y + 4.0)) width=(number(WIDTH)) height=(number(HEIGHT)) rx="6" {}
        }
        rect x=(number(x)) y=(number(y)) width=(number(WIDTH)) height=(number(HEIGHT)) rx=(if class.ends_with("gate") { "16" } else { "6" }) {}
        text.name x=(number(x + 10.0)) y=(number(y + 21.0)) { (short) @if node.members > 1 { " ×" (node.members) } }
        text.detail x=(number(x + 10.0)) y=(number(y + 40.0)) data-words=[links.run.filter(|_| status == "running" && node.members == 1).map(|run| format!("{run}/{}", node.name))] { (second) }
    };
    html! {
        @match links.base {
            Some(base) if node.members == 1 => a href=(format!("{base}?phase={}#panel", node.name)) data-panel { g class=(class) { (body) } },
            _ => g class=(class) { (body) },
        }
    }
}
