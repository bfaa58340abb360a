//! Settings `hug.*`.

use std::time::Duration;

use cliq_review::Directory;

use super::group;
use crate::secret::Secret;

group! {
    /// Settings of reviews by people.
    Shared struct ReviewSettings {
        "hug.reviewers", reviewers: Directory,
            "people who review, and how each is reached: a list of {name, channels}, and of groups {name, members, policy}";
        "hug.ask_reviewer", ask_reviewer: String = "operator",
            "the person or group who answers agents that ask for permission or have questions";
        "hug.ask_timeout", ask_timeout: Duration = "24h", "the time after which such a request counts as refused";
        "hug.server_url", server_url: Option<String> as Url,
            "the cliq server that has the reviews of human gates; without it, the local server or the run itself";
        "hug.token", token: Option<Secret>, "a token of that server, with the scope `run`";
        "hug.public_url", public_url: Option<String> as Url,
            "the address by which reviewers reach the local server, such as that of a reverse proxy; without it, the one it listens on";
    }
}
