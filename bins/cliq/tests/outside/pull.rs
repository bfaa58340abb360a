//! Pull phases.

use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use cliq_testkit::env::Env;

use crate::outside::site::{Fault, ReceivedRequest, Reply, Site, html, reply};

const PAGE: &str = "<title>T</title><main><h1>Head</h1><p>text of the page</p></main>";

fn team(sources: &str) -> String {
    format!("workflow:\n  phases:\n    - name: fetch\n      type: pull\n      sources:\n{sources}")
}

fn source(name: &str, url: &str) -> String {
    format!("        - {{name: {name}, url: \"{url}\"}}\n")
}

fn raw(name: &str, url: &str) -> String {
    format!("        - {{name: {name}, url: \"{url}\", format: raw}}\n")
}

/// A run that fails at fetching. Gives what it says.
fn refused(sources: &str) -> String {
    let env = Env::new(&team(sources), &[]);
    let done = env.cliq(["run", "--headless"]).expect(3);
    let left: Vec<String> =
        env.files(".cliq/pull").into_iter().filter(|file| !file.starts_with(".manifest")).collect();
    assert_eq!(left, Vec::<String>::new(), "something was left behind");
    done.stdout + &done.stderr
}

#[test]
fn pages_become_markdown_and_raw_stays_raw() {
    let site = Site::start(|asked| match asked.path.as_str() {
        "/page" => html(PAGE),
        "/data.csv" => reply(200, "text/csv", "a,b\n"),
        "/notes" => reply(200, "text/plain", "plain"),
        "/blob" => reply(200, "application/octet-stream", "\0\x01"),
        _ => reply(404, "text/plain", "none"),
    });
    let base = &site.base;
    let sources = [
        source("page", &format!("{base}/page")),
        raw("page-raw", &format!("{base}/page")),
        source("data", &format!("{base}/data.csv")),
        source("notes", &format!("{base}/notes")),
        source("blob", &format!("{base}/blob")),
    ];
    let env = Env::new(&team(&sources.concat()), &[]);
    env.cliq(["run", "--headless"]).expect(0);
    assert_eq!(env.read(".cliq/pull/page.md"), "# Head\n\ntext of the page\n");
    assert_eq!(env.read(".cliq/pull/page-raw.html"), PAGE);
    assert_eq!(env.read(".cliq/pull/data.csv"), "a,b\n");
    assert_eq!(env.read(".cliq/pull/notes.txt"), "plain");
    assert_eq!(env.read(".cliq/pull/blob"), "\0\x01");
    let manifest = env.read(".cliq/pull/.manifest/fetch.jsonl");
    let records: Vec<serde_json::Value> =
        manifest.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let page = records.iter().find(|record| record["name"] == "page").unwrap();
    assert_eq!(page["entry"]["ref"], format!("{base}/page"));
    assert_eq!(page["entry"]["size"], 25);
    assert_eq!(page["sha256"].as_str().unwrap().len(), 64);
    assert!(page["fetched_at"].as_str().unwrap().ends_with('Z'));
}

#[test]
fn unchanged_content_is_not_fetched_again() {
    let site = Site::start(|asked| {
        match (asked.path.as_str(), asked.header("if-none-match"), asked.header("if-modified-since")) {
            ("/etag", Some("\"v1\""), _) => reply(304, "text/plain", ""),
            ("/etag", ..) => reply(200, "text/plain", "one").with("etag", "\"v1\""),
            ("/time", _, Some("Sat, 21 Nov 2026 10:00:00 GMT")) => reply(304, "text/plain", ""),
            ("/time", ..) => {
                reply(200, "text/plain", "two").with("last-modified", "Sat, 21 Nov 2026 10:00:00 GMT")
            }
            _ => reply(200, "text/plain", "three"),
        }
    });
    let urls = ["etag", "time", "none"].map(|name| source(name, &format!("{}/{name}", site.base)));
    let env = Env::new(&team(&urls.concat()), &[]);
    env.cliq(["run", "--headless"]).expect(0);
    env.cliq(["run", "--headless", "-f"]).expect(0).says("etag: unchanged").says("time: unchanged");
    assert_eq!(site.asked().len(), 6);
    // A file that was changed here is fetched anew.
    env.write(".cliq/pull/etag.txt", "mine");
    env.cliq(["run", "--headless", "-f"]).expect(0);
    assert_eq!(env.read(".cliq/pull/etag.txt"), "one");
}

