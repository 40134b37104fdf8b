//! What the kernel says about mounted file systems.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// Options of NFS and Lustre with which a lock that `fcntl` sets succeeds, but excludes only processes of this node.
const LOCAL_LOCKS: [&str; 4] = ["nolock", "local_lock=all", "local_lock=posix", "localflock"];

/// Whether locks of this file do not exclude processes of other nodes that share its file system. False if it is not
/// known.
pub fn has_local_locks(file: &Metadata) -> bool {
    let device = (libc::major(file.dev()), libc::minor(file.dev()));
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    mounts.lines().any(|line| has_option(line, device))
}

/// Whether a line of `mountinfo` describes a device, and has one of the options. A line has the fields: id, parent's id,
/// major:minor, root, mount point, options, optional fields, a hyphen, type, source, options of the file system.
fn has_option(line: &str, device: (u32, u32)) -> bool {
    let read = || {
        let mut fields = line.split(' ');
        let (major, minor) = fields.nth(2)?.split_once(':')?;
        let is_device = (major.parse(), minor.parse()) == (Ok(device.0), Ok(device.1));
        fields.find(|&field| field == "-")?;
        let kind = fields.next()?;
        let is_shared = kind == "lustre" || kind.starts_with("nfs");
        let options = fields.next_back()?;
        let has_option = options
            .split(',')
            .any(|option| LOCAL_LOCKS.contains(&option));
        Some(is_device && is_shared && has_option)
    };
    read() == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_for_local_locks_are_found() {
        let is_local = |kind, options| {
            let line = format!("98 22 0:51 / /home/a b rw - {kind} server:/home {options}");
            assert!(!has_option(&line, (0, 52)));
            has_option(&line, (0, 51))
        };
        for (kind, options) in [
            (
                "nfs",
                "rw,vers=3,nolock,proto=tcp,local_lock=all,addr=10.0.0.1",
            ),
            ("nfs4", "rw,local_lock=posix"),
            ("lustre", "rw,localflock"),
        ] {
            assert!(is_local(kind, options), "{options}");
        }
        for (kind, options) in [
            ("nfs", "rw,vers=3,proto=tcp,local_lock=none,addr=10.0.0.1"),
            // Only flock is local.
            ("nfs", "rw,local_lock=flock"),
            ("lustre", "rw,flock"),
            ("ext4", "rw,nolock"),
        ] {
            assert!(!is_local(kind, options), "{options}");
        }
        assert!(!has_option("", (0, 51)) && !has_option("1 2 - nfs", (0, 51)));
        let here = std::fs::metadata("/proc").expect("/proc");
        assert!(!has_local_locks(&here));
    }
}
