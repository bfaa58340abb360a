//! Finding teams: in a folder, installed in `CLIQ_HOME`, bundled with cliq.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::IoContext;
use cliq_workflow::TeamFolder;

use crate::failure::Failure;
use crate::project;

/// A team that is part of this program: its name and its files.
pub(crate) struct Bundled {
    pub(crate) name: &'static str,
    pub(crate) files: &'static [(&'static str, &'static str)],
}

macro_rules! files {
    ($dir:literal: $($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../", $dir, "/", $path)))),*]
    };
}

/// The team of `cliq demo`.
pub(crate) const DEMO: Bundled = Bundled {
    name: "@cliq/demo",
    files: files!("demo/team":
        "team.yml", "roles/links.md", "roles/headings.md", "roles/front-matter.md", "roles/fixer.md", "roles/report.md",
        "agents/lib.sh", "agents/inspector.sh", "agents/fixer.sh", "agents/reporter.sh",
    ),
};

/// What `cliq demo` puts beside the team: the pages, and the checks that they have to pass.
pub(crate) const DEMO_FILES: &[(&str, &str)] = files!("demo":
    "checks/links.sh", "checks/headings.sh", "checks/front-matter.sh", "checks/lib.sh",
    "pages/index.md", "pages/guide/install.md", "pages/guide/first-steps.md", "pages/guide/upgrade.md",
    "pages/reference/settings.md", "pages/reference/commands.md", "pages/about.md",
);

const HELLO_WORLD: Bundled = Bundled {
    name: "@cliq/hello-world",
    files: files!("teams/hello-world": "team.yml", "roles/planner.md", "roles/writer.md", "roles/reviewer.md"),
};

const CODE: Bundled = Bundled {
    name: "@cliq/code",
    files: files!("teams/code":
        "team.yml", "roles/architect.md", "roles/developer.md", "roles/tester.md", "roles/reviewer.md",
    ),
};

/// Every bundled team.
pub(crate) const BUNDLED: &[Bundled] = &[HELLO_WORLD, CODE, DEMO];

/// Writes files below a directory; scripts become executable.
pub(crate) fn write_files(dir: &Utf8Path, files: &[(&str, &str)]) -> Result<(), Failure> {
    for (path, text) in files {
        let path = dir.join(path);
        let parent = path.parent().unwrap_or(dir);
        fs::create_dir_all(parent).at("create", parent)?;
        fs::write(&path, text).at("write", &path)?;
        if text.starts_with("#!") {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).at("make executable", &path)?;
        }
    }
    Ok(())
}

/// A team that was found. A bundled one lies in a temporary directory for as long as this lives.
pub(crate) struct Found {
    pub(crate) folder: TeamFolder,
    _temporary: Option<tempfile::TempDir>,
}

/// Loads the team that a person means: `@scope/name`, or a path.
pub(crate) fn load(reference: &str) -> Result<Found, Failure> {
    let installed = project::installed_names();
    if !reference.starts_with('@') || Utf8Path::new(reference).exists() {
        let folder = TeamFolder::load(Utf8Path::new(reference))?.with_installed_agents(installed);
        return Ok(Found { folder, _temporary: None });
    }
    if let Some(dir) =
        cliq_settings::home().map(|home| home.join("teams").join(reference)).filter(|dir| dir.is_dir())
    {
        return Ok(Found {
            folder: TeamFolder::load(&dir)?.with_installed_agents(installed),
            _temporary: None,
        });
    }
    if let Some(bundled) = BUNDLED.iter().find(|team| team.name == reference) {
        let temporary = tempfile::tempdir()?;
        let dir = Utf8Path::from_path(temporary.path())
            .ok_or_else(|| Failure::failed("the temporary directory is not UTF-8"))?;
        write_files(dir, bundled.files)?;
        return Ok(Found {
            folder: TeamFolder::load(dir)?.with_installed_agents(installed),
            _temporary: Some(temporary),
        });
    }
    let known = list()?;
    let near = cliq_workflow::nearest(reference, known.iter().map(|team| team.name.as_str()));
    let hint = match near {
        Some(near) => format!("did you mean {near}?"),
        None => "`cliq team list` shows the teams there are; a folder is named by its path".to_owned(),
    };
    Err(Failure::usage(format!("there is no team {reference}")).hint(hint))
}

