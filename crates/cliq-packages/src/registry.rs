//! Registries by the OCI distribution protocol.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::OnceLock;
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use camino::Utf8PathBuf;
use futures_util::StreamExt;
use oci_client::client::{ClientConfig, ClientProtocol};
use oci_client::errors::{OciDistributionError, OciErrorCode};
use oci_client::manifest::OciDescriptor;
use oci_client::{Client, Reference};
use semver::Version;
use tokio::runtime::Runtime;

use crate::format::{Descriptor, MANIFEST_TYPE, MAX_SMALL_BYTES};
use crate::{Credentials, Digest, Repository};

/// Time limit for connecting, and for each pause while a registry sends.
const CONNECT: Duration = Duration::from_secs(10);
const READ: Duration = Duration::from_secs(60);
/// Number of entries of a page of tags or repositories.
const PAGE: usize = 500;
/// Maximum number of pages: a registry that sends pages without end is given up.
const MAX_PAGES: usize = 200;

/// A registry cannot do something.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// The registry does not respond.
    #[error("cannot reach {host}: {message}")]
    Unreachable {
        /// Host of the registry.
        host: String,
        /// Reason.
        message: String,
    },
    /// The registry does not accept the credentials, or requires some.
    #[error(
        "{host} does not allow this for {repository}: {message}; `docker login {host}` stores credentials"
    )]
    NotAllowed {
        /// Host of the registry.
        host: String,
        /// The repository.
        repository: Repository,
        /// Message of the registry.
        message: String,
    },
    /// There is no such repository, manifest or blob.
    #[error("{host} has no {what}")]
    NotFound {
        /// Host of the registry.
        host: String,
        /// The thing.
        what: String,
    },
    /// The registry sent other bytes than those that were asked for.
    #[error("{what} of {repository} was changed: it is {found} in place of {expected}")]
    Changed {
        /// The thing: `the manifest`, `a blob`.
        what: &'static str,
        /// The repository.
        repository: Repository,
        /// Digest that was asked for.
        expected: Digest,
        /// Digest of what came.
        found: Digest,
    },
    /// The registry sent more bytes than it announced.
    #[error("{host} sends more than the {announced} bytes that the manifest names")]
    TooLong {
        /// Host of the registry.
        host: String,
        /// Announced bytes.
        announced: u64,
    },
    /// The credentials cannot be read.
    #[error("the credentials for {host} in {file} cannot be used: {message}")]
    Credentials {
        /// Host of the registry.
        host: String,
        /// Configuration of Docker.
        file: Utf8PathBuf,
        /// Reason.
        message: String,
    },
    /// The registry failed or does not speak the protocol.
    #[error("{host} failed: {message}")]
    Failed {
        /// Host of the registry.
        host: String,
        /// Reason.
        message: String,
    },
}

/// A client of registries. Calls block their thread.
pub struct Registry {
    credentials: Credentials,
    plain_http: Vec<String>,
    /// Made by the first call: certificates are read for it.
    connection: OnceLock<Connection>,
}

/// A client with the runtime that its connections belong to.
struct Connection {
    client: Client,
    runtime: Option<Runtime>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry").finish_non_exhaustive()
    }
}

impl Registry {
    /// A client with credentials. Connections are encrypted, except to the hosts (with port) in `plain_http`.
    #[must_use]
    pub fn new(credentials: Credentials, plain_http: Vec<String>) -> Self {
        Self { credentials, plain_http, connection: OnceLock::new() }
    }

    fn connection(&self) -> Result<&Connection, OciDistributionError> {
        if let Some(connection) = self.connection.get() {
            return Ok(connection);
        }
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::try_from(ClientConfig {
            protocol: ClientProtocol::HttpsExcept(self.plain_http.clone()),
            connect_timeout: Some(CONNECT),
            read_timeout: Some(READ),
            user_agent: concat!("cliq/", env!("CARGO_PKG_VERSION")),
            platform_resolver: None,
            ..ClientConfig::default()
        })?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(self.connection.get_or_init(|| Connection { client, runtime: Some(runtime) }))
    }

