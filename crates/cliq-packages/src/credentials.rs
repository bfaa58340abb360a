//! Credentials of registries, from the configuration of Docker.

use std::io::Cursor;

use camino::Utf8PathBuf;
use cliq_fs::read_if_exists;
use docker_credential::{CredentialRetrievalError, DockerCredential, get_credential_from_reader};
use oci_client::secrets::RegistryAuth;

use crate::RegistryError;

/// Maximum number of bytes of the configuration of Docker.
const MAX_BYTES: u64 = 16 << 20;

/// The configuration of Docker (`config.json`), whose credentials registries are shown.
#[derive(Debug, Clone, Default)]
pub struct Credentials {
    file: Option<Utf8PathBuf>,
}

impl Credentials {
    /// Credentials of the configuration in a directory: `DOCKER_CONFIG`, else `~/.docker`. A file that is not there has none.
    #[must_use]
    pub fn in_directory(dir: Option<Utf8PathBuf>) -> Self {
        Self { file: dir.map(|dir| dir.join("config.json")) }
    }

    /// Credentials for a host, or anonymous access if there are none.
    ///
    /// # Errors
    /// The file is damaged, a helper program fails, or the credentials are an identity token.
    pub(crate) fn of(&self, host: &str) -> Result<RegistryAuth, RegistryError> {
        let Some(file) = &self.file else { return Ok(RegistryAuth::Anonymous) };
        // No value of the file or of a helper is part of a message.
        let wrong = |message: &str| RegistryError::Credentials {
            host: host.to_owned(),
            file: file.clone(),
            message: message.to_owned(),
        };
        let read = read_if_exists(file, MAX_BYTES).map_err(|error| wrong(&error.to_string()))?;
        let Some(bytes) = read else { return Ok(RegistryAuth::Anonymous) };
        let found = ["", "https://"]
            .iter()
            .map(|scheme| get_credential_from_reader(Cursor::new(&bytes), &format!("{scheme}{host}")));
        for credential in found {
            return match credential {
                Ok(DockerCredential::UsernamePassword(user, password)) => {
                    Ok(RegistryAuth::Basic(user, password))
                }
                Ok(DockerCredential::IdentityToken(_)) => Err(wrong(
                    "they are an identity token, which is not supported; log in with a password or an access token",
                )),
                Err(CredentialRetrievalError::NoCredentialConfigured) => continue,
                Err(CredentialRetrievalError::HelperFailure { helper, stdout, .. }) => {
                    if stdout.contains("credentials not found") {
                        continue;
                    }
                    Err(wrong(&format!("the program docker-credential-{helper} failed")))
                }
                Err(CredentialRetrievalError::HelperCommunicationError) => {
                    Err(wrong("the credential helper that it names cannot be run"))
                }
                Err(CredentialRetrievalError::MalformedHelperResponse) => {
                    Err(wrong("the credential helper that it names gave no credentials"))
                }
                Err(CredentialRetrievalError::CredentialDecodingError) => {
                    Err(wrong("`auth` is not base64 of USER:PASSWORD"))
                }
                Err(CredentialRetrievalError::CredentialMismatchError) => {
                    Err(wrong("`auth` is not that of `username` and `password`"))
                }
                Err(CredentialRetrievalError::ConfigNotFound | CredentialRetrievalError::ConfigReadError) => {
                    Err(wrong("it is not JSON in the form of Docker"))
                }
            };
        }
        Ok(RegistryAuth::Anonymous)
    }
}
