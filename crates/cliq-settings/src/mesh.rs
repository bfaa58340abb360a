//! Meshes that the server can join (docs/a2a.md).

use serde_json::Value;

use crate::keys::is_address;
use crate::secret::Secret;

/// A mesh: a service that routes tasks to agents.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mesh {
    /// Name, for `--mesh`.
    pub name: String,
    /// Whether it is joined without `--mesh`.
    pub active: bool,
    /// Base URL, without a trailing slash.
    pub url: String,
    /// The id of this cliq's account.
    pub client_id: String,
    /// The secret of the account.
    pub client_secret: Secret,
}

impl Mesh {
    /// Reads the list. `None` if a part of it is missing or has the wrong type.
    pub(crate) fn read(value: &Value) -> Option<Vec<Self>> {
        let meshes: Vec<Self> = value.as_array()?.iter().map(Self::read_one).collect::<Option<_>>()?;
        let mut names: Vec<&str> = meshes.iter().map(|mesh| mesh.name.as_str()).collect();
        names.sort_unstable();
        names.windows(2).all(|pair| pair[0] != pair[1]).then_some(())?;
        Some(meshes)
    }

    fn read_one(value: &Value) -> Option<Self> {
        const KEYS: [&str; 6] = ["name", "type", "active", "url", "client_id", "client_secret"];
        let object = value.as_object()?;
        object.keys().all(|key| KEYS.contains(&key.as_str())).then_some(())?;
        let text = |key: &str| object.get(key)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let url = text("url")?;
        is_address(&url).then_some(())?;
        let is_savant = object.get("type").is_none_or(|kind| kind == "savant");
        is_savant.then_some(())?;
        Some(Self {
            name: text("name")?,
            active: match object.get("active") {
                None => false,
                Some(value) => value.as_bool()?,
            },
            url: url.trim_end_matches('/').to_owned(),
            client_id: text("client_id")?,
            client_secret: Secret::new(text("client_secret")?),
        })
    }
}
