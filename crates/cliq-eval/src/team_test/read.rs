//! Reader of files of tests: every problem at once, with its place and remedy.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_document::{Diagnostic, Kind, Located, Node, Record, Severity, did_you_mean, finish, parse};
use cliq_project::internals::is_path_inside;
use cliq_project::{CommandScript, Host, Script};
use cliq_protocol::PhaseKind;
use cliq_workflow::{Phase, ValidatedWorkflow};

use super::expect::read_expectations;
use super::fields::{FILE, TEST};
use super::replies::read_replies;
use super::{CommandEnd, TeamTest};
use crate::suite::read::{Reader, texts};
use crate::suite::read_check::read_checks;
use crate::suite::{CheckKind, CheckSpec};

const EMPTY: &str = "a file of tests needs `tests:`; `cliq team create` writes a team with one";
/// Requirement of tests that have none.
const REQUIREMENT: &str = "Test of the team.";
/// Default time limit of a run.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Result of reading a file of tests.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TestsCheck {
    /// The tests. Empty if there is an error.
    pub tests: Vec<TeamTest>,
    /// Every problem, in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads a file of tests of at most 8 MiB against its team. At most 20 errors and 20 warnings are returned. `dir` is the directory of the
/// file; paths are relative to it.
#[must_use]
pub fn read_tests(text: &str, dir: &Utf8Path, workflow: &ValidatedWorkflow, host: &Host) -> TestsCheck {
    let mut reader = Reader::new(dir, host);
    let mut tests = Vec::new();
    let root = parse(text, EMPTY, &mut reader.problems);
    if let Some(record) =
        root.as_ref().and_then(|root| Record::read(root, FILE, "a file of tests", &mut reader.problems))
    {
        let mut names = BTreeSet::new();
        if record.node("tests").is_some() && record.list("tests").is_empty() {
            let message = "`tests` is empty".to_owned();
            reader.error("empty-list", record.span, message, "add one test at least");
        }
        let nodes = record.list("tests").iter();
        tests = nodes.filter_map(|node| read_test(node, workflow, &mut names, &mut reader)).collect();
    }
    let diagnostics = finish(reader.problems);
    if diagnostics.iter().any(|problem| problem.severity == Severity::Error) {
        tests.clear();
    }
    TestsCheck { tests, diagnostics }
}

fn read_test(
    node: &Node,
    workflow: &ValidatedWorkflow,
    names: &mut BTreeSet<String>,
    reader: &mut Reader<'_>,
) -> Option<TeamTest> {
    let record = Record::read(node, TEST, "a test", &mut reader.problems)?;
    let name = record.text("name");
    if let Some(name) = &name {
        reader.name("a test", name, names);
    }
    let requirement = record.text("requirement");
    if let Some(empty) = requirement.as_ref().filter(|text| text.value.trim().is_empty()) {
        let message = "the requirement is empty".to_owned();
        reader.error("empty-text", empty.span, message, "write what is to be done, or remove the field");
    }
    let inputs = read_inputs(&record, workflow, reader);
    let files = texts(&record, "files");
    for (path, _) in &files {
        check_path(path, reader);
    }
    let phases: BTreeMap<String, Vec<_>> = match record.node("replies") {
        Some(node) => read_replies(node, workflow, reader),
        None => BTreeMap::new(),
    };
    let (commands, scripted_results) = match record.node("commands") {
        Some(node) => command_script(node, workflow, reader),
        None => (CommandScript::new(), BTreeMap::new()),
    };
    let expect = read_expectations(record.node("expect"), workflow, reader);
    Some(TeamTest {
        requirement: requirement.map_or_else(|| REQUIREMENT.to_owned(), |text| text.value),
        inputs,
        workspace: record.text("workspace").and_then(|path| folder(&path, reader)),
        files: files.into_iter().map(|(path, content)| (path.value, content)).collect(),
        timeout: record.duration("timeout").unwrap_or(TIMEOUT),
        script: Script { phases },
        commands,
        scripted_results,
        expect,
        checks: checks(&record, reader),
        name: name?.value,
    })
}

/// Reports a path that leaves the workspace.
pub(super) fn check_path(path: &Located<String>, reader: &mut Reader<'_>) {
    if !is_path_inside(&path.value) {
        let message = format!("{:?} is not a path in the workspace", path.value);
        reader.error("invalid-path", path.span, message, "write a relative path without `..`");
    }
}

fn folder(path: &Located<String>, reader: &mut Reader<'_>) -> Option<Utf8PathBuf> {
    let full = reader.path(&path.value);
    let real = full.canonicalize_utf8().ok().filter(|path| path.is_dir());
    if real.is_none() {
        let message = format!("there is no folder {full}");
        reader.error("unreadable-file", path.span, message, "paths are relative to the file of tests");
    }
    real
}

fn read_inputs(
    record: &Record<'_>,
    workflow: &ValidatedWorkflow,
    reader: &mut Reader<'_>,
) -> BTreeMap<String, String> {
    let given = texts(record, "inputs");
    let known: Vec<&str> = workflow.inputs.iter().map(|input| input.name.as_str()).collect();
    for (name, _) in given.iter().filter(|(name, _)| !known.contains(&name.value.as_str())) {
        let message = format!("the team has no input `{}`", name.value);
        reader.error("unknown-input", name.span, message, did_you_mean(&name.value, &known));
    }
    let is_missing = |name: &str| !given.iter().any(|(given, _)| given.value == name);
    for input in workflow.inputs.iter().filter(|input| input.required && is_missing(&input.name)) {
        let message = format!("the test gives no value for the input `{}`, which is required", input.name);
        let help = format!("add `inputs: {{{}: VALUE}}`", input.name);
        reader.error("missing-input", record.key("inputs").unwrap_or(record.span), message, help);
    }
    given.into_iter().map(|(name, value)| (name.value, value)).collect()
}

