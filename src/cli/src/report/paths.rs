//! Paths of sources, relative to a directory.

use super::model::{File, Report};

/// The directory that the paths of Cobertura and of annotations are relative to: the root of a GitHub workspace, or the
/// current directory, if it has any of the files. Otherwise the directory that all files have in common.
pub fn root(report: &Report) -> String {
    let here = std::env::current_dir();
    let here = here.map(|here| here.display().to_string()).ok();
    let workspace = std::env::var("GITHUB_WORKSPACE").ok();
    let mut candidates = workspace.into_iter().chain(here);
    let locations = || report.files.iter().map(File::location);
    let is_used = |root: &String| {
        let is_in = |path: &str| !path.starts_with('/') || is_below(root, path);
        !root.is_empty() && locations().any(is_in)
    };
    candidates.find(is_used).unwrap_or_else(|| {
        let common = common_directory(locations());
        common.strip_suffix('/').unwrap_or(common).to_owned()
    })
}

fn is_below(root: &str, path: &str) -> bool {
    let rest = path.strip_prefix(root.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.starts_with('/'))
}

/// The path relative to a directory, if it is below it.
pub fn below<'a>(root: &str, path: &'a str) -> &'a str {
    if !is_below(root, path) {
        return path;
    }
    path[root.trim_end_matches('/').len()..].trim_start_matches('/')
}

/// The directory that all paths have in common, including the final slash.
pub fn common_directory<'a>(mut paths: impl Iterator<Item = &'a str>) -> &'a str {
    let first = paths.next().unwrap_or_default();
    let directory = |path: &str| path.rfind('/').map_or(0, |slash| slash + 1);
    let mut length = directory(first);
    for path in paths {
        let pairs = first.bytes().zip(path.bytes());
        let same = pairs.take_while(|(a, b)| a == b).count();
        let mut same = first.as_bytes()[..same].iter();
        let slash = same.rposition(|&byte| byte == b'/');
        length = length.min(slash.map_or(0, |slash| slash + 1));
    }
    &first[..length]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_to_complete_directories() {
        assert_eq!(below("/work/a", "/work/a/b.hip"), "b.hip");
        assert_eq!(below("/work/a/", "/work/a/b.hip"), "b.hip");
        assert_eq!(below("/work/a", "/work/ab/c.hip"), "/work/ab/c.hip");
        assert_eq!(below("/", "/work/c.hip"), "work/c.hip");
        let common = |paths: &[&'static str]| common_directory(paths.iter().copied());
        assert_eq!(common(&["/a/bc/d", "/a/be/f"]), "/a/");
        assert_eq!(common(&["/a/b"]), "/a/");
        assert_eq!(common(&[]), "");
    }
}
