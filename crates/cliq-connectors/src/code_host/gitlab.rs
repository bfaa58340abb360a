//! GitLab, on its own host or another: REST API, version 4. A pull request is a merge request there.

use serde_json::{Value, json};

use super::calls::Calls;
use super::pull_request::{CodeHostError, NewPullRequest, PullRequest};
use super::remote::Remote;

pub(crate) fn find(
    calls: &Calls,
    remote: &Remote,
    branch: &str,
) -> Result<Option<PullRequest>, CodeHostError> {
    let query = [("state", "opened"), ("source_branch", branch)];
    let answer = calls.get(&calls.at(&["projects", remote.path(), "merge_requests"], &query))?;
    let own = |merge: &&Value| merge["source_branch"].as_str() == Some(branch);
    calls.list(&answer, "")?.iter().find(own).map(|merge| read(calls, merge)).transpose()
}

pub(crate) fn create(
    calls: &Calls,
    remote: &Remote,
    new: &NewPullRequest,
) -> Result<PullRequest, CodeHostError> {
    // A draft is one by its title.
    let title = if new.draft { format!("Draft: {}", new.title) } else { new.title.clone() };
    let body = json!({"title": title, "description": new.body, "source_branch": new.branch, "target_branch": new.base,
        "labels": new.labels.join(",")});
    read(calls, &calls.post(&calls.at(&["projects", remote.path(), "merge_requests"], &[]), &body)?)
}

fn read(calls: &Calls, value: &Value) -> Result<PullRequest, CodeHostError> {
    Ok(PullRequest {
        number: calls.number(value, "/iid")?,
        url: calls.text(value, "/web_url")?,
        title: calls.text(value, "/title")?,
        branch: calls.text(value, "/source_branch")?,
        base: calls.text(value, "/target_branch")?,
    })
}