fn checks(record: &Record<'_>, reader: &mut Reader<'_>) -> Vec<CheckSpec> {
    let nodes = record.list("checks");
    for node in nodes {
        let Kind::Map(entries) = &node.kind else { continue };
        for entry in entries {
            let (message, help) = match entry.key.as_str() {
                "judge" => ("a test asks no model", "write a check with `run`, `file` or `expr`"),
                "end" => ("the end of the run is an expectation", "write `expect: {end: …}`"),
                _ => continue,
            };
            reader.error("wrong-field", entry.span, message.to_owned(), help);
        }
    }
    let checks = read_checks(nodes, reader);
    checks
        .into_iter()
        .filter(|check| !matches!(check.kind, CheckKind::Judge(_) | CheckKind::End(_)))
        .collect()
}

/// Finds a phase by its name, or reports that there is none.
pub(super) fn find_phase<'w>(
    name: &Located<String>,
    workflow: &'w ValidatedWorkflow,
    reader: &mut Reader<'_>,
) -> Option<&'w Phase> {
    let found = workflow.phases().find(|(_, phase)| phase.name.as_str() == name.value);
    if found.is_none() {
        let known: Vec<&str> = workflow.phases().map(|(_, phase)| phase.name.as_str()).collect();
        let message = format!("the team has no phase `{}`", name.value);
        reader.error("unknown-phase", name.span, message, did_you_mean(&name.value, &known));
    }
    found.map(|(_, phase)| phase)
}

/// Reason why a phase has no scripted agent, or `None` if it has one.
pub(super) fn has_no_script(phase: &Phase, workflow: &ValidatedWorkflow) -> Option<&'static str> {
    let agent = phase.agent.as_deref().filter(|name| !workflow.agents.contains_key(*name));
    match (phase.kind, agent) {
        (PhaseKind::Exec, _) => Some("runs commands and has no agent"),
        (PhaseKind::Gate, Some("rules")) => Some("is decided by its commands and rules"),
        (PhaseKind::Standard, Some("exec")) => Some("runs commands and has no agent of its own"),
        _ => None,
    }
}

/// Results of commands by phase and command, each with its place.
pub(super) type CommandEnds = Vec<((String, String), Vec<Located<CommandEnd>>)>;

/// Reads `PHASE: {COMMAND: [fail, pass]}`.
pub(super) fn command_ends(
    node: &Node,
    words: &[&str],
    workflow: &ValidatedWorkflow,
    reader: &mut Reader<'_>,
) -> CommandEnds {
    let mut found = CommandEnds::new();
    let Some(entries) = mapping(node, "commands", "write `PHASE: {COMMAND: [fail, pass]}`", reader) else {
        return found;
    };
    for entry in entries {
        let name = Located { value: entry.key.clone(), span: entry.span };
        let Some(phase) = find_phase(&name, workflow, reader) else { continue };
        let help = "write `COMMAND: [fail, pass]`";
        let Some(commands) = mapping(&entry.value, &format!("commands.{}", name.value), help, reader) else {
            continue;
        };
        for entry in commands {
            if !phase.commands.iter().any(|command| command.name == entry.key) {
                let known: Vec<&str> = phase.commands.iter().map(|command| command.name.as_str()).collect();
                let message = format!("phase `{}` has no command `{}`", phase.name, entry.key);
                reader.error("unknown-command", entry.span, message, did_you_mean(&entry.key, &known));
                continue;
            }
            let ends = listed(&entry.value)
                .iter()
                .filter_map(|node| {
                    let word = node.scalar().unwrap_or_default();
                    let end = match word.as_str() {
                        "pass" => CommandEnd::Pass,
                        "fail" => CommandEnd::Fail,
                        "skip" if words.contains(&"skip") => CommandEnd::Skip,
                        _ => {
                            let message = format!("a result of a command cannot be {word:?}");
                            reader.error("invalid-value", node.span, message, did_you_mean(&word, words));
                            return None;
                        }
                    };
                    Some(Located { value: end, span: node.span })
                })
                .collect();
            found.push(((phase.name.to_string(), entry.key.clone()), ends));
        }
    }
    found
}

/// Entries of a mapping, or a problem.
pub(super) fn mapping<'n>(
    node: &'n Node,
    name: &str,
    help: &str,
    reader: &mut Reader<'_>,
) -> Option<&'n [cliq_document::Entry]> {
    match &node.kind {
        Kind::Map(entries) => Some(entries),
        _ => {
            let message = format!("`{name}` is a mapping, here is {}", node.describe());
            reader.error("wrong-type", node.span, message, help);
            None
        }
    }
}

/// Elements of a list. Another value is a list of one.
pub(super) fn listed(node: &Node) -> &[Node] {
    match &node.kind {
        Kind::List(items) => items,
        _ => std::slice::from_ref(node),
    }
}

/// Numbers of scripted results by phase and command.
type ResultCounts = BTreeMap<(String, String), usize>;

fn command_script(
    node: &Node,
    workflow: &ValidatedWorkflow,
    reader: &mut Reader<'_>,
) -> (CommandScript, ResultCounts) {
    let (mut script, mut counts) = (CommandScript::new(), ResultCounts::new());
    for ((phase, command), ends) in command_ends(node, &CommandEnd::WORDS[..2], workflow, reader) {
        if ends.is_empty() {
            continue;
        }
        counts.insert((phase.clone(), command.clone()), ends.len());
        script = script.with_results(phase, command, ends.iter().map(|end| end.value == CommandEnd::Pass));
    }
    (script, counts)
}
