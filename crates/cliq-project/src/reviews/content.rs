//! Content for reviewers: everything that the phase knows when it asks.

use camino::Utf8Path;
use cliq_orchestrator::internals::repositories;
use cliq_protocol::Timestamp;
use cliq_review::{Content, PriorHandoff, Review, TimelineEntry};
use cliq_sdk::GateContext;

use super::earlier::comments;
use super::{artifacts, diff};
use crate::Project;

/// The most bytes of a text.
const MAX_TEXT: usize = 64 << 10;
/// The most entries of the timeline.
const MAX_STEPS: usize = 500;

/// Collects the content. `earlier` is the review of the round before, with its content. A part that cannot be read becomes a remark: the review is possible without it.
pub(super) fn collect(
    ctx: &GateContext,
    project: &Project,
    patterns: &[String],
    earlier: Option<(&Review, &Content)>,
) -> Content {
    let workspace = ctx.workspace();
    let (artifacts, mut remarks) = artifacts::collect(workspace, patterns);
    let mut note = |what: &str, why: String| remarks.push(format!("{what}: {why}"));
    let mut text = |what: &str, text: Result<Option<String>, cliq_sdk::SdkError>| {
        text.unwrap_or_else(|error| {
            note(what, error.to_string());
            None
        })
    };
    // The role of an agent that asks is for the agent.
    let role = if ctx.ask().is_some() { Ok(None) } else { ctx.role() };
    let brief = text("the role", role).map(shortened);
    let requirement = text("the requirement", ctx.requirement()).map(shortened);
    let handed_over = match ctx.incoming() {
        Ok(incoming) => incoming
            .into_iter()
            .filter_map(|received| {
                Some(PriorHandoff { from: received.from, text: shortened(received.envelope?.text?) })
            })
            .filter(|handed_over| !handed_over.text.trim().is_empty())
            .collect(),
        Err(error) => {
            note("what was handed over", error.to_string());
            Vec::new()
        }
    };
    let mut diffs = Vec::new();
    for repo in repositories(workspace).into_iter().filter(|repo| repo.join(".git").exists()) {
        match diff::uncommitted(&repo, name_of(workspace, &repo)) {
            Ok(found) => diffs.extend(found),
            Err(why) => note(&format!("the changes in {}", name_of(workspace, &repo)), why),
        }
    }
    let timeline = match project.recorded_run(None) {
        Ok(run) => {
            let steps = run.timeline(cliq_fs::now()).steps;
            let skipped = steps.len().saturating_sub(MAX_STEPS);
            let entry = |step: crate::Step| {
                let at = step.ts.time().unwrap_or(Timestamp::UNIX_EPOCH);
                TimelineEntry { at, text: step.text }
            };
            steps.into_iter().skip(skipped).map(entry).collect()
        }
        Err(error) => {
            note("the timeline", error.to_string());
            Vec::new()
        }
    };
    let channels = project.dir().channels();
    let earlier_comments = earlier
        .map(|(review, shown)| comments(review, shown, &diffs, project, &channels))
        .unwrap_or_default();
    let (checks, history) = (ctx.checks().to_vec(), ctx.history().to_vec());
    Content {
        brief,
        requirement,
        checks,
        handed_over,
        artifacts,
        remarks,
        diffs,
        earlier_comments,
        timeline,
        history,
    }
}

fn name_of<'a>(workspace: &Utf8Path, repo: &'a Utf8Path) -> &'a str {
    repo.strip_prefix(workspace).map(Utf8Path::as_str).ok().filter(|name| !name.is_empty()).unwrap_or(".")
}

fn shortened(mut text: String) -> String {
    if text.len() > MAX_TEXT {
        let end = (0..=MAX_TEXT).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    text
}
