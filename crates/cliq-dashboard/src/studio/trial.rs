//! Trial of a draft with scripted agents: which phases run, with which prompts. Nothing of the draft is executed.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use cliq_model::Scope;
use cliq_project::{DraftName, ScriptedReport, UnsavedTexts};
use cliq_protocol::PhaseKind;
use cliq_web::{
    Core, DraftCommandResult, DraftReply, DraftTrial, Form, Path, Problem, draft_name, try_draft,
    validate_draft,
};
use cliq_workflow::{Phase, ValidatedWorkflow};
use maud::{Markup, html};

use super::{tabs, text_of, warning};
use crate::elements::{badge, output};
use crate::layout;
use crate::page::{Page, PageError, show};
use crate::visitor::Visitor;

/// Prefixes of the names of fields.
const INPUT: &str = "input.";
const REPLY: &str = "reply.";
const COMMAND: &str = "command.";
/// Line between two replies.
const SEPARATOR: &str = "---";

/// Page with the form.
pub(crate) async fn page(visitor: Visitor, State(core): State<Arc<Core>>, Path(draft): Path<String>) -> Page {
    visitor.demand(Scope::Edit)?;
    let name = draft_name(&draft)?;
    let workflow = workflow(&core, &name).await?;
    let content = content(&name, workflow.as_ref(), &BTreeMap::new(), None, None);
    show(&visitor, &format!("Try {name} · Studio"), "/studio", &content)
}

/// The team of a draft; `None` if it has errors.
async fn workflow(core: &Core, name: &DraftName) -> Result<Option<ValidatedWorkflow>, Problem> {
    let name = name.clone();
    core.blocking(move |host| Ok(validate_draft(host, &name, &UnsavedTexts::new())?.check.workflow)).await
}

fn content(
    name: &DraftName,
    workflow: Option<&ValidatedWorkflow>,
    given: &BTreeMap<String, String>,
    report: Option<&ScriptedReport>,
    wrong: Option<&Problem>,
) -> Markup {
    html! {
        h1 { "Try " (name) }
        (tabs(name, "/try", true))
        p { "The team runs with scripted agents, as it is saved: no model is asked, and none of its commands and programs runs. You see which phases run, and what each agent would be asked." }
        (warning(wrong))
        @match workflow {
            None => { p.warning { "The draft has errors. " a href=(format!("/studio/{name}")) { "Back to the files" } } }
            Some(workflow) => {
                @if let Some(report) = report { (result(report)) }
                (form(name, workflow, given))
            }
        }
    }
}

/// Whether an agent works in a phase whose replies can be written.
fn has_replies(phase: &Phase) -> bool {
    phase.kind != PhaseKind::Exec
        && !(phase.kind == PhaseKind::Gate && phase.agent.as_deref() == Some("rules"))
}

fn form(name: &DraftName, workflow: &ValidatedWorkflow, given: &BTreeMap<String, String>) -> Markup {
    let value = |field: &str| given.get(field).map(String::as_str).unwrap_or_default();
    let is_filled = |prefix: &str| {
        given.iter().any(|(field, value)| field.starts_with(prefix) && !value.trim().is_empty())
    };
    let phases: Vec<&Phase> = workflow.phases().map(|(_, phase)| phase).collect();
    html! {
        form.stack method="post" action=(format!("/studio/{name}/try")) data-slow="The team runs" {
            label for="requirement" { "Requirement" }
            textarea #requirement name="requirement" rows="3" placeholder="Trial of the team." { (value("requirement")) }
            @for input in &workflow.inputs {
                @let field = format!("{INPUT}{}", input.name);
                label for=(field) { "Input " (input.name) }
                input id=(field) name=(field) value=(value(&field)) placeholder=(input.default.clone().unwrap_or_else(|| format!("({})", input.name)));
            }
            details open[is_filled(REPLY)] {
                summary { "Replies of agents and verdicts of gates" }
                div.stack {
                p.hint { "Without a reply an agent hands over a text, and a gate passes. Write one reply for each time that the phase runs, with a line " code { "---" } " between two. Data is a block " code { "```json" } " at the end of a reply." }
                @for phase in phases.iter().filter(|phase| has_replies(phase)) {
                    @let field = format!("{REPLY}{}", phase.name);
                    @let targets: Vec<&str> = phase.route_targets.iter().map(|id| workflow.phase(*id).name.as_str()).collect();
                    label for=(field) { (phase.name) @if phase.kind.is_gate() { span.quiet { " gate" } } }
                    @if phase.kind.is_gate() {
                        p.hint id=(format!("{field}-about")) { "A line such as " code { "pass" } ", " code { "escalate: the reason" } @for target in &targets { ", " code { (target) ": the reason" } } "." }
                    }
                    textarea id=(field) name=(field) rows="2" aria-describedby=[phase.kind.is_gate().then(|| format!("{field}-about"))] { (value(&field)) }
                }
                }
            }
            @if phases.iter().any(|phase| !phase.commands.is_empty()) {
                details open[is_filled(COMMAND)] {
                    summary { "Results of commands" }
                    div.stack {
                    p.hint { "Commands do not run, and pass. Write " code { "pass" } " or " code { "fail" } " for each time, such as " code { "fail pass" } "." }
                    @for phase in &phases {
                        @for command in &phase.commands {
                            @let field = format!("{COMMAND}{}.{}", phase.name, command.name);
                            label for=(field) { (phase.name) ": " (command.name) " " code.quiet { (command.run.lines().next().unwrap_or_default()) } }
                            input id=(field) name=(field) value=(value(&field)) placeholder="pass";
                        }
                    }
                    }
                }
            }
            button.primary type="submit" { "Try it" }
        }
    }
}

