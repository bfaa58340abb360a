//! `cliq trigger`

use std::collections::BTreeSet;
use std::io::Read;
use std::process::ExitCode;

use camino::Utf8Path;
use cliq_model::{FiringFilter, FiringState, TriggerStore};
use cliq_store::SqlStore;
use cliq_triggers::{
    FiringDocument, PlanDocument, PlanOutcome, TestRequest, Trigger, TriggerDocument, TriggersCheck,
    read_file, read_triggers, set_paused, test_trigger, triggers_path, triggers_schema,
};
use cliq_workflow::count_by_severity;
use comfy_table::{ContentArrangement, Table, presets};
use serde_json::{Value, json};

use super::audit::record;
use crate::args::TriggerCommand;
use crate::failure::{Failure, Kind};
use crate::gateway::{self, block_on, home};
use crate::project::host;
use crate::render::diagnostics;
use crate::ui::{self, BOLD, DIM, GREEN, RED, YELLOW, paint};

/// Bundled examples.
const EXAMPLES: [(&str, &str, &str); 2] = [
    (
        "schedule",
        include_str!("trigger/schedule.yml"),
        "save it as triggers.yml in the cliq home; `cliq trigger list` shows the next ticks, `cliq server start` starts them",
    ),
    (
        "github-issue",
        include_str!("trigger/github-issue.yml"),
        "save it as triggers.yml in the cliq home; its first lines name the four steps to set it up",
    ),
];
/// Most bytes of a payload.
const MAX_PAYLOAD: u64 = 8 << 20;

pub(super) fn run(command: &TriggerCommand) -> Result<ExitCode, Failure> {
    match command {
        TriggerCommand::List { json } => list(*json)?,
        TriggerCommand::Show { name, limit, json } => show(name, *limit, *json)?,
        TriggerCommand::Test { name, payload, headers, json } => {
            test(name, payload.as_deref(), headers, *json)?;
        }
        TriggerCommand::Pause { name } => pause(name, true)?,
        TriggerCommand::Resume { name } => pause(name, false)?,
        TriggerCommand::Validate { file, json } => validate(file.as_deref(), *json)?,
        TriggerCommand::Example { name } => {
            let example = EXAMPLES.iter().find(|(known, ..)| known == name);
            let (_, text, hint) =
                example.ok_or_else(|| Failure::usage(format!("there is no example `{name}`")))?;
            ui::raw(text.as_bytes())?;
            ui::hint(hint);
        }
        TriggerCommand::Schema => ui::json(&triggers_schema())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows the problems of a file with errors.
pub(super) fn invalid(checked: &TriggersCheck) -> Failure {
    let path = home().map(|home| triggers_path(&home)).unwrap_or_default();
    diagnostics::show(&checked.text, &path, &checked.diagnostics);
    ui::error(&format!("{path}: {}", count_by_severity(&checked.diagnostics)));
    Failure::reported(Kind::Usage)
}

/// Checks the triggers of a home, before a server starts.
pub(super) fn check(home: &Utf8Path) -> Result<(), Failure> {
    let checked =
        read_file(home).map_err(|error| Failure::failed(format!("cannot read the triggers: {error}")))?;
    if checked.has_errors() { Err(invalid(&checked)) } else { Ok(()) }
}

/// Warns of teams that are not on this machine: their triggers would start nothing.
fn warn_of_unknown_teams<'a>(triggers: impl IntoIterator<Item = &'a Trigger>) {
    let mut seen = BTreeSet::new();
    for trigger in triggers {
        if let Some(team) = &trigger.run.team
            && seen.insert(team)
            && let Err(error) = host().find_team(team.as_str())
        {
            ui::warning(&format!("{}: {error}", trigger.name));
        }
    }
}

/// Reads the triggers of this home.
fn triggers() -> Result<Vec<Trigger>, Failure> {
    let checked =
        read_file(&home()?).map_err(|error| Failure::failed(format!("cannot read the triggers: {error}")))?;
    if checked.has_errors() {
        return Err(invalid(&checked));
    }
    Ok(checked.triggers)
}

fn find<'a>(triggers: &'a [Trigger], name: &str) -> Result<&'a Trigger, Failure> {
    triggers.iter().find(|trigger| trigger.name == name).ok_or_else(|| {
        let names: Vec<&str> = triggers.iter().map(|trigger| trigger.name.as_str()).collect();
        let hint = match cliq_workflow::nearest(name, names) {
            Some(near) => format!("did you mean {near}?"),
            None => "`cliq trigger list` shows those there are".to_owned(),
        };
        Failure::usage(format!("there is no trigger `{name}`")).hint(hint)
    })
}

async fn document(store: &SqlStore, trigger: &Trigger) -> Result<TriggerDocument, Failure> {
    let row = store.trigger_row(&trigger.name).await?;
    let filter = FiringFilter { trigger: Some(trigger.name.clone()), limit: 1, ..FiringFilter::default() };
    let last = store.firings(&filter).await?.pop();
    Ok(TriggerDocument::new(trigger, row.as_ref(), last, cliq_fs::now()))
}

