//! The traces of a command: their processes, and the time line that they share.
//!
//! The times of a trace are of its host's system clock, which counts from the boot of the host. The traces of a host
//! have the same clock. The clocks of several hosts are aligned by their realtime clocks, which the runtime reads
//! together with the system clock when a trace starts. The time line is the system clock of the host that booted first,
//! because then no time is negative.

use super::{Request, Selection};
use crate::exit::usage;
use crate::names::Naming;
use crate::outfile;
use anyhow::Result;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use tracefile::format::Header;
use zerocopy::IntoBytes;

/// How many traces an output can have.
const MAX_TRACES: usize = 1 << 16;
/// Traces of one host have the same clock, unless the host was booted in between. The realtime clock may have been
/// adjusted between the starts of two traces.
const MAX_ADJUSTMENT: u64 = 1_000_000_000;
/// Containers on one host can have different names. Hosts whose clocks differ by less need no alignment: realtime
/// clocks are less exact.
const MAX_DIFFERENCE: u64 = 1_000_000;

/// A trace to read.
#[derive(Clone, Debug)]
pub struct Input {
    pub path: PathBuf,
    /// Nanoseconds to add to its times.
    pub shift: u64,
    /// When the first trace started, on the common time line. `None` if there is only one trace.
    pub origin: Option<u64>,
    /// If there are several traces.
    pub member: Option<Member>,
}

/// One of several traces.
#[derive(Clone, Debug)]
pub struct Member {
    /// From 1, in the order of the command line.
    pub number: u32,
    pub pid: u32,
    pub host: Option<Rc<str>>,
    /// From 1. The traces of one host have the same number.
    pub host_number: u32,
    /// Whether the traces are of several hosts.
    pub has_hosts: bool,
}

impl Input {
    /// The request for the selected records.
    pub fn request<'a>(&self, selection: &'a Selection, naming: Naming) -> Request<'a> {
        Request {
            shift: self.shift,
            origin: self.origin,
            ..Request::new(selection, naming)
        }
    }

    /// The number of the trace in the output, from 1.
    pub fn number(&self) -> u32 {
        self.member.as_ref().map_or(1, |member| member.number)
    }
}

impl Member {
    /// The name of the process for people, with the host if there are several.
    pub fn label(&self) -> String {
        match self.host.as_deref().filter(|_| self.has_hosts) {
            Some(host) => format!("process {} on {host}", self.pid),
            None => format!("process {}", self.pid),
        }
    }
}

#[derive(Debug)]
pub struct Inputs {
    /// At least one.
    pub all: Vec<Input>,
    /// How many system clocks were aligned.
    pub clocks: usize,
    /// When the first trace started, in nanoseconds since 1970. `None` if there is only one trace.
    pub started_unix: Option<u64>,
}

/// The start of one of several traces, which must be known before the first one is exported.
struct Start {
    header: Header,
    host: Option<Rc<str>>,
}

impl Start {
    /// In nanoseconds of the system clock.
    fn started(&self) -> u64 {
        let ticks = self.header.started.get();
        super::nanoseconds(ticks, self.header.frequency.get())
    }

    /// When the system clock was 0, in nanoseconds since 1970.
    fn boot(&self) -> i128 {
        i128::from(self.header.started_unix.get()) - i128::from(self.started())
    }

    /// Whether both traces have the same system clock.
    fn has_clock_of(&self, other: &Start) -> bool {
        let difference = self.boot().abs_diff(other.boot());
        let is_same_host = self.host == other.host;
        let limit = if is_same_host {
            MAX_ADJUSTMENT
        } else {
            MAX_DIFFERENCE
        };
        difference < limit.into()
    }
}

impl Inputs {
    /// Reads the beginning of each file, if there are several.
    pub fn read(paths: Vec<PathBuf>) -> Result<Inputs> {
        if let [path] = &*paths {
            let only = Input {
                path: path.clone(),
                shift: 0,
                origin: None,
                member: None,
            };
            return Ok(Inputs {
                all: vec![only],
                clocks: 1,
                started_unix: None,
            });
        }
        if paths.len() > MAX_TRACES {
            return Err(usage(format!(
                "cannot export {} traces to one output, at most {MAX_TRACES}",
                paths.len()
            )));
        }
        let mut starts = Vec::with_capacity(paths.len());
        for path in &paths {
            starts.push(start(path)?);
        }
        check_repetition(&paths, &starts)?;
        let (shifts, clocks) = shifts(&starts);
        let started = starts.iter().zip(&shifts);
        let origin = started.map(|(start, shift)| start.started().saturating_add(*shift));
        let origin = origin.min();
        let mut hosts = HashMap::new();
        for start in &starts {
            let next = hosts.len() as u32 + 1;
            hosts.entry(start.host.clone()).or_insert(next);
        }
        let started_unix = starts.iter().map(|start| start.header.started_unix.get());
        let started_unix = started_unix.min();
        let all = (1..).zip(paths).zip(starts).zip(shifts);
        let all = all.map(|(((number, path), start), shift)| Input {
            path,
            shift,
            origin,
            member: Some(Member {
                number,
                pid: start.header.pid.get(),
                host_number: hosts[&start.host],
                has_hosts: hosts.len() > 1,
                host: start.host,
            }),
        });
        Ok(Inputs {
            all: all.collect(),
            clocks,
            started_unix,
        })
    }

