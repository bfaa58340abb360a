//! Metadata of the packages: complete for a registry, and inherited from the workspace.

use std::process::Command;

#[test]
fn manifests_have_the_metadata_of_the_workspace() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--locked"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    for package in metadata["packages"].as_array().unwrap() {
        let (name, path) = (&package["name"], package["manifest_path"].as_str().unwrap());
        let manifest = std::fs::read_to_string(path).unwrap();
        for field in ["version", "edition", "rust-version", "license", "repository", "keywords"] {
            let line = format!("{field}.workspace = true");
            assert!(manifest.lines().any(|l| l == line), "{path} lacks `{line}`");
        }
        assert!(package["repository"].as_str().is_some_and(|url| url.starts_with("https://")), "{name}");
        assert!(
            package["description"].as_str().is_some_and(|text| !text.is_empty()),
            "{name} has no description"
        );
        // Limits of crates.io.
        let keywords = package["keywords"].as_array().unwrap();
        assert!((1..=5).contains(&keywords.len()), "{name}: {keywords:?}");
        assert!(keywords.iter().all(|word| word.as_str().unwrap().len() <= 20), "{name}: {keywords:?}");
    }
}
