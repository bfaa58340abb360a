//! Reader of triggers: every problem at once, with its place and remedy.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cliq_document::{Diagnostic, Located, Node, Record, Severity, Span, did_you_mean, finish, parse};
use cliq_expr::{Expression, Kind};
use cliq_model::RunState;
use cliq_protocol::{Budget, Profile, TeamName};
use cliq_settings::Secret;
use cliq_workflow::parse_glob;

use super::TriggersCheck;
use super::fields::{AFTER, BUDGET, CONCURRENCY, FILE, FILES, SCHEDULE, TRIGGER, WEBHOOK};
use crate::model::{Concurrency, FileSource, Policy, RunTemplate, Source, Trigger, Webhook};
use crate::presets::Preset;
use crate::schedule::{CatchUp, Schedule};
use crate::signature::Scheme;
use crate::template::{Template, TemplateError};

const EMPTY: &str = "write `triggers:` with a list; `cliq trigger example` prints one";
/// Names of expressions.
const NAMES: [&str; 5] = ["headers", "body", "run", "files", "now"];
/// Sources.
const SOURCES: [&str; 4] = ["schedule", "webhook", "after", "files"];

struct Reader<'a> {
    problems: Vec<Diagnostic>,
    names: BTreeSet<String>,
    /// Scheme of the first trigger of each secret.
    schemes: BTreeMap<String, Scheme>,
    secret: &'a dyn Fn(&str) -> Option<Secret>,
}

impl Reader<'_> {
    fn error(&mut self, code: &'static str, span: Span, message: String, help: impl Into<String>) {
        self.problems.push(Diagnostic::error(code, span, message, help));
    }
}

/// Reads triggers. `secret` returns the secret with a name.
#[must_use]
pub fn read_triggers(text: &str, secret: &dyn Fn(&str) -> Option<Secret>) -> TriggersCheck {
    let mut reader =
        Reader { problems: Vec::new(), names: BTreeSet::new(), schemes: BTreeMap::new(), secret };
    let node = parse(text, EMPTY, &mut reader.problems);
    let record = node.as_ref().and_then(|node| Record::read(node, FILE, "the file", &mut reader.problems));
    let triggers: Vec<Trigger> = record
        .iter()
        .flat_map(|record| record.list("triggers"))
        .filter_map(|node| trigger(node, &mut reader))
        .collect();
    let diagnostics = finish(reader.problems);
    let is_valid = !diagnostics.iter().any(|problem| problem.severity == Severity::Error);
    TriggersCheck {
        triggers: if is_valid { triggers } else { Vec::new() },
        diagnostics,
        text: text.to_owned(),
    }
}

fn trigger(node: &Node, reader: &mut Reader<'_>) -> Option<Trigger> {
    let record = Record::read(node, TRIGGER, "a trigger", &mut reader.problems)?;
    let name = record.text("name");
    if let Some(name) = &name {
        check_name(name, reader);
    }
    let preset = preset(&record, reader);
    let project = record.text("project").map(|text| text.value);
    let (source, overlap) = source(&record, preset, project.as_deref(), reader)?;
    let span = record.text("preset").map_or(record.span, |text| text.span);
    let of_preset = preset.map(|preset| Located { value: preset.when().to_owned(), span });
    let own = record.text("when");
    let mut when = Vec::new();
    // A condition that cannot be read is an error: without it the trigger would fire always.
    for text in of_preset.iter().chain(&own) {
        when.extend(condition(text, &source, reader));
    }
    let run = run(&record, preset, project, &source, reader);
    let concurrency = concurrency(&record, preset, overlap, name.as_ref(), &source, reader);
    Some(Trigger { name: name?.value, source, preset, when, concurrency, run })
}

fn check_name(name: &Located<String>, reader: &mut Reader<'_>) {
    let text = &name.value;
    let is_fine = (1..=64).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    if !is_fine {
        let message = format!("{text:?} cannot be the name of a trigger");
        let help = "a lower-case letter, then lower-case letters, digits and `-`, at most 64";
        reader.error("invalid-name", name.span, message, help);
    } else if !reader.names.insert(text.clone()) {
        let message = format!("trigger `{text}` is there twice");
        reader.error("duplicate-name", name.span, message, "give each a name of its own");
    }
}

