//! Differential tests of the shell scanner: whatever it accepts passes values to the letter, with dash and with bash as `sh`.
//!
//! `CLIQ_SHELL_SCRIPTS=5000 cargo nextest run -p cliq-workflow -E 'test(random_scripts)'` tries more scripts.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use cliq_protocol::PhaseName;
use cliq_workflow::{ResolveError, Script, Values, resolve_script};
use serde_json::Value;

struct Facts(BTreeMap<String, String>);

impl Values for Facts {
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

fn resolve(script: &str, value: &str) -> Result<Script, ResolveError> {
    resolve_script(script, &Facts(BTreeMap::from([("n".to_owned(), value.to_owned())])))
}

/// The shells of this machine, each under the name `sh`.
fn shells(dir: &Path) -> Vec<PathBuf> {
    // `/bin` is a link to `/usr/bin` on most systems.
    let found = ["/bin/dash", "/bin/bash", "/usr/bin/dash", "/usr/bin/bash"].iter();
    let found = found.filter_map(|path| Path::new(path).canonicalize().ok()).collect::<BTreeSet<_>>();
    let mut shells = Vec::new();
    for path in found {
        let own = dir.join(path.to_string_lossy().replace('/', "_"));
        std::fs::create_dir_all(&own).expect("a directory");
        symlink(path, own.join("sh")).expect("a link");
        shells.push(own.join("sh"));
    }
    assert!(!shells.is_empty(), "neither dash nor bash is installed");
    shells
}

struct Outcome {
    stdout: String,
    stderr: String,
    is_success: bool,
}

fn run(shell: &Path, dir: &Path, script: &Script) -> Outcome {
    let output = Command::new(shell).arg("-c").arg(&script.text).envs(&script.env).current_dir(dir).output();
    let output = output.expect("a shell");
    Outcome {
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        is_success: output.status.success(),
    }
}

/// Values that a shell would change if it split, expanded or ran them. None ends in a line feed, which substitutions remove.
const VALUES: [&str; 9] = [
    "plain",
    "two  words",
    "*",
    "a'b\"c",
    "$(touch ran)",
    "`touch ran`",
    "x[$(touch ran)]",
    "line 1\nline  2",
    "~ {a,b} \\n ; & | # $HOME ${x} %s",
];

/// Tries a script in each shell with a value. `None` if the scanner refuses it.
fn try_script(source: &str, value: &str, shells: &[PathBuf]) -> Option<Vec<Outcome>> {
    let script = resolve(source, value).ok()?;
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("file"), "").expect("a file");
    std::fs::write(dir.path().join("other"), "").expect("a file");
    let outcomes = shells.iter().map(|shell| run(shell, dir.path(), &script)).collect();
    assert!(!dir.path().join("ran").exists(), "{source:?} ran {value:?} as {:?}", script.text);
    Some(outcomes)
}

