//! User objects: what a program ties to graphs, and what is called when nobody refers to it any more.

use crate::handles::Handles;
use crate::numbers::*;
use crate::pointers::call_host_function;
use crate::result::{Answer, fail};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// All user objects that somebody refers to.
static OBJECTS: Handles<UserObject> = Handles::new(13, "user object", CUDA_ERROR_INVALID_VALUE);

/// A user object.
pub struct UserObject {
    handle: usize,
    user: usize,
    destroy: usize,
    count: AtomicU64,
}

/// References of a graph.
pub struct Kept {
    object: Arc<UserObject>,
    count: u32,
}

impl UserObject {
    fn retain(&self, count: u32) {
        self.count.fetch_add(count.into(), Ordering::Relaxed);
    }

    /// Gives references up. With the last one, the program's function is called.
    fn release(&self, count: u32) -> Answer {
        let take = |now: u64| now.checked_sub(count.into());
        let Ok(before) = self.count.fetch_update(Ordering::AcqRel, Ordering::Acquire, take) else {
            fail!(CUDA_ERROR_INVALID_VALUE, "{count} references of a user object that has fewer are given up");
        };
        if before == u64::from(count) {
            OBJECTS.remove(self.handle)?;
            call_host_function(self.destroy, self.user);
        }
        Ok(())
    }
}

impl Clone for Kept {
    fn clone(&self) -> Kept {
        self.object.retain(self.count);
        Kept { object: self.object.clone(), count: self.count }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // It has as many references as it counts, so that this cannot fail.
        let _ = self.object.release(self.count);
    }
}

/// What graphs keep: the references of one graph.
#[derive(Clone, Default)]
pub struct AllKept(Vec<Kept>);

impl AllKept {
    /// Takes references: new ones, or, if `moves`, some that the program has.
    pub fn add(&mut self, object: usize, count: u32, moves: bool) -> Answer {
        some(count)?;
        let object = OBJECTS.get(object)?;
        if !moves {
            object.retain(count);
        } else if object.count.load(Ordering::Relaxed) < count.into() {
            fail!(CUDA_ERROR_INVALID_VALUE, "{count} references of a user object that has fewer are moved");
        }
        self.0.push(Kept { object, count });
        Ok(())
    }

    /// Gives up references. The caller drops what this returns when no lock is held: the program's function may be called then.
    pub fn remove(&mut self, object: usize, count: u32) -> Answer<Vec<Kept>> {
        some(count)?;
        let is_it = |one: &Kept| one.object.handle == object;
        let all: u32 = self.0.iter().filter(|one| is_it(one)).map(|one| one.count).sum();
        let Some(left) = all.checked_sub(count) else {
            fail!(CUDA_ERROR_INVALID_VALUE, "the graph has {all} references of this user object, not {count}");
        };
        let (ended, mut others): (Vec<Kept>, Vec<Kept>) = self.0.drain(..).partition(is_it);
        if left > 0 {
            let object = ended[0].object.clone();
            object.retain(left);
            others.push(Kept { object, count: left });
        }
        self.0 = others;
        Ok(ended)
    }
}

fn some(count: u32) -> Answer {
    if count == 0 || count > i32::MAX as u32 {
        fail!(CUDA_ERROR_INVALID_VALUE, "{count} references");
    }
    Ok(())
}

pub mod rows {
    //! The functions of user objects.

    use super::*;
    use crate::pointers::Ptr;
    use std::ffi::c_void;

    pub fn cuUserObjectCreate(object: Ptr<usize>, user: Ptr<c_void>, destroy: usize, count: u32, flags: u32) -> Answer {
        object.present("object_out")?;
        some(count)?;
        if destroy == 0 || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC {
            fail!(CUDA_ERROR_INVALID_VALUE, "destroy is NULL, or the flags are {flags:#x}");
        }
        let count = AtomicU64::new(count.into());
        let (handle, _) = OBJECTS.add_with(|handle| UserObject { handle, user: user.address(), destroy, count })?;
        object.set(handle, "object_out")
    }

    pub fn cuUserObjectRetain(object: usize, count: u32) -> Answer {
        some(count)?;
        OBJECTS.get(object)?.retain(count);
        Ok(())
    }

    pub fn cuUserObjectRelease(object: usize, count: u32) -> Answer {
        some(count)?;
        OBJECTS.get(object)?.release(count)
    }
}
