//! Values of templates on their way to a shell: in its environment while they are small, otherwise in files that the shell reads.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use camino::Utf8Path;
use cliq_fs::{FsError, IoContext, PrivateFile};
use cliq_workflow::Script;

/// Maximum size of a value in the environment, in bytes. Linux refuses variables of 128 KiB.
const VALUE_LIMIT: usize = 64 << 10;
/// Maximum size of all values in the environment, in bytes. Systems refuse environments of 2 MiB, some smaller ones.
const SUM_LIMIT: usize = 256 << 10;

/// A script that can be started with values of any size.
pub(super) struct PreparedScript {
    /// Text for `sh -c`.
    pub(super) text: String,
    /// Variables of the small values.
    pub(super) env: BTreeMap<String, String>,
    /// Files of the large values. They are removed when the script is dropped.
    _files: Vec<PrivateFile>,
}

/// Writes the large values of a script to private files in `dir`, and lets the script read them first.
///
/// # Errors
/// Returns an error if a file cannot be written.
pub(super) fn prepare(script: Script, dir: &Utf8Path) -> Result<PreparedScript, FsError> {
    let sizes: BTreeMap<&str, usize> =
        script.env.iter().map(|(name, value)| (name.as_str(), value.len())).collect();
    let large: Vec<String> = large_values(&sizes).into_iter().map(str::to_owned).collect();
    let (mut env, mut prologue, mut files) = (script.env, String::new(), Vec::new());
    for name in large {
        let Some(value) = env.remove(&name) else { continue };
        let file = PrivateFile::write(dir, value.as_bytes())?;
        let template = script.templates.get(&name).map_or(name.as_str(), String::as_str);
        prologue.push_str(&reading(&name, file.path().at("write", dir)?, template));
        files.push(file);
    }
    let text = if prologue.is_empty() { script.text } else { prologue + &script.text };
    Ok(PreparedScript { text, env, _files: files })
}

/// Names of the values that do not fit into the environment: those over the limit of one, then the largest ones until the
/// others are within the limit of all.
fn large_values<'a>(sizes: &BTreeMap<&'a str, usize>) -> BTreeSet<&'a str> {
    let mut by_size: Vec<(usize, &str)> = sizes.iter().map(|(&name, &size)| (size, name)).collect();
    by_size.sort_unstable_by(|a, b| b.cmp(a));
    let mut sum: usize = by_size.iter().map(|(size, _)| size).sum();
    let mut large = BTreeSet::new();
    for (size, name) in by_size {
        if size <= VALUE_LIMIT && sum <= SUM_LIMIT {
            break;
        }
        sum -= size;
        large.insert(name);
    }
    large
}

/// Returns the command that reads a variable from a file to the letter, trailing newlines included. It stands on the script's
/// own first line, so that the shell's messages name the right lines.
fn reading(name: &str, file: &Utf8Path, template: &str) -> String {
    let (file, message) =
        (quoted(file.as_str()), quoted(&format!("cliq: cannot read the value of {template}")));
    let mut text = String::new();
    let _ = write!(
        text,
        "{name}=$(cat {file} && printf x) || {{ printf '%s\\n' {message} >&2; exit 126; }}; {name}=${{{name}%x}}; "
    );
    text
}

