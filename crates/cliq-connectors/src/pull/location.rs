//! Parser for the address of a source.

use url::Url;

use crate::{ConnectorError, google, s3};

/// Location of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Location {
    /// A page or a file of the web.
    Web(String),
    /// An object of S3, or all below a prefix.
    S3(S3Location),
    /// A document of Google Docs, by its id.
    GoogleDoc(String),
    /// A sheet of Google Sheets, by its id.
    GoogleSheet(String),
    /// A file of Google Drive, by its id.
    DriveFile(String),
    /// A folder of Google Drive, by its id.
    DriveFolder(String),
    /// A link to SharePoint or OneDrive.
    SharePoint(String),
}

pub use crate::s3::Location as S3Location;

impl Location {
    /// Reads the address of a source.
    ///
    /// # Errors
    /// Returns an error if the address is of no kind that can be fetched.
    pub fn parse(text: &str) -> Result<Self, ConnectorError> {
        let text = text.trim();
        if text.starts_with("s3://") {
            return s3::Location::parse(text).map(Self::S3);
        }
        if let Some(rest) = text.strip_prefix("gdrive://") {
            return google::id(rest, text).map(Self::DriveFolder);
        }
        if let Some(rest) = text.strip_prefix("gdoc://") {
            return google::id(rest, text).map(Self::GoogleDoc);
        }
        let url = Url::parse(text)
            .map_err(|error| ConnectorError::new(format!("{text:?} is not a valid address: {error}")))?;
        if url.scheme() == "sharepoint" {
            return Ok(Self::SharePoint(text.to_owned()));
        }
        if !matches!(url.scheme(), "http" | "https") {
            let scheme = url.scheme();
            return Err(ConnectorError::new(format!(
                "{scheme}:// cannot be fetched: http://, https://, s3://, gdrive:// and gdoc:// can"
            )));
        }
        let host = url.host_str().unwrap_or_default();
        let parts: Vec<&str> = url.path_segments().map(Iterator::collect).unwrap_or_default();
        let after = |before: &[&str]| {
            // Accounts have `/u/0/` within.
            let at = parts.windows(before.len()).position(|window| window == before)?;
            parts.get(at + before.len()).filter(|id| google::is_id(id)).map(|id| (*id).to_owned())
        };
        let found = match host {
            "docs.google.com" => after(&["document", "d"])
                .map(Self::GoogleDoc)
                .or_else(|| after(&["spreadsheets", "d"]).map(Self::GoogleSheet)),
            "drive.google.com" => after(&["file", "d"])
                .map(Self::DriveFile)
                .or_else(|| after(&["folders"]).map(Self::DriveFolder)),
            _ if is_sharepoint(host) => Some(Self::SharePoint(text.to_owned())),
            _ => None,
        };
        // A published document is a page: its id begins in another way.
        Ok(found
            .filter(|found| !matches!(found, Self::GoogleDoc(id) | Self::GoogleSheet(id) if id == "e"))
            .unwrap_or_else(|| Self::Web(text.to_owned())))
    }

    /// Returns the location for people.
    #[must_use]
    pub fn host(&self) -> String {
        match self {
            Self::Web(url) | Self::SharePoint(url) => {
                Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default()
            }
            Self::S3(place) => format!("s3://{}", place.bucket),
            Self::GoogleDoc(_) => "Google Docs".to_owned(),
            Self::GoogleSheet(_) => "Google Sheets".to_owned(),
            Self::DriveFile(_) | Self::DriveFolder(_) => "Google Drive".to_owned(),
        }
    }
}

/// Whether a host is SharePoint or OneDrive.
pub(crate) fn is_sharepoint(host: &str) -> bool {
    host.ends_with(".sharepoint.com") || matches!(host, "onedrive.live.com" | "1drv.ms")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let read = |text: &str| {
            Location::parse(text).map(|location| format!("{location:?}")).map_err(|error| error.message)
        };
        for (text, expected) in [
            ("https://example.com/a", "Web(\"https://example.com/a\")"),
            ("https://docs.google.com/document/d/AbC_1-2/edit?usp=sharing", "GoogleDoc(\"AbC_1-2\")"),
            (
                "https://docs.google.com/document/u/1/d/AbC/edit",
                "Web(\"https://docs.google.com/document/u/1/d/AbC/edit\")",
            ),
            ("https://docs.google.com/spreadsheets/d/S1/edit#gid=0", "GoogleSheet(\"S1\")"),
            (
                "https://docs.google.com/document/d/e/2PACX/pub",
                "Web(\"https://docs.google.com/document/d/e/2PACX/pub\")",
            ),
            ("https://drive.google.com/file/d/F1/view", "DriveFile(\"F1\")"),
            ("https://drive.google.com/drive/u/0/folders/D1?usp=x", "DriveFolder(\"D1\")"),
            ("gdrive://D2/", "DriveFolder(\"D2\")"),
            (
                "https://acme.sharepoint.com/:w:/s/team/x?e=1",
                "SharePoint(\"https://acme.sharepoint.com/:w:/s/team/x?e=1\")",
            ),
            ("https://evilsharepoint.com/x", "Web(\"https://evilsharepoint.com/x\")"),
        ] {
            assert_eq!(read(text).as_deref(), Ok(expected), "{text}");
        }
        for text in
            ["", "report.pdf", "ftp://h/x", "file:///etc/passwd", "gdrive://", "gdrive://a/b", "s3://"]
        {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
