//! Which source files the report includes.

use anyhow::Context;
use clap::Args;
use glob::Pattern;
use regex::Regex;

#[derive(Args, Debug, Default)]
#[group(skip)]
pub struct Options {
    /// Leave out source files whose path matches this regular expression; can be repeated
    ///
    /// The path as it was compiled, or after --path-map and --sources-from. The expression can match any part of it.
    #[arg(long, value_name = "REGEX", value_parser = Regex::new)]
    ignore_filename_regex: Vec<Regex>,
    /// Include only source files that match this pattern (*, ?, [a-z]); can be repeated
    ///
    /// * also matches slashes. A pattern that does not begin with a slash matches the end of a path: 'src/*'
    #[arg(long, value_name = "GLOB", value_parser = Pattern::new)]
    include: Vec<Pattern>,
}

/// The files to include.
#[derive(Debug, Default)]
pub struct Select<'a> {
    ignored: &'a [Regex],
    included: Vec<Pattern>,
}

impl Options {
    pub fn is_empty(&self) -> bool {
        self.include.is_empty() && self.ignore_filename_regex.is_empty()
    }

    pub fn select(&self) -> anyhow::Result<Select<'_>> {
        let mut included = Vec::new();
        for pattern in &self.include {
            included.push(pattern.clone());
            if !pattern.as_str().starts_with('/') {
                let below = format!("*/{pattern}");
                included.push(Pattern::new(&below).context("--include")?);
            }
        }
        Ok(Select {
            ignored: &self.ignore_filename_regex,
            included,
        })
    }
}

impl Select<'_> {
    /// Whether the report includes a file. `location` is its path after `--path-map` and `--sources-from`.
    pub fn includes(&self, path: &str, location: &str) -> bool {
        let paths = [path, location];
        let any = |matches: &dyn Fn(&str) -> bool| paths.into_iter().any(matches);
        let is_included = self.included.is_empty()
            || any(&|path| self.included.iter().any(|pattern| pattern.matches(path)));
        is_included && !any(&|path| self.ignored.iter().any(|regex| regex.is_match(path)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_selected_by_either_path() {
        let options = Options {
            ignore_filename_regex: vec![Regex::new("/test/|_gen\\.h$").unwrap()],
            include: vec![
                Pattern::new("src/*").unwrap(),
                Pattern::new("/opt/*.h").unwrap(),
            ],
        };
        let select = options.select().unwrap();
        assert!(select.includes("/build/src/a.hip", "/build/src/a.hip"));
        assert!(select.includes("src/deep/a.hip", "src/deep/a.hip"));
        assert!(select.includes("/build/x.hip", "src/x.hip"));
        assert!(select.includes("/opt/rocm/include/a.h", "/opt/rocm/include/a.h"));
        assert!(!select.includes("/build/xsrc/a.hip", "/build/xsrc/a.hip"));
        assert!(!select.includes("/build/src/test/a.hip", "a.hip"));
        assert!(!select.includes("/build/src/a_gen.h", "/build/src/a_gen.h"));
        assert!(Select::default().includes("any", "any"));
    }
}
