//! The record of a review that is over: who was asked, when, who decided, what was shown, the words (docs/reviews.md).
//!
//! Each record of a run has the SHA-256 of the one before it, and of its own text for people. So a record that is changed, or taken away,
//! is noticed: by the records after it, and the last one by the store, which knows its SHA-256.

use std::fmt::Write;

use cliq_protocol::CommandResult;
use serde_json::{Value, json};

use crate::content::{Artifact, ArtifactView, Content, FileDiff};
use crate::id::hash;
use crate::notice::NoticeState;
use crate::place::Place;
use crate::review::Review;

/// The version of the format.
const VERSION: u64 = 1;

/// A record, as it is written: JSON for programs, markdown for people.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditRecord {
    /// The JSON. Its SHA-256 goes into the next record.
    pub json: String,
    /// The same for people.
    pub markdown: String,
}

/// A record that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditFile {
    /// File name without `.json`.
    pub name: String,
    /// Number of the record in the run, 1-based.
    pub number: u64,
    /// The review that it is about.
    pub review: String,
    /// The SHA-256 of the record before it.
    pub previous: Option<String>,
    /// The SHA-256 of the text for people, as the record says.
    pub markdown_sha256: String,
    /// The SHA-256 of its own file.
    pub sha256: String,
    /// The SHA-256 of the text for people that is there; `None` if there is none.
    pub found_markdown: Option<String>,
}

/// Problem of a run's records.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChainProblem {
    /// A record is not what the record after it knows.
    #[error("{name}.json is not what it was when {next}.json was written: it was changed")]
    Changed {
        /// The record.
        name: String,
        /// The one after it.
        next: String,
    },
    /// The text for people is not the one that was written.
    #[error("{0}.md is not what was written: it was changed or removed")]
    Markdown(String),
    /// A record is missing.
    #[error("the record number {0} is missing")]
    Missing(u64),
    /// Two records have one number.
    #[error("{0}.json and {1}.json have the same number")]
    Twice(String, String),
}

/// The record of a review that is over, after the records `earlier` of the same run.
#[must_use]
pub fn next_record(review: &Review, content: &Content, earlier: &[AuditFile]) -> AuditRecord {
    let last = earlier.iter().max_by_key(|file| file.number);
    let markdown = markdown(review, content);
    let mut asked = json!(review);
    if let Value::Object(map) = &mut asked {
        // Neither useful to readers nor meant for them.
        map.remove("links");
        map.remove("audit");
    }
    let artifacts: Vec<Value> = content
        .artifacts
        .iter()
        .map(|a| json!({"path": a.path, "size": a.size, "sha256": a.sha256, "shown": kind(a)}))
        .collect();
    let diffs: Vec<Value> = content
        .diffs
        .iter()
        .map(|diff| {
            let file = |f: &FileDiff| json!({"path": f.path, "change": f.change, "added": f.added, "removed": f.removed, "sha256": hash(f.hunks.as_bytes())});
            json!({"repo": diff.repo, "files": diff.files.iter().map(file).collect::<Vec<_>>(), "more_files": diff.more_files})
        })
        .collect();
    let value = json!({
        "version": VERSION,
        "number": last.map_or(1, |last| last.number + 1),
        "previous": last.map(|last| &last.sha256),
        "review": asked,
        "shown": {"sha256": content.sha256(), "checks": content.checks, "artifacts": artifacts, "diffs": diffs, "remarks": content.remarks},
        "verdict": review.verdict().map(|verdict| verdict.to_value()),
        "ending": review.ending(),
        "markdown_sha256": hash(markdown.as_bytes()),
    });
    AuditRecord { json: format!("{value:#}\n"), markdown }
}

/// Reads a record. `None` if the bytes are none.
#[must_use]
pub fn read_record(name: &str, json: &[u8], markdown: Option<&[u8]>) -> Option<AuditFile> {
    let value: Value = serde_json::from_slice(json).ok()?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    Some(AuditFile {
        name: name.to_owned(),
        number: value.get("number")?.as_u64()?,
        review: text(value.get("review")?.get("id")?)?,
        previous: value.get("previous").and_then(text),
        markdown_sha256: text(value.get("markdown_sha256")?)?,
        sha256: hash(json),
        found_markdown: markdown.map(hash),
    })
}

/// Returns the problems of a run's records. Empty if all are as they were written; the hash of the last one is in the store.
#[must_use]
pub fn verify_chain(files: &[AuditFile]) -> Vec<ChainProblem> {
    let mut files: Vec<&AuditFile> = files.iter().collect();
    files.sort_by_key(|file| file.number);
    let mut problems = Vec::new();
    let mut expected = 1;
    for (n, file) in files.iter().enumerate() {
        if let Some(before) =
            n.checked_sub(1).and_then(|n| files.get(n)).filter(|before| before.number == file.number)
        {
            problems.push(ChainProblem::Twice(before.name.clone(), file.name.clone()));
            continue;
        }
        problems.extend((expected..file.number).map(ChainProblem::Missing));
        expected = file.number + 1;
        let before =
            n.checked_sub(1).and_then(|n| files.get(n)).filter(|before| before.number + 1 == file.number);
        if let Some(before) = before
            && file.previous.as_ref() != Some(&before.sha256)
        {
            problems.push(ChainProblem::Changed { name: before.name.clone(), next: file.name.clone() });
        }
        if file.found_markdown.as_ref() != Some(&file.markdown_sha256) {
            problems.push(ChainProblem::Markdown(file.name.clone()));
        }
    }
    problems
}

