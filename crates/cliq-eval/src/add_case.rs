//! Cases from runs: the requirement, the inputs and the files that a run started with.

use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_document::{Kind, Node, parse};
use cliq_fs::{IoContext, write_atomic};
use cliq_orchestrator::{Journal, RunEvent};
use cliq_project::{Moment, Project};
use serde_json::{Value, json};

use crate::error::EvalError;

/// Case that was added to a suite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedCase {
    /// Name of the case.
    pub name: String,
    /// Suite.
    pub suite: Utf8PathBuf,
    /// Folder with the initial files. `None` if the run has no checkpoint from before its first phase.
    pub workspace: Option<Utf8PathBuf>,
    /// Whether the suite was created.
    pub is_new_suite: bool,
}

/// Adds a case to a suite. `journal` is the record of the run, `requirement` its task. Creates the suite if it is missing.
///
/// # Errors
/// Returns an error if the suite has no list of cases, has a case of this name, or a file cannot be written. Nothing is changed then.
pub fn add_case(
    suite: &Utf8Path,
    project: &Project,
    journal: &Journal,
    requirement: &str,
    name: Option<&str>,
) -> Result<AddedCase, EvalError> {
    let started = journal.records.iter().find_map(|record| match &record.event {
        RunEvent::RunStarted { team, title, inputs, .. } => Some((team, title, inputs)),
        _ => None,
    });
    let (team, title, inputs) = started.ok_or(cliq_project::ProjectError::NoRun)?;
    let text = match fs::read_to_string(suite) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Ok(Err(error).at("read", suite)?),
    };
    let name = name.map_or_else(|| slug(title.as_deref().unwrap_or(requirement)), str::to_owned);
    let dir = suite.parent().filter(|dir| !dir.as_str().is_empty()).unwrap_or(Utf8Path::new("."));
    let folder = Utf8PathBuf::from("cases").join(&name);
    // The text of the suite is checked before anything is written.
    let preview = case_lines(&name, requirement, inputs, Some(&folder));
    let mut edited = match &text {
        Some(text) => insert(suite, text, &name, &preview)?,
        None => new_suite(dir, team, &preview),
    };
    let workspace = initial_files(project, journal, &dir.join(&folder))?.then(|| folder.clone());
    if workspace.is_none() {
        let lines = case_lines(&name, requirement, inputs, None);
        edited = match &text {
            Some(text) => insert(suite, text, &name, &lines)?,
            None => new_suite(dir, team, &lines),
        };
    }
    write_atomic(suite, edited.as_bytes())?;
    Ok(AddedCase { name, suite: suite.to_owned(), workspace, is_new_suite: text.is_none() })
}

/// Name of a case from a title: lower-case words with hyphens.
fn slug(title: &str) -> String {
    let line = title.lines().next().unwrap_or_default().trim_start_matches('#').to_lowercase();
    let words = line.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut out = String::new();
    for word in words {
        if out.len() + word.len() > 40 {
            break;
        }
        if !out.is_empty() {
            out.push('-');
        }
        out.push_str(word);
    }
    if out.is_empty() { "case".to_owned() } else { out }
}

/// Lines of a case, without indentation. JSON is YAML: quoting is left to it.
fn case_lines(
    name: &str,
    requirement: &str,
    inputs: &std::collections::BTreeMap<String, String>,
    workspace: Option<&Utf8Path>,
) -> Vec<String> {
    let mut lines = vec![format!("- name: {}", json!(name))];
    lines.push(format!("  requirement: {}", json!(requirement.trim())));
    if !inputs.is_empty() {
        lines.push(format!("  inputs: {}", json!(inputs)));
    }
    if let Some(workspace) = workspace {
        lines.push(format!("  workspace: {}", json!(workspace.as_str())));
    }
    lines.push("  checks:".to_owned());
    lines.push("    # What a good outcome has: commands, files, expressions, a judge.".to_owned());
    lines.push("    - {end: completed}".to_owned());
    lines
}

fn new_suite(dir: &Utf8Path, team: &str, case: &[String]) -> String {
    let dir = dir.canonicalize_utf8().unwrap_or_else(|_| dir.to_owned());
    let name = slug(dir.file_name().unwrap_or("suite"));
    let case: String = case.iter().map(|line| format!("  {line}\n")).collect();
    let team = json!(team);
    format!("name: {name}\nrepeats: 5\n\ncases:\n{case}\nvariants:\n  - {{name: current, team: {team}}}\n")
}

