//! Reasons why a job cannot be started, in words that name the culprit.

use std::io;

use camino::Utf8Path;
use rustix::io::Errno;

use crate::launcher::Job;

/// Returns the error of the system with the part of the job that it is about, if that can be told.
pub(crate) fn explain(job: &Job, error: io::Error) -> io::Error {
    let kind = error.kind();
    let text = match Errno::from_io_error(&error) {
        Some(Errno::TOOBIG) => Some(too_big(job)),
        Some(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => missing(job, &error),
        _ if kind == io::ErrorKind::InvalidInput => with_nul(job),
        _ => None,
    };
    match text {
        Some(text) => io::Error::new(kind, text),
        None => error,
    }
}

/// Names the largest value that a process would have received.
fn too_big(job: &Job) -> String {
    let variables =
        job.env.iter().map(|(name, value)| (name.len() + value.len(), format!("the variable {name}")));
    let arguments = job.args.iter().map(|argument| (argument.len(), "an argument".to_owned()));
    let largest = variables.chain(arguments).max();
    let (size, what) = largest.unwrap_or((0, "the environment of cliq itself".to_owned()));
    format!(
        "its arguments and variables are larger than the system allows; the largest is {what} with {size} bytes: pass such data in a file"
    )
}

fn missing(job: &Job, error: &io::Error) -> Option<String> {
    if !job.dir.is_dir() {
        return Some(format!("its working directory {} does not exist or is not a directory", job.dir));
    }
    let program = Utf8Path::new(&job.program);
    if !program.as_str().contains('/') {
        return Some(format!("there is no program `{program}` on the PATH: install it, or write its path"));
    }
    let path = job.dir.join(program);
    if !path.exists() {
        return Some(format!("there is no file {path}"));
    }
    if !path.is_file() {
        return Some(format!("{path} is not a file"));
    }
    if error.kind() == io::ErrorKind::PermissionDenied {
        return Some(format!("{path} is not executable: `chmod +x` makes it so"));
    }
    Some(format!("the interpreter that the first line of {path} names does not exist"))
}

fn with_nul(job: &Job) -> Option<String> {
    let has_nul = |text: &str| text.contains('\0');
    if let Some((name, _)) = job.env.iter().find(|(name, value)| has_nul(name) || has_nul(value)) {
        return Some(format!("the variable {} contains a NUL character", name.replace('\0', "")));
    }
    let of_program = has_nul(&job.program) || job.args.iter().any(|argument| has_nul(argument));
    of_program.then(|| "an argument contains a NUL character".to_owned())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use camino::Utf8PathBuf;

    use super::*;
    use crate::process::{Terminal, spawn_job};

    fn job(dir: &Utf8Path, program: &str) -> Job {
        Job {
            title: "a".to_owned(),
            program: program.to_owned(),
            args: Vec::new(),
            env: BTreeMap::new(),
            dir: dir.to_owned(),
            stdin: None,
            log: dir.join("log"),
        }
    }

    fn reason(job: &Job) -> String {
        let error = spawn_job(job, Terminal::None).expect_err("it cannot start");
        error.to_string()
    }

    #[test]
    fn reasons_name_the_culprit() {
        let place = tempfile::tempdir().unwrap();
        let dir = Utf8PathBuf::from_path_buf(place.path().to_owned()).unwrap();
        let mut large = job(&dir, "/bin/sh");
        large.env =
            BTreeMap::from([("SMALL".to_owned(), "x".to_owned()), ("LARGE".to_owned(), "x".repeat(200_000))]);
        assert!(
            reason(&large).contains("the largest is the variable LARGE with 200005 bytes"),
            "{}",
            reason(&large)
        );
        let mut nul = job(&dir, "/bin/sh");
        nul.env.insert("ODD".to_owned(), "a\0b".to_owned());
        assert_eq!(reason(&nul), "the variable ODD contains a NUL character");
        assert!(
            reason(&job(&dir.join("gone"), "/bin/sh")).contains("gone does not exist or is not a directory")
        );
        assert!(
            reason(&job(&dir, "no-such-program-here"))
                .contains("no program `no-such-program-here` on the PATH")
        );
        assert!(reason(&job(&dir, "./gone")).contains("there is no file"));
        std::fs::write(dir.join("plain"), "#!/bin/sh\n").unwrap();
        assert!(reason(&job(&dir, "./plain")).contains("is not executable"));
        std::fs::write(dir.join("odd"), "#!/no/such/interpreter\n").unwrap();
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(dir.join("odd"), executable).unwrap();
        assert!(reason(&job(&dir, "./odd")).contains("interpreter that the first line"));
    }
}
