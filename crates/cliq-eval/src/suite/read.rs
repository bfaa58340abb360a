//! Reader of suites: every problem at once, with its place and remedy.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};
use cliq_document::{Diagnostic, Located, Node, Record, Severity, Span, did_you_mean, finish, parse};
use cliq_orchestrator::Agents;
use cliq_project::Host;
use cliq_settings::{Key, Kind};
use cliq_workflow::{TeamCheck, count_by_severity};

use super::fields::{BUDGET, CASE, SUITE, VARIANT, WORKSPACE};
use super::read_check::read_checks;
use super::{Case, CheckKind, CheckSpec, EndState, Suite, SuiteBudget, Variant, WorkspaceSource};
use crate::statistics::DEFAULT_MARGIN;

const EMPTY: &str = "a suite needs `name:`, `cases:` and `variants:`; `cliq eval new` writes a first one";
/// Maximum size of a file that a suite names, in bytes.
pub(crate) const MAX_FILE: u64 = 4 << 20;

/// Maximum number of different regular expressions of a suite.
const MAX_PATTERNS: usize = 200;
/// Maximum number of checks of all cases together. Checks of the suite count for each case.
const MAX_CHECKS: usize = 20_000;

/// Result of reading a suite.
#[derive(Debug, Clone)]
pub struct SuiteCheck {
    /// The suite, if there is no error.
    pub suite: Option<Suite>,
    /// Every problem, in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
}

impl SuiteCheck {
    /// Whether there is an error.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|problem| problem.severity == Severity::Error)
    }
}

/// Collector of problems, and the directory of the suite.
pub(crate) struct Reader<'a> {
    pub(crate) dir: &'a Utf8Path,
    /// Regular expressions that were checked before.
    patterns: BTreeSet<String>,
    host: &'a Host,
    /// Agents of the host, once they were looked for. `None` inside if its settings cannot be read.
    agents: OnceCell<Option<Agents>>,
    pub(crate) problems: Vec<Diagnostic>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(dir: &'a Utf8Path, host: &'a Host) -> Self {
        Self { dir, patterns: BTreeSet::new(), host, agents: OnceCell::new(), problems: Vec::new() }
    }

    pub(crate) fn error(&mut self, code: &'static str, span: Span, message: String, help: impl Into<String>) {
        self.problems.push(Diagnostic::error(code, span, message, help));
    }

    /// Checks a regular expression. Compilation is slow: each text is compiled once, and there is a limit of different ones.
    pub(crate) fn check_pattern(&mut self, pattern: &str) -> Result<(), String> {
        if self.patterns.contains(pattern) {
            return Ok(());
        }
        if self.patterns.len() >= MAX_PATTERNS {
            return Err(format!("the suite has more than {MAX_PATTERNS} different ones"));
        }
        self.patterns.insert(pattern.to_owned());
        crate::checks::compile(pattern).map(drop)
    }

    pub(crate) fn path(&self, path: &str) -> Utf8PathBuf {
        self.dir.join(path)
    }

    /// Reads a file that the suite names.
    pub(crate) fn file(&mut self, path: &Located<String>) -> Option<String> {
        let full = self.path(&path.value);
        let read = std::fs::metadata(&full).and_then(|meta| match meta.len() {
            0..=MAX_FILE => std::fs::read_to_string(&full),
            size => Err(std::io::Error::other(format!("the file has {size} bytes; {MAX_FILE} is the most"))),
        });
        match read {
            Ok(text) => Some(text),
            Err(error) => {
                let message = format!("cannot read {full}: {error}");
                self.error("unreadable-file", path.span, message, "paths are relative to the suite");
                None
            }
        }
    }

    /// Reads a text that stands in the suite, or in a file.
    pub(crate) fn text_or_file(&mut self, record: &Record<'_>, what: &str, name: &str) -> Option<String> {
        let file = format!("{name}_file");
        match (record.text(name), record.text(&file)) {
            (Some(text), None) => Some(text.value),
            (None, Some(path)) => self.file(&path),
            (Some(_), Some(path)) => {
                let message = format!("{what} has both `{name}` and `{file}`");
                self.error("both-given", path.span, message, "remove one of the two");
                None
            }
            (None, None) if record.has(name) || record.has(&file) => None,
            (None, None) => {
                let message = format!("{what} needs `{name}` or `{file}`");
                self.error("missing-field", record.span, message, format!("add `{name}:`"));
                None
            }
        }
    }

    /// Checks that an agent is there: an installed or a built-in one. Settings that cannot be read are reported by the evaluation.
    pub(crate) fn agent(&mut self, agent: &Located<String>) {
        let host = self.host;
        let agents = self.agents.get_or_init(|| Some(host.agents(&host.settings().ok()?)));
        let Some(agents) = agents else { return };
        if agents.get(&agent.value).is_some() || agents.why_unusable(&agent.value).is_some() {
            return;
        }
        let known: Vec<&str> = agents.names().chain(agents.unusable().map(|(name, _)| name)).collect();
        let help = format!("{} — `cliq agent list` shows all", did_you_mean(&agent.value, &known));
        self.error("unknown-agent", agent.span, format!("there is no agent `{}`", agent.value), help);
    }

    /// Checks that a name is fit for paths and unique among `known`.
    pub(crate) fn name(&mut self, what: &str, name: &Located<String>, known: &mut BTreeSet<String>) {
        let is_fine = |text: &str| {
            (1..=64).contains(&text.len())
                && text.starts_with(|c: char| c.is_ascii_alphanumeric())
                && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
        };
        if !is_fine(&name.value) {
            let message = format!("{:?} cannot be the name of {what}", name.value);
            let help = "a letter or digit, then letters, digits, `-`, `_`, `.`, at most 64";
            self.error("invalid-name", name.span, message, help);
        } else if !known.insert(name.value.clone()) {
            let message = format!("{what} `{}` is there twice", name.value);
            self.error("duplicate-name", name.span, message, "give each a name of its own");
        }
    }
}

