//! Random teams that are valid.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;

use cliq_orchestrator::ValidatedWorkflow;
use cliq_workflow::{NoFiles, check};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

/// A phase to be.
#[derive(Debug, Clone)]
pub(crate) struct Shape {
    kind: Kind,
    depends_on: Vec<Index>,
    route_to: Vec<Index>,
    budget: u8,
    conditions: Conditions,
}

/// Conditions, items and attempts of a phase to be. The world decides what comes of them.
#[derive(Debug, Clone, Default)]
struct Conditions {
    when: bool,
    items: Option<u8>,
    max_parallel: Option<u8>,
    continues: bool,
    /// Whether items work in worktrees, and whether a support phase resolves conflicts.
    worktrees: Option<bool>,
    /// Attempts, and the delay in seconds.
    retry: Option<(u8, u8)>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Standard,
    Exec,
    Gate,
    /// A gate at which a person judges.
    HumanGate,
    /// A phase that runs a team, which may wait for people.
    Team,
}

/// A team to be.
#[derive(Debug, Clone)]
pub(crate) struct Team {
    main: Vec<Shape>,
    support: Vec<Shape>,
}

fn shape() -> impl Strategy<Value = Shape> {
    let kind = prop_oneof![1 => Just(Kind::Standard), 1 => Just(Kind::Exec), 2 => Just(Kind::Gate), 1 => Just(Kind::HumanGate), 1 => Just(Kind::Team)];
    (kind, vec(any::<Index>(), 0..4), vec(any::<Index>(), 0..5), 1u8..=5, conditions()).prop_map(
        |(kind, depends_on, route_to, budget, conditions)| Shape {
            kind,
            depends_on,
            route_to,
            budget,
            conditions,
        },
    )
}

fn conditions() -> impl Strategy<Value = Conditions> {
    let some = |range| prop::option::weighted(0.2, range);
    let retry = prop::option::weighted(0.2, (1u8..4, prop_oneof![Just(0u8), Just(5), Just(90)]));
    let worktrees = prop::option::weighted(0.5, any::<bool>());
    (prop::bool::weighted(0.2), some(1u8..5), some(1u8..3), any::<bool>(), worktrees, retry).prop_map(
        |(when, items, max_parallel, continues, worktrees, retry)| Conditions {
            when,
            items,
            max_parallel,
            continues,
            worktrees,
            retry,
        },
    )
}

/// Mostly small teams, where things meet; some of up to 200 phases.
pub(crate) fn team() -> impl Strategy<Value = Team> {
    let main = prop_oneof![12 => vec(shape(), 1..12), 4 => vec(shape(), 12..40), 1 => vec(shape(), 40..194)];
    (main, vec(shape(), 0..6)).prop_map(|(main, support)| Team { main, support })
}

impl Team {
    /// A wide team of many phases without gates.
    pub(crate) fn layers(phases: usize) -> Self {
        let shape = |_| Shape {
            kind: Kind::Standard,
            depends_on: Vec::new(),
            route_to: Vec::new(),
            budget: 1,
            conditions: Conditions::default(),
        };
        Self { main: (0..phases).map(shape).collect(), support: Vec::new() }
    }

