//! Settings `hug.*`.

use cliq_review::Directory;

use super::group;
use crate::secret::Secret;

group! {
    /// Settings of reviews by people.
    Shared struct ReviewSettings {
        "hug.reviewers", reviewers: Directory,
            "people who review, and how each is reached: a list of {name, channels}, and of groups {name, members, policy}";
        "hug.server_url", server_url: Option<String> as Url,
            "the cliq server that has the reviews of human gates; without it, the local server or the run itself";
        "hug.token", token: Option<Secret>, "a token of that server, with the scope `run`";
        "hug.public_url", public_url: Option<String> as Url,
            "the address by which reviewers reach the local server, such as that of a reverse proxy; without it, the one it listens on";
    }
}
