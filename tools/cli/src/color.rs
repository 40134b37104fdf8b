//! Colours, on terminals that want them.

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use clap::ValueEnum;
use std::ffi::OsString;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    Always,
    Never,
}

impl When {
    /// What the command line asks for, before clap has read it: its own messages have colours, too.
    fn of(arguments: impl Iterator<Item = OsString>) -> When {
        let own = arguments.take_while(|argument| argument != "--");
        let own: Vec<String> = own
            .map(|argument| argument.to_string_lossy().into())
            .collect();
        let next = own.windows(2).filter(|two| two[0] == "--color");
        let value = next.map(|two| two[1].as_str());
        let joined = own.iter().filter_map(|one| one.strip_prefix("--color="));
        let last = value.chain(joined).next_back();
        last.and_then(|name| When::from_str(name, false).ok())
            .unwrap_or_default()
    }

    /// For clap's own messages.
    pub fn clap(arguments: impl Iterator<Item = OsString>) -> clap::ColorChoice {
        match When::of(arguments) {
            When::Auto => clap::ColorChoice::Auto,
            When::Always => clap::ColorChoice::Always,
            When::Never => clap::ColorChoice::Never,
        }
    }

    /// Which streams get colours.
    pub fn streams(self) -> Colors {
        match self {
            When::Auto => Colors {
                out: AutoStream::choice(&std::io::stdout()) != ColorChoice::Never,
                say: AutoStream::choice(&std::io::stderr()) != ColorChoice::Never,
            },
            When::Always => Colors {
                out: true,
                say: true,
            },
            When::Never => Colors::default(),
        }
    }
}

/// The streams that get colours: results, and what is said about them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Colors {
    pub out: bool,
    pub say: bool,
}

/// What a colour stands for.
#[derive(Clone, Copy, Debug)]
pub enum Ink {
    Heading,
    Good,
    Warning,
    Error,
    /// Less important than what is around it.
    Dim,
}

impl Ink {
    /// The text in this colour, if there are colours.
    pub fn on(self, colored: bool, text: &str) -> String {
        let style = match self {
            Ink::Heading => Style::new().bold(),
            Ink::Good => AnsiColor::Green.on_default(),
            Ink::Warning => AnsiColor::Yellow.on_default().bold(),
            Ink::Error => AnsiColor::Red.on_default().bold(),
            Ink::Dim => Style::new().dimmed(),
        };
        match colored {
            true => format!("{style}{text}{style:#}"),
            false => text.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claps_messages_have_the_colours_that_the_command_line_asks_for() {
        let asked = |line: &str| When::of(line.split(' ').map(OsString::from));
        assert_eq!(asked("devprof stats --color never"), When::Never);
        assert_eq!(asked("devprof --color=always stats"), When::Always);
        assert_eq!(asked("devprof run -- prog --color never"), When::Auto);
        assert_eq!(asked("devprof --color sometimes"), When::Auto);
    }
}