/// Inserts a case at the end of the list of cases. Comments and formatting of the rest stay.
fn insert(suite: &Utf8Path, text: &str, name: &str, case: &[String]) -> Result<String, EvalError> {
    let failed = |message: String| EvalError::Suite { path: suite.to_owned(), message };
    let mut problems = Vec::new();
    let node = parse(text, "a suite has `cases:`", &mut problems);
    let Some(Node { kind: Kind::Map(entries), .. }) = node else {
        return Err(failed("it is not a suite".to_owned()));
    };
    let cases = entries.iter().find(|entry| entry.key == "cases");
    let Some((entry, Kind::List(items))) = cases.map(|entry| (entry, &entry.value.kind)) else {
        return Err(failed("it has no list `cases`".to_owned()));
    };
    let same = |item: &Node| {
        let Value::Object(case) = item.to_json() else { return false };
        case.get("name").and_then(Value::as_str) == Some(name)
    };
    if items.iter().any(same) {
        return Err(failed(format!("it has a case `{name}` already: give another one with `--name`")));
    }
    let lines: Vec<&str> = text.lines().collect();
    let first = items.first().map(|item| item.span.line);
    let dash = first.and_then(|line| lines.get(line - 1)).and_then(|line| line.find('-'));
    let is_block = dash.is_some_and(|dash| lines[first.unwrap_or(1) - 1][..dash].trim().is_empty());
    let Some(indent) = dash.filter(|_| is_block) else {
        return Err(failed("its `cases` are not one entry per line with `- `".to_owned()));
    };
    // The list ends before the next key of the suite.
    let next = entries.iter().map(|entry| entry.span.line).filter(|line| *line > entry.span.line).min();
    let mut end = next.map_or(lines.len(), |line| line - 1);
    while end > 0 && (lines[end - 1].trim().is_empty() || lines[end - 1].starts_with('#')) {
        end -= 1;
    }
    let margin = " ".repeat(indent);
    let mut out: Vec<String> = lines[..end].iter().map(|line| (*line).to_owned()).collect();
    out.extend(case.iter().map(|line| format!("{margin}{line}")));
    out.extend(lines[end..].iter().map(|line| (*line).to_owned()));
    Ok(out.join("\n") + "\n")
}

/// Writes the files from before the first phase of the run into a folder. Returns `false` if there is no checkpoint of them.
fn initial_files(project: &Project, journal: &Journal, to: &Utf8Path) -> Result<bool, EvalError> {
    let settings = project.settings()?;
    let Ok(store) = project.checkpoint_store(&settings) else { return Ok(false) };
    let Some(run) = journal.run_id() else { return Ok(false) };
    let all = store.list().unwrap_or_default();
    let first = all.iter().find(|checkpoint| {
        *run == checkpoint.label.run.as_str() && checkpoint.label.moment == Moment::Before
    });
    let Some(first) = first else { return Ok(false) };
    store.extract(first, to).map_err(cliq_project::ProjectError::from)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_from_titles() {
        assert_eq!(slug("# Greet *politely*, please\nmore"), "greet-politely-please");
        assert_eq!(slug("***"), "case");
    }

    #[test]
    fn a_case_is_inserted_and_the_rest_stays() {
        let text = "# mine\nname: x\ncases:\n  # first\n  - name: a\n    requirement: do\n\n# variants\nvariants:\n  - {name: v, team: t}\n";
        let case = case_lines("b", "Do \"it\".\nNow.", &[("k".to_owned(), "v".to_owned())].into(), None);
        let out = insert("s.yml".into(), text, "b", &case).unwrap();
        assert!(
            out.starts_with(
                "# mine\nname: x\ncases:\n  # first\n  - name: a\n    requirement: do\n  - name: \"b\"\n"
            ),
            "{out}"
        );
        assert!(
            out.ends_with("    - {end: completed}\n\n# variants\nvariants:\n  - {name: v, team: t}\n")
                || out.contains("- {end: completed}\n\n# variants"),
            "{out}"
        );
        let mut problems = Vec::new();
        let node = parse(&out, "", &mut problems).unwrap();
        assert_eq!(node.to_json()["cases"][1]["requirement"], "Do \"it\".\nNow.");
        let twice = insert("s.yml".into(), text, "a", &case_lines("a", "x", &[].into(), None));
        assert!(twice.unwrap_err().to_string().contains("already"));
        assert!(insert("s.yml".into(), "cases: [{name: a}]\n", "b", &case).is_err());
    }
}
