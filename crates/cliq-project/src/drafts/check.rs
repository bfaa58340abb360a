//! Problems of a draft by file, with texts that are not saved yet.

use std::collections::BTreeMap;

use camino::Utf8Path;
use cliq_workflow::{Diagnostic, EntryFile, Severity, Skill, Span, TeamFiles, ValidatedWorkflow};

use super::{DraftError, DraftName, DraftPath, Drafts, MAX_FILE, UnsavedTexts, paths, read};
use crate::agents::usable_and_broken;

/// Result of checking a draft.
#[derive(Debug)]
#[non_exhaustive]
pub struct DraftCheck {
    /// The team, if team.yml has no errors.
    pub workflow: Option<ValidatedWorkflow>,
    /// Every problem, by file and line.
    pub problems: Vec<DraftProblem>,
    /// Texts of the files of tests, by path.
    pub tests: BTreeMap<String, String>,
}

/// Problem of a file of a draft.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DraftProblem {
    /// File that it is about.
    pub file: String,
    /// The problem.
    pub problem: Diagnostic,
}

impl DraftProblem {
    /// Returns a problem of a file.
    #[must_use]
    pub fn new(file: impl Into<String>, problem: Diagnostic) -> Self {
        Self { file: file.into(), problem }
    }
}

impl Drafts {
    /// Checks a draft as `cliq team validate --draft` does, with texts that are not saved yet. Files of tests are returned and not checked.
    ///
    /// # Errors
    /// There is no such draft, or a file cannot be read.
    pub fn check(&self, name: &DraftName, unsaved: &UnsavedTexts) -> Result<DraftCheck, DraftError> {
        let folder = self.existing(name)?;
        let mut files: BTreeMap<String, Option<String>> = BTreeMap::new();
        for path in paths(&folder) {
            if !unsaved.contains_key(&path) {
                let text = if is_checked(&path) { read(&folder, path.clone())?.text } else { None };
                files.insert(path.as_str().to_owned(), text);
            }
        }
        let written =
            unsaved.iter().filter_map(|(path, text)| Some((path.as_str().to_owned(), Some(text.clone()?))));
        files.extend(written);
        let (agents, broken) = usable_and_broken(&self.host);
        let team = DraftTeam { files, agents, broken: broken.into_iter().collect() };
        Ok(team.check())
    }
}

/// Whether the text of a file matters for the checks.
fn is_checked(path: &DraftPath) -> bool {
    let path = path.as_str();
    path == "team.yml" || path.ends_with(".md") || path.starts_with("tests/")
}

/// Files of a draft with their texts, as far as they matter.
struct DraftTeam {
    files: BTreeMap<String, Option<String>>,
    agents: Vec<String>,
    broken: BTreeMap<String, String>,
}

impl DraftTeam {
    fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).and_then(Option::as_deref)
    }

    /// Files directly below a directory with an ending: name without the ending, and text.
    fn texts_in<'a>(&'a self, dir: &'a str, ending: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.files.iter().filter_map(move |(path, text)| {
            let name = path.strip_prefix(dir)?.strip_suffix(ending)?;
            (!name.contains('/')).then_some((name, text.as_deref()?))
        })
    }

    fn check(&self) -> DraftCheck {
        let mut problems = Vec::new();
        let checked = cliq_workflow::check(self.text("team.yml").unwrap_or_default(), self);
        for problem in checked.diagnostics {
            // Those of skills are reported at their own files.
            if problem.code != "invalid-skill" {
                problems.push(DraftProblem::new("team.yml", problem));
            }
        }
        for (directory, text) in self.skills() {
            let file = format!("skills/{directory}/SKILL.md");
            let (_, found) = Skill::read(&text, &directory);
            for problem in found {
                let span = Span { line: problem.line, column: 1, start: 0, end: 0 };
                let help = "docs/models.md in the repository of cliq describes skills";
                let problem = match problem.is_error {
                    true => Diagnostic::error("invalid-skill", span, problem.message, help),
                    false => Diagnostic::warning("invalid-skill", span, problem.message, help),
                };
                problems.push(DraftProblem::new(file.clone(), problem));
            }
        }
        for (path, text) in &self.files {
            if text.as_ref().is_some_and(|text| text.len() > MAX_FILE) {
                let span = Span { line: 1, column: 1, start: 0, end: 0 };
                let message = format!("the file has more than {MAX_FILE} bytes");
                let problem = Diagnostic::error("too-large", span, message, "make it smaller");
                problems.push(DraftProblem::new(path.as_str(), problem));
            }
        }
        let has_errors = problems.iter().any(|problem| problem.problem.severity == Severity::Error);
        let is_test =
            |path: &str| path.starts_with("tests/") && (path.ends_with(".yml") || path.ends_with(".yaml"));
        let tests = self.files.iter().filter(|(path, _)| is_test(path));
        DraftCheck {
            workflow: checked.workflow.filter(|_| !has_errors),
            problems,
            tests: tests.filter_map(|(path, text)| Some((path.clone(), text.clone()?))).collect(),
        }
    }
}

impl TeamFiles for DraftTeam {
    fn has_role(&self, name: &str) -> bool {
        self.files.contains_key(&format!("roles/{name}.md"))
    }
    fn role_names(&self) -> Vec<String> {
        self.texts_in("roles/", ".md").map(|(name, _)| name.to_owned()).collect()
    }
    fn role_texts(&self) -> Vec<String> {
        self.texts_in("roles/", ".md").map(|(_, text)| text.to_owned()).collect()
    }
    fn skills(&self) -> Vec<(String, String)> {
        let skills = self.files.iter().filter_map(|(path, text)| {
            let name = path.strip_prefix("skills/")?.strip_suffix("/SKILL.md")?;
            (!name.contains('/')).then(|| (name.to_owned(), text.clone().unwrap_or_default()))
        });
        skills.collect()
    }
    fn entry(&self, path: &Utf8Path) -> EntryFile {
        // The permission to execute a new file is set when it is installed.
        if self.files.contains_key(path.as_str()) { EntryFile::Unknown } else { EntryFile::Missing }
    }
    fn is_draft(&self) -> bool {
        true
    }
    fn installed_agents(&self) -> Vec<String> {
        self.agents.clone()
    }
    fn broken_agent(&self, name: &str) -> Option<String> {
        self.broken.get(name).cloned()
    }
    fn schema_problem(&self, schema: &serde_json::Value) -> Option<String> {
        cliq_agents::schema_problem(schema)
    }
}
