//! Finding markers in 10 MB, beside the least that it could take: finding the ends of lines, and one regular expression
//! for the names at the starts of lines.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark, for whoever runs it")]

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Instant;

use cliq_markers::{MarkerKind, scan};

fn main() {
    if std::env::args().any(|arg| arg == "--list") {
        return;
    }
    let mut text = String::new();
    let mut n = 0;
    while text.len() < 10 << 20 {
        n += 1;
        match n % 500 {
            0 => {
                let kind = MarkerKind::all().nth(n / 500 % 19).unwrap();
                text.push_str(&kind.format());
            }
            n if n % 7 == 0 => text.push_str("    let value = compute(&input)?; // indented code\n"),
            n if n % 50 == 1 => text.push_str("```rust\nfn main() {}\n```\n"),
            _ => {
                let _ = writeln!(
                    text,
                    "The agent explains at some length what it has done in step {n}, and why it is so."
                );
            }
        }
    }
    let names: Vec<String> = MarkerKind::all().map(|kind| regex::escape(kind.name())).collect();
    let names = regex::Regex::new(&format!("(?m)^(?:{})", names.join("|"))).unwrap();
    let floor = median(|| {
        black_box(memchr::memchr_iter(b'\n', text.as_bytes()).count());
        black_box(names.find_iter(&text).count());
    });
    let seconds = median(|| drop(black_box(scan(&text))));
    let found = scan(&text).markers.len();
    println!(
        "{{\"what\":\"markers in {} MB ({found} found) beside newlines and one regular expression\",\"seconds\":{seconds:.4},\"floor\":{floor:.4},\"ratio\":{:.2}}}",
        text.len() >> 20,
        seconds / floor
    );
    let double = text.repeat(2);
    let twice = median(|| drop(black_box(scan(&double))));
    println!(
        "{{\"what\":\"markers in twice as much\",\"seconds\":{twice:.4},\"ratio\":{:.2}}}",
        twice / seconds
    );
}

fn median(mut work: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..9)
        .map(|_| {
            let started = Instant::now();
            work();
            started.elapsed().as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[4]
}
