//! `cliq trust`

use std::process::ExitCode;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_settings::{Settings, TrustSettings};

use crate::args::TrustArgs;
use crate::failure::Failure;
use crate::{project, ui};

/// Setting that holds the directories.
const KEY: &str = "trusted_projects";

pub(super) fn run(args: &TrustArgs) -> Result<ExitCode, Failure> {
    let home = project::host().home.ok_or_else(|| {
        Failure::failed("there is no home directory for settings").hint("set HOME or CLIQ_HOME")
    })?;
    // The person's file alone decides.
    let settings = Settings::load(Some(&home), None)?;
    let mut trusted = TrustSettings::read(&settings).projects;
    if args.list {
        if args.json {
            ui::line(serde_json::json!({ "trusted_projects": trusted }).to_string())?;
        } else {
            trusted.iter().try_for_each(ui::line)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let dir = match &args.dir {
        Some(dir) => dir.clone(),
        None => project::here()?,
    };
    let real = dir.canonicalize_utf8().map_err(|error| {
        Failure::failed(format!("cannot open {dir}: {error}")).hint("name the directory of a project")
    })?;
    if !real.is_dir() {
        return Err(Failure::failed(format!("{real} is not a directory")));
    }
    let file = home.join("settings.json");
    let is_same = |path: &String| {
        Utf8Path::new(path) == real || Utf8Path::new(path).canonicalize_utf8().is_ok_and(|path| path == real)
    };
    if args.remove {
        let before = trusted.len();
        trusted.retain(|path| !is_same(path));
        if trusted.len() == before {
            return Err(
                Failure::failed(format!("{real} is not trusted")).hint("`cliq trust --list` shows what is")
            );
        }
        save(&file, &trusted)?;
        ui::line(format!("{real} is not trusted any more"))?;
        if TrustSettings::trusts(&Settings::load(Some(&home), None)?, &real) {
            ui::warning("a directory above it is still trusted; `cliq trust --list` shows it");
        }
        return Ok(ExitCode::SUCCESS);
    }
    if !trusted.iter().any(is_same) {
        trusted.push(real.to_string());
        save(&file, &trusted)?;
    }
    ui::line(format!("{real} is trusted: agents may read the skills of its project"))?;
    for place in [".agents/skills", ".claude/skills"] {
        let names = skills_in(&real.join(place));
        if !names.is_empty() {
            ui::line(format!("  {place}: {}", names.join(", ")))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn save(file: &Utf8Path, trusted: &[String]) -> Result<(), Failure> {
    match trusted {
        [] => drop(cliq_settings::unset(file, KEY)?),
        some => cliq_settings::set(file, KEY, &serde_json::json!(some).to_string())?,
    }
    Ok(())
}

/// Names of the directories with a skill.
fn skills_in(dir: &Utf8Path) -> Vec<String> {
    let entries = dir.read_dir_utf8().into_iter().flatten();
    let dirs = entries.filter_map(|entry| Some(entry.ok()?.into_path()));
    let with_skill = dirs.filter(|dir: &Utf8PathBuf| dir.join("SKILL.md").is_file());
    let mut names: Vec<String> = with_skill.filter_map(|dir| Some(dir.file_name()?.to_owned())).collect();
    names.sort();
    names
}
