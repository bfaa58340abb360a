//! Settings `agents.*` of connectors.

use super::{choice, group};
use crate::layers::Settings;
use crate::secret::Secret;

group! {
    /// Keys of S3.
    Shared keys S3 {
        "agents.s3.access_key_id", Option<String>, "the access key's id for S3";
        "agents.s3.secret_access_key", Option<Secret>, "the secret access key for S3";
        "agents.s3.session_token", Option<Secret>, "the token of temporary credentials for S3";
        "agents.s3.region", Option<String>, "the region of S3; us-east-1 without it";
    }
}

group! {
    /// Settings of Google Drive.
    Shared struct GdriveSettings {
        "agents.gdrive.credentials_file", credentials_file: Option<String>,
            "the key file of a Google service account, or of an OAuth client";
        "agents.gdrive.auth_mode", auth_mode: GdriveAccount = "service_account",
            "whose account is used: that of the key file, or that of a person after `cliq auth gdrive`";
    }
}

group! {
    /// Keys of the other services.
    Shared keys SERVICES {
        "agents.sharepoint.tenant_id", Option<String>, "the tenant of Microsoft 365";
        "agents.sharepoint.client_id", Option<String>, "the id of the app that reads and writes SharePoint";
        "agents.sharepoint.client_secret", Option<Secret>, "the secret of that app";
        "agents.sharepoint.login_url", Option<String> as Url,
            "where tokens come from; https://login.microsoftonline.com without it";
        "agents.jira.email", Option<String>, "the address of the Jira account";
        "agents.jira.api_token", Option<Secret>, "an API token of the Jira account";
        "agents.confluence.email", Option<String>, "the address of the Confluence account";
        "agents.confluence.api_token", Option<Secret>, "an API token of the Confluence account";
        "agents.zendesk.subdomain", Option<String>, "the part of the Zendesk address before .zendesk.com";
        "agents.zendesk.email", Option<String>, "the address of the Zendesk agent";
        "agents.zendesk.api_token", Option<Secret>, "an API token of Zendesk";
        "agents.hubspot.access_token", Option<Secret>, "the access token of a private app of HubSpot";
        "agents.datadog.app_key", Option<Secret>,
            "an application key of Datadog; its API key is `agents.datadog.api_key`";
        "agents.datadog.site", Option<String>,
            "the site of Datadog, such as datadoghq.eu; datadoghq.com without it";
    }
}

choice! {
    /// Account that is used for Google Drive.
    enum GdriveAccount {
        /// Account of the key file.
        ServiceAccount = "service_account",
        /// Account of a person who signed in.
        OAuth = "oauth",
    }
}

impl Settings {
    /// Returns the text of a connector's setting. Connectors list their settings by key ([`cliq_workflow::CONNECTORS`]).
    #[must_use]
    pub fn connector_text(&self, connector: &str, key: &str) -> Option<String> {
        self.entry(&format!("agents.{connector}.{key}")).ok()?.value?.as_str().map(str::to_owned)
    }
}
