//! Capabilities of each connector (docs/connectors.md): its actions, the inputs and outputs of their entries, and its settings.
//! Validation,
//! `cliq agent show` and the documents read this one table.

/// An agent that fetches from a service and publishes to it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Connector {
    /// Name, as in `agent:`.
    pub name: &'static str,
    /// Purpose in a sentence.
    pub about: &'static str,
    /// Actions. Those without a name follow from `sources` and `target_entries`.
    pub actions: &'static [Action],
    /// Settings.
    pub settings: &'static [Setting],
}

/// Direction of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Fetch: the entries are `sources`.
    Fetch,
    /// Publish: the entries are `target_entries`.
    Publish,
}

/// An action of a connector.
#[derive(Debug)]
#[non_exhaustive]
pub struct Action {
    /// Name, as in `action:`. Empty for connectors without actions.
    pub name: &'static str,
    /// Direction.
    pub direction: Direction,
    /// Description in a sentence.
    pub about: &'static str,
    /// Meaning of `ref`. Empty if the action takes none.
    pub reference: &'static str,
    /// Fields that an entry must have, beside `name`.
    pub required: &'static [&'static str],
    /// Fields that an entry may have.
    pub optional: &'static [&'static str],
    /// Fields of an entry in the handoff's `data`, besides `ref`, `file`, `size`, `content_type` and `url`.
    pub gives: &'static [(&'static str, &'static str)],
}

/// A setting of a connector.
#[derive(Debug)]
#[non_exhaustive]
pub struct Setting {
    /// Key below `agents.<name>.`.
    pub key: &'static str,
    /// The environment variables that come before it, the first one first.
    pub variables: &'static [&'static str],
    /// Whether the connector can do nothing without it.
    pub required: bool,
    /// Whether it is never shown.
    pub secret: bool,
    /// Description.
    pub about: &'static str,
}

const fn fetch(
    name: &'static str,
    reference: &'static str,
    required: &'static [&'static str],
    about: &'static str,
    gives: &'static [(&'static str, &'static str)],
) -> Action {
    Action { name, direction: Direction::Fetch, about, reference, required, optional: &[], gives }
}

const fn publish(
    name: &'static str,
    reference: &'static str,
    required: &'static [&'static str],
    about: &'static str,
    gives: &'static [(&'static str, &'static str)],
) -> Action {
    Action { name, direction: Direction::Publish, about, reference, required, optional: &[], gives }
}

impl Action {
    const fn may(mut self, optional: &'static [&'static str]) -> Self {
        self.optional = optional;
        self
    }
}

const fn needs(
    key: &'static str,
    variables: &'static [&'static str],
    secret: bool,
    about: &'static str,
) -> Setting {
    Setting { key, variables, required: true, secret, about }
}

const fn takes(
    key: &'static str,
    variables: &'static [&'static str],
    secret: bool,
    about: &'static str,
) -> Setting {
    Setting { key, variables, required: false, secret, about }
}

