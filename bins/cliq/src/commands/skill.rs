//! `cliq skill`

use std::fs;
use std::process::ExitCode;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::write_atomic;

use crate::args::SkillArgs;
use crate::failure::Failure;
use crate::ui::{GREEN, paint};
use crate::{project, ui};

/// Files of the skill. Pages of the documentation are its references.
const FILES: [(&str, &str); 6] = [
    ("SKILL.md", include_str!("../../skill/SKILL.md")),
    ("references/exit-codes.md", include_str!("../../skill/references/exit-codes.md")),
    ("references/expressions.md", include_str!("../../skill/references/expressions.md")),
    ("references/patterns.md", include_str!("../../skill/references/patterns.md")),
    ("references/team-test.md", include_str!("../../skill/references/team-test.md")),
    ("references/team-yml.md", include_str!("../../skill/references/team-yml.md")),
];
/// Directories in which assistants look for skills.
const PLACES: [&str; 2] = [".agents/skills/cliq", ".claude/skills/cliq"];
/// Field of the front matter with the digest of all files. Files that do not fit it were edited.
const DIGEST: &str = "  digest: ";

pub(super) fn run(args: &SkillArgs) -> Result<ExitCode, Failure> {
    let base = if args.global { home()? } else { project::here()? };
    let files = files();
    let places: Vec<Utf8PathBuf> = PLACES.iter().map(|place| base.join(place)).collect();
    for place in &places {
        if !args.force && is_foreign(place, &files) {
            let message = format!("the skill in {place} was edited, or another program wrote it");
            return Err(Failure::refused(message).hint("`--force` replaces it"));
        }
    }
    for place in &places {
        write(place, &files).map_err(|error| Failure::failed(format!("cannot write {place}: {error}")))?;
        ui::line(format!("{} {place}", paint(GREEN, "✓")))?;
    }
    ui::line("Assistants that read skills now know how to make, validate, run and read teams.")?;
    Ok(ExitCode::SUCCESS)
}

fn home() -> Result<Utf8PathBuf, Failure> {
    let host = project::host();
    let home = host.environment.get("HOME").filter(|home| !home.is_empty());
    home.map(Utf8PathBuf::from).ok_or_else(|| {
        Failure::failed("there is no home directory").hint("set HOME, or write the skill into a project")
    })
}

/// Returns the files as they are written, with their digest.
fn files() -> Vec<(&'static str, String)> {
    let mut files: Vec<(&str, String)> =
        FILES.iter().map(|(name, text)| (*name, without_links_elsewhere(text))).collect();
    let digest = digest(&files);
    let metadata =
        format!("metadata:\n  version: \"{}\"\n{DIGEST}{digest}\n---\n", env!("CARGO_PKG_VERSION"));
    if let Some((_, skill)) = files.first_mut() {
        *skill = skill.replacen("\n---\n", &format!("\n{metadata}"), 1);
    }
    files
}

/// Digest of files, without what is written with it.
fn digest(files: &[(&str, String)]) -> String {
    let mut context = ring::digest::Context::new(&ring::digest::SHA256);
    for (name, text) in files {
        context.update(name.as_bytes());
        context.update(b"\0");
        context.update(text.as_bytes());
        context.update(b"\0");
    }
    hex::encode(&context.finish().as_ref()[..16])
}

/// Whether a place has files that are not exactly what this or an earlier version wrote.
fn is_foreign(place: &Utf8Path, files: &[(&str, String)]) -> bool {
    if !files.iter().any(|(name, _)| place.join(name).exists()) {
        return false;
    }
    let read = |name| fs::read_to_string(place.join(name)).ok();
    let found: Option<Vec<(&str, String)>> =
        files.iter().map(|(name, _)| Some((*name, read(name)?))).collect();
    let Some(mut found) = found else { return true };
    let metadata = found.first().and_then(|(_, skill)| take_metadata(skill));
    let Some((written, plain)) = metadata else { return true };
    found[0].1 = plain;
    digest(&found) != written
}

/// Splits a written SKILL.md into its digest and the text without metadata.
fn take_metadata(skill: &str) -> Option<(String, String)> {
    let begin = skill.find("\nmetadata:\n")? + 1;
    let end = begin + skill[begin..].find("\n---\n")?;
    let digest = skill[begin..end].lines().find_map(|line| line.strip_prefix(DIGEST))?.to_owned();
    Some((digest, format!("{}{}", &skill[..begin], &skill[end + 1..])))
}

fn write(place: &Utf8Path, files: &[(&str, String)]) -> Result<(), Box<dyn std::error::Error>> {
    for (name, text) in files {
        let file = place.join(name);
        fs::create_dir_all(file.parent().unwrap_or(place))?;
        write_atomic(&file, text.as_bytes())?;
    }
    Ok(())
}

/// Replaces links to pages that are no part of the skill by their texts.
fn without_links_elsewhere(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("](") {
        let (before, after) = rest.split_at(at);
        let end = after.find(')').map_or(after.len(), |end| end + 1);
        let target = after.get(2..end.saturating_sub(1)).unwrap_or_default();
        let page = target.split('#').next().unwrap_or_default();
        let is_elsewhere =
            page.ends_with(".md") && !FILES.iter().any(|(name, _)| name.ends_with(&format!("/{page}")));
        match before.rfind('[') {
            Some(open) if is_elsewhere => {
                out.push_str(&before[..open]);
                out.push_str(&before[open + 1..]);
            }
            _ => {
                out.push_str(before);
                out.push_str(&after[..end]);
            }
        }
        rest = &after[end..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_other_pages_become_their_texts() {
        let text =
            "See [models.md](models.md#tools), [the fields](team-yml.md#fields) and [x](https://a.b/c).";
        assert_eq!(
            without_links_elsewhere(text),
            "See models.md, [the fields](team-yml.md#fields) and [x](https://a.b/c)."
        );
    }

    #[test]
    fn a_digest_is_that_of_the_files_as_they_were_written() {
        let mut written = files();
        let (digest_there, plain) = take_metadata(&written[0].1).expect("metadata");
        written[0].1 = plain;
        assert_eq!(digest(&written), digest_there);
        assert!(!written[0].1.contains("metadata:"));
    }
}
