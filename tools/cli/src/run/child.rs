//! The program as a child: started, sent the signals that are sent to us, waited for. FFI to libc.
//!
//! It stays in our process group, as it would be without us: what a terminal sends (Ctrl-C, Ctrl-Z, a new size) reaches
//! it by itself. What somebody sends to us alone, with `kill`, is passed on.

use std::ffi::c_int;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Exited(u8),
    /// The signal that killed it.
    Killed(i32),
}

/// Why there is no end to tell of.
#[derive(Debug)]
pub enum Error {
    Start(io::Error),
    /// It was started, and it is not known what became of it.
    Wait(io::Error),
}

/// What is passed on.
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

/// Runs a program to its end. Called once, while the process has one thread.
///
/// # Errors
/// It could not be started, or not be waited for.
pub fn run(command: &mut Command) -> Result<End, Error> {
    let signals = Signals::block();
    let (mask, child_action) = (signals.old, signals.child_action);
    let before = move || {
        // SAFETY: the mask is one that pthread_sigmask gave, the action one that signal gave; both calls are safe
        // between fork and exec.
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

/// Passes signals on until the child has ended.
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
                    // Job control: the shell is to see that we stopped, and wakes both of us.
                    if why != libc::SIGSTOP {
                        send(std::process::id().cast_signed(), libc::SIGSTOP);
                    }
                }
            }
        }
        let is_sent = from.is_some_and(|from| from != pid);
        let is_wanted = match signal {
            libc::SIGCHLD => false,
            // To a group, by a shell: then it has reached the program, too.
            libc::SIGCONT if was_stopped => is_stopped,
            _ => is_sent,
        };
        if is_wanted {
            send(pid, signal);
        }
    }
}

/// Ends this process as the program ended: by the same signal. What to return from main, where that does not kill.
pub fn end_as(end: End) -> u8 {
    let signal = match end {
        End::Exited(status) => return status,
        End::Killed(signal) => signal,
    };
    // SAFETY: plain numbers and sets. No core of this process: it would take the place of the program's.
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

/// A process that is gone needs no signal.
fn send(pid: libc::pid_t, signal: c_int) {
    // SAFETY: sends a signal; the child has not been waited for, so that its id is its own.
    unsafe { libc::kill(pid, signal) };
}

enum Change {
    Ended(End),
    Stopped(c_int),
    Continued,
}

/// What has become of the child, if anything.
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

/// The signals, kept from doing anything by themselves.
struct Signals {
    all: libc::sigset_t,
    /// The mask that the program starts with.
    old: libc::sigset_t,
    /// Likewise, what SIGCHLD does there. Where it is ignored nobody can be waited for.
    child_action: libc::sighandler_t,
}

impl Signals {
    fn block() -> Signals {
        // SAFETY: sets of plain bits, filled by the calls.
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

    /// Waits for the next one. Which process has sent it; `None`: the kernel, for a terminal or another reason.
    fn next(&self) -> io::Result<(c_int, Option<libc::pid_t>)> {
        loop {
            // SAFETY: `info` is filled by the call, and has a sender when its code says that a process sent it.
            unsafe {
                let mut info = std::mem::zeroed::<libc::siginfo_t>();
                let signal = libc::sigwaitinfo(&self.all, &mut info);
                if signal > 0 {
                    let sent = [libc::SI_USER, libc::SI_QUEUE, libc::SI_TKILL];
                    let is_sent = sent.contains(&info.si_code);
                    return Ok((signal, is_sent.then(|| info.si_pid())));
                }
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }
}
