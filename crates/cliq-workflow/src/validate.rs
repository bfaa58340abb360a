//! From a raw team to a validated one: every rule of team.yml that looks beyond one field (docs/team-yml.md).

mod connectors;
mod expressions;
mod gates;
mod outputs;
mod placement;
mod references;
mod skills;
mod templates;
mod top;

use std::collections::{BTreeMap, HashMap};

use cliq_protocol::{PhaseKind, PhaseName};

use crate::TeamFiles;
use crate::conditions::RawRule;
use crate::graph::Graph;
use crate::model::{Command, ForEach, Notify, Phase, PhaseId, RuleCondition, RuleOutcome, ValidatedWorkflow};
use crate::raw::{RawPhase, RawTeam};
use cliq_document::{Diagnostic, Severity};

/// Maximum number of phases. Rules about upstream phases look at pairs of phases.
const MAX_PHASES: usize = 20_000;

/// State that the rules share.
pub(crate) struct Context<'a> {
    pub(crate) team: &'a RawTeam<'a>,
    pub(crate) files: &'a dyn TeamFiles,
    /// The first phase of each name.
    pub(crate) index: HashMap<&'a str, usize>,
    pub(crate) graph: Graph,
}

impl Context<'_> {
    pub(crate) fn phases(&self) -> &[RawPhase<'_>] {
        &self.team.phases
    }

    /// All names, for remedies.
    pub(crate) fn names(&self, keep: impl Fn(&RawPhase<'_>) -> bool) -> Vec<&str> {
        self.phases().iter().filter(|p| keep(p)).map(|p| p.name.value.as_str()).collect()
    }
}

/// Checks everything. Time is linear in the size of the team and quadratic in the number of phases, of which there are at most 20,000.
/// There is a workflow if and only if there is no error.
pub(crate) fn validate(
    team: &RawTeam<'_>,
    files: &dyn TeamFiles,
    problems: &mut Vec<Diagnostic>,
) -> Option<ValidatedWorkflow> {
    if let Some(phase) = team.phases.get(MAX_PHASES) {
        let message = format!("the team has {} phases; {MAX_PHASES} is the most", team.phases.len());
        let help = "work on many items with one phase that has `for_each`, or with sub-teams";
        problems.push(Diagnostic::error("too-many-phases", phase.name.span, message, help));
        return None;
    }
    let mut index = HashMap::new();
    for (i, phase) in team.phases.iter().enumerate() {
        index.entry(phase.name.value.as_str()).or_insert(i);
    }
    let edges = team.phases.iter().enumerate().flat_map(|(after, phase)| {
        let index = &index;
        phase.record.texts("depends_on").into_iter().filter_map(move |name| {
            index.get(name.value.as_str()).filter(|&&before| before != after).map(|&before| (before, after))
        })
    });
    let graph = Graph::new(team.phases.len(), edges.collect::<Vec<_>>().into_iter());
    let cx = Context { team, files, index, graph };

    let details = top::check(&cx, problems);
    references::check(&cx, problems);
    skills::check(&cx, problems);
    outputs::check(&cx, problems);
    placement::check(&cx, problems);
    connectors::check(&cx, problems);
    let targets = gates::check(&cx, problems);
    templates::check(&cx, &targets, problems);
    expressions::check(&cx, &targets, problems);
    if problems.iter().any(|p| p.severity == Severity::Error) {
        return None;
    }
    build(&cx, details?, &targets)
}

