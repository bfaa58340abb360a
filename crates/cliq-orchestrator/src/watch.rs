//! Notification of changes of files, on Linux on the runtime's own threads: no other thread has to wake up.

#[cfg(target_os = "linux")]
mod inotify;
#[cfg(not(target_os = "linux"))]
mod portable;

#[cfg(target_os = "linux")]
pub use inotify::DirectoryWatch;
#[cfg(not(target_os = "linux"))]
pub use portable::DirectoryWatch;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use camino::{Utf8Path, Utf8PathBuf};
    use tokio::sync::mpsc;

    use super::*;

    async fn next(changes: &mut mpsc::UnboundedReceiver<Option<Utf8PathBuf>>) -> Option<Utf8PathBuf> {
        let change = tokio::time::timeout(Duration::from_secs(10), changes.recv()).await;
        change.expect("a change").expect("the watch lives")
    }

    #[tokio::test]
    async fn files_of_each_watched_directory_are_told() {
        let place = tempfile::tempdir().expect("a directory");
        let place = Utf8Path::from_path(place.path()).expect("text");
        let dirs = ["a", "b"].map(|name| place.join(name));
        let (sender, mut changes) = mpsc::unbounded_channel();
        let watch = DirectoryWatch::new(move |file| drop(sender.send(file.map(Utf8Path::to_owned))));
        let watch = watch.expect("a watch");
        for dir in &dirs {
            std::fs::create_dir(dir).expect("made");
            watch.add(dir).expect("watched");
        }
        for file in [dirs[0].join("x"), dirs[1].join("y"), dirs[0].join("x")] {
            cliq_fs::append_line(&file, b"line\n").expect("written");
            while next(&mut changes).await.as_ref() != Some(&file) {}
        }
        watch.remove(&dirs[0]);
        cliq_fs::append_line(&dirs[0].join("silent"), b"line\n").expect("written");
        let (from, to) = (place.join("elsewhere"), dirs[1].join("moved"));
        std::fs::write(&from, "").expect("written");
        std::fs::rename(from, &to).expect("moved");
        loop {
            let file = next(&mut changes).await.expect("a file");
            assert_ne!(file, dirs[0].join("silent"));
            if file == to {
                break;
            }
        }
    }

    #[tokio::test]
    async fn link_that_replaces_a_file_is_told() {
        let place = tempfile::tempdir().expect("a directory");
        let dir = Utf8Path::from_path(place.path()).expect("text");
        let (sender, mut changes) = mpsc::unbounded_channel();
        let watch = DirectoryWatch::new(move |file| drop(sender.send(file.map(Utf8Path::to_owned))));
        let watch = watch.expect("a watch");
        watch.add(dir).expect("watched");
        std::os::unix::fs::symlink("/dev/zero", dir.join("link")).expect("made");
        assert_eq!(next(&mut changes).await, Some(dir.join("link")));
    }

    #[tokio::test]
    async fn a_directory_that_goes_is_forgotten_and_may_come_back() {
        let place = tempfile::tempdir().expect("a directory");
        let dir = Utf8Path::from_path(place.path()).expect("text").join("a");
        let (sender, mut changes) = mpsc::unbounded_channel();
        let watch = DirectoryWatch::new(move |file| drop(sender.send(file.map(Utf8Path::to_owned))));
        let watch = watch.expect("a watch");
        for name in ["one", "two"] {
            std::fs::create_dir(&dir).expect("made");
            watch.add(&dir).expect("watched");
            cliq_fs::append_line(&dir.join(name), b"line\n").expect("written");
            while next(&mut changes).await != Some(dir.join(name)) {}
            std::fs::remove_dir_all(&dir).expect("removed");
        }
        assert!(watch.add(&dir).is_err(), "a directory that is not there cannot be watched");
        watch.remove(&dir);
    }
}