fn kind(artifact: &Artifact) -> &'static str {
    match artifact.shown {
        ArtifactView::Markdown { .. } => "markdown",
        ArtifactView::Text { .. } => "text",
        ArtifactView::Image { .. } => "image",
        ArtifactView::Binary => "binary",
        ArtifactView::TooLarge => "too large",
        ArtifactView::Unreadable { .. } => "unreadable",
    }
}

/// Text of people and agents within a line of markdown.
fn inline(text: &str) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("`{}`", line.replace('`', "'"))
}

/// Words of a person, as a quotation.
fn quoted(out: &mut String, words: &str) {
    for line in words.lines() {
        let _ = writeln!(out, "    {line}");
    }
    out.push('\n');
}

/// Line that a comment is about, in markdown.
fn on_line(place: &Place) -> String {
    format!(", {}, {}", inline(&place.to_string()), inline(place.text().trim_end()))
}

fn markdown(review: &Review, content: &Content) -> String {
    let mut out = match &review.subject {
        None => format!(
            "# Review of {}, evaluation {} of {}\n\n",
            review.phase, review.iteration, review.max_iterations
        ),
        Some(subject) => format!("# Request of {}\n\n{}\n\n", review.phase, inline(&subject.sentence())),
    };
    let _ = writeln!(
        out,
        "- team: {}\n- run: {}\n- review: {}",
        inline(review.team.as_str()),
        review.run_id,
        review.id
    );
    let _ = writeln!(out, "- reviewers: {}", inline(&review.reviewers.to_string()));
    let _ = writeln!(out, "- made: {}\n- deadline: {}", review.created, review.deadline);
    let _ = writeln!(out, "- outcome: {}\n", inline(&review.ending().unwrap_or_default()));
    out.push_str("## Answers\n\n");
    if review.answers.is_empty() {
        out.push_str("There were none.\n\n");
    }
    for answer in &review.answers {
        let target = match &answer.answer.choice {
            crate::review::Choice::RequestChanges { to: Some(to) } => format!(" by {to}"),
            _ => String::new(),
        };
        let (by, done, via) = (inline(&answer.by()), answer.answer.choice.done(), answer.answer.via.as_str());
        let _ = writeln!(out, "{by} {done}{target} at {} ({via}).\n", answer.at);
        quoted(&mut out, answer.answer.reason.as_deref().unwrap_or_default());
        for (name, value) in &answer.answer.inputs {
            let _ = writeln!(out, "- {name}: {}", inline(value.as_str().unwrap_or(&value.to_string())));
        }
    }
    if !review.comments.is_empty() {
        out.push_str("## Comments\n\n");
    }
    for said in &review.comments {
        let _ = writeln!(
            out,
            "{} at {} ({}){}:\n",
            inline(&said.comment.actor),
            said.at,
            said.comment.via.as_str(),
            said.comment.place.as_ref().map(on_line).unwrap_or_default()
        );
        quoted(&mut out, &said.comment.text);
    }
    out.push_str("## Who was told\n\n");
    for notice in &review.notices {
        let state = match &notice.state {
            NoticeState::Planned => "planned".to_owned(),
            NoticeState::Sent => "sent".to_owned(),
            NoticeState::Failed { error } => format!("failed: {}", inline(error)),
            NoticeState::Unknown => "unknown".to_owned(),
        };
        let (event, who, channel) =
            (notice.kind.event(), inline(&notice.reviewer), inline(&notice.channel.to_string()));
        let _ = writeln!(out, "- {} {event} to {who} by {channel}: {state}", notice.at);
    }
    if review.notices.is_empty() {
        out.push_str("Reviewers have no channels in the settings.\n");
    }
    out.push_str("\n## What was shown\n\n");
    for check in &content.checks {
        let mark = if check.was_skipped() {
            "skipped"
        } else if check.pass {
            "passed"
        } else {
            "failed"
        };
        let _ = writeln!(out, "- check {}: {mark}", inline(&CommandResult::label(check)));
    }
    for artifact in &content.artifacts {
        let sha256 = artifact.sha256.as_deref().unwrap_or("unknown");
        let _ = writeln!(
            out,
            "- file {}, {} bytes, SHA-256 {sha256} ({})",
            inline(&artifact.path),
            artifact.size,
            kind(artifact)
        );
    }
    for diff in &content.diffs {
        for file in &diff.files {
            let (repo, path) = (inline(&diff.repo), inline(&file.path));
            let _ = writeln!(
                out,
                "- change in {repo}: {path} {}, +{} -{}",
                file.change, file.added, file.removed
            );
        }
    }
    for earlier in &content.earlier_comments {
        let _ = writeln!(
            out,
            "- comment [{}] of the round before, by {}{}: {}",
            earlier.number,
            inline(&earlier.actor),
            on_line(&earlier.place),
            inline(&earlier.sentence())
        );
        quoted(&mut out, &earlier.text);
        if let Some(answer) = &earlier.answer {
            out.push_str("  answered:\n\n");
            quoted(&mut out, answer);
        }
    }
    let _ = writeln!(out, "- SHA-256 of all of it: {}", content.sha256());
    out
}