#[test]
fn places_that_evaluate_or_split_are_refused() {
    for source in [
        "cat <<E\n$((1+$(inputs.n)))\nE",
        "echo $((1 + $(inputs.n)))",
        "echo $(( ((1)) + $(inputs.n) ))",
        "echo \"$(( (1) * $(inputs.n) ))\"",
        "s=abc; echo ${s:$(inputs.n)}",
        "s=abc; echo \"${s:1:$(inputs.n)}\"",
        "echo $[1+$(inputs.n)]",
        "cat <<E\n$[$(inputs.n)]\nE",
        "echo ${a[$(inputs.n)]}",
        "a[$(inputs.n)]=1",
        "x=abc; echo ${x#$(inputs.n)} ${x%%\"$(inputs.n)\"}",
        "echo ${x:=$(inputs.n)}",
        "echo ${x:=\"$(inputs.n)\"}",
        "echo ${x/$(inputs.n)/b}",
        "echo ${!x:-$(inputs.n)}",
        "echo \"`printf '[%s]' $(inputs.n)`\"",
        "cat <<E\n`echo $(inputs.n)`\nE",
        "echo `printf '%s\\n' \\`echo $(inputs.n)\\``",
        "x=\"$(case a in a) printf '[%s]' $(inputs.n) ;; esac)\"",
        "x=$(case a in a) printf '[%s]' $(inputs.n) ;; esac)",
        "echo '$(inputs.n)'",
        "cat <<'E'\n$(inputs.n)\nE",
        "cat <<$(inputs.n)\nx\n",
        "[[ $(inputs.n) -eq 1 ]] && echo a",
        "[[ -v $(inputs.n) ]]",
        "((x = 1 + $(inputs.n)))",
        "let x=$(inputs.n)",
        "cat <<E\na\\\nE\n$(inputs.n)\nE",
        "echo \"${x:-\"$(inputs.n)\"}\"",
        "echo $'a\\'b' $(inputs.n)",
    ] {
        let error = resolve(source, "1").expect_err(source).to_string();
        assert!(
            error.contains("`$(inputs.n)` cannot be used there") && error.contains("cliq team validate"),
            "{source}: {error}"
        );
    }
}

#[test]
fn values_arrive_to_the_letter_in_places_that_are_accepted() {
    let dir = tempfile::tempdir().expect("a directory");
    let shells = shells(dir.path());
    for (source, wanted) in [
        ("cat <<E\n$(printf '[%s]' $(inputs.n))\nE", "[@]\n"),
        ("cat <<E\n[$(inputs.n)] \"$(inputs.n)\" ${x:-$(inputs.n)}\nE", "[@] \"@\" @\n"),
        ("cat <<-E\n\t[$(inputs.n)]\n\tE\nprintf '[%s]' $(inputs.n)", "[@]\n[@]"),
        ("printf '[%s]' `printf '%s' $(inputs.n) | wc -l` > /dev/null; printf '%s' $(inputs.n)", "@"),
        ("x=`printf '%s' $(inputs.n)`; printf '[%s]' \"$x\"", "[@]"),
        ("printf '[%s]' \"$$(inputs.n)\"", "[$@]"),
        ("printf '[%s]' $$(inputs.n) \"a$$(inputs.n)b\"", "[$@][a$@b]"),
        ("printf '[%s]' \\$$(inputs.n)", "[$@]"),
        ("printf '[%s]' ${x:-$(inputs.n)} \"${x:-$(inputs.n)}\" ${x-\"$(inputs.n)\"}", "[@][@][@]"),
        ("x=1; printf '[%s]' ${x:+$(inputs.n)} \"${x:+a $(inputs.n)}\"", "[@][a @]"),
        ("printf '[%s]' \"${x:=$(inputs.n)}\"", "[@]"),
        ("printf '[%s]' \"$(printf '%s' \"$(inputs.n)\" )\"", "[@]"),
        ("case $(inputs.n) in $(inputs.n)) printf '[%s]' $(inputs.n) ;; esac", "[@]"),
        ("case a in a) printf '[%s]' $(inputs.n) ;; esac", "[@]"),
        ("(printf '[%s]' $(inputs.n)) # it's a comment\nprintf '[%s]' $(inputs.n)", "[@][@]"),
        ("printf '[%s]' $(true)#'x' $(inputs.n)", "[#x][@]"),
        ("for i in $(inputs.n); do printf '[%s]' \"$i\"; done", "[@]"),
        ("f() { printf '[%s]' \"$1\"; }; f $(inputs.n)", "[@]"),
        ("x=$((1 + (2))); printf '[%s]' \"$x\" $(inputs.n)", "[3][@]"),
        ("printf '[%s]' a\\\n$(inputs.n)", "[a@]"),
        ("x='a\\'; printf '[%s]' $(inputs.n)", "[@]"),
    ] {
        for value in VALUES {
            let outcomes =
                try_script(source, value, &shells).unwrap_or_else(|| panic!("{source:?} is refused"));
            for (outcome, shell) in outcomes.iter().zip(&shells) {
                assert!(outcome.is_success, "{source:?} in {shell:?} with {value:?}: {}", outcome.stderr);
                assert_eq!(outcome.stdout, wanted.replace('@', value), "{source:?} in {shell:?}");
            }
        }
    }
}

