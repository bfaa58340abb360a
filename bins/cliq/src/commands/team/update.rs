//! `cliq team outdated` and `cliq team update`

use std::process::ExitCode;

use cliq_packages::{LockedTeam, Origin, Range};
use cliq_project::{ProjectError, TeamUpdate};
use cliq_protocol::TeamName;
use semver::Version;
use serde_json::json;

use super::install::fetching;
use crate::args::UpdateArgs;
use crate::failure::Failure;
use crate::render::difference;
use crate::ui::{BOLD, DIM, GREEN, paint};
use crate::{project, ui};

/// A locked package with the versions that its registry has.
struct Row {
    name: String,
    locked: Option<Version>,
    /// The newest in the ranges that are asked for.
    wanted: Option<Version>,
    newest: Option<Version>,
}

pub(super) fn outdated(as_json: bool) -> Result<ExitCode, Failure> {
    let project = project::open()?;
    let lock = project.lock()?.ok_or(ProjectError::NoLock)?;
    let packages = project.host().packages()?;
    let (mut rows, mut others) = (Vec::new(), 0);
    for LockedTeam { name, version, origin, requested, .. } in lock.teams {
        let Origin::Registry { repository, .. } = origin else {
            others += 1;
            continue;
        };
        if !as_json {
            ui::note(&format!("asking {}", repository.host()));
        }
        let versions = packages.registry.versions(&repository).map_err(cliq_packages::PackageError::from);
        let versions = versions.map_err(ProjectError::from)?;
        let fits = |version: &&Version| requested.iter().all(|range| range.contains(version));
        let released = |version: &&Version| Range::any().contains(version);
        rows.push(Row {
            name: name.to_string(),
            locked: version,
            wanted: versions.iter().filter(released).filter(fits).max().cloned(),
            newest: versions.iter().filter(released).max().cloned(),
        });
    }
    if as_json {
        let text = |version: &Option<Version>| version.as_ref().map(ToString::to_string);
        let row = |row: &Row| {
            json!({
                "name": row.name, "locked": text(&row.locked), "wanted": text(&row.wanted),
                "newest": text(&row.newest), "outdated": row.wanted > row.locked || row.newest > row.locked,
            })
        };
        ui::json(&json!({"teams": rows.iter().map(row).collect::<Vec<_>>()}))?;
        return Ok(ExitCode::SUCCESS);
    }
    let old: Vec<&Row> =
        rows.iter().filter(|row| row.newest > row.locked || row.wanted > row.locked).collect();
    if others > 0 {
        let teams = ui::count(others, "locked team");
        ui::line(format!("{teams} from folders and repositories: `cliq team update` looks at those"))?;
    }
    if old.is_empty() {
        let newest = if rows.is_empty() { "" } else { ", none of them outdated" };
        ui::line(format!("{}{newest}", ui::count(rows.len(), "package")))?;
        return Ok(ExitCode::SUCCESS);
    }
    let text =
        |version: &Option<Version>| version.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string);
    let width = old.iter().map(|row| row.name.len()).max().unwrap_or(0);
    let of = |version: fn(&Row) -> &Option<Version>| {
        old.iter().map(|row| text(version(row)).len()).chain([8]).max().unwrap_or(8)
    };
    let (locked, wanted) = (of(|row| &row.locked), of(|row| &row.wanted));
    ui::line(paint(DIM, format!("{:width$}  {:locked$}  {:wanted$}  newest", "team", "locked", "in range")))?;
    for row in &old {
        let in_range = format!("{:wanted$}", text(&row.wanted));
        let in_range = if row.wanted > row.locked { paint(GREEN, in_range) } else { in_range };
        ui::line(format!(
            "{:width$}  {:locked$}  {in_range}  {}",
            row.name,
            text(&row.locked),
            text(&row.newest)
        ))?;
    }
    ui::line(if old.iter().any(|row| row.wanted > row.locked) {
        "next: `cliq team update` takes the versions in range"
    } else {
        "no newer version is in the ranges that are asked for"
    })?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn update(args: &UpdateArgs) -> Result<ExitCode, Failure> {
    let project = project::open()?;
    let names: Result<Vec<TeamName>, _> = args.teams.iter().map(|name| TeamName::parse(name)).collect();
    let names = names.map_err(|error| Failure::usage(format!("the name of a team is wrong: {error}")))?;
    let quiet = |_: &str| {};
    let plan = project.plan_update(&names, if args.json { &quiet } else { &fetching })?;
    let is_current = plan.updates.is_empty();
    if !args.json {
        plan.updates.iter().try_for_each(show)?;
    }
    let rows: Vec<_> = plan.updates.iter().map(row).collect();
    let applies = !is_current && !args.dry_run && (args.yes || ask(args)?);
    if applies {
        project.apply_update(plan)?;
    }
    if args.json {
        ui::json(&json!({"updates": rows, "applied": applies}))?;
    } else if is_current {
        ui::line("all teams are the newest in their range")?;
    } else if applies {
        ui::line(format!(
            "{} updated {} and .cliq/team.lock",
            paint(GREEN, "✓"),
            ui::count(rows.len(), "team")
        ))?;
    } else {
        ui::line("nothing was changed")?;
    }
    if !is_current && !applies && !args.dry_run {
        return Err(Failure::refused("the update was not accepted")
            .hint("`--yes` accepts it, `--dry-run` only shows it"));
    }
    Ok(ExitCode::SUCCESS)
}

fn ask(args: &UpdateArgs) -> Result<bool, Failure> {
    Ok(!args.json && ui::can_ask() && ui::confirm("update?")?)
}

fn title(update: &TeamUpdate) -> String {
    let text =
        |version: &Option<Version>| version.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string);
    match (&update.from, &update.to) {
        (from, to) if from == to => format!("{} {}, with other files", update.name, text(to)),
        (from, to) => format!("{} {} → {}", update.name, text(from), text(to)),
    }
}

fn show(update: &TeamUpdate) -> Result<(), Failure> {
    ui::line(paint(BOLD, title(update)))?;
    difference::show(&update.new_permissions, &update.files)
}

fn row(update: &TeamUpdate) -> serde_json::Value {
    json!({
        "name": update.name,
        "from": update.from.as_ref().map(ToString::to_string),
        "to": update.to.as_ref().map(ToString::to_string),
        "new_permissions": update.new_permissions,
        "files": update.files.iter().map(|(path, difference)| json!({"path": path, "difference": difference})).collect::<Vec<_>>(),
    })
}
