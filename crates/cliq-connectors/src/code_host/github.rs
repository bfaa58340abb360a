//! GitHub, and GitHub Enterprise Server: REST API, version 2022-11-28.

use serde_json::{Value, json};

use super::calls::Calls;
use super::pull_request::{CodeHostError, NewPullRequest, PullRequest};
use super::remote::Remote;

pub(crate) fn find(
    calls: &Calls,
    remote: &Remote,
    branch: &str,
) -> Result<Option<PullRequest>, CodeHostError> {
    let (owner, name) = remote.owner_and_name();
    let head = format!("{owner}:{branch}");
    let url = calls
        .at(&["repos", owner, name, "pulls"], &[("state", "open"), ("head", &head), ("per_page", "100")]);
    let answer = calls.get(&url)?;
    // A host that does not know `head` gives all of them.
    let own = calls
        .list(&answer, "")?
        .iter()
        .find(|pull| pull.pointer("/head/ref").and_then(Value::as_str) == Some(branch));
    own.map(|pull| read(calls, pull)).transpose()
}

pub(crate) fn create(
    calls: &Calls,
    remote: &Remote,
    new: &NewPullRequest,
) -> Result<PullRequest, CodeHostError> {
    let (owner, name) = remote.owner_and_name();
    let body = json!({"title": new.title, "body": new.body, "head": new.branch, "base": new.base, "draft": new.draft});
    let made = read(calls, &calls.post(&calls.at(&["repos", owner, name, "pulls"], &[]), &body)?)?;
    let number = made.number.to_string();
    if !new.labels.is_empty() {
        calls.post(
            &calls.at(&["repos", owner, name, "issues", &number, "labels"], &[]),
            &json!({"labels": new.labels}),
        )?;
    }
    if !new.reviewers.is_empty() {
        let url = calls.at(&["repos", owner, name, "pulls", &number, "requested_reviewers"], &[]);
        calls.post(&url, &json!({"reviewers": new.reviewers}))?;
    }
    Ok(made)
}

fn read(calls: &Calls, value: &Value) -> Result<PullRequest, CodeHostError> {
    Ok(PullRequest {
        number: calls.number(value, "/number")?,
        url: calls.text(value, "/html_url")?,
        title: calls.text(value, "/title")?,
        branch: calls.text(value, "/head/ref")?,
        base: calls.text(value, "/base/ref")?,
    })
}