fn result(report: &ScriptedReport) -> Markup {
    let end = report.end.as_deref().unwrap_or("unclear");
    html! {
        section #result aria-labelledby="result-title" {
            h2 #result-title { "Result " (badge(end)) }
            @if let Some(reason) = &report.reason { p.sentence { (reason) } }
            p { "Phases in the order of their starts: " @for (n, phase) in report.order.iter().enumerate() { @if n > 0 { " → " } strong { (phase) } } }
            table {
                thead { tr { th { "Phase" } th { "Type" } th { "State" } th.number { "Starts" } th { "Message" } } }
                tbody {
                    @for phase in &report.phases {
                        tr {
                            td data-label="phase" { (phase.name) }
                            td data-label="type" { (phase.kind) }
                            td data-label="state" { (badge(phase.status.as_str())) }
                            td.number data-label="starts" { (phase.runs) }
                            td.why { (phase.message.as_deref().unwrap_or_default()) }
                        }
                    }
                }
            }
            @if !report.verdicts.is_empty() {
                h3 { "Verdicts" }
                ul {
                    @for verdict in &report.verdicts {
                        li { strong { (verdict.gate) } ": " (verdict.outcome) @if let Some(target) = &verdict.target { " to " (target) } @if let Some(reason) = &verdict.reason { " " span.quiet { (reason) } } }
                    }
                }
            }
            @if !report.commands.is_empty() {
                h3 { "Commands" }
                ul { @for command in &report.commands { li { strong { (command.phase) ": " (command.command) } " " @if command.pass { "pass" } @else { "fail" } span.quiet { " (did not run)" } } } }
            }
            h3 { "Prompts" }
            @for activation in report.activations.iter().filter(|activation| activation.prompt.is_some()) {
                details.card {
                    summary {
                        (activation.phase) @if let Some(item) = activation.item { ", item " (item) } ", activation " (activation.activation)
                        span.quiet { " for the agent " (activation.agent) }
                    }
                    (output(&format!("Prompt of {}", activation.phase), activation.prompt.as_deref().unwrap_or_default()))
                }
            }
            @for warning in &report.warnings { p.warning { (warning) } }
        }
    }
}

/// Runs the draft, and shows what happened.
pub(crate) async fn submit(
    visitor: Visitor,
    State(core): State<Arc<Core>>,
    Path(draft): Path<String>,
    form: Form,
) -> Result<Response, PageError> {
    visitor.demand(Scope::Edit)?;
    let name = draft_name(&draft)?;
    let workflow = workflow(&core, &name).await?;
    let title = format!("Try {name} · Studio");
    let tried = match workflow.as_ref().map(|workflow| read(workflow, &form)) {
        Some(Ok(trial)) => Box::pin(try_draft(core.host(), &name, trial)).await,
        Some(Err(problem)) => Err(problem),
        None => Err(Problem::conflict("the draft has errors")),
    };
    let given: BTreeMap<String, String> = form.0.iter().cloned().collect();
    Ok(match tried {
        Ok(report) => {
            let content = content(&name, workflow.as_ref(), &given, Some(&report), None);
            layout::page(&visitor, &title, Some("/studio"), &content).into_response()
        }
        Err(problem) => {
            let content = content(&name, workflow.as_ref(), &given, None, Some(&problem));
            (problem.status(), layout::page(&visitor, &title, Some("/studio"), &content)).into_response()
        }
    })
}