fn preset(record: &Record<'_>, reader: &mut Reader<'_>) -> Option<Preset> {
    let word = record.text("preset")?;
    if !record.has("webhook") {
        let help = "add `webhook: {secret: NAME}`";
        reader.error("missing-field", word.span, "a preset needs `webhook`".to_owned(), help);
    }
    Preset::parse(&word.value)
}

/// Reads the source, and the overlap policy of a schedule.
fn source(
    record: &Record<'_>,
    preset: Option<Preset>,
    project: Option<&str>,
    reader: &mut Reader<'_>,
) -> Option<(Source, Option<Policy>)> {
    let named: Vec<&str> = SOURCES.into_iter().filter(|name| record.has(name)).collect();
    let [name] = named[..] else {
        let message = match named.as_slice() {
            [] => "a trigger needs a source".to_owned(),
            several => format!("a trigger has one source, here are {}", several.join(", ")),
        };
        reader.error("source", record.span, message, "write one of `schedule`, `webhook`, `after`, `files`");
        return None;
    };
    let node = record.node(name)?;
    match name {
        "schedule" => schedule(node, reader),
        "webhook" => webhook(node, preset, reader).map(|source| (source, None)),
        "after" => after(node, reader).map(|source| (source, None)),
        _ => files(node, project, reader).map(|source| (source, None)),
    }
}

fn schedule(node: &Node, reader: &mut Reader<'_>) -> Option<(Source, Option<Policy>)> {
    let record = Record::read(node, SCHEDULE, "a schedule", &mut reader.problems)?;
    let word = |name: &str| record.text(name).map(|text| text.value);
    let catch_up = word("catch_up").and_then(|word| CatchUp::parse(&word)).unwrap_or_default();
    let overlap = word("overlap").and_then(|word| Policy::parse(&word)).unwrap_or_default();
    let cron = record.text("cron")?;
    let zone = record.text("timezone");
    match Schedule::parse(&cron.value, zone.as_ref().map(|zone| zone.value.as_str()), catch_up) {
        Ok(schedule) => Some((Source::Schedule(Box::new(schedule)), Some(overlap))),
        Err(message) => {
            let is_zone = message.contains("time zone");
            let span = zone.filter(|_| is_zone).map_or(cron.span, |zone| zone.span);
            let help = if is_zone {
                "names are those of the IANA database"
            } else {
                "write minute, hour, day, month, weekday: `30 6 * * MON-FRI`"
            };
            reader.error("invalid-schedule", span, message, help);
            None
        }
    }
}

fn webhook(node: &Node, preset: Option<Preset>, reader: &mut Reader<'_>) -> Option<Source> {
    let record = Record::read(node, WEBHOOK, "a webhook", &mut reader.problems)?;
    let word = record.text("signature");
    let scheme = word.as_ref().and_then(|word| Scheme::parse(&word.value));
    let scheme = match (scheme, preset) {
        (Some(scheme), Some(preset)) if scheme != preset.scheme() => {
            let span = word.map_or(record.span, |word| word.span);
            let message = format!("the preset is of `{}`", preset.scheme().as_str());
            reader.error("invalid-value", span, message, "leave `signature` out");
            return None;
        }
        (Some(scheme), _) => scheme,
        (None, Some(preset)) => preset.scheme(),
        (None, None) => {
            if !record.has("signature") {
                let help = "add `signature: github`, `gitlab`, `slack`, `hmac` or `hmac-timestamp`";
                reader.error("missing-field", record.span, "a webhook needs `signature`".to_owned(), help);
            }
            return None;
        }
    };
    let secret_name = record.text("secret")?;
    check_secret(&secret_name, scheme, reader);
    let secret = (reader.secret)(&secret_name.value);
    if secret.is_none() {
        let name = &secret_name.value;
        let message = format!("there is no secret `{name}`: requests are refused");
        let help = format!("`cliq settings set -g triggers.secrets.{name} -` reads it from standard input");
        reader.problems.push(Diagnostic::warning("missing-secret", secret_name.span, message, help));
    }
    Some(Source::Webhook(Webhook { scheme, secret_name: secret_name.value, secret }))
}

