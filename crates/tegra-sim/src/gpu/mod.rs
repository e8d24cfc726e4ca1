//! The GPU front end: doorbells, GPFIFO, host methods, copy engine, compute class, launches.

/// Engine state of one subcontext: compute and copy methods, latched by offset.
#[derive(Debug, Default)]
pub struct GrContext {}
