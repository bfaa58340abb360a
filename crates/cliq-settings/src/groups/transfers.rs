//! Settings `push.*` and `pull.*`.

use super::group;

group! {
    /// Settings of publishing.
    Shared struct PushSettings {
        "push.deny", deny: Vec<String>,
            "files that are never published: globs, relative to the workspace; settings, .git and .env never are";
        "push.confirm", confirm: bool = "true",
            "whether a run that a person watches asks before it publishes";
    }
}

group! {
    /// Settings of fetching.
    Shared struct PullSettings {
        "pull.parallel", parallel: usize = "8", "how many sources of a phase are fetched at the same time";
        "pull.max_bytes", max_bytes: usize = "5368709120", "the most bytes of one file that is fetched";
        "pull.allow_hosts", allow_hosts: Vec<String>,
            "hosts that callers of the server may name in sources although their addresses are private; `*.example.com` for all below";
    }
}
