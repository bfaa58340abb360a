//! The demo.

use cliq_testkit::env::Env;

#[test]
fn the_demo_fetches_and_publishes() {
    let env = Env::bare();
    env.cliq(["demo", "--pull", "demo"]).expect(0).says("COMPLETED").says("site/published/");
    let digest = env.read("demo/digest.md");
    assert!(digest.contains("| Darjeeling") && digest.contains("- Darjeeling"), "{digest}");
    let published = env.files("demo/site/published");
    assert!(
        matches!(&published[..], [one] if one.starts_with("digest-20") && one.ends_with(".md")),
        "{published:?}"
    );
    assert_eq!(env.read(&format!("demo/site/published/{}", published[0])), digest);
}