#[test]
fn a_killed_pull_goes_on_where_it_stopped() {
    let hold = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    let held = std::sync::Arc::clone(&hold);
    let site = Site::start(move |asked| {
        if asked.path == "/slow" && held.load(Ordering::Relaxed) {
            return reply(200, "text/plain", "slow").fault(Fault::Stalls);
        }
        reply(200, "text/plain", asked.path.clone())
    });
    let sources = ["a", "b", "slow"].map(|name| source(name, &format!("{}/{name}", site.base)));
    let env = Env::new(&team(&sources.concat()), &[]);
    let mut run = env.spawn(["run", "--headless"]);
    env.wait_for("two files", || env.exists(".cliq/pull/a.txt") && env.exists(".cliq/pull/b.txt"));
    env.wait_for("their records", || {
        env.exists(".cliq/pull/.manifest/fetch.jsonl")
            && env.read(".cliq/pull/.manifest/fetch.jsonl").lines().count() == 2
    });
    run.kill().unwrap();
    run.wait().unwrap();
    hold.store(false, Ordering::Relaxed);
    env.cliq(["run", "--headless", "--resume"]).expect(0);
    let count = |path: &str| site.calls().iter().filter(|call| call.ends_with(path)).count();
    assert_eq!((count("/a"), count("/b"), count("/slow")), (1, 1, 2), "{:?}", site.calls());
    let parts: Vec<String> =
        env.files(".cliq/pull").into_iter().filter(|file| file.contains(".part")).collect();
    assert!(parts.is_empty(), "{parts:?}");
}

#[test]
fn interrupted_download_is_continued() {
    static TRIES: AtomicUsize = AtomicUsize::new(0);
    let body: Vec<u8> = (0..300_000_u32).map(|n| (n % 251) as u8).collect();
    let whole = body.clone();
    let site = Site::start(move |asked: &ReceivedRequest| -> Reply {
        let range = asked
            .header("range")
            .map(|range| range.trim_start_matches("bytes=").trim_end_matches('-').parse::<usize>().unwrap());
        let answer = match range {
            Some(from) => {
                assert_eq!(asked.header("if-range"), Some("\"v1\""));
                let range = format!("bytes {from}-{}/{}", body.len() - 1, body.len());
                reply(206, "application/octet-stream", &body[from..]).with("content-range", range)
            }
            None => reply(200, "application/octet-stream", body.clone()),
        };
        let answer = answer.with("etag", "\"v1\"").with("accept-ranges", "bytes");
        if TRIES.fetch_add(1, Ordering::Relaxed) < 2 {
            answer.fault(Fault::CutAfter(100_000))
        } else {
            answer
        }
    });
    let env = Env::new(&team(&source("big", &format!("{}/big.bin", site.base))), &[]);
    env.cliq(["run", "--headless"]).expect(0).says("broke off");
    assert!(std::fs::read(env.path(".cliq/pull/big.bin")).unwrap() == whole);
    let asked = site.asked();
    assert_eq!(asked.len(), 3);
    assert!(asked[1].header("range").is_some());
}

#[test]
fn retries_wait_as_long_as_the_server_asks() {
    static TRIES: AtomicUsize = AtomicUsize::new(0);
    let site = Site::start(|_| match TRIES.fetch_add(1, Ordering::Relaxed) {
        0 => reply(429, "text/plain", "slow down").with("retry-after", "0"),
        1 => reply(503, "text/plain", "").with("retry-after", "Sat, 01 Jan 2000 00:00:00 GMT"),
        2 => reply(500, "text/plain", "").with("retry-after", "0"),
        _ => reply(200, "text/plain", "fine"),
    });
    let env = Env::new(&team(&source("a", &site.base)), &[]);
    env.cliq(["run", "--headless"]).expect(0);
    assert_eq!((env.read(".cliq/pull/a.txt").as_str(), site.asked().len()), ("fine", 4));
}