fn list(as_json: bool) -> Result<(), Failure> {
    let triggers = triggers()?;
    let documents = block_on(async {
        let store = gateway::open().await?;
        let mut documents = Vec::new();
        for trigger in &triggers {
            documents.push(document(&store, trigger).await?);
        }
        Ok(documents)
    })?;
    if as_json {
        return Ok(ui::json(&json!({"triggers": documents}))?);
    }
    if documents.is_empty() {
        let path = triggers_path(&home()?);
        return Ok(ui::line(format!("no triggers: `cliq trigger example > {path}` writes a first one"))?);
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["NAME", "STATE", "SOURCE", "NEXT", "LAST"]);
    for document in &documents {
        let state = match (&document.problem, document.paused) {
            (_, true) => "paused",
            (Some(_), _) => "error",
            _ => "active",
        };
        let last = document
            .last
            .as_ref()
            .map_or_else(|| "never".to_owned(), |last| format!("{} {}", last.state.as_str(), last.at));
        let source = format!("{}: {}", document.kind.as_str(), ui::plain(&document.source));
        let next = document.next.first().map_or("-", String::as_str);
        table.add_row([document.name.as_str(), state, &source, next, &last]);
    }
    ui::line(table.to_string())?;
    for document in documents.iter().filter(|document| document.problem.is_some()) {
        ui::warning(&format!("{}: {}", document.name, document.problem.as_deref().unwrap_or_default()));
    }
    Ok(())
}

fn show(name: &str, limit: u32, as_json: bool) -> Result<(), Failure> {
    let triggers = triggers()?;
    let trigger = find(&triggers, name)?;
    let (document, firings) = block_on(async {
        let store = gateway::open().await?;
        let filter = FiringFilter { trigger: Some(name.to_owned()), limit, ..FiringFilter::default() };
        let firings = store.firings(&filter).await?.into_iter().map(FiringDocument::from).collect::<Vec<_>>();
        Ok((document(&store, trigger).await?, firings))
    })?;
    if as_json {
        return Ok(ui::json(&json!({"trigger": document, "firings": firings}))?);
    }
    let state = if document.paused { paint(YELLOW, "paused") } else { paint(GREEN, "active") };
    ui::line(format!("{} {state}", paint(BOLD, &document.name)))?;
    let rows = [
        ("source", Some(format!("{}: {}", document.kind.as_str(), document.source))),
        ("starts", document.team.clone().or_else(|| Some("the team of the project".to_owned()))),
        ("project", document.project.clone()),
        ("preset", document.preset.clone()),
        ("address", document.path.clone()),
        (
            "group",
            document
                .group
                .as_ref()
                .map(|group| format!("{group} ({})", document.policy.as_deref().unwrap_or_default())),
        ),
        ("problem", document.problem.clone()),
    ];
    let when = document.when.iter().map(|when| ("when", Some(when.clone())));
    let next = document.next.iter().map(|next| ("next", Some(next.clone())));
    for (key, value) in rows.into_iter().chain(when).chain(next) {
        if let Some(value) = value {
            ui::line(format!("{} {}", paint(DIM, format!("{key:>10}")), ui::plain(&value)))?;
        }
    }
    ui::line("")?;
    if firings.is_empty() {
        return Ok(ui::line("no firings")?);
    }
    for firing in &firings {
        let style = match firing.state {
            FiringState::Started => GREEN,
            FiringState::Failed => RED,
            FiringState::Pending => YELLOW,
            FiringState::Skipped => DIM,
        };
        let outcome = match (&firing.run_id, &firing.reason) {
            (Some(run), _) => format!("run {run}"),
            (None, reason) => reason.clone().unwrap_or_default(),
        };
        let line = format!(
            "{:>6} {} {} {}: {}",
            firing.id,
            firing.at,
            paint(style, firing.state.as_str()),
            ui::plain(&firing.cause),
            ui::plain(&outcome)
        );
        ui::line(line)?;
    }
    Ok(())
}

fn read_payload(file: &Utf8Path) -> Result<Value, Failure> {
    let text = if file == "-" {
        let mut text = String::new();
        std::io::stdin().take(MAX_PAYLOAD).read_to_string(&mut text)?;
        text
    } else {
        cliq_fs::read_text(file, MAX_PAYLOAD).map_err(|error| Failure::usage(error.to_string()))?
    };
    serde_json::from_str(&text).map_err(|error| Failure::usage(format!("{file} is not JSON: {error}")))
}

