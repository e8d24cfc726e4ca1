//! The launch images of a kernel in GPU memory. An image has words, a descriptor and a parameter bank. It is complete
//! except for the arguments and the number that is released at the end. A launch with the same geometry as the last one
//! writes only those.
//!
//! Each image serves one launch at a time. There are as many images as the program has launches in flight.

use crate::runtime::channel::{Channel, ENTRIES, Program};
use crate::runtime::commands::Commands;
use crate::runtime::launch::params::Home;
use crate::runtime::launch::template::{Context, LaunchTemplate};
use crate::runtime::launch::{Launch, LaunchError};
use crate::runtime::memory::Span;
use crate::runtime::memory::heap::{Heap, Piece};
use std::sync::Arc;
use tegrarm_images::cubin::Kernel;
use tegrarm_rm::status::RmResult;
use zerocopy::IntoBytes;

/// The number of images in the first piece of memory. Each further piece has as many as there are already.
const FIRST: usize = 8;
/// There cannot be more launches in flight than this.
const IMAGES: usize = ENTRIES as usize;
/// The place of the words. It is chosen so that the number that they release is aligned as a double word.
const WORDS: u64 = 4;
/// The place of the descriptor after the words. The address of a descriptor is a multiple of this.
const DESCRIPTOR: u64 = crate::runtime::launch::qmd::ALIGN;

/// One image in GPU memory.
struct Image {
    program: Program,
    arguments: Span,
    /// The descriptor and the parameter bank, and their GPU address.
    launch: Span,
    at: u64,
    /// The version of the template from which it was made, and the queue's generation. After a fault, images are made anew, because
    /// the fault may have left their workspaces in the middle of a barrier.
    version: u64,
    /// The fence of its last launch.
    fence: u64,
}

/// All images of a kernel.
pub struct LaunchImages {
    /// The template of which the images are copies.
    template: LaunchTemplate,
    /// A number that increases whenever the template changes.
    version: u64,
    images: Vec<Image>,
    next: usize,
    /// The number of images less one. The number is a power of two.
    wrap: usize,
    /// It is declared last, because the images are in this memory.
    pieces: Vec<Piece>,
}

/// The image of the next launch.
pub struct Next<'a> {
    image: &'a mut Image,
    next: &'a mut usize,
    wrap: usize,
}

impl Next<'_> {
    /// The block of arguments, which the caller writes before the launch.
    #[inline(always)]
    pub fn arguments(&self) -> &Span {
        &self.image.arguments
    }

    /// Launches. Returns the fence.
    #[inline(always)]
    pub fn launch(self, channel: &mut Channel) -> u64 {
        let fence = channel.submit_plain(&self.image.program);
        self.image.fence = fence;
        *self.next = (*self.next + 1) & self.wrap;
        fence
    }
}

impl LaunchImages {
    /// Makes the value without images.
    pub fn new(kernel: &Kernel) -> LaunchImages {
        LaunchImages {
            template: LaunchTemplate::new(kernel),
            version: 0,
            images: Vec::new(),
            next: 0,
            wrap: 0,
            pieces: Vec::new(),
        }
    }

    /// Whether the images are for this launch, with `local_memory` bytes of local memory for each thread.
    #[inline]
    pub fn is_for(&self, launch: &Launch, local_memory: u32) -> bool {
        self.template.is_for(launch, local_memory)
    }

    /// Changes the template for a launch of a kernel whose module is at `home`.
    ///
    /// # Errors
    /// The limit that is broken, with the numbers.
    #[cold]
    pub fn make(
        &mut self,
        kernel: &Kernel,
        home: &Home,
        launch: Launch,
        local_memory: u32,
        context: &Context,
    ) -> Result<(), LaunchError> {
        self.version += 1;
        self.template.make(kernel, home, launch, local_memory, context)
    }

    /// The image of the next launch, if the launch takes nothing but stores: the image is ready, the ring has room, and no profile
    /// runs.
    #[inline(always)]
    pub fn next(&mut self, channel: &mut Channel) -> Option<Next<'_>> {
        let version = self.version | channel.generation();
        let image = self.images.get_mut(self.next)?;
        let ready = channel.is_plain() && image.version == version && channel.is_free_after(image.fence);
        ready.then_some(Next { image, next: &mut self.next, wrap: self.wrap })
    }

    /// Launches. `fill` writes the block of arguments, and `name` is the kernel's name, which a profile needs. Returns
    /// the fence.
    ///
    /// # Errors
    /// The error of `fill`, and those of [`Heap::take`] and [`Channel::wait_until_free_after`].
    pub fn launch(
        &mut self,
        heap: &Arc<Heap>,
        channel: &mut Channel,
        name: impl FnOnce() -> String,
        fill: impl FnOnce(&Span) -> RmResult<()>,
    ) -> RmResult<u64> {
        let image = self.renew(heap, channel)?;
        fill(&image.arguments)?;
        let fence = channel.submit_again(&image.program, image.at, name)?;
        image.fence = fence;
        self.next = (self.next + 1) & self.wrap;
        Ok(fence)
    }

    /// The last launch that may still use the images.
    pub fn last(&self) -> u64 {
        self.images.iter().map(|image| image.fence).max().unwrap_or(0)
    }

    /// Makes the next image a copy of the template, unless it is one. If the image is in use, this takes more memory or waits.
    fn renew(&mut self, heap: &Arc<Heap>, channel: &mut Channel) -> RmResult<&mut Image> {
        let most = self.images.len() >= IMAGES;
        if self.images.get(self.next).is_none_or(|image| !most && !channel.has_finished(image.fence)) {
            self.grow(heap, channel)?;
        }
        let image = &mut self.images[self.next];
        channel.wait_until_free_after(image.fence)?;
        let version = self.version | channel.generation();
        if image.version != version {
            image.launch.put(0, self.template.at(image.at));
            image.version = version;
        }
        Ok(image)
    }

    /// Doubles the number of images. The first new one is that of the next launch.
    fn grow(&mut self, heap: &Arc<Heap>, channel: &Channel) -> RmResult<()> {
        let size = (DESCRIPTOR + self.template.bytes()).next_multiple_of(DESCRIPTOR);
        let count = self.images.len().max(FIRST) as u64;
        let piece = heap.take(count * size)?;
        let first = self.images.len();
        let image = |offset| {
            let launch = offset + DESCRIPTOR;
            let at = piece.va() + launch;
            Ok(Image {
                program: program(&piece, offset + WORDS, at, channel)?,
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

/// Writes words at `offset` that launch the descriptor at GPU address `launch` and release a number.
fn program(to: &Piece, offset: u64, launch: u64, channel: &Channel) -> RmResult<Program> {
    let mut words = Commands::new(Vec::new());
    words.wait_for_idle();
    let wait = words.len() as u64;
    words.launch(launch);
    let number = words.release(channel.timeline().va(), 0) as u64;
    let words = words.finish();
    to.write(offset, words.as_bytes())?;
    Program::new(to.va() + offset, words.len() as u64, wait, to.place(offset + number * 4)?)
}