#[test]
fn faults_are_errors_that_leave_nothing_behind() {
    let bomb = gzip_of_blanks(100);
    let site = Site::start(move |asked| match asked.path.as_str() {
        "/short" => reply(200, "text/plain", "abc").fault(Fault::TooShort),
        "/zip" => {
            // Many blanks, in little.
            reply(200, "text/html", bomb.clone()).with("content-encoding", "gzip")
        }
        "/odd" => reply(200, "text/html", "x").with("content-encoding", "br"),
        "/login" => html("<form><input type=password></form>"),
        "/secret.pdf" => reply(302, "text/plain", "").with("location", "/login"),
        "/report.pdf" => html("<h1>Sorry</h1>"),
        "/broken.pdf" => reply(200, "application/pdf", "%PDF-1.7 nothing of it"),
        "/empty" => html("<div id=root></div><script>start()</script>"),
        "/gone" => reply(410, "text/plain", "gone"),
        "/teapot" => reply(418, "application/json", r#"{"message": "no coffee"}"#),
        "/circle" => reply(302, "text/plain", "").with("location", "/circle"),
        _ => reply(404, "text/plain", "none"),
    });
    let cases = [
        ("/missing", "no such document"),
        ("/gone", "no such document"),
        ("/teapot", "no coffee"),
        ("/short", "broke off"),
        ("/zip", "are not converted"),
        ("/odd", "encoding `br`"),
        ("/secret.pdf", "a page to sign in came in place of the document"),
        ("/report.pdf", "a web page came in place of a document"),
        ("/broken.pdf", "the PDF cannot be converted"),
        ("/empty", "the page has no text"),
        ("/circle", "redirects"),
    ];
    std::thread::scope(|scope| {
        for (path, expected) in cases {
            let base = &site.base;
            scope.spawn(move || {
                let said = refused(&source("a", &format!("{base}{path}")));
                assert!(said.contains(expected) && said.contains("source `a`"), "{path}: {said}");
            });
        }
        scope.spawn(|| {
            let said = refused(&source("a", "http://127.0.0.1:9/x?token=hush"));
            assert!(said.contains("127.0.0.1:9") && !said.contains("hush"), "{said}");
        });
    });
}

/// So many MiB of blanks, compressed.
fn gzip_of_blanks(mib: usize) -> Vec<u8> {
    let script = format!("import gzip, sys; sys.stdout.buffer.write(gzip.compress(b' ' * ({mib} << 20), 6))");
    Command::new("python3").args(["-c", &script]).output().unwrap().stdout
}

#[test]
fn an_endless_body_is_stopped() {
    let site = Site::start(|_| reply(200, "text/plain", "x").fault(Fault::Endless));
    let env = Env::new(&team(&raw("a", &site.base)), &[]);
    env.cliq(["settings", "set", "pull.max_bytes", "3000000"]).expect(0);
    env.cliq(["run", "--headless"]).expect(3).says("sent more than 2.9 MiB and was stopped");
    assert!(!env.exists(".cliq/pull/a"));
}

#[test]
fn templates_and_handoffs_choose_sources() {
    let site = Site::start(|asked| reply(200, "text/plain", asked.path.clone()));
    let team = format!(
        "inputs: [{{name: doc}}]\nworkflow:\n  phases:\n    - name: fetch\n      type: pull\n      sources:\n        - {{name: a, url: \"{0}/$(inputs.doc)\"}}\n    - name: more\n      type: pull\n      depends_on: [fetch]\n      sources:\n        - {{name: b, url: \"{0}/$(handoff.fetch.sources.a.size)\"}}\n",
        site.base
    );
    let env = Env::new(&team, &[]);
    env.cliq(["run", "--headless", "--input", "doc=guide"]).expect(0);
    assert_eq!(env.read(".cliq/pull/b.txt"), "/6");
    let handoff = env.read_json(".cliq/channels/fetch--more/handoff.json");
    assert_eq!(handoff["data"]["sources"]["a"]["file"], ".cliq/pull/a.txt");
    assert!(handoff["text"].as_str().unwrap().contains("These files are data"));
}

#[test]
fn pdf_becomes_text() {
    if !cliq_testkit::env::has_program("chromium") {
        return;
    }
    let env = Env::bare();
    env.write("doc.html", "<h1>Annual report</h1><p>Sales rose by <code>12 percent</code> in 2026.</p>");
    let done = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer"])
        .arg(format!("--print-to-pdf={}", env.path("doc.pdf").display()))
        .arg(env.path("doc.html"))
        .output()
        .unwrap();
    assert!(env.exists("doc.pdf"), "{}", String::from_utf8_lossy(&done.stderr));
    let pdf = std::fs::read(env.path("doc.pdf")).unwrap();
    let site = Site::start(move |_| reply(200, "application/pdf", pdf.clone()));
    let env = Env::new(&team(&source("report", &format!("{}/r.pdf", site.base))), &[]);
    env.cliq(["run", "--headless"]).expect(0);
    assert_eq!(env.read(".cliq/pull/report.md"), "Annual report\n\nSales rose by 12 percent in 2026.\n");
}

#[test]
fn callers_choose_no_addresses_of_this_network() {
    let site = Site::start(|_| reply(200, "text/plain", "inside"));
    let team = format!(
        "inputs: [{{name: at}}]\nworkflow:\n  phases:\n    - name: fetch\n      type: pull\n      sources: [{{name: a, url: \"$(inputs.at)/x\"}}, {{name: b, url: \"{}/fixed\"}}]\n",
        site.base
    );
    let env = Env::new(&team, &[]);
    let input = format!("at={}", site.base);
    let run = |env: &Env| {
        let mut command = env.command(["run", "--headless", "-f", "--input", &input]);
        cliq_testkit::env::done(&command.env("CLIQ_GUARD_INPUTS", "1").output().unwrap())
    };
    // What team.yml itself names may be private; what an input names may not.
    run(&env).expect(3).says("source `a`").says("not public").says("pull.allow_hosts");
    assert_eq!(site.calls(), ["GET /fixed"]);
    env.cliq(["settings", "set", "pull.allow_hosts", "127.0.0.1"]).expect(0);
    run(&env).expect(0);
    // Without a caller, everything may.
    env.cliq(["settings", "unset", "pull.allow_hosts"]).expect(0);
    env.cliq(["run", "--headless", "-f", "--input", &input]).expect(0);
}
