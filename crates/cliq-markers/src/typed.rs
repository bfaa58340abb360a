//! Typed access to the fields of markers.

use serde::Serialize;

use crate::fields::Shape;
use crate::scan::Marker;

/// Level of urgency or confidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Level {
    /// A little.
    Low,
    /// Somewhat.
    Medium,
    /// Much.
    High,
}

/// Problem and its location: an item such as `src/a.rs:12: unwrap on user input`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Issue {
    /// The file, where one is named.
    pub file: Option<String>,
    /// The line in it, where one is named.
    pub line: Option<u32>,
    /// Description of the problem.
    pub text: String,
}

/// Result of a check: an item such as `unit tests (ci): PASS`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckResult {
    /// Name of the check.
    pub check: String,
    /// Environment of the check.
    pub environment: Option<String>,
    /// Whether it is well: `PASS` or `VERIFIED`, and not `FAIL` or `FAILED`.
    pub passed: bool,
    /// Further text: evidence, exit status, output.
    pub detail: String,
}

impl Marker<'_> {
    /// Returns the missing fields of this marker and the fields with invalid values.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let body = self.body();
        let mut warnings = Vec::new();
        for field in self.kind.fields() {
            let section = body.section(field.key);
            let problem = match field.shape {
                Shape::Prompt(_) => {
                    body.delegation_prompt().is_none().then(|| "it has no delegation prompt".to_owned())
                }
                _ if section.is_none() => Some(format!("`{}` is missing", field.key)),
                Shape::Items(_) => {
                    // `Files Modified: none` is an answer too.
                    let empty = body.items(field.key).is_empty() && body.value(field.key).is_none();
                    empty.then(|| format!("`{}` has no items", field.key))
                }
                Shape::Line(_) | Shape::Text(_) => {
                    let empty = body.items(field.key).is_empty() && body.value(field.key).is_none();
                    empty.then(|| format!("`{}` is empty", field.key))
                }
                Shape::Choice(words) => {
                    let value = body.value(field.key).unwrap_or_default();
                    let known = words.iter().any(|word| word.eq_ignore_ascii_case(&value));
                    (!known).then(|| format!("`{}` is `{value}`, not one of {}", field.key, words.join(", ")))
                }
            };
            // What need not be there may still be wrong.
            warnings.extend(problem.filter(|_| field.required || section.is_some()));
        }
        warnings
    }

    /// Returns the urgency of the fixes that a review requests.
    #[must_use]
    pub fn priority(&self) -> Option<Level> {
        self.level("Priority")
    }

    /// Returns the confidence of a business analyst.
    #[must_use]
    pub fn confidence(&self) -> Option<Level> {
        self.level("Confidence")
    }

    fn level(&self, key: &str) -> Option<Level> {
        match self.body().value(key)?.to_ascii_uppercase().as_str() {
            "HIGH" => Some(Level::High),
            "MEDIUM" => Some(Level::Medium),
            "LOW" => Some(Level::Low),
            _ => None,
        }
    }

    /// Whether an agent that needs a file of another task can wait for it.
    #[must_use]
    pub fn can_wait(&self) -> Option<bool> {
        match self.body().value("Can Wait")?.to_ascii_uppercase().as_str() {
            "YES" => Some(true),
            "NO" => Some(false),
            _ => None,
        }
    }

    /// Returns the holder of the needed file, or `None` if the holder is unknown.
    #[must_use]
    pub fn assigned_to(&self) -> Option<String> {
        self.body().value("Assigned To").filter(|who| !who.eq_ignore_ascii_case("UNKNOWN"))
    }

    /// Returns the findings of a review or an audit.
    #[must_use]
    pub fn issues(&self) -> Vec<Issue> {
        self.body().items("Issues Found").iter().map(|item| issue(item)).collect()
    }

    /// The results of checks, under any of the names that markers use.
    #[must_use]
    pub fn checks(&self) -> Vec<CheckResult> {
        let keys = [
            "Verification Results",
            "Commands Executed",
            "Failed Criteria",
            "Failed Checks",
            "Passing Checks",
        ];
        keys.iter().flat_map(|key| self.body().items(key)).map(|item| check(&item)).collect()
    }

    /// Files that are named as modified, reviewed or to be changed, without what is said of them.
    #[must_use]
    pub fn files(&self) -> Vec<String> {
        let keys = ["Files Modified", "Files Reviewed", "Target Files"];
        let items = keys.iter().flat_map(|key| self.body().items(key));
        items
            .map(|item: String| item.split_once(": ").map_or(item.as_str(), |(file, _)| file).to_owned())
            .collect()
    }
}

fn issue(item: &str) -> Issue {
    let plain = |text: &str| Issue { file: None, line: None, text: text.to_owned() };
    let Some((file, rest)) = item.split_once(':') else { return plain(item) };
    if file.contains(' ') || file.is_empty() {
        return plain(item);
    }
    let file = Some(file.to_owned());
    match rest.split_once(':').map(|(line, text)| (line.trim().parse(), text)) {
        Some((Ok(line), text)) => Issue { file, line: Some(line), text: text.trim().to_owned() },
        _ => Issue { file, line: None, text: rest.trim().to_owned() },
    }
}

fn check(item: &str) -> CheckResult {
    let (head, detail) = item.split_once('\n').unwrap_or((item, ""));
    let (name, result) = head.rsplit_once(": ").unwrap_or((head, ""));
    let (word, evidence) = result.split_once(" - ").unwrap_or((result, ""));
    let word = word.split_ascii_whitespace().next().unwrap_or_default();
    let (check, environment) = match name.strip_suffix(')').and_then(|name| name.rsplit_once(" (")) {
        Some((check, environment)) => (check, Some(environment.to_owned())),
        None => (name, None),
    };
    let detail =
        [evidence, detail].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n");
    CheckResult {
        check: check.to_owned(),
        environment,
        passed: matches!(word.to_ascii_uppercase().as_str(), "PASS" | "PASSED" | "VERIFIED"),
        detail,
    }
}
