//! The phases of a team or a run as a picture (SVG), drawn on the server.
//!
//! `fold.rs` joins phases of large teams, `place.rs` lays the picture out, `draw.rs` writes it.

mod draw;
mod fold;
mod place;

use std::collections::HashMap;
use std::sync::Arc;

use cliq_model::Run;
use cliq_workflow::ValidatedWorkflow;
use serde_json::Value;

use crate::elements::phase_word;
use cliq_web::Core;
use cliq_web::Problem;
use cliq_web::find_run;

/// A box of the picture: a phase, or several that were joined.
#[derive(Debug, Clone, PartialEq, Default)]
struct Node {
    /// The name of the phase, or what joined phases are called.
    name: String,
    /// Type of the phase.
    kind: String,
    /// Number of phases that the box represents.
    members: usize,
    /// Number of phases by status.
    statuses: Vec<(String, usize)>,
    /// Number of activations and their duration.
    detail: String,
    /// Whether it idles until a gate routes to it.
    support: bool,
}

/// Boxes and lines, without places.
#[derive(Debug, Clone, PartialEq, Default)]
struct Picture {
    nodes: Vec<Node>,
    /// From a phase to one that waits for it.
    edges: Vec<(usize, usize)>,
    /// From a gate to a phase that it may send work back to.
    routes: Vec<(usize, usize)>,
}

fn picture(workflow: &ValidatedWorkflow, phases: &Value) -> Picture {
    let views: HashMap<&str, &Value> = phases
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|phase| Some((phase["name"].as_str()?, phase)))
        .collect();
    let mut picture = Picture::default();
    for (id, phase) in workflow.phases() {
        let view = views.get(phase.name.as_str());
        let status = view.map_or("pending", |view| phase_word(view));
        picture.nodes.push(Node {
            name: phase.name.to_string(),
            kind: phase.kind.to_string(),
            members: 1,
            statuses: vec![(status.to_owned(), 1)],
            detail: match view.map(|view| detail(view)).filter(|detail| !detail.is_empty()) {
                Some(detail) if phase.for_each.is_some() => {
                    format!("{}{detail}", items(&views, phase.name.as_str()))
                }
                Some(detail) => detail,
                None => workflow.conditions_of(id).unwrap_or_default(),
            },
            support: phase.support,
        });
        picture.edges.extend(phase.depends_on.iter().map(|before| (before.index(), id.index())));
        picture.routes.extend(phase.route_targets.iter().map(|target| (id.index(), target.index())));
    }
    picture
}

/// Progress of the items of a phase: `2/3 items, `.
fn items(views: &HashMap<&str, &Value>, phase: &str) -> String {
    let of_phase = |index: usize| views.get(format!("{phase}.{index}").as_str()).copied();
    let items: Vec<&Value> = (0..).map_while(of_phase).collect();
    let done = |item: &&&Value| matches!(item["status"].as_str(), Some("completed" | "skipped" | "failed"));
    if items.is_empty() {
        String::new()
    } else {
        format!("{}/{} items, ", items.iter().filter(done).count(), items.len())
    }
}

fn detail(view: &Value) -> String {
    let rounds = view["iterations"].as_u64().unwrap_or(0);
    if rounds == 0 {
        return String::new();
    }
    let millis = view["duration_ms"].as_i64().unwrap_or(0);
    let since = view["running_since_ms"].as_i64().map_or(0, |since| cliq_fs::now_millis() - since);
    if phase_word(view) == "waiting" {
        return if rounds > 1 { format!("round {rounds}") } else { String::new() };
    }
    let took = cliq_project::internals::duration(millis + since);
    if rounds > 1 { format!("{took} · round {rounds}") } else { took }
}

fn svg(workflow: &ValidatedWorkflow, phases: &Value, links: &Links<'_>) -> String {
    let picture = fold::fold(picture(workflow, phases));
    // Beside the panel of a phase there is less room.
    let columns = if links.chosen.is_some() { NARROW } else { WIDE };
    let places = place::place(&picture, columns);
    draw::draw(&picture, &places, workflow.name.as_str(), links)
}

/// Explanation for a run without a kept team.
pub(super) const NOT_KEPT: &str =
    "the team of this run was not kept: the run started before cliq kept teams, or its record is gone";

/// Number of columns of a picture over the whole page, and of one beside a panel.
const WIDE: usize = 6;
const NARROW: usize = 4;

/// Addresses of phases in a picture.
#[derive(Debug, Clone, Copy, Default)]
struct Links<'a> {
    /// Address of the page of a run; without it phases are not linked.
    base: Option<&'a str>,
    /// The phase that is shown beside the picture.
    chosen: Option<&'a str>,
    /// Id of the run, for the words of its agents.
    run: Option<&'a str>,
}

/// The picture of a team.
pub fn graph_of_team(workflow: &ValidatedWorkflow) -> String {
    svg(workflow, &Value::Null, &Links::default())
}

/// Picture of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RunPicture {
    /// The picture.
    Drawn(String),
    /// The run started before cliq kept teams, or its record is gone. The team of the project may be another one by now.
    NotKept,
    /// No team is assembled yet, or the workspace is gone.
    None,
}

