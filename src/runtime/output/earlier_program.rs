//! The program that this process executed before (`exec`), which has the same process id and so the same file names.

use crate::sys::process;
use std::path::Path;
use std::time::SystemTime;

/// Whether a file that exists was written after this process was started, and before devprof was `loaded`. Only for a file
/// whose name contains the process's id: another process may write any other.
pub fn has_written(path: &Path, loaded: SystemTime) -> bool {
    let age = |time: SystemTime| SystemTime::now().duration_since(time).unwrap_or_default();
    let modified = std::fs::metadata(path).and_then(|file| file.modified());
    modified.is_ok_and(|modified| {
        modified < loaded && process::age().is_some_and(|of| age(modified) < of)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_file_is_older_or_newer_than_the_process() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        let later = SystemTime::now() + Duration::from_secs(1);
        assert!(!has_written(&path, later));
        std::fs::write(&path, "").unwrap();
        assert!(has_written(&path, later));
        assert!(!has_written(&path, later - Duration::from_secs(3)));
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        let before = SystemTime::now() - process::age().unwrap() - Duration::from_secs(1);
        file.set_modified(before).unwrap();
        assert!(!has_written(&path, later));
    }
}