fn read(workflow: &ValidatedWorkflow, form: &Form) -> Result<DraftTrial, Problem> {
    let mut trial = DraftTrial {
        requirement: text_of(form, "requirement").unwrap_or_default(),
        inputs: BTreeMap::new(),
        replies: BTreeMap::new(),
        commands: BTreeMap::new(),
    };
    let mut wrong = Vec::new();
    for input in &workflow.inputs {
        let value = text_of(form, &format!("{INPUT}{}", input.name)).filter(|value| !value.is_empty());
        trial.inputs.extend(value.map(|value| (input.name.clone(), value)));
    }
    for (_, phase) in workflow.phases() {
        let text = text_of(form, &format!("{REPLY}{}", phase.name)).unwrap_or_default();
        if !text.trim().is_empty() {
            let parts = if phase.kind.is_gate() { verdicts(&text) } else { replies(&text) };
            trial.replies.insert(phase.name.to_string(), parts);
        }
        for command in &phase.commands {
            let text =
                text_of(form, &format!("{COMMAND}{}.{}", phase.name, command.name)).unwrap_or_default();
            let mut results = Vec::new();
            for word in text.split([' ', ',', '\n']).filter(|word| !word.is_empty()) {
                match word {
                    "pass" => results.push(DraftCommandResult::Pass),
                    "fail" => results.push(DraftCommandResult::Fail),
                    _ => wrong.push(format!(
                        "{}: {}: a result is `pass` or `fail`, here is {word:?}",
                        phase.name, command.name
                    )),
                }
            }
            if !results.is_empty() {
                trial
                    .commands
                    .entry(phase.name.to_string())
                    .or_default()
                    .insert(command.name.clone(), results);
            }
        }
    }
    if wrong.is_empty() {
        Ok(trial)
    } else {
        Err(Problem::unprocessable("a result of a command is wrong", wrong))
    }
}

/// Replies of an agent, one after the other.
fn replies(text: &str) -> Vec<DraftReply> {
    let mut parts = vec![String::new()];
    for line in text.lines() {
        if line.trim() == SEPARATOR {
            parts.push(String::new());
        } else if let Some(last) = parts.last_mut() {
            last.push_str(line);
            last.push('\n');
        }
    }
    parts.iter().map(|text| reply(text.trim())).collect()
}

/// A reply: its text, and the data of a fenced block of JSON at its end.
fn reply(text: &str) -> DraftReply {
    let fenced = text.strip_suffix("```").and_then(|rest| rest.rsplit_once("```json"));
    let data = fenced.and_then(|(_, block)| serde_json::from_str(block).ok());
    let text = if data.is_some() { fenced.map_or(text, |(before, _)| before.trim_end()) } else { text };
    DraftReply { text: Some(text.to_owned()).filter(|text| !text.is_empty()), data, ..DraftReply::default() }
}

/// Verdicts of a gate, one in each line.
fn verdicts(text: &str) -> Vec<DraftReply> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && *line != SEPARATOR);
    lines
        .map(|line| {
            let (verdict, reason) = line.split_once(':').unwrap_or((line, ""));
            let reason = Some(reason.trim().to_owned()).filter(|reason| !reason.is_empty());
            DraftReply { verdict: Some(verdict.trim().to_owned()), reason, ..DraftReply::default() }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_and_verdicts_are_read_from_their_fields() {
        let texts: Vec<_> =
            replies("one\ntwo\n---\n\nthree\n").into_iter().filter_map(|reply| reply.text).collect();
        assert_eq!(texts, ["one\ntwo", "three"]);
        let with_data = reply("Two.\n\n```json\n{\"n\": 2}\n```");
        assert_eq!((with_data.text.as_deref(), &with_data.data.unwrap()["n"]), (Some("Two."), &2.into()));
        assert_eq!(reply("```json\n[").text.as_deref(), Some("```json\n["));
        let all: Vec<_> = verdicts("writer: too short: really\n\npass\n")
            .into_iter()
            .map(|r| (r.verdict, r.reason))
            .collect();
        assert_eq!(all[0], (Some("writer".to_owned()), Some("too short: really".to_owned())));
        assert_eq!(all[1], (Some("pass".to_owned()), None));
    }
}
