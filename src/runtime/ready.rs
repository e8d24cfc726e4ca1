//! A kernel's launches as they lie ready in GPU memory: words, descriptor and parameter bank, complete but for the
//! arguments and the number that the end releases. A launch like the one before writes those, and no more.
//!
//! Each such image serves one launch at a time. There are as many as the program keeps in flight.

use super::commands::Commands;
use super::cubin::Kernel;
use super::heap::{Heap, Piece};
use super::launch::{Launch, LaunchError};
use super::memory::Span;
use super::prepared::{Context, Prepared};
use super::queue::{ENTRIES, Program, Queue};
use crate::status::RmResult;
use std::sync::Arc;
use zerocopy::IntoBytes;

/// Images of the first piece of memory; each further piece has as many as there are already.
const FIRST: usize = 8;
/// No more can be in flight.
const MOST: usize = ENTRIES as usize;
/// Where the words lie: the number they release is a double word.
const WORDS: u64 = 4;
/// Where the descriptor lies behind the words: descriptors are multiples of this.
const DESCRIPTOR: u64 = super::qmd::ALIGN;

/// One launch in GPU memory.
struct Image {
    program: Program,
    arguments: Span,
    /// Descriptor and parameter bank, and their GPU address.
    launch: Span,
    at: u64,
    /// The template it was made from.
    version: u64,
    /// Of its last launch.
    fence: u64,
}

/// All of a kernel.
pub struct Ready {
    /// What they are copies of, as far as launches have that in common.
    template: Prepared,
    /// Goes up when the template changes.
    version: u64,
    images: Vec<Image>,
    next: usize,
    /// One less than their number, a power of two.
    wrap: usize,
    /// Declared last: the images lie there.
    pieces: Vec<Piece>,
}

impl Ready {
    /// None yet.
    pub fn new(kernel: &Kernel) -> Ready {
        Ready { template: Prepared::new(kernel), version: 0, images: Vec::new(), next: 0, wrap: 0, pieces: Vec::new() }
    }

    /// Whether they are for this launch, with `local_memory` bytes of local memory for each thread.
    #[inline]
    pub fn is_for(&self, launch: &Launch, local_memory: u32) -> bool {
        self.template.is_for(launch, local_memory)
    }

    /// From now on they are for a launch of a kernel whose module lies at `module`.
    ///
    /// # Errors
    /// The limit that is broken, with the numbers.
    #[cold]
    pub fn make(
        &mut self,
        kernel: &Kernel,
        module: u64,
        launch: Launch,
        local_memory: u32,
        context: &Context,
    ) -> Result<(), LaunchError> {
        self.version += 1;
        self.template.make(kernel, module, launch, local_memory, context)
    }

    /// Launches: `fill` writes the block of arguments, and `name` is the kernel's, if a profile wants it. Returns the fence.
    ///
    /// # Errors
    /// What `fill` says; as [`Heap::take`] and [`Queue::wait_until_free_after`].
    #[inline(always)]
    pub fn launch(
        &mut self,
        heap: &Arc<Heap>,
        queue: &mut Queue,
        name: impl FnOnce() -> String,
        fill: impl FnOnce(&Span) -> RmResult<()>,
    ) -> RmResult<u64> {
        let version = self.version;
        let image = match self.images.get_mut(self.next) {
            Some(image) if image.version == version && queue.is_free_after(image.fence) => image,
            _ => self.renew(heap, queue)?,
        };
        fill(&image.arguments)?;
        let fence = queue.submit_again(&image.program, image.at, name)?;
        image.fence = fence;
        self.next = (self.next + 1) & self.wrap;
        Ok(fence)
    }

    /// The last launch that may still use them.
    pub fn last(&self) -> u64 {
        self.images.iter().map(|image| image.fence).max().unwrap_or(0)
    }

    /// Makes the next image a copy of the template that nothing uses: with more memory, or after waiting.
    #[cold]
    fn renew(&mut self, heap: &Arc<Heap>, queue: &mut Queue) -> RmResult<&mut Image> {
        let most = self.images.len() >= MOST;
        if self.images.get(self.next).is_none_or(|image| !most && !queue.has_finished(image.fence)) {
            self.grow(heap, queue)?;
        }
        let image = &mut self.images[self.next];
        queue.wait_until_free_after(image.fence)?;
        if image.version != self.version {
            image.launch.put(0, self.template.at(image.at));
            image.version = self.version;
        }
        Ok(image)
    }

    /// As many images again, the next launch's first.
    fn grow(&mut self, heap: &Arc<Heap>, queue: &Queue) -> RmResult<()> {
        let size = (DESCRIPTOR + self.template.bytes()).next_multiple_of(DESCRIPTOR);
        let count = self.images.len().max(FIRST) as u64;
        let piece = heap.take(count * size)?;
        let first = self.images.len();
        let image = |offset| {
            let launch = offset + DESCRIPTOR;
            let at = piece.va() + launch;
            Ok(Image {
                program: program(&piece, offset + WORDS, at, queue)?,
                arguments: piece.span(launch + self.template.arguments_at(), self.template.argument_bytes())?,
                launch: piece.span(launch, self.template.bytes())?,
                at,
                version: 0,
                fence: 0,
            })
        };
        let images: Vec<Image> = (0..count).map(|n| image(n * size)).collect::<RmResult<_>>()?;
        self.images.extend(images);
        self.pieces.push(piece);
        (self.next, self.wrap) = (first, self.images.len() - 1);
        Ok(())
    }
}

/// Words at `offset` that launch the descriptor at GPU address `launch` and release a number.
fn program(to: &Piece, offset: u64, launch: u64, queue: &Queue) -> RmResult<Program> {
    let mut words = Commands::new(Vec::new());
    words.wait_for_idle();
    let wait = words.len() as u64;
    words.launch(launch);
    let number = words.release(queue.timeline().va(), 0) as u64;
    let words = words.finish();
    to.write(offset, words.as_bytes())?;
    Program::new(to.va() + offset, words.len() as u64, wait, to.place(offset + number * 4)?)
}