/// Returns a text as one word of a shell script.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use cliq_protocol::PhaseName;
    use cliq_workflow::{Values, resolve_script};
    use serde_json::Value;

    use super::*;

    /// Inputs `a`, `b` and so on.
    struct Inputs(BTreeMap<String, String>);

    impl Values for Inputs {
        fn input(&self, key: &str) -> Option<String> {
            self.0.get(key).cloned()
        }
        fn handoff(&self, _: &PhaseName) -> Result<Value, String> {
            Err("none".to_owned())
        }
        fn item(&self) -> Option<Value> {
            None
        }
        fn index(&self) -> Option<u32> {
            None
        }
        fn team_name(&self) -> String {
            String::new()
        }
        fn date(&self) -> String {
            String::new()
        }
        fn timestamp(&self) -> String {
            String::new()
        }
        fn phase(&self) -> String {
            String::new()
        }
        fn run_id(&self) -> String {
            String::new()
        }
    }

    fn inputs(values: &[(&str, String)]) -> Inputs {
        Inputs(values.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect())
    }

    #[test]
    fn values_over_a_limit_leave_the_environment() {
        let large = |sizes: &[(&'static str, usize)]| -> Vec<&str> {
            large_values(&sizes.iter().copied().collect()).into_iter().collect()
        };
        assert_eq!(large(&[("a", VALUE_LIMIT), ("b", 0)]), [""; 0]);
        assert_eq!(large(&[("a", VALUE_LIMIT + 1), ("b", 7)]), ["a"]);
        // Four fit exactly; of five, the largest goes.
        let k64 = VALUE_LIMIT;
        assert_eq!(large(&[("a", k64), ("b", k64), ("c", k64), ("d", k64)]), [""; 0]);
        assert_eq!(large(&[("a", k64), ("b", k64), ("c", k64), ("d", k64 - 1), ("e", 2)]), ["c"]);
    }

    /// A value with everything that shells treat in a special way, and newlines at its end.
    fn awkward(size: usize) -> String {
        let line = "a 'b' \"c\" `d` $(e) ${f} \\g * ? ~ ; & | < > # ! % é 語 \t.\n";
        let mut text = line.repeat(size / line.len() + 1);
        text.push_str("\n\n");
        text
    }

    /// Shells of this machine. `sh` is always there.
    fn shells() -> Vec<&'static str> {
        let is_there = |shell: &&str| Command::new(*shell).args(["-c", "true"]).output().is_ok();
        ["sh", "dash", "bash"].into_iter().filter(is_there).collect()
    }

    #[test]
    fn large_values_reach_the_shell_to_the_letter_in_each_context() {
        let dir = tempfile::tempdir().unwrap();
        // The shell must quote the path.
        let place = Utf8Path::from_path(dir.path()).unwrap().join("it's a `place`");
        std::fs::create_dir(&place).unwrap();
        let value = awkward(1 << 20);
        let values = inputs(&[("a", value.clone())]);
        let scripts = [
            "printf %s $(inputs.a)",
            "printf %s \"$(inputs.a)\"",
            "printf %s \"${none:-$(inputs.a)}\"",
            "x=$(inputs.a); printf %s \"$x\"",
            "printf %s \"$(printf '%s.' $(inputs.a))\" | head -c -1",
            "x=`printf '%s.' \"$(inputs.a)\"`; printf %s \"${x%.}\"",
            "cat <<END | head -c -1\n$(inputs.a)\nEND",
            "( printf %s $(inputs.a) )",
            "f() { printf %s \"$1\"; }; f $(inputs.a)",
            "case $(inputs.a) in a*) printf %s $(inputs.a);; esac",
        ];
        for shell in shells() {
            for script in scripts {
                let prepared = prepare(resolve_script(script, &values).unwrap(), &place).unwrap();
                assert!(prepared.env.is_empty());
                let mut command = Command::new(shell);
                let output = command.args(["-euc", &prepared.text]).envs(&prepared.env).output().unwrap();
                let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
                assert!(output.status.success(), "{shell}: {script}: {stderr}");
                assert!(
                    output.stdout == value.as_bytes(),
                    "{shell}: {script}: {} bytes",
                    output.stdout.len()
                );
            }
        }
        assert_eq!(std::fs::read_dir(&place).unwrap().count(), 0, "the files are removed");
    }

    #[test]
    fn small_and_large_values_mix() {
        let dir = tempfile::tempdir().unwrap();
        let place = Utf8Path::from_path(dir.path()).unwrap();
        let values = inputs(&[("a", "x".repeat(VALUE_LIMIT + 1)), ("b", "small".to_owned())]);
        let script = resolve_script("printf %s $(inputs.a) | wc -c; echo $(inputs.b)", &values).unwrap();
        let prepared = prepare(script, place).unwrap();
        assert_eq!(prepared.env.values().collect::<Vec<_>>(), ["small"]);
        let output = Command::new("sh").args(["-c", &prepared.text]).envs(&prepared.env).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text.split_whitespace().collect::<Vec<_>>(), ["65537", "small"]);
    }

    #[test]
    fn lost_value_fails_the_command_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let place = Utf8Path::from_path(dir.path()).unwrap();
        let values = inputs(&[("a", "x".repeat(VALUE_LIMIT + 1))]);
        let mut prepared = prepare(resolve_script("echo ran $(inputs.a)", &values).unwrap(), place).unwrap();
        prepared._files.clear();
        let output = Command::new("sh").args(["-c", &prepared.text]).output().unwrap();
        assert_eq!(output.status.code(), Some(126));
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(stderr.contains("cliq: cannot read the value of $(inputs.a)"), "{stderr}");
        assert!(output.stdout.is_empty());
    }
}
