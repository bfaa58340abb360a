//! `cliq tool`

use std::process::ExitCode;

use cliq_agents::{Draft, PullRequests};
use cliq_fs::read_text;
use cliq_project::Settings;

use crate::args::{PullRequestArgs, ToolCommand, ToolName};
use crate::failure::Failure;
use crate::project;
use crate::ui::{self, GREEN, YELLOW, paint};

/// The most bytes of a description.
const BODY_LIMIT: u64 = 1 << 20;

pub(super) fn run(command: &ToolCommand) -> Result<ExitCode, Failure> {
    match command {
        ToolCommand::List => {
            ui::line("pr-exists   exits 0 if the branch has an open pull request, else 1")?;
            ui::line("create-pr   makes a pull request of the branch, unless it has an open one")?;
            Ok(ExitCode::SUCCESS)
        }
        ToolCommand::Run { tool, args } => pull_request(*tool, args),
    }
}

fn pull_request(tool: ToolName, args: &PullRequestArgs) -> Result<ExitCode, Failure> {
    let settings: Settings = project::settings()?;
    let dir = match &args.repo {
        Some(dir) => dir.clone(),
        None => project::here()?,
    };
    let failed = |error: Box<dyn std::error::Error + Send + Sync>| Failure::failed(error.to_string());
    let environment = project::host().environment;
    let requests = PullRequests::open(&dir, &args.remote, args.branch.as_deref(), &settings, &environment)
        .map_err(failed)?;
    let (branch, place) = (requests.branch().to_owned(), requests.place());
    match tool {
        ToolName::PrExists => {
            let found = requests.find().map_err(failed)?;
            if args.json {
                ui::json(
                    &serde_json::json!({"exists": found.is_some(), "branch": branch, "pull_request": found}),
                )?;
            } else {
                match &found {
                    Some(found) => ui::line(format!(
                        "{} #{} {}\n  {}",
                        paint(GREEN, "✓"),
                        found.number,
                        found.title,
                        found.url
                    ))?,
                    None => ui::line(format!(
                        "{} `{branch}` has no open pull request on {place}",
                        paint(YELLOW, "-")
                    ))?,
                }
            }
            Ok(if found.is_some() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        ToolName::CreatePr => {
            let body = match &args.body_file {
                Some(file) => Some(read_text(file, BODY_LIMIT)?),
                None => args.body.clone(),
            };
            let draft = Draft {
                base: args.base.clone(),
                title: args.title.clone(),
                body,
                draft: args.draft,
                labels: args.labels.clone(),
                reviewers: args.reviewers.clone(),
            };
            let (made, is_new) = requests.create(draft).map_err(failed)?;
            if args.json {
                ui::json(&serde_json::json!({"created": is_new, "branch": branch, "pull_request": made}))?;
            } else {
                let what = if is_new { "made" } else { "was there already" };
                ui::line(format!(
                    "{} #{} {what}: {}\n  {}",
                    paint(GREEN, "✓"),
                    made.number,
                    made.title,
                    made.url
                ))?;
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}