/// Reads a suite of at most 8 MiB, with at most 200 regular expressions and 20,000 checks. Time is linear in the size of the text and the
/// number of checks. At most 20 errors and 20 warnings are returned. `dir` is the directory of its file; paths are relative to it.
#[must_use]
pub fn read_suite(text: &str, dir: &Utf8Path, host: &Host) -> SuiteCheck {
    let mut reader = Reader::new(dir, host);
    let suite = parse(text, EMPTY, &mut reader.problems).and_then(|node| suite(&node, &mut reader));
    let diagnostics = finish(reader.problems);
    let is_valid = !diagnostics.iter().any(|problem| problem.severity == Severity::Error);
    SuiteCheck { suite: suite.filter(|_| is_valid), diagnostics }
}

fn suite(node: &Node, reader: &mut Reader<'_>) -> Option<Suite> {
    let record = Record::read(node, SUITE, "a suite", &mut reader.problems)?;
    if let Some(name) = record.text("name") {
        reader.name("a suite", &name, &mut BTreeSet::new());
    }
    let margin = record.amount("margin").unwrap_or(DEFAULT_MARGIN);
    if let (true, Some(node)) = (margin >= 1.0, record.node("margin")) {
        let message = format!("`margin` is a difference of pass rates, and {margin} is not below 1");
        reader.error("out-of-range", node.span, message, "write a number such as 0.1");
    }
    let budget = record
        .node("budget")
        .and_then(|node| Record::read(node, BUDGET, "a budget", &mut reader.problems))
        .map(|record| SuiteBudget {
            tokens: record.integer("tokens").and_then(|n| u64::try_from(n).ok()),
            usd: record.amount("usd"),
        });
    let shared = read_checks(record.list("checks"), reader);
    let case_count = record.list("cases").len();
    if let (true, Some(node)) = (shared.len().saturating_mul(case_count) > MAX_CHECKS, record.node("checks"))
    {
        let message = format!("{} checks for each of {case_count} cases are too many", shared.len());
        reader.error(
            "out-of-range",
            node.span,
            message,
            format!("{MAX_CHECKS} is the most: split the suite"),
        );
        return None;
    }
    let mut names = BTreeSet::new();
    let cases: Vec<(Case, Span)> =
        record.list("cases").iter().filter_map(|node| case(node, &shared, &mut names, reader)).collect();
    let mut names = BTreeSet::new();
    let variants: Vec<Variant> =
        record.list("variants").iter().filter_map(|node| variant(node, &cases, &mut names, reader)).collect();
    for (field, is_empty) in [("cases", cases.is_empty()), ("variants", variants.is_empty())] {
        if let (true, Some(node)) = (is_empty && record.list(field).is_empty(), record.node(field)) {
            let message = format!("`{field}` is empty");
            reader.error("empty-list", node.span, message, "add one at least");
        }
    }
    check_labels(&cases, &variants, reader);
    let number = |name: &str, default: u32| {
        record.integer(name).and_then(|n| u32::try_from(n).ok()).unwrap_or(default)
    };
    Some(Suite {
        name: record.text("name")?.value,
        repeats: number("repeats", 5),
        max_parallel: number("max_parallel", 2),
        margin,
        timeout_s: record.duration("timeout").map_or(3600, |limit| limit.as_secs()),
        budget: budget.unwrap_or_default(),
        cases: cases.into_iter().map(|(case, _)| case).collect(),
        variants,
    })
}