    /// Whether there are several traces.
    pub fn are_several(&self) -> bool {
        self.all.len() > 1
    }
}

fn start(path: &Path) -> Result<Start> {
    if outfile::is_device_or_pipe(path) {
        return Err(usage(format!(
            "cannot export {} together with other traces, which requires reading it twice: write the trace to a file",
            path.display()
        )));
    }
    let (header, host) = super::header_and_host(path)?;
    Ok(Start {
        header,
        host: host.map(Rc::from),
    })
}

/// Two traces with the same process and start are copies: the start is in nanoseconds.
fn check_repetition(paths: &[PathBuf], starts: &[Start]) -> Result<()> {
    let mut seen: HashMap<&[u8], &Path> = HashMap::new();
    for (path, start) in paths.iter().zip(starts) {
        if let Some(other) = seen.insert(start.header.as_bytes(), path) {
            return Err(usage(format!(
                "{} and {} are the same trace, of process {}: remove one",
                other.display(),
                path.display(),
                start.header.pid
            )));
        }
    }
    Ok(())
}

/// The nanoseconds to add to the times of each trace, and the number of different clocks.
fn shifts(starts: &[Start]) -> (Vec<u64>, usize) {
    let mut clocks: Vec<&Start> = Vec::new();
    let mut clock_of = Vec::with_capacity(starts.len());
    for start in starts {
        let known = clocks.iter().position(|clock| start.has_clock_of(clock));
        clock_of.push(known.unwrap_or(clocks.len()));
        if known.is_none() {
            clocks.push(start);
        }
    }
    let first_boot = clocks.iter().map(|clock| clock.boot()).min();
    let shift = |clock: usize| {
        let shift = clocks[clock].boot() - first_boot.unwrap_or_default();
        // It is not negative.
        u64::try_from(shift).unwrap_or(u64::MAX)
    };
    (clock_of.into_iter().map(shift).collect(), clocks.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A trace that starts at a time of the realtime clock, on a host that booted at another. In seconds.
    fn started(host: &str, boot: f64, unix: f64) -> Start {
        let ns = |seconds: f64| (seconds * 1e9) as u64;
        // 100 MHz.
        Start {
            header: Header::new(1, 100_000_000, ns(unix - boot) / 10, ns(unix)),
            host: Some(host.into()),
        }
    }

    #[test]
    fn clocks_are_aligned_by_realtime_unless_they_are_the_same() {
        let a = |boot, unix| started("a", boot, unix);
        let b = |boot, unix| started("b", boot, unix);
        let (none, half) = (&[0, 0][..], &[0, 500_000_000][..]);
        let cases: [(&[Start], &[u64], usize); 6] = [
            (&[a(100.0, 200.0), a(100.0, 300.0)], none, 1),
            // The realtime clock was adjusted.
            (&[a(100.0, 200.0), a(100.5, 300.0)], none, 1),
            // Containers on one host.
            (&[a(100.0, 200.0), b(100.0001, 300.0)], none, 1),
            (&[a(100.0, 200.0), b(100.5, 300.0)], half, 2),
            // The host was booted again.
            (&[a(150.0, 200.0), a(100.0, 120.0)], &[50_000_000_000, 0], 2),
            (
                &[b(130.0, 200.0), a(100.0, 200.0), b(130.2, 201.0)],
                &[30_000_000_000, 0, 30_000_000_000],
                2,
            ),
        ];
        for (number, (starts, expected, clocks)) in cases.iter().enumerate() {
            let (found, count) = shifts(starts);
            // Seconds in a test are not exact.
            let mut pairs = found.iter().zip(*expected);
            let close = pairs.all(|(a, b)| a.abs_diff(*b) < 100);
            assert!(close, "case {number}: {found:?}");
            let counts = (expected.len(), *clocks);
            assert_eq!((found.len(), count), counts, "case {number}");
        }
    }
}