/// Draws a run with the team that it had when it started.
pub(super) async fn of_run(core: &Arc<Core>, run: &Run, phases: &Value, chosen: Option<&str>) -> RunPicture {
    let phases = phases.clone();
    let (base, chosen) = (format!("/runs/{}", run.id), chosen.map(str::to_owned));
    let drawn = core.in_project(run, move |run, project| {
        let links = Links { base: Some(&base), chosen: chosen.as_deref(), run: Some(run.id.as_str()) };
        let workflow = match project.team_of_run(&run.id) {
            Some(team) => team.workflow(),
            // The project cannot be assembled anew while a run works in it.
            None if run.life.began && run.life.state.is_final() => return Ok(RunPicture::NotKept),
            None => project.workflow().ok(),
        };
        let drawn = |workflow| RunPicture::Drawn(svg(&workflow, &phases, &links));
        Ok(workflow.map_or(RunPicture::None, drawn))
    });
    drawn.await.unwrap_or(RunPicture::None)
}

/// The picture of a run by its id.
pub async fn graph_of_run(core: &Arc<Core>, id: &str) -> Result<String, Problem> {
    let (run, document) = find_run(core, id).await?;
    let drawn = of_run(core, &run, &document.phases, None).await;
    match drawn {
        RunPicture::Drawn(svg) => Ok(svg),
        RunPicture::NotKept => Err(Problem::not_found(NOT_KEPT)),
        RunPicture::None => Err(Problem::not_found(
            "there is no team to draw: the run has not started, or its workspace is gone",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str) -> Node {
        Node {
            name: name.into(),
            kind: "standard".into(),
            members: 1,
            statuses: vec![("pending".into(), 1)],
            ..Node::default()
        }
    }

    fn drawn(nodes: usize, edges: Vec<(usize, usize)>) -> (Picture, String) {
        let nodes = (0..nodes).map(|n| node(&format!("p{n}"))).collect();
        let picture = fold::fold(Picture { nodes, edges, routes: Vec::new() });
        let svg = draw::draw(&picture, &place::place(&picture, WIDE), "@local/x", &Links::default());
        (picture, svg)
    }

    #[test]
    fn small_teams_are_drawn_whole_and_large_ones_folded() {
        let chain = |n: usize| (1..n).map(|to| (to - 1, to)).collect::<Vec<_>>();
        assert_eq!(drawn(10, chain(10)).0.nodes.len(), 10);
        assert!(drawn(200, chain(200)).0.nodes.len() <= 60);
        let fan = |n: usize| (1..n - 1).flat_map(|to| [(0, to), (to, n - 1)]).collect::<Vec<_>>();
        assert_eq!(drawn(2000, fan(2000)).0.nodes.len(), 3);
        // Layers of ten, each phase after two of the layer before.
        let layers = (10..2000)
            .flat_map(|n| [(n / 10 * 10 - 10 + n * 7 % 10, n), (n / 10 * 10 - 10 + (n * 3 + 1) % 10, n)]);
        let (picture, svg) = drawn(2000, layers.collect());
        assert!(picture.nodes.len() <= 100, "{}", picture.nodes.len());
        assert_eq!(picture.nodes.iter().map(|node| node.members).sum::<usize>(), 2000, "none is lost");
        assert!(svg.len() < 100_000, "{}", svg.len());
    }

    #[test]
    fn teams_of_28_phases_fit_a_page() {
        let chain: Vec<_> = (1..28).map(|to| (to - 1, to)).collect();
        let fan: Vec<_> = (1..27).flat_map(|to| [(0, to), (to, 27)]).collect();
        let lanes: Vec<_> = (4..28).map(|to| (to - 4, to)).collect();
        for edges in [chain, fan, lanes] {
            let nodes = (0..28).map(|n| node(&format!("p{n}"))).collect();
            let places = place::place(&Picture { nodes, edges, routes: Vec::new() }, WIDE);
            assert!(
                places.width <= 1440.0 + 24.0 && places.height <= 640.0,
                "{} x {}",
                places.width,
                places.height
            );
        }
    }

    #[test]
    fn names_are_escaped() {
        let picture = Picture { nodes: vec![node("<script>\"&")], ..Picture::default() };
        let svg = draw::draw(&picture, &place::place(&picture, WIDE), "<b>", &Links::default());
        assert!(!svg.contains("<script>") && !svg.contains("<b>"));
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig { cases: 200, failure_persistence: None, ..Default::default() })]

        /// Any team is laid out: each box has a place of its own, after those that it waits for.
        #[test]
        fn any_graph_is_laid_out(size in 1_usize..40, raw in proptest::collection::vec((0_usize..40, 0_usize..40), 0..80)) {
            let mut edges: Vec<_> =
                raw.into_iter().map(|(a, b)| (a.min(b), a.max(b))).filter(|(a, b)| a != b && *b < size).collect();
            edges.sort_unstable();
            edges.dedup();
            let picture = Picture { nodes: (0..size).map(|n| node(&n.to_string())).collect(), edges: edges.clone(), routes: Vec::new() };
            let places = place::place(&picture, WIDE);
            assert_eq!(places.boxes.len(), size);
            assert!(places.width <= 6.0 * 240.0 + 24.0, "{}", places.width);
            for (a, b) in edges {
                let place = |n: usize| (places.bands[n], places.boxes[n].0);
                assert!(place(a) < place(b), "{a} is left of {b}, or above it");
            }
            for (n, a) in places.boxes.iter().enumerate() {
                for b in &places.boxes[n + 1..] {
                    assert!((a.0 - b.0).abs() >= 100.0 || (a.1 - b.1).abs() >= 44.0, "{a:?} and {b:?} overlap");
                }
            }
        }
    }
}