fn case(
    node: &Node,
    shared: &[CheckSpec],
    names: &mut BTreeSet<String>,
    reader: &mut Reader<'_>,
) -> Option<(Case, Span)> {
    let record = Record::read(node, CASE, "a case", &mut reader.problems)?;
    let name = record.text("name");
    if let Some(name) = &name {
        reader.name("a case", name, names);
    }
    let requirement = reader.text_or_file(&record, "a case", "requirement");
    if requirement.as_ref().is_some_and(|text| text.trim().is_empty()) {
        reader.error(
            "empty-text",
            record.span,
            "the requirement is empty".to_owned(),
            "write what is to be done",
        );
    }
    let workspace = record.node("workspace").and_then(|node| workspace(node, reader));
    let own = read_checks(record.list("checks"), reader);
    let mut checks: Vec<CheckSpec> = own;
    let own: BTreeSet<String> = checks.iter().map(|check| check.name.clone()).collect();
    checks.extend(shared.iter().filter(|check| !own.contains(&check.name)).cloned());
    if !checks.iter().any(|check| matches!(check.kind, CheckKind::End(_))) {
        // A run that does not complete has not passed, unless the case says otherwise.
        let end = CheckSpec { name: "end".to_owned(), kind: CheckKind::End(EndState::Completed) };
        checks.insert(0, end);
    }
    let case = Case {
        name: name?.value,
        requirement: requirement?,
        inputs: texts(&record, "inputs").into_iter().map(|(key, value)| (key.value, value)).collect(),
        workspace,
        checks,
    };
    Some((case, record.span))
}

fn workspace(node: &Node, reader: &mut Reader<'_>) -> Option<WorkspaceSource> {
    if let Some(path) = node.scalar() {
        let full = reader.path(&path);
        let real = full.canonicalize_utf8().ok().filter(|path| path.is_dir());
        if real.is_none() {
            let message = format!("there is no folder {full}");
            reader.error("unreadable-file", node.span, message, "paths are relative to the suite");
        }
        return real.map(WorkspaceSource::Folder);
    }
    let record = Record::read(node, WORKSPACE, "a workspace", &mut reader.problems)?;
    let url = record.text("git")?.value;
    // A path of a repository is taken from the suite; an address stays.
    let is_address = url.contains("://") || url.split_once(':').is_some_and(|(host, _)| !host.contains('/'));
    let url = if is_address { url } else { reader.path(&url).to_string() };
    Some(WorkspaceSource::Git { url, revision: record.text("revision").map(|text| text.value) })
}

