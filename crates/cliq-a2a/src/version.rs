//! The versions of the protocol that are spoken.

/// A version of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Version {
    /// 0.3: methods such as `message/send`, fields `kind`, states in lower case.
    V0_3,
    /// 1.0: methods such as `SendMessage`, the JSON form of Protocol Buffers.
    V1_0,
}

/// A version that is not supported; the beginning of its text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("version {0:?} of A2A is not supported")]
pub struct UnsupportedVersion(String);

impl Version {
    /// The version as `Major.Minor`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V0_3 => "0.3",
            Self::V1_0 => "1.0",
        }
    }

    /// The version that a caller names (`A2A-Version`). An empty one is 0.3; a patch number does not count (section 3.6 of A2A 1.0).
    ///
    /// # Errors
    /// Returns an error for another version.
    pub fn parse(text: &str) -> Result<Self, UnsupportedVersion> {
        let mut parts = text.trim().split('.');
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(""), None, _, _) | (Some("0"), Some("3"), _, None) => Ok(Self::V0_3),
            (Some("1"), Some("0"), _, None) => Ok(Self::V1_0),
            _ => Err(UnsupportedVersion(text.chars().take(40).collect())),
        }
    }

    /// The version of a request: the one that its header names, else the one that has a method of this name.
    ///
    /// # Errors
    /// The header names another version.
    pub fn of_request(header: Option<&str>, method: &str) -> Result<Self, UnsupportedVersion> {
        match header {
            Some(text) => Self::parse(text),
            None if method.starts_with(|c: char| c.is_ascii_uppercase()) => Ok(Self::V1_0),
            None => Ok(Self::V0_3),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_requests() {
        for (text, version) in [
            ("", Version::V0_3),
            ("0.3", Version::V0_3),
            ("0.3.0", Version::V0_3),
            (" 1.0 ", Version::V1_0),
            ("1.0.1", Version::V1_0),
        ] {
            assert_eq!(Version::parse(text).unwrap(), version, "{text}");
        }
        for text in ["1", "2.0", "0.5", "1.1", "1.0.0.0", "x", "-1.0"] {
            assert!(Version::parse(text).is_err(), "{text}");
        }
        assert_eq!(Version::of_request(None, "SendMessage").unwrap(), Version::V1_0);
        assert_eq!(Version::of_request(None, "message/send").unwrap(), Version::V0_3);
        assert_eq!(Version::of_request(Some(""), "SendMessage").unwrap(), Version::V0_3);
    }
}