    /// Versions of a package, sorted. Tags that are no versions are left out. Empty if there is no such repository.
    ///
    /// # Errors
    /// The registry does not respond, or does not allow it.
    pub fn versions(&self, repository: &Repository) -> Result<Vec<Version>, RegistryError> {
        let image = Reference::with_tag(repository.host().into(), repository.path().into(), "latest".into());
        let auth = self.credentials.of(repository.host())?;
        let mut versions = BTreeSet::new();
        let mut last: Option<String> = None;
        for _ in 0..MAX_PAGES {
            let page = self.wait(|client| client.list_tags(&image, &auth, Some(PAGE), last.as_deref()));
            let page = match page.map_err(|error| failure(repository, "tags", error)) {
                Ok(page) => page.tags,
                Err(RegistryError::NotFound { .. }) => break,
                Err(error) => return Err(error),
            };
            // A plus cannot be in a tag.
            versions.extend(page.iter().filter_map(|tag| Version::parse(&tag.replace('_', "+")).ok()));
            match page.last() {
                Some(newest) if page.len() >= PAGE && last.as_ref() != Some(newest) => {
                    last = Some(newest.clone())
                }
                _ => break,
            }
        }
        Ok(versions.into_iter().collect())
    }

    /// Repositories of a host whose path is below a place.
    ///
    /// # Errors
    /// The registry does not respond, or does not list its repositories.
    pub fn repositories(&self, place: &Repository) -> Result<Vec<Repository>, RegistryError> {
        let image = Reference::with_tag(place.host().into(), place.path().into(), "latest".into());
        let auth = self.credentials.of(place.host())?;
        let mut found = BTreeSet::new();
        let mut last: Option<String> = None;
        for _ in 0..MAX_PAGES {
            let page = self.wait(|client| client.catalog(&image, &auth, Some(PAGE), last.as_deref()));
            let page = page.map_err(|error| failure(place, "list of repositories", error))?.repositories;
            let below = page.iter().filter_map(|path| path.strip_prefix(place.path())?.strip_prefix('/'));
            found.extend(below.filter(|name| !name.contains('/')).map(|name| place.join(name)));
            match page.last() {
                Some(newest) if page.len() >= PAGE && last.as_ref() != Some(newest) => {
                    last = Some(newest.clone())
                }
                _ => break,
            }
        }
        Ok(found.into_iter().collect())
    }

    /// The manifest of a version, with its digest.
    ///
    /// # Errors
    /// There is no such version, the registry does not respond, or does not allow it.
    pub fn manifest_of(
        &self,
        repository: &Repository,
        version: &Version,
    ) -> Result<(Digest, Vec<u8>), RegistryError> {
        let image = Reference::with_tag(repository.host().into(), repository.path().into(), tag(version));
        let bytes = self.pull(repository, &image, &format!("{repository}:{version}"), None)?;
        Ok((Digest::of(&bytes), bytes))
    }

    /// The manifest with a digest.
    ///
    /// # Errors
    /// As for [`Registry::manifest_of`]; or it has another digest.
    pub fn manifest(&self, repository: &Repository, digest: Digest) -> Result<Vec<u8>, RegistryError> {
        let image =
            Reference::with_digest(repository.host().into(), repository.path().into(), digest.to_string());
        let bytes = self.pull(repository, &image, &format!("{repository}@{digest}"), Some(digest))?;
        check(&bytes, digest, "the manifest", repository)?;
        Ok(bytes)
    }

    fn pull(
        &self,
        repository: &Repository,
        image: &Reference,
        what: &str,
        expected: Option<Digest>,
    ) -> Result<Vec<u8>, RegistryError> {
        let auth = self.credentials.of(repository.host())?;
        let pulled = self.wait(|client| client.pull_manifest_raw(image, &auth, &[MANIFEST_TYPE]));
        let (bytes, _) = pulled.map_err(|error| match (expected, found_digest(&error)) {
            (Some(expected), Some(found)) => RegistryError::Changed {
                what: "the manifest",
                repository: repository.clone(),
                expected,
                found,
            },
            _ => failure(repository, what, error),
        })?;
        if bytes.len() as u64 > MAX_SMALL_BYTES {
            return Err(RegistryError::TooLong {
                host: repository.host().into(),
                announced: MAX_SMALL_BYTES,
            });
        }
        Ok(bytes.to_vec())
    }

