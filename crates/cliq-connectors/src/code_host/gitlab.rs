//! GitLab, on its own host or another: REST API, version 4. A pull request is a merge request there.

use serde_json::{Value, json};

use super::host_api::HostApi;
use super::pull_request::{CodeHostError, NewPullRequest, PullRequest};
use super::remote::Remote;

pub(crate) fn find(
    api: &HostApi,
    remote: &Remote,
    branch: &str,
) -> Result<Option<PullRequest>, CodeHostError> {
    let query = [("state", "opened"), ("source_branch", branch)];
    let answer = api.get(api.at(&["projects", remote.path(), "merge_requests"], &query))?;
    let own = |merge: &&Value| merge["source_branch"].as_str() == Some(branch);
    api.list(&answer, "")?.iter().find(own).map(|merge| read(api, merge)).transpose()
}

pub(crate) fn create(
    api: &HostApi,
    remote: &Remote,
    new: &NewPullRequest,
) -> Result<PullRequest, CodeHostError> {
    // A draft is one by its title.
    let title = if new.draft { format!("Draft: {}", new.title) } else { new.title.clone() };
    let body = json!({"title": title, "description": new.body, "source_branch": new.branch, "target_branch": new.base,
        "labels": new.labels.join(",")});
    read(api, &api.post(api.at(&["projects", remote.path(), "merge_requests"], &[]), &body)?)
}

fn read(api: &HostApi, value: &Value) -> Result<PullRequest, CodeHostError> {
    Ok(PullRequest {
        number: api.number(value, "/iid")?,
        url: api.text(value, "/web_url")?,
        title: api.text(value, "/title")?,
        branch: api.text(value, "/source_branch")?,
        base: api.text(value, "/target_branch")?,
    })
}