/// A generator of scripts: each template stands in a word that `show` prints, or in a place that must be refused.
struct Generator(u64);

impl Generator {
    fn pick(&mut self, below: u64) -> u64 {
        // xorshift: the scripts are the same in each run.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % below
    }

    fn one_of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[usize::try_from(self.pick(all.len() as u64)).unwrap_or(0)]
    }

    /// A word, with a value in it at times.
    fn word(&mut self, depth: u32) -> String {
        if depth == 0 {
            return self
                .one_of(&[
                    "a",
                    "$(inputs.n)",
                    "\"$(inputs.n)\"",
                    "b$(inputs.n)c",
                    "'q'",
                    "\\'",
                    "x#y",
                    "$x",
                    "$#",
                    "\"it's\"",
                    "'\"'",
                ])
                .to_owned();
        }
        let d = depth - 1;
        match self.pick(22) {
            0 => format!("\"{}\"", self.quoted(d)),
            1 => format!("$({})", self.command(d)),
            2 => format!("\"$({})\"", self.command(d)),
            3 => format!("${{x:-{}}}", self.word(d)),
            4 => format!("\"${{x:-{}}}\"", self.quoted(d)),
            5 => format!("`{}`", self.command(d)),
            6 => format!("\"`{}`\"", self.command(d)),
            7 => format!("$((1 + {}))", self.one_of(&["2", "$(inputs.n)", "(3)", "((1) + 2)", "$(echo 1)"])),
            8 => {
                format!("${{x{}{}}}", self.one_of(&["#", "%", ":", "=", ":=", "+", ":+", "?"]), self.word(d))
            }
            9 => format!("$[{}]", self.one_of(&["1", "$(inputs.n)"])),
            10 => format!("a[{}]", self.word(d)),
            11 => format!("$${}", self.one_of(&["$(inputs.n)", "x", "{x}"])),
            12 => format!("{}{}", self.word(d), self.word(d)),
            13 => format!("\\{}", self.one_of(&["a", "\"", "'", "$", "\\", "`", "\n"])),
            14 => format!("'{}'", self.one_of(&["a b", "\"", "`", "#", "$x", "\\", "(", ")"])),
            15 => "\"$$(inputs.n)\"".to_owned(),
            _ => self.word(0),
        }
    }

    /// Text within double quotes.
    fn quoted(&mut self, depth: u32) -> String {
        let part = match self.pick(8) {
            0 if depth > 0 => format!("$({})", self.command(depth - 1)),
            1 if depth > 0 => format!("${{x:-{}}}", self.quoted(depth - 1)),
            2 => self.one_of(&["'", "#", "(", ")", "\\\"", "\\\\", "a b", "$x", "$$"]).to_owned(),
            _ => "$(inputs.n)".to_owned(),
        };
        if self.pick(3) == 0 && depth > 0 { part + &self.quoted(depth - 1) } else { part }
    }

    fn command(&mut self, depth: u32) -> String {
        let d = depth.saturating_sub(1);
        match self.pick(16) {
            0 if depth > 0 => format!("({})", self.command(d)),
            1 if depth > 0 => format!("{{ {}; }}", self.command(d)),
            2 if depth > 0 => format!("case a in a) {} ;; esac", self.command(d)),
            3 if depth > 0 => format!("if true; then {}; fi", self.command(d)),
            4 if depth > 0 => format!("{} # it's\n", self.command(d)),
            5 if depth > 0 => format!("x={}; {}", self.word(d), self.command(d)),
            6 => format!("cat <<E\n{}\nE\n", self.here(d)),
            7 => format!("cat <<-'E'\n\tit's (\n\tE\nprintf '<%s>' {}", self.word(d)),
            8 if depth > 0 => format!("{}; {}", self.command(d), self.command(d)),
            9 if depth > 0 => format!("{} && {}", self.command(d), self.command(d)),
            _ => format!("printf '<%s>' {} {}", self.word(d), self.word(d)),
        }
    }

    fn here(&mut self, depth: u32) -> String {
        match self.pick(7) {
            0 => format!("$({})", self.command(depth)),
            1 => format!("${{x:-{}}}", self.quoted(depth)),
            2 => format!("$((1 + {}))", self.one_of(&["1", "$(inputs.n)"])),
            3 => format!("`{}`", self.command(depth)),
            4 => format!("it's \"{}\" \\$x", self.quoted(depth)),
            _ => format!("a {}", self.quoted(depth)),
        }
    }
}

