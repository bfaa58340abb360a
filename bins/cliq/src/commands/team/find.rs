//! `cliq team search` and `cliq team info`

use std::process::ExitCode;

use cliq_packages::{Origin, PackageError, Source};
use cliq_project::ProjectError;
use serde_json::json;

use super::install;
use crate::failure::Failure;
use crate::ui::{BOLD, DIM, paint};
use crate::{project, ui};

pub(super) fn search(words: &[String], as_json: bool) -> Result<ExitCode, Failure> {
    let packages = project::host().packages()?;
    if packages.places.is_empty() {
        return Err(Failure::usage("no registry is set, so that there is nothing to search")
            .hint("`cliq settings set --global registries.SCOPE oci://HOST/PATH` sets one"));
    }
    if !as_json {
        ui::note("searching");
    }
    let (found, failed) = packages.search(&words.join(" "));
    let end = if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    for (scope, error) in &failed {
        ui::warning(&format!("the registry of @{scope} (registries.{scope}): {error}"));
    }
    if as_json {
        let row = |package: &cliq_packages::FoundPackage| {
            json!({
                "name": package.name, "version": package.version.to_string(),
                "description": package.description, "repository": package.repository,
            })
        };
        ui::json(&json!({"packages": found.iter().map(row).collect::<Vec<_>>()}))?;
        return Ok(end);
    }
    if found.is_empty() {
        ui::line(format!("no package has {:?} in its name or description", words.join(" ")))?;
    }
    let width = found.iter().map(|package| package.name.chars().count()).max().unwrap_or(0);
    for package in found {
        let about = package.description.unwrap_or_default();
        ui::line(format!(
            "{:width$}  {:<10}  {about} {}",
            package.name,
            package.version.to_string(),
            paint(DIM, format!("({})", package.repository))
        ))?;
    }
    Ok(end)
}

pub(super) fn info(package: &str, as_json: bool) -> Result<ExitCode, Failure> {
    let source = Source::parse(package).map_err(ProjectError::from)?;
    if matches!(source, Source::Folder(_) | Source::Git(_)) {
        return Err(Failure::usage(format!("{package} is not a package of a registry"))
            .hint("write `@scope/name`, `@scope/name@RANGE` or `oci://HOST/PATH`; `cliq team show PATH` shows a folder"));
    }
    let host = project::host();
    if !as_json {
        ui::note("fetching");
    }
    let team = host.prepare_installation(package, &|_| {})?;
    let Some(Origin::Registry { repository, manifest }) = team.origin() else {
        return Err(Failure::usage(format!("{package} is not a package of a registry")));
    };
    let versions = host.packages()?.registry.versions(repository);
    let versions = versions.map_err(|error| ProjectError::from(PackageError::from(error)))?;
    let versions: Vec<String> = versions.iter().rev().map(ToString::to_string).collect();
    if as_json {
        ui::json(&json!({
            "name": team.name, "version": team.version.as_ref().map(ToString::to_string),
            "description": team.description, "repository": repository, "manifest": manifest,
            "signature": team.signature, "versions": versions, "permissions": team.permissions,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let version = team.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
    ui::line(paint(BOLD, format!("{}{version}", team.name)))?;
    if let Some(description) = &team.description {
        ui::line(ui::plain(description))?;
    }
    ui::line(format!("repository: {repository}"))?;
    ui::line(format!("manifest: {manifest}"))?;
    ui::line(format!("versions: {}", versions.join(", ")))?;
    ui::line(ui::plain(team.signature.as_deref().unwrap_or("not signed")))?;
    install::permissions(&team.permissions)?;
    Ok(ExitCode::SUCCESS)
}
