//! `cliq team generate` and `cliq team improve`

use std::process::ExitCode;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_project::{BuilderRequest, BuiltTeam, Host, ProjectError, TeamText};
use cliq_protocol::TeamName;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;

use crate::args::{GenerateArgs, ImproveArgs};
use crate::commands::signals::interrupted;
use crate::failure::Failure;
use crate::gateway::block_on;
use crate::project;
use crate::render::{diagnostics, difference};
use crate::ui::{self, BOLD, GREEN, paint};

pub(super) fn generate(args: &GenerateArgs) -> Result<ExitCode, Failure> {
    let intent = text(&args.text, "description of the team")?;
    if args.to.as_ref().is_some_and(|dir| dir.as_str().is_empty()) {
        return Err(
            Failure::usage("`--to` names no folder").hint("name a new folder, such as `--to report-team`")
        );
    }
    if let Some(dir) = &args.to {
        // Before a model is paid for it.
        refuse_used(dir)?;
    }
    let host = host();
    let built = build(&host, BuilderRequest::Generate { intent })?;
    let name = TeamName::parse(&built.name).map_err(|why| Failure::failed(why.to_string()))?;
    let dir = args.to.clone().unwrap_or_else(|| Utf8PathBuf::from(name.name()));
    let permissions = built.team.permissions(&host);
    let created = built.team.create(&dir);
    if args.json {
        created?;
        let files = built.team.differences(&TeamText::default());
        ui::json(&document(&built, Some(&dir), &files, &permissions))?;
        return Ok(ExitCode::SUCCESS);
    }
    if created.is_err() {
        // It was paid for: nothing of it is lost.
        let spare = spare(&dir);
        built.team.create(&spare)?;
        shown(&built, &spare, &host, &permissions)?;
        ui::warning(&format!("{dir} is not empty: the team was written to {spare}"));
        return Ok(ExitCode::SUCCESS);
    }
    shown(&built, &dir, &host, &permissions)?;
    Ok(ExitCode::SUCCESS)
}

/// A folder beside one that is in use.
fn spare(dir: &Utf8Path) -> Utf8PathBuf {
    let mut names = (2..).map(|number| Utf8PathBuf::from(format!("{dir}-{number}")));
    names.find(|name| !name.exists()).unwrap_or_else(|| dir.join("new"))
}

fn refuse_used(dir: &Utf8Path) -> Result<(), Failure> {
    let is_empty = cliq_project::internals::is_empty_dir(dir)
        .map_err(|source| ProjectError::Unusable { path: dir.to_owned(), source })?;
    if is_empty { Ok(()) } else { Err(ProjectError::NotEmpty(dir.to_owned()).into()) }
}

/// Shows a team that was written.
fn shown(built: &BuiltTeam, dir: &Utf8Path, host: &Host, permissions: &[String]) -> Result<(), Failure> {
    diagnostics::show(&built.team.team_yml, &dir.join("team.yml"), &built.team.warnings(host));
    let checked = built.team.check(host);
    if let Some(workflow) = &checked.workflow {
        ui::raw_styled(&workflow.to_text())?;
    }
    ui::line(paint(BOLD, format!("{} may:", built.name)))?;
    for sentence in permissions {
        ui::line(format!("  {}", ui::plain(sentence)))?;
    }
    ui::line(format!("{} written to {dir}/", paint(GREEN, "✓")))?;
    ui::line(format!("next: read {dir}/team.yml and {dir}/roles/, then `cliq assemble {dir}` in a project"))?;
    Ok(())
}

