//! One test: its workspace, its run and its checks.

use std::time::{Duration, Instant};

use camino::Utf8Path;
use cliq_fs::{IoContext, copy_tree};
use cliq_orchestrator::CliqDir;
use cliq_project::{Host, ScriptedReport, ScriptedRun};
use cliq_workflow::TeamFolder;
use tokio_util::sync::CancellationToken;

use super::compare::differences;
use super::{TeamTest, TestResult};
use crate::checks::{RunOutcome, check_command, check_expression, check_file};
use crate::error::EvalError;
use crate::suite::CheckKind;
use crate::trial::CheckResult;

/// Runs a test in a temporary workspace. Returns `None` if it was stopped.
///
/// # Errors
/// The workspace cannot be prepared, or the run cannot start.
pub async fn run_test(
    host: &Host,
    team: &TeamFolder,
    test: &TeamTest,
    stop: &CancellationToken,
) -> Result<Option<TestResult>, EvalError> {
    let started = Instant::now();
    let temporary = tempfile::Builder::new().prefix("cliq-test-").tempdir();
    let temporary = temporary.at("create a directory in", Utf8Path::new("the temporary directory"))?;
    let root = Utf8Path::from_path(temporary.path())
        .ok_or_else(|| std::io::Error::other("its path is not UTF-8"))
        .and_then(Utf8Path::canonicalize_utf8)
        .at("find", Utf8Path::new("the temporary directory"))?;
    let workspace = root.join("workspace");
    std::fs::create_dir(&workspace).at("create", &workspace)?;
    fill(&workspace, test)?;
    let run = ScriptedRun::new(&test.requirement)
        .with_inputs(test.inputs.clone())
        .with_script(test.script.clone())
        .with_commands(test.commands.clone());
    let is_late = CancellationToken::new();
    let late = is_late.clone();
    let cancelled = async {
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(test.timeout) => late.cancel(),
        }
    };
    let report = Box::pin(host.run_scripted(team, &workspace, run, cancelled)).await?;
    if stop.is_cancelled() {
        return Ok(None);
    }
    let mut failures = match is_late.is_cancelled() {
        true => vec![format!(
            "the run was cancelled after {} s, the time limit of the test",
            test.timeout.as_secs()
        )],
        false => differences(test, &report),
    };
    let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let mut checks = Vec::new();
    for check in &test.checks {
        let result = run_check(&check.name, &check.kind, &workspace, &root, &report, duration_ms).await?;
        checks.extend(result);
    }
    failures.extend(
        checks
            .iter()
            .filter(|check| !check.pass)
            .map(|check| format!("check `{}`: {}", check.name, check.detail)),
    );
    Ok(Some(TestResult {
        name: test.name.clone(),
        pass: failures.is_empty(),
        failures,
        checks,
        duration_ms,
        run: Some(report),
    }))
}

fn fill(workspace: &Utf8Path, test: &TeamTest) -> Result<(), EvalError> {
    if let Some(folder) = &test.workspace {
        // The project that the folder may be is not part of the test.
        copy_tree(folder, workspace, &|_| true)?;
        let project = workspace.join(".cliq");
        if project.exists() {
            std::fs::remove_dir_all(&project).at("remove", &project)?;
        }
    }
    for (path, content) in &test.files {
        cliq_project::internals::write_inside(workspace, path, Some(content))
            .map_err(std::io::Error::other)
            .at("write", &workspace.join(path))?;
    }
    Ok(())
}

async fn run_check(
    name: &str,
    kind: &CheckKind,
    workspace: &Utf8Path,
    root: &Utf8Path,
    report: &ScriptedReport,
    duration_ms: u64,
) -> Result<Option<CheckResult>, EvalError> {
    Ok(Some(match kind {
        CheckKind::Run { command, timeout_s } => {
            let log = root.join("check.log");
            check_command(name, command, workspace, Duration::from_secs(*timeout_s), &log).await?
        }
        CheckKind::File { path, rule } => check_file(name, workspace, path, rule),
        CheckKind::Expr(source) => {
            let dir = CliqDir::open(workspace)?;
            let outcome = RunOutcome { end: report.end.clone(), cost_usd: None, tokens: 0, duration_ms };
            check_expression(name, source, &dir, &outcome)
        }
        // The reader refuses them.
        CheckKind::End(_) | CheckKind::Judge(_) => return Ok(None),
    }))
}
