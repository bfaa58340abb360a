//! Settings `integrations.*`.

use super::group;
use crate::secret::Secret;

group! {
    /// Settings of GitHub.
    Shared struct GithubSettings {
        "integrations.github.token", token: Option<Secret>, "the token for pull requests on GitHub";
        "integrations.github.url", url: Option<String> as Url,
            "the address of a GitHub Enterprise Server of one's own";
    }
}

group! {
    /// Settings of GitLab.
    Shared struct GitlabSettings {
        "integrations.gitlab.token", token: Option<Secret>, "the token for merge requests on GitLab";
        "integrations.gitlab.url", url: Option<String> as Url, "the address of a GitLab of one's own";
    }
}

group! {
    /// Settings of Bitbucket.
    Shared struct BitbucketSettings {
        "integrations.bitbucket.token", token: Option<Secret>,
            "the token for pull requests on Bitbucket, or NAME:APP_PASSWORD";
        "integrations.bitbucket.url", url: Option<String> as Url,
            "the address of a Bitbucket Data Center of one's own";
    }
}