/// A shell that is given a mark in place of the value shows the same text, with the mark: so nothing in the value had a meaning.
#[test]
fn random_scripts_show_each_value_to_the_letter() {
    let dir = tempfile::tempdir().expect("a directory");
    let shells = shells(dir.path());
    let count = std::env::var("CLIQ_SHELL_SCRIPTS").ok().and_then(|text| text.parse().ok()).unwrap_or(120);
    let mut generator = Generator(0x9e37_79b9_7f4a_7c15);
    let (mut tried, mut refused) = (0, 0);
    while tried < count {
        let depth = 1 + u32::try_from(generator.pick(4)).unwrap_or(0);
        let source = generator.command(depth);
        if !source.contains("$(inputs.n)") {
            continue;
        }
        let value = VALUES[usize::try_from(generator.pick(VALUES.len() as u64)).unwrap_or(0)];
        let Some(with_mark) = try_script(&source, "MARK", &shells) else {
            refused += 1;
            assert!(refused < 100 * count, "almost all scripts are refused");
            continue;
        };
        let Some(with_value) = try_script(&source, value, &shells) else { panic!("{source:?}") };
        for ((mark, outcome), shell) in with_mark.iter().zip(&with_value).zip(&shells) {
            // A script that no value makes work, such as one of another shell's syntax.
            if !mark.is_success {
                continue;
            }
            // `$$` is another number in each process.
            if source.replace("$(inputs.n)", "V").contains("$$") {
                continue;
            }
            // Unquoted substitutions of the script itself split the output of their commands, whatever it is.
            if splits_output(&source) {
                continue;
            }
            let wanted = mark.stdout.replace("MARK", value);
            let text = resolve(&source, value).expect("accepted").text;
            assert_eq!(
                outcome.stdout, wanted,
                "{shell:?} {value:?}\n--- source\n{source}\n--- script\n{text}\n--- errors\n{}",
                outcome.stderr
            );
            assert!(outcome.is_success, "{source:?} {value:?} {}", outcome.stderr);
        }
        tried += 1;
    }
    assert!(refused < 20 * count, "{refused} of {} scripts are refused", refused + tried);
}

/// Whether the author's own unquoted `$x`, `$( )` or backticks split text again.
fn splits_output(source: &str) -> bool {
    let own = source.replace("$(inputs.n)", "");
    own.contains("$(") || own.contains('`') || own.contains("$x") || own.contains("${x")
}

#[test]
fn long_scripts_take_linear_time() {
    // One pass: 500 KB take a moment; a second pass per construct would take minutes.
    for piece in [
        "$(",
        "$(inputs.",
        "$(inputs.n",
        "$(inputs.a ",
        "`",
        "\"",
        "'",
        "${x:-",
        "$((",
        "((",
        "<<E\n",
        "[[ ",
        "a[",
        "(",
        "$[",
        "\\",
        "case ",
        "$$(inputs.n)",
        "\"$(inputs.n)\" ",
    ] {
        let script = piece.repeat(500_000 / piece.len());
        let _ = resolve(&script, "v");
    }
}
