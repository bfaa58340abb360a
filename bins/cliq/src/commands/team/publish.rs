//! `cliq team version` and `cliq team publish`

use std::process::ExitCode;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_packages::Part;
use cliq_project::with_version;
use cliq_workflow::TeamFolder;
use serde_json::json;

use super::install;
use crate::args::PublishArgs;
use crate::failure::Failure;
use crate::ui::{GREEN, paint};
use crate::{project, render, ui};

/// Writes the next version, or the one that was given, into team.yml.
pub(super) fn version(next: &str, path: Option<&str>) -> Result<ExitCode, Failure> {
    let folder = TeamFolder::load(Utf8Path::new(path.unwrap_or(".")))?;
    let part = match next {
        "major" => Some(Part::Major),
        "minor" => Some(Part::Minor),
        "patch" => Some(Part::Patch),
        _ => None,
    };
    let now = folder.check().workflow.and_then(|workflow| workflow.version);
    let next = match (part, &now) {
        (Some(part), Some(now)) => part.raise(now),
        (Some(_), None) => {
            return Err(Failure::usage(format!("{} has no version that is one", folder.file())).hint(
                "`cliq team version 0.1.0` writes one; `cliq team validate` shows the errors of the team",
            ));
        }
        (None, _) => next.parse().map_err(|error| {
            Failure::usage(format!("{next:?} is not a version: {error}"))
                .hint("write `patch`, `minor`, `major`, or a version such as 1.2.0")
        })?,
    };
    let text = with_version(folder.text(), &next).ok_or_else(|| {
        Failure::usage(format!("{} has no line `version:` or `name:`", folder.file()))
            .hint("write the fields of team.yml in lines of their own")
    })?;
    cliq_fs::write_atomic(folder.file(), text.as_bytes())?;
    let from = now.map_or_else(|| "no version".to_owned(), |now| now.to_string());
    ui::line(format!("{}: {from} → {next}", folder.file()))?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn publish(args: &PublishArgs) -> Result<ExitCode, Failure> {
    let host = project::host();
    let to = args.to.as_deref().map(str::parse).transpose();
    let to = to.map_err(|error: cliq_packages::SourceError| Failure::usage(error.to_string()))?;
    let path = Utf8Path::new(args.path.as_deref().unwrap_or("."));
    let quiet = |_: &str| {};
    let publication = host.prepare_publication(path, to, args.key.clone().map(Utf8PathBuf::from), &quiet)?;
    let (file, text) = &publication.team_file;
    let bytes: u64 = publication.files.iter().map(|(_, bytes)| bytes).sum();
    if !args.json {
        render::diagnostics::show(text, file, &publication.warnings);
        ui::line(format!("{} {} to {}", publication.name, publication.version, publication.repository))?;
        for (path, bytes) in &publication.files {
            ui::line(format!("  {bytes:>9}  {}", ui::plain(path)))?;
        }
        install::permissions(&publication.permissions)?;
        match &publication.key {
            Some(key) => ui::line(format!("to be signed with {key}"))?,
            None => ui::line("not signed: `--key FILE` or the setting packages.signing_key signs it")?,
        }
    }
    let digest = if args.dry_run { None } else { Some(host.publish(&publication)?) };
    if args.json {
        ui::json(&json!({
            "name": publication.name, "version": publication.version.to_string(),
            "repository": publication.repository, "manifest": digest,
            "files": publication.files.iter().map(|(path, bytes)| json!({"path": path, "bytes": bytes})).collect::<Vec<_>>(),
            "permissions": publication.permissions, "signed": publication.key.is_some(), "published": digest.is_some(),
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let files = ui::count(publication.files.len(), "file");
    match digest {
        Some(digest) => {
            ui::line(format!("{} published {files}, {bytes} bytes, as {digest}", paint(GREEN, "✓")))?;
            let (name, version) = (&publication.name, &publication.version);
            ui::line(match &args.to {
                Some(_) => format!("next: `cliq team install {}:{version}`", publication.repository),
                None => format!("next: `cliq team install {name}@^{version}`"),
            })?;
        }
        None => ui::line(format!("{files}, {bytes} bytes; nothing was published"))?,
    }
    Ok(ExitCode::SUCCESS)
}