/// Checks that a secret signs one construction in all triggers.
fn check_secret(secret: &Located<String>, scheme: Scheme, reader: &mut Reader<'_>) {
    let first = *reader.schemes.entry(secret.value.clone()).or_insert(scheme);
    if first.construction() == scheme.construction() {
        return;
    }
    let message = format!(
        "secret `{}` signs different texts in two triggers: one is of `{}`, this one of `{}`",
        secret.value,
        first.as_str(),
        scheme.as_str()
    );
    let help = "give each sender a secret of its own: a captured request of one could pass as another text in the other";
    reader.error("shared-secret", secret.span, message, help);
}

fn after(node: &Node, reader: &mut Reader<'_>) -> Option<Source> {
    let record = Record::read(node, AFTER, "`after`", &mut reader.problems)?;
    let words = record.texts("state");
    let all = || RunState::ALL.into_iter().filter(|state| state.is_final()).collect();
    let mut states: Vec<RunState> = Vec::new();
    for word in &words {
        match RunState::parse(&word.value).filter(|state| state.is_final()) {
            Some(state) => states.push(state),
            None if word.value == "any" => states = all(),
            None => {
                let known = ["completed", "escalated", "failed", "cancelled", "any"];
                let message = format!("{:?} is not a state of an end", word.value);
                reader.error("invalid-value", word.span, message, did_you_mean(&word.value, &known));
            }
        }
    }
    if words.is_empty() {
        states.push(RunState::Completed);
    }
    Some(Source::After { team: record.text("team").map(|text| text.value), states })
}

fn files(node: &Node, project: Option<&str>, reader: &mut Reader<'_>) -> Option<Source> {
    let record = Record::read(node, FILES, "`files`", &mut reader.problems)?;
    let project = record.text("project").map(|text| text.value).or_else(|| project.map(str::to_owned));
    if project.is_none() {
        let help = "add `project:`, a directory with `.cliq` or the id of a registered project";
        reader.error("missing-field", record.span, "`files` needs `project`".to_owned(), help);
    }
    let text = record.text("glob")?;
    let glob = match parse_glob(&text.value) {
        Ok(glob) => glob,
        Err(error) => {
            reader.error(
                "invalid-glob",
                text.span,
                format!("{:?} {}", text.value, error.problem),
                error.help,
            );
            return None;
        }
    };
    let debounce = record.duration("debounce").unwrap_or(Duration::from_secs(2));
    Some(Source::Files(FileSource { project: project?, text: text.value, glob, debounce }))
}

/// Checks the names that an expression reads.
fn check_names<'a>(
    expressions: impl Iterator<Item = &'a Expression>,
    source: &Source,
    span: Span,
    reader: &mut Reader<'_>,
) {
    let known: Vec<&str> = NAMES
        .into_iter()
        .filter(|name| match *name {
            "headers" | "body" => matches!(source, Source::Webhook(_)),
            "run" => matches!(source, Source::After { .. }),
            "files" => matches!(source, Source::Files(_)),
            _ => true,
        })
        .collect();
    for expression in expressions {
        for reference in expression.references() {
            if !known.contains(&reference.root.as_str()) {
                let message = format!(
                    "there is no `{}` in an expression of a {} trigger",
                    reference.root,
                    source.kind().as_str()
                );
                reader.error("unknown-name", span, message, did_you_mean(&reference.root, &known));
            }
        }
    }
}

fn condition(text: &Located<String>, source: &Source, reader: &mut Reader<'_>) -> Option<Expression> {
    match Expression::parse(&text.value) {
        Ok(expression) => {
            check_names(std::iter::once(&expression), source, text.span, reader);
            if !matches!(expression.kind(), Kind::Bool | Kind::Unknown) {
                let message = format!("`when` is {}, not a condition", expression.kind().noun());
                reader.error("not-boolean", text.span, message, "compare it: `body.action == \"opened\"`");
            }
            Some(expression)
        }
        Err(error) => {
            let message = format!("`when` is not an expression: {error}");
            let help = format!("column {} of the expression; it is CEL", error.column);
            reader.error("invalid-expression", text.span, message, help);
            None
        }
    }
}

fn template(
    text: &Located<String>,
    field: &str,
    source: &Source,
    reader: &mut Reader<'_>,
) -> Option<Template> {
    match Template::parse(&text.value) {
        Ok(template) => {
            check_names(template.expressions(), source, text.span, reader);
            Some(template)
        }
        Err(error) => {
            let help = match error {
                TemplateError::Unclosed => "close it with `)`, or write `$$(` for the characters themselves",
                _ => "an expression is CEL: `$(body.issue.title)`",
            };
            reader.error("invalid-template", text.span, format!("`{field}`: {error}"), help);
            None
        }
    }
}

