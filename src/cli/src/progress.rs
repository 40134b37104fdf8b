//! Progress bars on stderr.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar for `length` steps, which is hidden unless stderr is a terminal. `template` is indicatif's.
pub fn bar(length: u64, template: &str) -> ProgressBar {
    let bar = ProgressBar::new(length);
    // With an invalid template the bar keeps its default style.
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
