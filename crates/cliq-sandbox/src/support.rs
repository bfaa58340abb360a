//! Mechanisms that this system supports.

use std::process::{Command, Stdio};

use camino::{Utf8Path, Utf8PathBuf};

use crate::policy::Mechanism;
use crate::seatbelt;

/// Lowest version of Landlock that enforces a profile without bubblewrap: it has rules for files, TCP, signals and abstract sockets.
pub const LANDLOCK_VERSION: i32 = 6;

/// Mechanisms of this system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Support {
    /// Version of Landlock, up to 6; 0 if the kernel has none.
    pub landlock: i32,
    /// Program of bubblewrap, or the reason why it cannot be used.
    pub bubblewrap: Result<Utf8PathBuf, String>,
    /// On macOS: the program that applies profiles of Seatbelt, or the reason why it cannot be used. `None` on other systems.
    pub seatbelt: Option<Result<Utf8PathBuf, String>>,
}

/// Request for a mechanism (`sandbox.mechanism`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Preference {
    /// Bubblewrap if it works, otherwise Landlock alone; on macOS Seatbelt.
    #[default]
    Auto,
    /// This mechanism only.
    Only(Mechanism),
}

impl Preference {
    /// Parses `auto`, `bubblewrap`, `landlock` or `seatbelt`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "auto" => Some(Self::Auto),
            "bubblewrap" => Some(Self::Only(Mechanism::Bubblewrap)),
            "landlock" => Some(Self::Only(Mechanism::Landlock)),
            "seatbelt" => Some(Self::Only(Mechanism::Seatbelt)),
            _ => None,
        }
    }
}

impl Support {
    /// Detects the mechanisms. `path` is the value of `PATH`. Starts `bwrap` or `sandbox-exec` once.
    #[must_use]
    pub fn detect(path: Option<&str>) -> Self {
        let seatbelt = cfg!(target_os = "macos").then(sandbox_exec);
        Self { landlock: landlock_version(), bubblewrap: bubblewrap(path), seatbelt }
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
        let seatbelt = || match &self.seatbelt {
            Some(found) => found.as_ref().map(|_| Mechanism::Seatbelt).map_err(Clone::clone),
            None => Err("Seatbelt needs macOS".to_owned()),
        };
        let bubblewrap = || self.bubblewrap.as_ref().map(|_| Mechanism::Bubblewrap).map_err(Clone::clone);
        match preference {
            Preference::Only(Mechanism::Bubblewrap) => bubblewrap(),
            Preference::Only(Mechanism::Landlock) => landlock(),
            Preference::Only(Mechanism::Seatbelt) => seatbelt(),
            Preference::Auto if self.seatbelt.is_some() => seatbelt(),
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
        return Err("bubblewrap needs Linux".to_owned());
    }
    let program = find(path).ok_or("bubblewrap (`bwrap`) is not installed")?;
    let arguments = ["--ro-bind", "/", "/", "--unshare-all", "--proc", "/proc", "--dev", "/dev", "true"];
    works("bubblewrap", &program, &arguments).map(|()| program)
}

fn sandbox_exec() -> Result<Utf8PathBuf, String> {
    let program = Utf8PathBuf::from(seatbelt::PROGRAM);
    works("sandbox-exec", &program, &["-p", "(version 1)(allow default)", "/usr/bin/true"]).map(|()| program)
}

/// Tries a program with arguments that end well where it works.
fn works(name: &str, program: &Utf8Path, arguments: &[&str]) -> Result<(), String> {
    match Command::new(program).args(arguments).stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(format!("{name} does not work here: {}", said.lines().next().unwrap_or("it gave no reason")))
        }
        Err(error) => Err(format!("{name} cannot be started: {error}")),
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
        let none = Support {
            landlock: 3,
            bubblewrap: Err("bubblewrap (`bwrap`) is not installed".to_owned()),
            seatbelt: None,
        };
        let why = none.choose(Preference::Auto).expect_err("nothing works");
        assert!(why.contains("not installed") && why.contains("version 3 of Landlock"), "{why}");
        let both = Support { landlock: 7, bubblewrap: Ok("/usr/bin/bwrap".into()), seatbelt: None };
        assert_eq!(both.choose(Preference::Auto), Ok(Mechanism::Bubblewrap));
        assert_eq!(both.choose(Preference::Only(Mechanism::Landlock)), Ok(Mechanism::Landlock));
        assert!(both.choose(Preference::Only(Mechanism::Seatbelt)).is_err_and(|why| why.contains("macOS")));
    }

    #[test]
    fn macos_has_seatbelt_only() {
        let support = |seatbelt| Support {
            landlock: 0,
            bubblewrap: Err("bubblewrap needs Linux".to_owned()),
            seatbelt: Some(seatbelt),
        };
        let works = support(Ok(seatbelt::PROGRAM.into()));
        assert_eq!(works.choose(Preference::Auto), Ok(Mechanism::Seatbelt));
        assert!(works.choose(Preference::Only(Mechanism::Bubblewrap)).is_err());
        let broken = support(Err("sandbox-exec does not work here: no".to_owned()));
        assert_eq!(broken.choose(Preference::Auto), Err("sandbox-exec does not work here: no".to_owned()));
    }
}