fn run(
    record: &Record<'_>,
    preset: Option<Preset>,
    project: Option<String>,
    source: &Source,
    reader: &mut Reader<'_>,
) -> RunTemplate {
    let named = record.text("team");
    let team = named.as_ref().and_then(|text| TeamName::parse(&text.value).ok());
    match &named {
        Some(text) if team.is_none() => {
            let message = format!("{:?} is not the name of a team", text.value);
            reader.error(
                "invalid-value",
                text.span,
                message,
                "write `@scope/name`; `cliq team list` shows them",
            );
        }
        None if project.is_none() && !record.has("team") => {
            let help = "add `team: \"@scope/name\"`, or a `project` with an assembled team";
            reader.error(
                "missing-field",
                record.span,
                "a trigger needs `team` or `project`".to_owned(),
                help,
            );
        }
        _ => {}
    }
    let span = record.text("preset").map_or(record.span, |text| text.span);
    let mut text = |name: &str, default: Option<&'static str>| {
        let of_preset = || default.map(|text| Located { value: text.to_owned(), span });
        record.text(name).or_else(of_preset).and_then(|text| template(&text, name, source, reader))
    };
    let title = text("title", preset.map(Preset::title));
    let requirement = text("requirement", preset.map(Preset::requirement));
    let mut inputs = Vec::new();
    for entry in record.map("inputs") {
        let Some(value) = entry.value.scalar() else { continue };
        let text = Located { value, span: entry.value.span };
        if let Some(template) = template(&text, &format!("inputs.{}", entry.key), source, reader) {
            inputs.push((entry.key.clone(), template));
        }
    }
    if let (Some(_), Some(span)) = (&project, record.key("repos")) {
        let message = "`repos` are cloned into a workspace of its own".to_owned();
        reader.error("both-given", span, message, "leave out `project` or `repos`");
    }
    let repos = record.texts("repos");
    let repos = repos.iter().filter_map(|text| template(text, "repos", source, reader)).collect();
    let budget = record
        .node("budget")
        .and_then(|node| Record::read(node, BUDGET, "a budget", &mut reader.problems))
        .map(|record| Budget {
            tokens: record.integer("tokens").and_then(|n| u64::try_from(n).ok()),
            usd: record.amount("usd"),
        });
    let sandbox = record.text("sandbox").and_then(|word| Profile::parse(&word.value));
    RunTemplate {
        team,
        project,
        title,
        requirement,
        inputs,
        repos,
        agent: record.text("agent").map(|text| text.value),
        budget: budget.unwrap_or_default(),
        sandbox,
    }
}

fn concurrency(
    record: &Record<'_>,
    preset: Option<Preset>,
    overlap: Option<Policy>,
    name: Option<&Located<String>>,
    source: &Source,
    reader: &mut Reader<'_>,
) -> Option<Concurrency> {
    let own =
        || Template::parse(&format!("trigger {}", name.map_or("", |name| &name.value))).unwrap_or_default();
    let span = record.text("preset").map_or(record.span, |text| text.span);
    let of_preset = preset.map(|preset| Located { value: preset.group().to_owned(), span });
    let of_preset = of_preset.and_then(|text| template(&text, "concurrency.group", source, reader));
    let group = || of_preset.clone().unwrap_or_else(own);
    let Some(node) = record.node("concurrency") else {
        return match (overlap, preset) {
            (Some(policy), _) => Some(Concurrency { group: own(), policy }),
            (None, Some(_)) => Some(Concurrency { group: group(), policy: Policy::Queue }),
            // Changes of files lead to one run after the other.
            (None, None) if matches!(source, Source::Files(_)) => {
                Some(Concurrency { group: own(), policy: Policy::Queue })
            }
            (None, None) => None,
        };
    };
    let record = Record::read(node, CONCURRENCY, "`concurrency`", &mut reader.problems)?;
    let policy = record.text("policy").and_then(|word| Policy::parse(&word.value));
    let named = record.text("group").and_then(|text| template(&text, "concurrency.group", source, reader));
    Some(Concurrency { group: named.unwrap_or_else(group), policy: policy.or(overlap).unwrap_or_default() })
}
