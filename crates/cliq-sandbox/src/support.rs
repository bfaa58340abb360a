//! Mechanisms that this system supports.

use std::process::{Command, Stdio};

use camino::Utf8PathBuf;

use crate::policy::Mechanism;

/// Lowest version of Landlock that enforces a profile without bubblewrap: it has rules for files, TCP, signals and abstract sockets.
pub const LANDLOCK_VERSION: i32 = 6;

/// Mechanisms of this system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Support {
    /// Version of Landlock, up to 6; 0 if the kernel has none.
    pub landlock: i32,
    /// Program of bubblewrap, or the reason why it cannot be used.
    pub bubblewrap: Result<Utf8PathBuf, String>,
}

/// Request for a mechanism (`sandbox.mechanism`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Preference {
    /// Bubblewrap if it works, otherwise Landlock alone.
    #[default]
    Auto,
    /// This mechanism only.
    Only(Mechanism),
}

impl Preference {
    /// Parses `auto`, `bubblewrap` or `landlock`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "auto" => Some(Self::Auto),
            "bubblewrap" => Some(Self::Only(Mechanism::Bubblewrap)),
            "landlock" => Some(Self::Only(Mechanism::Landlock)),
            _ => None,
        }
    }
}

impl Support {
    /// Detects the mechanisms. `path` is the value of `PATH`. Starts `bwrap` once.
    #[must_use]
    pub fn detect(path: Option<&str>) -> Self {
        Self { landlock: landlock_version(), bubblewrap: bubblewrap(path) }
    }

    /// Returns the mechanism to use.
    ///
    /// # Errors
    /// Returns what is missing.
    pub fn choose(&self, preference: Preference) -> Result<Mechanism, String> {
        let landlock = || match self.landlock {
            LANDLOCK_VERSION.. => Ok(Mechanism::Landlock),
            0 => Err("the kernel has no Landlock".to_owned()),
            version => {
                Err(format!("the kernel has version {version} of Landlock, and {LANDLOCK_VERSION} is needed"))
            }
        };
        let bubblewrap = || self.bubblewrap.as_ref().map(|_| Mechanism::Bubblewrap).map_err(Clone::clone);
        match preference {
            Preference::Only(Mechanism::Bubblewrap) => bubblewrap(),
            Preference::Only(Mechanism::Landlock) => landlock(),
            Preference::Auto => {
                bubblewrap().or_else(|why| landlock().map_err(|other| format!("{why}, and {other}")))
            }
        }
    }
}

#[cfg(target_os = "linux")]
fn landlock_version() -> i32 {
    crate::landlock::version()
}

#[cfg(not(target_os = "linux"))]
fn landlock_version() -> i32 {
    0
}

fn bubblewrap(path: Option<&str>) -> Result<Utf8PathBuf, String> {
    if !cfg!(target_os = "linux") {
        return Err("sandboxes need Linux".to_owned());
    }
    let program = find(path).ok_or("bubblewrap (`bwrap`) is not installed")?;
    let tried = Command::new(&program)
        .args(["--ro-bind", "/", "/", "--unshare-all", "--proc", "/proc", "--dev", "/dev", "true"])
        .stdin(Stdio::null())
        .output();
    match tried {
        Ok(output) if output.status.success() => Ok(program),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(format!(
                "bubblewrap does not work here: {}",
                said.lines().next().unwrap_or("it gave no reason")
            ))
        }
        Err(error) => Err(format!("bubblewrap cannot be started: {error}")),
    }
}

/// Finds `bwrap`.
pub(crate) fn find(path: Option<&str>) -> Option<Utf8PathBuf> {
    let dirs = path.unwrap_or("/usr/bin:/bin").split(':').filter(|dir| dir.starts_with('/'));
    dirs.map(|dir| Utf8PathBuf::from(dir).join("bwrap")).find(|program| program.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_features_are_named() {
        let none =
            Support { landlock: 3, bubblewrap: Err("bubblewrap (`bwrap`) is not installed".to_owned()) };
        let why = none.choose(Preference::Auto).expect_err("nothing works");
        assert!(why.contains("not installed") && why.contains("version 3 of Landlock"), "{why}");
        let both = Support { landlock: 7, bubblewrap: Ok("/usr/bin/bwrap".into()) };
        assert_eq!(both.choose(Preference::Auto), Ok(Mechanism::Bubblewrap));
        assert_eq!(both.choose(Preference::Only(Mechanism::Landlock)), Ok(Mechanism::Landlock));
    }
}