fn test(name: &str, payload: Option<&Utf8Path>, headers: &[String], as_json: bool) -> Result<(), Failure> {
    let triggers = triggers()?;
    let trigger = find(&triggers, name)?;
    let mut request = match payload {
        Some(file) => TestRequest::from_payload(read_payload(file)?)
            .map_err(|error| Failure::usage(format!("{file} is not a payload: {error}")))?,
        None => TestRequest::default(),
    };
    for header in headers {
        let (name, value) = header.split_once(':').ok_or_else(|| {
            Failure::usage(format!("{header:?} is not a header")).hint("write `NAME: VALUE`")
        })?;
        request.headers.insert(name.trim().to_owned(), value.trim().to_owned());
    }
    let document = test_trigger(trigger, &request, cliq_fs::now());
    if document.outcome == PlanOutcome::Run {
        warn_of_unknown_teams([trigger]);
    }
    if as_json {
        return Ok(ui::json(&document)?);
    }
    print(&document)?;
    if payload.is_none() && document.outcome != PlanOutcome::Run {
        ui::hint("`--payload FILE` gives what the trigger works with, `--header` adds headers of a delivery");
    }
    Ok(())
}

fn print(document: &PlanDocument) -> Result<(), Failure> {
    let reason = document.reason.as_deref().map(ui::plain).unwrap_or_default();
    match document.outcome {
        PlanOutcome::Run => {}
        PlanOutcome::Skip => return Ok(ui::line(format!("{}: {reason}", paint(YELLOW, "no run")))?),
        PlanOutcome::Fail => return Ok(ui::line(format!("{}: {reason}", paint(RED, "no run, an error")))?),
    }
    let title = document.title.as_deref().map(ui::plain).unwrap_or_default();
    ui::line(format!("{}: {}", paint(GREEN, "a run would start"), paint(BOLD, title)))?;
    let group = document
        .group
        .as_ref()
        .map(|group| format!("{group} ({})", document.policy.as_deref().unwrap_or_default()));
    let mut rows = vec![
        ("team".to_owned(), document.team.clone()),
        ("project".to_owned(), document.project.clone()),
        ("agent".to_owned(), document.agent.clone()),
        ("group".to_owned(), group),
    ];
    rows.extend(document.repos.iter().map(|repo| ("repository".to_owned(), Some(repo.clone()))));
    rows.extend(document.inputs.iter().map(|(name, value)| (format!("input {name}"), Some(value.clone()))));
    for (key, value) in rows {
        if let Some(value) = value {
            ui::line(format!("{} {}", paint(DIM, format!("{key:>12}")), ui::plain(&value)))?;
        }
    }
    if let Some(requirement) = &document.requirement {
        ui::line(format!("\n{}", ui::plain(requirement)))?;
    }
    Ok(())
}

fn pause(name: &str, is_paused: bool) -> Result<(), Failure> {
    let triggers = triggers()?;
    let trigger = find(&triggers, name)?;
    block_on(async {
        let store = gateway::open().await?;
        if !set_paused(store.as_ref(), trigger, is_paused).await? {
            return Err(Failure::refused(format!("no server has seen the trigger `{name}` yet")).hint(
                "`cliq server start` starts one; it reads the file again within a second after a change",
            ));
        }
        let verb = if is_paused { "trigger pause" } else { "trigger resume" };
        record(store.as_ref(), verb, name).await;
        Ok(())
    })?;
    let word = if is_paused { "paused" } else { "active again" };
    Ok(ui::line(format!("trigger {name} is {word}"))?)
}

fn validate(file: Option<&Utf8Path>, as_json: bool) -> Result<(), Failure> {
    let home = home()?;
    let path = file.map_or_else(|| triggers_path(&home), Utf8Path::to_owned);
    let text = std::fs::read_to_string(&path).map_err(|error| {
        Failure::usage(format!("cannot read {path}: {error}"))
            .hint("`cliq trigger example` prints a first one")
    })?;
    let settings = cliq_settings::Settings::load(Some(&home), None)?;
    let secrets = cliq_settings::TriggerSettings::read(&settings).secrets;
    let checked = read_triggers(&text, &|name| secrets.get(name).cloned());
    if as_json {
        let rows: Vec<_> = checked.diagnostics.iter().map(|d| json!({
            "code": d.code, "severity": d.severity, "message": d.message, "file": path, "line": d.span.line, "column": d.span.column, "help": d.help,
        })).collect();
        ui::json(&json!({"valid": !checked.has_errors(), "file": path, "diagnostics": rows}))?;
    } else {
        diagnostics::show(&text, &path, &checked.diagnostics);
    }
    if checked.has_errors() {
        ui::error(&format!("{path}: {}", count_by_severity(&checked.diagnostics)));
        return Err(Failure::reported(Kind::Usage));
    }
    warn_of_unknown_teams(&checked.triggers);
    if !as_json {
        let count = match checked.triggers.len() {
            1 => "1 trigger".to_owned(),
            n => format!("{n} triggers"),
        };
        ui::line(format!("{} {path} ({count})", paint(GREEN, "valid:")))?;
    }
    Ok(())
}
