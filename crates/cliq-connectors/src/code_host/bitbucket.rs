//! Bitbucket: the cloud (REST API 2.0), and Bitbucket Data Center (REST API 1.0).

use serde_json::{Value, json};

use super::host_api::HostApi;
use super::pull_request::{CodeHostError, NewPullRequest, PullRequest};
use super::remote::Remote;

/// Bitbucket in the cloud.
pub(crate) mod cloud {
    use super::{CodeHostError, HostApi, NewPullRequest, PullRequest, Remote, Value, json};

    pub(crate) fn find(
        api: &HostApi,
        remote: &Remote,
        branch: &str,
    ) -> Result<Option<PullRequest>, CodeHostError> {
        let (owner, name) = remote.owner_and_name();
        let text = branch.replace('\\', "\\\\").replace('"', "\\\"");
        let query = format!("source.branch.name=\"{text}\" AND state=\"OPEN\"");
        let answer = api.get(api.at(&["repositories", owner, name, "pullrequests"], &[("q", &query)]))?;
        let own = |pull: &&Value| pull.pointer("/source/branch/name").and_then(Value::as_str) == Some(branch);
        api.list(&answer, "/values")?.iter().find(own).map(|pull| read(api, pull)).transpose()
    }

    pub(crate) fn create(
        api: &HostApi,
        remote: &Remote,
        new: &NewPullRequest,
    ) -> Result<PullRequest, CodeHostError> {
        let (owner, name) = remote.owner_and_name();
        let body = json!({"title": new.title, "description": new.body, "draft": new.draft,
            "source": {"branch": {"name": new.branch}}, "destination": {"branch": {"name": new.base}}});
        read(api, &api.post(api.at(&["repositories", owner, name, "pullrequests"], &[]), &body)?)
    }

    fn read(api: &HostApi, value: &Value) -> Result<PullRequest, CodeHostError> {
        Ok(PullRequest {
            number: api.number(value, "/id")?,
            url: api.text(value, "/links/html/href")?,
            title: api.text(value, "/title")?,
            branch: api.text(value, "/source/branch/name")?,
            base: api.text(value, "/destination/branch/name")?,
        })
    }
}

/// Bitbucket Data Center, self-hosted.
pub(crate) mod server {
    use super::{CodeHostError, HostApi, NewPullRequest, PullRequest, Remote, Value, json};

    /// Project and repository. Over HTTP their path begins with `scm/`.
    fn names(remote: &Remote) -> (&str, &str) {
        let (project, name) = remote.owner_and_name();
        (project.strip_prefix("scm/").unwrap_or(project), name)
    }

    pub(crate) fn find(
        api: &HostApi,
        remote: &Remote,
        branch: &str,
    ) -> Result<Option<PullRequest>, CodeHostError> {
        let (project, name) = names(remote);
        let from = format!("refs/heads/{branch}");
        let query = [("state", "OPEN"), ("direction", "OUTGOING"), ("at", &from)];
        let answer = api.get(api.at(&["projects", project, "repos", name, "pull-requests"], &query))?;
        let own = |pull: &&Value| pull.pointer("/fromRef/id").and_then(Value::as_str) == Some(&from);
        api.list(&answer, "/values")?.iter().find(own).map(|pull| read(api, pull)).transpose()
    }

    pub(crate) fn create(
        api: &HostApi,
        remote: &Remote,
        new: &NewPullRequest,
    ) -> Result<PullRequest, CodeHostError> {
        let (project, name) = names(remote);
        let repository = json!({"slug": name, "project": {"key": project}});
        let body = json!({"title": new.title, "description": new.body, "draft": new.draft,
            "fromRef": {"id": format!("refs/heads/{}", new.branch), "repository": repository},
            "toRef": {"id": format!("refs/heads/{}", new.base), "repository": repository}});
        read(api, &api.post(api.at(&["projects", project, "repos", name, "pull-requests"], &[]), &body)?)
    }

    fn read(api: &HostApi, value: &Value) -> Result<PullRequest, CodeHostError> {
        let branch = |text: String| text.strip_prefix("refs/heads/").map_or(text.clone(), str::to_owned);
        Ok(PullRequest {
            number: api.number(value, "/id")?,
            url: api.text(value, "/links/self/0/href")?,
            title: api.text(value, "/title")?,
            branch: branch(api.text(value, "/fromRef/id")?),
            base: branch(api.text(value, "/toRef/id")?),
        })
    }
}