    /// The team, by way of its team.yml.
    pub(crate) fn workflow(&self) -> Arc<ValidatedWorkflow> {
        let mut yml = "name: \"@t/t\"\nworkflow:\n  phases:\n".to_owned();
        let wide = self.main.iter().all(|shape| shape.depends_on.is_empty()) && self.main.len() > 1000;
        let is_gate = |shape: &Shape| matches!(shape.kind, Kind::Gate | Kind::HumanGate);
        let resolver = self.support.iter().position(|shape| !is_gate(shape)).map(|n| format!("s{n}"));
        let mut upstream: Vec<BTreeSet<usize>> = Vec::new();
        for (n, shape) in self.main.iter().enumerate() {
            let direct: BTreeSet<usize> = match n {
                0 => BTreeSet::new(),
                _ if wide => [1, 50, 99].iter().filter_map(|back| (n - n % 100).checked_sub(*back)).collect(),
                _ => shape.depends_on.iter().map(|index| index.index(n)).collect(),
            };
            let all: BTreeSet<usize> = if wide {
                BTreeSet::new()
            } else {
                direct.iter().flat_map(|&d| upstream[d].iter().copied().chain([d])).collect()
            };
            let targets: Vec<String> =
                all.iter().map(|d| format!("m{d}")).chain(self.supports(None)).collect();
            let depends: Vec<String> = direct.iter().map(|d| format!("m{d}")).collect();
            write_phase(&mut yml, &format!("m{n}"), shape, &depends, &targets, resolver.as_deref());
            upstream.push(all);
        }
        if !self.support.is_empty() {
            yml.push_str("  support:\n");
        }
        for (n, shape) in self.support.iter().enumerate() {
            write_phase(&mut yml, &format!("s{n}"), shape, &[], &self.supports(Some(n)), None);
        }
        let checked = check(&yml, &NoFiles);
        Arc::new(checked.workflow.unwrap_or_else(|| panic!("{:#?}\n{yml}", checked.diagnostics)))
    }

    fn supports(&self, but: Option<usize>) -> Vec<String> {
        (0..self.support.len()).filter(|n| Some(*n) != but).map(|n| format!("s{n}")).collect()
    }
}

fn write_phase(
    yml: &mut String,
    name: &str,
    shape: &Shape,
    depends_on: &[String],
    targets: &[String],
    resolver: Option<&str>,
) {
    let kind = match shape.kind {
        Kind::Standard => "standard",
        Kind::Exec => "exec",
        Kind::Gate => "gate",
        Kind::HumanGate => "hug",
        Kind::Team => "team",
    };
    let _ = writeln!(yml, "    - name: {name}\n      type: {kind}");
    if !depends_on.is_empty() {
        let _ = writeln!(yml, "      depends_on: [{}]", depends_on.join(", "));
    }
    let Conditions { when, items, max_parallel, continues, worktrees, retry } = &shape.conditions;
    let is_gate = matches!(shape.kind, Kind::Gate | Kind::HumanGate);
    if *when {
        yml.push_str("      when: 'true'\n");
    }
    if let Some(items) = items.filter(|_| !is_gate) {
        let worktrees = worktrees.filter(|_| name.starts_with('m'));
        let _ = writeln!(yml, "      for_each: '[1]'\n      max_items: {items}");
        if let Some(most) = max_parallel {
            let _ = writeln!(yml, "      max_parallel: {most}");
        }
        if *continues {
            yml.push_str("      on_item_failure: continue\n");
        }
        if let Some(resolves) = worktrees {
            yml.push_str("      workspace: worktree\n");
            if let Some(resolver) = resolver.filter(|resolver| resolves && *resolver != name) {
                let _ = writeln!(yml, "      on_conflict: {resolver}");
            }
        }
    }
    if let Some((attempts, delay)) = retry.filter(|_| !is_gate) {
        let delay = if delay == 0 { String::new() } else { format!(", delay: {delay}s, backoff: 2") };
        let _ = writeln!(yml, "      retry: {{attempts: {attempts}{delay}}}");
    }
    match shape.kind {
        Kind::Standard => {}
        Kind::Team => yml.push_str("      team: '@t/inner'\n"),
        Kind::Exec => yml.push_str("      commands: [{name: c, run: 'true'}]\n"),
        Kind::Gate | Kind::HumanGate => {
            if shape.kind == Kind::HumanGate {
                yml.push_str("      review: {reviewer: ann}\n");
            }
            let chosen: BTreeSet<&str> = match targets {
                [] => BTreeSet::new(),
                targets => shape.route_to.iter().map(|index| index.get(targets).as_str()).collect(),
            };
            let chosen: Vec<&str> = chosen.into_iter().collect();
            let _ = writeln!(
                yml,
                "      route_to: [{}]\n      max_iterations: {}",
                chosen.join(", "),
                shape.budget
            );
        }
    }
}
