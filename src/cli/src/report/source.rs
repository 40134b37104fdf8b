//! Finds and reads the sources, and checks whether they were changed since they were compiled.

use anyhow::bail;
use schemars::JsonSchema;
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Larger files are not read.
const MAX_SIZE: u64 = 64 << 20;

/// A source file.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Source {
    /// The path after `--path-map` and `--sources-from`: where it was found, or else as the first matching map gives it.
    pub location: String,
    /// Where it was read, if that is not its path in the coverage mapping.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_from: Option<PathBuf>,
    /// Why it could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
    /// It is outside of the working tree and of the directories that were named, so it was not read.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub outside: bool,
    /// It was changed after the binary was built, so its lines may not be those that were compiled.
    pub changed_since: bool,
    #[serde(skip)]
    pub text: Option<String>,
}

/// Finds sources. Only those in the trees are read: a report may be published, and the binary names the paths.
#[derive(Debug, Default)]
pub struct Finder {
    /// The directories from which sources may be read, resolved.
    trees: Vec<PathBuf>,
    /// Prefixes of paths, and their replacements.
    pub maps: Vec<(String, String)>,
    /// Directories with the source tree or a part of it.
    pub roots: Vec<PathBuf>,
    /// When the newest binary was built.
    pub build_time: Option<SystemTime>,
}

/// The working tree: the git tree that contains the current directory, or else this directory.
pub fn working_tree() -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?.canonicalize().ok()?;
    let tree = here.ancestors().find(|dir| dir.join(".git").exists());
    Some(tree.unwrap_or(&here).to_owned())
}

impl Finder {
    /// Sources may be in the working tree, in the roots, and where the maps lead.
    pub fn new(
        maps: Vec<(String, String)>,
        roots: Vec<PathBuf>,
        build_time: Option<SystemTime>,
    ) -> Finder {
        let targets = maps.iter().map(|(_, to)| PathBuf::from(to));
        let named = roots.iter().cloned().chain(targets);
        let named = named.filter_map(|dir| dir.canonicalize().ok());
        Finder {
            trees: named.chain(working_tree()).collect(),
            maps,
            roots,
            build_time,
        }
    }

    /// Whether a file may be read. Links are followed first.
    fn may_read(&self, path: &Path) -> bool {
        let resolved = path.canonicalize();
        resolved.is_ok_and(|path| self.trees.iter().any(|tree| path.starts_with(tree)))
    }

    pub fn find(&self, path: &str) -> Source {
        let candidates = self.candidates(path);
        let found = candidates.iter().find(|candidate| candidate.is_file());
        let elsewhere = found.filter(|found| *found != Path::new(path));
        let location = match elsewhere {
            Some(found) => found.display().to_string(),
            // A map also applies if its target does not exist here.
            None => self.mapped(path).next().unwrap_or_else(|| path.to_owned()),
        };
        let mut source = Source {
            location: location.trim_start_matches("./").to_owned(),
            read_from: elsewhere.cloned(),
            ..Source::default()
        };
        let file = found.map_or(Path::new(path), PathBuf::as_path);
        if found.is_some() && !self.may_read(file) {
            source.outside = true;
            return source;
        }
        match read(file) {
            Ok((text, changed)) => {
                source.text = Some(text);
                source.changed_since = changed
                    .zip(self.build_time)
                    .is_some_and(|(changed, built)| changed > built);
            }
            Err(error) => source.missing = Some(error.to_string()),
        }
        source
    }

    /// The path with each prefix that matches replaced.
    fn mapped<'a>(&'a self, path: &'a str) -> impl Iterator<Item = String> + 'a {
        self.maps.iter().filter_map(move |(from, to)| {
            let rest = path.strip_prefix(from.as_str())?;
            // The prefix must consist of complete names: /src is not a prefix of /srcs/a.hip.
            let is_prefix = from.ends_with('/') || rest.is_empty() || rest.starts_with('/');
            is_prefix.then(|| format!("{to}{rest}"))
        })
    }

