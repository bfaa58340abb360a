//! `cliq team install`

use std::fs;
use std::process::{Command, ExitCode, Stdio};

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::IoContext;
use cliq_workflow::TeamFolder;

use super::assemble::copy_tree;
use super::doctor::on_path;
use crate::failure::{Failure, Kind};
use crate::ui::{GREEN, paint};
use crate::{project, render, ui};

pub(super) fn run(source: &str) -> Result<ExitCode, Failure> {
    let temporary = tempfile::tempdir()?;
    let dir = if is_git(source) {
        let into = Utf8Path::from_path(temporary.path())
            .ok_or_else(|| Failure::failed("the temporary directory is not UTF-8"))?
            .join("team");
        clone(source, &into)?;
        into
    } else {
        Utf8PathBuf::from(source)
    };
    let folder = TeamFolder::load(&dir)?.with_installed_agents(project::installed_names());
    let checked = folder.check();
    render::diagnostics::show(folder.text(), folder.file(), &checked.diagnostics);
    let Some(workflow) = checked.workflow else {
        ui::error(&format!("{source} cannot run: {}", render::diagnostics::count(&checked.diagnostics)));
        return Err(Failure::told(Kind::Usage));
    };
    let home = cliq_settings::home().ok_or_else(|| Failure::usage("neither CLIQ_HOME nor HOME is set"))?;
    let place = home.join("teams").join(&workflow.name);
    let version = |version: &Option<String>| version.as_ref().map(|v| format!(" v{v}")).unwrap_or_default();
    let now = version(&workflow.version.as_ref().map(ToString::to_string));
    let old = TeamFolder::load(&place).ok().map(|folder| folder.check().workflow.and_then(|w| w.version));
    match old {
        Some(old) => {
            let old = version(&old.as_ref().map(ToString::to_string));
            ui::line(format!(
                "replacing {}{old} by{}",
                workflow.name,
                if now.is_empty() { " the new one" } else { &now }
            ))?;
        }
        None => ui::line(format!("installing {}{now}", workflow.name))?,
    }
    refuse_links(folder.dir(), &folder.dir().canonicalize_utf8().at("find", folder.dir())?)?;
    put(folder.dir(), &place)?;
    ui::line(format!("{} installed to {place}", paint(GREEN, "✓")))?;
    ui::line(format!("next: `cliq assemble {}` in a project", workflow.name))?;
    Ok(ExitCode::SUCCESS)
}

/// Puts a copy of a folder in its place, whole: whoever looks finds the old one or the new.
fn put(from: &Utf8Path, place: &Utf8Path) -> Result<(), Failure> {
    let parent = place.parent().unwrap_or(place);
    fs::create_dir_all(parent).at("create", parent)?;
    let staging = tempfile::Builder::new().prefix(".tmp-").tempdir_in(parent)?;
    let staged = Utf8Path::from_path(staging.path())
        .ok_or_else(|| Failure::failed(format!("{parent} is not UTF-8")))?
        .to_owned();
    let (new, old) = (staged.join("new"), staged.join("old"));
    copy_tree(from, &new)?;
    if place.exists() {
        fs::rename(place, &old).at("move away", place)?;
    }
    if let Err(error) = fs::rename(&new, place) {
        let _ = fs::rename(&old, place);
        return Err(error).at("create", place)?;
    }
    Ok(())
}

/// Somebody else's folder must not bring along what lies elsewhere on this machine, nor lead in a circle.
fn refuse_links(dir: &Utf8Path, root: &Utf8Path) -> Result<(), Failure> {
    for entry in dir.read_dir_utf8().at("read", dir)? {
        let entry = entry.at("read", dir)?;
        let (path, kind) = (entry.path(), entry.file_type().at("read", entry.path())?);
        if kind.is_symlink() {
            let target =
                path.canonicalize_utf8().ok().filter(|target| target.starts_with(root) && target.is_file());
            if target.is_none() {
                return Err(Failure::usage(format!("{path} links to what is no file of the team"))
                    .hint("put the file itself there"));
            }
        } else if kind.is_dir() && entry.file_name() != ".git" {
            refuse_links(path, root)?;
        }
    }
    Ok(())
}

fn is_git(source: &str) -> bool {
    let url = source.split('#').next().unwrap_or(source);
    url.contains("://")
        || url.starts_with("git@")
        || url.ends_with(".git") && !Utf8Path::new(url).join("team.yml").exists()
}

/// A shallow copy of a repository. Nothing of it is run.
fn clone(source: &str, into: &Utf8Path) -> Result<(), Failure> {
    if !on_path("git") {
        return Err(Failure::usage("there is no git, which installing from a repository needs")
            .hint("install git, or name a folder"));
    }
    let (url, branch) = match source.split_once('#') {
        Some((url, branch)) => (url, Some(branch)),
        None => (source, None),
    };
    ui::line(format!("fetching {url}"))?;
    let mut git = Command::new("git");
    git.args(["clone", "--quiet", "--depth", "1", "--no-recurse-submodules"]);
    if let Some(branch) = branch {
        git.args(["--branch", branch]);
    }
    // Nobody is asked for a password; after `--`, no URL is taken for an option.
    git.args(["--", url, into.as_str()]).env("GIT_TERMINAL_PROMPT", "0").stdin(Stdio::null());
    let output = git.output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Failure::failed(format!("git cannot fetch {url}: {}", said.trim())))
}
