//! Files that reviewers are shown: named files, directories and globs, as they are when the review is made.

use std::fs::File;
use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::open_regular;
use cliq_review::{Artifact, ArtifactView};
use ring::digest::{Context, SHA256};

use crate::media_type::image_type;
use crate::workspace_files::workspace_files;

/// The most files, and the most that are looked at.
const MAX_FILES: usize = 200;
const MAX_LOOKED_AT: usize = 100_000;
/// The most bytes that are shown of one file, of one image, and of all.
const MAX_TEXT: usize = 256 << 10;
const MAX_IMAGE: usize = 1 << 20;
const MAX_SHOWN: usize = 6 << 20;

/// The files that patterns name, and remarks on patterns that name none.
pub(super) fn collect(workspace: &Utf8Path, patterns: &[String]) -> (Vec<Artifact>, Vec<String>) {
    let mut remarks = Vec::new();
    let mut paths: Vec<Utf8PathBuf> = Vec::new();
    for pattern in patterns {
        match workspace_files(workspace, pattern, MAX_LOOKED_AT) {
            Ok(found) if found.is_empty() => remarks.push(format!("no file matches `{pattern}`")),
            Ok(found) => paths.extend(found),
            Err(why) => remarks.push(format!("`{pattern}`: {why}")),
        }
    }
    let mut seen = std::collections::HashSet::new();
    paths.retain(|path| seen.insert(path.clone()));
    if paths.len() > MAX_FILES {
        remarks.push(format!("{} more files are not listed", paths.len() - MAX_FILES));
        paths.truncate(MAX_FILES);
    }
    let mut budget = MAX_SHOWN;
    (paths.iter().map(|path| artifact(workspace, path, &mut budget)).collect(), remarks)
}

fn artifact(workspace: &Utf8Path, path: &Utf8Path, budget: &mut usize) -> Artifact {
    let unreadable = |why: String| Artifact {
        path: path.to_string(),
        size: 0,
        sha256: None,
        shown: ArtifactView::Unreadable { why },
    };
    // Settings have secrets.
    if path.starts_with(".cliq") && path.components().any(|part| part.as_str().starts_with("settings")) {
        return unreadable("settings are not shown".to_owned());
    }
    let full = workspace.join(path);
    let inside = full
        .canonicalize_utf8()
        .is_ok_and(|real| workspace.canonicalize_utf8().is_ok_and(|root| real.starts_with(root)));
    if !inside {
        return unreadable("it leads out of the workspace".to_owned());
    }
    match open_regular(&full) {
        Ok((file, size)) => match read(file) {
            Ok((sha256, head)) => Artifact {
                path: path.to_string(),
                size,
                sha256: Some(sha256),
                shown: show(path, size, &head, budget),
            },
            Err(error) => unreadable(error.to_string()),
        },
        Err(error) => unreadable(error.to_string()),
    }
}

/// The SHA-256 of a file, and its beginning.
fn read(mut file: File) -> std::io::Result<(String, Vec<u8>)> {
    let mut digest = Context::new(&SHA256);
    let (mut head, mut buffer) = (Vec::new(), vec![0_u8; 128 << 10]);
    loop {
        let n = file.read(&mut buffer)?;
        let Some(bytes) = buffer.get(..n).filter(|bytes| !bytes.is_empty()) else { break };
        digest.update(bytes);
        let room = MAX_IMAGE.saturating_sub(head.len()).min(bytes.len());
        head.extend_from_slice(bytes.get(..room).unwrap_or_default());
    }
    Ok((hex::encode(digest.finish()), head))
}

fn show(path: &Utf8Path, size: u64, head: &[u8], budget: &mut usize) -> ArtifactView {
    let shown = if let Some(media_type) = image_type(head) {
        if size > MAX_IMAGE as u64 {
            return ArtifactView::TooLarge;
        }
        ArtifactView::Image { media_type: media_type.to_owned(), base64: STANDARD.encode(head) }
    } else {
        let start = head.get(..MAX_TEXT).unwrap_or(head);
        let text = match std::str::from_utf8(start) {
            Ok(text) => text,
            // A character that is cut at the end is not a fault.
            Err(error) if error.error_len().is_none() => {
                std::str::from_utf8(&start[..error.valid_up_to()]).unwrap_or_default()
            }
            Err(_) => return ArtifactView::Binary,
        };
        if text.contains('\0') {
            return ArtifactView::Binary;
        }
        let (text, cut) = (text.to_owned(), size > start.len() as u64);
        match path.extension() {
            Some("md" | "markdown") => ArtifactView::Markdown { text, cut },
            _ => ArtifactView::Text { text, cut },
        }
    };
    let cost = match &shown {
        ArtifactView::Markdown { text, .. } | ArtifactView::Text { text, .. } => text.len(),
        ArtifactView::Image { base64, .. } => base64.len(),
        ArtifactView::Binary | ArtifactView::TooLarge | ArtifactView::Unreadable { .. } => 0,
    };
    match budget.checked_sub(cost) {
        Some(rest) => {
            *budget = rest;
            shown
        }
        None => ArtifactView::TooLarge,
    }
}
