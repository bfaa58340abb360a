//! The certificate of the server: read at the start, and again whenever its files change, so that a renewed one needs no restart.

use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use camino::Utf8Path;
use cliq_orchestrator::internals::spawn_blocking;
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, RootCertStore};
use tokio_rustls::TlsAcceptor;

use crate::options::TlsFiles;
use crate::server::ServerError;

/// Time between two looks at the files.
const LOOK: Duration = Duration::from_secs(5);
/// Time after which a look that does not end is reported.
const LIMIT: Duration = Duration::from_secs(30);

/// TLS of a server.
#[derive(Clone)]
pub(crate) struct Tls {
    pub(crate) acceptor: TlsAcceptor,
    pub(crate) certificate: Arc<Certificate>,
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// Returns an error that names the file if one cannot be read, or if the key is not that of the certificate.
    pub(crate) fn read(files: &TlsFiles) -> Result<Self, ServerError> {
        let stamps = stamps(files);
        let current = RwLock::new(load(files)?);
        let certificate = Arc::new(Certificate { files: files.clone(), current, stamps });
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong(&files.certificate, &error))?
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&certificate) as Arc<dyn ResolvesServerCert>);
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), certificate })
    }
}

/// The certificate in force. Connections that are open keep the one that they began with.
#[derive(Debug)]
pub(crate) struct Certificate {
    files: TlsFiles,
    current: RwLock<Arc<CertifiedKey>>,
    /// State of the files before they were read.
    stamps: Stamps,
}

/// State of the two files by which a change is noticed; `None` for one that is not there.
type Stamps = [Option<(u64, u64, i64, i64, u64)>; 2];

impl Certificate {
    /// Reads the files again whenever they change. Files that are wrong leave the certificate in force, and are named in the log: certificate
    /// and key are two files, which are seldom replaced at the same moment.
    pub(crate) async fn follow(self: Arc<Self>) {
        let (mut seen, mut is_expired) = (self.stamps, false);
        loop {
            tokio::time::sleep(LOOK).await;
            let files = self.files.clone();
            let look = move || {
                let found = stamps(&files);
                (found, (found != seen).then(|| load(&files)))
            };
            let mut looking = spawn_blocking(look);
            let looked = match tokio::time::timeout(LIMIT, &mut looking).await {
                Ok(looked) => looked,
                Err(_) => {
                    let file = &self.files.certificate;
                    tracing::warn!(%file, "the certificate cannot be looked at: its file system does not respond");
                    looking.await
                }
            };
            let (found, loaded) = match looked {
                Ok(looked) => looked,
                Err(error) => {
                    tracing::error!(%error, "a renewed certificate will not be noticed: restart the server");
                    return;
                }
            };
            seen = found;
            if loaded.is_none() && self.has_expired() && !std::mem::replace(&mut is_expired, true) {
                tracing::warn!(file = %self.files.certificate, "the certificate has expired: clients refuse it");
            }
            match loaded {
                None => {}
                Some(Ok(key)) => {
                    *self.current.write().unwrap_or_else(PoisonError::into_inner) = key;
                    tracing::info!(file = %self.files.certificate, "the certificate was renewed");
                    is_expired = false;
                }
                Some(Err(error)) => {
                    tracing::warn!(%error, "the new certificate is not used; the one before stays in force");
                }
            }
        }
    }

    /// Whether clients refuse the certificate in force for its time.
    fn has_expired(&self) -> bool {
        let key = Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner));
        let Some((own, others)) = key.cert.split_first() else { return false };
        let Ok(parsed) = rustls::server::ParsedCertificate::try_from(own) else { return false };
        let algorithms = rustls::crypto::ring::default_provider().signature_verification_algorithms;
        // The time is checked before the authority, and there is none here.
        let checked = verify_server_cert_signed_by_trust_anchor(
            &parsed,
            &RootCertStore::empty(),
            others,
            UnixTime::now(),
            algorithms.all,
        );
        matches!(
            checked,
            Err(rustls::Error::InvalidCertificate(
                CertificateError::Expired | CertificateError::ExpiredContext { .. }
            ))
        )
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner)))
    }
}

fn stamps(files: &TlsFiles) -> Stamps {
    [&files.certificate, &files.key].map(|file| {
        let found = std::fs::metadata(file).ok()?;
        Some((found.dev(), found.ino(), found.mtime(), found.mtime_nsec(), found.size()))
    })
}

fn load(files: &TlsFiles) -> Result<Arc<CertifiedKey>, ServerError> {
    for file in [&files.certificate, &files.key] {
        // A FIFO would block for good.
        if std::fs::metadata(file).is_ok_and(|found| !found.is_file()) {
            return Err(wrong(file, &"it is no regular file"));
        }
    }
    let certificates = CertificateDer::pem_file_iter(&files.certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| wrong(&files.certificate, &error))?;
    if certificates.is_empty() {
        return Err(wrong(&files.certificate, &"there is no certificate in it"));
    }
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|error| wrong(&files.key, &error))?;
    let provider = rustls::crypto::ring::default_provider();
    let certified = CertifiedKey::from_der(certificates, key, &provider);
    certified.map(Arc::new).map_err(|error| wrong(&files.certificate, &error))
}

fn wrong(file: &Utf8Path, message: &dyn std::fmt::Display) -> ServerError {
    ServerError::Tls { file: file.to_owned(), message: message.to_string() }
}
