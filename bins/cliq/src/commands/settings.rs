//! `cliq settings`

use std::borrow::Cow;
use std::io::Read;
use std::process::ExitCode;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::CliqDir;
use cliq_protocol::without_credentials;
use cliq_settings::{
    Class, Entry, KEYS, Key, PRICES_DATE, PriceSettings, PriceSource, Settings, Source, settings_schema,
};
use serde_json::{Value, json};

use crate::args::SettingsCommand;
use crate::failure::Failure;
use crate::ui::{BOLD, CYAN, DIM, paint};
use crate::{project, ui};

pub(super) fn run(command: &SettingsCommand) -> Result<ExitCode, Failure> {
    let here = EffectiveSettings { dir: CliqDir::discover(&project::here()?), home: project::host().home };
    match command {
        SettingsCommand::List { prefix, json } => list(&here.settings()?, prefix.as_deref(), *json)?,
        SettingsCommand::Get { key, reveal } => {
            let settings = here.settings()?;
            let entry = settings.entry(key)?;
            if let (None, Some(price)) = (&entry.value, built_in_price(&settings, key)) {
                ui::line(price.to_string())?;
                return Ok(ExitCode::SUCCESS);
            }
            let Some(value) = &entry.value else {
                return Err(Failure::failed(format!("`{key}` is not set")).hint(entry.about));
            };
            if *reveal { ui::line(plain(value))? } else { ui::line(shown(&entry))? }
        }
        SettingsCommand::Set { key, value, global } => {
            let file = here.file(*global)?;
            let value = if value == "-" { standard_input()? } else { value.clone() };
            if !*global && Key::find(key)?.class == Class::Person {
                return Err(Failure::usage(format!(
                    "`{key}` is a setting of a person: a project cannot set it"
                ))
                .hint("`--global` sets it for all projects"));
            }
            if !*global && holds_secret(key, &value)? {
                check_secret_of_project(key, &file)?;
            }
            cliq_settings::set(&file, key, &value)?;
            // What was set for all projects may not be what counts here.
            let entry = here.settings()?.entry(key)?;
            if entry.source != Source::File(file.clone()) {
                ui::warning(&format!("here, `{key}` is set by {}", entry.source));
            }
            ui::line(format!(
                "{key} = {} in {file}",
                if entry.secret { MASK.into() } else { without_credentials(&value) }
            ))?;
        }
        SettingsCommand::Schema => ui::json(&settings_schema())?,
        SettingsCommand::Unset { key, global } => {
            let file = here.file(*global)?;
            if !cliq_settings::unset(&file, key)? {
                let elsewhere = here.settings()?.entry(key)?.source;
                let failure = Failure::failed(format!("`{key}` is not set in {file}"));
                return Err(match elsewhere {
                    Source::Default => failure,
                    Source::File(other) => failure.hint(format!("it is set in {other}")),
                });
            }
            ui::line(format!("{key} is no longer set in {file}"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

const MASK: &str = "********";

/// The settings files that hold here.
struct EffectiveSettings {
    dir: Option<CliqDir>,
    home: Option<Utf8PathBuf>,
}

impl EffectiveSettings {
    fn settings(&self) -> Result<Settings, Failure> {
        let project = self.dir.as_ref().map(CliqDir::settings);
        Ok(Settings::load(self.home.as_deref(), project.as_deref())?)
    }

    fn file(&self, global: bool) -> Result<Utf8PathBuf, Failure> {
        if global {
            let home =
                self.home.as_ref().ok_or_else(|| Failure::usage("neither CLIQ_HOME nor HOME is set"))?;
            return Ok(home.join("settings.json"));
        }
        self.dir.as_ref().map(CliqDir::settings).ok_or_else(|| {
            Failure::usage("there is no project here").hint("`--global` changes a setting for all projects")
        })
    }
}

/// Whether a value is a secret, or an address with a password.
fn holds_secret(key: &str, value: &str) -> Result<bool, Failure> {
    let is_secret = Key::find(key)?.is_secret();
    Ok(is_secret || matches!(without_credentials(value), Cow::Owned(_)))
}

/// Warns of a secret that is stored in a project. Refuses it if git would take the file.
fn check_secret_of_project(key: &str, file: &Utf8Path) -> Result<(), Failure> {
    let global = format!("`cliq settings set -g {key} -` keeps it in your own settings");
    if is_taken_by_git(file) {
        let ignore = "or ignore the file: `cliq init` writes .cliq/.gitignore, and `git rm --cached FILE` takes a file out of git";
        return Err(Failure::refused(format!(
            "cannot store the secret `{key}` in {file}: git would take the file"
        ))
        .hint(format!("{global}; {ignore}")));
    }
    ui::warning(&format!("`{key}` is stored in the directory of the project, where agents can read it"));
    ui::hint(&global);
    Ok(())
}

/// Whether the file is in a git repository that does not ignore it. A file that git tracks is not ignored. Without git, nothing is taken.
fn is_taken_by_git(file: &Utf8Path) -> bool {
    // The file may not exist yet, nor its directory.
    let Some(dir) = file.ancestors().skip(1).find(|dir| dir.is_dir()) else { return false };
    cliq_git::is_ignored(&cliq_git::Git::new(dir), file.as_std_path()).is_ok_and(|is_ignored| !is_ignored)
}

/// A value without the passwords of addresses in it.
fn masked(value: &Value) -> Value {
    match value {
        Value::String(text) => without_credentials(text).into(),
        Value::Array(items) => items.iter().map(masked).collect(),
        Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), masked(value))).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn standard_input() -> Result<String, Failure> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

fn shown(entry: &Entry) -> String {
    match &entry.value {
        Some(_) if entry.secret => MASK.to_owned(),
        Some(value) => without_credentials(&plain(value)).into_owned(),
        None => "-".to_owned(),
    }
}

/// Whether a key is the one that a word names, or below it.
fn is_below(key: &str, prefix: Option<&str>) -> bool {
    let Some(prefix) = prefix else { return true };
    key.strip_prefix(prefix.trim_end_matches('.'))
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn list(settings: &Settings, prefix: Option<&str>, as_json: bool) -> Result<(), Failure> {
    if prefix == Some("prices") {
        return list_prices(settings, as_json);
    }
    let mut entries = settings.entries();
    entries.retain(|entry| is_below(&entry.key, prefix));
    let named =
        || KEYS.iter().filter(|key| key.path.contains('*') && prefix.is_none_or(|prefix| is_of(key, prefix)));
    if let Some(prefix) = prefix.filter(|_| entries.is_empty() && named().next().is_none()) {
        return Err(Failure::usage(format!("no setting begins with `{prefix}`"))
            .hint("`cliq settings list` shows all settings"));
    }
    if as_json {
        let rows: Vec<Value> = entries
            .iter()
            .map(|entry| {
                let value = match &entry.value {
                    Some(_) if entry.secret => Some(json!(MASK)),
                    value => value.as_ref().map(masked),
                };
                let source = entry.value.as_ref().map(|_| entry.source.to_string());
                json!({"key": entry.key, "value": value, "source": source, "secret": entry.secret, "about": entry.about})
            })
            .collect();
        ui::json(&json!({ "settings": rows }))?;
        return Ok(());
    }
    for entry in &entries {
        let source = match (&entry.source, &entry.value) {
            (_, None) => "not set".to_owned(),
            (source, Some(_)) => source.to_string(),
        };
        ui::line(format!(
            "{} = {}  {}",
            paint(BOLD, &entry.key),
            paint(CYAN, shown(entry)),
            paint(DIM, format!("({source})"))
        ))?;
        ui::line(format!("    {}", entry.about))?;
    }
    if named().next().is_some() {
        ui::line("\nalso, where NAME is one of yours:")?;
    }
    for key in named() {
        let name = match key.path {
            "notifications.*" => "EVENT",
            _ => "NAME",
        };
        ui::line(format!("{} ({})", paint(BOLD, key.path.replace('*', name)), key.kind.expected()))?;
        ui::line(format!("    {}", key.about))?;
    }
    Ok(())
}

/// Whether a key with a name of the person's own is below a word: `agents` and `agents.mine` have `agents.*.model`.
fn is_of(key: &Key, prefix: &str) -> bool {
    let (mut pattern, mut words) = (key.path.split('.'), prefix.split('.').filter(|word| !word.is_empty()));
    words.all(|word| pattern.next().is_some_and(|part| part == "*" || part == word))
}

/// Prices that count here: the built-in ones, and over them those of the settings.
fn list_prices(settings: &Settings, as_json: bool) -> Result<(), Failure> {
    let prices = PriceSettings::list(settings);
    let source = |source: PriceSource| match source {
        PriceSource::BuiltIn => "built in",
        PriceSource::Settings => "settings",
    };
    if as_json {
        let row = |(model, price, from): &(String, cliq_protocol::Price, PriceSource)| {
            let cached = price.cached.unwrap_or(price.input);
            json!({"model": model, "in": price.input, "cached": cached, "out": price.output, "source": source(*from)})
        };
        let rows: Vec<Value> = prices.iter().map(row).collect();
        let incomplete = PriceSettings::incomplete(settings);
        ui::json(&json!({ "prices": rows, "incomplete": incomplete, "built_in_date": PRICES_DATE }))?;
        return Ok(());
    }
    let width = prices.iter().map(|(model, ..)| model.chars().count()).max().unwrap_or(0).max("model".len());
    ui::line(paint(BOLD, format!("{:<width$}  {:>8}  {:>8}  {:>8}", "model", "in", "cached", "out")))?;
    for (model, price, from) in &prices {
        let cached = price.cached.unwrap_or(price.input);
        let own = match from {
            PriceSource::BuiltIn => String::new(),
            PriceSource::Settings => paint(CYAN, "  of the settings"),
        };
        ui::line(format!("{model:<width$}  {:>8}  {cached:>8}  {:>8}{own}", price.input, price.output))?;
    }
    for model in PriceSettings::incomplete(settings) {
        ui::warning(&format!("`prices.{model}` needs `in` and `out`: without both it is not used"));
    }
    ui::line(paint(
        DIM,
        format!(
            "\nUS dollars per million tokens, as the vendors published them on {PRICES_DATE} for usual requests.\n\
             `cliq settings set -g prices.MODEL.in NUMBER` sets another one; so do `.out` and `.cached`."
        ),
    ))?;
    Ok(())
}

/// Returns a price that counts although no setting sets it.
fn built_in_price(settings: &Settings, key: &str) -> Option<f64> {
    let (model, part) = key.strip_prefix("prices.")?.rsplit_once('.')?;
    let (_, price, _) = PriceSettings::list(settings).into_iter().find(|(name, ..)| name == model)?;
    match part {
        "in" => Some(price.input),
        "out" => Some(price.output),
        "cached" => price.cached,
        _ => None,
    }
}
