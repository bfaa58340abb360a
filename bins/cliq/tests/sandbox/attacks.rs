//! The attacks, and the table of docs/sandbox.md.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use cliq_testkit::env::PRELUDE;
use serde_json::Value;

use crate::sandbox::world::{World, mechanisms};

/// Columns of the table: profile and mechanism.
const COLUMNS: [(&str, &str); 4] = [
    ("workspace", "bubblewrap"),
    ("strict", "bubblewrap"),
    ("workspace", "landlock"),
    ("strict", "landlock"),
];

/// Results of the table in docs/sandbox.md: whether an attack succeeds, by attack, in the order of the columns.
fn table() -> BTreeMap<String, [bool; 4]> {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/sandbox.md")).unwrap();
    let rows = page.lines().skip_while(|line| !line.starts_with("| attack")).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|')).map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let succeeds = |n: usize| match cells[n] {
            "–" => false,
            "succeeds" => true,
            other => panic!("{line}: {other}"),
        };
        (cells[0].to_owned(), [1, 2, 3, 4].map(succeeds))
    });
    rows.collect()
}

/// Attacks a sandbox. Returns for each attack whether it succeeded.
fn attack(profile: &str, mechanism: &str) -> BTreeMap<String, bool> {
    let workflow = format!(
        "workflow:
  phases:
    - {{name: other, type: standard, agent: other}}
    - name: hostile
      type: exec
      depends_on: [other]
      sandbox: {{profile: {profile}, network: none}}
      commands: [{{name: attack, run: 'PATH=/usr/bin:$PATH python3 attacker.py \"$(cat place)\" \"$(cat victim)\"'}}]
    - {{name: after, type: exec, depends_on: [other, hostile], commands: [{{name: c, run: 'true'}}]}}
"
    );
    let agent = format!(
        "{PRELUDE}ok; hand hostile '{{}}'; hand after '{{\"agent\":\"other\",\"version\":1}}'; complete\n"
    );
    let world = World::new(&workflow, &[("other", &agent)]).with_victim();
    world.cliq(&["settings", "set", "-g", "sandbox.mechanism", mechanism]).expect(0);
    world.cliq(&["settings", "set", "max_parallel", "2"]).expect(0);
    let made = Command::new("sh")
        .args(["-c", "git init -q && git -c user.name=a -c user.email=b commit -q --allow-empty -m first && git worktree add -q ../tree"])
        .current_dir(world.env.path("."))
        .status();
    assert!(made.unwrap().success());
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sandbox/attacker.c");
    let compiled = Command::new("cc").args([program, "-o"]).arg(world.env.path("attacker")).status();
    assert!(compiled.unwrap().success());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sandbox/attacker.py");
    fs::copy(script, world.env.path("attacker.py")).unwrap();
    world.env.write("place", world.outside("").to_str().unwrap().trim_end_matches('/'));
    world.env.write("program", env!("CARGO_BIN_EXE_cliq"));
    world.cliq(&["review", "list"]).expect(0);
    let victim = fs::read_to_string(world.outside("victim.json")).unwrap();
    world.env.write("victim", &victim);
    let run = world.cliq(&["run", "--headless"]);
    let log = fs::read_to_string(world.env.path(".cliq/logs/hostile.1.1-attack.log")).unwrap_or_default();
    assert!(world.env.exists("results.json"), "{}{}{log}", run.stdout, run.stderr);
    let results = world.env.read_json("results.json");
    let mut results: BTreeMap<String, bool> = results
        .as_object()
        .unwrap()
        .iter()
        .filter_map(|(name, result)| Some((name.clone(), result.as_bool()?)))
        .collect();
    // What shows outside only.
    let victim: Value = serde_json::from_str(&victim).unwrap();
    let left = format!("/tmp/cliq-attack-{}", victim["pid"]);
    results.insert("leave a file in the shared /tmp".to_owned(), fs::remove_file(left).is_ok());
    results.insert("leave a process behind".to_owned(), !world.env.marked("-left").is_empty());
    let signals = fs::read_to_string(world.outside("signals.txt")).unwrap_or_default();
    assert_eq!(signals, "", "the victim received signals");
    assert!(
        mechanism != "bubblewrap" || !world.env.exists(".git/commondir"),
        "nothing is left in the git directory"
    );
    results
}

#[test]
fn hostile_command_succeeds_only_where_the_docs_say_so() {
    let table = table();
    let mechanisms = mechanisms();
    let mut wrong = Vec::new();
    for (column, (profile, mechanism)) in COLUMNS.into_iter().enumerate() {
        if !mechanisms.contains(&mechanism) {
            continue;
        }
        let results = attack(profile, mechanism);
        for (name, succeeded) in &results {
            match table.get(name) {
                Some(row) if row[column] == *succeeded => {}
                Some(_) => wrong.push(format!(
                    "{profile} {mechanism}: {name}: {}",
                    if *succeeded { "succeeds" } else { "is refused" }
                )),
                None => {
                    wrong.push(format!("the table has no row `{name}` ({profile} {mechanism}: {succeeded})"))
                }
            }
        }
        wrong.extend(
            table
                .keys()
                .filter(|name| !results.contains_key(*name))
                .map(|name| format!("no attack is called `{name}`")),
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(table.len() >= 60, "{} attacks", table.len());
}
