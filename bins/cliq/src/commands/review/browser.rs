//! The link to the page of a review.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Command, ExitCode, Stdio};

use camino::{Utf8Path, Utf8PathBuf};

use super::{ReviewSource, find, refused};
use crate::args::ReviewIdArg;
use crate::failure::Failure;
use crate::gateway::home;
use crate::{project, reviews, ui};

pub(super) async fn run(id: &ReviewIdArg, reviewer: Option<&str>) -> Result<ExitCode, Failure> {
    let ReviewSource { review, .. } = find::find(id, false).await?;
    if let Some(ending) = review.ending() {
        return Err(Failure::refused(format!("the review is over: {ending}")));
    }
    let reviewer = review.reviewer_for(reviewer, &reviews::user()).map_err(|refusal| refused(&refusal))?;
    let home = home()?;
    let kept = cliq_project::internals::kept_review(&home, review.id.as_str());
    let Some(link) = kept.as_ref().and_then(|kept| kept.link(&reviewer)) else {
        return Err(Failure::refused("this machine has no link to the page of this review")
            .hint("`cliq review approve`, `request-changes` and `reject` answer it here"));
    };
    ui::line(&link)?;
    if let Some(hint) = kept.and_then(|kept| kept.hint) {
        ui::hint(&hint);
    }
    if ui::is_watched() {
        show_link(&home, &link);
    }
    Ok(ExitCode::SUCCESS)
}

/// Opens a link in a browser if this session has a desktop. Returns whether a browser was asked.
pub(in crate::commands) fn show_link(home: &Utf8Path, link: &str) -> bool {
    let has_desktop = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    has_desktop && show(home, link)
}

/// Opens a browser if the system has one. The link is a secret: it is passed in a file and not in the arguments of a process.
fn show(home: &Utf8Path, link: &str) -> bool {
    let environment = project::host().environment;
    let Some(opener) = ["xdg-open", "open"].iter().find_map(|name| environment.find_program(name)) else {
        return false;
    };
    let Some(file) = page_with(home, link) else { return false };
    let mut command = Command::new(opener);
    command.arg(file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // A thread waits for the opener, which may live as long as the browser.
    let Ok(mut child) = command.spawn() else { return false };
    std::thread::spawn(move || child.wait());
    true
}

/// A page that leads to the link.
fn page_with(home: &Utf8Path, link: &str) -> Option<Utf8PathBuf> {
    let file = home.join("reviews").join("open.html");
    let _ = std::fs::remove_file(&file);
    let mut opened = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file).ok()?;
    // A link has letters, digits and `:/.-?=&` only.
    let link = link.replace('&', "&amp;");
    write!(
        opened,
        "<!doctype html><meta http-equiv=\"refresh\" content=\"0; url={link}\"><title>cliq</title>"
    )
    .ok()?;
    Some(file)
}