pub(super) fn improve(args: &ImproveArgs) -> Result<ExitCode, Failure> {
    let instruction = text(&args.text, "description of the change")?;
    let host = host();
    let found = host.find_team(&args.team)?;
    let is_name = args.team.starts_with('@') && !Utf8Path::new(&args.team).exists();
    if is_name && args.to.is_none() {
        return Err(Failure::usage(format!(
            "{} is an installed team, which is not changed in place",
            args.team
        ))
        .hint("`--to FOLDER` writes the changed team into a new folder"));
    }
    if let Some(dir) = &args.to {
        if dir.as_str().is_empty() {
            return Err(Failure::usage("`--to` names no folder").hint("name a new folder"));
        }
        refuse_used(dir)?;
    }
    let folder = found.folder.dir().to_owned();
    let old = TeamText::of(&found.folder);
    let request = match &args.role {
        None => BuilderRequest::Improve { team: old.clone(), instruction },
        Some(role) => {
            if !old.roles.contains_key(role) {
                let known: Vec<&str> = old.roles.keys().map(String::as_str).collect();
                return Err(
                    Failure::usage(format!("the team has no role `{role}`")).hint(did_you_mean(role, &known))
                );
            }
            let name = found.folder.check().workflow.map(|workflow| workflow.name.to_string());
            let team_name = name.ok_or_else(|| {
                Failure::usage("the team has errors")
                    .hint(format!("`cliq team validate {}` shows them", args.team))
            })?;
            BuilderRequest::ImproveRole { team: old.clone(), team_name, role: role.clone(), instruction }
        }
    };
    let built = build(&host, request)?;
    let files = built.team.differences(&old);
    let new_permissions = built.team.new_permissions(&old, &host);
    if !args.json {
        difference::show(&new_permissions, &files)?;
    }
    if files.is_empty() {
        match args.json {
            true => ui::json(&document(&built, None, &files, &new_permissions))?,
            false => ui::line("the model changed nothing")?,
        }
        return Ok(ExitCode::SUCCESS);
    }
    let applies = args.yes || !args.json && ui::can_ask() && ui::confirm("change the team?")?;
    let place = args.to.as_ref().unwrap_or(&folder);
    if applies {
        match &args.to {
            Some(dir) => {
                cliq_fs::copy_tree(&folder, dir, &|_| true)?;
                built.team.replace(&old, dir)?;
            }
            None => drop(built.team.replace(&old, &folder)?),
        }
    }
    if args.json {
        ui::json(&document(&built, applies.then_some(place.as_path()), &files, &new_permissions))?;
    } else if applies {
        ui::line(format!("{} {place}/: {} written", paint(GREEN, "✓"), ui::count(files.len(), "file")))?;
        diagnostics::show(&built.team.team_yml, &place.join("team.yml"), &built.team.warnings(&host));
    }
    if !applies {
        return Err(Failure::refused("the change was not accepted; nothing was written")
            .hint("on a terminal you decide by the difference; `--yes` asks the model again and accepts what it proposes, `--to FOLDER --yes` writes that into a new folder"));
    }
    Ok(ExitCode::SUCCESS)
}

fn did_you_mean(name: &str, known: &[&str]) -> String {
    match cliq_workflow::nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("it has {}", known.join(", ")),
    }
}

/// The host, with the settings of the project here, if there is one.
fn host() -> Host {
    project::open().map_or_else(|_| project::host(), |project| project.host().clone())
}

/// Text of an argument; `-` reads it from standard input.
fn text(argument: &str, what: &str) -> Result<String, Failure> {
    let text = match argument {
        "-" => std::io::read_to_string(std::io::stdin())?,
        text => text.to_owned(),
    };
    if text.trim().is_empty() {
        return Err(Failure::usage(format!("the {what} is empty")).hint("say what the team is to do"));
    }
    Ok(text)
}

/// Asks the model, and shows its progress on a terminal.
fn build(host: &Host, request: BuilderRequest) -> Result<BuiltTeam, Failure> {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{spinner:.cyan} {elapsed:>5.dim} {wide_msg:.dim}") {
        bar.set_style(style);
    }
    bar.set_message("asking the model");
    bar.enable_steady_tick(Duration::from_millis(120));
    let built = block_on(async {
        let show = |message: &str| bar.set_message(message.replace('\n', " "));
        Ok(Box::pin(host.build_team(request, interrupted(), show)).await?)
    });
    bar.finish_and_clear();
    built
}

fn document(
    built: &BuiltTeam,
    dir: Option<&Utf8Path>,
    files: &std::collections::BTreeMap<String, String>,
    permissions: &[String],
) -> serde_json::Value {
    let files: Vec<_> =
        files.iter().map(|(path, difference)| json!({"path": path, "difference": difference})).collect();
    json!({
        "name": built.name, "written": dir, "files": files, "new_permissions": permissions,
        "team_yml": built.team.team_yml, "roles": built.team.roles,
    })
}
