//! Options of the A2A agent: the section `server.a2a` of the settings.

use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_a2a::{Advertise, SigningKey, Version};
use cliq_http::Guard;
use cliq_settings::{A2aSettings, CardSettings, InputSettings, Mesh, Settings};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject;

/// Options of the A2A agent.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct A2aOptions {
    /// The kind of agent that a mesh routes to.
    pub agent_type: String,
    /// The name of this cliq.
    pub instance_id: String,
    /// The directory of workspaces of tasks.
    pub workspace_root: Utf8PathBuf,
    /// Offered teams.
    pub advertise: Advertise,
    /// Team for messages that name none. `None`: the only one that is offered.
    pub default_team: Option<String>,
    /// Versions of the protocol that are spoken. Not empty.
    pub versions: Vec<Version>,
    /// Whether teams can be built.
    pub enable_builder: bool,
    /// Whether unknown inputs are refused.
    pub strict_inputs: bool,
    /// Addresses that push notifications may use.
    pub push_guard: Guard,
    /// Hosts that repositories may come from; empty for any public one.
    pub repo_hosts: Vec<String>,
    /// The address by which callers reach the server; `None` for the one that it listens on.
    pub public_url: Option<String>,
    /// Key that signs the card.
    pub signing_key: Option<Arc<SigningKey>>,
    /// Meshes to join.
    pub meshes: Vec<Mesh>,
}

impl A2aOptions {
    /// The options that the settings give. `meshes` are names to join; without names those that are `active`. `instance_id` names
    /// this cliq where the settings do not.
    ///
    /// # Errors
    /// A setting cannot be used, or there is no mesh of a name: the message says which, and what to write.
    pub fn new(
        settings: &Settings,
        workspace_root: &Utf8Path,
        meshes: &[String],
        instance_id: String,
    ) -> Result<Self, String> {
        // All fields are named, so a new setting does not compile until it has a use here.
        let A2aSettings {
            agent_type,
            instance_id: own_instance_id,
            workspace_root: own_workspace_root,
            advertise,
            default_team,
            versions,
            enable_builder,
            meshes: known,
            public_url,
            allow_private_push,
            push_hosts,
            repo_hosts,
        } = A2aSettings::read(settings);
        let advertise = Advertise::parse(&advertise)
            .map_err(|error| format!("the setting `server.a2a.advertise`: {error}"))?;
        let chosen = if meshes.is_empty() {
            known.into_iter().filter(|mesh| mesh.active).collect()
        } else {
            meshes.iter().map(|name| find_mesh(&known, name)).collect::<Result<_, _>>()?
        };
        let versions = versions.iter().map(|text| version(text)).collect::<Result<Vec<_>, _>>()?;
        if versions.is_empty() {
            return Err("the setting `server.a2a.versions` is empty: write `0.3`, `1.0` or both".to_owned());
        }
        let signing_key = CardSettings::read(settings).signing_key.map(|file| read_key(&file)).transpose()?;
        Ok(Self {
            agent_type,
            instance_id: own_instance_id.unwrap_or(instance_id),
            workspace_root: own_workspace_root.map_or_else(|| workspace_root.to_owned(), Utf8PathBuf::from),
            advertise,
            default_team,
            versions,
            enable_builder,
            strict_inputs: InputSettings::read(settings).strict_input_validation,
            push_guard: Guard { allow_private: allow_private_push, allowed_hosts: push_hosts },
            repo_hosts,
            public_url: public_url.map(|url| url.trim_end_matches('/').to_owned()),
            signing_key: signing_key.map(Arc::new),
            meshes: chosen,
        })
    }
}

fn version(text: &str) -> Result<Version, String> {
    let wrong =
        |_| format!("the setting `server.a2a.versions`: {text:?} is no version; there are `0.3` and `1.0`");
    if text.trim().is_empty() {
        return Err(wrong(()));
    }
    Version::parse(text).map_err(|_| wrong(()))
}

fn find_mesh(known: &[Mesh], name: &str) -> Result<Mesh, String> {
    known.iter().find(|mesh| mesh.name == name).cloned().ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|mesh| mesh.name.as_str()).collect();
        let known = if names.is_empty() { "there are none".to_owned() } else { format!("there are: {}", names.join(", ")) };
        format!(
            "the settings have no mesh `{name}` ({known}): add {{\"name\": \"{name}\", \"type\": \"savant\", \"url\": …, \"client_id\": …, \"client_secret\": …}} to `server.a2a.meshes` in settings.json of the cliq home"
        )
    })
}

fn read_key(file: &str) -> Result<SigningKey, String> {
    let wrong = |error: String| format!("the setting `server.a2a.signing_key`: {file}: {error}");
    let der = PrivatePkcs8KeyDer::from_pem_file(file).map_err(|error| wrong(error.to_string()))?;
    SigningKey::from_pkcs8(der.secret_pkcs8_der()).map_err(|error| wrong(error.to_string()))
}
