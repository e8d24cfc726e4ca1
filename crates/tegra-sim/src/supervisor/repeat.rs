//! Answers that nobody heard.
//!
//! Before Linux 5.19 a signal may take a caller away from a call that has been received. The call is done, but its caller makes it
//! again, by itself (`EINTR`) or by the host (`SA_RESTART`). The second time it gets the first time's answer.

use super::sys::{Notification, Reply};
use parking_lot::{Condvar, Mutex};
use std::collections::{HashSet, VecDeque};

/// More callers are not interrupted at a time.
const MOST: usize = 256;

/// The answers, and who is being answered.
#[derive(Debug, Default)]
pub struct Unheard {
    answers: Mutex<VecDeque<Answer>>,
    /// Threads whose call is in progress. One that makes its call again, or another in a signal handler, may do so before the first
    /// is done; the second one waits.
    busy: Mutex<HashSet<u32>>,
    done: Condvar,
}

/// A thread's call is in progress.
pub struct Turn<'a>(&'a Unheard, u32);

#[derive(Debug)]
struct Answer {
    call: Identity,
    /// What its argument held before, and what the call left there.
    before: Vec<u8>,
    after: Vec<u8>,
    value: i64,
}

/// Thread, system call, arguments, and where in the program it was made.
type Identity = (u32, i32, [u64; 6], u64);

fn identity(call: &Notification) -> Identity {
    (call.pid, call.data.nr, call.data.args, call.data.instruction_pointer)
}

impl Unheard {
    /// Waits for the thread's earlier call.
    pub fn turn(&self, tid: u32) -> Turn<'_> {
        let mut busy = self.busy.lock();
        while !busy.insert(tid) {
            self.done.wait(&mut busy);
        }
        Turn(self, tid)
    }

    /// A call was done and its caller is gone. One that failed can fail again.
    pub fn remember(&self, call: &Notification, before: Vec<u8>, after: Vec<u8>, reply: Reply) {
        let Reply::Value(value) = reply else { return };
        let mut answers = self.answers.lock();
        if answers.len() == MOST {
            answers.pop_front();
        }
        answers.push_back(Answer { call: identity(call), before, after, value });
    }

    /// The answer to the same call: what it returned, and what it left in its argument. The argument holds that already, if it was
    /// the host that made the call again; what it held before, if it was the program.
    pub fn take(&self, call: &Notification, argument: &[u8]) -> Option<(i64, Vec<u8>)> {
        let mut answers = self.answers.lock();
        let at = answers.iter().position(|answer| answer.call == identity(call))?;
        let answer = answers.remove(at)?;
        (answer.after == argument || answer.before == argument).then_some((answer.value, answer.after))
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
        done(Reply::Value(7));
        assert_eq!(unheard.take(&call(2, 3), &[5]), None, "another thread");
        assert_eq!(unheard.take(&call(1, 4), &[5]), None, "another descriptor");
        assert_eq!(unheard.take(&call(1, 3), &[5]), Some((7, vec![5])), "made by the host");
        assert_eq!(unheard.take(&call(1, 3), &[5]), None, "once");
        done(Reply::Value(7));
        assert_eq!(unheard.take(&call(1, 3), &[4]), Some((7, vec![5])), "made by the program");
        done(Reply::Value(7));
        assert_eq!(unheard.take(&call(1, 3), &[6]), None, "another argument");
        done(Reply::Error(tegrarm_kmd::Errno::EINVAL));
        assert_eq!(unheard.take(&call(1, 3), &[5]), None, "a failure");
    }

    #[test]
    fn old_answers_make_room() {
        let unheard = Unheard::default();
        (0..2 * MOST as u32).for_each(|pid| unheard.remember(&call(pid, 3), vec![], vec![], Reply::Value(0)));
        assert_eq!(unheard.answers.lock().len(), MOST);
        assert_eq!(unheard.take(&call(0, 3), &[]), None);
    }
}
