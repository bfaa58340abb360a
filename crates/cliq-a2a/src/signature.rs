//! The signature of the agent card: JWS (RFC 7515, ES256) over canonical JSON (RFC 8785), section 8.4 of A2A 1.0.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::{Value, json};

/// Reason why a key cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "it is not a private key for ES256: an elliptic curve key on P-256 in PKCS#8, as `openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256` makes it ({0})"
)]
pub struct SignatureError(String);

/// A key that signs agent cards.
pub struct SigningKey {
    pair: EcdsaKeyPair,
    random: SystemRandom,
    id: String,
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SigningKey({})", self.id)
    }
}

impl SigningKey {
    /// Reads a private key: PKCS#8 in DER.
    ///
    /// # Errors
    /// Returns an error if the key is of another kind.
    pub fn from_pkcs8(der: &[u8]) -> Result<Self, SignatureError> {
        let random = SystemRandom::new();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der, &random)
            .map_err(|error| SignatureError(error.to_string()))?;
        let id = digest(&SHA256, pair.public_key().as_ref());
        let id = URL_SAFE_NO_PAD.encode(&id.as_ref()[..12]);
        Ok(Self { pair, random, id })
    }

    /// The public key, as a JSON Web Key Set.
    #[must_use]
    pub fn key_set(&self) -> Value {
        // An uncompressed point: 4, x, y.
        let point = self.pair.public_key().as_ref();
        let (x, y) = point.get(1..).unwrap_or_default().split_at_checked(32).unwrap_or_default();
        json!({"keys": [{"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": self.id,
            "x": URL_SAFE_NO_PAD.encode(x), "y": URL_SAFE_NO_PAD.encode(y)}]})
    }

    /// The signature of a document: an `AgentCardSignature`. `address` is where the public key is.
    pub(crate) fn sign(&self, document: &Value, address: &str) -> Value {
        let header = json!({"alg": "ES256", "typ": "JOSE", "kid": self.id, "jku": address}).to_string();
        let payload = serde_json_canonicalizer::to_vec(document).unwrap_or_default();
        let protected = URL_SAFE_NO_PAD.encode(header);
        let input = format!("{protected}.{}", URL_SAFE_NO_PAD.encode(payload));
        let signature = self.pair.sign(&self.random, input.as_bytes());
        let signature = signature.map(|signature| URL_SAFE_NO_PAD.encode(signature)).unwrap_or_default();
        json!({"protected": protected, "signature": signature})
    }
}