/// Entries of a mapping of texts to texts.
pub(crate) fn texts(record: &Record<'_>, name: &str) -> Vec<(Located<String>, String)> {
    let entries = record.map(name).iter();
    entries
        .filter_map(|entry| {
            Some((Located { value: entry.key.clone(), span: entry.span }, entry.value.scalar()?))
        })
        .collect()
}

fn variant(
    node: &Node,
    cases: &[(Case, Span)],
    names: &mut BTreeSet<String>,
    reader: &mut Reader<'_>,
) -> Option<Variant> {
    let record = Record::read(node, VARIANT, "a variant", &mut reader.problems)?;
    let name = record.text("name");
    if let Some(name) = &name {
        reader.name("a variant", name, names);
    }
    let located_agent = record.text("agent");
    let agent = located_agent.as_ref().map(|text| text.value.clone());
    let model = record.text("model");
    if let (None, Some(model)) = (&agent, &model) {
        let message = "a variant with `model` needs `agent`".to_owned();
        reader.error("missing-field", model.span, message, "add `agent:`, the agent that uses the model");
    }
    let mut settings: BTreeMap<String, String> = BTreeMap::new();
    for (key, value) in texts(&record, "settings") {
        check_setting(&key, &value, reader);
        settings.insert(key.value, value);
    }
    for field in ["effort", "temperature"] {
        let Some(value) = record.text(field) else { continue };
        match &agent {
            Some(agent) => drop(settings.insert(format!("agents.{agent}.{field}"), value.value)),
            None => {
                let message = format!("a variant with `{field}` needs `agent`");
                reader.error("missing-field", value.span, message, "add `agent:`, the agent that it is for");
            }
        }
    }
    let skills = record.text("skills").map(|folder| {
        let path = reader.path(&folder.value);
        if !path.is_dir() {
            let message = format!("there is no folder {path}");
            reader.error(
                "unknown-folder",
                folder.span,
                message,
                "name a folder with a folder for each skill",
            );
        }
        path.to_string()
    });
    let team = record.text("team");
    let found = team.as_ref().and_then(|team| find_team(team, reader));
    if let (Some((_, checked)), Some(team)) = (&found, &team) {
        check_inputs(checked, cases, team.span, reader);
    }
    let workflow = found.as_ref().and_then(|(_, checked)| checked.workflow.as_ref());
    if let (Some(agent), Some(workflow)) = (&located_agent, workflow)
        && !workflow.agents.contains_key(&agent.value)
    {
        reader.agent(agent);
    }
    let roles = roles(&record, found.as_ref().map(|(_, checked)| checked), reader);
    Some(Variant {
        name: name?.value,
        team: found?.0,
        agent,
        model: model.map(|text| text.value),
        settings,
        roles,
        skills,
    })
}

fn check_setting(key: &Located<String>, value: &str, reader: &mut Reader<'_>) {
    match Key::find(&key.value) {
        Ok(known) if matches!(known.kind, Kind::Secret) => {
            let message = format!("`{}` is a secret, and a suite is no place for secrets", key.value);
            let help = format!("set it on this machine: `cliq settings set -g {}`", key.value);
            reader.error("secret-in-suite", key.span, message, help);
        }
        Ok(known) => {
            if let Err(error) = known.parse(&key.value, value) {
                reader.error("invalid-value", key.span, error.to_string(), known.about);
            }
        }
        Err(error) => {
            reader.error(
                "unknown-setting",
                key.span,
                error.to_string(),
                "`cliq settings list` has all of them",
            );
        }
    }
}

