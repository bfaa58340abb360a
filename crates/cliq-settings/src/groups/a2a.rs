//! Settings `server.a2a.*`.

use super::group;
use crate::layers::Settings;
use crate::mesh::Mesh;
use crate::value::Lookup;

group! {
    /// Settings of the A2A agent of the server.
    Machine struct A2aSettings {
        "server.a2a.agent_type", agent_type: String = "cliq_pipeline",
            "the kind of agent that a mesh routes to: the same for all your cliqs";
        "server.a2a.instance_id", instance_id: Option<String>,
            "the name of this cliq, unique among all; without it, one is made and kept in the cliq home";
        "server.a2a.workspace_root", workspace_root: Option<String>,
            "the directory of workspaces of tasks; without it, that of `server.workspace_root`";
        "server.a2a.advertise", advertise: Vec<String> = "@cliq",
            "which teams callers of A2A may use: `@` (all), `@scope`, `@scope/name`, with `!` before it to leave out";
        "server.a2a.default_team", default_team: Option<String>,
            "the team for messages of A2A that name none; without it, the only one that is offered";
        "server.a2a.versions", versions: Vec<String> = "0.3, 1.0",
            "versions of A2A that the server speaks: `0.3`, `1.0`, or both; the card is of these only";
        "server.a2a.enable_builder", enable_builder: bool = "false",
            "whether callers of A2A may build and improve teams";
        "server.a2a.meshes", meshes: Vec<Mesh>, "meshes that the server can join";
        "server.a2a.public_url", public_url: Option<String> as Url,
            "the address by which callers reach the server, such as that of a reverse proxy; without it, the one it listens on";
        "server.a2a.allow_private_push", allow_private_push: bool = "false",
            "whether push notifications may go to private addresses";
        "server.a2a.push_hosts", push_hosts: Vec<String>,
            "hosts that push notifications may go to although their addresses are private; `*.example.com` for all below";
        "server.a2a.repo_hosts", repo_hosts: Vec<String>,
            "hosts that repositories of tasks may come from, private ones among them; without it, any public host";
    }
}

group! {
    /// Settings of the agent card.
    Machine struct CardSettings {
        "server.a2a.signing_key", signing_key: Option<String>,
            "the file of the private key that signs the agent card: elliptic curve P-256, PKCS#8 in PEM";
    }
}

group! {
    /// Settings of the inputs of tasks.
    Shared struct InputSettings {
        "strict_input_validation", strict_input_validation: bool = "false",
            "whether a task with an input that its team does not have is refused";
    }
}

impl A2aSettings {
    /// Whether a file sets something of the agent.
    #[must_use]
    pub fn is_set(settings: &Settings) -> bool {
        let lookup = Lookup::new(settings, "");
        Self::KEYS.iter().chain(CardSettings::KEYS).any(|key| lookup.is_set(key))
    }
}