    /// The paths at which a source may be, most likely first.
    fn candidates(&self, path: &str) -> Vec<PathBuf> {
        let mut candidates: Vec<PathBuf> = self.mapped(path).map(PathBuf::from).collect();
        let names = path.split('/');
        let names = names.filter(|name| !matches!(*name, "" | "." | ".."));
        let names: Vec<&str> = names.collect();
        for root in &self.roots {
            candidates.extend((0..names.len()).map(|first| root.join(names[first..].join("/"))));
        }
        candidates.push(PathBuf::from(path));
        candidates
    }
}

/// The text of a file, and when it was changed.
fn read(path: &Path) -> anyhow::Result<(String, Option<SystemTime>)> {
    let metadata = fs::metadata(path)?;
    if !metadata.is_file() {
        bail!("not a regular file");
    }
    if metadata.len() > MAX_SIZE {
        bail!("too large: {} bytes", metadata.len());
    }
    let text = String::from_utf8_lossy(&fs::read(path)?).into_owned();
    Ok((text, metadata.modified().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finder(dir: &Path) -> Finder {
        fs::create_dir_all(dir.join("lib/kernels")).unwrap();
        fs::write(dir.join("lib/kernels/a.hip"), "text").unwrap();
        Finder {
            trees: vec![dir.canonicalize().unwrap()],
            ..Finder::default()
        }
    }

    #[test]
    fn a_source_outside_of_the_trees_is_not_read() {
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let finder = finder(dir.path());
        let secret = other.path().join("secret");
        fs::write(&secret, "secret").unwrap();
        std::os::unix::fs::symlink(&secret, dir.path().join("link")).unwrap();
        let paths = [
            secret,
            dir.path().join("link"),
            dir.path().join("../secret"),
        ];
        for path in &paths[..2] {
            let source = finder.find(path.to_str().unwrap());
            assert!(source.outside && source.text.is_none() && source.missing.is_none());
        }
        let inside = finder.find(dir.path().join("lib/kernels/a.hip").to_str().unwrap());
        assert_eq!(inside.text.as_deref(), Some("text"));
        // Naming the directory permits it.
        let asked = Finder::new(Vec::new(), vec![other.path().to_owned()], None);
        let source = asked.find(paths[0].to_str().unwrap());
        assert_eq!(source.text.as_deref(), Some("secret"));
    }

    #[test]
    fn sources_are_found_in_roots_and_by_path_maps() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lib/kernels/a.hip");
        let mut by_root = finder(dir.path());
        assert!(by_root.find("/build/lib/kernels/a.hip").missing.is_some());
        by_root.roots.push(dir.path().to_owned());
        let found = by_root.find("/build/lib/kernels/a.hip");
        assert_eq!(found.text.as_deref(), Some("text"));
        assert_eq!(found.read_from.as_ref(), Some(&path));
        let mut by_map = finder(dir.path());
        let target = dir.path().display().to_string();
        by_map.maps.push(("/build".to_owned(), target.clone()));
        let found = by_map.find("/build/lib/kernels/a.hip");
        assert_eq!(found.read_from, Some(path));
        let other = by_map.find("/builds/lib/kernels/a.hip");
        assert!(other.missing.is_some());
        assert_eq!(other.location, "/builds/lib/kernels/a.hip");
        // The map also applies to sources that do not exist here.
        let missing = by_map.find("/build/lib/none.hip");
        assert!(missing.missing.is_some() && missing.read_from.is_none());
        assert_eq!(missing.location, format!("{target}/lib/none.hip"));
    }

    #[test]
    fn a_source_that_is_newer_than_the_binary_is_marked() {
        let dir = tempfile::tempdir().unwrap();
        let mut finder = finder(dir.path());
        finder.roots.push(dir.path().to_owned());
        finder.build_time = Some(SystemTime::UNIX_EPOCH);
        assert!(finder.find("a/lib/kernels/a.hip").changed_since);
        finder.build_time = Some(SystemTime::now() + std::time::Duration::from_secs(60));
        assert!(!finder.find("a/lib/kernels/a.hip").changed_since);
    }
}
