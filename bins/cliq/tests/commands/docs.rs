//! Pages of the documentation: their links lead somewhere, and their commands exist.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use cliq_testkit::env::Env;

/// Returns the pages that users read: those at the top, in `docs/`, and each crate's README.
fn pages() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let entries =
        |dir: PathBuf| fs::read_dir(dir).expect("a directory").map(|entry| entry.expect("an entry").path());
    let crates = entries(root.join("crates")).map(|dir| dir.join("README.md"));
    let dirs = ["", "docs", "docs/decisions"].map(|dir| root.join(dir));
    let found = dirs.into_iter().flat_map(entries).chain(crates);
    let found: Vec<(PathBuf, String)> = found
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .map(|path| (path.clone(), fs::read_to_string(path).expect("a page")))
        .collect();
    assert!(found.len() > 60, "the pages are not where this test looks");
    found
}

/// Returns the anchor of a heading, as hosts of repositories make it.
pub(crate) fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    kept.chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

pub(crate) fn anchors(text: &str) -> BTreeSet<String> {
    text.lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| anchor(line.trim_start_matches('#')))
        .collect()
}

#[test]
fn links_lead_to_files_and_headings() {
    let mut broken = Vec::new();
    for (path, text) in pages() {
        for link in text.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0)) {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            if file.contains(':') || file.contains(char::is_whitespace) {
                continue;
            }
            let target =
                if file.is_empty() { path.clone() } else { path.parent().expect("a directory").join(file) };
            let is_there = target.exists()
                && (heading.is_empty()
                    || fs::read_to_string(&target).is_ok_and(|text| anchors(&text).contains(heading)));
            if !is_there {
                broken.push(format!("{}: {link}", path.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// Commands that cliq calls itself: no help lists them.
const INTERNAL: [&str; 4] = ["cliq pane", "cliq watchdog", "cliq agent team", "cliq agent review"];

/// Help texts of commands, each read once.
struct Helps {
    env: Env,
    texts: HashMap<Vec<String>, String>,
}

impl Helps {
    fn of(&mut self, command: &[String]) -> &str {
        self.texts.entry(command.to_vec()).or_insert_with(|| {
            let args = command.iter().map(String::as_str).chain(["--help"]);
            self.env.cliq(args).expect(0).stdout.clone()
        })
    }

    /// Returns the names of the commands below a command.
    fn names(&mut self, command: &[String]) -> Vec<String> {
        let Some((_, commands)) = self.of(command).split_once("Commands:\n") else { return Vec::new() };
        let lines = commands.lines().take_while(|line| !line.is_empty());
        let lines = lines.filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')));
        lines.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
    }

    fn has_command(&mut self, command: &[String], name: &str) -> bool {
        self.names(command).iter().any(|known| known == name)
    }

    fn has_flag(&mut self, command: &[String], flag: &str) -> bool {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-';
        self.of(command).split(|c| !is_part(c)).any(|word| word == flag)
    }

    /// Returns the problem of a command line, if any.
    fn problem(&mut self, line: &str) -> Option<String> {
        let mut words = line.split_whitespace().skip(1).peekable();
        let mut command = Vec::new();
        while let Some(&word) = words.peek() {
            if word == "-C" {
                words.next();
            } else if self.has_command(&command, word) {
                command.push(word.to_owned());
            } else {
                break;
            }
            words.next();
        }
        // A group may be named without one of its commands.
        let is_group = !self.names(&command).is_empty();
        // `cliq eval` takes a file in place of a command.
        let is_file = |word: &&str| word.ends_with(".yml");
        let is_word = |word: &&str| word.starts_with(|c: char| c.is_ascii_lowercase()) && !is_file(word);
        if is_group && words.peek().is_some_and(is_word) {
            return Some(format!("no such command: {line}"));
        }
        let flags = words.take_while(|word| *word != "--").filter(|word| word.starts_with("--"));
        let mut flags = flags
            .filter(|_| !command.ends_with(&["set".to_owned()]))
            .map(|flag| flag.split('=').next().unwrap_or(flag));
        let unknown = flags.find(|flag| !self.has_flag(&command, flag))?;
        Some(format!("no such option {unknown}: {line}"))
    }
}

#[test]
fn commands_in_pages_exist() {
    let mut helps = Helps { env: Env::bare(), texts: HashMap::new() };
    let (mut count, mut problems) = (0, Vec::new());
    for (path, text) in pages().into_iter().filter(|(path, _)| !path.iter().any(|part| part == "decisions")) {
        let blocks = text.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
        let lines = blocks.flat_map(str::lines).filter_map(|line| line.split(" #").next());
        // Commands within sentences are whole code spans.
        let spans = text.split('`').skip(1).step_by(2).filter(|span| !span.contains('\n'));
        let parts =
            lines.chain(spans).flat_map(|line| line.split("&&")).flat_map(|part| part.split(['|', ';']));
        for part in parts.map(str::trim).filter(|part| part.starts_with("cliq ") && !INTERNAL.contains(part))
        {
            count += 1;
            problems.extend(helps.problem(part).map(|problem| format!("{}: {problem}", path.display())));
        }
    }
    assert!(count > 100, "only {count} commands were found");
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Appends the help texts of a command and of those below it.
fn append(helps: &mut Helps, command: &[String], all: &mut String) {
    let title =
        std::iter::once("cliq").chain(command.iter().map(String::as_str)).collect::<Vec<_>>().join(" ");
    all.extend(["== ", &title, "\n", helps.of(command).trim_end(), "\n"]);
    for name in helps.names(command).into_iter().filter(|name| name != "help") {
        append(helps, &[command, &[name]].concat(), all);
    }
}

#[test]
fn help_texts() {
    let mut helps = Helps { env: Env::bare(), texts: HashMap::new() };
    let mut all = String::new();
    append(&mut helps, &[], &mut all);
    insta::assert_snapshot!(all);
}

#[test]
fn slow_tests_that_the_configuration_names_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = fs::read_to_string(root.join(".config/nextest.toml")).expect("the configuration");
    let names: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("  | ")).collect();
    assert!(names.len() > 20, "the list is not where this test looks");
    let crates: Vec<PathBuf> =
        fs::read_dir(root.join("crates")).expect("crates").map(|entry| entry.expect("one").path()).collect();
    for name in names {
        let mut parts = name.split("::").filter(|part| !part.is_empty());
        let module = parts.next().unwrap_or_default();
        let folder = root.join("bins/cliq/tests").join(module);
        // A module of a library's tests is a file, or a folder of its own.
        if !folder.is_dir() {
            let test = format!("fn {}", parts.next().unwrap_or_else(|| panic!("{name}: which test?")));
            let files = [format!("tests/{module}.rs"), format!("tests/{module}/mod.rs")];
            let places = crates.iter().flat_map(|dir| files.iter().map(|file| dir.join(file)));
            let sources = places.filter_map(|file| fs::read_to_string(file).ok());
            assert_eq!(sources.filter(|source| source.contains(&test)).count(), 1, "{name}");
            continue;
        }
        let Some(file) = parts.next() else { continue };
        let source = fs::read_to_string(folder.join(file).with_extension("rs"));
        let source = source.unwrap_or_else(|error| panic!("{name}: {error}"));
        let test = parts.next().unwrap_or_default();
        assert!(source.contains(&format!("fn {test}")), "{name}");
    }
}
