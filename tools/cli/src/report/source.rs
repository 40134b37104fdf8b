//! The sources: where they are now, and whether they are still what was compiled.

use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// More than this is no source that a person reads.
const MOST: u64 = 64 << 20;

/// A source file as it is now.
#[derive(Debug, Default, Serialize)]
pub struct Source {
    /// Where it was read, when that is not its path in the coverage mapping.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_from: Option<PathBuf>,
    /// Why it could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
    /// It was changed after the binary was made: lines may not be those that were compiled.
    pub changed_since: bool,
    #[serde(skip)]
    pub text: Option<String>,
}

/// How to find sources that are not where they were compiled.
#[derive(Debug, Default)]
pub struct Finder {
    /// What a path begins with, and what stands there instead.
    pub maps: Vec<(String, String)>,
    /// Directories that hold the sources' tree, or a part of it.
    pub roots: Vec<PathBuf>,
    /// When the newest binary was made.
    pub built: Option<SystemTime>,
}

impl Finder {
    pub fn find(&self, path: &str) -> Source {
        let found = self
            .candidates(path)
            .into_iter()
            .find(|candidate| candidate.is_file());
        let at = found.clone().unwrap_or_else(|| PathBuf::from(path));
        let mut source = Source {
            read_from: found.filter(|found| found != Path::new(path)),
            ..Source::default()
        };
        match read(&at) {
            Ok((text, changed)) => {
                source.text = Some(text);
                source.changed_since = changed
                    .zip(self.built)
                    .is_some_and(|(changed, built)| changed > built);
            }
            Err(why) => source.missing = Some(why),
        }
        source
    }

    /// Where a source may be, the likeliest first.
    fn candidates(&self, path: &str) -> Vec<PathBuf> {
        let mapped = self.maps.iter().filter_map(|(from, to)| {
            let rest = path.strip_prefix(from.as_str())?;
            // Of whole names: /src is not the beginning of /srcs/a.hip.
            let whole = from.ends_with('/') || rest.is_empty() || rest.starts_with('/');
            whole.then(|| PathBuf::from(format!("{to}{rest}")))
        });
        let mut candidates: Vec<PathBuf> = mapped.collect();
        let names: Vec<&str> = path
            .split('/')
            .filter(|name| !matches!(*name, "" | "." | ".."))
            .collect();
        for root in &self.roots {
            candidates.extend((0..names.len()).map(|first| root.join(names[first..].join("/"))));
        }
        candidates.push(PathBuf::from(path));
        candidates
    }
}

fn read(path: &Path) -> Result<(String, Option<SystemTime>), String> {
    let failed = |e: std::io::Error| e.to_string();
    let about = fs::metadata(path).map_err(failed)?;
    if !about.is_file() {
        return Err("it is no file".to_owned());
    }
    if about.len() > MOST {
        return Err(format!("it has {} bytes", about.len()));
    }
    let bytes = fs::read(path).map_err(failed)?;
    Ok((
        String::from_utf8_lossy(&bytes).into_owned(),
        about.modified().ok(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finder(dir: &Path) -> Finder {
        fs::create_dir_all(dir.join("lib/kernels")).unwrap();
        fs::write(dir.join("lib/kernels/a.hip"), "text").unwrap();
        Finder::default()
    }

    #[test]
    fn a_source_is_found_under_a_root_or_where_its_path_is_mapped() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("lib/kernels/a.hip");
        let mut by_root = finder(dir.path());
        assert!(by_root.find("/build/lib/kernels/a.hip").missing.is_some());
        by_root.roots.push(dir.path().to_owned());
        let found = by_root.find("/build/lib/kernels/a.hip");
        assert_eq!(
            (found.text.as_deref(), found.read_from),
            (Some("text"), Some(place.clone()))
        );
        let mut by_map = finder(dir.path());
        by_map
            .maps
            .push(("/build".to_owned(), dir.path().display().to_string()));
        assert_eq!(
            by_map.find("/build/lib/kernels/a.hip").read_from,
            Some(place)
        );
        assert!(by_map.find("/builds/lib/kernels/a.hip").missing.is_some());
    }

    #[test]
    fn a_source_that_is_newer_than_the_binary_is_said_to_be() {
        let dir = tempfile::tempdir().unwrap();
        let mut finder = finder(dir.path());
        finder.roots.push(dir.path().to_owned());
        finder.built = Some(SystemTime::UNIX_EPOCH);
        assert!(finder.find("a/lib/kernels/a.hip").changed_since);
        finder.built = Some(SystemTime::now() + std::time::Duration::from_secs(60));
        assert!(!finder.find("a/lib/kernels/a.hip").changed_since);
    }
}
