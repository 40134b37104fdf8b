//! Colors, on terminals that support them.

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use clap::ValueEnum;
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
    /// The text, in this color if `colored`.
    pub fn on(self, colored: bool, text: &str) -> String {
        let style = match self {
            Paint::Heading => Style::new().bold(),
            Paint::Good => AnsiColor::Green.on_default(),
            Paint::Warning => AnsiColor::Yellow.on_default().bold(),
            Paint::Error => AnsiColor::Red.on_default().bold(),
            Paint::Dim => Style::new().dimmed(),
        };
        if !colored {
            return text.to_owned();
        }
        format!("{style}{text}{style:#}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_color_option_is_found_without_clap() {
        let color = |line: &str| ColorWhen::from_arguments(line.split(' ').map(OsString::from));
        assert_eq!(color("devprof stats --color never"), ColorWhen::Never);
        assert_eq!(color("devprof --color=always stats"), ColorWhen::Always);
        assert_eq!(color("devprof run -- prog --color never"), ColorWhen::Auto);
        assert_eq!(color("devprof --color sometimes"), ColorWhen::Auto);
    }
}
