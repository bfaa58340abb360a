//! Destination of a target.

use url::Url;

use crate::pull::S3Location;
use crate::{ConnectorError, LocalFile, Target, google, s3};

/// A place that files are published to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Destination {
    /// An object of S3.
    S3(S3Location),
    /// An address that takes a file with PUT.
    Put(String),
    /// A folder of Google Drive, by its id.
    Drive(String),
    /// A document of Google Docs, by its id; or a folder in which one is made, `folder/ID`.
    Doc(String),
    /// A folder or a file of SharePoint or OneDrive.
    SharePoint(String),
}

impl Destination {
    /// Reads `to`.
    ///
    /// # Errors
    /// Returns an error if the target is not a destination that can be published to.
    pub fn parse(target: &Target) -> Result<Self, ConnectorError> {
        let text = target.wanted().map_err(|_| ConnectorError::new("it has no `to`"))?;
        if text.starts_with("s3://") {
            return s3::Location::parse(text).map(Self::S3);
        }
        if let Some(id) = text.strip_prefix("gdrive://") {
            return google::id(id, text).map(Self::Drive);
        }
        if let Some(id) = text.strip_prefix("gdoc://") {
            return google::id(id.strip_prefix("folder/").unwrap_or(id), text)
                .map(|_| Self::Doc(id.trim_matches('/').to_owned()));
        }
        let url = Url::parse(text)
            .map_err(|error| ConnectorError::new(format!("{text:?} is not a valid address: {error}")))?;
        match url.scheme() {
            "sharepoint" => Ok(Self::SharePoint(text.to_owned())),
            "http" | "https" if url.host_str().is_some_and(crate::pull::is_sharepoint) => {
                Ok(Self::SharePoint(text.to_owned()))
            }
            "http" | "https" => Ok(Self::Put(text.to_owned())),
            scheme => Err(ConnectorError::new(format!(
                "{scheme}:// cannot be published to: s3://, gdrive://, gdoc://, sharepoint://, https:// and http:// can"
            ))),
        }
    }

    /// Returns the destination of a file with its name, for people.
    #[must_use]
    pub fn shown(&self, target: &Target, file: &LocalFile) -> String {
        let name = target.name.as_deref().unwrap_or(file.name());
        let to = crate::web::without_secrets(target.wanted().unwrap_or_default());
        match self {
            Self::S3(place) if place.key.is_empty() || place.key.ends_with('/') => {
                format!("{}{}", slashed(&to), name)
            }
            Self::Put(_) if to.ends_with('/') => format!("{to}{name}"),
            Self::Drive(_) | Self::SharePoint(_) => format!("{}{}", slashed(&to), name),
            Self::S3(_) | Self::Put(_) | Self::Doc(_) => to,
        }
    }
}

fn slashed(text: &str) -> String {
    if text.ends_with('/') { text.to_owned() } else { format!("{text}/") }
}
