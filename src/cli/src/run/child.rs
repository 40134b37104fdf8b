//! Runs the program as a child process and forwards signals to it. FFI to libc.
//!
//! The child stays in devprof's process group, where it would be without devprof. Signals from the terminal (Ctrl-C,
//! Ctrl-Z, a new window size) reach it directly. Signals that are sent to devprof alone, with `kill`, are forwarded.

use std::ffi::c_int;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// How the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Exited(u8),
    /// The signal that killed it.
    Killed(i32),
}

/// Why it is not known how the program ended.
#[derive(Debug)]
pub enum Error {
    Start(io::Error),
    /// The program was started, but waiting for it failed.
    Wait(io::Error),
}

/// The signals that are forwarded.
const SIGNALS: [c_int; 9] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGWINCH,
    libc::SIGTSTP,
    libc::SIGCONT,
];

/// Runs a program until it ends. Must be called only once, while the process has a single thread.
pub fn run(command: &mut Command) -> Result<End, Error> {
    let signals = Signals::block();
    let (mask, child_action) = (signals.old, signals.child_action);
    let before = move || {
        // SAFETY: the mask is from pthread_sigmask, the action from signal; both calls are safe between fork and exec.
        unsafe {
            libc::signal(libc::SIGCHLD, child_action);
            libc::pthread_sigmask(libc::SIG_SETMASK, &mask, std::ptr::null_mut());
        }
        Ok(())
    };
    // SAFETY: `before` only makes the two calls above.
    unsafe { command.pre_exec(before) };
    let child = command.spawn().map_err(Error::Start)?;
    watch(child.id().cast_signed(), &signals).map_err(Error::Wait)
}

/// Forwards signals until the child has ended.
fn watch(pid: libc::pid_t, signals: &Signals) -> io::Result<End> {
    let mut is_stopped = false;
    loop {
        let (signal, from) = signals.next()?;
        let was_stopped = is_stopped;
        while let Some(change) = wait(pid)? {
            match change {
                Change::Ended(end) => return Ok(end),
                Change::Continued => is_stopped = false,
                Change::Stopped(why) => {
                    is_stopped = true;
                    // Job control: this process stops, too, so that the shell notices. Later, the shell
                    // continues both.
                    if why != libc::SIGSTOP {
                        send(std::process::id().cast_signed(), libc::SIGSTOP);
                    }
                }
            }
        }
        let is_from_process = from.is_some_and(|from| from != pid);
        let is_forwarded = match signal {
            libc::SIGCHLD => false,
            // A shell sends it to the process group, so the program has received it unless it is still stopped.
            libc::SIGCONT if was_stopped => is_stopped,
            _ => is_from_process,
        };
        if is_forwarded {
            send(pid, signal);
        }
    }
}

/// If a signal killed the program, ends this process by the same signal. Otherwise returns the program's exit status.
pub fn end_as(end: End) -> u8 {
    let signal = match end {
        End::Exited(status) => return status,
        End::Killed(signal) => signal,
    };
    // SAFETY: the calls take numbers and sets that live on this stack.
    // A core dump of this process would overwrite the program's, so it is disabled.
    unsafe {
        let none = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        libc::setrlimit(libc::RLIMIT_CORE, &none);
        libc::signal(signal, libc::SIG_DFL);
        let mut set = std::mem::zeroed::<libc::sigset_t>();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, std::ptr::null_mut());
        libc::raise(signal);
    }
    u8::try_from(128 + signal).unwrap_or(u8::MAX)
}

/// Sends a signal. It is not an error if the process no longer exists.
fn send(pid: libc::pid_t, signal: c_int) {
    // SAFETY: kill has no memory effects. The child has not been waited for, so its ID is not reused.
    unsafe { libc::kill(pid, signal) };
}

enum Change {
    Ended(End),
    Stopped(c_int),
    Continued,
}

/// The next change of the child's state, if there is one.
fn wait(pid: libc::pid_t) -> io::Result<Option<Change>> {
    let mut status = 0;
    let how = libc::WNOHANG | libc::WUNTRACED | libc::WCONTINUED;
    // SAFETY: `status` is written only here.
    match unsafe { libc::waitpid(pid, &mut status, how) } {
        0 => Ok(None),
        -1 => Err(io::Error::last_os_error()),
        _ if libc::WIFEXITED(status) => {
            let code = libc::WEXITSTATUS(status) as u8;
            Ok(Some(Change::Ended(End::Exited(code))))
        }
        _ if libc::WIFSIGNALED(status) => {
            Ok(Some(Change::Ended(End::Killed(libc::WTERMSIG(status)))))
        }
        _ if libc::WIFSTOPPED(status) => Ok(Some(Change::Stopped(libc::WSTOPSIG(status)))),
        _ => Ok(Some(Change::Continued)),
    }
}

/// The forwarded signals and SIGCHLD, all blocked.
struct Signals {
    all: libc::sigset_t,
    /// The signal mask to start the program with.
    old: libc::sigset_t,
    /// The action of SIGCHLD to start the program with. While it is ignored, children cannot be waited for.
    child_action: libc::sighandler_t,
}

impl Signals {
    fn block() -> Signals {
        // SAFETY: all-zero is a valid signal set, and the calls initialize the sets.
        unsafe {
            let mut all = std::mem::zeroed::<libc::sigset_t>();
            let mut old = std::mem::zeroed::<libc::sigset_t>();
            libc::sigemptyset(&mut all);
            for signal in SIGNALS.into_iter().chain([libc::SIGCHLD]) {
                libc::sigaddset(&mut all, signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &all, &mut old);
            let child_action = libc::signal(libc::SIGCHLD, libc::SIG_DFL);
            Signals {
                all,
                old,
                child_action,
            }
        }
    }

    /// Waits for the next signal. Returns it with the process that sent it, or `None` if the kernel did, for example for
    /// a terminal.
    fn next(&self) -> io::Result<(c_int, Option<libc::pid_t>)> {
        loop {
            // SAFETY: the call fills `info`, which has a sender if its code says that a process sent the signal.
            unsafe {
                let mut info = std::mem::zeroed::<libc::siginfo_t>();
                let signal = libc::sigwaitinfo(&self.all, &mut info);
                if signal > 0 {
                    let codes = [libc::SI_USER, libc::SI_QUEUE, libc::SI_TKILL];
                    let has_sender = codes.contains(&info.si_code);
                    return Ok((signal, has_sender.then(|| info.si_pid())));
                }
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }
}
