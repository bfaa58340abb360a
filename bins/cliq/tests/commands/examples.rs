//! Examples in pages of the documentation: they can be read as what they are, and each page is in the site.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cliq_testkit::env::Env;
use serde_json::Value;

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// Pages of the documentation: name and text.
fn pages() -> Vec<(String, String)> {
    let entries = fs::read_dir(docs()).unwrap().map(|entry| entry.unwrap().path());
    let pages = entries.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    pages.map(|path| (name(&path), fs::read_to_string(&path).unwrap())).collect()
}

/// Blocks of a language in a page: the line where each begins, and its text.
fn blocks(page: &str, language: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut lines = page.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        let Some(indent) = line.find("```") else { continue };
        if !line[..indent].trim().is_empty() {
            continue;
        }
        let is_wanted = line.trim().strip_prefix("```") == Some(language);
        let inside = lines.by_ref().take_while(|(_, line)| line.trim() != "```");
        let text: Vec<&str> = inside.map(|(_, line)| line.get(indent..).unwrap_or_default()).collect();
        if is_wanted {
            found.push((at + 1, text.join("\n") + "\n"));
        }
    }
    found
}

/// Calls a check for each block of a language. Returns their number, and lists what failed.
fn each(language: &str, mut check: impl FnMut(&str) -> Result<(), String>) -> usize {
    let (mut number, mut wrong) = (0, Vec::new());
    for (name, text) in pages() {
        for (line, block) in blocks(&text, language) {
            number += 1;
            if let Err(why) = check(&block) {
                wrong.push(format!("docs/{name}, line {line}: {why}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    number
}

#[test]
fn yaml_can_be_read_and_teams_are_valid() {
    let env = Env::bare();
    let mut teams = 0;
    let number = each("yaml", |block| {
        let document: Value = serde_yaml::from_str(block).map_err(|error| error.to_string())?;
        let is_team = document.get("workflow").is_some() || document.get("phases").is_some();
        // Parts of a team, and teams that lean on files, are read only.
        if !is_team || document.get("name").is_none() || block.contains("...") || block.contains('…') {
            return Ok(());
        }
        let dir = format!("team-{teams}");
        env.write(&format!("{dir}/team.yml"), block);
        let checked = env.cliq(["team", "validate", &dir, "--json"]);
        let problems = serde_json::from_str::<Value>(&checked.stdout).map_err(|error| error.to_string())?;
        teams += 1;
        let all = problems["diagnostics"].as_array().cloned().ok_or("no list of problems")?;
        // Roles, agents and skills are beside a team, not in its example.
        let is_elsewhere =
            |text: &str| ["has no role file", "the entry of agent"].iter().any(|part| text.contains(part));
        let errors: Vec<String> = all
            .iter()
            .filter(|one| one["severity"] == "error")
            .map(|one| one["message"].as_str().unwrap_or_default().to_owned())
            .filter(|message| !is_elsewhere(message))
            .collect();
        if errors.is_empty() { Ok(()) } else { Err(errors.join("; ")) }
    });
    assert!(number > 30, "only {number} examples of YAML were found");
    assert!(teams > 3, "only {teams} examples are whole teams");
}

#[test]
fn json_can_be_read() {
    let number = each("json", |block| {
        // A document over several lines, or a document per line.
        let is_lines = || {
            block
                .lines()
                .filter(|line| !line.trim().is_empty())
                .all(|line| serde_json::from_str::<Value>(line).is_ok())
        };
        match serde_json::from_str::<Value>(block) {
            Err(error) if !is_lines() => Err(error.to_string()),
            Ok(_) | Err(_) => Ok(()),
        }
    });
    assert!(number > 10, "only {number} examples of JSON were found");
}

#[test]
fn shell_can_be_read() {
    let number = each("sh", |block| {
        // Words in angle brackets are to be filled in.
        let block = block.replace(['<', '>'], "_");
        let output = Command::new("sh").args(["-n", "-c", &block]).stdin(Stdio::null()).output().unwrap();
        if output.status.success() {
            Ok(())
        } else {
            Err(String::from_utf8_lossy(&output.stderr).into_owned())
        }
    });
    assert!(number > 20, "only {number} examples of shell were found");
}

#[test]
fn each_page_is_in_the_site() {
    let summary = fs::read_to_string(docs().join("SUMMARY.md")).unwrap();
    let linked: BTreeSet<&str> =
        summary.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect();
    let missing: Vec<String> = pages()
        .into_iter()
        .map(|(name, _)| name)
        .filter(|name| name != "SUMMARY.md" && !linked.contains(name.as_str()))
        .collect();
    assert!(missing.is_empty(), "docs/SUMMARY.md lacks {}", missing.join(", "));
}
