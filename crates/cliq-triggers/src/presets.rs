//! Presets for events of GitHub: condition, title, requirement and group.

use crate::signature::Scheme;

/// Preset of a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preset {
    /// An issue was opened, reopened or labelled.
    GithubIssue,
    /// Somebody commented on an issue or a pull request.
    GithubComment,
    /// A pull request was opened, reopened or updated, or is ready for review.
    GithubPullRequest,
}

impl Preset {
    /// Words of a file.
    pub const WORDS: [&'static str; 3] = ["github-issue", "github-comment", "github-pull-request"];

    /// Returns the preset of a word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "github-issue" => Some(Self::GithubIssue),
            "github-comment" => Some(Self::GithubComment),
            "github-pull-request" => Some(Self::GithubPullRequest),
            _ => None,
        }
    }

    /// Word in a file.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::GithubIssue => "github-issue",
            Self::GithubComment => "github-comment",
            Self::GithubPullRequest => "github-pull-request",
        }
    }

    /// Signature of the sender.
    #[must_use]
    pub fn scheme(self) -> Scheme {
        Scheme::Github
    }

    /// Value of `X-GitHub-Event`.
    #[must_use]
    pub fn event(self) -> &'static str {
        match self {
            Self::GithubIssue => "issues",
            Self::GithubComment => "issue_comment",
            Self::GithubPullRequest => "pull_request",
        }
    }

    /// Condition.
    #[must_use]
    pub fn when(self) -> &'static str {
        match self {
            Self::GithubIssue => {
                r#"headers["x-github-event"] == "issues" && body.action in ["opened", "reopened", "labeled"]"#
            }
            // Comments of programs would answer each other.
            Self::GithubComment => {
                r#"headers["x-github-event"] == "issue_comment" && body.action == "created" && body.sender.type != "Bot""#
            }
            Self::GithubPullRequest => {
                r#"headers["x-github-event"] == "pull_request" && body.action in ["opened", "reopened", "synchronize", "ready_for_review"]"#
            }
        }
    }

    /// Title of the run.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::GithubIssue => "$(body.issue.title) (#$(body.issue.number))",
            Self::GithubComment => "Comment on $(body.issue.title) (#$(body.issue.number))",
            Self::GithubPullRequest => "$(body.pull_request.title) (#$(body.pull_request.number))",
        }
    }

    /// Requirement.
    #[must_use]
    pub fn requirement(self) -> &'static str {
        match self {
            Self::GithubIssue => {
                "Do what issue #$(body.issue.number) of $(body.repository.full_name) asks for.\n\nIts title: $(body.issue.title)\n\nIts text: $(body.issue.body)"
            }
            Self::GithubComment => {
                "Answer a comment on issue or pull request #$(body.issue.number) of $(body.repository.full_name).\n\nThe title: $(body.issue.title)\n\nThe comment: $(body.comment.body)\n\nThe text of the issue: $(body.issue.body)"
            }
            Self::GithubPullRequest => {
                "Review pull request #$(body.pull_request.number) of $(body.repository.full_name), from $(body.pull_request.head.ref) into $(body.pull_request.base.ref).\n\nIts title: $(body.pull_request.title)\n\nIts text: $(body.pull_request.body)"
            }
        }
    }

    /// Concurrency group.
    #[must_use]
    pub fn group(self) -> &'static str {
        match self {
            Self::GithubIssue | Self::GithubComment => "$(body.repository.full_name)#$(body.issue.number)",
            Self::GithubPullRequest => "$(body.repository.full_name)#$(body.pull_request.number)",
        }
    }
}
