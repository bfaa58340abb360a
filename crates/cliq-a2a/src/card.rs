//! The agent card: one document that readers of 0.3 and of 1.0 understand.

use serde_json::{Map, Value, json};

use crate::signature::SigningKey;
use crate::skill::Skill;
use crate::version::Version;

/// Provider of the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provider {
    /// The organisation.
    pub organization: String,
    /// URL of the provider's site.
    pub url: String,
}

/// The description that the agent publishes of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentCard {
    /// Name of the agent.
    pub name: String,
    /// Description of the agent.
    pub description: String,
    /// Version of the agent.
    pub version: String,
    /// The address of the server, without a slash at the end.
    pub base_url: String,
    /// Provider of the agent.
    pub provider: Provider,
    /// Skills of the agent.
    pub skills: Vec<Skill>,
    /// Versions of the protocol that the agent speaks. With one version, the card has the fields of that version only.
    pub versions: Vec<Version>,
}

impl AgentCard {
    /// The path of the JSON-RPC binding.
    pub const JSON_RPC_PATH: &'static str = "/a2a/jsonrpc";
    /// The path of the HTTP+JSON binding.
    pub const HTTP_JSON_PATH: &'static str = "/a2a/rest";
    /// The path of the card.
    pub const PATH: &'static str = "/.well-known/agent-card.json";
    /// The path of the key that the card is signed with, as a JSON Web Key Set.
    pub const KEYS_PATH: &'static str = "/.well-known/jwks.json";

    /// The card, signed where there is a key.
    #[must_use]
    pub fn to_json(&self, key: Option<&SigningKey>) -> Value {
        let mut card = self.shared();
        let speaks = |version| self.versions.contains(&version);
        let v0_3 = speaks(Version::V0_3).then(|| self.of_0_3());
        let v1_0 = speaks(Version::V1_0).then(|| self.of_1_0());
        v0_3.iter().chain(&v1_0).for_each(|own| merge(&mut card, own));
        let mut card = Value::Object(card);
        if let Some(key) = key {
            // A verifier computes the signed text from the fields that it knows: those of its version, or all.
            let view = |own: Map<String, Value>| {
                let mut view = self.shared();
                merge(&mut view, &own);
                Value::Object(view)
            };
            let mut views: Vec<Value> = [v1_0, v0_3].into_iter().flatten().map(view).collect();
            if views.len() > 1 {
                views.push(card.clone());
            }
            let address = format!("{}{}", self.base_url, Self::KEYS_PATH);
            let signatures = views.iter().map(|view| key.sign(view, &address));
            let signatures: Vec<Value> = signatures.collect();
            card["signatures"] = signatures.into();
        }
        card
    }

    /// The fields that both versions have in the same form. Nothing is empty: an empty field is left out of what is signed, by some.
    fn shared(&self) -> Map<String, Value> {
        let skills: Vec<Value> = self.skills.iter().map(Skill::to_json).collect();
        let value = json!({
            "name": self.name, "description": self.description, "version": self.version,
            "provider": {"organization": self.provider.organization, "url": self.provider.url},
            "capabilities": {"streaming": true, "pushNotifications": true},
            "defaultInputModes": ["text/plain", "application/json"],
            "defaultOutputModes": ["application/json", "text/plain"],
            "skills": skills
        });
        object(value)
    }

    fn of_0_3(&self) -> Map<String, Value> {
        let url = format!("{}{}", self.base_url, Self::JSON_RPC_PATH);
        object(json!({
            "protocolVersion": "0.3.0", "url": url, "preferredTransport": "JSONRPC",
            "additionalInterfaces": [{"url": url, "transport": "JSONRPC"}],
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
            "security": [{"bearer": ["run"]}],
            "supportsAuthenticatedExtendedCard": true
        }))
    }

    fn of_1_0(&self) -> Map<String, Value> {
        let interface = |path: &str, binding: &str, version: &str| json!({"url": format!("{}{path}", self.base_url), "protocolBinding": binding, "protocolVersion": version});
        let mut interfaces = vec![
            interface(Self::JSON_RPC_PATH, "JSONRPC", "1.0"),
            interface(Self::HTTP_JSON_PATH, "HTTP+JSON", "1.0"),
        ];
        if self.versions.contains(&Version::V0_3) {
            interfaces.push(interface(Self::JSON_RPC_PATH, "JSONRPC", "0.3"));
        }
        object(json!({
            "supportedInterfaces": interfaces,
            "capabilities": {"streaming": true, "pushNotifications": true, "extendedAgentCard": true},
            "securitySchemes": {"bearer": {"httpAuthSecurityScheme": {"scheme": "bearer"}}},
            "securityRequirements": [{"schemes": {"bearer": {"list": ["run"]}}}]
        }))
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// Adds the fields of `from`; objects that both have are merged.
fn merge(into: &mut Map<String, Value>, from: &Map<String, Value>) {
    for (key, value) in from {
        match (into.get_mut(key), value) {
            (Some(Value::Object(old)), Value::Object(new)) => merge(old, new),
            _ => drop(into.insert(key.clone(), value.clone())),
        }
    }
}