/// All connectors.
pub static CONNECTORS: &[Connector] = &[
    Connector {
        name: "s3",
        about: "Objects of Amazon S3, or of any server that speaks its protocol.",
        actions: &[
            fetch(
                "",
                "`s3://BUCKET/KEY` or `BUCKET/KEY`; with `/` at the end, all objects below it",
                &["ref"],
                "Fetches an object, or all objects below a prefix.",
                &[("etag", "the ETag"), ("last_modified", "when it was written"), ("files", "for a prefix: each object, `{ref, file, size, etag}`")],
            ),
            publish(
                "",
                "`s3://BUCKET/KEY` or `BUCKET/KEY`; with `/` at the end, the file's name is added",
                &["ref", "file"],
                "Writes a file as an object. Large files go in parts.",
                &[("etag", "the ETag"), ("bucket", "the bucket"), ("key", "the key")],
            )
            .may(&["mode"]),
        ],
        settings: &[
            needs("access_key_id", &["AWS_ACCESS_KEY_ID"], false, "the access key's id"),
            needs("secret_access_key", &["AWS_SECRET_ACCESS_KEY"], true, "the secret access key"),
            takes("session_token", &["AWS_SESSION_TOKEN"], true, "the token of temporary credentials"),
            takes("region", &["AWS_REGION", "AWS_DEFAULT_REGION"], false, "the region; us-east-1 without it"),
            takes(
                "base_url",
                &["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"],
                false,
                "the address of another server that speaks S3; its buckets are parts of the path",
            ),
        ],
    },
    Connector {
        name: "gdrive",
        about: "Files, folders, documents and sheets of Google Drive.",
        actions: &[
            fetch(
                "",
                "a file's id; `folder/ID` for a list of what is in a folder, as JSON",
                &["ref"],
                "Fetches a file. Documents come as plain text, sheets as CSV, drawings and slides as PDF.",
                &[("title", "its name in Drive"), ("mime_type", "its type in Drive"), ("modified", "when it was changed"), ("count", "for a folder: how many files")],
            ),
            publish(
                "",
                "the id of the folder that it goes to",
                &["ref", "file"],
                "Uploads a file to a folder.",
                &[("id", "the id of the file"), ("title", "its name in Drive")],
            )
            .may(&["mode", "title"]),
        ],
        settings: GOOGLE,
    },
    Connector {
        name: "curl",
        about: "Any HTTP address.",
        actions: &[
            fetch(
                "",
                "",
                &["url"],
                "Sends a request and keeps the answer; JSON is indented. `method` is GET, or POST where there is a `body`.",
                &[("status", "the status of the answer")],
            )
            .may(&["method", "headers", "body"]),
            publish(
                "",
                "",
                &["url", "file"],
                "Sends a file. `method` is POST by default.",
                &[("status", "the status of the answer"), ("body", "the answer, where it is JSON of at most 64 KiB")],
            )
            .may(&["method", "headers"]),
        ],
        settings: &[],
    },
    Connector {
        name: "jira",
        about: "Issues of Jira Cloud (REST API, version 3).",
        actions: &[
            fetch("get_issue", "the issue's key", &["ref"], "Fetches an issue, as JSON.", ISSUE),
            fetch(
                "get_comments",
                "the issue's key",
                &["ref"],
                "Fetches all comments of an issue, as JSON.",
                &[("count", "how many comments"), ("key", "the issue's key")],
            ),
            fetch(
                "search",
                "a query in JQL",
                &["ref"],
                "Fetches the issues that a query finds, as JSON.",
                &[("count", "how many issues"), ("more", "whether there are more than were fetched"), ("issues", "each issue, `{key, url, status, summary}`")],
            )
            .may(&["limit"]),
            publish(
                "add_comment",
                "the issue's key",
                &["ref", "file"],
                "Adds a file's text as a comment. A file in JSON that is an Atlassian document is taken as it is.",
                &[("id", "the comment's id"), ("key", "the issue's key")],
            ),
            publish(
                "transition",
                "the issue's key",
                &["ref", "file"],
                "Moves an issue. The file has the id or the name of the transition, or the name of the status that it leads to.",
                &[("key", "the issue's key"), ("status", "the status that it has now"), ("transition", "the transition's name")],
            ),
        ],
        settings: &[
            needs("base_url", &["JIRA_BASE_URL"], false, "the site, such as https://acme.atlassian.net"),
            needs("email", &["JIRA_EMAIL"], false, "the address of the account"),
            needs("api_token", &["JIRA_API_TOKEN"], true, "an API token of that account"),
        ],
    },
    Connector {
        name: "confluence",
        about: "Pages of Confluence Cloud (REST API, version 2).",
        actions: &[
            fetch("get_page", "the page's id", &["ref"], "Fetches a page as markdown.", PAGE),
            fetch(
                "search",
                "a query in CQL",
                &["ref"],
                "Fetches what a query finds, as JSON.",
                &[("count", "how many results"), ("more", "whether there are more than were fetched"), ("pages", "each page, `{id, title, url}`")],
            )
            .may(&["limit"]),
            publish(
                "create_page",
                "the key of the space",
                &["ref", "title", "file"],
                "Makes a page of a file in HTML or markdown.",
                PAGE,
            )
            .may(&["parent"]),
            publish(
                "update_page",
                "the page's id",
                &["ref", "title", "file"],
                "Gives a page a new text and title; its version goes up by one.",
                PAGE,
            ),
        ],
        settings: &[
            needs("base_url", &["CONFLUENCE_BASE_URL"], false, "the site, such as https://acme.atlassian.net"),
            needs("email", &["CONFLUENCE_EMAIL"], false, "the address of the account"),
            needs("api_token", &["CONFLUENCE_API_TOKEN"], true, "an API token of that account"),
        ],
    },
    Connector {
        name: "zendesk",
        about: "Tickets of Zendesk Support (REST API, version 2).",
        actions: &[
            fetch("get_ticket", "the ticket's id", &["ref"], "Fetches a ticket, as JSON.", TICKET),
            fetch(
                "get_comments",
                "the ticket's id",
                &["ref"],
                "Fetches all comments of a ticket, as JSON.",
                &[("count", "how many comments"), ("id", "the ticket's id")],
            ),
            fetch(
                "search",
                "a query, such as `type:ticket status:open`",
                &["ref"],
                "Fetches what a query finds, as JSON.",
                &[("count", "how many results"), ("more", "whether there are more than were fetched"), ("tickets", "each ticket, `{id, url, status, subject}`")],
            )
            .may(&["limit"]),
            publish(
                "add_comment",
                "the ticket's id",
                &["ref", "file"],
                "Adds a file's text as an internal note, or with `visibility: public` as a reply.",
                &[("id", "the ticket's id")],
            )
            .may(&["visibility"]),
            publish(
                "update_status",
                "the ticket's id",
                &["ref", "file"],
                "Gives a ticket the status that the file has: new, open, pending, hold, solved or closed.",
                TICKET,
            ),
        ],
        settings: &[
            needs("subdomain", &["ZENDESK_SUBDOMAIN"], false, "the part of the address before .zendesk.com"),
            needs("email", &["ZENDESK_EMAIL"], false, "the address of the agent"),
            needs("api_token", &["ZENDESK_API_TOKEN"], true, "an API token"),
            takes("base_url", &["ZENDESK_BASE_URL"], false, "the site, where it is not SUBDOMAIN.zendesk.com"),
        ],
    },
    Connector {
        name: "hubspot",
        about: "Contacts, companies, deals and notes of HubSpot (CRM API, version 3).",
        actions: &[
            fetch("get_contact", "the contact's id or email address", &["ref"], "Fetches a contact, as JSON.", RECORD)
                .may(&["properties"]),
            fetch("get_company", "the company's id", &["ref"], "Fetches a company, as JSON.", RECORD).may(&["properties"]),
            fetch("get_deal", "the deal's id", &["ref"], "Fetches a deal, as JSON.", RECORD).may(&["properties"]),
            fetch(
                "search",
                "the words to look for",
                &["ref"],
                "Fetches what has these words, as JSON. `object` is contacts (the default), companies, deals or notes.",
                &[("count", "how many records"), ("more", "whether there are more than were fetched"), ("records", "each record, `{id, url, name}`")],
            )
            .may(&["object", "limit", "properties"]),
            publish(
                "create_note",
                "`contacts/ID`, `companies/ID` or `deals/ID`; an id alone is a contact's",
                &["ref", "file"],
                "Makes a note of a file's text on a contact, a company or a deal.",
                &[("id", "the note's id")],
            ),
            publish(
                "update_deal_stage",
                "the deal's id",
                &["ref", "file"],
                "Moves a deal to the stage whose id the file has.",
                &[("id", "the deal's id"), ("stage", "the stage's id")],
            ),
        ],
        settings: &[
            needs("access_token", &["HUBSPOT_ACCESS_TOKEN"], true, "the access token of a private app"),
            takes("base_url", &["HUBSPOT_BASE_URL"], false, "the address of the API; https://api.hubapi.com without it"),
        ],
    },
    Connector {
        name: "datadog",
        about: "Metrics, monitors and events of Datadog (API, version 1).",
        actions: &[
            fetch(
                "query_metrics",
                "a query of metrics",
                &["ref"],
                "Fetches the points of a query over `window` (1h by default), as JSON.",
                &[("series", "how many series"), ("points", "how many points"), ("from", "the beginning, in seconds since 1970"), ("to", "the end")],
            )
            .may(&["window"]),
            fetch(
                "get_monitors",
                "",
                &[],
                "Fetches all monitors, as JSON.",
                &[("count", "how many monitors"), ("alerting", "how many of them alert"), ("monitors", "each monitor, `{id, name, status, url}`")],
            )
            .may(&["ref"]),
            fetch(
                "get_events",
                "tags that events must have, with commas between them; optional",
                &[],
                "Fetches the events of `window` (24h by default), as JSON.",
                &[("count", "how many events"), ("from", "the beginning, in seconds since 1970"), ("to", "the end")],
            )
            .may(&["ref", "window"]),
            publish(
                "post_event",
                "",
                &["file"],
                "Posts the event that a file in JSON has: `title` and `text`, and any field of Datadog's events.",
                &[("id", "the event's id")],
            )
            .may(&["ref"]),
        ],
        settings: &[
            needs("api_key", &["DD_API_KEY", "DATADOG_API_KEY"], true, "an API key"),
            needs("app_key", &["DD_APP_KEY", "DATADOG_APP_KEY"], true, "an application key"),
            takes("site", &["DD_SITE"], false, "the site, such as datadoghq.eu; datadoghq.com without it"),
            takes("base_url", &["DD_API_URL"], false, "the address of the API, where it is not api.SITE"),
        ],
    },
];