/// Finds and checks a team. Returns its reference for later, and the check.
fn find_team(team: &Located<String>, reader: &mut Reader<'_>) -> Option<(String, TeamCheck)> {
    let is_name = team.value.starts_with('@');
    let reference = if is_name { team.value.clone() } else { reader.path(&team.value).to_string() };
    let found = match reader.host.find_team(&reference) {
        Ok(found) => found,
        Err(error) => {
            let help = "`cliq team list` has the installed teams; a folder is relative to the suite";
            reader.error("unknown-team", team.span, error.to_string(), help);
            return None;
        }
    };
    let checked = found.folder.check();
    if checked.workflow.is_none() {
        let message = format!("team {reference} has {}", count_by_severity(&checked.diagnostics));
        let help = format!("`cliq team validate {reference}` shows them");
        reader.error("invalid-team", team.span, message, help);
        return None;
    }
    Some((reference, checked))
}

/// Checks the inputs of each case against a team.
fn check_inputs(checked: &TeamCheck, cases: &[(Case, Span)], span: Span, reader: &mut Reader<'_>) {
    let Some(workflow) = &checked.workflow else { return };
    let known: Vec<&str> = workflow.inputs.iter().map(|input| input.name.as_str()).collect();
    for (case, at) in cases {
        for input in workflow.inputs.iter().filter(|input| input.required && input.default.is_none()) {
            if !case.inputs.contains_key(&input.name) {
                let message = format!(
                    "case `{}` has no input `{}`, which {} needs",
                    case.name, input.name, workflow.name
                );
                let help = format!("add `inputs: {{{}: …}}` to the case", input.name);
                reader.error("missing-input", *at, message, help);
            }
        }
        for name in case.inputs.keys().filter(|name| !known.contains(&name.as_str())) {
            let message =
                format!("{} has no input `{name}`, which case `{}` gives", workflow.name, case.name);
            reader.error("unknown-input", span, message, did_you_mean(name, &known));
        }
    }
}

fn roles(
    record: &Record<'_>,
    checked: Option<&TeamCheck>,
    reader: &mut Reader<'_>,
) -> BTreeMap<String, String> {
    let known: BTreeSet<String> = checked
        .and_then(|checked| checked.workflow.as_ref())
        .into_iter()
        .flat_map(cliq_workflow::ValidatedWorkflow::phases)
        .map(|(_, phase)| phase.role.clone())
        .collect();
    let mut roles = BTreeMap::new();
    for (role, path) in texts(record, "roles") {
        if checked.is_some() && !known.contains(&role.value) {
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            let message = format!("the team has no role `{}`", role.value);
            reader.error("unknown-role", role.span, message, did_you_mean(&role.value, &known));
        }
        if let Some(text) = reader.file(&Located { value: path, span: role.span }) {
            roles.insert(role.value, text);
        }
    }
    roles
}

/// Checks that labels name cases and variants of the suite.
fn check_labels(cases: &[(Case, Span)], variants: &[Variant], reader: &mut Reader<'_>) {
    let case_names: Vec<&str> = cases.iter().map(|(case, _)| case.name.as_str()).collect();
    let variant_names: Vec<&str> = variants.iter().map(|variant| variant.name.as_str()).collect();
    for (case, at) in cases {
        for check in &case.checks {
            let CheckKind::Judge(judge) = &check.kind else { continue };
            for label in &judge.labels {
                if !case_names.contains(&label.case.as_str()) {
                    let message =
                        format!("a label of `{}` names the unknown case `{}`", check.name, label.case);
                    reader.error("unknown-label", *at, message, did_you_mean(&label.case, &case_names));
                }
                if let Some(variant) = label.variant.as_deref().filter(|name| !variant_names.contains(name)) {
                    let message =
                        format!("a label of `{}` names the unknown variant `{variant}`", check.name);
                    reader.error("unknown-label", *at, message, did_you_mean(variant, &variant_names));
                }
            }
        }
    }
}
