//! Options of a provider (settings `server.oidc.*`).

use std::time::Duration;

use url::Url;

use super::groups::GroupScopes;

/// Options of a provider.
#[derive(Clone)]
#[non_exhaustive]
pub struct ProviderOptions {
    /// Address of the provider, as in its tokens.
    pub issuer: String,
    /// Id of this server at the provider.
    pub client_id: String,
    /// Secret of this server at the provider. `None` for a public client: PKCE protects the flow.
    pub client_secret: Option<String>,
    /// Scopes to ask for beside `openid`.
    pub scopes: Vec<String>,
    /// Claim with the groups of a person.
    pub groups_claim: String,
    /// Groups that give scopes.
    pub groups: GroupScopes,
    /// Name of the provider, for the button of the sign-in page.
    pub label: String,
    /// Duration of a session.
    pub session: Duration,
    /// Address by which browsers reach this server.
    pub public_url: String,
}

/// Secrets are not shown.
impl std::fmt::Debug for ProviderOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProviderOptions")
            .field("issuer", &self.issuer)
            .field("client_id", &self.client_id)
            .finish_non_exhaustive()
    }
}

/// Reason why options cannot be used. Names the setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// An address is not usable.
    #[error(
        "the setting `{setting}` is not an address that begins with https:// (http:// is for this machine only)"
    )]
    Address {
        /// Key of the setting.
        setting: &'static str,
    },
    /// The address of this server is not known.
    #[error(
        "sign-in by a provider needs the setting `server.public_url`, the address by which browsers reach this server"
    )]
    NoPublicUrl,
    /// The id of this server is not set.
    #[error("sign-in by a provider needs the setting `server.oidc.client_id`")]
    NoClientId,
    /// No group gives a scope.
    #[error(
        "no group may sign in: set `server.oidc.admin_groups`, `server.oidc.edit_groups`, `server.oidc.run_groups` or `server.oidc.read_groups` (`*` for everybody)"
    )]
    NoGroups,
}

/// Registration of the server with a provider.
#[derive(Debug, Clone, Copy)]
pub struct OidcClient<'a> {
    /// Address of the provider.
    pub issuer: &'a str,
    /// Id of the server at the provider.
    pub client_id: &'a str,
    /// Public address of the server.
    pub public_url: &'a str,
}

impl ProviderOptions {
    /// Creates options with the defaults.
    ///
    /// # Errors
    /// Returns an error if an address is missing or not protected, or no group may sign in.
    pub fn new(client: OidcClient<'_>, groups: GroupScopes) -> Result<Self, OptionsError> {
        let OidcClient { issuer, client_id, public_url } = client;
        if public_url.is_empty() {
            return Err(OptionsError::NoPublicUrl);
        }
        if client_id.is_empty() {
            return Err(OptionsError::NoClientId);
        }
        for (setting, text) in [("server.oidc.issuer", issuer), ("server.public_url", public_url)] {
            if !is_protected(text) {
                return Err(OptionsError::Address { setting });
            }
        }
        if groups.is_empty() {
            return Err(OptionsError::NoGroups);
        }
        Ok(Self {
            issuer: issuer.to_owned(),
            client_id: client_id.to_owned(),
            client_secret: None,
            scopes: ["profile", "email", "groups"].map(str::to_owned).to_vec(),
            groups_claim: "groups".to_owned(),
            groups,
            label: "single sign-on".to_owned(),
            session: Duration::from_secs(12 * 3600),
            public_url: public_url.trim_end_matches('/').to_owned(),
        })
    }

    /// Returns the address to which the provider sends browsers back.
    #[must_use]
    pub fn redirect_url(&self) -> String {
        format!("{}/signin/oidc/callback", self.public_url)
    }
}

/// Whether an address is protected by TLS, or is on this machine.
fn is_protected(text: &str) -> bool {
    let Ok(url) = Url::parse(text) else { return false };
    let is_local = matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
    url.username().is_empty() && (url.scheme() == "https" || (url.scheme() == "http" && is_local))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unprotected_and_incomplete_options_are_refused() {
        let groups = || GroupScopes { read: vec!["*".to_owned()], ..GroupScopes::default() };
        let new = |issuer: &str, client_id: &str, public_url: &str| {
            ProviderOptions::new(OidcClient { issuer, client_id, public_url }, groups()).err()
        };
        assert_eq!(new("https://id.example", "cliq", "https://cliq.example/"), None);
        assert_eq!(new("http://127.0.0.1:9000", "cliq", "http://localhost:4100"), None);
        let address = |setting| Some(OptionsError::Address { setting });
        assert_eq!(new("http://id.example", "cliq", "https://cliq.example"), address("server.oidc.issuer"));
        assert_eq!(new("https://id.example", "cliq", "http://cliq.example"), address("server.public_url"));
        assert_eq!(new("https://u@id.example", "cliq", "https://c.example"), address("server.oidc.issuer"));
        assert_eq!(new("https://id.example", "", "https://c.example"), Some(OptionsError::NoClientId));
        assert_eq!(new("https://id.example", "cliq", ""), Some(OptionsError::NoPublicUrl));
        let without_groups = ProviderOptions::new(
            OidcClient { issuer: "https://i.example", client_id: "c", public_url: "https://c.example" },
            GroupScopes::default(),
        );
        assert_eq!(without_groups.err(), Some(OptionsError::NoGroups));
    }
}