const ISSUE: &[(&str, &str)] = &[
    ("key", "the issue's key"),
    ("status", "the name of its status"),
    ("summary", "its summary"),
    ("type", "the name of its type"),
    ("priority", "the name of its priority"),
    ("assignee", "the name of its assignee"),
    ("updated", "when it was changed"),
];
const PAGE: &[(&str, &str)] = &[
    ("id", "the page's id"),
    ("title", "its title"),
    ("version", "the number of its version"),
    ("space_id", "the id of its space"),
];
const TICKET: &[(&str, &str)] = &[
    ("id", "the ticket's id"),
    ("status", "its status"),
    ("subject", "its subject"),
    ("priority", "its priority"),
    ("updated", "when it was changed"),
];
const RECORD: &[(&str, &str)] =
    &[("id", "the record's id"), ("properties", "its properties"), ("updated", "when it was changed")];

/// Settings of Google's services.
pub const GOOGLE: &[Setting] = &[
    needs(
        "credentials_file",
        &["GOOGLE_APPLICATION_CREDENTIALS"],
        false,
        "the key file (JSON) of a service account, or of an OAuth client",
    ),
    takes(
        "auth_mode",
        &[],
        false,
        "service_account, or oauth after `cliq auth gdrive`; service_account without it",
    ),
    takes("base_url", &[], false, "the address of the API; https://www.googleapis.com without it"),
];

impl Connector {
    /// The connector of that name.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        CONNECTORS.iter().find(|connector| connector.name == name)
    }

    /// Whether a phase with it needs `action:`.
    #[must_use]
    pub fn has_actions(&self) -> bool {
        self.actions.iter().any(|action| !action.name.is_empty())
    }

    /// The action of that name and direction; without a name, the one that needs none.
    #[must_use]
    pub fn action(&self, name: Option<&str>, direction: Direction) -> Option<&'static Action> {
        let name = name.unwrap_or_default();
        self.actions.iter().find(|action| action.name == name && action.direction == direction)
    }
}
