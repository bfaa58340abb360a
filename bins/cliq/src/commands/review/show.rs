//! Display of a review: subject, reviewers, answers, record.

use std::process::ExitCode;

use cliq_fs::CliqDir;
use cliq_project::internals::{RecordCheck, check_record, settled_notices};
use cliq_protocol::{FormField, FormFieldType, ReviewSubject};
use cliq_review::{ArtifactView, Content, Fate, HunkLine, LineKind, NoticeState, Review, hunk_lines};
use serde_json::json;

use super::{ReviewSource, document, find};
use crate::args::ReviewIdArg;
use crate::failure::Failure;
use crate::gateway::home;
use crate::ui::{self, BOLD, DIM, GREEN, RED, YELLOW, paint};

/// Characters of a comment's id that are shown. They begin with the time.
const ID: usize = 18;

pub(super) async fn run(id: &ReviewIdArg, full: bool, as_json: bool) -> Result<ExitCode, Failure> {
    let ReviewSource { review, reviews } = find::find(id, true).await?;
    // The agent has ended before the last notices were delivered: their outcome is in the files of the run.
    let review = settled(review);
    let content = reviews.content(&review.id).await?.unwrap_or_default();
    let record = check_record(&review);
    let is_broken = matches!(record, RecordCheck::Broken { .. });
    if as_json {
        let mut value = document(&review);
        value["content"] = json!(content);
        value["record"] = match &record {
            RecordCheck::Intact(file) => json!({"state": "intact", "file": file}),
            RecordCheck::NotWritten => json!({"state": "not_written"}),
            RecordCheck::Broken { file, problems } => {
                json!({"state": "broken", "file": file, "problems": problems})
            }
        };
        ui::json(&value)?;
    } else {
        print(&review, &content, full)?;
        print_record(&record)?;
    }
    Ok(if is_broken { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn settled(mut review: Review) -> Review {
    let Ok(dir) = CliqDir::open(&review.project) else { return review };
    let now = crate::reviews::now();
    for event in settled_notices(&dir, &review, false) {
        if let Ok(Some(next)) = review.step(&event, now) {
            review = next;
        }
    }
    review
}

fn title(text: &str) -> Result<(), Failure> {
    Ok(ui::line(format!("\n{}", paint(BOLD, text)))?)
}

/// Prints the request of an agent at work.
fn print_request(subject: &ReviewSubject) -> Result<(), Failure> {
    title("request")?;
    let (paths, text) = match subject {
        ReviewSubject::Permission { title, tool, paths, details, .. } => {
            ui::line(format!("  {tool}: {}", ui::plain(title)))?;
            (paths.as_slice(), details.as_deref())
        }
        ReviewSubject::Question { text, .. } => (&[][..], Some(text.as_str())),
    };
    for path in paths {
        ui::line(format!("  {}", ui::plain(path)))?;
    }
    for line in text.into_iter().flat_map(str::lines) {
        ui::line(format!("    {}", ui::plain(line)))?;
    }
    Ok(())
}

fn print(review: &Review, content: &Content, full: bool) -> Result<(), Failure> {
    let (iteration, max) = (review.iteration, review.max_iterations);
    match &review.subject {
        None => ui::line(format!(
            "{} of {}, evaluation {iteration} of {max}",
            paint(BOLD, &review.phase),
            review.team
        ))?,
        Some(subject) => {
            ui::line(format!("{} of {}", paint(BOLD, &review.phase), review.team))?;
            ui::line(paint(BOLD, ui::plain(&subject.sentence())))?;
        }
    }
    ui::line(paint(DIM, format!("review {}, run {}, in {}", review.id, review.run_id, review.project)))?;
    match review.ending() {
        Some(ending) => ui::line(format!("{} {}", paint(YELLOW, "over:"), ui::plain(&ending)))?,
        None => {
            let who = review.waits_for().join(", ");
            ui::line(format!(
                "{} {who}, since {}, until {}",
                paint(YELLOW, "waits for"),
                review.created,
                review.deadline
            ))?;
            let kept =
                home().ok().and_then(|home| cliq_project::internals::kept_review(&home, review.id.as_str()));
            for (name, link) in
                review.waits_for().into_iter().filter_map(|name| Some((name, kept.as_ref()?.link(name)?)))
            {
                ui::line(format!("  {name}: {link}"))?;
            }
            if let Some(hint) = kept.and_then(|kept| kept.hint) {
                ui::line(format!("  {hint}"))?;
            }
        }
    }
    ui::line(format!("reviewers: {}", review.reviewers))?;
    if let Some(subject) = &review.subject {
        print_request(subject)?;
    }
    if let Some(brief) = &content.brief {
        title("what is reviewed")?;
        ui::line(ui::plain(brief.trim_end()))?;
    }
    print_earlier(content)?;
    print_content(content, full)?;
    if !review.form.is_empty() {
        title("to be filled in")?;
        for field in review.form.fields() {
            ui::line(format!("  {}", describe(field)))?;
        }
    }
    if !review.comments.is_empty() {
        title("comments")?;
    }
    for said in &review.comments {
        let (by, via) = (ui::plain(&said.comment.actor), said.comment.via.as_str());
        let on = said.comment.place.as_ref().map(|place| format!(" on {}", ui::plain(&place.to_string())));
        let id = said.comment.id.get(..ID).unwrap_or(&said.comment.id);
        ui::line(format!(
            "  {by} at {} ({via}){}  {}",
            said.at,
            on.unwrap_or_default(),
            paint(DIM, ui::plain(id))
        ))?;
        if let Some(place) = &said.comment.place {
            ui::line(paint(DIM, format!("    > {}", ui::plain(place.text()))))?;
        }
        for line in said.comment.text.lines() {
            ui::line(format!("    {}", ui::plain(line)))?;
        }
    }
    if !review.answers.is_empty() {
        title("answers")?;
    }
    for accepted in &review.answers {
        let answer = &accepted.answer;
        let (by, done, via) = (accepted.by(), answer.choice.done(), answer.via.as_str());
        ui::line(format!("  {by} {done} at {} ({via})", accepted.at))?;
        for line in answer.reason.iter().flat_map(|words| words.lines()) {
            ui::line(format!("    {}", ui::plain(line)))?;
        }
        for (name, value) in &answer.inputs {
            ui::line(format!("    {name}: {}", ui::plain(value.as_str().unwrap_or(&value.to_string()))))?;
        }
    }
    if !review.notices.is_empty() {
        title("notices")?;
    }
    for notice in &review.notices {
        let state = match &notice.state {
            NoticeState::Planned => paint(DIM, "not sent yet"),
            NoticeState::Sent => paint(GREEN, "sent"),
            NoticeState::Failed { error } => paint(RED, format!("failed: {}", ui::plain(error))),
            NoticeState::Unknown => paint(YELLOW, "unknown: the run ended while it was sent"),
        };
        ui::line(format!(
            "  {} {} to {} by {}: {state}",
            notice.at,
            notice.kind.event(),
            notice.reviewer,
            notice.channel
        ))?;
    }
    if review.is_pending() {
        let id = review.id.as_str().get(..8).unwrap_or_default();
        title("answer")?;
        let required: Vec<String> = review
            .form
            .fields()
            .iter()
            .filter(|field| field.required)
            .map(|field| format!(" --input {}=VALUE", field.name))
            .collect();
        ui::line(format!("  cliq review approve {id}{} [-m TEXT]", required.concat()))?;
        if !review.route_targets.is_empty() && !content.diffs.is_empty() {
            ui::line(format!("  cliq review comment {id} --at PATH:LINE -m TEXT"))?;
        }
        for target in &review.route_targets {
            ui::line(format!("  cliq review request-changes {id} --to {target} -m TEXT"))?;
        }
        ui::line(format!("  cliq review reject {id} [-m TEXT]"))?;
    }
    Ok(())
}

/// Prints the comments of the round before, with what became of their lines.
fn print_earlier(content: &Content) -> Result<(), Failure> {
    if !content.earlier_comments.is_empty() {
        title("comments of the round before")?;
    }
    for earlier in &content.earlier_comments {
        let (place, sentence) = (ui::plain(&earlier.place.to_string()), earlier.sentence());
        ui::line(format!("  [{}] {place}: {}", earlier.number, paint(YELLOW, ui::plain(&sentence))))?;
        ui::line(paint(DIM, format!("    > {}", ui::plain(earlier.place.text()))))?;
        if let Fate::Changed { lines, .. } = &earlier.fate {
            for line in lines {
                ui::line(paint(GREEN, format!("    > {}", ui::plain(line))))?;
            }
        }
        for line in earlier.text.lines() {
            ui::line(format!("    {}: {}", ui::plain(&earlier.actor), ui::plain(line)))?;
        }
        match &earlier.answer {
            Some(answer) => {
                answer.lines().try_for_each(|line| ui::line(format!("    answer: {}", ui::plain(line))))?
            }
            None => ui::line(paint(DIM, "    no answer"))?,
        }
    }
    Ok(())
}

fn print_content(content: &Content, full: bool) -> Result<(), Failure> {
    if !content.checks.is_empty() {
        title("checks")?;
    }
    for check in &content.checks {
        let mark = if check.pass { paint(GREEN, "✓") } else { paint(RED, "✗") };
        ui::line(format!("  {mark} {}", check.label()))?;
    }
    for handed in &content.handed_over {
        title(&format!("from {}", handed.from))?;
        ui::line(ui::plain(handed.text.trim_end()))?;
    }
    if !content.artifacts.is_empty() {
        title("files")?;
    }
    for artifact in &content.artifacts {
        let how = match &artifact.shown {
            ArtifactView::Markdown { .. } | ArtifactView::Text { .. } => String::new(),
            ArtifactView::Image { .. } => ", an image".to_owned(),
            ArtifactView::Binary => ", no text".to_owned(),
            ArtifactView::TooLarge => ", too large to be shown".to_owned(),
            ArtifactView::Unreadable { why } => format!(", {why}"),
        };
        ui::line(format!("  {} ({} bytes{how})", ui::plain(&artifact.path), artifact.size))?;
        if let (true, ArtifactView::Markdown { text, .. } | ArtifactView::Text { text, .. }) =
            (full, &artifact.shown)
        {
            for line in text.lines() {
                ui::line(format!("  {} {}", paint(DIM, "│"), ui::plain(line)))?;
            }
        }
    }
    for diff in &content.diffs {
        title(&if diff.repo == "." { "changes".to_owned() } else { format!("changes in {}", diff.repo) })?;
        for file in &diff.files {
            let old = file.old_path.as_ref().map(|old| format!("{} → ", ui::plain(old))).unwrap_or_default();
            ui::line(format!(
                "  {old}{} {} {} {}",
                ui::plain(&file.path),
                paint(DIM, &file.change),
                paint(GREEN, format!("+{}", file.added)),
                paint(RED, format!("-{}", file.removed))
            ))?;
            for line in hunk_lines(&file.hunks).iter().filter(|_| full) {
                print_line(line)?;
            }
        }
        if diff.more_files > 0 {
            ui::line(format!("  and {} more files", diff.more_files))?;
        }
    }
    for remark in &content.remarks {
        ui::line(format!("{} {}", paint(YELLOW, "note:"), ui::plain(remark)))?;
    }
    if !full && (!content.artifacts.is_empty() || !content.diffs.is_empty()) {
        ui::line(paint(DIM, "  --full shows their text"))?;
    }
    Ok(())
}

/// Prints a line of a change with the number by which a comment names it: that of a removed line is the one before the change.
fn print_line(line: &HunkLine<'_>) -> Result<(), Failure> {
    let text = ui::plain(line.text);
    let number = |number: Option<u64>| number.map(|number| number.to_string()).unwrap_or_default();
    Ok(ui::line(match line.kind {
        LineKind::Head => paint(DIM, text),
        LineKind::Same => format!("{}  {text}", paint(DIM, format!("{:>6}", number(line.new)))),
        LineKind::Added => {
            format!("{} {}", paint(DIM, format!("{:>6}", number(line.new))), paint(GREEN, format!("+{text}")))
        }
        LineKind::Removed => {
            format!("{} {}", paint(DIM, format!("{:>6}", number(line.old))), paint(RED, format!("-{text}")))
        }
    })?)
}

fn describe(field: &FormField) -> String {
    let kind = match &field.kind {
        FormFieldType::Select(choices) => choices.join(" | "),
        kind => kind.as_str().to_owned(),
    };
    let default = field.default.as_ref().map(|value| format!(", default {value}")).unwrap_or_default();
    let required = if field.required { ", required" } else { "" };
    format!("--input {}=…  {} ({kind}{required}{default})", field.name, field.label)
}

fn print_record(record: &RecordCheck) -> Result<(), Failure> {
    match record {
        RecordCheck::NotWritten => Ok(()),
        RecordCheck::Intact(file) => {
            Ok(ui::line(format!("\n{} {file}, as it was written", paint(GREEN, "record:")))?)
        }
        RecordCheck::Broken { file, problems } => {
            ui::line(format!("\n{} {file}", paint(RED, "the record was tampered with:")))?;
            for problem in problems {
                ui::line(format!("  {problem}"))?;
            }
            Ok(())
        }
    }
}
