//! Where cliq keeps what belongs to no project: `CLIQ_HOME`, else `~/.cliqrc` (SPEC section 2).

use camino::Utf8PathBuf;

/// The directory, whether or not it exists; `None` where there is no home at all.
pub(crate) fn dir() -> Option<Utf8PathBuf> {
    let from = |variable: &str| {
        std::env::var(variable).ok().filter(|value| !value.is_empty()).map(Utf8PathBuf::from)
    };
    from("CLIQ_HOME").or_else(|| from("HOME").map(|home| home.join(".cliqrc")))
}
