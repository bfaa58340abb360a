//! Bitbucket: the cloud (REST API 2.0), and Bitbucket Data Center (REST API 1.0).

use serde_json::{Value, json};

use super::calls::Calls;
use super::pull_request::{CodeHostError, NewPullRequest, PullRequest};
use super::remote::Remote;

/// Bitbucket in the cloud.
pub(crate) mod cloud {
    use super::{Calls, CodeHostError, NewPullRequest, PullRequest, Remote, Value, json};

    pub(crate) fn find(
        calls: &Calls,
        remote: &Remote,
        branch: &str,
    ) -> Result<Option<PullRequest>, CodeHostError> {
        let (owner, name) = remote.owner_and_name();
        let text = branch.replace('\\', "\\\\").replace('"', "\\\"");
        let query = format!("source.branch.name=\"{text}\" AND state=\"OPEN\"");
        let answer =
            calls.get(&calls.at(&["repositories", owner, name, "pullrequests"], &[("q", &query)]))?;
        let own = |pull: &&Value| pull.pointer("/source/branch/name").and_then(Value::as_str) == Some(branch);
        calls.list(&answer, "/values")?.iter().find(own).map(|pull| read(calls, pull)).transpose()
    }

    pub(crate) fn create(
        calls: &Calls,
        remote: &Remote,
        new: &NewPullRequest,
    ) -> Result<PullRequest, CodeHostError> {
        let (owner, name) = remote.owner_and_name();
        let body = json!({"title": new.title, "description": new.body, "draft": new.draft,
            "source": {"branch": {"name": new.branch}}, "destination": {"branch": {"name": new.base}}});
        read(calls, &calls.post(&calls.at(&["repositories", owner, name, "pullrequests"], &[]), &body)?)
    }

    fn read(calls: &Calls, value: &Value) -> Result<PullRequest, CodeHostError> {
        Ok(PullRequest {
            number: calls.number(value, "/id")?,
            url: calls.text(value, "/links/html/href")?,
            title: calls.text(value, "/title")?,
            branch: calls.text(value, "/source/branch/name")?,
            base: calls.text(value, "/destination/branch/name")?,
        })
    }
}

/// Bitbucket Data Center, on a host of one's own.
pub(crate) mod server {
    use super::{Calls, CodeHostError, NewPullRequest, PullRequest, Remote, Value, json};

    /// Project and repository. Over HTTP their path begins with `scm/`.
    fn names(remote: &Remote) -> (&str, &str) {
        let (project, name) = remote.owner_and_name();
        (project.strip_prefix("scm/").unwrap_or(project), name)
    }

    pub(crate) fn find(
        calls: &Calls,
        remote: &Remote,
        branch: &str,
    ) -> Result<Option<PullRequest>, CodeHostError> {
        let (project, name) = names(remote);
        let from = format!("refs/heads/{branch}");
        let query = [("state", "OPEN"), ("direction", "OUTGOING"), ("at", &from)];
        let answer = calls.get(&calls.at(&["projects", project, "repos", name, "pull-requests"], &query))?;
        let own = |pull: &&Value| pull.pointer("/fromRef/id").and_then(Value::as_str) == Some(&from);
        calls.list(&answer, "/values")?.iter().find(own).map(|pull| read(calls, pull)).transpose()
    }

    pub(crate) fn create(
        calls: &Calls,
        remote: &Remote,
        new: &NewPullRequest,
    ) -> Result<PullRequest, CodeHostError> {
        let (project, name) = names(remote);
        let repository = json!({"slug": name, "project": {"key": project}});
        let body = json!({"title": new.title, "description": new.body, "draft": new.draft,
            "fromRef": {"id": format!("refs/heads/{}", new.branch), "repository": repository},
            "toRef": {"id": format!("refs/heads/{}", new.base), "repository": repository}});
        read(
            calls,
            &calls.post(&calls.at(&["projects", project, "repos", name, "pull-requests"], &[]), &body)?,
        )
    }

    fn read(calls: &Calls, value: &Value) -> Result<PullRequest, CodeHostError> {
        let branch = |text: String| text.strip_prefix("refs/heads/").map_or(text.clone(), str::to_owned);
        Ok(PullRequest {
            number: calls.number(value, "/id")?,
            url: calls.text(value, "/links/self/0/href")?,
            title: calls.text(value, "/title")?,
            branch: branch(calls.text(value, "/fromRef/id")?),
            base: branch(calls.text(value, "/toRef/id")?),
        })
    }
}
