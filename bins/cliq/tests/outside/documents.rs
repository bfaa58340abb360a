//! Documents that other programs made: pages of pandoc, PDF of LibreOffice and Chromium. What was in them is what comes out.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use cliq_testkit::env::{Env, has_program};

use crate::outside::site::{Site, reply};

/// The documents of this project, as documents of others.
const SOURCES: &[&str] = &[
    "signals",
    "protocol",
    "server",
    "a2a",
    "reviews",
    "models",
    "embedding",
    "diagnostics",
    "exit-codes",
    "team-yml",
    "pull-push",
    "performance",
];

fn run(program: &str, args: &[&str], dir: &Path) {
    let done = Command::new(program).args(args).current_dir(dir).env("HOME", dir).output().unwrap();
    assert!(done.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// Words, without what is only form.
fn words(text: &str) -> Vec<String> {
    let plain = text.replace("&#124;", "|").replace("&lt;", "<").replace("&gt;", ">").replace('\\', "");
    plain
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

/// Percentage of the word pairs of `wanted` that occur in `found`.
fn kept(wanted: &[String], found: &[String]) -> usize {
    let mut pairs: HashMap<(&str, &str), usize> = HashMap::new();
    for pair in found.windows(2) {
        *pairs.entry((&pair[0], &pair[1])).or_default() += 1;
    }
    let all = wanted.len().saturating_sub(1).max(1);
    let there = wanted.windows(2).filter(|pair| match pairs.get_mut(&(pair[0].as_str(), pair[1].as_str())) {
        Some(count @ 1..) => {
            *count -= 1;
            true
        }
        _ => false,
    });
    there.count() * 100 / all
}

#[test]
fn documents_of_other_programs() {
    for program in ["pandoc", "soffice", "chromium"] {
        if !has_program(program) {
            return;
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let docs = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let mut wanted = HashMap::new();
    for name in SOURCES {
        let source = docs.join(format!("{name}.md"));
        let source = source.to_str().unwrap();
        run(
            "pandoc",
            &[
                source,
                "-f",
                "gfm",
                "-s",
                "--metadata",
                &format!("title={name}"),
                "-o",
                &format!("{name}.html"),
            ],
            dir.path(),
        );
        run("pandoc", &[source, "-f", "gfm", "-o", &format!("{name}.docx")], dir.path());
        let text = Command::new("pandoc")
            .args([source, "-f", "gfm", "-t", "plain", "--columns=9999"])
            .output()
            .unwrap()
            .stdout;
        wanted.insert(*name, words(&String::from_utf8(text).unwrap()));
        let print = format!("--print-to-pdf={}", at(&format!("{name}-chromium.pdf")).display());
        run(
            "chromium",
            &[
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--no-pdf-header-footer",
                &print,
                &format!("{name}.html"),
            ],
            dir.path(),
        );
    }
    let office: Vec<String> = SOURCES.iter().map(|name| format!("{name}.docx")).collect();
    let office: Vec<&str> =
        ["--headless", "--convert-to", "pdf"].into_iter().chain(office.iter().map(String::as_str)).collect();
    run("soffice", &office, dir.path());

    let place = dir.path().to_owned();
    let site = Site::start(move |asked| {
        let name = asked.path.trim_start_matches('/');
        let kind = if name.ends_with(".html") { "text/html; charset=utf-8" } else { "application/pdf" };
        reply(200, kind, std::fs::read(place.join(name)).unwrap())
    });
    let mut sources = String::new();
    for name in SOURCES {
        for (suffix, file) in [
            ("page", format!("{name}.html")),
            ("office", format!("{name}.pdf")),
            ("browser", format!("{name}-chromium.pdf")),
        ] {
            sources.push_str(
                &["        - {name: ", name, "-", suffix, ", url: \"", &site.base, "/", &file, "\"}\n"]
                    .concat(),
            );
        }
    }
    let env = Env::new(
        &format!("workflow:\n  phases:\n    - name: fetch\n      type: pull\n      sources:\n{sources}"),
        &[],
    );
    env.cliq(["run", "--headless"]).expect(0);
    let mut bad = Vec::new();
    for name in SOURCES {
        for (suffix, least) in [("page", 97), ("office", 90), ("browser", 93)] {
            let found = words(&env.read(&format!(".cliq/pull/{name}-{suffix}.md")));
            let (kept, ratio) = (kept(&wanted[name], &found), found.len() * 100 / wanted[name].len());
            // Addresses of links are words too, in pages; narrow columns break words, in PDF.
            if kept < least || ratio < 97 {
                bad.push(format!("{name}-{suffix}: {kept} % of the pairs of words, {ratio} % of the words"));
            }
        }
    }
    assert!(bad.is_empty(), "{bad:#?}");
}
