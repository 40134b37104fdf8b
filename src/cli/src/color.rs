//! Colors, on terminals that support them.

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use clap::ValueEnum;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::ffi::OsString;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ColorWhen {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    Always,
    Never,
}

impl ColorWhen {
    /// The value of `--color`, found without clap: clap's own messages have colors, too.
    fn from_arguments(arguments: impl Iterator<Item = OsString>) -> ColorWhen {
        let own = arguments.take_while(|argument| argument != "--");
        let own: Vec<String> = own
            .map(|argument| argument.to_string_lossy().into())
            .collect();
        let next = own.windows(2).filter(|two| two[0] == "--color");
        let value = next.map(|two| two[1].as_str());
        let joined = own.iter().filter_map(|one| one.strip_prefix("--color="));
        let last = value.chain(joined).next_back();
        last.and_then(|name| ColorWhen::from_str(name, false).ok())
            .unwrap_or_default()
    }

    /// For clap's own messages.
    pub fn for_clap(arguments: impl Iterator<Item = OsString>) -> clap::ColorChoice {
        match ColorWhen::from_arguments(arguments) {
            ColorWhen::Auto => clap::ColorChoice::Auto,
            ColorWhen::Always => clap::ColorChoice::Always,
            ColorWhen::Never => clap::ColorChoice::Never,
        }
    }

    pub fn streams(self) -> Colors {
        match self {
            ColorWhen::Auto => Colors {
                stdout: AutoStream::choice(&std::io::stdout()) != ColorChoice::Never,
                stderr: AutoStream::choice(&std::io::stderr()) != ColorChoice::Never,
            },
            ColorWhen::Always => Colors {
                stdout: true,
                stderr: true,
            },
            ColorWhen::Never => Colors::default(),
        }
    }
}

/// The streams that get colors.
#[derive(Clone, Copy, Debug, Default)]
pub struct Colors {
    pub stdout: bool,
    pub stderr: bool,
}

/// The meaning of a color.
#[derive(Clone, Copy, Debug)]
pub enum Paint {
    Heading,
    Good,
    Warning,
    Error,
    /// Less important than the text around it.
    Dim,
}

impl Paint {
    const ALL: [Paint; 5] = [
        Paint::Heading,
        Paint::Good,
        Paint::Warning,
        Paint::Error,
        Paint::Dim,
    ];

    fn style(self) -> Style {
        match self {
            Paint::Heading => Style::new().bold(),
            Paint::Good => AnsiColor::Green.on_default(),
            Paint::Warning => AnsiColor::Yellow.on_default().bold(),
            Paint::Error => AnsiColor::Red.on_default().bold(),
            Paint::Dim => Style::new().dimmed(),
        }
    }

    /// The text, in this color if `colored`.
    pub fn on(self, colored: bool, text: &str) -> String {
        let style = self.style();
        if !colored {
            return text.to_owned();
        }
        format!("{style}{text}{style:#}")
    }
}

/// The text with its control characters escaped, so that names in files do not control the terminal. Line feeds and tabs stay, and if
/// `colored`, the sequences of [`Paint`].
pub fn escaped(text: &str, colored: bool) -> Cow<'_, str> {
    if !text.chars().any(controls) {
        return Cow::Borrowed(text);
    }
    let sequences = Paint::ALL.iter().flat_map(|paint| {
        let style = paint.style();
        [format!("{style}"), format!("{style:#}")]
    });
    let mut sequences: Vec<String> = sequences.filter(|_| colored).collect();
    // A sequence may be the beginning of another.
    sequences.sort_by_key(|own| Reverse(own.len()));
    let mut escaped = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(char) = rest.chars().next() {
        if let Some(own) = sequences.iter().find(|own| rest.starts_with(*own)) {
            escaped.push_str(own);
            rest = &rest[own.len()..];
            continue;
        }
        if controls(char) {
            escaped.extend(char.escape_unicode());
        } else {
            escaped.push(char);
        }
        rest = &rest[char.len_utf8()..];
    }
    Cow::Owned(escaped)
}

/// Whether a character controls the terminal, or the direction of the text around it.
fn controls(char: char) -> bool {
    let is_layout = matches!(char, '\n' | '\t');
    let is_direction = matches!(char, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    is_direction || (char.is_control() && !is_layout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_sequences_reach_the_terminal() {
        let name = "a\u{1b}]0;title\u{7}\u{1b}[8m\u{9b}2J\u{202e}b\n\tc";
        let safe = "a\\u{1b}]0;title\\u{7}\\u{1b}[8m\\u{9b}2J\\u{202e}b\n\tc";
        for paint in Paint::ALL {
            let painted = escaped(&paint.on(true, name), true).into_owned();
            assert_eq!(painted, paint.on(true, safe));
            assert!(!escaped(&painted, false).contains('\u{1b}'));
        }
        assert_eq!(escaped(name, false), safe);
        assert!(matches!(
            escaped("größer\n", true),
            Cow::Borrowed("größer\n")
        ));
    }

    #[test]
    fn the_color_option_is_found_without_clap() {
        let color = |line: &str| ColorWhen::from_arguments(line.split(' ').map(OsString::from));
        assert_eq!(color("devprof stats --color never"), ColorWhen::Never);
        assert_eq!(color("devprof --color=always stats"), ColorWhen::Always);
        assert_eq!(color("devprof run -- prog --color never"), ColorWhen::Auto);
        assert_eq!(color("devprof --color sometimes"), ColorWhen::Auto);
    }
}