    /// A blob, of which no more is read than its descriptor names.
    ///
    /// # Errors
    /// There is no such blob, it has other bytes than the descriptor names, or the registry does not respond.
    pub fn blob(&self, repository: &Repository, blob: &Descriptor) -> Result<Vec<u8>, RegistryError> {
        let image = Reference::with_digest(
            repository.host().into(),
            repository.path().into(),
            blob.digest.to_string(),
        );
        let auth = self.credentials.of(repository.host())?;
        let descriptor = OciDescriptor {
            media_type: blob.media_type.clone(),
            digest: blob.digest.to_string(),
            size: i64::try_from(blob.size).unwrap_or(i64::MAX),
            ..OciDescriptor::default()
        };
        let (image, descriptor, auth) = (&image, &descriptor, &auth);
        let read = self.wait(|client| async move {
            client.store_auth_if_needed(repository.host(), auth).await;
            let mut stream = client.pull_blob_stream(image, descriptor).await?.stream;
            let mut bytes = Vec::new();
            while let Some(chunk) = stream.next().await {
                bytes.extend_from_slice(&chunk?);
                if bytes.len() as u64 > blob.size {
                    return Ok(None);
                }
            }
            Ok(Some(bytes))
        });
        let what = format!("{repository}@{}", blob.digest);
        let changed = |found| RegistryError::Changed {
            what: "a blob",
            repository: repository.clone(),
            expected: blob.digest,
            found,
        };
        let bytes = read.map_err(|error| match found_digest(&error) {
            // The stream of the client found other bytes.
            Some(found) => changed(found),
            None => failure(repository, &what, error),
        })?;
        let too_long = || RegistryError::TooLong { host: repository.host().into(), announced: blob.size };
        let bytes = bytes.ok_or_else(too_long)?;
        check(&bytes, blob.digest, "a blob", repository)?;
        Ok(bytes)
    }

    /// Uploads a blob, unless it is there.
    ///
    /// # Errors
    /// The registry does not respond, or does not allow it.
    pub fn push_blob(&self, repository: &Repository, bytes: &[u8]) -> Result<(), RegistryError> {
        let digest = Digest::of(bytes).to_string();
        let image = Reference::with_tag(repository.host().into(), repository.path().into(), "latest".into());
        let auth = self.credentials.of(repository.host())?;
        let bytes: Vec<u8> = bytes.to_vec();
        let (image, auth, bytes, digest) = (&image, &auth, &bytes, &digest);
        let push = self.wait(|client| async move {
            client.store_auth_if_needed(repository.host(), auth).await;
            // The token for reading would be kept for writing.
            client.auth(image, auth, oci_client::RegistryOperation::Push).await?;
            if client.blob_exists(image, digest).await.unwrap_or(false) {
                return Ok(());
            }
            client.push_blob(image, bytes.clone(), digest).await.map(drop)
        });
        push.map_err(|error| failure(repository, "such blob", error))
    }

    /// Uploads the manifest of a version.
    ///
    /// # Errors
    /// The registry does not respond, or does not allow it.
    pub fn push_manifest(
        &self,
        repository: &Repository,
        version: &Version,
        bytes: &[u8],
    ) -> Result<(), RegistryError> {
        let image = Reference::with_tag(repository.host().into(), repository.path().into(), tag(version));
        let auth = self.credentials.of(repository.host())?;
        let (image, auth) = (&image, &auth);
        let push = self.wait(|client| async move {
            client.store_auth_if_needed(repository.host(), auth).await;
            let kind = oci_client::manifest::OCI_IMAGE_MEDIA_TYPE;
            let kind = kind.parse().map_err(|_| OciDistributionError::GenericError(None))?;
            client.push_manifest_raw(image, bytes.to_vec(), kind).await.map(drop)
        });
        push.map_err(|error| failure(repository, "such repository", error))
    }