/// Puts the workflow together. Every lookup succeeds once the rules hold.
fn build(cx: &Context<'_>, details: top::Details, targets: &[Vec<usize>]) -> Option<ValidatedWorkflow> {
    let id = |name: &str| cx.index.get(name).map(|&i| PhaseId::new(i));
    let mut phases = Vec::with_capacity(cx.phases().len());
    for (i, raw) in cx.phases().iter().enumerate() {
        let kind = raw.kind?;
        let rules = raw
            .record
            .map("rules")
            .iter()
            .filter_map(|entry| Some((entry.key.clone(), gates::rule(&entry.value.scalar()?, &id)?)))
            .collect();
        let iterations = raw.record.integer("max_iterations").and_then(|n| u32::try_from(n).ok());
        let json_list = |name: &str| match raw.json(name) {
            Some(serde_json::Value::Array(items)) => items,
            _ => Vec::new(),
        };
        let text_map = |name: &str| -> BTreeMap<String, String> {
            let entries = raw.record.map(name);
            entries.iter().filter_map(|e| Some((e.key.clone(), e.value.scalar()?))).collect()
        };
        let mut published = json_list("targets");
        published.extend(json_list("target_entries"));
        phases.push(Phase {
            name: PhaseName::parse(&raw.name.value).ok()?,
            kind,
            support: raw.support,
            depends_on: raw.record.texts("depends_on").iter().filter_map(|d| id(&d.value)).collect(),
            dependents: Vec::new(),
            agent: match kind {
                PhaseKind::Standard | PhaseKind::Gate => raw.agent.as_ref().map(|a| a.value.clone()),
                _ => None,
            },
            role: raw.record.text("role").unwrap_or_else(|| raw.name.clone()).value,
            model: raw.record.text("model").map(|m| m.value),
            parameters: raw.parameters.clone(),
            outputs: raw.outputs.clone(),
            agent_tools: raw.agent_tools.clone(),
            skills: raw.skills.clone(),
            permissions: raw.permissions.clone(),
            conversation: raw.conversation,
            config: text_map("config"),
            action: raw.record.text("action").map(|a| a.value),
            commands: raw.commands.iter().map(command).collect(),
            max_iterations: if kind.is_gate() { iterations.unwrap_or(3) } else { 1 },
            route_targets: targets[i].iter().map(|&t| PhaseId::new(t)).collect(),
            rules,
            conditions: raw.conditions.rules.iter().filter_map(|rule| rule_condition(rule, &id)).collect(),
            when: raw.conditions.when.as_ref().map(|when| when.value.clone()),
            for_each: for_each(raw, &id),
            retry: raw.conditions.retry.clone(),
            inputs_files: raw.record.texts("inputs_files").into_iter().map(|glob| glob.value).collect(),
            review: raw.json("review"),
            sources: json_list("sources"),
            targets: published,
            team: raw.record.text("team").map(|t| t.value),
            inputs: text_map("inputs"),
            timeout: raw.timeout,
            budget: raw.budget,
            sandbox: raw.sandbox.clone(),
            notify: notify(raw),
        });
    }
    for i in 0..phases.len() {
        for before in phases[i].depends_on.clone() {
            phases[before.index()].dependents.push(PhaseId::new(i));
        }
    }
    let index = phases.iter().enumerate().map(|(i, p)| (p.name.clone(), PhaseId::new(i))).collect();
    Some(details.into_workflow(phases, index))
}

fn command(raw: &crate::raw::RawCommand<'_>) -> Command {
    Command {
        name: raw.name.value.clone(),
        run: raw.run.value.clone(),
        condition: raw.condition.as_ref().map(|c| c.value.clone()),
        scope: raw.scope,
        escalate_on_fail: raw.escalate_on_fail.unwrap_or(true),
        required: raw.required,
        timeout: raw.timeout,
    }
}

fn for_each(raw: &RawPhase<'_>, id: &dyn Fn(&str) -> Option<PhaseId>) -> Option<ForEach> {
    let number = |field: &str| raw.record.integer(field).and_then(|n| u32::try_from(n).ok());
    Some(ForEach {
        items: raw.conditions.for_each.as_ref()?.value.clone(),
        max_items: number("max_items").unwrap_or(20),
        max_parallel: number("max_parallel"),
        continues_on_failure: raw.record.text("on_item_failure").is_some_and(|word| word.value == "continue"),
        worktrees: raw.record.text("workspace").is_some_and(|word| word.value == "worktree"),
        on_conflict: raw.record.text("on_conflict").and_then(|name| id(&name.value)),
    })
}

fn rule_condition(rule: &RawRule, id: &dyn Fn(&str) -> Option<PhaseId>) -> Option<RuleCondition> {
    let to = match rule.to.value.as_str() {
        "PASS" => RuleOutcome::Pass,
        other => RuleOutcome::Rule(gates::rule(other, id)?),
    };
    Some(RuleCondition { condition: rule.condition.value.clone(), to, reason: rule.reason.clone() })
}

fn notify(raw: &RawPhase<'_>) -> Vec<Notify> {
    let mut scratch = Vec::new();
    raw.record
        .map("notify")
        .iter()
        .filter_map(|entry| {
            let record = cliq_document::Record::read(
                &entry.value,
                crate::fields::NOTIFY,
                "a notification",
                &mut scratch,
            )?;
            Some(Notify {
                event: entry.key.clone(),
                agent: record.text("agent")?.value,
                channel: record.text("channel").map(|c| c.value),
                message: record.text("message").map(|m| m.value),
            })
        })
        .collect()
}
