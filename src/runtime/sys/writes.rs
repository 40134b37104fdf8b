//! Writes that raise no signal: SIGPIPE (nobody reads the pipe) and SIGXFSZ (RLIMIT_FSIZE) end a program by default.

use std::mem::MaybeUninit;

/// Runs `write`. A signal that it would raise is discarded, and only its error is left (EPIPE, EFBIG).
/// Async-signal-safe if `write` is.
pub fn without_signals<T>(write: impl FnOnce() -> T) -> T {
    let _blocked = Blocked::begin();
    write()
}

/// Writes to stderr. If that fails, the text is lost.
pub fn to_stderr(text: &[u8]) {
    without_signals(|| {
        let mut rest = text;
        while !rest.is_empty() {
            // SAFETY: bytes of that length.
            let written =
                unsafe { libc::write(libc::STDERR_FILENO, rest.as_ptr().cast(), rest.len()) };
            match usize::try_from(written) {
                Ok(0) => return,
                Ok(written) => rest = &rest[written.min(rest.len())..],
                Err(_) if is_interrupted() => {}
                Err(_) => return,
            }
        }
    });
}

fn is_interrupted() -> bool {
    // SAFETY: the calling thread's error number.
    unsafe { *libc::__errno_location() == libc::EINTR }
}

/// While it exists, the signals are blocked in this thread. The kernel sends them to the thread that writes.
struct Blocked {
    /// The thread's signal mask before.
    old: libc::sigset_t,
    /// The signals that were not pending before: those that are pending at the end are of the write.
    own: libc::sigset_t,
}

impl Blocked {
    fn begin() -> Blocked {
        // SAFETY: the sets are filled before they are used; only the mask of this thread changes.
        unsafe {
            let [mut own, mut old, mut pending] = [MaybeUninit::uninit(); 3].map(|set| {
                let mut set: MaybeUninit<libc::sigset_t> = set;
                libc::sigemptyset(set.as_mut_ptr());
                set.assume_init()
            });
            let signals = [libc::SIGPIPE, libc::SIGXFSZ];
            for signal in signals {
                libc::sigaddset(&mut own, signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &own, &mut old);
            libc::sigpending(&mut pending);
            for signal in signals {
                if libc::sigismember(&pending, signal) == 1 {
                    libc::sigdelset(&mut own, signal);
                }
            }
            Blocked { old, own }
        }
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        let at_once = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        /// The size of the kernel's signal set, bytes.
        const SET: usize = 8;
        // SAFETY: valid sets and a valid time; without a wait. The function of libc would be a cancellation point.
        unsafe {
            while libc::syscall(
                libc::SYS_rt_sigtimedwait,
                &raw const self.own,
                std::ptr::null::<libc::siginfo_t>(),
                &raw const at_once,
                SET,
            ) > 0
            {}
            libc::pthread_sigmask(libc::SIG_SETMASK, &self.old, std::ptr::null_mut());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::{ErrorKind, Write};
    use std::os::fd::FromRawFd;

    fn is_pending(signal: i32) -> bool {
        // SAFETY: the set is filled by the call.
        unsafe {
            let mut pending = std::mem::zeroed();
            libc::sigpending(&mut pending);
            libc::sigismember(&pending, signal) == 1
        }
    }

    #[test]
    fn a_write_to_a_pipe_that_nobody_reads_only_fails() {
        let mut ends = [0; 2];
        // SAFETY: writes two descriptors, of which each has one owner. Rust's test programs ignore SIGPIPE: with the
        // default action, the signal would end this one.
        let mut pipe = unsafe {
            assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
            drop(File::from_raw_fd(ends[0]));
            File::from_raw_fd(ends[1])
        };
        let error = without_signals(|| pipe.write_all(b"x")).expect_err("nobody reads");
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
        assert!(!is_pending(libc::SIGPIPE));
        // A signal that the thread already had stays.
        // SAFETY: the mask of this thread, which ends with the test; a signal to this thread.
        unsafe {
            let mut set = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            libc::sigaddset(&mut set, libc::SIGPIPE);
            libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
            libc::pthread_kill(libc::pthread_self(), libc::SIGPIPE);
        }
        assert!(without_signals(|| pipe.write_all(b"x")).is_err());
        assert!(is_pending(libc::SIGPIPE));
    }
}