/// The team that a team phase means, whose own team lies in `base`: `@scope/name`, a path from there, or the name of an
/// installed team of the scope `@local`.
pub(crate) fn load_from(base: &Utf8Path, reference: &str) -> Result<Found, Failure> {
    if reference.contains("://") {
        return Err(Failure::usage(format!(
            "{reference} is the address of a hub, which this version of cliq does not know"
        ))
        .hint("`cliq team install` the team, and name it `@scope/name`"));
    }
    if reference.starts_with('@') {
        return load(reference);
    }
    let path = base.join(reference);
    if !path.exists() && !reference.contains('/') {
        return load(&format!("@local/{reference}"));
    }
    load(path.as_str())
}

/// The team here, else the assembled one.
pub(crate) fn load_or_here(reference: Option<&str>) -> Result<Found, Failure> {
    if let Some(reference) = reference {
        return load(reference);
    }
    if Utf8Path::new("team.yml").exists() {
        return load(".");
    }
    match cliq_fs::CliqDir::discover(&project::here()?).filter(|dir| dir.team_file().exists()) {
        Some(dir) => load(dir.root().as_str()),
        None => load("."),
    }
}

/// A line of `cliq team list`.
#[derive(Debug, serde::Serialize)]
pub(crate) struct Listed {
    pub(crate) name: String,
    pub(crate) source: &'static str,
    pub(crate) path: Option<Utf8PathBuf>,
    pub(crate) description: Option<String>,
    pub(crate) valid: bool,
}

/// All teams: in this directory and directly below it, installed, bundled.
pub(crate) fn list() -> Result<Vec<Listed>, Failure> {
    let mut teams = Vec::new();
    let mut add = |dir: &Utf8Path, source: &'static str| {
        let Ok(folder) = TeamFolder::load(dir) else { return };
        let checked = folder.with_installed_agents(project::installed_names()).check();
        let (name, description) = match &checked.workflow {
            Some(workflow) => (workflow.name.clone(), workflow.description.clone()),
            None => (dir.file_name().unwrap_or(dir.as_str()).to_owned(), None),
        };
        teams.push(Listed {
            name,
            source,
            path: Some(dir.to_owned()),
            description,
            valid: checked.workflow.is_some(),
        });
    };
    add(Utf8Path::new("."), "here");
    for dir in sub_directories(Utf8Path::new(".")) {
        add(&dir, "here");
        if dir.file_name().is_some_and(|name| name.starts_with('@')) {
            sub_directories(&dir).iter().for_each(|dir| add(dir, "here"));
        }
    }
    if let Some(home) = cliq_settings::home() {
        for scope in sub_directories(&home.join("teams")) {
            sub_directories(&scope).iter().for_each(|dir| add(dir, "installed"));
        }
    }
    for bundled in BUNDLED {
        let found = load(bundled.name)?;
        let workflow = found.folder.check().workflow;
        teams.push(Listed {
            name: bundled.name.to_owned(),
            source: "bundled",
            path: None,
            valid: workflow.is_some(),
            description: workflow.and_then(|w| w.description),
        });
    }
    Ok(teams)
}

fn sub_directories(dir: &Utf8Path) -> Vec<Utf8PathBuf> {
    let Ok(entries) = dir.read_dir_utf8() else { return Vec::new() };
    let mut found: Vec<_> = entries
        .filter_map(Result::ok)
        .filter(|entry| !entry.file_name().starts_with('.') && entry.path().is_dir())
        .map(camino::Utf8DirEntry::into_path)
        .collect();
    found.sort();
    found
}
