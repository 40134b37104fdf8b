//! This process.

use super::clock;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

/// When it was created (`CLOCK_BOOTTIME`), up to a tick earlier. It stays the same when the process executes another
/// program.
pub fn started() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // SAFETY: only returns a value.
    let frequency = u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).ok()?;
    let ticks = start_ticks(&stat)?;
    let rest = ticks.checked_rem(frequency)?;
    Some(Duration::from_secs(ticks / frequency) + Duration::from_secs(rest) / frequency as u32)
}

/// The inode of its PID namespace: another process with the same id is in another one.
pub fn pid_namespace() -> Option<u64> {
    let namespace = std::fs::metadata("/proc/self/ns/pid").ok()?;
    Some(namespace.ino())
}

/// The time since this process was created, also if it has executed another program since.
pub fn age() -> Option<Duration> {
    let now = clock::clock_nanoseconds(libc::CLOCK_BOOTTIME);
    Duration::from_nanos(now).checked_sub(started()?)
}

/// The 22nd field of `/proc/PID/stat`. The program's name, the second one, is in parentheses and can have any characters.
fn start_ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    fields.trim_start().split(' ').nth(22 - 3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_started_before_now() {
        let now = clock::clock_nanoseconds(libc::CLOCK_BOOTTIME);
        let started = started().expect("/proc");
        assert!(!started.is_zero() && started.as_nanos() <= now.into());
        let fields = (3..=30).map(|n| n.to_string()).collect::<Vec<_>>();
        let stat = format!("1 (a) (b c) {}", fields.join(" "));
        assert_eq!(start_ticks(&stat), Some(22));
    }
}
