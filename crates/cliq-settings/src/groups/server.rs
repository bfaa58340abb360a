//! Settings `database.*` and `server.*`.

use std::time::Duration;

use cliq_protocol::Profile;

use super::{choice, group};
use crate::secret::Secret;

group! {
    /// Settings of the database.
    Machine struct DatabaseSettings {
        "database.url", url: Option<Secret>,
            "the PostgreSQL database of signals, plans and runs, postgresql://USER:PASSWORD@HOST:PORT/DATABASE; without it, the file cliq.db in the cliq home. Set it for all projects (-g)";
    }
}

group! {
    /// Settings of the server.
    Machine struct ServerSettings {
        "server.port", port: usize = "4100", "the port that `cliq server` listens on";
        "server.host", host: String = "127.0.0.1", "the address that `cliq server` listens on";
        "server.max_runs", max_runs: usize = "4",
            "how many runs of the server may work at the same time; more wait in a queue, first in, first out";
        "server.sandbox", sandbox: Profile = "workspace",
            "the sandbox around runs that callers of A2A and webhooks start, whose text comes from outside";
        "server.recovery", recovery: RecoveryChoice = "fail",
            "what the server does with a run whose orchestrator died";
        "server.retention", retention: Duration = "7d",
            "how long the server keeps runs that ended, with their workspaces and logs";
        "server.workspace_root", workspace_root: Option<String>,
            "the directory of workspaces that the server makes for runs; without it, `workspaces` in the cliq home";
        "server.allowed_hosts", allowed_hosts: Vec<String>,
            "names by which clients may call the server, beside localhost and addresses: that of a reverse proxy, say";
        "server.rate_limit", rate_limit: usize = "500",
            "how many requests per second the server takes from one address, after a burst of twice as many";
        "server.max_connections", max_connections: usize = "2000",
            "how many connections the server has open at the same time";
        "server.workflow_streaming", workflow_streaming: bool = "false",
            "whether callers of A2A get what agents print while they work";
        "server.public_url", public_url: Option<String> as Url,
            "the address by which browsers and senders of webhooks reach the server, such as that of a reverse proxy; without it, the one it listens on";
    }
}

group! {
    /// Settings of the provider by which people sign in.
    Machine struct OidcSettings {
        "server.oidc.issuer", issuer: Option<String> as Url,
            "the OpenID Connect provider by which people sign in; needs `server.public_url` and groups";
        "server.oidc.client_id", client_id: Option<String>, "the id of this server at the provider";
        "server.oidc.client_secret", client_secret: Option<Secret>,
            "the secret of this server at the provider, if it has one";
        "server.oidc.label", label: String = "single sign-on", "the name of the provider on the sign-in page";
        "server.oidc.scopes", scopes: Vec<String>,
            "scopes to ask the provider for; profile, email, groups without it";
        "server.oidc.groups_claim", groups_claim: String = "groups", "the claim with the groups of a person";
        "server.oidc.admin_groups", admin_groups: Vec<String>,
            "groups whose people get the scope `admin`; `*` for everybody";
        "server.oidc.edit_groups", edit_groups: Vec<String>,
            "groups whose people get the scope `edit`; `*` for everybody";
        "server.oidc.run_groups", run_groups: Vec<String>,
            "groups whose people get the scope `run`; `*` for everybody";
        "server.oidc.read_groups", read_groups: Vec<String>,
            "groups whose people get the scope `read`; `*` for everybody";
        "server.oidc.session", session: Duration = "12h",
            "how long people who signed in by the provider stay signed in";
    }
}

group! {
    /// Settings of several servers on one database.
    Machine struct ReplicaSettings {
        "server.shared_workspaces", shared_workspaces: bool = "false",
            "whether all servers on one database see the same workspaces at the same paths: then the runs of one that died go on with another";
        "server.lease", lease: Duration = "15s",
            "how long one of several servers on one database may be silent before the others take over what it had";
    }
}

choice! {
    /// Recovery of a run whose orchestrator died.
    enum RecoveryChoice {
        /// The run fails.
        Fail = "fail",
        /// The run is resumed.
        Resume = "resume",
    }
}