    /// Waits for a call, on a thread of its own, so that programs with a runtime can make calls too. A call that fails for a passing reason
    /// is made again, three times in all.
    fn wait<'s, T, F>(&'s self, call: impl Fn(&'s Client) -> F + Send) -> Result<T, OciDistributionError>
    where
        T: Send,
        F: Future<Output = Result<T, OciDistributionError>>,
    {
        let work = move || {
            let Connection { client, runtime } = self.connection()?;
            let gone = || OciDistributionError::GenericError(None);
            let runtime = runtime.as_ref().ok_or_else(gone)?;
            let policy =
                ExponentialBuilder::default().with_max_times(2).with_min_delay(Duration::from_millis(300));
            runtime.block_on((|| call(client)).retry(policy).sleep(tokio::time::sleep).when(passes))
        };
        std::thread::scope(|scope| {
            let worker = scope.spawn(work).join();
            worker.unwrap_or_else(|_| {
                Err(OciDistributionError::GenericError(Some("the call was given up".into())))
            })
        })
    }
}

/// Tags cannot have a plus.
fn tag(version: &Version) -> String {
    version.to_string().replace('+', "_")
}

fn check(
    bytes: &[u8],
    expected: Digest,
    what: &'static str,
    repository: &Repository,
) -> Result<(), RegistryError> {
    let found = Digest::of(bytes);
    if found == expected {
        return Ok(());
    }
    Err(RegistryError::Changed { what, repository: repository.clone(), expected, found })
}

/// The digest of the bytes that came, from the message of a client that found others than it asked for.
fn found_digest(error: &OciDistributionError) -> Option<Digest> {
    if !matches!(error, OciDistributionError::DigestError(_) | OciDistributionError::IoError(_)) {
        return None;
    }
    let text = error.to_string();
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == ':'));
    words.filter_map(|word| word.parse().ok()).next_back()
}

/// Whether an error may pass: the registry is busy or fails, or the connection broke.
fn passes(error: &OciDistributionError) -> bool {
    match error {
        OciDistributionError::ServerError { code, .. } => *code == 429 || *code >= 500,
        OciDistributionError::RegistryError { envelope, .. } => {
            envelope.errors.iter().any(|error| error.code == OciErrorCode::Toomanyrequests)
        }
        // A host that cannot be connected to is reported at once.
        OciDistributionError::RequestError(error) => error.is_timeout() || error.is_body(),
        _ => false,
    }
}

/// The error of a call. Addresses are left out: those that a registry redirects to have signatures in them.
fn failure(repository: &Repository, what: &str, error: OciDistributionError) -> RegistryError {
    let host = repository.host().to_owned();
    let not_allowed = |message: &str| RegistryError::NotAllowed {
        host: host.clone(),
        repository: repository.clone(),
        message: message.to_owned(),
    };
    let not_found = || RegistryError::NotFound { host: host.clone(), what: what.to_owned() };
    match error {
        OciDistributionError::UnauthorizedError { .. } => not_allowed("it requires other credentials"),
        OciDistributionError::AuthenticationFailure(_) => not_allowed("it refuses the credentials"),
        OciDistributionError::ImageManifestNotFoundError(_) => not_found(),
        OciDistributionError::ServerError { code: 404, .. } => not_found(),
        OciDistributionError::ServerError { code: 401 | 403, .. } => {
            not_allowed("it refuses the credentials")
        }
        OciDistributionError::RegistryError { envelope, .. } => {
            let is = |codes: &[OciErrorCode]| envelope.errors.iter().any(|error| codes.contains(&error.code));
            if is(&[
                OciErrorCode::NameUnknown,
                OciErrorCode::ManifestUnknown,
                OciErrorCode::BlobUnknown,
                OciErrorCode::NotFound,
            ]) {
                return not_found();
            }
            if is(&[OciErrorCode::Denied, OciErrorCode::Unauthorized]) {
                return not_allowed("it refuses the credentials");
            }
            let message =
                envelope.errors.iter().map(|error| error.message.as_str()).collect::<Vec<_>>().join("; ");
            RegistryError::Failed { host, message: plain(&message) }
        }
        OciDistributionError::ServerError { code, .. } => {
            RegistryError::Failed { host, message: format!("status {code}") }
        }
        OciDistributionError::RequestError(error) => {
            let error = error.without_url();
            let mut message = error.to_string();
            let mut source = std::error::Error::source(&error);
            while let Some(inner) = source {
                message = inner.to_string();
                source = inner.source();
            }
            RegistryError::Unreachable { host, message: plain(&message) }
        }
        error => RegistryError::Failed { host, message: plain(&error.to_string()) },
    }
}

/// A message of a registry without control characters, at most 300 characters of it.
fn plain(message: &str) -> String {
    message.chars().map(|c| if c.is_control() { ' ' } else { c }).take(300).collect()
}
