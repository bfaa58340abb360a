//! `cliq team test`

use std::collections::VecDeque;
use std::process::ExitCode;
use std::rc::Rc;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_eval::EvalError;
use cliq_eval::team_test::{TeamTest, TestResult, read_tests, run_test};
use cliq_project::FoundTeam;
use cliq_workflow::{Severity, ValidatedWorkflow, count_by_severity};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::args::TestArgs;
use crate::commands::signals::interrupted;
use crate::failure::{Failure, Kind};
use crate::gateway::block_on;
use crate::project;
use crate::render::diagnostics;
use crate::ui::{self, DIM, GREEN, RED, paint};

/// Folder of a team with its files of tests.
const FOLDER: &str = "tests";
/// Maximum number of tests at the same time.
const MAX_PARALLEL: usize = 4;
/// Exit code if a test failed.
const FAILED: u8 = 1;

/// Test that is running.
type TestHandle = tokio::task::JoinHandle<Result<Option<TestResult>, EvalError>>;

/// Test with its file.
struct Listed {
    file: Utf8PathBuf,
    test: TeamTest,
}

pub(super) fn run(args: &TestArgs) -> Result<ExitCode, Failure> {
    let (team, files) = find(args.path.as_deref())?;
    let checked = team.folder.check();
    let Some(workflow) = checked.workflow else {
        let errors: Vec<_> =
            checked.diagnostics.into_iter().filter(|d| d.severity == Severity::Error).collect();
        diagnostics::show(team.folder.text(), team.folder.file(), &errors);
        return Err(Failure::reported(Kind::Usage));
    };
    let mut tests = read(&files, &workflow, args)?;
    let all = tests.len();
    let is_chosen = |name: &str| args.only.is_empty() || args.only.iter().any(|text| name.contains(text));
    tests.retain(|listed| is_chosen(&listed.test.name));
    if args.check {
        if !args.json {
            let (tests, files) = (ui::count(all, "test"), ui::count(files.len(), "file"));
            ui::line(format!("{} {} ({tests} in {files})", paint(GREEN, "valid:"), workflow.name))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    if tests.is_empty() {
        return Err(Failure::usage(format!(
            "no test of {} has a name with {}",
            workflow.name,
            args.only.join(" or ")
        ))
        .hint("`cliq team test` runs all of them"));
    }
    block_on(tokio::task::LocalSet::new().run_until(run_all(team, tests, &workflow, args)))
}

/// Finds the team and its files of tests.
fn find(path: Option<&str>) -> Result<(FoundTeam, Vec<Utf8PathBuf>), Failure> {
    // A file of tests is in the folder `tests` of its team.
    let file = path.map(Utf8Path::new).filter(|path| path.is_file() && path.file_name() != Some("team.yml"));
    if let Some(file) = file {
        let folder = file.canonicalize_utf8()?;
        let folder =
            folder.parent().filter(|folder| folder.file_name() == Some(FOLDER)).and_then(Utf8Path::parent);
        let folder = folder.ok_or_else(|| {
            Failure::usage(format!("{file} is not in the folder `{FOLDER}` of a team"))
                .hint("name the folder of the team, or a file such as TEAM/tests/phases.yml")
        })?;
        return Ok((super::find(Some(folder.as_str()))?, vec![file.to_owned()]));
    }
    let team = super::find(path)?;
    let folder = team.folder.dir().join(FOLDER);
    let is_test = |path: &Utf8Path| matches!(path.extension(), Some("yml" | "yaml")) && path.is_file();
    let mut files: Vec<Utf8PathBuf> = match folder.read_dir_utf8() {
        Ok(entries) => entries
            .filter_map(Result::ok)
            .map(camino::Utf8DirEntry::into_path)
            .filter(|path| is_test(path))
            .collect(),
        Err(_) => Vec::new(),
    };
    files.sort();
    if files.is_empty() {
        let is_folder = path.is_none_or(|path| !path.starts_with('@') || Utf8Path::new(path).exists());
        let (name, hint) = match path.filter(|_| !is_folder) {
            Some(name) => (name, "tests are in the folder of a team: name that folder".to_owned()),
            None => (
                team.folder.dir().as_str(),
                format!(
                    "write {folder}/NAME.yml (docs/team-test.md in the repository of cliq); `cliq team create` writes a team with tests"
                ),
            ),
        };
        return Err(Failure::usage(format!("{name} has no tests")).hint(hint));
    }
    Ok((team, files))
}

/// Reads all files of tests, and shows their problems.
fn read(
    files: &[Utf8PathBuf],
    workflow: &ValidatedWorkflow,
    args: &TestArgs,
) -> Result<Vec<Listed>, Failure> {
    let (mut tests, mut rows, mut has_errors) = (Vec::new(), Vec::new(), false);
    for file in files {
        let text = std::fs::read_to_string(file)
            .map_err(|error| Failure::failed(format!("cannot read {file}: {error}")))?;
        let dir = file.parent().filter(|dir| !dir.as_str().is_empty()).unwrap_or(Utf8Path::new("."));
        let checked = read_tests(&text, dir, workflow, &project::host());
        has_errors |= checked.diagnostics.iter().any(|problem| problem.severity == Severity::Error);
        if args.json {
            rows.extend(checked.diagnostics.iter().map(|d| json!({
                "code": d.code, "severity": d.severity, "message": d.message, "file": file, "line": d.span.line,
                "column": d.span.column, "help": d.help,
            })));
        } else {
            diagnostics::show(&text, file, &checked.diagnostics);
            if has_errors {
                ui::error(&format!("{file}: {}", count_by_severity(&checked.diagnostics)));
            }
        }
        tests.extend(checked.tests.into_iter().map(|test| Listed { file: file.clone(), test }));
    }
    if args.json && (args.check || has_errors) {
        ui::json(&json!({"valid": !has_errors, "tests": tests.len(), "diagnostics": rows}))?;
    }
    if has_errors { Err(Failure::reported(Kind::Usage)) } else { Ok(tests) }
}

async fn run_all(
    team: FoundTeam,
    tests: Vec<Listed>,
    workflow: &ValidatedWorkflow,
    args: &TestArgs,
) -> Result<ExitCode, Failure> {
    let stop = CancellationToken::new();
    let watch = tokio::task::spawn_local({
        let stop = stop.clone();
        async move {
            interrupted().await;
            stop.cancel();
        }
    });
    let (team, host, count) = (Rc::new(team), project::host(), tests.len());
    let mut waiting = tests.into_iter();
    let mut working: VecDeque<(Utf8PathBuf, String, TestHandle)> = VecDeque::new();
    let (mut results, mut failed, mut is_stopped) = (Vec::new(), 0, false);
    loop {
        while working.len() < MAX_PARALLEL
            && let Some(Listed { file, test }) = waiting.next()
        {
            let (team, host, stop, name) = (Rc::clone(&team), host.clone(), stop.clone(), test.name.clone());
            let work = async move { run_test(&host, &team.folder, &test, &stop).await };
            working.push_back((file, name, tokio::task::spawn_local(work)));
        }
        let Some((file, name, work)) = working.pop_front() else { break };
        if !args.json {
            ui::note(&name);
        }
        let result = match work.await {
            Ok(Ok(Some(result))) => result,
            Ok(Ok(None)) => {
                is_stopped = true;
                continue;
            }
            Ok(Err(error)) => TestResult::not_started(&name, &error),
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        };
        failed += usize::from(!result.pass);
        if !args.json {
            show(&file, &result)?;
        }
        results.push((file, result));
    }
    watch.abort();
    if is_stopped {
        ui::hint(&format!("stopped: {} did not run", ui::count(count - results.len(), "test")));
        return Ok(ExitCode::from(130));
    }
    let passed = results.len() - failed;
    if args.json {
        let rows: Vec<_> = results.iter().map(|(file, result)| document(file, result)).collect();
        ui::json(&json!({"team": workflow.name, "passed": passed, "failed": failed, "tests": rows}))?;
    } else {
        let text = format!("{passed} of {} passed", ui::count(results.len(), "test"));
        ui::line(paint(if failed == 0 { GREEN } else { RED }, text))?;
        if failed > 0 {
            ui::hint("`--json` shows each run with its prompts; `--only NAME` runs one test");
        }
    }
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

fn document(file: &Utf8Path, result: &TestResult) -> serde_json::Value {
    let mut row = json!(result);
    row["file"] = file.as_str().into();
    row
}

fn show(file: &Utf8Path, result: &TestResult) -> Result<(), Failure> {
    let word = if result.pass { paint(GREEN, "pass") } else { paint(RED, "FAIL") };
    let place = paint(DIM, format!("{file}, {} ms", result.duration_ms));
    ui::line(format!("{word} {}  {place}", result.name))?;
    for failure in &result.failures {
        for (line, number) in ui::plain(failure).lines().zip(0..) {
            ui::line(format!("{}{line}", if number == 0 { "     - " } else { "       " }))?;
        }
    }
    Ok(())
}
