//! GitHub, and GitHub Enterprise Server: REST API, version 2022-11-28.

use serde_json::{Value, json};

use super::host_api::HostApi;
use super::pull_request::{CodeHostError, NewPullRequest, PullRequest};
use super::remote::Remote;

pub(crate) fn find(
    api: &HostApi,
    remote: &Remote,
    branch: &str,
) -> Result<Option<PullRequest>, CodeHostError> {
    let (owner, name) = remote.owner_and_name();
    let head = format!("{owner}:{branch}");
    let url =
        api.at(&["repos", owner, name, "pulls"], &[("state", "open"), ("head", &head), ("per_page", "100")]);
    let answer = api.get(url)?;
    // A host that does not know `head` gives all of them.
    let own = api
        .list(&answer, "")?
        .iter()
        .find(|pull| pull.pointer("/head/ref").and_then(Value::as_str) == Some(branch));
    own.map(|pull| read(api, pull)).transpose()
}

pub(crate) fn create(
    api: &HostApi,
    remote: &Remote,
    new: &NewPullRequest,
) -> Result<PullRequest, CodeHostError> {
    let (owner, name) = remote.owner_and_name();
    let body = json!({"title": new.title, "body": new.body, "head": new.branch, "base": new.base, "draft": new.draft});
    let made = read(api, &api.post(api.at(&["repos", owner, name, "pulls"], &[]), &body)?)?;
    let number = made.number.to_string();
    if !new.labels.is_empty() {
        api.post(
            api.at(&["repos", owner, name, "issues", &number, "labels"], &[]),
            &json!({"labels": new.labels}),
        )?;
    }
    if !new.reviewers.is_empty() {
        let url = api.at(&["repos", owner, name, "pulls", &number, "requested_reviewers"], &[]);
        api.post(url, &json!({"reviewers": new.reviewers}))?;
    }
    Ok(made)
}

fn read(api: &HostApi, value: &Value) -> Result<PullRequest, CodeHostError> {
    Ok(PullRequest {
        number: api.number(value, "/number")?,
        url: api.text(value, "/html_url")?,
        title: api.text(value, "/title")?,
        branch: api.text(value, "/head/ref")?,
        base: api.text(value, "/base/ref")?,
    })
}
