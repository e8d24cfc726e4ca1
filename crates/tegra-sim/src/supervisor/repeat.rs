//! Answers that their callers did not get.
//!
//! Before Linux 5.19 a signal may take a caller away from a call that has been received. The call is done, but its
//! caller makes it again, by itself (`EINTR`) or by the host (`SA_RESTART`). The second call then gets the answer of
//! the first.

use super::sys::{Notification, Reply};
use std::collections::{HashSet, VecDeque};
use tegrarm_lock::{Condvar, Mutex};

/// The number of answers that are remembered. More callers are not interrupted at the same time.
const REMEMBERED: usize = 256;

/// The answers that were not received, and the threads whose calls are in progress.
#[derive(Debug, Default)]
pub struct Unheard {
    answers: Mutex<VecDeque<Answer>>,
    /// The threads whose call is in progress. A thread may make its call again, or another call in a signal handler,
    /// before the first call is done. The later call waits.
    busy: Mutex<HashSet<u32>>,
    done: Condvar,
}

/// Marks the call of a thread as in progress.
pub struct Turn<'a>(&'a Unheard, u32);

/// An answer that was not received.
#[derive(Debug)]
pub struct Answer {
    call: Identity,
    /// The contents of the argument before the call.
    pub before: Vec<u8>,
    /// The contents of the argument after the call.
    pub after: Vec<u8>,
    /// The result of the call.
    pub value: i64,
}

/// Identifies a call: the thread, the system call, the arguments that it uses, and the place in the program that made
/// it.
type Identity = (u32, i32, Vec<u64>, u64);

fn identity(call: &Notification) -> Identity {
    let used = arguments(call).unwrap_or(call.data.args.len());
    (call.pid, call.data.nr, call.data.args[..used].to_vec(), call.data.instruction_pointer)
}

/// The number of arguments that matter to a call, if doing it twice is not the same as doing it once. The registers of
/// the others, such as those of the mode with which no file is made, hold what happened to be there, which is something
/// else when the program makes the call again.
pub fn arguments(call: &Notification) -> Option<usize> {
    match i64::from(call.data.nr) {
        libc::SYS_ioctl | libc::SYS_openat => Some(3),
        libc::SYS_openat2 => Some(4),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_open => Some(2),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_creat => Some(1),
        _ => None,
    }
}

impl Unheard {
    /// Waits until an earlier call of the thread is done.
    pub fn turn(&self, tid: u32) -> Turn<'_> {
        let mut busy = self.busy.lock();
        while !busy.insert(tid) {
            self.done.wait(&mut busy);
        }
        Turn(self, tid)
    }

    /// Remembers the answer to a call whose caller has gone. A failed call is not remembered, because it can fail
    /// again.
    pub fn remember(&self, call: &Notification, before: Vec<u8>, after: Vec<u8>, reply: Reply) {
        let Reply::Value(value) = reply else { return };
        let mut answers = self.answers.lock();
        if answers.len() == REMEMBERED {
            answers.pop_front();
        }
        answers.push_back(Answer { call: identity(call), before, after, value });
    }

    /// Finds the answer to the same call. If the host made the call again, the argument holds the result already. If the
    /// program did, the argument holds what it held before.
    pub fn take(&self, call: &Notification, argument: &[u8]) -> Option<Answer> {
        let mut answers = self.answers.lock();
        let at = answers.iter().position(|answer| answer.call == identity(call))?;
        let answer = answers.remove(at)?;
        (answer.after == argument || answer.before == argument).then_some(answer)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.busy.lock().remove(&self.1);
        self.0.done.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(pid: u32, fd: u64) -> Notification {
        let data = libc::seccomp_data { nr: 16, arch: 0, instruction_pointer: 7, args: [fd, 2, 3, 0, 0, 0] };
        Notification { id: 1, pid, flags: 0, data }
    }

    #[test]
    fn the_same_call_gets_the_same_answer_once() {
        let unheard = Unheard::default();
        let done = |reply| unheard.remember(&call(1, 3), vec![4], vec![5], reply);
        let take =
            |call: &Notification, argument: &[u8]| unheard.take(call, argument).map(|a| (a.value, a.before, a.after));
        let known = Some((7, vec![4], vec![5]));
        done(Reply::Value(7));
        assert_eq!(take(&call(2, 3), &[5]), None, "another thread");
        assert_eq!(take(&call(1, 4), &[5]), None, "another descriptor");
        assert_eq!(take(&call(1, 3), &[5]), known, "made by the host");
        assert_eq!(take(&call(1, 3), &[5]), None, "once");
        done(Reply::Value(7));
        assert_eq!(take(&call(1, 3), &[4]), known, "made by the program");
        done(Reply::Value(7));
        assert_eq!(take(&call(1, 3), &[6]), None, "another argument");
        done(Reply::Error(tegrarm_kmd::Errno::EINVAL));
        assert_eq!(take(&call(1, 3), &[5]), None, "a failure");
        // A program that makes the call again has other numbers in the registers that the call does not use.
        done(Reply::Value(7));
        let mut again = call(1, 3);
        again.data.args[3..].copy_from_slice(&[9, 9, 9]);
        assert_eq!(take(&again, &[4]), known, "other registers");
        done(Reply::Value(7));
        again.data.args[2] = 9;
        assert_eq!(take(&again, &[4]), None, "another address");
    }

    #[test]
    fn only_the_arguments_of_a_call_identify_it() {
        let of = |nr: i64| {
            arguments(&Notification { data: libc::seccomp_data { nr: nr as i32, ..call(1, 3).data }, ..call(1, 3) })
        };
        // The last one of openat is the mode of a file that it makes.
        assert_eq!([of(libc::SYS_ioctl), of(libc::SYS_openat), of(libc::SYS_openat2)], [Some(3), Some(3), Some(4)]);
        // These have no effect that could happen twice.
        assert_eq!([of(libc::SYS_statx), of(libc::SYS_mmap)], [None; 2]);
    }

    #[test]
    fn old_answers_make_room() {
        let unheard = Unheard::default();
        (0..2 * REMEMBERED as u32).for_each(|pid| unheard.remember(&call(pid, 3), vec![], vec![], Reply::Value(0)));
        assert_eq!(unheard.answers.lock().len(), REMEMBERED);
        assert!(unheard.take(&call(0, 3), &[]).is_none());
    }
}
