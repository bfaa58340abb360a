//! Settings of packages: `registries.*`, `trust.*`, `packages.*`.

use std::collections::{BTreeMap, BTreeSet};

use super::group;
use crate::layers::Settings;
use crate::value::names;

group! {
    /// Registries of packages.
    Person struct PackageSettings {
        "registries.*", registries: BTreeMap<String, String>,
            "where the packages of a scope are: `oci://HOST/PATH`; `@SCOPE/NAME` is `oci://HOST/PATH/NAME`";
        "packages.signing_key", signing_key: Option<String>,
            "the file of the SSH key that signs what `cliq team publish` publishes, such as ~/.ssh/id_ed25519";
        "packages.plain_http", plain_http: Vec<String>,
            "hosts with port of registries without TLS, such as localhost:5000";
    }
}

group! {
    /// Signers of the packages of a scope.
    Person struct ScopeTrustSettings of scope {
        "trust.*.signers", signers: Vec<String>,
            "public SSH keys, one of which must have signed each package of the scope; without the setting no signature is required";
    }
}

impl ScopeTrustSettings {
    /// Returns the scopes whose packages must be signed, sorted.
    #[must_use]
    pub fn scopes(settings: &Settings) -> BTreeSet<String> {
        names(settings, Self::KEYS)
    }
}
